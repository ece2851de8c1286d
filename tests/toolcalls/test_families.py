"""The form that our prompt asks for is read without the forms of other families."""

from __future__ import annotations

import subprocess
import sys

import pytest
from call_forms import called, events, said

from langchain_svc._calls import parse, render
from langchain_svc._calls.cursor import Families
from langchain_svc._calls.reading import BadCall, Call, Doubt, StreamParser, Tool

TOOLS = [Tool("weather", {"type": "object", "properties": {"city": {"type": "string"}}})]
PAST = [render.PastCall("weather", {"city": city}) for city in ("Oslo", "Rome")]
CALLS = [(call.name, call.arguments) for call in PAST]


@pytest.fixture(autouse=True)
def no_families(monkeypatch):
    monkeypatch.setattr(parse, "FAMILIES", Families())


@pytest.mark.parametrize("name", render.FORMATS)
@pytest.mark.parametrize("step", [None, 1, 5])
def test_the_form_asked_for_is_read(name, step):
    text = render.calls_text("I look.", PAST, render.FORMATS[name])
    result = events(text, step, TOOLS)
    assert (said(result).strip(), called(result)) == ("I look.", CALLS)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('[{"name": "weather", "arguments": {"city": "Oslo"}}]', Call),
        ('{"name": "weather", "arguments": {"city": "Oslo"', Call),
        ("weather(city='Oslo')", BadCall),
        ("weather <city>Oslo</city>", BadCall),
    ],
)
def test_in_its_tags_only_json_is_read(body, kind):
    parser = StreamParser(TOOLS)
    result = [*parser.parse_chunk(f"<tool_call>\n{body}\n</tool_call>"), *parser.close()]
    calls = [event for event in result if isinstance(event, (Call, BadCall, Doubt))]
    assert [type(call) for call in calls] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "<function=weather><parameter=city>Oslo</parameter></function>",
        '<|tool_call_begin|>weather<|tool_sep|>{"city": "Oslo"}<|tool_call_end|>',
        "<|tool_call>call:weather{city:Oslo}<tool_call|>",
        "<weather><city>Oslo</city></weather>",
    ],
)
def test_the_forms_of_others_are_not_read(text):
    """The model is asked about them, as about any form that nobody knows."""
    result = events(text, None, TOOLS)
    assert called(result) == []
    assert [event.call.name for event in result if isinstance(event, Doubt)] == ["weather"]


def test_the_form_asked_for_needs_no_module_of_the_families():
    script = (
        "import sys\n"
        "import langchain_svc._calls.scanner, langchain_svc._calls.asked\n"
        "import langchain_svc._calls.replay, langchain_svc._calls.render\n"
        "print([name for name in sys.modules if '_calls.families' in name])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
