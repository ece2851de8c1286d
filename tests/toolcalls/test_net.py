"""What a person would take for a call makes a question: in forms that nobody uses, or half of one."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from call_forms import FORMS, called, events
from peers import summed
from share import part

from langchain_svc._calls.reading import BadCall, Call, Doubt, Tool

ROOT = Path(__file__).parents[2]
CITY = {"city": {"type": "string"}, "days": {"type": "integer"}}
WEATHER = Tool("get_weather", {"type": "object", "properties": CITY, "required": ["city"]})


def offered(tool):
    return {"name": tool.name, "parameters": tool.parameters}


def is_asked(answer):
    return any(isinstance(event, (BadCall, Doubt)) for event in answer)


# -- forms that nobody uses ------------------------------------------------------------------------

# How a form names the tool, and how it writes the arguments: none of them is any model's own.
HEADS = (
    "@{}", "[[{}]]", "({}", "do {}:", "tool = {}", "<<{}>>", "{{{{{}}}}}", "~~{}~~", "★{}★", "/{}",
    "[CALL ME: {}]", "my_api:{}", "call:my_api:{}", "tools.v2.{}", "use → {}", "工具：{}", "await {}",
    "Tool use ({}, id=7):", "<|exec|>{}<|with|>", "BEGIN {}", "**{}**", "#{}",
)  # fmt: skip
TAILS = (
    ' {"city": "Oslo"}', "(city: Oslo, days: 3)", "\ncity: Oslo\ndays: 3", " city=Oslo&days=3",
    "\n- city: Oslo", ' :: {"city": "Oslo", "days": 3}', "\n<city>Oslo", '!{city -> "Oslo", city: 1}',
    "\n[city] = Oslo\ncity = Oslo", "|city=Oslo|days=3", "; city:Oslo;", ' "city" "Oslo"',
)  # fmt: skip
OPENINGS = ("", "I look it up.\n", "Moment, ich sehe nach.\n\n", "我来查一下。\n")


@pytest.mark.parametrize("head", HEADS)
def test_a_form_that_nobody_uses_runs_or_is_asked(head):
    texts = [opening + head.format("get_weather") + tail for opening in OPENINGS for tail in TAILS]
    for text in part(texts, HEADS.index(head)):
        for step in (None, 3):
            answer = events(text, step, [WEATHER])
            assert is_asked(answer) or called(answer)[0][1]["city"] == "Oslo", text


def test_a_name_alone_or_a_key_alone_is_no_call():
    for text in ("get_weather", "The tool is get_weather.", "city: Oslo", "Oslo\n\ncity = Oslo"):
        assert not is_asked(events(text, None, [WEATHER]))


@pytest.mark.parametrize(
    "text", ['get_weather {"town": "Oslo"}', 'get_weather(town="Oslo")', 'get_weather{"days": "?"}']
)
def test_a_call_without_marks_that_does_not_fit_is_asked(text):
    for step in (None, 1):
        answer = events(text, step, [WEATHER])
        assert called(answer) == []
        assert is_asked(answer)


# -- half a call that a sentence quotes ------------------------------------------------------------

BASH = Tool("bash", {"type": "object", "properties": {"command": {"type": "string"}}})
SENTENCES = {
    "en": "The log only has {} and nothing after it.",
    "de": "Im Protokoll steht nur {} und danach nichts mehr.",
    "fr": "Le journal ne contient que {} et rien de plus.",
    "es": "En el registro solo pone {} y nada más.",
    "ru": "В журнале только {} и больше ничего.",
    "zh": "日志里只有 {} 后面什么都没有。",
    "ar": "في السجل فقط {} ولا شيء بعده.",
    "hi": "लॉग में केवल {} है और कुछ नहीं।",
}


def halves():
    """A call in each form, cut before its value, in it and behind it."""
    for form in FORMS.values():
        text = form.write("bash", {"command": "pwd"})
        begin = text.index("pwd")
        yield from (text[: begin + size] for size in (0, 2, 4))


@pytest.mark.parametrize(
    ("half", "language"), part(zip(halves(), itertools.cycle(SENTENCES), strict=False))
)
@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_half_a_call_that_a_sentence_quotes_is_text_and_no_error(
    sandbox, chat, half, language, way
):
    text = SENTENCES[language].replace("{}", half)
    sandbox.answers = [text, "I only told of it.", "I only told of it."]
    bound = chat.bind_tools([offered(BASH)])
    message = bound.invoke("?") if way == "invoke" else summed(bound.stream("?"))
    assert message.tool_calls == message.invalid_tool_calls == []
    assert message.content == text


@pytest.mark.parametrize("half", part(halves()))
def test_a_call_that_ends_open_is_asked_and_never_an_error(sandbox, chat, half):
    """The service says that the answer is whole, so nobody knows what is missing."""
    sandbox.answers = [half] + ["I meant nothing."] * 5
    bound = chat.bind_tools([offered(BASH)])
    message = bound.invoke("?")
    assert message.tool_calls == []
    assert len(sandbox.requests) > 1


# -- a quotation confirms nothing -------------------------------------------------------------------

QUOTED = {
    "a fence of another language": "The page has:\n```{label}\n{call}\n```\nSo it is.",
    "such a fence alone": "```{label}\n{call}\n```",
    "a table": "It says:\n| 1 | {call} | x |\n| 2 | y | z |\nSo it is.",
    "a line of a quotation": "He wrote:\n> {call}\n> and no more.",
    "a fence in a quotation": "He wrote:\n> ```json\n> {call}\n> ```\nSo it is.",
}


@pytest.mark.parametrize("quoted", QUOTED)
@pytest.mark.parametrize("label", ["markdown", "html", "python", "diff"])
def test_a_quotation_that_comes_back_confirms_nothing(sandbox, chat, quoted, label):
    for form in part(FORMS, len(quoted)):
        call = FORMS[form].write("get_weather", {"city": "Rome"}).replace("\n", " ")
        text = QUOTED[quoted].format(label=label, call=call)
        for first in (text, "@get_weather{city: Rome}", "<tool_call>\n{get_weather\n</tool_call>"):
            sandbox.answers = [first] + [text] * 3
            message = chat.bind_tools([offered(WEATHER)]).invoke("?")
            assert message.tool_calls == [], (first, text)


# -- ordinary documents ----------------------------------------------------------------------------

FIFTEEN = {
    "search": "query limit", "read_file": "path", "write_file": "path content", "list_files": "path",
    "run": "command timeout", "fetch": "url", "translate": "text language", "weather": "city days",
    "create_event": "title date", "send_mail": "to subject body", "delete": "path recursive",
    "query": "sql database", "summarize": "text length", "now": "", "open": "page name",
}  # fmt: skip


def test_ordinary_documents_are_hardly_ever_asked_about():
    tools = [
        Tool(name, {"properties": {key: {"type": "string"} for key in keys.split()}})
        for name, keys in FIFTEEN.items()
    ]
    texts: list[str] = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        paragraphs = re.split(r"\n\s*\n", page.read_text("utf-8"))
        texts += ["\n\n".join(paragraphs[at : at + 5]) for at in range(0, len(paragraphs), 5)]
    answers = [events(text, None, tools) for text in texts]
    assert not any(isinstance(event, Call) for answer in answers for event in answer)
    assert sum(map(is_asked, answers)) <= 0.03 * len(texts)
