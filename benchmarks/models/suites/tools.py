"""Tool calls, and what comes after their results: one answer of a conversation with tools.

A file in `cases/tools` or `cases/results` is a toolbox. Its first line is its tools, each other
line a case. `accepted` lists the calls that are right, each with the values that its arguments may
have ("" among them: it may be absent); `says` lists the words that an answer without a call must
have. `before` are finished turns, `rounds` the calls and results of the last one.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ...tool_calling import right
from ..cases import FOLDER, Case, Outcome, Suite, says
from ..ways import WAYS, Way

_ROOM, _ROOM_A_CALL = 64, 48  # tokens of an answer
MARKS = re.compile(
    r"tool_call|tool_response|</?(?:tools|system_message|turn)\b|<\||"
    r'"(?:name|arguments|parameters)" *:'
)
"""What stands in no answer that a user is to read: a call as text, or tags of a prompt."""
_SHORT_TOOLS, _SHORT_QUESTION = 750, 300  # characters


def boxes(suite: str) -> Iterator[Case]:
    """The cases of all toolboxes of a suite; those that were seen come last."""
    files = (FOLDER / suite).glob("*.jsonl")
    for file in sorted(files, key=lambda file: (file.stem == "seen", file.stem)):
        head, *lines = file.read_text("utf-8").splitlines()
        for line in lines:
            data = json.loads(line)
            name, category = data.pop("id"), data.pop("category")
            yield Case(suite, file.stem, name, category, {**json.loads(head), **data})


def bfcl(path: Path) -> Suite:
    """Cases of others, in the form that `benchmarks/tool_calling.py` reads: the short ones."""
    return TOOLS._replace(name="bfcl", cases=lambda: _bfcl_cases(path))


def _bfcl_cases(path: Path) -> Iterator[Case]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    short = list(filter(_is_short, rows))
    # In no order that a list of theirs may have.
    short.sort(key=lambda row: hashlib.sha256(row["id"].encode()).hexdigest())
    for row in short:
        accepted = [
            [call["name"], values]
            for call, values in zip(
                row["calls"], row.get("accepted") or [], strict=False
            )
        ]
        data = {"tools": row["tools"], "question": row["question"]}
        data |= {"accepted": accepted} if row["calls"] else {"says": []}
        yield Case("bfcl", row["category"], row["id"], row["category"], data)


def _is_short(row: Mapping[str, Any]) -> bool:
    most = _SHORT_TOOLS * (2 if "multiple" in row["category"] else 1)
    is_short = len(json.dumps(row["tools"])) < most
    return is_short and len(row["question"]) < _SHORT_QUESTION


def ask(way: Way, case: Case) -> Outcome:
    """Ask for the next message of the case's conversation, and judge it."""
    data = case.data
    tools = [{"type": "function", "function": tool} for tool in data["tools"]]
    room = _ROOM + _ROOM_A_CALL * len(data.get("accepted", ()))
    model = way.chat(max_tokens=room).bind_tools(tools)
    return judge(data, model.invoke(messages_of(data)))


def judge(data: Mapping[str, Any], message: AIMessage) -> Outcome:
    """Whether the message makes the right calls, or says the right words and calls nothing."""
    calls = [
        {key: call[key] for key in ("name", "args")} for call in message.tool_calls
    ]
    text = str(message.text)
    delivered: dict[str, Any] = {"text": text, "calls": calls}
    if message.invalid_tool_calls:
        delivered["invalid"] = [call["args"] for call in message.invalid_tool_calls]
    if "accepted" in data:
        why = _not_calls(data["accepted"], calls)
    else:
        why = _not_words(data, text, called=bool(calls or message.invalid_tool_calls))
    empty = not (text.strip() or calls or message.invalid_tool_calls)
    return Outcome(not why, why, delivered, empty=empty)


def _not_calls(accepted: Sequence[Any], calls: list[dict[str, Any]]) -> str:
    """Why these are not the calls."""
    case = {
        "calls": [{"name": name} for name, _ in accepted],
        "accepted": [values for _, values in accepted],
    }
    if right(case, calls):
        return ""
    return "other calls" if calls else "no call"


def _not_words(data: Mapping[str, Any], text: str, *, called: bool) -> str:
    """Why this is no answer in words."""
    if called:
        return "a call that nobody needs"
    if not any(map(str.isalnum, text)):
        return "nothing"
    if MARKS.search(text):
        return "markup"
    names = [tool["name"] for tool in data["tools"]]
    if "rounds" not in data and says(text, [names]):
        return "speaks of a call"
    return "" if says(text, data["says"]) else "other words"


def messages_of(data: Mapping[str, Any]) -> list[BaseMessage]:
    """The conversation up to the message that is asked for."""
    ids = map("call_{}".format, itertools.count(1))
    messages: list[BaseMessage] = []
    for question, calls, answer in data.get("before", ()):
        messages.append(HumanMessage(question))
        if calls:
            messages += _round(calls, ids)
        messages.append(AIMessage(answer))
    messages.append(HumanMessage(data["question"]))
    for calls in data.get("rounds", ()):
        messages += _round(calls, ids)
    return messages


def _round(calls: Sequence[Any], ids: Iterator[str]) -> Iterator[BaseMessage]:
    """A message with calls, and their results."""
    made = [
        {"name": name, "args": args, "id": next(ids), "type": "tool_call"}
        for name, args, _ in calls
    ]
    yield AIMessage("", tool_calls=made)
    for call, (name, _, result) in zip(made, calls, strict=True):
        yield ToolMessage(result, tool_call_id=call["id"], name=name)


def tools_text(case: Case) -> str:
    """The tools of a case alone, one a line."""
    return "\n".join(map(json.dumps, case.data["tools"]))


TOOLS = Suite("tools", WAYS, partial(boxes, "tools"), ask, tools_text)
RESULTS = Suite("results", WAYS, partial(boxes, "results"), ask, tools_text)
