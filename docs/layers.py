"""Writes the table of layers in docs/architecture.md, from the code: `python docs/layers.py`.

With `--check` it only says whether the page is what the code says. The layers are those that
import-linter holds (`pyproject.toml`). The purpose of a package is the first line of its docstring.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "langchain_svc"
PAGE = Path(__file__).with_name("architecture.md")
BEGIN, END = "<!-- written by docs/layers.py -->\n", "<!-- end -->\n"
LEFT_OUT = {"__main__", "_version"}


def layers() -> list[list[str]]:
    """The packages and modules of each layer, from the top."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    (found,) = re.findall(
        r'name = "Imports point down".*?layers = \[\n(.*?)\n\]', text, re.DOTALL
    )
    named = [set(re.findall(r"\w+", line)) - LEFT_OUT for line in found.splitlines()]
    return [sorted(names) for names in named if names]


def files(name: str) -> list[Path]:
    """The files of a package or a module."""
    folder = PACKAGE / name
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{name}.py"]


def table() -> str:
    """The layers, and what each package is for."""
    lines = ["| layer | | what it is for |", "|---|---|---|"]
    for number, names in enumerate(layers(), 1):
        for name in names:
            is_package = (PACKAGE / name).is_dir()
            text = (
                PACKAGE / name / "__init__.py" if is_package else files(name)[0]
            ).read_text("utf-8")
            about = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
            lines.append(f"| {number} | `{name}{'/' * is_package}` | {about} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page, or check it."""
    page = PAGE.read_text("utf-8")
    head, _, rest = page.partition(BEGIN)
    wanted = f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"
    if "--check" not in sys.argv:
        PAGE.write_text(wanted, "utf-8")
    elif page != wanted:
        sys.exit(
            "docs/architecture.md is not what the code says: run python docs/layers.py"
        )


if __name__ == "__main__":
    main()
