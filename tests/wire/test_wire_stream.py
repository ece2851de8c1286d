"""The stream decoder: every format, every label, every cut, every kind of damage."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from share import fewer, part

from langchain_svc._wire import About, Metadata, Text, stream
from langchain_svc._wire.stream import StreamDecoder

EVENTS = ("text/event-stream", "text/event-stream; charset=utf-8")
JSON = ("application/json", "application/x-ndjson")
LABELS = ("", *EVENTS, *JSON, "text/plain", "application/octet-stream")
TEXT = "Héllo 🇧🇷\nwörld"


def chunk(content=None, finish=None, **more):
    delta = {} if content is None else {"content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({"id": "c1", "model": "svc-pro", "choices": [choice], **more})


def sse(*events, newline="\n"):
    return "".join(f"data: {event}{newline}{newline}" for event in events).encode()


PIECES = ["Héllo ", "🇧🇷", "\nwö", "rld"]
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
SSE_CHUNKS = [chunk(""), *map(chunk, PIECES), chunk(finish="stop", usage=USAGE), "[DONE]"]
PLAIN_EVENTS = b"".join(
    b"".join(b"data: " + line.encode() + b"\n" for line in piece.split("\n")) + b"\n"
    for piece in PIECES
)
LINES = [*map(chunk, PIECES), chunk(finish="stop")]
WHOLE = {"choices": [{"index": 0, "message": {"content": TEXT}, "finish_reason": "stop"}]}
GENERAL = [
    *(json.dumps({"response": p, "done": False}) for p in PIECES),
    '{"done": true, "tokens": 9}',
]
BODIES = {
    "sse": sse(*SSE_CHUNKS),
    "sse crlf": sse(*SSE_CHUNKS, newline="\r\n"),
    "sse cr": sse(*SSE_CHUNKS, newline="\r"),
    "sse bom": b"\xef\xbb\xbf" + sse(*SSE_CHUNKS),
    "sse comments": b": hello\n\n" + sse(*SSE_CHUNKS).replace(b"\n\n", b"\n\n: ping\n\n"),
    "sse no space": sse(*SSE_CHUNKS).replace(b"data: ", b"data:"),
    "sse fields": sse(*SSE_CHUNKS).replace(b"data: ", b"id: 7\nevent: message\nretry: 10\ndata: "),
    "sse last blank line missing": sse(*SSE_CHUNKS)[:-1],
    "sse plain": PLAIN_EVENTS + b"data: [DONE]\n\n",
    "sse plain, clean end": PLAIN_EVENTS,
    "ndjson": "\n".join(LINES).encode() + b"\n",
    "ndjson crlf, no last newline": "\r\n".join(LINES).encode(),
    "ndjson general": "\n".join(GENERAL).encode(),
    "text": TEXT.encode(),
    "json": json.dumps(WHOLE).encode(),
    "json indented": json.dumps(WHOLE, indent=2).encode(),
    "json general": json.dumps({"success": True, "response": TEXT, "tokens": 5}).encode(),
}


def decode(label, *parts):
    decoder = StreamDecoder(label)
    events = [event for part in parts for event in decoder.decode(part)] + decoder.close()
    about = About()
    for event in events:
        if not isinstance(event, Text):
            about.note(event)
    text = "".join(event.text for event in events if isinstance(event, Text))
    assert about.metadata == decoder.state.metadata
    assert about.finish_reason == decoder.state.finish_reason
    return text, SimpleNamespace(**vars(about) | vars(decoder.state))


PAIRS = list(itertools.product(BODIES, LABELS))
# Events of plain text are told by their label alone, and raw text by the lack of one.
LIES = [
    (name, label)
    for name, label in PAIRS
    if (name.startswith("sse plain") and label not in EVENTS)
    or (name == "text" and label in (*EVENTS, *JSON))
]


@pytest.mark.parametrize(("name", "label"), [pair for pair in PAIRS if pair not in LIES])
def test_every_format_at_every_cut_and_one_byte_at_a_time(name, label):
    body = BODIES[name]
    cuts = [(body[:at], body[at:]) for at in range(len(body) + 1)]
    cuts = part(cuts, PAIRS.index((name, label)))
    for parts in [*cuts, [*(body[i : i + 1] for i in range(len(body))), b""]]:
        text, seen = decode(label, *parts)
        assert (text, seen.fault) == (TEXT, None), parts[0]


@pytest.mark.parametrize(("name", "label"), LIES)
def test_under_a_label_that_lies_nothing_is_made_up(name, label):
    text, seen = decode(label, BODIES[name])
    is_named = label in (*EVENTS, *JSON)
    assert text == ("" if is_named else BODIES[name].decode())
    assert bool(seen.fault) == (label in JSON)


OWN_LABEL = {"sse": "text/event-stream", "ndj": "application/x-ndjson", "jso": "application/json"}
# Whole pieces of plain text with no end mark are no different from the first of them.
ENDED = [name for name in BODIES if name[:3] in OWN_LABEL and not name.startswith("sse plain")]


@pytest.mark.parametrize("name", ENDED)
def test_the_beginning_of_an_answer_is_no_answer(name):
    for at in range(len(BODIES[name])):
        text, seen = decode(OWN_LABEL[name[:3]], BODIES[name][:at])
        assert seen.fault or text in {"", TEXT}, f"cut at {at}: {text!r}"


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(
    "body",
    [
        b'data: {"id": "c1", "mod',
        b'data:{"cho',
        b'id: 7\ndata: {"choices": [{',
        b'{"choices": [{"ind',
        b'{"success": true, "resp',
        b'{"id": "c1", "object": "chat.completion.chunk", "mo',
        b'{\n  "id": "c1",\n  "choices": [\n    {\n',
    ],
)
def test_what_surely_begins_an_answer_is_no_text(body, label):
    text, seen = decode(label, body)
    assert (text, bool(seen.fault)) == ("", True)


@pytest.mark.parametrize(
    "body",
    [b"d", b"e", b"data", b"id", b'{"name": "Bo', b'{"answer": "a', b"{", b"data: a plain line"],
)
def test_short_texts_of_a_model_are_text(body):
    text, seen = decode("text/plain", body)
    assert (text, seen.fault) == (body.decode(), None)


def test_what_a_stream_says_besides_its_text():
    _, seen = decode("text/event-stream", BODIES["sse"])
    assert seen.metadata == Metadata(model="svc-pro", id="c1")
    assert (seen.finish_reason, seen.usage) == ("stop", USAGE)
    assert seen.ended


def test_running_usage_totals_take_the_last():
    totals = ({"total_tokens": 4 + n, "prompt_tokens": 4, "completion_tokens": n} for n in (1, 2))
    body = sse(*(chunk("a", usage=usage) for usage in totals), "[DONE]")
    assert decode("", body)[1].usage["total_tokens"] == 6


@pytest.mark.parametrize("piece", ["20", "null", "{}", "[]", "true", '"quoted"', "0.5", "{", "}"])
def test_plain_pieces_that_look_like_json_are_text(piece):
    text, seen = decode("text/event-stream", sse("a", piece, "b", "[DONE]"))
    assert (text, seen.fault) == (f"a{piece}b", None)
    assert decode("text/event-stream", sse(piece, "[DONE]"))[0] == piece


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_cr_lf_and_crlf_end_a_line(separator):
    text = f"a{separator}b"
    # JSON escapes the last ones; as plain text they stand as they are.
    raw = chunk(finish="stop").replace("{}", json.dumps({"content": text}, ensure_ascii=False))
    event = text if separator in "\x0b\x0c\x1c" else raw
    assert decode("text/event-stream", sse(event, "[DONE]"))[0] == text


def test_halves_of_a_surrogate_pair_join_over_chunks():
    halves = [chunk("x"), chunk("a\ud83c"), chunk("\udde7b"), chunk(finish="stop")]
    assert decode("text/event-stream", sse(*halves))[0] == "xa🇧b"
    alone = [chunk("x"), chunk("a\ud83c"), chunk(finish="stop")]
    assert decode("text/event-stream", sse(*alone))[0] == "xa\ufffd"


@pytest.mark.parametrize("more", [{"tool_calls": []}, {"reasoning": "a"}, {"refusal": None}])
def test_the_quick_way_reads_no_chunk_that_holds_more_than_text(more):
    choice = {"index": 0, "delta": {"content": "a", **more}, "finish_reason": None}
    data = json.dumps({"choices": [choice]}).encode()
    assert stream.read_plain_chunk(chunk("a").encode()) == "a"
    assert stream.read_plain_chunk(data) is None


def test_a_type_may_be_any_json():
    body = sse('{"type": ["done"], "text": "Hi"}', "[DONE]")
    text, seen = decode("text/event-stream", body)
    assert (text, seen.fault, seen.finish_reason) == ("Hi", None, None)


def test_another_choice_is_not_mixed_in():
    other = chunk("no").replace('"index": 0', '"index": 1')
    assert decode("", sse(chunk("yes"), other, chunk(finish="stop")))[0] == "yes"


BOOM = '{"error": {"message": "boom"}}'
DAMAGED = {
    "ends without an end mark": (sse(chunk("Hi")), "Hi", "neither an end mark nor"),
    "ndjson ends without one": ((chunk("Hi") + "\n").encode(), "Hi", "neither an end mark nor"),
    "ndjson general ends without one": (b'{"response":"Hi","done":false}\n', "Hi", "neither"),
    "half an event": (sse(chunk("Hi")) + b'data: {"choices":[{"del', "Hi", "inside an event"),
    "half a line of ndjson": (
        chunk("Hi").encode() + b'\n{"choices":[{"de',
        "Hi",
        "inside an event",
    ),
    "half a plain event": (sse("Hi") + b"data: th", "Hi", "inside an event"),
    "malformed chunk": (sse(chunk("Hi"), '{"choices": [', "[DONE]"), "Hi", "malformed JSON"),
    "events without blank lines": (
        sse(chunk("Hi")) + sse(chunk("a"))[:-1] + sse("[DONE]"),
        "Hi",
        "malformed JSON",
    ),
    "malformed first chunk": (sse('{"choices": [', "[DONE]"), "", "malformed JSON"),
    "malformed line": (f"{chunk('Hi')}\n{{oops\n{chunk('x')}\n".encode(), "Hi", "malformed JSON"),
    "error object": (sse(chunk("Hi"), BOOM), "Hi", "an error"),
    "error event": (
        sse(chunk("Hi")) + b'event: error\ndata: {"message": "boom"}\n\n',
        "Hi",
        "an error",
    ),
    "error text": (sse(chunk("Hi"), '{"error": "boom"}'), "Hi", "an error"),
    "error line": (f"{chunk('Hi')}\n{BOOM}\n".encode(), "Hi", "an error"),
    "no success": (b'{"success": false, "message": "boom"}', "", "an error"),
    "error alone": (BOOM.encode(), "", "an error"),
    "half a letter": ("Hié".encode()[:-1], "Hi", "cut in half"),
    "no utf-8": (b"Hi\xff there", "Hi", "not UTF-8"),
    "unknown json": (b'{"object": "x"}', "", "unknown shape"),
    "an unknown object in an event": (
        b'data: {"foo": {"bar": "Hi"}}\n\ndata: [DONE]\n\n',
        "",
        "unknown shape",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named_after_the_text_before_it(name):
    body, text, fault = DAMAGED[name]
    label = "application/json" if name in {"unknown json", "error alone", "no success"} else ""
    if name.startswith("half a plain"):
        label = "text/event-stream"
    for at in range(len(body) + 1):
        found, seen = decode(label, body[:at], body[at:])
        assert found == text
        assert fault in (seen.fault or "")


@pytest.mark.parametrize("label", ["text/html", "application/json", "text/event-stream"])
def test_a_page_of_html_is_no_answer(label):
    text, seen = decode(label, b"<!DOCTYPE html><html><body>Sign in</body></html>")
    assert (text, seen.fault) == ("", "the answer is a page of HTML")


def test_html_as_plain_text_is_an_answer():
    assert decode("text/plain", b"<html></html>")[0] == "<html></html>"


@pytest.mark.parametrize(
    "prose",
    [
        "data: science of it\nand more",
        "data: a\n\nNot an event",
        ":) hello",
        "id: 5",
        "[1, 2]",
        '{"city": "Rome"}',
        '{"answer": 42}',
        "{ not json",
        "event",
        "  \n leading space",
        '{"id": 5,\n "name": "x"}',
        '"quoted"',
    ],
)
def test_text_that_looks_like_a_format_stays_text(prose):
    body = prose.encode()
    for at in range(len(body) + 1):
        assert decode("text/plain", body[:at], body[at:])[0] == prose


@pytest.mark.parametrize("label", LABELS)
def test_text_is_handed_on_as_soon_as_its_event_is_whole(label):
    decoder = StreamDecoder(label)
    assert decoder.decode(sse(chunk("a"))) == [Metadata("svc-pro", "c1"), Text("a")]
    assert decoder.decode(sse(chunk("b"), chunk("c"))) == [Text("b"), Text("c")]
    plain = StreamDecoder("text/plain")
    assert plain.decode(b"a b") == [Text("a b")]


@pytest.mark.parametrize("line", [b"data: x\n", b":\n", b"id: 1\r\n", b'{"id":\n', b'{"id": 1,'])
def test_a_head_that_stays_undecided_is_not_looked_at_for_every_line(line, monkeypatch):
    looked_at = []
    recognise = stream._recognise
    monkeypatch.setattr(
        stream,
        "_recognise",
        lambda head, *a, **k: looked_at.append(len(head)) or recognise(head, *a, **k),
    )
    size = 100_000
    decode("", *[line] * (size // len(line)))
    assert sum(looked_at) <= 20 * size


@pytest.mark.parametrize("filler", [10, 5_000, 50_000])
def test_an_event_is_handed_on_with_its_blank_line_however_long_it_was(filler):
    decoder = StreamDecoder("")
    parts = [b": " + b"x" * 90 + b"\n"] * (filler // 90) + [sse(chunk("Hi"))]
    events = [event for part in parts for event in decoder.decode(part)]
    assert events == [Metadata("svc-pro", "c1"), Text("Hi")]


@settings(max_examples=fewer(150), deadline=None)
@given(
    body=st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.sampled_from(
                [*(b.decode() for b in BODIES.values()), "data: ", "\n", "{", "[DONE]", "\r", ":"]
            ),
            max_size=4,
        ).map(lambda parts: "".join(parts).encode()),
    ),
    cuts=st.lists(st.integers(0, 400), max_size=6),
    label=st.sampled_from([*LABELS, "text/html"]),
)
def test_any_bytes_cut_anyhow_decode_alike_and_never_raise(body, cuts, label):
    edges = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    parts = [body[a:b] for a, b in itertools.pairwise(edges)]
    text, seen = decode(label, *parts)
    whole, seen_whole = decode(label, body)
    assert (text, vars(seen)) == (whole, vars(seen_whole))
