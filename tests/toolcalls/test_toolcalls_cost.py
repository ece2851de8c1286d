"""Reading costs what the length of a text does, whatever the text."""

from __future__ import annotations

import itertools
import sys

import pytest
from call_forms import FORMS, TOOLS

from langchain_svc._toolcalls import StreamParser


def work(text, step):
    """How many function calls a stream takes."""
    count = itertools.count()
    parser = StreamParser(TOOLS)
    sys.setprofile(lambda *_: next(count))
    try:
        for i in range(0, len(text), step):
            [*parser.feed(text[i : i + step])]
        [*parser.finish()]
    finally:
        sys.setprofile(None)
    return next(count)


@pytest.mark.parametrize("step", [64, 4096])
@pytest.mark.parametrize("kind", ["prose", "argument", "braces", "tags"])
def test_the_work_grows_with_the_length_alone(kind, step):
    def text(n):
        return {
            "prose": "Lorem ipsum dolor sit amet. " * (n // 28),
            "argument": '<tool_call>{"name": "write_file", "arguments": {"text": "'
            + "x y " * (n // 4)
            + '"}}</tool_call>',
            "braces": "{ " * (n // 2),
            "tags": "<tool_call>" * (n // 11),
        }[kind]

    small, large = work(text(30_000), step), work(text(300_000), step)
    assert large < 15 * small


@pytest.mark.parametrize(
    "unit",
    [
        '}]}\n{"tool_calls":[',
        "<tool_call>{",
        '{"tool_calls":[{"a": <tool_call>',
        '[TOOL_CALLS]{"a": ',
    ],
)
def test_openers_that_lead_nowhere_cost_what_their_length_does(unit):
    small, large = (work(unit * (size // len(unit)), 100_000) for size in (15_000, 120_000))
    assert large < 12 * small


def openers():
    """What forms begin with, up to the name, and other beginnings that are not gone on with."""
    texts = [form.write("write_file", {"text": "Rome"}) for form in FORMS.values()]
    begun = {text[: text.index("write_file") + 10] for text in texts}
    values = [
        '{"id": 1, ', '[{"type": "x", ', "<tools>{", "<tool_call>{", "```json\n{", "``` x", "`{a ", '{"name": "write_file", "arguments": {"text": "',
    ]  # fmt: skip
    return [*sorted(begun), *values]


@pytest.mark.parametrize("opener", openers())
def test_what_only_begins_like_calls_costs_what_its_length_does(opener):
    text = opener * (8_000 // len(opener))
    assert work(text, 64) <= 120 * len(text)
