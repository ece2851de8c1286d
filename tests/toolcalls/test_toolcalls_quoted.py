"""A call that a model only quotes is no call; one beside a quotation is."""

from __future__ import annotations

import json

import pytest

from langchain_svc._toolcalls.parse import Call, Tool, parse
from langchain_svc._toolcalls.stream import Arguments, CallStart, Content, StreamParser

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


def read(text, step):
    parser = StreamParser(TOOLS)
    parts = [text[at : at + step] for at in range(0, len(text), step)]
    events = [event for part in parts for event in parser.feed(part)] + parser.finish()
    names = [event.name for event in events if isinstance(event, CallStart)]
    arguments = [json.loads(event.text) for event in events if isinstance(event, Arguments)]
    content = "".join(event.text for event in events if isinstance(event, Content))
    others = len(events) - len(names) - len(arguments)
    others -= sum(isinstance(event, Content) for event in events)
    return content.strip(), list(zip(names, arguments, strict=True)), others


def check(text, content, calls):
    found = parse(text, TOOLS)
    good = [(call.name, call.arguments) for call in found.calls if isinstance(call, Call)]
    assert (found.content, good, len(found.calls)) == (content, calls, len(calls))
    for step in (1, 2, 5, 17, 10_000):
        assert read(text, step) == (content, calls, 0)


def in_json(text):
    return json.dumps({"note": f"One writes {text} for it.", "n": 1})


@pytest.mark.parametrize(
    "around",
    ["Der Aufruf „{}“ bucht.", "The text \"{}\" is a call.", "On écrit « {} » : «{}».", "It's '{}', they say.", "Say “{}”.", "它写作「{}」。",
     "Write `{}` or ``{}``.", "Use <code>{}</code>.", "He wrote:\n> {}\nand no more.", "He wrote:\n> > see {} there\n", "* `{}`: books",
     "```markdown\n{}\n```\nSo.", "```html\n<p>{}</p>\n```\nSo.", "````md\n```json\n{}\n```\n````\nSo."],
)  # fmt: skip
@pytest.mark.parametrize("form", INLINE)
def test_what_is_quoted_is_no_call(around, form):
    text = around.replace("{}", form)
    if text.startswith("On"):
        text = text.replace(f"« {form} » : ", "")  # the marks touch what they quote
    check(text, text.strip(), [])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", [None, 2])
def test_a_call_in_a_string_of_json_is_data(form, layout):
    text = json.dumps(json.loads(in_json(form)), indent=layout)
    check(text, text, [])
    check(f"Here:\n{text}\nBye.", f"Here:\n{text}\nBye.", [])
    check(f"{text}\n{FORMS[0]}", text, [CALL])


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


def test_empty_braces_in_words_beside_a_tag_are_still_a_broken_call():
    (call,) = parse("<tool_call>book_room please</tool_call>", TOOLS).calls
    assert "JSON" in call.reason
