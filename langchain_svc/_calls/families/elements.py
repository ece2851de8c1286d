"""Calls written as elements: `<function=name>`, `<invoke name="…">`, a tool's own tag."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from ..asked import FENCE
from ..calls import CUT_OFF, Raw, Tool
from ..cursor import Cursor
from ..judge import ARGUMENT_KEYS, NAME_KEYS
from ..marks import (
    BEFORE,
    CALL,
    LT,
    PARAM,
    PREFIX,
    SUFFIX,
    account,
    pass_blanks,
    pass_blanks_or_end,
)

# A value may hold anything, tags of calls too. So it ends at its own closing tag before another tag
# of the call; where that is missing, before the next parameter or the closing tag of the element.

_ELEMENT_HEAD = re.compile(
    rf"(?:{BEFORE})?<(?P<element>{PREFIX}{CALL})(?:=|\s{{1,20}}(?:name|tool|function)\s{{0,20}}=\s{{0,20}})"
    r"\s*[\"']?(?P<name>\w[\w.:/-]{0,99})[\"']?(?P<rest>[^<>\n]{0,200})>"
)
_TAG = re.compile(
    rf"<{PREFIX}(?:(?P<call>{CALL})|{PARAM})(?![\w-])(?:\s{{1,20}}name)?\s{{0,20}}=?\s{{0,20}}"
    r"(?:\"(?P<a>[^\"<>\n]{0,200})\"|'(?P<b>[^'<>\n]{0,200})'|(?P<c>[^\"'<>\s]{0,200}))(?P<rest>[^<>\n]{0,200})>"
)
# What says nothing of a call behind the name in its opening tag.
_ATTRIBUTES = re.compile(
    r"(?:\s{1,20}(?:id|index|type|string|xmlns)=(?:\"[^\"]{0,80}\"|'[^']{0,80}'|[\w:./-]{0,80}))*\s*/?"
)
_VALUE_CLOSER = re.compile(rf"{LT}/{PREFIX}{PARAM}>")
_OWN_TAG = re.compile(rf"{_VALUE_CLOSER.pattern}|<[^<>\n]{{0,20}}\barg_(?:key|value)\b")


@lru_cache(maxsize=64)
def _value_ends(element: str) -> tuple[re.Pattern[str], ...]:
    """What ends a parameter's value in this element, the surest first."""
    own = f"{LT}/{re.escape(element)}>" if element else rf"{LT}/{PREFIX}{CALL}>"
    return (
        re.compile(
            rf"{_VALUE_CLOSER.pattern}(?=\s{{0,200}}{LT}(?:/?{PREFIX}(?:{PARAM}|{CALL})|/tool_calls?>))"
            rf"|\n?(?={LT}{PREFIX}{PARAM}[\s=][^<>\n]{{0,200}}>)"
            rf"|(?={own}\s{{0,200}}{LT}(?!/{PREFIX}{PARAM}>))"
        ),
        re.compile(rf"{_VALUE_CLOSER.pattern}|(?={LT}/{PREFIX}{CALL}>)"),
    )


_END = re.compile(rf"</{PREFIX}(?:{CALL}|{PARAM}|arg_(?:key|value){SUFFIX})\s{{0,20}}>")
_BEFORE_TAG = re.compile(BEFORE)
_KEY = re.compile(r"<(?P<key>[^<>/\s=\"']{1,80})>")
_ANY_KEY = re.compile(r"[A-Za-z_]")
_SEPARATOR = re.compile(rf"<tool_sep{SUFFIX}>")
_ARGUMENT_KEY = re.compile(
    rf"<arg_key{SUFFIX}>\s{{0,20}}(?P<key>[^<]{{1,120}}?)\s{{0,20}}</arg_key{SUFFIX}>"
    rf"\s{{0,20}}(?:<arg_value{SUFFIX}>|(?=[^<\s]|<[^a]))"
)
_CHILD_NAME = re.compile(
    rf"<({'|'.join(NAME_KEYS)})>\s{{0,20}}(?P<name>[\w.:/-]{{1,100}})\s{{0,20}}</\1>"
)
NAME_TAGS = tuple(f"<{key}>" for key in NAME_KEYS)
_HOLDER = re.compile(rf"<({'|'.join(ARGUMENT_KEYS)})>")
_ARGUMENT_ENDS = (
    re.compile(rf"</arg_value{SUFFIX}>(?=\s{{0,200}}<(?:arg_key|/))|(?=\n<arg_key)"),
    re.compile(rf"</arg_value{SUFFIX}>|(?=</tool_call)"),
)


def named_element(cursor: Cursor) -> list[Raw] | None:
    """`<function=name>`, `<invoke name="…">` and their like; other documents have them, too."""
    head = cursor.match(_ELEMENT_HEAD, 300)
    if head is None:
        return None
    raw, ended = _arguments(cursor, head["name"], element=head["element"])
    if not (raw.arguments or cursor.judge.find(raw.name)):
        return None
    raw = replace(raw, leftover=raw.leftover or _spare(head))
    return _accounted(cursor, raw, ended=ended)


def _spare(tag: re.Match[str]) -> str:
    """What is wrong if an opening tag holds more than the name: it may be an argument."""
    if _ATTRIBUTES.fullmatch(tag["rest"]):
        return ""
    return f"{tag['rest'].strip()[:40]!r} stands in an opening tag, behind the name"


def own_element(cursor: Cursor, name: str, prefix: str = "") -> list[Raw] | None:
    """`<get_weather><city>…</city></get_weather>`, or with JSON inside."""
    pass_blanks(cursor)
    begin = cursor.at
    char = cursor.char()
    has_key = char == "<" and _own_key(cursor, name) is not None
    if char != "{" and not has_key:
        return None  # an element of a document
    cursor.at = begin
    raw, ended = _arguments(cursor, name, f"</{prefix}{name}>")
    if raw.texts or ended:
        return _accounted(cursor, raw, ended=ended)
    return None


def name_and_arguments(cursor: Cursor) -> list[Raw] | None:
    """`name`, or an element with it, then elements or JSON: GLM and many others."""
    child = cursor.match(_CHILD_NAME, 260) if cursor.char() == "<" else None
    name = child["name"] if child else cursor.word()
    is_offered = cursor.judge.find(name) is not None
    cursor.space()
    if cursor.sees("<tool_sep") and cursor.match(_SEPARATOR, 80):
        cursor.space()
    begins = is_offered if child else cursor.char() == "<"
    if not name or not begins:
        return None
    raw, ended = _arguments(cursor, name)
    if raw.arguments or raw.fault or (ended and is_offered):
        return _accounted(cursor, raw, ended=ended)
    return None


def _accounted(cursor: Cursor, raw: Raw, *, ended: bool) -> list[Raw]:
    """The call of an element; what follows an element that was not closed is left over."""
    raws = [raw]
    if not ended:
        account(cursor, raws)
    return raws


def _arguments(
    cursor: Cursor, name: str, closing: str = "", *, element: str = ""
) -> tuple[Raw, bool]:
    """The arguments up to `closing`, or up to any end of a call, and whether that end came.

    They are JSON, or an element for each argument. An element may stand around all of them.
    """
    pass_blanks(cursor)
    begin = cursor.at
    tool = cursor.judge.find(name)
    holder = cursor.match(_HOLDER, 60) if cursor.char() == "<" else None
    if holder and tool and holder[1] in tool.properties:
        holder = None  # it is an argument itself
        cursor.at = begin
    inner = f"</{holder[1]}>" if holder else closing
    if cursor.char() in ("{", "["):
        raw = with_json(cursor, name)
        pass_blanks_or_end(cursor)
        ended = _ends(cursor, inner)
    else:
        raw, ended = _elements(cursor, name, inner, element)
    if holder and ended:
        pass_blanks_or_end(cursor)
        ended = _ends(cursor, closing)
    return raw, ended


def _elements(
    cursor: Cursor, name: str, closing: str, element: str
) -> tuple[Raw, bool]:
    tool = cursor.judge.find(name)
    arguments: dict[str, str | list[str]] = {}
    raw = Raw(name, arguments, texts=True)
    while True:
        pass_blanks(cursor)
        if _ends(cursor, closing):
            return replace(raw, whole=True), True
        key, ends, spare = _argument_begins(cursor, name, element, named=bool(closing))
        if not key:
            fault = CUT_OFF if cursor.sees("<arg_key") else ""
            return replace(raw, fault=fault), False
        text, match = cursor.until(*ends)
        if match is None:
            arguments[key] = text
            return Raw(name, arguments, CUT_OFF, texts=True), False
        is_open = not match[0].strip()
        leftover = spare or _unsure_end(
            key, text, is_open=is_open, is_named=len(ends) == 1
        )
        text = _BEFORE_TAG.sub("", text)
        text = text.removeprefix("\n").removesuffix("\n")  # they belong to the tags
        earlier = arguments.get(key)
        if earlier is None:
            arguments[key] = text
        elif not _is_list(tool, key):
            leftover = leftover or f"the parameter {key[:40]!r} stands twice"
        elif isinstance(earlier, list):
            earlier.append(text)
        else:
            arguments[key] = [earlier, text]
        raw = replace(raw, leftover=raw.leftover or leftover)


def _unsure_end(key: str, text: str, *, is_open: bool, is_named: bool) -> str:
    """Why a value may end elsewhere; an element of the parameter's own name ends where it does."""
    if is_open and "<" in text:
        return f"the value of {key[:40]!r} has no closing tag"
    if not is_named and _OWN_TAG.search(text):
        return f"the value of {key[:40]!r} holds a tag of its own form"
    return ""


def _is_list(tool: Tool | None, key: str) -> bool:
    """Whether a tool wants a list here, so that a parameter may be written several times."""
    schema = tool.properties.get(key) if tool else None
    return isinstance(schema, dict) and "array" in schema.get("type", ())


def _ends(cursor: Cursor, closing: str) -> bool:
    if closing:
        return cursor.accept(closing)
    return cursor.sees("</") and cursor.match(_END, 200) is not None


def _argument_begins(
    cursor: Cursor, name: str, element: str, *, named: bool
) -> tuple[str, tuple[re.Pattern[str], ...], str]:
    """An argument's name, what ends its value, and what is left over in its opening tag.

    `named`: any element is an argument, a <function> too.
    """
    begin = cursor.at
    if cursor.sees("<arg_key"):
        pair = cursor.match(_ARGUMENT_KEY)
        return pair["key"] if pair else "", _ARGUMENT_ENDS, ""
    key = _own_key(cursor, name, other=named)
    if key:
        return key, (re.compile(f"{LT}/{re.escape(key)}>"),), ""
    tag = cursor.match(_TAG, 200) if cursor.char() == "<" else None
    if tag and not tag["call"]:
        key = tag["a"] or tag["b"] or tag["c"] or ""
        return key, _value_ends(element), _spare(tag)
    cursor.at = begin
    return "", (), ""


def _own_key(cursor: Cursor, name: str, *, other: bool = False) -> str | None:
    """The argument whose element of its own name begins here; the tool must have it, or `other`."""
    begin = cursor.at
    tool = cursor.judge.find(name)
    match = cursor.match(_KEY, 80)
    key = match["key"] if match else ""
    if other and _ANY_KEY.match(key):
        return key
    if key and tool and key in tool.properties:
        return key
    cursor.at = begin
    return None


def with_json(cursor: Cursor, name: str, *, loose: bool = False) -> Raw:
    """The call of this name with the JSON that begins here, or with none."""
    fence = cursor.match(FENCE, 60) if cursor.char() == "`" else None
    json = cursor.json() if cursor.char() in ("{", "[") else None
    if fence:
        cursor.space()
        cursor.accept("```")
    if json is None:
        return Raw(name, fault="unreadable arguments")
    return Raw(
        name,
        json.value,
        json.fault,
        loose=loose,
        whole=json.whole,
    )
