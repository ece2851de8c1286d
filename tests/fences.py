"""The fenced blocks of the README and the pages, and how those in Python run."""

import ast
import asyncio
import contextlib
import inspect
import io
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [README, *DOCS]
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n\n?)?```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# What a block prints follows it at once.
PRINTED = re.compile(r"\s*^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block and where it stands."""

    page: Path
    line: int
    language: str
    code: str
    reason: str | None = None  # why it is not run
    printed: str | None = None  # what the page says that it prints

    @property
    def place(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page, text=None):
    text = page.read_text("utf-8") if text is None else text
    return [
        Block(
            page,
            text[: found.start("code")].count("\n"),
            found["language"],
            found["code"],
            found["reason"],
            printed[1] if (printed := PRINTED.match(text, found.end())) else None,
        )
        for found in FENCE.finditer(text)
    ]


def run(blocks):
    """Run blocks in order in one namespace, as Jupyter does: `await` works outside of functions.

    What is raised names the page and its line. A block prints what the page says, if it does.
    """
    names = {"__name__": "__main__"}
    loop = asyncio.new_event_loop()
    try:
        for block in blocks:
            code = compile(
                "\n" * block.line + block.code,
                str(block.page),
                "exec",
                flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            )
            with contextlib.redirect_stdout(io.StringIO()) as out:
                result = eval(code, names)
                if inspect.iscoroutine(result):
                    loop.run_until_complete(result)
            if block.printed is not None:
                assert lines_of(out.getvalue()) == lines_of(block.printed), block.place
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def lines_of(text):
    return [line.rstrip() for line in text.strip().splitlines()]
