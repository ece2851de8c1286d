"""Writes the two paths in docs/architecture.md, from a trace: `python docs/paths.py`.

With `--check` it only says whether the page is what the code does. A call is traced: a stream with
a tool bound, whose answer is a tool call and comes in one piece.
Each file stands where it is first entered, with the function by which it is entered; on the first
path also with its purpose, the first line of its docstring.
"""

from __future__ import annotations

import ast
import json
import re
import socket
import sys
import threading
from pathlib import Path
from types import FrameType

import langchain_svc
from langchain_svc import ChatSvc

PACKAGE = Path(langchain_svc.__file__).resolve().parent  # an installed one, too
PAGE = Path(__file__).with_name("architecture.md")
LEFT_OUT = {
    "_base",
    "sandbox",
    "config.py",
    "errors.py",
    "__init__.py",
}  # used everywhere
READ = ("_http/sockets.py", "read_body")  # by which the first byte of an answer comes
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def weather(city: str) -> str:
    """Say what the weather is."""
    return city


class Trace:
    """The functions of the package that a call enters, before and after the answer's first byte."""

    def __init__(self) -> None:
        self.prompt: dict[str, str] = {}  # file: the function by which it is entered
        self.answer: dict[str, str] = {}
        self._path = self.prompt

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call; the interpreter calls this."""
        file = Path(frame.f_code.co_filename)
        if not file.is_relative_to(PACKAGE):
            return
        name = file.relative_to(PACKAGE).as_posix()
        function = frame.f_code.co_name
        if event == "return" and (name, function) == READ:
            self._path = self.answer
        if event != "call" or function.startswith("<"):
            return
        if not LEFT_OUT & {name.partition("/")[0], file.name}:
            self._path.setdefault(name, frame.f_code.co_qualname)


def serve(listener: socket.socket) -> None:
    """Answer each request of one connection with the same stream, in one piece."""
    event = json.dumps({"choices": [{"index": 0, "delta": {"content": CALL}}]})
    body = f"data: {event}\n\ndata: [DONE]\n\n".encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}"
    connection, _ = listener.accept()
    with connection:
        while True:
            request = b""
            while not request.endswith(b"}"):
                data = connection.recv(65_536)
                if not data:
                    return
                request += data
            connection.sendall(f"{head}\r\n\r\n".encode() + body)


def traced() -> Trace:
    """The trace of one call, after a first one that imports what is imported late."""
    trace = Trace()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=[listener], daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        with ChatSvc(base_url_v1=url, api_key="none") as model:
            list(model.bind_tools([weather]).stream("How is the weather in Oslo?"))
            sys.setprofile(trace)
            try:
                list(model.bind_tools([weather]).stream("How is the weather in Oslo?"))
            finally:
                sys.setprofile(None)
    if not trace.answer:
        sys.exit(
            f"docs/paths.py: the trace never left {READ[1]} of {READ[0]}: correct READ"
        )
    return trace


def listed(path: dict[str, str], *, with_purpose: bool) -> str:
    """The files of one path, in order."""
    lines: list[str] = []
    for name, function in path.items():
        line = f"1. `{name}`, `{function}`"
        if with_purpose:
            tree = ast.parse((PACKAGE / name).read_text("utf-8"))
            line += f": {(ast.get_docstring(tree) or '').partition(chr(10))[0]}"
        lines.append(line)
    return "\n".join(lines)


def written(page: str, trace: Trace) -> str:
    """The page with the paths of a trace."""
    paths = (("prompt", trace.prompt), ("answer", trace.answer))
    for name, path in paths:
        head, begin, rest = page.partition(
            f"<!-- {name}: written by docs/paths.py -->\n"
        )
        _, end, tail = rest.partition("<!-- end -->\n")
        page = f"{head}{begin}\n{listed(path, with_purpose=name == 'prompt')}\n\n{end}{tail}"
    return page


def _files(page: str) -> set[str]:
    """The files of both paths, with their purposes."""
    rows = re.findall(r"(?m)^1\. (`[^`]+`), `[^`]+`(.*)", page)
    return {file + purpose for file, purpose in rows}


def main() -> None:
    """Write the page, or check it."""
    page = PAGE.read_text("utf-8")
    if "--check" not in sys.argv:
        PAGE.write_text(written(page, traced()), "utf-8")
        return
    # A busy machine may cut the answer otherwise, and so change the order: the files are checked.
    if _files(page) != _files(written(page, traced())):
        sys.exit(
            "docs/architecture.md has other paths than the code: run python docs/paths.py"
        )


if __name__ == "__main__":
    main()
