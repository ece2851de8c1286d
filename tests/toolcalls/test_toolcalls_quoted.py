"""A call that a model only quotes is no call; one beside a quotation is."""

from __future__ import annotations

import pytest
from call_forms import called, events, said

from langchain_svc._toolcalls import BadCall, Doubt, Tool, parse_calls

TOOLS = [
    Tool("book_room", {"type": "object", "properties": {"hotel": {"type": "string"}}, "required": ["hotel"]}),
    Tool("stop", {"type": "object", "properties": {}}),
]  # fmt: skip
JSON = '{"name": "book_room", "arguments": {"hotel": "Krone"}}'
CALL = ("book_room", {"hotel": "Krone"})
FORMS = [
    f"<tool_call>{JSON}</tool_call>",
    f"<tool_call>\n{JSON}\n</tool_call>",
    f"<tool_use>{JSON}</tool_use>",
    "<function=book_room><parameter=hotel>Krone</parameter></function>",
    f"[TOOL_CALLS][{JSON}]",
    '<invoke name="book_room"><parameter name="hotel">Krone</parameter></invoke>',
]
INLINE = [form for form in FORMS if "\n" not in form]


def check(text, content, calls):
    for step in (None, 1, 2, 5, 17):
        found = events(text, step, TOOLS)
        assert (said(found), called(found)) == (content, calls)
        assert not any(isinstance(event, (BadCall, Doubt)) for event in found)


@pytest.mark.parametrize(
    "around",
    ["Der Aufruf „{}“ bucht.", "The text \"{}\" is a call.", "On écrit « {} » : «{}».", "It's '{}', they say.", "Say “{}”.", "它写作「{}」。",
     "Use <code>{}</code>.", "He wrote:\n> > see {} there\n"],
)  # fmt: skip
@pytest.mark.parametrize("form", INLINE)
def test_what_is_quoted_is_no_call(around, form):
    text = around.replace("{}", form)
    if text.startswith("On"):
        text = text.replace(f"« {form} » : ", "")  # the marks touch what they quote
    check(text, text.strip(), [])


@pytest.mark.parametrize(
    "text",
    ["The tags <tool_call> and </tool_call> surround a call.", "Put it between <tool_call> und </tool_call>, bitte.",
     '{"help": "between <tool_call> and </tool_call>", "n": 1}', '["<tool_call>", "</tool_call>"]', '{"a": "<think>", "b": "</think>"}',
     '{"a": "first <tool_response> then", "b": 2}'],
)  # fmt: skip
def test_tags_that_are_only_spoken_of_stay_in_the_text(text):
    check(text, text, [])


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("{}", ""),
        ('"{}"', '""'),
        ("I call `book_room`: {}", "I call `book_room`:"),
        ("It's time: {}", "It's time:"),
        ('The "Krone" it is. {}', 'The "Krone" it is.'),
        ("A `tick and {}", "A `tick and"),
        ("> You asked for a room.\n{}", "> You asked for a room."),
        ("5 > 3, so {}", "5 > 3, so"),
        ('{"thought": "a room"}\n{}', '{"thought": "a room"}'),
        ('[12" wide] {}', '[12" wide]'),
        ("```json\n{}\n```", ""),
        ("```\n{}\n```", ""),
    ],
)
@pytest.mark.parametrize("form", [FORMS[0], FORMS[2]])
def test_what_is_not_quoted_is_a_call(text, content, form):
    check(text.replace("{}", form), content, [CALL])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<tool_call>book_room please</tool_call>", "not a JSON object"),
        ("<tool_call>fly(to=Mars)</tool_call>", "not a JSON object"),
        ("<tool_call>\n</tool_call>", "the block is empty"),
        ("<tool_call>", "cut off"),
    ],
)
def test_what_is_wrong_in_our_own_tags_is_said(text, reason):
    (call,) = parse_calls(text, TOOLS).calls
    assert reason in call.reason


def test_an_element_of_thoughts_that_a_prompt_asked_for_stays_in_the_text_and_calls_nothing():
    for name in ("reasoning", "analysis", "scratchpad", "thoughts", "reflection"):
        text = f"<{name}>\nI could run {JSON}\n</{name}>\nNo."
        check(text, text, [])
