"""No text makes a pattern, or a call, take more than its length's worth of time.

The first half asks every pattern of the package, so that a new one is asked, too; the second half
goes through the public classes. CPU time is counted, and growth rather than time, so that a busy
machine does no harm.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import pkgutil
import re
import time
import warnings
from itertools import chain, product

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from peers import Scripted, answering

import langchain_svc as svc

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    sre_parse = importlib.import_module("sre_parse")

LONG = 4000
SUSPECT = 0.01  # CPU seconds for LONG characters; linear ones take less than a millisecond
MOST = 0.5
ASKS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


def modules():
    for found in pkgutil.walk_packages(svc.__path__, "langchain_svc."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def patterns_of(value, depth=4):
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, dict):
        for one in chain(value.keys(), value.values()):
            yield from patterns_of(one, depth - 1)
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for one in value:
            yield from patterns_of(one, depth - 1)
    elif depth and inspect.isclass(value) and value.__module__.startswith("langchain_svc"):
        for one in vars(value).values():
            yield from patterns_of(one, depth - 1)
    elif depth and type(value).__module__.startswith("langchain_svc"):
        for one in getattr(value, "__dict__", {}).values():
            yield from patterns_of(one, depth - 1)


def collected():
    """Each pattern: where it is, and the ways in which it is asked."""
    found = {}
    for module in modules():
        source = inspect.getsource(module)
        for name, value in vars(module).items():
            for pattern in patterns_of(value):
                asked = {way for way in re.findall(rf"\b{name}\.(\w+)", source) if way in ASKS}
                _, known = found.get(pattern, ("", set()))
                place = f"{module.__name__}.{name}" if asked or not known else found[pattern][0]
                found[pattern] = (place, known | asked)
    return found


def literals(pattern):
    """The texts that a pattern spells out, and a letter of each of its classes."""
    texts, run = {}, []

    def flush():
        if run:
            texts.update(dict.fromkeys(("".join(run), run[-1])))
            run.clear()

    def walk(tree):
        for op, given in tree:
            if str(op) == "LITERAL":
                run.append(chr(given))
                continue
            flush()
            if str(op) == "IN":
                one = next((at for kind, at in given if str(kind) in {"LITERAL", "RANGE"}), None)
                if one is not None:
                    texts[chr(one if isinstance(one, int) else one[0])] = None
            for inner in given if isinstance(given, (tuple, list)) else (given,):
                for part in inner if isinstance(inner, list) else (inner,):
                    if isinstance(part, sre_parse.SubPattern):
                        walk(part)
                        flush()
        flush()

    walk(sre_parse.parse(pattern.pattern, pattern.flags))
    return list(texts)[:12]  # what it begins with stands first


def pumped(pattern):
    """Texts that begin as the pattern may, go on for long, and do not end as it wants."""
    own = literals(pattern)
    for fill in (" ", "\n", "\t", "a", "0", *own):
        for start in ("", *own[:6]):
            yield start, fill


def text_of(pattern, start, fill, size):
    text = (start + fill * (size // len(fill)))[:size] + "\x00"
    return text if isinstance(pattern.pattern, str) else text.encode("utf-8", "replace")


def cpu(pattern, way, text):
    ask = getattr(pattern, way)
    begun = time.process_time()
    if way in {"sub", "subn"}:
        ask("" if isinstance(text, str) else b"", text)
    elif way == "finditer":
        for _ in ask(text):
            pass
    else:
        ask(text)
    return time.process_time() - begun


def growing(pattern, ways):
    """How a pattern grows faster than its text, if it does."""
    for way, (start, fill) in product(sorted(ways or {"match"}), pumped(pattern)):
        few, many = (text_of(pattern, start, fill, size) for size in (LONG // 4, LONG))
        if cpu(pattern, way, few) < SUSPECT / 40 and cpu(pattern, way, many) < SUSPECT:
            continue
        took = [min(cpu(pattern, way, text) for _ in range(3)) for text in (few, many)]
        if took[1] > SUSPECT and took[1] > 8 * took[0]:
            return f"{way} of {start!r} + {fill!r} * n: {took[0]:.4f} s, {took[1]:.4f} s"
    return None


# Shown a few hundred letters of a text only, wherever they are asked, or bounded in every part.
WINDOWS = {
    "langchain_svc._json.reader._CLOSING_LINES",
    "langchain_svc._json.answer._FENCE_BEFORE",
    "langchain_svc._json.scalars._AMOUNT",
    "langchain_svc._toolcalls.formats._HEAD",
}
# To be repaired beside the readers that ask them.
READERS = {
    "langchain_svc._toolcalls.scanner._CLOSING",
}


def test_no_pattern_grows_faster_than_its_text():
    found = collected()
    assert len(found) > 100  # as long as they are found
    grown = {
        place: told
        for pattern, (place, ways) in found.items()
        if place not in WINDOWS | READERS and (told := growing(pattern, ways))
    }
    assert not grown


# -- through the public classes ----------------------------------------------------------------------

SIZE = 64_000
PUMPS = [
    ("<", " "), ("</", " "), ('{"', " "), ("", " "), ("", "\n"), ("", "\t\n"), ("a", "\u200b"), ("", "<"),
    ("", ">"), ("", "{"), ("", '{"'), ("", '{"a":'), ("", "["), ("", '[{"'), ("", "`"), ("", "```\n"), ("", "~~~"),
    ("", '```\n{"name":"save" '), ("", '"'), ("", "\\"), ("", '\\"'), ("", "\\u0041"), ("", "%41"), ("&#", "9"),
    ("", "&#9"), ("", "&lt;"), ("", "<tool_call>"), ("<tool_call>", " "), ("", '<tool_call>{"name": "save", '),
    ("", "[TOOL_CALLS]["), ("", "<think>"), ("", "</think>"), ("", "<|"), ("", "save "), ("", "save("), ("", "* "),
    ("", "1. "), ("", "1,"), ("<arg_key>", " "), ("", "<function=save>"), ("Action: save\n", "Action Input: "),
    ("", "data: "), ("", "sk-key "), ("", "- "), ("-", " "), ("", "."), ("", "'"),
]  # fmt: skip
FORM = {
    "title": "Form",
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "number"}},
    "required": ["a", "b"],
}


def save(text: str = "") -> str:
    """Save a text."""
    return text


def asking(text):
    """A model whose service answers so, streamed in pieces or at once."""
    return Scripted(text, step=1000).model(max_repairs=0, max_retries=0)


def given(**answer):
    """A model whose service gives this response."""
    clients = answering(lambda _: httpx.Response(**answer))
    words = {"api_key": "sk-key-0123456789", "base_url_v1": "http://127.0.0.1:9/v1"}
    return svc.ChatSvc(**words, **clients, max_retries=0)


def said_by_user(text):
    asking("ok").invoke([("system", text), ("user", text), ("ai", text), ("user", "?")])


def said_by_tool(text):
    call = {"name": "save", "args": {"text": text}, "id": "1", "type": "tool_call"}
    turns = [
        HumanMessage("?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage(text, tool_call_id="1"),
    ]
    asking("ok").bind_tools([save]).invoke(turns)


def said_of_a_tool(text):
    function = {"name": "save", "description": text, "parameters": FORM | {"description": text}}
    asking("ok").bind_tools([{"type": "function", "function": function}]).invoke("?")


def answer_with_tools(text):
    asking(text).bind_tools([save]).invoke("?")


def answer_with_form(text):
    asking(text).with_structured_output(FORM, include_raw=True).invoke("?")


def stream_with_tools(text):
    assert list(asking(text).bind_tools([save]).stream("?"))


def stream_with_form(text):
    chain = asking(text).with_structured_output(FORM)
    with contextlib.suppress(svc.SvcError):
        list(chain.stream("?"))


def stream_of_bytes(text):
    with contextlib.suppress(svc.SvcError):
        list(given(status_code=200, content=text.encode()).stream("?"))


def error_body(text):
    for body in (text, json.dumps({"error": {"message": text}})):
        with contextlib.suppress(svc.SvcError):
            given(status_code=400, content=body.encode()).invoke(text)


KINDS = [
    said_by_user, said_by_tool, said_of_a_tool, answer_with_tools, answer_with_form, stream_with_tools,
    stream_with_form, stream_of_bytes, error_body,
]  # fmt: skip


# Beginnings of values and calls without an end: linear, but each is looked at several times, and machines are busy.
BEGINNINGS = {
    "{", "[", '{"', '[{"', '{"a":', "[TOOL_CALLS][", '```\n{"name":"save" ', '<tool_call>{"name": "save", ',
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_64_kb_of_anything_cost_half_a_second_at_most(kind):
    kind("warm")
    slow = {}
    for start, fill in PUMPS:
        text = (start + fill * (SIZE // len(fill)))[:SIZE]
        most = 4 * MOST if start + fill in BEGINNINGS else MOST
        for _ in range(3):
            begun = time.process_time()
            kind(text)
            took = time.process_time() - begun
            if took <= most:
                break
        else:
            slow[start + fill] = round(took, 2)
    assert not slow


def test_a_letter_of_five_thousand_digits_is_no_letter():
    for text in ("&#" + "9" * 5000 + ";", "&#x" + "f" * 5000, "&#" + "0" * 5000 + "65;"):
        with pytest.raises(svc.SvcBadRequestError):
            given(status_code=400, json={"error": {"message": text}}).invoke("hi")
    with pytest.raises(svc.SvcBadRequestError) as raised:
        given(status_code=400, json={"error": {"message": "&#0000115;k-key-0123456789"}}).invoke(
            "x"
        )
    assert "sk-key-0123456789" not in str(raised.value)
