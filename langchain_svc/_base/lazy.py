"""Names of a package that are imported when they are first asked for."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

# Held while a module is imported late: a fork waits, since no thread of its child would end that.
_IMPORTING = threading.RLock()
_PATIENCE = 10.0  # seconds, in case that what is imported waits for who forks


def lazy(
    package: str,
    homes: Mapping[str, str],
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[str], Any]:
    """The `__getattr__` of a package: each module, with the names that come from it.

    `elsewhere` has names that users of other packages expect, and what to say of each.
    """
    modules = {
        name: module for module, names in homes.items() for name in names.split()
    }

    def find(name: str) -> Any:
        if name not in modules:
            if near := elsewhere.get(name) or _near(name, modules):
                # Not an AttributeError: `from package import name` would hide its text.
                raise ImportError(f"{package} has no {name!r}: {near}", name=package)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(_imported(f".{modules[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


def _imported(name: str, package: str | None = None) -> Any:
    with _IMPORTING:
        return import_module(name, package)


def forks_wait_for_imports() -> None:
    """Called once `logging` is there: the hook of a lock that imports need must run after ours."""
    held: list[bool] = []

    def go_on() -> None:
        if held.pop():
            _IMPORTING.release()

    if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
        os.register_at_fork(
            before=lambda: held.append(_IMPORTING.acquire(timeout=_PATIENCE)),
            after_in_parent=go_on,
            after_in_child=go_on,
        )


def _near(name: str, known: Mapping[str, str]) -> str:
    import difflib  # noqa: PLC0415  # 13 ms, which only a misspelt name costs

    near = difflib.get_close_matches(name, known, 1, 0.85) if name[:1].isupper() else []
    return f"did you mean {near[0]!r}?" if near else ""


_WINGS: dict[str, str] = {}


def name_wings(**homes: str) -> None:
    """Says where the wings are that the core asks by a protocol, and that it does not import."""
    _WINGS.update(homes)


def wing(name: str) -> Any:
    """A wing, imported when it is first asked for."""
    return _imported(_WINGS[name])
