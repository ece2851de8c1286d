"""The programs that were tried with ChatSvc, and what each needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Program:
    """A script that uses one program with ChatSvc."""

    name: str
    of: str
    """The distribution whose version the table names."""
    needs: tuple[str, ...]
    """What to install beyond the extra `dropin`; such a program gets an environment of its own."""
    check: Callable[[], None]

    @property
    def note(self) -> str:
        """What somebody else would have to change, by the script's docstring; "" where all works."""
        docstring = " ".join((inspect.getdoc(self.check) or "").split())
        _, mark, reason = docstring.partition("*Third party*")
        return mark + reason


PROGRAMS: dict[str, Program] = {}


def program(name: str, of: str, *needs: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enter a script, which raises where something is not as it should be.

    Its docstring is its row in docs/dropin.md. What fails by the program's own doing stands there
    after *Third party*, and the script checks that it is still so.
    """

    def enter(check: Callable[[], None]) -> Callable[[], None]:
        if name in PROGRAMS:
            raise ValueError(f"two programs are named {name}")
        PROGRAMS[name] = Program(name, of, needs, check)
        return check

    return enter


def programs() -> dict[str, Program]:
    """All programs. What they need is imported when they run."""
    for path in sorted((HERE / "programs").glob("*.py")):
        import_module(f"programs.{path.stem}")
    return PROGRAMS
