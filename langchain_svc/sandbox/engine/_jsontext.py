"""JSON inside prose: every object and array that a text holds, in one pass.

The text is a stranger's, so the work is bounded: a failed start is paid for out of a budget, and
when that is spent the search goes on behind the failure instead of one character further.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

# What may follow the bracket, so that `{name}` in a template costs nothing.
_OPENING = re.compile(r"\{(?=\s{0,20}[\"}])|\[(?=\s{0,20}[\[{\"\]\dtfn-])")
_MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}"]', re.DOTALL)
_DEEPEST = 64


@dataclass(frozen=True)
class Found:
    """One JSON value and where it stands."""

    value: Json
    start: int
    end: int


def _closing(text: str, start: int) -> tuple[int, bool]:
    """Return where the bracket at `start` closes, or where the search failed, and which."""
    depth = 0
    for mark in _MARK.finditer(text, start):
        sign = mark[0]
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        if depth == 0:
            return mark.end(), True
        if sign == '"' or depth > _DEEPEST:
            return mark.end(), False
    return len(text), False


def _decode(text: str) -> Json:
    """Decode one slice; `None`, which no bracket can mean, stands for a failure."""
    try:
        value: Json = json.loads(text)
    except ValueError:
        return None
    return value


def json_values(text: str) -> Iterator[Found]:
    """Yield the outermost objects and arrays of `text` in order."""
    at, budget = 0, 4 * len(text) + 10_000
    while opening := _OPENING.search(text, at):
        start = opening.start()
        end, closed = _closing(text, start)
        value = _decode(text[start:end]) if closed else None
        if value is not None:
            yield Found(value, start, end)
            at = end
        else:
            budget -= end - start
            at = start + 1 if budget > 0 else end


def without(text: str, spans: list[tuple[int, int]], filler: str = "") -> str:
    """Return `text` with the given spans, which are in order, replaced by `filler`."""
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        pieces += (text[done:start], filler)
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def dump(value: object) -> str:
    """Write `value` as JSON with every character as itself."""
    return json.dumps(value, ensure_ascii=False)
