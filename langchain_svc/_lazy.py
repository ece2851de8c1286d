"""Names of a package that are imported when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: each module, with the names that come from it."""
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{modules[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


_WINGS: dict[str, str] = {}


def name_wings(**homes: str) -> None:
    """Says where the wings are that the core asks by a protocol, and that it does not import."""
    _WINGS.update(homes)


def wing(name: str) -> Any:
    """A wing, imported when it is first asked for."""
    return import_module(_WINGS[name])
