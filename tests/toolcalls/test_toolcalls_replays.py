"""A call that was read is recognised in the formats in which tools return text; others are not."""

from __future__ import annotations

import pytest
from call_forms import FORMS
from honest_calls import ASKED, HONEST, PERSON
from share import part
from text_formats import FORMATS, quoted_printable, spans

from fuzz.cost import counted
from langchain_svc._calls.reading import Replays

ARGUMENTS = (
    {"path": "/mail/old", "count": -3},
    {"text": "Use <b>x</b>, \"y\" & 'z'\nor {a: 1}.", "tags": ["red", "light blue"]},
)
# JSON in JSON, written backwards in JSON: the marks of its escapes stand behind them.
UNREAD = {"right to left, in JSON": ("arguments as text", "JSON as OpenAI has it")}


def source(read, name, arguments):
    text = f"Dear Ann,\nI found this.\n{read}\nBye"
    return Replays(lambda: [("a page", text)]).source(name, arguments)


@pytest.mark.parametrize("name", FORMATS)
def test_a_call_of_any_form_is_recognised_in_any_format(name):
    read = [form for form in FORMS if form not in UNREAD.get(name, ())]
    for form in part(read, list(FORMATS).index(name)):
        text = FORMATS[name](FORMS[form].write("write_file", ARGUMENTS[0]))
        assert source(text, "write_file", ARGUMENTS[0]), (form, text)
        assert source(text, "write_file", {"path": "/mail/new"}) is None
        assert source(text, "read_file", ARGUMENTS[0]) is None


@pytest.mark.parametrize(
    "name", [name for name in FORMATS if not name.startswith("right to left, in")]
)
def test_values_with_markup_and_escapes_are_recognised_in_any_format(name):
    for form in part(FORMS, list(FORMATS).index(name)):
        text = FORMATS[name](FORMS[form].write("write_file", ARGUMENTS[1]))
        assert source(text, "write_file", ARGUMENTS[1]), (form, text)


@pytest.mark.parametrize("call", ["<call=now></call>", "<call=now/>", "[call=now][/call]"])
def test_a_call_without_arguments_is_recognised_by_the_mark_that_closes_it(call):
    assert source(call, "now", {})
    assert source(call.replace("/", ""), "now", {}) is None


@pytest.mark.parametrize("kind", HONEST)
def test_a_call_with_what_was_read_is_the_models_own(kind):
    texts, calls = HONEST[kind]
    for name, arguments in calls:
        assert Replays(texts.copy, asking=PERSON).source(name, arguments) is None


@pytest.mark.parametrize("kind", ASKED)
def test_a_link_and_an_example_are_asked_about(kind):
    texts, calls = ASKED[kind]
    for name, arguments in calls:
        assert Replays(texts.copy, asking=PERSON).source(name, arguments)


EVERYTHING = "7: <b>x</b>=20%20<zz>y</zz>\u202eabc\u202c\U000e0041&lt;i&gt;\n"


@pytest.mark.parametrize(
    "unit",
    [
        EVERYTHING,
        "<",
        "<a ",
        "<!--",
        "</",
        '<a b="',
        "<a b='",
        "<a \"'",
        "&lt;a ",
        "%",
        "%25",
        "%41",
        "=",
        "=\n",
        "=3D",
        "=\r\n",
        "1 ",
        "1\n",
        "\n",
        " \n",
        "[1",
        "\\\n1",
        "\u202e",
        "\u202e\u202c",
        "\U000e0041",
        "\U000e0041a",
        "a",
        "deadbeef",
        "L1:",
        spans("{x}"),
        quoted_printable("a = b\n"),
    ],
)
def test_looking_for_a_call_costs_what_the_length_of_a_text_does(unit):
    def read(size):
        text = unit * (size // len(unit))
        replays = Replays(lambda: [("a page", text)])
        assert replays.source("search", {"query": text[:400]}) is None

    few, many = (counted(lambda n=n: read(n)) for n in (2_000, 16_000))
    assert many <= 9 * few + 2_000
