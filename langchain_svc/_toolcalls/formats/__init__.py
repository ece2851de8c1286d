"""How calls are written, by the text that they begin with, and the search for all of it.

A reader stands right after that text and returns the calls it reads; an empty list if the text is
only noise around calls, and None if it is no markup at all here. Most families are read by what
their marks have in common (`marks`, `tags.marked`); the rows below are for those that differ.
"""

from __future__ import annotations

from functools import lru_cache

from ..._json import NATIVE, NATIVE_ENDS, SPOKEN, Markers
from . import named, tags
from .marks import CALL_MARK, HALF_MARK, HALF_NAMED, NAMED, PREFIX
from .tags import Reader

READERS: dict[str, Reader] = {
    "<tool_call>": tags.own,
    "<|tool_call>": named.gemma,
    "<start_function_call>": named.gemma,
    "functools[": tags.functools,
    ">>>": named.arrows,
    "Action:": named.react,
    "<|channel|>commentary ": named.after_mark,
    "<|start|>assistant": named.after_mark,
    "<xml>": tags.in_xml,
}

# This word only if a call came before: other texts have observations, too.
OBSERVATION = "Observation:"

# These words are markup at the beginning of a line only.
LINE_STARTS = frozenset({"Action:", "functools[", OBSERVATION})

# fmt: off
# Ends of turns and the like, which say nothing.
NOISE = frozenset({
    "</tool_call>", "</parameter>", "<|channel|>final<|message|>",
    "<|channel|>commentary<|message|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|im_end|>",
    "<|eot_id|>", "<|eom_id|>", "<|end|>", "[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]",
})

# A result that the model made up, or another's turn that it began: nothing after it counts.
ENDINGS = frozenset({"<tool_response", "<tool_result", "<|im_start|>", "<|start_header_id|>"})
# fmt: on

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
