"""Writes the reference of commands in docs/cli.md, from the parser: `python docs/commands.py`.

With `--check` it only says whether the page is what the parser says.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from langchain_svc.cli import build_parser

PAGE = Path(__file__).parent / "cli.md"
BEGIN = "<!-- written by docs/commands.py -->\n"


def reference() -> str:
    """Every command with its arguments, as Markdown."""
    actions = build_parser()._actions  # noqa: SLF001  # argparse has no public way
    kind = argparse._SubParsersAction  # noqa: SLF001  # the same
    (group,) = (action for action in actions if isinstance(action, kind))
    helps = {choice.dest: choice.help for choice in group._choices_actions}  # noqa: SLF001  # the same
    return "\n".join(
        _command(name, one, helps[name]) for name, one in group.choices.items()
    )


def _command(name: str, parser: argparse.ArgumentParser, short: str | None) -> str:
    about = parser.description or f"{str(short)[:1].upper()}{str(short)[1:]}."
    rows = [_row(action) for action in parser._actions if action.dest != "help"]  # noqa: SLF001  # the same
    table = ["", "| argument | |", "|---|---|", *rows] if rows else []
    return "\n".join([f"### `langchain-svc {name}`", "", about, *table, ""])


def _row(action: argparse.Action) -> str:
    shown = action.metavar or (
        "|".join(action.choices) if action.choices else action.dest
    )
    named = action.option_strings[0] if action.option_strings else ""
    value = "" if named and action.nargs == 0 else str(shown)
    text = (action.help or "") % {"default": action.default}
    cells = (f"`{' '.join(filter(None, (named, value)))}`", text)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> int:
    """Write the page, or check it."""
    page = PAGE.read_text("utf-8")
    head, _, _ = page.partition(BEGIN)
    wanted = head + BEGIN + "\n" + reference()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(wanted, "utf-8")
    elif page != wanted:
        sys.stderr.write(
            "docs/cli.md is not what the parser says: run python docs/commands.py\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
