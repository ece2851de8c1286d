"""Gemma's and FunctionGemma's own syntax of calls."""

from __future__ import annotations

import re
from json import dumps

from ..._json import read_json
from ..calls import CUT_OFF, Raw
from ..cursor import Cursor
from ..tokens import STRAY_TEXT, accounts_for

_GEMMA_HEAD = re.compile(r"\s*call:\s*(?P<name>[\w.:/-]+)\s*(?=\{)")
_GEMMA_QUOTE = re.compile(r"<\|\"\|>|<escape>")
_GEMMA_END = re.compile(
    r"<tool_call\|>|<end_function_call>|<turn\|>|(?=<\|tool_call>|<start_function_call>)"
)


def gemma(cursor: Cursor) -> list[Raw] | None:
    """`<|tool_call>call:name{…}<tool_call|>`, and FunctionGemma's `<start_function_call>`."""
    head = cursor.match(_GEMMA_HEAD)
    if not head:
        return None
    parts = _GEMMA_QUOTE.split(cursor.until(_GEMMA_END)[0])
    # Every second part stood between two marks, so it is a string.
    parts[1::2] = map(dumps, parts[1::2])
    text = "".join(parts)
    parsed = read_json(text)
    if parsed is None:
        return [Raw(head["name"], fault="unreadable arguments")]
    is_open = len(parts) % 2 == 0
    fault = CUT_OFF if is_open or parsed.cut_in_value else parsed.spare
    is_all = accounts_for(text, parsed.value)
    return [
        Raw(
            head["name"],
            parsed.value,
            fault,
            whole=parsed.complete,
            leftover="" if is_all else STRAY_TEXT,
        )
    ]
