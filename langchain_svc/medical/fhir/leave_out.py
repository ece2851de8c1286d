"""What an application never sends, by its codes or its own function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...errors import SvcRequestError
from .bundle import text

_CONCEPTS = ("code", "category", "medicationCodeableConcept", "component")
Rule = Iterable[str] | Callable[[Mapping[str, Any]], bool]


def leaves_out(rule: Rule) -> Callable[[Mapping[str, Any]], bool]:
    """A function that tells whether a resource is never sent."""
    if callable(rule):
        return lambda raw: _applies(rule, raw)
    if isinstance(rule, str):
        raise SvcRequestError(
            "leave_out must be a list of codes or a function, not one text"
        )
    codes = frozenset(rule)
    return lambda raw: bool(codes) and not codes.isdisjoint(_codes(raw))


def _applies(rule: Callable[[Mapping[str, Any]], bool], raw: Mapping[str, Any]) -> bool:
    try:
        return bool(rule(raw))
    except Exception as error:  # noqa: BLE001  # the application's own, which may hold the resource
        name = type(error).__name__
    raise SvcRequestError(f"leave_out raised {name}; it must return True or False")


def _codes(raw: Mapping[str, Any]) -> Iterator[str]:
    """The codes of a resource, its components and its categories, alone and with their systems."""
    values = [raw[name] for name in _CONCEPTS if name in raw]
    while values:
        value = values.pop()
        if isinstance(value, (list, tuple)):
            values += value
        elif isinstance(value, Mapping):
            values += [value[name] for name in ("coding", "code") if name in value]
            if code := text(value.get("code")):
                yield code
                yield f"{text(value.get('system'))}|{code}"
