"""Reading costs what the length of a text does, whatever the text."""

from __future__ import annotations

import pytest
from call_forms import FORMS, called, events, said
from share import pairs

from fuzz.cost import counted


def units():
    """What forms begin with, up to the name, and other beginnings that are not gone on with."""
    texts = [form.write("write_file", {"text": "Rome"}) for form in FORMS.values()]
    begun = {text[: text.index("write_file") + 10] for text in texts}
    others = [
        '{"id": 1, ', '[{"type": "x", ', "<tools>{", "<tool_call>{", "```json\n{", "``` x", "`{a ",
        '{"name": "write_file", "arguments": {"text": "',
        '}]}\n{"tool_calls":[', '{"tool_calls":[{"a": <tool_call>', '[TOOL_CALLS]{"a": ',
        "Lorem ipsum dolor sit amet. ", "{ ", "<tool_call>",
    ]  # fmt: skip
    return [*sorted(begun), *others]


@pytest.mark.parametrize(("step", "unit"), pairs([64, 10_000], units()))
def test_what_begins_like_calls_costs_what_its_length_does(unit, step):
    few, many = (counted(lambda n=n: events(unit * (n // len(unit)), step)) for n in (2_000, 8_000))
    assert many <= 120 * 8_000
    assert many <= 6 * few + 2_000


@pytest.mark.parametrize("step", [64, 4_096])
def test_a_long_argument_costs_what_its_length_does(step):
    def read(size):
        text = "x y " * (size // 4)
        written = FORMS["<tool_call>…</tool_call>"].write("write_file", {"text": text})
        assert len(events(written, step)) == 1

    small, large = (counted(lambda n=n: read(n)) for n in (30_000, 300_000))
    assert large < 15 * small


@pytest.mark.parametrize("space", ["", " ", "\n", "\n  "])
@pytest.mark.parametrize("bracket", "{[")
def test_a_long_text_in_which_calls_are_tried_in_vain_stays_whole(bracket, space):
    written = FORMS["<tool_call>…</tool_call>"].write("write_file", {"text": "Rome"})
    text = f"So: {bracket}{space}" + f'{bracket}{space}{{"name": "write_file", ' * 3_000 + "end"
    answer = events(written + text)
    assert len(called(answer)) == 1
    assert said(answer) == text
