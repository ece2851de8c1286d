"""What a model reads: the form to write stands last, and each request goes on where the last ended."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from chat.test_turns import HOSTILE
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from share import fewer

import langchain_svc as svc
from langchain_svc.sandbox import Sandbox

QUESTION = "What is it, then?"
TAG = re.compile(r"</?[a-z_]+\b[^<>\n]*>")  # as the model would have to close or copy it
HALF_TAG = re.compile(r"</?[a-z_]+\b[^<>\n]*(?=[\n<]|$)")
NAMES = st.from_regex(r"[a-z][a-z_]{0,12}", fullmatch=True)
WORDS = st.one_of(st.sampled_from(HOSTILE), st.text("ab c.é", min_size=1, max_size=12))
KINDS = [{"type": "string"}, {"type": "integer"}, {"type": "array", "items": {"type": "string"}}]


@st.composite
def functions(draw):
    fields = draw(st.dictionaries(NAMES, st.sampled_from(KINDS), max_size=3))
    required = draw(st.lists(st.sampled_from(sorted(fields)), unique=True)) if fields else []
    schema = {"type": "object", "properties": fields, "required": required}
    function = {"name": draw(NAMES), "description": draw(WORDS), "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = st.lists(
    functions(), min_size=1, max_size=3, unique_by=lambda tool: tool["function"]["name"]
)
SETTINGS = st.fixed_dictionaries(
    {
        "tool_format": st.sampled_from(["tags", "fenced"]),
        "system_role": st.sampled_from(["user", "system"]),
    }
)


@pytest.fixture(scope="module")
def listener():
    with Sandbox(answers=lambda _: "Well.") as sandbox:
        yield sandbox


def asked(listener, interface, messages, tools, choice=None, **words):
    """The whole text that a model reads of one request."""
    where = listener.v1 if interface == "v1" else listener.general
    with svc.ChatSvc(interface=interface, max_repairs=0, **where, **words) as model:
        bound = model.bind_tools(tools, tool_choice=choice) if tools else model
        try:
            bound.invoke(messages)
        except svc.SvcOutputError:
            assert choice  # it must call, and this service never does
    body = json.loads(listener.requests[-1].body)
    if interface == "general":
        return body["message"]
    return "".join(f"\n[{turn['role']}]\n{turn['content']}" for turn in body["messages"])


@settings(max_examples=fewer(150))
@given(tools=TOOLS, words=SETTINGS, system=st.none() | WORDS, choice=st.sampled_from([None, "any"]))
def test_the_last_tag_before_the_question_is_the_one_to_write(
    listener, tools, words, system, choice
):
    messages = [*([SystemMessage(system)] if system else []), HumanMessage(QUESTION)]
    # A role of the system makes one text a conversation, each turn in an element.
    interfaces = ["v1", "general"] if words["system_role"] == "user" else ["v1"]
    for interface in interfaces:
        text = asked(listener, interface, messages, tools, choice, **words)
        ours, _, behind = text.rpartition(QUESTION)
        assert behind == ""
        *_, last = re.findall(r"</tool_call>|```(?=\n)", ours)
        form = ours[: ours.rindex(last)].rpartition("\n" if last == "</tool_call>" else "```json")
        assert TAG.findall(ours[ours.rindex(last) + len(last) :]) == []
        call = json.loads(form[0].rpartition("\n")[2] if last == "</tool_call>" else form[2])
        assert call["name"] in {tool["function"]["name"] for tool in tools}
        own = ours.partition("</tools>")[2]
        assert HALF_TAG.findall(TAG.sub("", own)) == []
        assert "mark" not in own  # nothing has a mark before there are results


ROUNDS = st.lists(st.tuples(WORDS, WORDS, st.booleans()), min_size=1, max_size=4)


@settings(max_examples=fewer(100))
@given(tools=TOOLS, words=SETTINGS, system=st.none() | WORDS, rounds=ROUNDS)
def test_each_request_begins_with_the_one_before_it(listener, tools, words, system, rounds):
    name = tools[0]["function"]["name"]
    messages = [*([SystemMessage(system)] if system else []), HumanMessage(QUESTION)]
    threads = [[*messages]]
    for number, (result, text, goes_on) in enumerate(rounds):
        call = {"name": name, "args": {"a": text}, "id": f"c{number}"}
        messages += [
            AIMessage("", tool_calls=[call], id=f"m{number}"),
            ToolMessage(f"It is {result}", tool_call_id=f"c{number}"),
        ]
        threads.append([*messages])
        if goes_on:
            messages += [AIMessage(f"So: {text}", id=f"n{number}"), HumanMessage(f"And {text}")]
            threads.append([*messages])
    for interface in ("v1", "general"):
        texts = [asked(listener, interface, thread, tools, **words) for thread in threads]
        for earlier, later in pairwise(texts):
            assert later.startswith(earlier)
