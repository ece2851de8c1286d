"""How other model families write calls, each form with its reader. Nothing else depends on it.

Without them the parser reads the form asked for, and the model is asked about all others. So what a
reader is worth is measured by leaving it out of `FAMILIES`. `READERS` has a row for each mark of a
family with a syntax of its own. A reader begins right after the mark and returns one of these:

- The calls that it reads, up to where it leaves the cursor. `Raw` says what becomes of each. Before
  it returns a call that is not whole, it waits for what follows, as by `cursor.space()`. It asks
  `cursor.judge` itself whether a name is on offer, where the mark alone does not make a call.
- An empty list if the text up to the cursor is noise: beside a call it vanishes.
- None if this is no markup: the mark is prose, wherever the cursor stands. Where it begins a line
  and its paragraph names an offered tool, the model is asked, unless the answer has calls.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache, partial
from json import dumps

from .._json import More, read_json, split_commas
from .asked import FENCE, close, read_inside
from .calls import CUT_OFF, MISSING, Raw, Tool
from .cursor import Cursor, Families, Reader
from .judge import ARGUMENT_KEYS, NAME_KEYS, STRAY_TEXT, Judge, accounts_for
from .marks import (
    ANY_MARK,
    BEFORE,
    CALL,
    HALF_ANY_MARK,
    LT,
    MARK_FOLLOWS,
    PARAM,
    PREFIX,
    SUFFIX,
    account,
    pass_blanks,
    pass_blanks_or_end,
)

# -- elements --------------------------------------------------------------------------------------
# Calls written as elements: `<function=name>`, `<invoke name="…">`, a tool's own tag.

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
    if not (raw.arguments or cursor.judge.tool_named(raw.name)):
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
    is_offered = cursor.judge.tool_named(name) is not None
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
    tool = cursor.judge.tool_named(name)
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
    tool = cursor.judge.tool_named(name)
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
    tool = cursor.judge.tool_named(name)
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


# -- named -----------------------------------------------------------------------------------------
# A name and its arguments, as models write a call of their own: JSON, Python, ReAct, Gemma.

_FILLERS = frozenset(
    ("function", "functions", "assistant", "commentary", "code", "json", "call", "to", "recipient",
     "name", "tool", "tool_code")
)  # fmt: skip
_FILLER_BEGINS = f" {' '.join(sorted(_FILLERS))}"
_BEFORE_NAME = re.compile(r"[\s:：(\[\].=]+|\d+\b|(?P<word>[A-Za-z_]+)\b")
# What may stand around a name, a token at a time.
_HEAD_TOKEN = re.compile(
    rf"(?P<id>(?:\[[A-Z_]{{0,20}}ID\]|<[|｜]\w{{0,20}}id[|｜]>)[\w:-]{{1,80}})"
    rf"|(?P<mark>{ANY_MARK})|(?P<fence>`{{3,}}\w*)|(?P<word>[A-Za-z_][\w./-]*)"
    r"|(?P<plain>[\s:：(\[\].=]|\d+\b)"
)
_HALF_HEAD_TOKEN = re.compile(rf"(?:{HALF_ANY_MARK}|`{{1,2}})\Z")
_LONGEST_HEAD = 200
_NO_FIT = "nothing marks it as a call, and it does not fit the function"


def headed(cursor: Cursor, *, offered: bool = True) -> list[Raw] | None:
    """A name and JSON, whatever marks stand around the name: most families' own formats."""
    begin = cursor.at
    name = _head(cursor)
    if name is None or (offered and not cursor.judge.tool_named(name)):
        return None
    has_bracket = "(" in cursor.text[begin : cursor.at]
    raw = with_json(cursor, name)
    cursor.space()
    if has_bracket:
        cursor.accept("```", ")")
    else:
        cursor.accept("```")
    return [raw]


def _head(cursor: Cursor) -> str | None:
    """Pass over the one name before a brace, and what stands around it; None if there is none.

    A filler is the name only where there is no other word.
    """
    end = cursor.at + _LONGEST_HEAD
    filler: str | None = None
    name: str | None = None
    while cursor.char() != "{":
        match = _HEAD_TOKEN.match(cursor.text, cursor.at, end)
        may_grow = match is not None and match.end() == len(cursor.text)
        is_half = (
            may_grow or _HALF_HEAD_TOKEN.match(cursor.text, cursor.at, end) is not None
        )
        if is_half and not cursor.final and len(cursor.text) < end:
            raise More
        if match is None:
            return None
        cursor.at = match.end()
        word = match["word"]
        if word in _FILLERS:
            filler = filler or word
        elif word and name is not None:
            return None
        elif word:
            name = word
    return name or filler


def unmarked(cursor: Cursor) -> list[Raw] | None:
    """A call whose marks a server has taken away; prose may begin with a tool's name, too."""
    while match := _BEFORE_NAME.match(cursor.text, cursor.at):
        if match["word"] and match["word"] not in _FILLERS:
            break
        cursor.at = match.end()
    begin = cursor.at
    if not cursor.final and f" {cursor.text[begin:]}" in _FILLER_BEGINS:
        raise More
    cursor.accept("print(")
    if not cursor.judge.tool_named(cursor.word()):
        return None
    cursor.at = begin
    raws = headed(cursor)
    if raws is None:
        cursor.at = begin
        raws = python_calls(cursor)
        if raws and cursor.char() not in ("", "\n"):
            return None
    if raws and not all(map(cursor.judge.fits, raws)):
        raws[-1] = replace(raws[-1], leftover=raws[-1].leftover or _NO_FIT)
    return raws


# -- python ----------------------------------------------------------------------------------------
# Calls in Python's syntax: `name(key=value)`.

_BETWEEN = re.compile(r"[\s,;]*")
_KEYWORD = re.compile(r"(\w+)\s*=(?!=)\s*")


def python_list(cursor: Cursor) -> list[Raw] | None:
    """`[name(key=value), …]`: Llama 3.2 and 4, LFM2, BFCL's own prompt."""
    cursor.at += 1
    raws = python_calls(cursor, listed=True)
    cursor.skip(_BETWEEN)
    if raws and (cursor.accept("]") or not cursor.char()):
        return raws
    return None


def python_calls(cursor: Cursor, *, listed: bool = False) -> list[Raw] | None:
    """`name(key=value)`, one or several; in a list the first of them tells what it is."""
    raws: list[Raw] = []
    while True:
        begin = cursor.at
        cursor.skip(_BETWEEN)
        is_printed = cursor.accept("print(")
        name = cursor.word()
        is_name = cursor.judge.tool_named(name) or (listed and raws)
        raw = _call(cursor, name) if is_name and cursor.char() == "(" else None
        if raw is None:
            cursor.at = begin
            return raws or None
        raws.append(raw)
        if is_printed:
            cursor.accept(")")


def _call(cursor: Cursor, name: str) -> Raw | None:
    """The call whose arguments stand in the parenthesis here."""
    text, is_closed = cursor.bracketed()
    body = text[1:-1] if is_closed else text[1:]
    keywords = _keywords(name, body, cursor.judge)
    if keywords is None:
        return None
    arguments, leftover = keywords
    fault = "" if is_closed else CUT_OFF
    return Raw(name, arguments, fault, whole=is_closed, leftover=leftover)


def _keywords(
    name: str, body: str, judge: Judge
) -> tuple[dict[str, object], str] | None:
    """The arguments, and what is left over; None if it is code with variables, and no call."""
    tool = judge.tool_named(name)
    order = list(tool.properties) if tool else []
    arguments: dict[str, object] = {}
    leftover = ""
    for place, part in enumerate(split_commas(body)):
        keyword = _KEYWORD.match(part)
        text = part[keyword.end() :] if keyword else part
        value, is_literal, is_sure = _python_value(text)
        if keyword and (is_literal or "(" not in text):
            key = keyword[1]
        elif is_literal and place < len(order):
            key = order[place]
        else:
            return None
        if key in arguments:
            leftover = f"the parameter {key[:40]!r} stands twice"
        elif not is_sure:
            leftover = STRAY_TEXT
        arguments[key] = value
    return arguments, leftover


_MORE_THAN_A_WORD = re.compile(r"[\s'\"]")


def _python_value(text: str) -> tuple[object, bool, bool]:
    """An argument's value, whether it is a literal and not a word, and if nothing is left over."""
    source = f"[{text}]"  # a bare word or number is a value only within a list
    json = read_json(source)
    items = json.value if json and isinstance(json.value, list) else []
    if len(items) == 1 and (text[0] in "\"'" or items[0] != text):
        return items[0], True, accounts_for(source, items)
    return text, False, not _MORE_THAN_A_WORD.search(text)


# -- gemma -----------------------------------------------------------------------------------------
# Gemma's and FunctionGemma's own syntax of calls.

_GEMMA_HEAD = re.compile(r"\s*call:\s*(?P<name>[\w.:/-]+)\s*(?=\{)")
_GEMMA_QUOTE = re.compile(r"<\|\"\|>|<escape>")
_GEMMA_END = re.compile(
    r"<tool_call\|>|<end_function_call>|<turn\|>|(?=<\|tool_call>|<start_function_call>)"
)


def gemma(cursor: Cursor) -> list[Raw] | None:
    """`<|tool_call>call:name{…}<tool_call|>`, and FunctionGemma's `<start_function_call>`."""
    head = cursor.match(_GEMMA_HEAD)
    if not head:
        return None
    parts = _GEMMA_QUOTE.split(cursor.until(_GEMMA_END)[0])
    # Every second part stood between two marks, so it is a string.
    parts[1::2] = map(dumps, parts[1::2])
    text = "".join(parts)
    parsed = read_json(text)
    if parsed is None:
        return [Raw(head["name"], fault="unreadable arguments")]
    is_open = len(parts) % 2 == 0
    fault = CUT_OFF if is_open or parsed.cut_in_value else parsed.spare
    is_all = accounts_for(text, parsed.value)
    return [
        Raw(
            head["name"],
            parsed.value,
            fault,
            whole=parsed.complete,
            leftover="" if is_all else STRAY_TEXT,
        )
    ]


# -- react -----------------------------------------------------------------------------------------
# Steps of ReAct: `Action:` with a name, `Action Input:` with its arguments.

_EDGE = re.compile(r"[*`'\" \t\r]*")
_INPUT = re.compile(r"\*{0,3}Action Input\s{0,20}\*{0,3}:?[ \t*]*", re.IGNORECASE)
_INPUT_WORDS = ("Action Input", "**Action Input", "Action input", "action input")
_NEXT_STEP = re.compile(r"(?=\n[ \t*]*(?:Observation|Thought|Action|Final Answer)\**:)")
_LINE_END = re.compile(r"(?=\n)")


def react(cursor: Cursor) -> list[Raw] | None:
    """`Action: name`, `Action Input: …` as JSON or a plain text; `Action: search[Oslo]`."""
    cursor.skip(_EDGE)
    begin = cursor.at
    name = cursor.word()
    if cursor.judge.tool_named(name) and cursor.char() == "[":
        text = cursor.until(_LINE_END, need="\n")[0].strip("*`'\" \t\r")
        if not text.endswith("]"):
            return None
        return [Raw(name, text[1:-1], loose=True, whole=True)]
    cursor.skip(_EDGE)
    if not cursor.judge.tool_named(name) or cursor.char() not in ("\n", ""):
        cursor.at = begin
        return unmarked(cursor)
    cursor.space()
    if not cursor.sees(*_INPUT_WORDS):
        return [Raw(name)] if cursor.sees("Observation:") else None
    cursor.skip(_INPUT)
    begin = cursor.at
    cursor.space()
    raw = with_json(cursor, name, loose=True)
    if raw.arguments is MISSING:
        cursor.at = begin
        text = cursor.until(_NEXT_STEP, need=":")[0].strip()
        raw = Raw(name, text, loose=True)
        if text[:3] in ("`", "``", "```"):  # a fence that was to hold JSON
            raw = Raw(name, text, CUT_OFF, loose=True)
    return [raw]


# -- the readers -----------------------------------------------------------------------------------
# What stands after any other mark, and which reader reads what.

_COMMENTARY = "<|channel|>commentary "
_SPEAKS_OF_TOOLS = ("<tool>", "<tools>", _COMMENTARY)  # other texts have these, too


def marked(cursor: Cursor, mark: str) -> list[Raw] | None:
    """What stands after the mark of any family; the mark alone is dropped before another one."""
    begin = cursor.at
    is_sure = mark not in _SPEAKS_OF_TOOLS
    pass_blanks(cursor)
    raws = read_inside(cursor, tagged=is_sure)
    if not raws:
        cursor.at = begin
        raws = headed(cursor, offered=not is_sure)
    if not raws:
        cursor.at = begin
        pass_blanks(cursor)
        is_dropped = mark[1] in "|｜" or cursor.match(MARK_FOLLOWS, 80)
        cursor.at = begin
        return [] if is_dropped else None
    # Special tokens and brackets often have no closer, elements have one.
    is_element = mark[0] == "<" and mark[1].isalpha()
    close(cursor, raws, mark[1:-1], demanded=is_element)
    return raws


def _inside(cursor: Cursor) -> list[Raw] | None:
    """What stands after a mark and is no JSON."""
    begin = cursor.at
    if cursor.char() == "<":
        raws = name_and_arguments(cursor) if cursor.sees(*NAME_TAGS) else None
        if not raws:
            cursor.at = begin
        return raws
    for reader in (name_and_arguments, python_calls, headed):
        cursor.at = begin
        raws = reader(cursor)
        if raws:
            return raws
    return None


READERS: dict[str, Reader] = {
    "<|tool_call>": gemma,
    "<start_function_call>": gemma,
    "Action:": react,
    _COMMENTARY: partial(marked, mark=_COMMENTARY),
}
FAMILIES = Families(
    readers=READERS,
    marked=marked,
    inside=_inside,
    named_element=named_element,
    own_element=own_element,
    listed=python_list,
    code=python_calls,
    unmarked=unmarked,
    loose=frozenset((react,)),
)
