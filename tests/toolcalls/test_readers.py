"""What becomes of what a reader of a form returns, and what its cursor waits for."""

from __future__ import annotations

import re

import pytest
from call_forms import TOOLS, called, events, said

from langchain_svc._calls import parse
from langchain_svc._calls.calls import CUT_OFF, Raw
from langchain_svc._calls.cursor import Cursor, Families
from langchain_svc._calls.judge import Judge
from langchain_svc._calls.reading import BadCall, Call, Doubt
from langchain_svc._json import More

MARK = "@call:"


@pytest.fixture
def read(monkeypatch):
    """Reads a text in which a reader returns these calls for `@call:`, a name and maybe an end."""

    def read(raws, text, step=None, *, cut=False):
        def reader(cursor):
            cursor.word()
            cursor.space()
            cursor.accept("</call>")
            return raws and list(raws)

        monkeypatch.setattr(parse, "FAMILIES", Families(readers={MARK: reader}))
        return events(text, step, TOOLS, cut=cut)

    return read


# -- what becomes of a call ------------------------------------------------------------------------

# What it is with text behind it, where the answer ends, and where the service cut it.
CALL, BAD, CUT, ASKED = (Call, False), (BadCall, False), (BadCall, True), (Doubt, False)
OUTCOMES = [
    (Raw("now", whole=True), CALL, CALL, CALL),
    (Raw("now"), CALL, ASKED, CUT),
    (Raw("now", fault="odd", whole=True), BAD, BAD, BAD),
    (Raw("now", fault="odd"), BAD, ASKED, CUT),
    (Raw("now", fault=CUT_OFF), ASKED, ASKED, CUT),
    (Raw("now", fault=CUT_OFF, whole=True), ASKED, ASKED, ASKED),
    (Raw("now", leftover="odd", whole=True), ASKED, ASKED, ASKED),
    (Raw("now", leftover="odd"), ASKED, ASKED, CUT),
    (Raw("now", fault="odd", leftover="odd", whole=True), BAD, BAD, BAD),
    (Raw("fly", whole=True), CALL, CALL, CALL),
    (Raw(None, whole=True), BAD, BAD, BAD),
]


@pytest.mark.parametrize(("raw", "amid", "ended", "cut"), OUTCOMES)
def test_a_call_is_certain_by_its_own_end_or_by_what_follows_it(read, raw, amid, ended, cut):
    def outcome(text, **how):
        return [
            (type(event), getattr(event, "cut", False))
            for event in read([raw], text, **how)
            if isinstance(event, (Call, BadCall, Doubt))
        ]

    assert outcome("@call:now, and so on") == [amid]
    for end in ("", "\n", " </ca"):  # half a tag says nothing
        for step in (None, 1):
            assert outcome(f"@call:now{end}", step=step) == [ended]
            assert outcome(f"@call:now{end}", step=step, cut=True) == [cut]


def test_a_call_that_is_returned_before_the_text_has_ended_is_not_open(monkeypatch):
    """So a reader has to wait for what may follow, as the one above does."""
    monkeypatch.setattr(parse, "FAMILIES", Families(readers={MARK: lambda _: [Raw("now")]}))
    assert called(events("@call:\n", None, TOOLS, cut=True)) == [("now", {})]


def test_text_left_over_of_one_call_makes_its_whole_block_a_question(read):
    block = [Raw("now", leftover="odd"), Raw("now", whole=True)]
    answer = read(block, "@call:now")
    assert called(answer) == []
    (doubt,) = answer
    assert (doubt.text, doubt.call.name) == ("@call:now", "now")


@pytest.mark.parametrize("step", [None, 1])
def test_where_a_reader_finds_no_call_its_mark_is_prose(read, step):
    for text in ("So: @call:now.", "@call:then it is."):
        answer = read(None, text, step)
        assert (said(answer), called(answer)) == (text, [])
        assert not any(isinstance(event, Doubt) for event in answer)


def test_a_line_that_begins_with_a_mark_and_names_a_tool_is_asked_about(read):
    answer = read(None, "@call:now, it is.")
    assert [event.call.name for event in answer if isinstance(event, Doubt)] == ["now"]


def test_noise_vanishes_beside_a_call_alone(read):
    call = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    assert said(read([], f"@call:x{call}")) == ""
    assert said(read([], "@call:x")) == "@call:x"


# -- what a cursor waits for -----------------------------------------------------------------------

WAITS = [
    (Cursor.char, ["x"], [""]),
    (Cursor.space, [" x"], ["", "  "]),
    (lambda cursor: cursor.skip(re.compile(r"\s*")), ["", "  "], []),
    (lambda cursor: cursor.sees("ab", "b"), ["ab", "b", "ac"], ["", "a"]),
    (lambda cursor: cursor.accept("ab", "b"), ["ab", "b", "ac"], ["", "a"]),
    (Cursor.word, ["now ", "never", "nowhere"], ["no", "now", "tools.no"]),
    (lambda cursor: cursor.match(re.compile("a+b"), 5), ["aab", "aaaaa"], ["", "aaaa", "c"]),
    (lambda cursor: cursor.until(re.compile("b")), ["aabc"], ["aa", "aab"]),
    (Cursor.bracketed, ["(a[)])", "(a)"], ["(a", "(')"]),
    (Cursor.json, ['{"a": 1}'], ['{"a": 1', "{"]),
]


@pytest.mark.parametrize(("look", "enough", "too_little"), WAITS)
def test_a_cursor_waits_only_for_what_decides(look, enough, too_little):
    def cursor(text, *, final=False):
        return Cursor(text, 0, Judge(TOOLS), Families(), final=final)

    for text in enough:
        look(cursor(text))
    for text in too_little:
        with pytest.raises(More):
            look(cursor(text))
        look(cursor(text, final=True))


@pytest.mark.parametrize(("need", "comes"), [(";", True), ("?", False)])
def test_a_call_waits_for_the_end_of_the_answer_where_no_character_that_it_needs_comes(
    monkeypatch, need, comes
):
    def reader(cursor):
        cursor.until(re.compile(";"), need=need)
        return [Raw("now", whole=True)]

    monkeypatch.setattr(parse, "FAMILIES", Families(readers={MARK: reader}))
    parser = parse.StreamParser(TOOLS)
    text = "@call:now;;"
    before = [event for character in text for event in parser.parse_chunk(character)]
    assert len(called(before)) == comes
    assert len(called([*before, *parser.close()])) == 1
