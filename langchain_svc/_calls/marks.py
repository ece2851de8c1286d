"""The marks that families put around calls, and the one grammar of an element that calls.

A mark is `<|...|>`, `<｜...｜>`, `<seed:tool_call>`, `[TOOL_REQUEST]` or `✿ARGS✿` whose name has a
word of calls in it; its name also shows whether it opens, closes or begins a result.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .._text import HALF_MARK, NATIVE, NATIVE_ENDS, SPOKEN, Markers

_N = r"[\w:▁.-]"
_WORD = r"(?:[Tt]ool|TOOL|[Ff]unc|FUNC|[Cc]all|CALL|[Aa]ction|ACTION|[Pp]lugin|[Ii]nvoke|recipient|python_(?:tag|start|end))"  # noqa: E501
_NAMED = rf"{_N}{{0,30}}?{_WORD}{_N}{{0,30}}"
# What DeepSeek writes into each tag, and MiniMax before it; it means nothing.
_DSML = r"[|｜]{1,3} ?DSML ?[|｜]{1,3} ?"
BEFORE = r"\]<\][\w-]{1,20}\[>\[(?=<)"
# Each begins with a character of its own, so that the search for all of them stays fast.
CALL_MARK = re.compile(
    rf"<(?:/?{_DSML}|[|｜]?/?[|｜]?){_NAMED}[|｜]?(?:>|(?=\n[ \t]{{0,20}}<))"
    r"|\[/?[A-Z_]{0,20}(?:TOOL|CALL|FUNCTION|ACTION)[A-Z_]{0,20}\]|\[/?(?:tool|function)_calls?\]"
    r"|✿[A-Z]{2,12}✿"
)
# The one grammar of an element that calls: a prefix, a word, a suffix, and the name by `=` or an
# attribute.
PREFIX = rf"(?:[a-z]{{1,20}}:|{_DSML})?"
SUFFIX = r"(?::[\w-]{1,40})?"
_NOUN = r"(?:[_-]?(?:call|use|request|record|invocation))?"
CALL = rf"(?:(?:tool|function|action|call|invoke){_NOUN}{SUFFIX})"
PARAM = rf"(?:(?:param|parameter|arg|argument){SUFFIX})"
_ELEMENT = rf"<{PREFIX}{CALL}"
# An element up to the name of the tool that it calls.
NAMED_ELEMENT = re.compile(
    rf"{_ELEMENT}(?:=|\s{{1,20}}(?:name|tool|function)\s{{0,20}}=\s{{0,20}})"
)
# What may still become a mark, at the end of a text that goes on.
HALF_CALL_MARK = re.compile(
    r"<[|｜]{0,3}/?[|｜]{0,3}[\w:▁.|｜-]{0,60}(?:\n[ \t]{0,20})?\Z"
    r"|</?[|｜]{1,3} ?(?:D?S?M?|DSML ?[|｜]{0,3} ?[\w:-]{0,40})\Z"
    rf"|{_ELEMENT}\s{{1,20}}\w{{0,8}}\s{{0,20}}\Z|\[/?(?:[A-Z_]{{0,40}}|[a-z_]{{0,14}})\Z"
    r"|✿[A-Z]{0,12}\Z|~{1,2}\Z|\]<?\]?[\w-]{0,20}\[?>?\[?<?\Z"
)
# Any special token, between a name and its arguments.
ANY_MARK = r"<[|｜][^<>{}\s\"'=]{1,60}>|\[[A-Z_]{2,30}\]|✿[A-Z]{2,12}✿"
CLOSING = re.compile(
    r"/|<\|call\|>|(?:\b|[_▁|｜])(?:end|END|suffix|stop)(?:\b|[_▁|｜])"
)
# A result that the model made up, or another's turn that it began: nothing after it counts.
RESULT = re.compile(
    r"(?i)response|result|output|observation|<\|(?:im_start|start_header)"
)
LT = rf"(?:{BEFORE})?<"
MARK_FOLLOWS = re.compile(f"{CALL_MARK.pattern}|{NAMED_ELEMENT.pattern}")

# -- the search for all of it ---------------------------------------------------------------------

# Only if a call came before: other texts have observations, too.
OBSERVATION = "Observation:"
_LINE_STARTS = {"Action:", OBSERVATION}  # markup at the beginning of a line only
# fmt: off
# Ends of turns and the like, which say nothing.
NOISE = frozenset({
    "</tool_call>", "</parameter>", "<|start|>assistant", "<|channel|>final<|message|>",
    "<|channel|>commentary<|message|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|im_end|>",
    "<|eot_id|>", "<|eom_id|>", "<|eom|>", "<|from|>assistant", "<|from|> assistant", "<|content|>",
    "<|recipient|>all", "<|recipient|> all", "<|end|>", "[BEGIN FINAL RESPONSE]",
    "[END FINAL RESPONSE]",
})
ENDINGS = frozenset({"<tool_response", "<tool_result", "<|im_start|>", "<|start_header_id|>"})
# fmt: on

_HALF_OPENER = re.compile(rf"{HALF_CALL_MARK.pattern}|{HALF_MARK.pattern}")
# An object whose first key may follow, or whose brace is doubled.
_OBJECT = r"\{(?=\s*(?:\{\s*)?(?:[\"'“”‘’`/#\w]|\Z))"
_OTHERS = (
    rf"(?P<before>{BEFORE})"
    rf"|(?P<thinks>{NATIVE})|(?P<thought>{NATIVE_ENDS})|(?P<spoken>{SPOKEN})"
    rf"|(?P<mark>{CALL_MARK.pattern})"
    r"|(?P<ticks>`+|~{3,})"
    rf"|(?P<json>{_OBJECT}|\[(?=\s*(?:{_OBJECT}|[/#A-Za-z_]|\Z)))"
    rf"|(?P<named>{NAMED_ELEMENT.pattern})"
    rf"|<(?P<prefix>{PREFIX})(?P<element>[A-Za-z_][\w.-]*)>"
)


@lru_cache(maxsize=4)
def openers(opening_marks: frozenset[str]) -> Markers:
    """What may concern the parser in prose; a match has one of the groups of `_OTHERS`."""
    markers = {*opening_marks, *NOISE, *ENDINGS}
    plain = sorted(markers - _LINE_STARTS, reverse=True)  # the longer one of two first
    return Markers(plain, _LINE_STARTS, _OTHERS, _HALF_OPENER)


@lru_cache(maxsize=32)
def ends(closer: str) -> Markers:
    """What ends a thought; or, with "", a fence of code, which a thought may leave open."""
    if closer:
        return Markers([closer])
    return Markers(others=rf"(?P<ticks>`+|~{{3,}})|{NATIVE_ENDS}", half=HALF_MARK)
