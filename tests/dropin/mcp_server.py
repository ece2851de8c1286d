"""An MCP server with results of several blocks."""

from mcp.server.fastmcp import FastMCP, Image

server = FastMCP("numbers", log_level="ERROR")

DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154"
    "789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


@server.tool()
def numbers() -> list[int]:
    """Give numbers."""
    return [12, 3, 45]


@server.tool()
def names() -> list[str]:
    """Give names."""
    return ["Ann", "Bob"]


@server.tool()
def drawing() -> list:
    """Give a text and an image."""
    return ["a red dot", Image(data=DOT, format="png")]


server.run()
