"""One JSON value out of a text, read leniently: syntax is repaired, values are never invented."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from typing import Any

from .endings import Around, Place
from .escapes import whole_characters
from .marks import OPENERS, QUOTED_KEY, SPACE, peek, skip
from .reader import MAX_DEPTH, Reader, TooDeepError
from .strings import begins_string, read_string
from .words import literal

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_WORD = re.compile(r"[-+.\w]+")


@dataclass(frozen=True)
class JsonValue:
    """One value read from a text."""

    value: Any
    end: int  # the index just after it
    complete: bool  # False: the text ended inside it
    cut_in_value: bool  # the text ended inside a string, number or word, which may be wrong
    repairs: int  # how much had to be repaired; 0 is strict JSON
    words: bool = False  # a container held words and no value, which are lost


@dataclass(frozen=True)
class Attempt:
    """What reading at one place came to."""

    value: JsonValue | None
    cost: int  # how many characters were looked at
    too_deep_until: int | None = None  # all that begins before it is nested too deeply


def read_json(text: str, start: int = 0) -> JsonValue | None:
    """The JSON value that begins at text[start], after white space; None where none begins.

    Deeper than 200 containers is not read. NaN and the infinities are read as None, "no value".
    """
    return attempt_json(text, start).value


def attempt_json(text: str, start: int = 0) -> Attempt:
    """Like `read_json`, for those who look in many places and must not look too often."""
    strict = _read_strict(text, start)
    if strict:
        return Attempt(strict, strict.end - start)
    at = skip(text, start)
    if text[at : at + 1] in OPENERS and text[at] != "(":
        found = _read_container(text, at)
    else:
        value = _read_scalar(text, at) if at < len(text) else None
        found = Attempt(value, value.end - at if value else 0)
    if found.value and text[start:at].strip():  # a comment before it
        found = replace(found, value=replace(found.value, repairs=found.value.repairs + 1))
    return found


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits)  # 1e999 is not a number either


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _read_strict(text: str, start: int) -> JsonValue | None:
    """What the standard library reads: fast, and most answers need no more."""
    found = SPACE.match(text, start)
    at = found.end() if found else start
    if text[at : at + 1] not in ("{", "[", '"'):
        return None
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    if _closed_too_early(text, end, value):
        return None
    if text.count("[", at, end) + text.count("{", at, end) > MAX_DEPTH and _is_too_deep(value):
        return None
    repairs = 0
    if _SURROGATE_ESCAPE.search(text, at, end):
        whole = whole_characters(value)
        value, repairs = whole, int(whole != value)
    return JsonValue(value, end, complete=True, cut_in_value=False, repairs=repairs)


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        held = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for items in held for item in items if isinstance(item, (dict, list))]
    return bool(level)


def _closed_too_early(text: str, end: int, value: Any) -> bool:
    """Whether a key follows an object, so that its last brace was one too many."""
    after = peek(text, end)
    return (
        isinstance(value, dict)
        and text[after : after + 1] == ","
        and QUOTED_KEY.match(text, peek(text, after + 1)) is not None
    )


def _read_container(text: str, at: int) -> Attempt:
    reader = Reader(text, at)
    try:
        complete = reader.run()
    except TooDeepError:
        return Attempt(None, reader.at - at, too_deep_until=reader.at)
    cost = reader.at - at + reader.lost_ends * (len(text) - at)
    if reader.prose:
        return Attempt(None, cost)
    value = JsonValue(reader.root, reader.at, complete, reader.cut, reader.repairs, reader.words)
    return Attempt(value, cost)


def _read_scalar(text: str, at: int) -> JsonValue | None:
    if begins_string(text, at):
        string = read_string(text, at, Place.ROOT, Around())
        if string is None:
            return None
        return JsonValue(string.value, string.end, not string.cut, string.cut, string.repairs)
    found = _WORD.match(text, at)
    if found is None:
        return None
    value, repairs = literal(found[0])
    if isinstance(value, str):
        return None
    return JsonValue(value, found.end(), complete=True, cut_in_value=False, repairs=repairs)
