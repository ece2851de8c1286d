"""Names of settings that are not ours: aliases, suggestions and what is passed over."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from .hints import ALIASES, HINTS, NEUTRAL_VALUES


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
