"""What may concern the parser in prose, as one search (`_json/markers.py`)."""

from __future__ import annotations

from functools import lru_cache

from .._json.markers import Markers
from .._json.reasoning import NATIVE, NATIVE_ENDS, SPOKEN
from .formats import ENDINGS, LINE_STARTS, NOISE, READERS
from .formats.marks import CALL_MARK, HALF_MARK, HALF_NAMED, NAMED, PREFIX

# An object whose first key may follow, or whose brace is doubled.
_OBJECT = r"\{(?=\s*(?:\{\s*)?(?:[\"'“”‘’`/#\w]|\Z))"
_OTHERS = (
    rf"(?P<mark>{CALL_MARK})"
    r"|(?P<ticks>`+|~{3,})"
    rf"|(?P<json>{_OBJECT}|\[(?=\s*(?:{_OBJECT}|[/#A-Za-z_]|\Z)))"
    rf"|(?P<named>{NAMED})"
    rf"|<(?P<prefix>{PREFIX})(?P<element>[A-Za-z_][\w.-]*)>"
)
_LONGEST_HALF = 80


class Openers(Markers):
    """Markers, with the marks that are known by what they are made of."""

    def beginning(self, text: str, at: int) -> int:
        """Where the text from `at` on ends in the beginning of a marker; its end if it does not."""
        end = super().beginning(text, at)
        at = max(at, len(text) - _LONGEST_HALF)
        half = HALF_MARK.search(text, at) or HALF_NAMED.search(text, at)
        return min(end, half.start()) if half else end


@lru_cache(maxsize=1)
def openers() -> Openers:
    """What may concern the parser in prose.

    A match has one of the groups `marker`; `mark`, of any family; `ticks`, backticks, or the tildes
    of a fence; `json`, a bracket that may begin JSON or a list of calls; `named`, an element up to
    the name of a tool; and `element`, the name of any element without attributes, after its
    `prefix`.
    """
    markers = {*READERS, *NOISE, *NATIVE, *NATIVE_ENDS, *ENDINGS}
    return Openers(markers - LINE_STARTS, {*LINE_STARTS, *SPOKEN}, _OTHERS)


@lru_cache(maxsize=1)
def code_ends() -> Markers:
    """What may end a fence of code; thoughts may leave one open."""
    return Markers(NATIVE_ENDS, others="(?P<ticks>`+|~{3,})")


@lru_cache(maxsize=len(NATIVE) + len(SPOKEN))
def thought_end(closer: str) -> Markers:
    """What ends a thought."""
    return Markers([closer])
