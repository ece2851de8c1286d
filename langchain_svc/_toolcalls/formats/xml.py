"""Calls as elements, with an element for each argument; all values are text.

A value may contain anything, its own closing tag too: a closing tag is believed where another tag
of the call follows it. A missing one is seen by the next argument.
"""

from __future__ import annotations

import re

from ..cursor import Cursor
from ..judge import CUT_OFF, MISSING, Raw
from .named import with_json

_PREFIX = r"(?:[a-z]{1,20}:|｜DSML｜)?"
_NAME = re.compile(r"\s*[\"']?(?P<name>\w[\w.:/-]*)[\"']?[^<>\n]{0,80}>")
_TAG = re.compile(
    rf"<(?P<end>/)?{_PREFIX}(?:(?P<call>function|invoke|tool_call)|parameter|param)\b"
    r"(?:\s+name)?\s*=?\s*(?:\"(?P<a>[^\"<>\n]*)\"|'(?P<b>[^'<>\n]*)'|(?P<c>[^\"'<>\s]*))[^<>\n]*>"
)
_VALUE_END = re.compile(
    rf"</{_PREFIX}param(?:eter)?>(?=\s*(?:</?{_PREFIX}(?:param|function|invoke)|</tool_call>))"
    rf"|\n?(?=<{_PREFIX}param(?:eter)?[\s=][^<>\n]*>)"
    rf"|(?=</{_PREFIX}(?:function|invoke)>\s*<)"
)
_VALUE_END_AT_LAST = re.compile(rf"</{_PREFIX}param(?:eter)?>|(?=</{_PREFIX}(?:function|invoke)>)")
_TAG_LENGTH = 200


def named_element(c: Cursor) -> list[Raw] | None:
    """`<function=name>`, `<invoke name="…">` and their like, with JSON or elements inside.

    Other documents have such elements, too: without a call in it, it must name an offered tool.
    """
    found = _element(c)
    known = found and (found[0].arguments or c.judge.find(found[0].name))
    return found if known else None


def _element(c: Cursor) -> list[Raw] | None:
    name = c.match(_NAME, _TAG_LENGTH)
    if not name:
        return None
    c.space()
    if c.char() in ("{", "["):
        raw = with_json(c, name["name"])
        c.space()
        _closing(c)
        return [raw]
    return [_with_elements(c, name["name"])]


def _with_elements(c: Cursor, name: str, closing: str = "") -> Raw:
    """A call with an element for each argument; `closing` if it ends with a tag of its own."""
    arguments: dict[str, str] = {}
    while True:
        c.space()
        if closing and c.take(closing):
            return Raw(name, arguments, texts=True, whole=True)
        found = _argument(c, name, own=bool(closing))
        if isinstance(found, bool):
            return Raw(name, arguments, texts=True, whole=found)
        key, (arguments[key], fault) = found
        if fault:
            return Raw(name, arguments, fault, texts=True)


def _argument(c: Cursor, name: str, *, own: bool) -> tuple[str, tuple[str, str]] | bool:
    """The next argument, its value and what is wrong with it; else whether the call ends here."""
    begin = c.at
    # In an element of the tool's name any element is an argument, a <function> too.
    key = _own_key(c, name, other=True) if own else None
    tag = c.match(_TAG, _TAG_LENGTH) if not key and c.char() == "<" else None
    if tag and not (tag["end"] or tag["call"]):
        return tag["a"] or tag["b"] or tag["c"] or "", _value(c)
    if key := key or (None if tag else _own_key(c, name)):
        return key, _until_closed(c, key)
    if tag and not tag["end"]:
        c.at = begin  # the next call; the end of this one was forgotten
    return bool(tag and tag["end"])


def _own_key(c: Cursor, name: str, *, other: bool = False) -> str | None:
    """The argument whose element of its own name begins here; the tool must have it, or `other`."""
    begin = c.at
    tool = c.judge.find(name)
    key = c.match(_KEY, 80)
    if key and (other or (tool and key["key"] in tool.properties)):
        return key["key"]
    c.at = begin
    return None


def _until_closed(c: Cursor, key: str) -> tuple[str, str]:
    text, found = c.until(re.compile(f"</{re.escape(key)}>"))
    return without_edges(text), "" if found else CUT_OFF


def _value(c: Cursor) -> tuple[str, str]:
    begin = c.at
    text, found = c.until(_VALUE_END)
    if not found:
        c.at = begin
        text, found = c.until(_VALUE_END_AT_LAST)
    return without_edges(text), "" if found else CUT_OFF


def _closing(c: Cursor) -> None:
    if c.char() == "<":
        begin = c.at
        tag = c.match(_TAG, _TAG_LENGTH)
        c.at = c.at if tag and tag["end"] else begin


def without_edges(text: str) -> str:
    """A value without the line ends that belong to the tags around it."""
    return text.removeprefix("\n").removesuffix("\n")


_KEY = re.compile(r"<(?P<key>[A-Za-z_][\w.-]*)>")


def own_element(c: Cursor, name: str, prefix: str = "") -> list[Raw] | None:
    """`<get_weather><city>…</city></get_weather>`, or with JSON inside."""
    closing = f"</{prefix}{name}>"
    c.space()
    if c.char() == "{":
        json = c.json()
        c.space()
        ended = c.take(closing)
        return [Raw(name, json.value, json.fault, whole=True)] if json and ended else None
    begin = c.at
    if c.char() != "<" or not _own_key(c, name):
        return None
    c.at = begin
    return [_with_elements(c, name, closing)]


_STRAY_END = re.compile(r"</arg_(?:key|value)>")
_ARGUMENT_KEY = re.compile(r"\s*<arg_key>\s*(?P<key>[^<]{1,120}?)\s*</arg_key>\s*<arg_value>")
_ARGUMENT_END = re.compile(r"</arg_value>(?=\s*(?:<arg_key>|</))|(?=\n<arg_key>)")
_ARGUMENT_END_AT_LAST = re.compile(r"</arg_value>|(?=</tool_call>)")


def arg_keys(c: Cursor) -> list[Raw] | None:
    """`name`, then `<arg_key>…</arg_key><arg_value>…</arg_value>` for each argument: GLM."""
    name = c.word()
    c.space()
    if c.judge.find(name) and c.sees("</"):
        c.match(_STRAY_END, 40)
        return [Raw(name, whole=True)]
    if not name or not c.sees("<arg_key>"):
        return None
    arguments: dict[str, str] = {}
    fault = ""
    while not fault and c.sees("<arg_key>"):
        key = c.match(_ARGUMENT_KEY)
        if not key:
            fault = CUT_OFF
            break
        begin = c.at
        text, found = c.until(_ARGUMENT_END)
        if not found:
            c.at = begin
            text, found = c.until(_ARGUMENT_END_AT_LAST)
        arguments[key["key"]], fault = without_edges(text), "" if found else CUT_OFF
        c.space()
    whole = c.sees("</tool_call>")
    return [Raw(name, arguments or MISSING, fault, texts=True, whole=whole)]
