"""What the readers of tool calls hold to: any cut says the same, and only good calls are calls."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from langchain_svc._calls.families import READERS
from langchain_svc._calls.marks import ENDINGS, NOISE
from langchain_svc._calls.parse import BadCall, Call, Doubt, StreamParser, Tool
from langchain_svc._calls.render import FENCED, TAGS, PastCall, calls_text
from langchain_svc._calls.scanner import Prose, Thought
from langchain_svc._json.fit import problems

from .draw import Draw, cut

_PARAMETERS = {"city": {"type": "string"}, "days": {"type": "integer"}}
_FILE = {"path": {"type": "string"}, "text": {"type": "string"}}
_CODE = {"code": {"type": "string"}}
TOOLS = (
    Tool(
        "weather", {"type": "object", "properties": _PARAMETERS, "required": ["city"]}
    ),
    Tool("now", {"type": "object", "properties": {}}),
    Tool(
        "write_file",
        {"type": "object", "properties": _FILE, "required": ["path", "text"]},
    ),
    Tool("python", {"type": "object", "properties": _CODE, "required": ["code"]}),
)
_BY_NAME = {tool.name: tool for tool in TOOLS}
CALL_PIECES = (
    '{"name": "weather", "arguments": {"city": "Rome"}}', '{"name": "now", "arguments": {}}',
    '{"name": "weather", "arguments": {"city": "Pa',
    '{"name": "weather", "arguments": {', '{"name": "', '"arguments": ', '"city": "Oslo"', "weather", "now",
    "write_file", "(city='Oslo')", "(", ")",
    '[weather(city="Oslo")]', "{", "}", "[", "]", '"', "'", ":", ",", "\n", "\n\n", " ", "\\", "`", "```",
    "```json\n", "```tool_call\n", "```xml\n",
    "\n```\n", "<", ">", "</", "tool_c", "all>", "Hello there. ", "and", "é🇧", "“", "”", "1", "true", "null",
    "<weather>", "<city>", "</city>", "</weather>",
    "<parameter=city>", "<parameter name=\"city\">", "Rome", "Action Input: ", "Observation: x",
    "<arg_key>city</arg_key>", "<arg_value>", "</arg_value>",
    "<tool_name>", "<｜tool▁sep｜>", "[ARGS]", "[CALL_ID]", " to=weather", "<|message|>", "call:weather", '<|"|>',
    "print(", "<b>", "//", "/*", "weather\n{",
    "<function=", "<invoke name=", "<tool_calls>", "[TOOL_CALLS]", "<｜tool▁call▁begin｜>", "<|tool_call_begin|>",
    "<|tool_call|>", "</function>", "</tool_calls>", "]<]mm[>[",
    *sorted({"<tool_call>", "functools[", ">>>", ">>>all\n", *READERS, *NOISE, *ENDINGS}),
    *("<think>", "</think>", "[THINK]", "[/THINK]", "<|channel>thought", "<channel|>", "<analysis>"),
)  # fmt: skip
Answer = tuple[str, str, list[Call | BadCall]]


def whole(text: str) -> Answer:
    """What the parser makes of a whole answer."""
    return streamed([text])


def streamed(parts: Iterable[str]) -> Answer:
    """What the parser makes of an answer in pieces."""
    parser = StreamParser(TOOLS)
    pieces = [piece for part in parts for piece in parser.parse_chunk(part)] + [
        *parser.close()
    ]
    content = "".join(
        piece.text for piece in pieces if isinstance(piece, (Prose, Doubt))
    )
    thoughts = "".join(piece.text for piece in pieces if isinstance(piece, Thought))
    calls = [piece for piece in pieces if isinstance(piece, (Call, BadCall))]
    return content.strip(), thoughts.strip(), calls


def any_text(data: bytes) -> None:
    """Any answer gives the same for every cut; its calls are JSON objects, and none is cut off."""
    draw = Draw(data)
    how = draw.byte()
    text = draw.text(CALL_PIECES)
    expected = whole(text)
    for call in expected[2]:
        if isinstance(call, Call):
            tool = _BY_NAME.get(call.name)
            wrong = problems(call.arguments, tool.parameters) if tool else []
            assert bool(wrong) == bool(call.problems)
            json.dumps(call.arguments, allow_nan=False)
        else:
            assert call.reason
            assert call.source in text
    assert streamed([text]) == expected
    assert streamed(cut(text, 1)) == expected
    assert streamed(["", *cut(text, how + 2), ""]) == expected


def rendered(data: bytes) -> None:
    """What we write as calls is read as these calls, with no markup left, whatever they hold."""
    draw = Draw(data)
    form, how = draw.one_of((TAGS, FENCED)), draw.byte()
    calls: list[tuple[str, dict[str, Any]]] = []
    for _ in range(1 + draw.below(3)):
        kind = draw.below(3)
        if kind == 0:
            calls.append(
                ("weather", {"city": draw.short(CALL_PIECES), "days": draw.byte() - 50})
            )
        elif kind == 1:
            calls.append(
                ("write_file", {"path": "a", "text": draw.short(CALL_PIECES, 12)})
            )
        else:
            calls.append(("now", {}))
    text = calls_text("Let me do that.", [PastCall(*call) for call in calls], form)
    expected = ("Let me do that.", "", [Call(*call) for call in calls])
    assert whole(text) == expected
    assert streamed(cut(text, 1)) == expected
    assert streamed(cut(text, how + 2)) == expected


_PROSE = (
    "Let me look. ", "I'll check it. ", "3 < 4 > 2; ", "(see 5) ", "It said \"yes\". ", "Zürich, naïve — ok! ",
    "A `weather` tool. ",
    "\n", "\n\n", "- one\n- two\n", "1. ", "**Note** ", "f(x) = y. ", "50% & more. ", "Use a < b. ", "[1] ", "{x} ",
    "a/b ", "",
)  # fmt: skip
_WRAPPERS = (
    ("<tool_call>", "</tool_call>"),
    ("<tool_call>\n", "\n</tool_call>\n"),
    ("<tool_calls>[", "]</tool_calls>"),
    ("<function_call>", "</function_call>"),
    ("[TOOL_CALLS][", "]"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("<|tool_call_start|>", "<|tool_call_end|>"),
)


def planted(data: bytes) -> None:
    """Calls between prose are all read, whatever their arguments hold, and leave no markup."""
    draw = Draw(data)
    how = draw.byte()
    text, calls, prose = "", [], ""
    wrapper = draw.one_of(_WRAPPERS)  # a model keeps to one
    for _ in range(1 + draw.below(3)):
        words = draw.one_of(_PROSE)
        arguments = {"path": f"p{len(calls)}", "text": draw.short(CALL_PIECES, 5)}
        call = json.dumps(
            {"name": "write_file", "arguments": arguments}, ensure_ascii=False
        )
        text += words + wrapper[0] + call + wrapper[1]
        prose += words
        calls.append(Call("write_file", arguments))
    content, thoughts, read_calls = whole(text)
    assert (thoughts, read_calls) == ("", calls)
    assert content.split() == prose.split()
    assert streamed(cut(text, how + 2)) == (content, thoughts, read_calls)
