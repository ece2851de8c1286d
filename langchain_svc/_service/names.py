"""Names of settings that are not ours: aliases, suggestions and what is passed over."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar

from .hints import ALIASES, HINTS, NEUTRAL_VALUES

T = TypeVar("T")


def did_you_mean(name: str, valid_names: Iterable[str]) -> str:
    """A sentence's end that suggests the nearest known name, or lists them all."""
    candidates = sorted(valid_names)
    # Other packages write "request_timeout" for "timeout"; a slip rarely is in the first letter.
    near = [candidate for candidate in candidates if candidate.startswith(name)]
    inside = [candidate for candidate in candidates if candidate in name]
    near += sorted(inside, key=len)[-1:]
    same_letter = [candidate for candidate in candidates if candidate[:1] == name[:1]]
    near += difflib.get_close_matches(name, same_letter, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known are: " + ", ".join(candidates)


def suggest_name(name: str, valid_names: Iterable[str]) -> str:
    """What to write instead of a name that is not known."""
    return HINTS.get(name) or did_you_mean(name, valid_names)


def suggests_fields(kind: type[T]) -> type[T]:
    """A dataclass that suggests the nearest field where a call names none of them.

    Raises:
        TypeError: From such a call, and from one without a field that is required.
    """
    make: Callable[..., None] = kind.__init__
    known = fields(kind)  # type: ignore[arg-type]  # a dataclass
    names = [field.name for field in known]
    required = [field.name for field in known if field.default is MISSING]

    @wraps(make)
    def checked(self: T, *args: Any, **words: Any) -> None:
        for word in words:
            if word not in names:
                raise TypeError(
                    f"there is no {word}= here; {did_you_mean(word, names)}"
                )
        for name in required[len(args) :]:
            if name not in words:
                raise TypeError(f"{name}= is missing")
        make(self, *args, **words)

    kind.__init__ = checked  # type: ignore[assignment]  # with the same signature
    return kind


def resolve_aliases(
    settings: Mapping[str, Any], valid_names: Collection[str], owner: str
) -> dict[str, Any]:
    """The settings by our names, without unknown ones that ask for nothing.

    Raises:
        ValueError: A setting stands there by both of its names.
    """
    resolved = {
        name: value
        for name, value in settings.items()
        if name in valid_names or not _asks_for_nothing(name, value)
    }
    for alias, name in ALIASES.items():
        if alias in settings and alias not in valid_names and name in valid_names:
            if name in resolved:
                raise ValueError(
                    f"{owner} takes {alias!r} or {name!r}, which mean the same"
                )
            resolved[name] = resolved.pop(alias)
    return resolved


def _asks_for_nothing(name: str, value: object) -> bool:
    if name not in HINTS:
        return False
    if value is None or value is False:
        return True
    if isinstance(value, (dict, list)) and not value:
        return True
    return value in NEUTRAL_VALUES.get(name, ())
