"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType

IMPORTING = threading.RLock()
"""Held while a module is imported in the middle of other work.

A fork waits for it: no thread of the child would ever finish an import that a thread of the parent
has begun.
"""
# Seconds that a fork waits, in case the imported module itself waits for the forking thread.
_PATIENCE = 10.0


def lazy(
    package: str,
    homes: Mapping[str, str],
    elsewhere: Mapping[str, str],
) -> Callable[[str], object]:
    """The `__getattr__` of a package: it imports a module when one of its names is first used.

    Args:
        package: The name of the package.
        homes: The names that come from each module, separated by spaces.
        elsewhere: Names that users of other packages expect, with the hint for each.
    """
    modules: dict[str, str] = {}
    for module, names in homes.items():
        modules.update(dict.fromkeys(names.split(), module))

    def look_up(name: str) -> object:
        if name not in modules:
            if hint := elsewhere.get(name) or _spelling_hint(name, modules):
                # Not an AttributeError: `from package import name` would hide its text.
                raise ImportError(f"{package} has no {name!r}: {hint}", name=package)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_late(f".{modules[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return look_up


def import_late(name: str, package: str | None = None) -> ModuleType:
    """Import a module in the middle of other work; a fork waits until it is imported."""
    with IMPORTING:
        return import_module(name, package)


def forks_wait_for_imports() -> None:
    """Make forks wait until no thread imports a module late.

    The caller has imported `logging` before: its hook takes a lock that imports need, and hooks
    that were registered last run first.
    """
    acquired: list[bool] = []

    def release() -> None:
        if acquired.pop():
            IMPORTING.release()

    if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
        os.register_at_fork(
            before=lambda: acquired.append(IMPORTING.acquire(timeout=_PATIENCE)),
            after_in_parent=release,
            after_in_child=release,
        )


def _spelling_hint(name: str, names: Mapping[str, str]) -> str:
    if not name[:1].isupper():
        return ""
    import difflib  # noqa: PLC0415  # 13 ms, which only a misspelt name costs

    matches = difflib.get_close_matches(name, names, 1, 0.85)
    return f"did you mean {matches[0]!r}?" if matches else ""
