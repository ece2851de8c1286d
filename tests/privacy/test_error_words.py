"""What an error says of a service's message: its words, no key, and no quotation of what was sent.

On private ways it says none of its words.
"""

from __future__ import annotations

import html
import json
import re
import sys
from dataclasses import replace
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import answering
from share import fewer

import langchain_svc as svc

KEY = "sk-Zq9/Kw+Xv77/Uy5"
NAME = "Renata Zq-Meyerling"
V1 = {"base_url_v1": "https://svc.example/v1"}
GENERAL = {"base_url": "https://svc.example"}
MEDICAL = {"medical_base_url": "https://svc.example", "handle_tool_error": False}


def made(kind, clients, **words):
    return kind(api_key=KEY, max_retries=0, **clients, **words)


def people():
    return svc.Pseudonyms(names=[NAME])


DOORS = {
    "chat": lambda c, asked: made(svc.ChatSvc, c, **V1).invoke(asked),
    "stream": lambda c, asked: [*made(svc.ChatSvc, c, **V1).stream(asked)],
    "one text": lambda c, asked: made(svc.ChatSvc, c, interface="general", **GENERAL).invoke(
        [("user", asked), ("ai", "Go on."), ("user", asked)]
    ),
    "a further field": lambda c, asked: made(svc.ChatSvc, c, **V1).invoke(
        "Hi", extra_body={"of": [{"it": asked}]}
    ),
    "a tool": lambda c, asked: made(svc.SvcTranslate, c, handle_tool_error=False, **GENERAL).invoke(
        {"text": asked, "target": "de"}
    ),
}
PRIVATE = {
    "privacy": lambda c, asked: made(svc.ChatSvc, c, privacy="phi", **V1).invoke(asked),
    "a private stream": lambda c, asked: [*made(svc.ChatSvc, c, privacy="phi", **V1).stream(asked)],
    "pseudonyms": lambda c, asked: made(svc.ChatSvc, c, pseudonyms=people(), **V1).invoke(asked),
    "pseudonyms of a run": lambda c, asked: made(svc.ChatSvc, c, **V1).invoke(
        asked, {"configurable": {"svc_pseudonyms": people()}}
    ),
    "a medical tool": lambda c, asked: made(svc.SvcMedicalConsult, c, **MEDICAL).invoke(
        {"message": asked}
    ),
    "a medical status": lambda c, _: made(svc.SvcMedicalStatus, c, **MEDICAL).invoke({}),
}


class Refusing:
    """A service whose answer is an error, with the message that `say` makes of what was sent."""

    def __init__(self, say, status=400, **fields):
        self.say = say
        self.status = status
        self.fields = fields
        self.sent = []

    def __call__(self, request):
        self.sent = [*texts(json.loads(request.content or b"{}"))]
        error = {"message": self.say(self.sent), **self.fields}
        return httpx.Response(self.status, json={"error": error})


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def raised(door, service, asked):
    with pytest.raises(svc.SvcError) as caught:
        door(answering(service), asked)
    return caught.value


def refused(message, asked="Hi", **fields):
    """The error of a chat whose service answers with this message."""
    return raised(DOORS["chat"], Refusing(lambda _: message, **fields), asked)


# -- a quotation is 20 characters ------------------------------------------------------------------

LETTERS = st.sampled_from("abZ \n\t\u3000\u0301éü漢字%41&;\\\"'{}\u200c\U0001f600")
ASKED = st.text(LETTERS, min_size=30).filter(str.strip)
# Which of the texts sent, from where, how much of it, and what stands behind it.
QUOTED = st.tuples(st.integers(0, 9), st.integers(0, 999), st.integers(18, 30), st.text(LETTERS))


@pytest.mark.parametrize("door", DOORS)
@settings(max_examples=fewer(60))
@given(asked=ASKED, said=st.lists(QUOTED), status=st.sampled_from([400, 429, 500, 200]))
def test_no_quotation_comes_back(door, asked, said, status):
    def say(sent):
        pieces = []
        for which, start, size, between in said:
            text = sent[which % len(sent)]
            pieces += (text[start % (len(text) + 1) :][:size], between)
        return "".join(pieces)

    service = Refusing(say, status)
    error = raised(DOORS[door], service, asked)
    silent = raised(DOORS[door], Refusing(lambda _: "", status), asked)
    shown = str(error).removeprefix(f"{silent}: ")
    runs = {text[at : at + 20] for text in service.sent for at in range(len(text) - 19)}
    assert not [run for run in runs if run in shown]
    assert len(shown) <= 500 and shown.isprintable()


@pytest.mark.parametrize(
    ("asked", "message", "shown"),
    [
        ("I am Ann Meyer, 57, HIV+", "bad: 'Ann Meyer, 57, HIV+'", "bad: 'Ann Meyer, 57, HIV+'"),
        ("I am Ann Meyer, 57, HIV+", "bad: 'm Ann Meyer, 57, HIV+'", "bad: '[...]'"),
        ("Na 138\nK 4.1\n\nCa 2.3\nMg 0.8", "got: Na 138\nK 4.1\n\nCa 2.3\nMg 0.8!", "got: [...]!"),
        ("Na 138\nK 4.1\nCa 2.3\nMg 0.8", "got: Na 138 K 4.1 Ca 2.3 Mg 0.8!", "got: [...]!"),
        ("see:/a%20b/c%20d/e%20f/g", "no /a%20b/c%20d/e%20f/g here", "no [...] here"),
        ("ab" * 15, f"<{'ab' * 15}{'ab' * 15}>", "<[...]>"),
        ("0123456789 9876543210", "0123456789 9876543210, 0123456789 9876543210", "[...], [...]"),
        ("Hi", f"{'no ' * 400}", f"{'no ' * 165}[...]"),
        ("Hi", "one\x1b[31m\u2028two", "one\ufffd[31m two"),
    ],
)  # fmt: skip
def test_a_quotation_is_marked_and_the_rest_stays(asked, message, shown):
    assert str(refused(message, asked)) == f"The service answered 400: {shown}"


def test_the_name_of_the_model_is_no_quotation():
    model = "some-org/some-model-70B-instruct"
    service = Refusing(lambda _: f"{model} is overloaded", 503)
    asked = made(svc.ChatSvc, answering(service), model=model, **V1)
    with pytest.raises(svc.SvcServerError, match=f"{model} is overloaded"):
        asked.invoke("Hi")


SENTENCES = [  # of services that people use
    "You exceeded your current quota, please check your plan and billing details",
    "Your account is suspended: unpaid invoice INV-2231. Contact billing@example.com",
    "Rate limit reached for requests. Limit: 3 / min. Current: 4 / min. Try again in 20s",
    "'temperature' does not support 0.2 with this model. Only the default (1) value is supported",
    "Invalid schema for function: 'items' and 'properties' need a description and a title",
    "messages: first message must use the user role, then the instructions that follow it",
    "Grüße, 漢字 & <b>100%25</b> \\u00e9",
]


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("door", DOORS)
def test_a_message_stays_though_each_of_its_words_was_sent(door, sentence):
    error = raised(DOORS[door], Refusing(lambda _: sentence), "|".join(sentence.split()))
    assert str(error) == f"The service answered 400: {sentence}"


@pytest.mark.parametrize(
    ("sent", "code", "shown"),
    [
        ("Meyerling is ill", "Meyerling", None),
        ("go to /records/of/ann-meyer", "x:/records/of/ann-meyer", None),
        ("Meyerling is ill", "rate_limit_exceeded", "rate_limit_exceeded"),
        ("What is context_length_exceeded?", "context_length_exceeded", "context_length_exceeded"),
        ("Hi", "two words", None),
        ("Hi", KEY, None),
    ],
)
def test_a_code_is_a_short_name_that_was_not_sent(sent, code, shown):
    error = refused("no", sent, code=code, type=code)
    assert (error.code, error.type) == (shown, shown)
    assert str(error) == f"The service answered 400: no{f' (code {shown})' if shown else ''}"


# -- keys ------------------------------------------------------------------------------------------

SPELLINGS = {
    "as it is": str,
    "in capitals": str.upper,
    "in part": lambda text: text[3:],
    "for a URL": lambda text: quote(text, safe=""),
    "for a URL, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "each letter for a URL": lambda text: "".join(f"%{one:02X}" for one in text.encode()),
    "for HTML": lambda text: html.escape(text).replace("/", "&#47;"),
    "for JSON": lambda text: text.replace("/", "\\/"),
    "each letter for JSON": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_key_comes_back(spelling):
    error = refused(f"no route for <{SPELLINGS[spelling](KEY)}> here", code=KEY)
    assert not re.search("zq9|xv77|5a71|uy5", f"{error!r}{vars(error)}", re.IGNORECASE)
    assert re.search("no route for <.*key.*> here", str(error))


# -- private ways ----------------------------------------------------------------------------------


def attributes(error):
    """All that an error holds, but for the id and the times of its receipt."""
    receipt = error.receipt
    if receipt is not None:
        tries = [replace(sent, time="", ended="") for sent in receipt.tries]
        receipt = replace(receipt, id="", tries=tries)
    return {**vars(error), "receipt": receipt}


@pytest.mark.parametrize("door", PRIVATE)
@settings(max_examples=fewer(30))
@given(message=st.text(min_size=1), asked=ASKED, status=st.sampled_from([400, 500, 200]))
def test_a_private_error_says_no_word_of_the_message(door, message, asked, status):
    fields = {"type": "t_1", "code": "a_code"}
    asked = f"{NAME}: {asked}"
    services = [Refusing(lambda _, said=said: said, status, **fields) for said in (message, "")]
    shown, silent = (raised(PRIVATE[door], service, asked) for service in services)
    assert type(shown) is type(silent)
    assert (str(shown), shown.args) == (str(silent), silent.args)
    assert attributes(shown) == attributes(silent)
    assert status == 200 or (shown.type, shown.code) == ("t_1", "a_code")


@pytest.mark.parametrize("door", [door for door in PRIVATE if door != "a medical status"])
@pytest.mark.parametrize("status", [400, 200])
def test_a_private_error_has_no_code_that_names_somebody(door, status):
    code = "PERSON_1" if "pseudonyms" in door else "Meyerling"
    error = raised(PRIVATE[door], Refusing(lambda _: "", status, code=code), "Zq-Meyerling is ill")
    assert "Meyerling" not in f"{error!r}{vars(error)}"


# -- work ------------------------------------------------------------------------------------------


def operations(asked):
    """The operations of our code while an error is made that quotes what was asked."""
    count = 0

    def step(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return step

    def enter(frame, event, arg):
        return step(frame, event, arg) if "langchain_svc" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        refused(f"cannot parse {asked[100:400]}; {asked[:9]}", asked)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("text", ["a", "e\u0301\u0323", "no 1\n", " \n", "%25", "漢字", "\\u0041"])
def test_an_error_costs_work_as_the_text_sent_is_long(text):
    few, many = (operations((text * size)[:size]) for size in (10_000, 20_000))
    assert 0 < few < many < 2.2 * few
