"""A block of a message goes out with all that it says, and without the bytes of its media."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from peers import Scripted
from share import fewer, part

from langchain_svc import SvcRequestError

CALL = AIMessage("", tool_calls=[{"name": "read", "args": {}, "id": "c"}])
AUTHORS = {
    "person": lambda blocks: [HumanMessage(blocks)],
    "system": lambda blocks: [SystemMessage(blocks), HumanMessage("?")],
    "chat": lambda blocks: [ChatMessage(role="user", content=blocks)],
    "result": lambda blocks: [HumanMessage("?"), CALL, ToolMessage(blocks, tool_call_id="c")],
}


def on_the_wire(author, *blocks):
    service = Scripted("done")
    service.model().invoke(AUTHORS[author]([*blocks]))
    return "\n".join(turn["content"] for turn in service.asked[0])


# -- media, wherever they stand --------------------------------------------------------------------


def in_base64(size, seed):
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


def uri(data, kind="application/pdf"):
    return f"data:{kind};base64,{data}"


# Each holds the base64 under a name by which a provider knows it, and beside it what is to stay.
FORMS = {
    "audio": lambda data: {"type": "audio", "base64": data, "mime_type": "audio/wav"},
    "video": lambda data: {"type": "video", "base64": data, "extras": {"fps": 24}},
    "image": lambda data: {"type": "image", "base64": data, "mime_type": "image/png", "alt": "red"},
    "file": lambda data: {"type": "file", "base64": data, "filename": "report.pdf"},
    "v0": lambda data: {"type": "file", "source_type": "base64", "data": data, "title": "Blood"},
    "image url": lambda data: {"type": "image_url", "image_url": {"url": uri(data), "detail": "low"}},
    "input audio": lambda data: {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
    "openai": lambda data: {"type": "file", "file": {"file_data": uri(data), "filename": "b.pdf"}},
    "input file": lambda data: {"type": "input_file", "file_data": uri(data), "filename": "c.pdf"},
    "anthropic": lambda data: {
        "type": "document", "title": "Scan",
        "source": {"type": "base64", "media_type": "application/pdf", "data": data},
    },
    "bedrock": lambda data: {"document": {"name": "d.pdf", "source": {"bytes": data.encode()}}},
    "gemini": lambda data: {"type": "media", "mime_type": "video/mp4", "data": data},
    "plain text": lambda data: {"type": "text-plain", "base64": data, "title": "Notes"},
    "html": lambda data: {"html": f"<p>Before <img src='{uri(data, 'image/png')}'> behind</p>"},
}  # fmt: skip
# Nothing but their length tells that these are bytes.
LONG_FORMS = {
    "mcp": lambda data: {"type": "resource", "resource": {"uri": "file:///e.bin", "blob": data}},
    "inline": lambda data: {"inline_data": {"mime_type": "image/png", "data": data}},
    "anything": lambda data: {"payload": data, "checksum": 8812},
    "in a text": lambda data: {"page": f"Before\n{data}\nbehind"},
}
REFERENCES = [
    {"type": "image", "url": "https://example.com/a.png"},
    {"type": "file", "file_id": "file-8813"},
    {"type": "document", "source": {"type": "url", "url": "https://example.com/b.pdf"}},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Words"}},
    {"type": "audio", "source_type": "id", "id": "audio-8814"},
    {"type": "text-plain", "url": "https://example.com/c.txt", "mime_type": "text/plain"},
]


def media():
    seeds = st.integers(0, 999)
    short = st.builds(in_base64, st.integers(24, 90), seeds)
    long = st.builds(in_base64, st.integers(900, 3000), seeds)
    known = st.builds(
        lambda name, data: FORMS[name](data), st.sampled_from([*FORMS]), st.one_of(short, long)
    )
    unknown = st.builds(
        lambda name, data: LONG_FORMS[name](data), st.sampled_from([*LONG_FORMS]), long
    )
    return st.one_of(known, unknown, st.sampled_from(REFERENCES))


WORDS = st.integers(10_000, 99_999).map("word{}".format)
NUMBERS = st.one_of(st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False))
TREES = st.recursive(
    st.one_of(media(), WORDS, NUMBERS, st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["content", "value", "output", "note", "x"]), inner, max_size=3
        ),
        st.builds(lambda tree: {"type": "tool_result", "content": tree}, inner),
        st.builds(lambda tree: {"type": "text", "text": "Said", "more": tree}, inner),
    ),
    max_leaves=6,
)


def leaves(value):
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def readable(leaf):
    """What must be read of a leaf, without the bytes in it."""
    if isinstance(leaf, bytes):
        return []
    if not isinstance(leaf, str):
        return [json.dumps(leaf)]
    return [
        word for word in leaf.replace(",", "\n").replace("'", "\n").split("\n") if len(word) < 30
    ]


def pieces_of_bytes(leaf):
    text = leaf.decode() if isinstance(leaf, bytes) else str(leaf)
    for piece in text.replace(",", "\n").replace("'", "\n").split("\n"):
        if len(piece) >= 30 and "://" not in piece:
            yield piece[:24]
            yield piece[-24:]


@settings(max_examples=fewer(300))
@given(st.sampled_from([*AUTHORS]), TREES)
def test_a_block_says_everything_but_the_bytes_of_its_media(author, tree):
    wire = on_the_wire(author, {"type": "custom", "value": tree})
    for leaf in leaves(tree):
        for word in readable(leaf):
            assert json.dumps(word)[1:-1] in wire or word in wire
        for piece in pieces_of_bytes(leaf):
            assert piece not in wire


@settings(max_examples=fewer(100))
@given(media())
def test_a_medium_in_a_result_leaves_a_note_that_says_all_but_its_bytes(medium):
    wire = on_the_wire("result", medium)
    for leaf in leaves(medium):
        for word in readable(leaf):
            # LangChain renames OpenAI's audio, and has the type of its files apart from their data.
            kind = word.removeprefix("input_").removeprefix("data:").removesuffix(";base64")
            assert kind in wire
        for piece in pieces_of_bytes(leaf):
            assert piece not in wire


@pytest.mark.parametrize("form", [f for f in FORMS if f != "html"])
def test_a_note_names_the_kind_and_the_size(form):
    medium = FORMS[form](in_base64(3000, 1))
    kind = medium.get("type", "document").removesuffix("_url").removeprefix("input_")
    wire = on_the_wire("result", medium)
    assert f"{kind} left out: this model takes text only]" in wire
    assert "[4,000 characters of base64]" in wire or "[4,000 bytes]" in wire
    assert on_the_wire("result", medium) == wire


@pytest.mark.parametrize("author", ["person", "system", "chat"])
@pytest.mark.parametrize("form", [f for f in FORMS if f != "html"])
def test_a_medium_of_a_person_is_refused_as_before(author, form):
    with pytest.raises(SvcRequestError, match=r"A message holds (an image|a content block)"):
        on_the_wire(author, FORMS[form](in_base64(3000, 1)))


# -- data beside a text ----------------------------------------------------------------------------

HINTS = [
    {},
    {"cache_control": {"type": "ephemeral"}},
    {"index": 3},
    {"id": "lc_1"},
    {"id": "msg_1", "index": "lc_txt_0", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    {"annotations": [], "extras": {}, "title": None, "context": ""},
]
TEXT_KINDS = ["text", "input_text", "output_text"]


@pytest.mark.parametrize("author", AUTHORS)
@pytest.mark.parametrize("hints", part(HINTS), ids=str)
@pytest.mark.parametrize("kind", [*TEXT_KINDS, "text-plain"])
def test_a_text_with_hints_for_others_is_its_text(author, hints, kind):
    block = {"type": kind, "text": 'He said "no"\nand left', **hints}
    if kind == "text-plain":
        block["mime_type"] = "text/plain"
    wire = on_the_wire(author, block)
    assert 'He said "no"\nand left' in wire
    assert '"type"' not in wire


DATA = [
    {"title": "Report", "page": 3},
    {"annotations": [{"type": "citation", "url": "https://example.com/c", "cited_text": "no"}]},
    {"citations": [{"document_title": "Report"}]},
    {"refusal": "I will not"},
    {"score": 0},
    {"final": False},
    {"mime_type": "text/csv"},
    {"extras": {"source": "ward 7"}},
]


@pytest.mark.parametrize("author", AUTHORS)
@pytest.mark.parametrize("data", part(DATA), ids=str)
@pytest.mark.parametrize("kind", [*TEXT_KINDS, "text-plain", "document", "search_result"])
def test_data_beside_a_text_goes_along_as_json(author, data, kind):
    block = {"type": kind, "text": 'He said "no"\nand left', **data}
    assert json.dumps(block) in on_the_wire(author, block)


@pytest.mark.parametrize("author", AUTHORS)
@pytest.mark.parametrize("value", [{"a": 1}, {"id": "x", "nested": [{"text": "y"}]}])
def test_a_block_of_no_standard_goes_along_whole(author, value):
    block = {"type": "non_standard", "value": value}
    assert json.dumps(block) in on_the_wire(author, block)


@pytest.mark.parametrize("text", ["ACGT" * 500, "deadbeef" * 32, "x" * 5000, "a1B" * 333])
def test_a_long_word_is_no_file(text):
    assert text in on_the_wire("person", {"type": "custom", "value": text})


def test_the_base64_of_a_plain_text_is_its_writer_s_own():
    text = f"Decode {in_base64(3000, 1)}"
    assert text in on_the_wire("person", {"type": "text", "text": text})
    assert text in on_the_wire("person", text)


def test_a_block_that_holds_itself_is_refused():
    block = {"type": "custom"}
    block["value"] = [block]
    with pytest.raises(SvcRequestError, match="'custom' holds itself"):
        on_the_wire("person", block)


def test_a_block_that_json_cannot_say_is_refused():
    with pytest.raises(SvcRequestError, match="a key is no text"):
        on_the_wire("person", {"type": "custom", "value": {(1, 2): 3}})
