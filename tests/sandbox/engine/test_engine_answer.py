"""Properties of every answer: repeatable, in tokens, cut where told, linear in its prompt."""

import json
import time

import pytest
from engine_prompts import ADD, WEATHER, answer, fold, text_of, user
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_svc.sandbox.engine import count_tokens, split_tokens

FRAGMENTS = st.sampled_from(
    [
        "<tool_call>",
        "</tool_call>",
        "\n<tool_response>",
        "</tool_response>",
        "<tools>",
        json.dumps(WEATHER),
        json.dumps([ADD]),
        '{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}',
        '{"properties": {"y": {"enum": []}, "z": {"anyOf": []}, "v": {"type": "x"}}}',
        "JSON schema",
        "Context:",
        "Question: ",
        "\n\n",
        "Human: ",
        "AI: ",
        "You must call a tool.",
        "[1] Source: a.md",
        "translate to French",
        "count from 1 to 9999",
        "list 9999 cats",
        "in one word",
        "9**9**9",
        "what is my name?",
        "get_weather('x', 3)",
        "```json\n{",
        "\ud800",
        "\x00",
        "{",
        "[",
        '"',
        "'",
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=15), max_size=12).map(" ".join)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["system", "user", "assistant", "tool", "other"]),
            "content": TEXTS,
        }
    ),
    max_size=5,
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(MESSAGES, st.none() | st.integers(0, 12))
def test_any_conversation_has_an_answer(messages, limit):
    first = answer(messages, model="m", max_tokens=limit)
    assert first == answer(messages, model="m", max_tokens=limit)
    assert "".join(first.pieces) == first.text
    assert first.completion_tokens == len(first.pieces)
    assert limit is None or first.completion_tokens <= limit
    assert first.finish_reason in {"stop", "length"}
    assert first.prompt_tokens >= 0


def test_a_limit_cuts_and_says_so():
    whole = answer([user("Write a story about a cat.")], model="m")
    cut = answer([user("Write a story about a cat.")], model="m", max_tokens=10)
    assert (whole.finish_reason, cut.finish_reason) == ("stop", "length")
    assert whole.text.startswith(cut.text)
    assert cut.completion_tokens == 10
    same = answer([user("Say hello")], model="m", max_tokens=1)
    assert (same.text, same.finish_reason) == ("hello", "stop")


def test_longer_prompts_count_more_tokens():
    short, long = (answer([user(text)], model="m") for text in ("Hello", "Hello " * 50))
    assert short.prompt_tokens < long.prompt_tokens


@settings(deadline=None)
@given(st.text())
def test_tokens_are_the_text(text):
    assert "".join(split_tokens(text)) == text
    assert count_tokens(text) == len(split_tokens(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("   ", ["   "]),
        ("Hello, world!", ["Hello", ",", " world", "!"]),
        ("international", ["inte", "rnat", "ional"]),
        ("a  b ", ["a", "  b "]),
        ("你好", ["你好"]),
    ],
)
def test_the_rule_of_tokens(text, tokens):
    assert split_tokens(text) == tokens


SIZE = 150_000
HUGE = {
    "spaces": " " * SIZE,
    "one word": "a" * SIZE,
    "digits": "1" * SIZE,
    "brackets": "[" * SIZE,
    "objects": '{"a":' * (SIZE // 5),
    "quotes": '["' * (SIZE // 2),
    "tags": "\n<tool_response>" * (SIZE // 16),
    "calls": '<tool_call>{"name": "get_weather"' * (SIZE // 33),
    "labels": "Human: a\nAI: b\n" * (SIZE // 15),
    "questions": "Question: " * (SIZE // 10),
    "commas": "a, " * (SIZE // 3),
    "paragraphs": "one\n\n" * (SIZE // 5),
    "names": "Abc " * (SIZE // 4),
    "sources": "[1] source: x.md\n" * (SIZE // 17),
}
WRAPPINGS = {
    "plain": lambda text: [user(text)],
    "tools": lambda text: [fold(text, WEATHER, ADD)],
    "schema": lambda text: [user(f'JSON for {{"properties": {{"answer": {{}}}}}}\n\n{text}')],
    "context": lambda text: [user(f"Context:\n{text}\n\nQuestion: what is it?")],
}


@pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=list(WRAPPINGS))
@pytest.mark.parametrize("text", HUGE.values(), ids=list(HUGE))
def test_huge_prompts_take_linear_time(text, wrap):
    begun = time.perf_counter()
    assert text_of(*wrap(text))
    # A quadratic rule would take minutes; a linear one takes a fraction of a second.
    assert time.perf_counter() - begun < 8
