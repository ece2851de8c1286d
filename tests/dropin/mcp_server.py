"""An MCP server with results of several blocks."""

from mcp.server.fastmcp import FastMCP, Image

server = FastMCP("numbers", log_level="ERROR")


@server.tool()
def numbers() -> list[int]:
    """Give numbers."""
    return [12, 3, 45]


@server.tool()
def drawing() -> list:
    """Give a text and an image."""
    return ["a red dot", Image(data=b"a dot", format="png")]


server.run()
