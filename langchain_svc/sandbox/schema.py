"""Checks a request body against the documented fields, types, bounds and enumerations.

Complaints name the field and what was expected, never the value: it may be patient data.
Fields that no document lists are collected, and left to the caller to record or to refuse.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from langchain_svc.sandbox.errors import Problem


@dataclass(frozen=True)
class Plain:
    """A single value, described for the complaint by `expected`."""

    expected: str
    accepts: Callable[[object], bool]


@dataclass(frozen=True)
class ListOf:
    """An array; `least` is the smallest accepted length."""

    item: "Plain | Record"
    least: int = 0


@dataclass(frozen=True)
class MapOf:
    """An object with free keys, such as laboratory results."""

    value: Plain


@dataclass(frozen=True)
class Record:
    """An object with documented fields."""

    fields: tuple["Field", ...]


Kind = Plain | ListOf | MapOf | Record


@dataclass(frozen=True)
class Field:
    """One documented field."""

    name: str
    kind: Kind
    required: bool = False


def text(*, least: int = 0, most: int | None = None) -> Plain:
    """Return a string kind, its length bounded in characters."""
    bounds = " that is not empty" if least else ""
    bounds += f" of at most {most} characters" if most is not None else ""

    def accepts(value: object) -> bool:
        return (
            isinstance(value, str) and len(value) >= least and (most is None or len(value) <= most)
        )

    return Plain(f"a string{bounds}", accepts)


def number(low: float | None = None, high: float | None = None) -> Plain:
    """Return a kind for finite numbers; booleans are none."""
    return Plain(f"a number{_range(low, high)}", lambda value: _is_number(value, low, high))


def integer(low: int | None = None, high: int | None = None) -> Plain:
    """Return a kind for integers; booleans are none."""
    return Plain(
        f"an integer{_range(low, high)}",
        lambda value: isinstance(value, int) and _is_number(value, low, high),
    )


def one_of(*options: str) -> Plain:
    """Return a kind for a documented enumeration."""
    return Plain(
        "one of " + ", ".join(options), lambda value: isinstance(value, str) and value in options
    )


BOOLEAN = Plain("true or false", lambda value: isinstance(value, bool))


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return "" if low is None else f" of at least {low}"


def _is_number(value: object, low: float | None, high: float | None) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return (low is None or value >= low) and (high is None or value <= high)


def check(fields: tuple[Field, ...], body: dict[str, object]) -> tuple[str, ...]:
    """Refuse an invalid body with 400; return the paths of fields that no document lists."""
    unknown: list[str] = []
    _check_record(Record(fields), body, "", unknown)
    return tuple(unknown)


def _check(kind: Kind, value: object, path: str, unknown: list[str]) -> None:
    if isinstance(kind, Plain):
        if not kind.accepts(value):
            raise Problem(400, f"{path}: expected {kind.expected}.")
    elif isinstance(kind, ListOf):
        _check_list(kind, value, path, unknown)
    elif isinstance(value, dict):
        if isinstance(kind, Record):
            _check_record(kind, value, f"{path}.", unknown)
        else:
            for name, each in value.items():
                _check(kind.value, each, f"{path}.{name}", unknown)
    else:
        raise Problem(400, f"{path}: expected an object.")


def _check_list(kind: ListOf, value: object, path: str, unknown: list[str]) -> None:
    if not isinstance(value, list):
        raise Problem(400, f"{path}: expected an array.")
    if len(value) < kind.least:
        raise Problem(400, f"{path}: expected an array that is not empty.")
    for index, item in enumerate(value):
        _check(kind.item, item, f"{path}[{index}]", unknown)


def _check_record(kind: Record, value: dict[str, object], prefix: str, unknown: list[str]) -> None:
    known = {field.name for field in kind.fields}
    unknown.extend(f"{prefix}{name}" for name in value if name not in known)
    for field in kind.fields:
        if field.name in value:
            _check(field.kind, value[field.name], f"{prefix}{field.name}", unknown)
        elif field.required:
            raise Problem(400, f"{prefix}{field.name}: required, but missing.")
