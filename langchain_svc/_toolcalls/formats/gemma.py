"""Gemma's calls: `call:name{key:<|"|>text<|"|>}`, an object with marks instead of quotes."""

from __future__ import annotations

import json
import re

from ..._json.lenient import read
from ..cursor import Cursor
from ..offer import CUT_OFF, Raw

_HEAD = re.compile(r"\s*call:\s*(?P<name>[\w.:/-]+)\s*(?=\{)")
_QUOTE = re.compile(r"<\|\"\|>|<escape>")
_END = re.compile(r"<tool_call\|>|<end_function_call>|(?=<\|tool_call>|<start_function_call>)")


def gemma(c: Cursor) -> list[Raw] | None:
    """`<|tool_call>call:name{…}<tool_call|>`, and FunctionGemma's `<start_function_call>`."""
    head = c.match(_HEAD)
    if not head:
        return None
    text, end = c.until(_END)
    parts = _QUOTE.split(text)
    # Every second part stood between two marks.
    quoted = [json.dumps(part) if at % 2 else part for at, part in enumerate(parts)]
    found = read("".join(quoted))
    if found is None:
        return [Raw(head["name"], fault="unreadable arguments")]
    cut = len(parts) % 2 == 0 or (found.cut_in_value and not found.complete)
    whole = found.complete or end is not None
    return [Raw(head["name"], found.value, CUT_OFF if cut else "", whole=whole)]
