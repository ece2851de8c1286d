"""One JSON value out of a text, read leniently: syntax is repaired, values are never invented."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import NoReturn

from .frames import twice
from .parser import GOES_ON, MAX_DEPTH, Attempt, JsonValue, LenientParser
from .scalars import fraction
from .signs import (
    SPACE,
    goes_on,
    lone_backslash,
    peek,
    skip,
    whole_characters,
)


def read_json(text: str, start: int = 0) -> JsonValue | None:
    """The JSON value that begins at text[start], after white space; None where none begins.

    Deeper than 200 containers is not read. NaN and the infinities are read as None, "no value".
    """
    return attempt_json(text, start).value


def attempt_json(text: str, start: int = 0) -> Attempt:
    """Like `read_json`, for those who look in many places and must not look too often."""
    strict = _read_strict(text, start)
    if strict:
        return _and_behind(text, Attempt(strict, strict.end - start))
    at = skip(text, start)
    if text[at : at + 1] in ("", "("):
        return Attempt(None, 0)
    repairs = 0
    if text[start:at].strip():  # a comment before it
        repairs = 1
    return _and_behind(text, LenientParser(text, at, repairs).parse())


def _and_behind(text: str, attempt: Attempt) -> Attempt:
    """The same, having looked behind the value: the brackets that end it may be the wrong ones."""
    value = attempt.value
    if value is None or not value.complete or not isinstance(value.value, (dict, list)):
        return attempt
    at = peek(text, value.end)
    balanced = value.balanced and text[at : at + 1] not in ("}", "]")
    at = peek(text, _CLOSERS.match(text, at).end())  # type: ignore[union-attr]
    has_no_end = goes_on(text, at) or _GLUED.match(text, value.end) is not None
    if text.startswith(("{", "["), at):  # []{"a": 1}], and [1, ][2]]
        has_no_end = _ENDS_EARLY.search(text, value.end - 40, value.end) is not None
    if balanced == value.balanced and not has_no_end:
        return attempt
    spare = GOES_ON if has_no_end else value.spare
    return replace(attempt, value=replace(value, balanced=balanced, spare=spare))


_GLUED = re.compile(r"[A-Za-z0-9]")  # what no prose has right behind a bracket
_ENDS_EARLY = re.compile(r"[,:\[]\s*[}\])]\Z")
_CLOSERS = re.compile(r"[\s}\])]*")


def refuse_constant(name: str) -> NoReturn:
    """Python's parser reads NaN and the infinities, which are not JSON."""
    raise ValueError(name)


def _finite(digits: str) -> float:
    value = fraction(digits)
    if not math.isfinite(value):  # 1e999 is not a number either
        refuse_constant(digits)
    return value


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of these fields, for a decoder; ValueError where a key has two values."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        for key, value in pairs:
            if fields[key] != value:
                raise ValueError(twice(key))
    return fields


_DECODER = json.JSONDecoder(
    parse_constant=refuse_constant, parse_float=_finite, object_pairs_hook=once
)


def _read_strict(text: str, start: int) -> JsonValue | None:
    """What the standard library reads: fast, and most answers need no more."""
    at = SPACE.match(text, start).end()  # type: ignore[union-attr]
    if text[at : at + 1] not in ("{", "[", '"'):
        return None
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    if lone_backslash(text, at, end):
        return None
    brackets = text.count("[", at, end) + text.count("{", at, end)
    if brackets > MAX_DEPTH and _is_too_deep(value):
        return None
    repairs = 0
    if "\\u" in text[at:end]:
        whole = whole_characters(value)
        repairs = int(whole != value)
        value = whole
    return JsonValue(value, end, complete=True, cut_in_value=False, repairs=repairs)


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        items: list[object] = []
        for container in level:
            if isinstance(container, dict):
                items += container.values()
            elif isinstance(container, list):
                items += container
        level = [item for item in items if isinstance(item, (dict, list))]
    return bool(level)
