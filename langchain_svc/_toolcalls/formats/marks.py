"""The marks that model families put around calls, by what they are made of and not by family.

A mark is `<|...|>`, `<｜...｜>`, an element such as `<seed:tool_call>`, `[TOOL_REQUEST]` or
`✿ARGS✿`, whose name has one of the words of calls in it. What it does shows in its name, too: it
opens, it closes (a slash, or a word for the end), or it begins a result.
"""

from __future__ import annotations

import re

_N = r"[\w:▁.-]"
_WORD = r"(?:[Tt]ool|TOOL|[Ff]unc|FUNC|[Cc]all|CALL|[Aa]ction|ACTION|[Pp]lugin|[Ii]nvoke|recipient|python_(?:tag|start|end))"  # noqa: E501
_NAMED = rf"{_N}{{0,30}}?{_WORD}{_N}{{0,30}}"
# Each begins with a character of its own, so that the search for all of them stays fast.
CALL_MARK = rf"<[|｜]?/?[|｜]?(?:｜?DSML｜)?{_NAMED}[|｜]?>|\[/?[A-Z_]{{0,20}}(?:TOOL|CALL|FUNCTION|ACTION)[A-Z_]{{0,20}}\]|✿[A-Z]{{2,12}}✿"  # noqa: E501
PREFIX = r"(?:[a-z]{1,20}:|｜DSML｜)?"
_ELEMENT = rf"<{PREFIX}(?:invoke|function|tool_call|tool|call|action)"
# An element up to the name of the tool that it calls.
NAMED = rf"{_ELEMENT}(?:=|\s+name\s*=\s*)"
HALF_NAMED = re.compile(rf"{_ELEMENT}\s+n?a?m?e?\s*\Z")
# What may still become a mark, at the end of a text that goes on.
NAMESPACE = r"\]<\][\w-]{1,20}\[>\["  # which MiniMax writes before each of its tags
HALF_MARK = re.compile(
    rf"(?:{NAMESPACE})?<[|｜]?/?[|｜]?(?:{_N}|｜){{0,60}}\|?\Z"
    r"|\[/?[A-Z_]{0,40}\Z|✿[A-Z]{0,12}\Z|\]<?\]?[\w-]{0,20}\[?>?\[?\Z"
)
# Any special token, between a name and its arguments.
ANY_MARK = r"<[|｜][^<>{}\n]{1,60}>|\[[A-Z_]{2,30}\]|✿[A-Z]{2,12}✿"

_CLOSING = re.compile(r"/|(?:\b|[_▁|｜])(?:end|END|suffix|stop)(?:\b|[_▁|｜])")
_RESULT = re.compile(r"(?i)response|result|output|observation")
_SPEAKS_OF_TOOLS = re.compile(r"</?tools?>")


def closes(mark: str) -> bool:
    """Whether a mark ends a call, or several."""
    return _CLOSING.search(mark) is not None


def begins_result(mark: str) -> bool:
    """Whether what follows a mark is the result of a call."""
    return _RESULT.search(mark) is not None


def holds_calls(mark: str) -> bool:
    """Whether nothing but calls may follow a mark; documents have elements for tools, too."""
    return not _SPEAKS_OF_TOOLS.fullmatch(mark)
