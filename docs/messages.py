"""The messages of all errors, read from the code: `python docs/messages.py` prints them.

The site shows them below docs/errors.md, so that whoever pastes a message into the search finds
it. A message is what an error is made with, or what is noted as a fault or a failure, which
becomes one; where that is a name or a call, what the name was given or the function returns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "langchain_svc"
# The first that a path begins with; all else is of the chat model.
PARTS = {
    "The command": ("cli/",),
    "Bulk runs": ("bulk/",),
    "The medical interface": ("medical/",),
    "Pseudonyms and privacy": ("privacy/",),
    "Citations": ("citations/", "chat/citing"),
    "Quotas and budgets": ("quota/",),
    "Images and the general tools": (
        "images/",
        "tools/",
        "_wire/general",
        "_wire/image",
    ),
    "Settings, connections and answers": (
        "config",
        "_settings/",
        "_client/",
        "_http/",
        "_wire/",
        "_base/",
    ),
    "Chat, tools and structured output": ("",),
}
RAISED = ("ValueError", "TypeError", "RuntimeError", "MisuseError", "UnreadableError")
NOTED = {"fault", "failure"}
FEWEST_WORDS = 3  # fewer are a part of a message
GAP = "…"


class _Module:
    """The names of a module, and what they stand for; `functions` are those of all modules."""

    def __init__(self, tree: ast.Module, functions: dict[str, list[ast.expr]]) -> None:
        self.tree = tree
        self.functions = functions
        self.values: dict[str, list[ast.expr]] = {}
        self.longer: set[str] = set()  # names whose text goes on
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                returned = (
                    one.value for one in ast.walk(node) if isinstance(one, ast.Return)
                )
                self.functions.setdefault(node.name, []).extend(filter(None, returned))
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    self.values.setdefault(_name(target), []).append(node.value)
            elif isinstance(node, ast.AugAssign):
                self.longer.add(_name(node.target))

    def messages(self) -> Iterator[str]:
        """The messages, `…` for what varies."""
        for made in self._made():
            for text in self._texts(made):
                if len(text.replace(GAP, " ").split()) >= FEWEST_WORDS:
                    yield text

    def _made(self) -> Iterator[ast.expr]:
        """The expressions of what errors say."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                if any(
                    isinstance(t, ast.Attribute) and t.attr in NOTED
                    for t in node.targets
                ):
                    yield node.value
            elif isinstance(node, ast.Call):
                name = _name(node.func)
                if name in RAISED or (
                    name.startswith("Svc") and name.endswith("Error")
                ):
                    yield from node.args[:1]
                elif name in NOTED:
                    yield from node.args

    def _texts(self, node: ast.expr, depth: int = 3) -> list[str]:
        """All that an expression may say."""
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) else [GAP]
        if isinstance(node, ast.JoinedStr):
            return ["".join(map(self._part, node.values))]
        if isinstance(node, ast.BinOp):
            ends = self._texts(node.right, depth)
            return [
                begin + end for begin in self._texts(node.left, depth) for end in ends
            ]
        if isinstance(node, ast.IfExp):
            return self._texts(node.body, depth) + self._texts(node.orelse, depth)
        if isinstance(node, ast.Call):  # perhaps a method of a text
            text = getattr(node.func, "value", None)
            if isinstance(text, ast.JoinedStr):
                return self._texts(text, depth)
        known: list[ast.expr] = []
        rest = ""
        if isinstance(node, ast.Name):
            known = self.values.get(node.id, [])
            rest = GAP if node.id in self.longer else ""
        elif isinstance(node, ast.Call):
            known = self.functions.get(_name(node.func), [])
        if not known or not depth:
            return [GAP]
        return [
            text + rest for value in known for text in self._texts(value, depth - 1)
        ]

    def _part(self, node: ast.expr) -> str:
        """A part of an f-string; a constant of the module is the same each time."""
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.FormattedValue) and _name(node.value).isupper():
            return self._texts(node.value, 1)[0]
        return GAP


def _name(node: ast.expr) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


@cache
def messages() -> dict[str, list[str]]:
    """The messages of each part, in order."""
    found: dict[str, set[str]] = {part: set() for part in PARTS}
    functions: dict[str, list[ast.expr]] = {}
    modules: dict[str, _Module] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("sandbox/"):
            modules[name] = _Module(ast.parse(path.read_text("utf-8")), functions)
    for name, module in modules.items():
        part = next(part for part, begins in PARTS.items() if name.startswith(begins))
        found[part].update(module.messages())
    return {part: sorted(found[part]) for part in PARTS}


def lists() -> str:
    """A list of messages for each part."""
    lines: list[str] = []
    for part, texts in messages().items():
        lines += ["", f"### {part}", ""]
        lines += [f"- `` {' '.join(text.split())} ``" for text in texts]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(lists())
