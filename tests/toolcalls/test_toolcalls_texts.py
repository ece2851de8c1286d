"""Texts beside the generated ones: what is a call in them, and what stays as it was written."""

from __future__ import annotations

import pytest
from call_forms import called, events, said

from langchain_svc._calls.reading import BadCall, Doubt, Prose, StreamParser, Tool, parse_calls

CITY = {"city": {"type": "string"}, "days": {"type": "integer"}}
FILE = {"path": {"type": "string"}, "text": {"type": "string"}}
TOOLS = [
    Tool("weather", {"type": "object", "properties": CITY, "required": ["city"]}),
    Tool("now", {"type": "object", "properties": {}}),
    Tool("write_file", {"type": "object", "properties": FILE, "required": ["path", "text"]}),
]


JSON = '{"name": "weather", "arguments": {"city": "Krone"}}'


def check(text, content, calls):
    for step in (None, 1, 2, 5, 17):
        answer = events(text, step, TOOLS)
        assert (said(answer), called(answer)) == (content, calls)
        assert not any(isinstance(event, (BadCall, Doubt)) for event in answer)


@pytest.mark.parametrize(
    "text",
    ["The tags <tool_call> and </tool_call> surround a call.", "Put it between <tool_call> und </tool_call>, bitte.",
     '{"help": "between <tool_call> and </tool_call>", "n": 1}', '["<tool_call>", "</tool_call>"]',
     '{"a": "<think>", "b": "</think>"}',
     '{"a": "first <tool_response> then", "b": 2}'],
)  # fmt: skip
def test_tags_that_are_only_spoken_of_stay_in_the_text(text):
    check(text, text, [])


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("{}", ""),
        ('"{}"', '""'),
        ("I call `weather`: {}", "I call `weather`:"),
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
@pytest.mark.parametrize("form", [f"<tool_call>{JSON}</tool_call>", f"<tool_use>{JSON}</tool_use>"])
def test_what_is_not_quoted_is_a_call(text, content, form):
    check(text.replace("{}", form), content, [("weather", {"city": "Krone"})])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<tool_call>weather please</tool_call>", "not a JSON object"),
        ("<tool_call>fly(to=Mars)</tool_call>", "not a JSON object"),
        ("<tool_call>\n</tool_call>", "the block is empty"),
        ("<tool_call>", "cut off"),
    ],
)
def test_what_is_wrong_in_our_own_tags_is_said(text, reason):
    (call,) = parse_calls(text, TOOLS)
    assert reason in call.reason


@pytest.mark.parametrize(
    "begin", ["<|start|>assistant", "It rains.<|start|>assistant", "It rains."]
)
def test_what_stands_before_an_invented_result_is_said_once(begin):
    content = begin.removesuffix("<|start|>assistant")  # which only says who speaks
    check(f"{begin}<tool_response>rain</tool_response>And more.", content, [])


def test_an_element_of_thoughts_that_a_prompt_asked_for_stays_in_the_text_and_calls_nothing():
    for name in ("reasoning", "analysis", "scratchpad", "thoughts", "reflection"):
        text = f"<{name}>\nI could run {JSON}\n</{name}>\nNo."
        check(text, text, [])


@pytest.mark.parametrize(
    "text",
    [
        'const x = {"name": "weather", "version": "1.0"};',
        "Use `weather(city)` for that, or [1, 2, 3].",
        '```python\nweather = {"city": "Rome"}\nprint(weather)\n```',
        "a < b and b > c; f(x) = {x}",
        '```xml\n<tool_call>{"name": "teleport", "arguments": {}}</tool_call>\n```',
        "<function=now>{]</function>",
        "now{] and more",
        "weather(city='Rome') is how one calls it.",
        'weather {"temp": 3} is what it printed.',
        '[weather(city="Rome") for _ in range(2)]',
    ],
)  # fmt: skip
def test_what_is_no_call(text):
    for step in (1, 3, 1000):
        assert called(events(text, step, TOOLS)) == []


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("The weather, as 3 < 4 tells (see [1]), is fine. {Really} by {name}.", 12),
        # A paragraph that begins as calls do may yet name a tool.
        ('So:\nAction: go. {"name": "Ann Other"}\nThen this.\n\nMore, and more, and more.', 48),
        ("Action: go. " + "Then this. " * 200, 1_000),
    ],
)
def test_prose_is_never_held_back(text, most):
    parser = StreamParser(TOOLS)
    out = ""
    for n, letter in enumerate(text, 1):
        out += "".join(e.text for e in parser.parse_chunk(letter) if isinstance(e, Prose))
        assert n - len(out) <= most
    out += "".join(e.text for e in parser.close() if isinstance(e, Prose))
    assert out == text


def test_an_argument_that_a_tool_does_not_have_is_its_own_to_refuse():
    text = "<weather><city>Rome</city><wind>yes</wind></weather>"
    check(text, "", [("weather", {"city": "Rome", "wind": "yes"})])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('<tool_call>{"name": "fly", "arguments": {}}</tool_call>', ["fly"]),
        ("[TOOL_CALLS]fly[ARGS]{}", ["fly"]),
        ("<tools>fly{}</tools>", []),
        ('[weather(city="Rome (Italy)")]', ["weather"]),
        ("[now('noon')]", []),
        ("Action: now\nObservation: 12:30", ["now"]),
        ("Action: now\nAction Input:\nObservation: 12:30", ["now"]),
        ("Action: now or later\nObservation: none", []),
    ],
)
def test_a_name_that_is_not_on_offer_is_called_only_in_marks_and_one_that_is_without(text, names):
    assert [name for name, _ in called(events(text, tools=TOOLS))] == names


SEARCH = Tool("search", {"type": "object", "properties": {"function": {"type": "string"}}})


@pytest.mark.parametrize(
    "text",
    [
        "Action: search[f(x)]",
        "Action: search(function='f(x)')",
        "<search><function>f(x)</function></search>",
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_an_argument_in_brackets_or_an_element_of_any_name(text, size):
    assert called(events(text, size, [SEARCH])) == [("search", {"function": "f(x)"})]


@pytest.mark.parametrize(
    "text", ['{"name": "functions.add", "arguments": {"a": 1}}', "[functions.add(a=1)]"]
)
def test_a_tool_whose_own_name_begins_with_a_namespace_is_found_in_a_stream(text):
    tools = [Tool("functions.add", {"type": "object", "properties": {"a": {"type": "integer"}}})]
    assert called(events(text, 1, tools)) == [("functions.add", {"a": 1})]


# -- one grammar of an element that calls ----------------------------------------------------------

SPELLED = {
    "city": {"type": "string"},
    "tags": {"type": "array"},
    "meta": {"type": "object"},
    "-A": {"type": "integer"},
}
LOOK = Tool("look", {"type": "object", "properties": SPELLED})
PARIS = {"city": "Paris"}
ELEMENTS = [
    (
        (
            '<tool name="look"><param name="city">Oslo</param></tool>\n'
            '<tool name="look"><param name="city">Paris</param></tool>'
        ),
        [{"city": "Oslo"}, PARIS],
    ),
    ('[TOOL_CALLS]look[CALL_ID]call_abc12[ARGS]{"city": "Paris"}', [PARIS]),
    ('<function><name>look</name><arguments>{"city": "Paris"}</arguments></function>', [PARIS]),
    (
        "<function_call><name>look</name><arguments><city>Paris</city></arguments></function_call>",
        [PARIS],
    ),
    ('<call_record tool="look"><city>Paris</city></call_record>', [PARIS]),
    (
        (
            '<｜｜DSML｜｜tool_calls> <｜｜DSML｜｜invoke name="look"> '
            '<｜｜DSML｜｜parameter name="city">Paris</｜｜DSML｜｜parameter> '
            "</｜｜DSML｜｜invoke> </｜｜DSML｜｜tool_calls>"
        ),
        [PARIS],
    ),
    (
        (
            '<invoke name="look"><parameter name="meta"><source>web</source><rank>2</rank></parameter>'
            '<parameter name="tags"></parameter></invoke>'
        ),
        [{"meta": {"source": "web", "rank": 2}, "tags": []}],
    ),
    (
        (
            '<invoke name="look"><parameter name="tags"><item>red</item><item>2</item></parameter>'
            "</invoke>"
        ),
        [{"tags": ["red", 2]}],
    ),
    (
        (
            ']<]minimax[>[<invoke name="look">]<]minimax[>[<city>Paris]<]minimax[>[</city>'
            "]<]minimax[>[<-A>3]<]minimax[>[</-A>]<]minimax[>[</invoke>"
        ),
        [{"city": "Paris", "-A": 3}],
    ),
    (
        (
            "<tool_calls:abc>\n<tool_call:abc>look<tool_sep:abc>\n"
            "<arg_key:abc>city</arg_key:abc>\n<arg_value:abc>Paris</arg_value:abc>\n"
            "</tool_call:abc>\n</tool_calls:abc>"
        ),
        [PARIS],
    ),
    ("<tool_call>look<arg_key>city</arg_key>Paris</arg_value></tool_call>", [PARIS]),
]


@pytest.mark.parametrize(("text", "calls"), ELEMENTS)
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_an_element_that_calls_is_read_however_it_is_decorated(text, calls, step):
    answer = events(text, step, [LOOK])
    assert (said(answer), called(answer)) == ("", [("look", arguments) for arguments in calls])
