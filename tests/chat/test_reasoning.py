"""What a model thinks aloud is split from what it says, with tools and without, streamed or not."""

from __future__ import annotations

import pytest
from langchain_core.tools import tool
from peers import Scripted, summed


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def ask(text, way, tools=(), **settings):
    model = Scripted(text, step=settings.pop("step", 3)).model(**settings)
    bound = model.bind_tools(list(tools)) if tools else model
    if way == "invoke":
        return bound.invoke("?")
    return summed(bound.stream("?"))


WAYS = pytest.mark.parametrize("way", ["invoke", "stream"])
TOOLS = pytest.mark.parametrize("tools", [(), (add,)], ids=["plain", "tools"])


NATIVE = {
    "<think>": "</think>",
    "<Thinking>": "</Thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "<think:opensource>": "</think:opensource>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|reasoning|>": "<|/reasoning|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel|>analysis<|message|>": "<|end|>",
    "<|channel>thought": "<channel|>",
}
SPOKEN = ["analysis", "ANALYSIS", "reason", "reasoning", "reflection", "scratchpad", "thoughts"]


@WAYS
@pytest.mark.parametrize("mark", [*NATIVE, *(f"<{name}>" for name in SPOKEN)])
def test_a_call_that_is_only_thought_of_does_not_run(way, mark):
    closer = NATIVE.get(mark, "</" + mark[1:])
    written = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
    message = ask(f"{mark}\nI could {written} but no.\n{closer}\nThree?", way, (add,))
    assert message.tool_calls == []
    assert message.content.endswith("Three?")
    assert ("add" in message.content) == (mark not in NATIVE)


@WAYS
@TOOLS
@pytest.mark.parametrize("opener", NATIVE)
def test_reasoning_is_split_from_the_content(way, tools, opener):
    message = ask(f"{opener}I ponder.{NATIVE[opener]}\n\nHello.", way, tools)
    assert message.content == "Hello."
    assert message.additional_kwargs["reasoning_content"] == "I ponder."
    assert [block["type"] for block in message.content_blocks] == ["reasoning", "text"]


@WAYS
@TOOLS
def test_reasoning_is_kept_on_request(way, tools):
    message = ask("<think>I ponder.</think>\nHello.", way, tools, reasoning="keep")
    assert message.content == "<think>I ponder.</think>\nHello."
    assert "reasoning_content" not in message.additional_kwargs


@TOOLS
def test_reasoning_whose_beginning_stands_in_the_prompt(tools):
    """A stream has shown it by then; a whole answer has not."""
    text = "I ponder.\n</think>\n\nHello."
    whole = ask(text, "invoke", tools)
    assert (whole.content, whole.additional_kwargs["reasoning_content"].strip()) == (
        "Hello.",
        "I ponder.",
    )
    streamed = ask(text, "stream", tools)
    assert "</think>" not in streamed.content
    assert streamed.additional_kwargs["svc_thinks_ahead"] is True


@pytest.mark.parametrize(
    "text",
    [
        "The tag <think> is Qwen's.",
        "Use `</think>` here.",
        "a < b",
        "[THIN",
        "Write:\n  <thinker>",
        "<analysis>\nas asked\n</analysis>\nSo.",
        "  leading space",
    ],
)
@pytest.mark.parametrize("step", [1, 3, 100])
def test_what_is_only_spoken_of_stays(text, step):
    assert ask(text, "stream", step=step).content == text
    assert ask(text, "invoke").content == text


@pytest.mark.parametrize(
    ("text", "content", "thought"),
    [
        ("x\n<think>a</think>\n\ny", "x\ny", "a"),
        ("<think>a</think><think>b</think> c", "c", "ab"),
        ("<thi", "<thi", None),
    ],
)
def test_any_cut_splits_the_same(text, content, thought):
    for step in range(1, len(text) + 1):
        message = ask(text, "stream", step=step)
        assert message.content == content
        assert message.additional_kwargs.get("reasoning_content") == thought
