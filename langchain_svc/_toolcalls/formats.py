"""How calls are written: the marks that families put around them, and a reader for each form.

A mark is `<|...|>`, `<｜...｜>`, `<seed:tool_call>`, `[TOOL_REQUEST]` or `✿ARGS✿` whose name has a
word of calls in it; its name also shows whether it opens, closes or begins a result. `READERS` has
the families that differ. A reader begins right after the mark and returns the calls it reads; an
empty list if the text is only noise around calls, None if this is not markup at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from json import dumps

from .._json import HALF_MARK, NATIVE, NATIVE_ENDS, SPOKEN, Markers, read_json
from .calls import Tool
from .cursor import CUT_OFF, MISSING, Cursor, More, split_commas
from .judge import (
    ARGUMENT_KEYS,
    CONTAINER_KEYS,
    NAME_KEYS,
    SIDE_KEYS,
    Judge,
    Raw,
    calls_in,
    fold_key,
)

Reader = Callable[[Cursor], "list[Raw] | None"]

# -- marks ----------------------------------------------------------------------------------------

_N = r"[\w:▁.-]"
_WORD = r"(?:[Tt]ool|TOOL|[Ff]unc|FUNC|[Cc]all|CALL|[Aa]ction|ACTION|[Pp]lugin|[Ii]nvoke|recipient|python_(?:tag|start|end))"  # noqa: E501
_NAMED = rf"{_N}{{0,30}}?{_WORD}{_N}{{0,30}}"
# What DeepSeek writes into each tag, and MiniMax before it; it means nothing.
_DSML = r"[|｜]{1,3} ?DSML ?[|｜]{1,3} ?"
_BEFORE = r"\]<\][\w-]{1,20}\[>\[(?=<)"
# Each begins with a character of its own, so that the search for all of them stays fast.
CALL_MARK = re.compile(
    rf"<(?:/?{_DSML}|[|｜]?/?[|｜]?){_NAMED}[|｜]?(?:>|(?=\n[ \t]{{0,20}}<))"
    r"|\[/?[A-Z_]{0,20}(?:TOOL|CALL|FUNCTION|ACTION)[A-Z_]{0,20}\]|\[/?(?:tool|function)_calls?\]"
    r"|✿[A-Z]{2,12}✿"
)
# The one grammar of an element that calls: a prefix, a word, a suffix, and the name by `=` or an
# attribute.
_PREFIX = rf"(?:[a-z]{{1,20}}:|{_DSML})?"
_SUFFIX = r"(?::[\w-]{1,40})?"
_NOUN = r"(?:[_-]?(?:call|use|request|record|invocation))?"
_CALL = rf"(?:(?:tool|function|action|call|invoke){_NOUN}{_SUFFIX})"
_PARAM = rf"(?:(?:param|parameter|arg|argument){_SUFFIX})"
_ELEMENT = rf"<{_PREFIX}{_CALL}"
# An element up to the name of the tool that it calls.
_NAMED_ELEMENT = re.compile(
    rf"{_ELEMENT}(?:=|\s{{1,20}}(?:name|tool|function)\s{{0,20}}=\s{{0,20}})"
)
# What may still become a mark, at the end of a text that goes on.
_HALF_MARK = re.compile(
    r"<[|｜]{0,3}/?[|｜]{0,3}[\w:▁.|｜-]{0,60}(?:\n[ \t]{0,20})?\Z"
    r"|</?[|｜]{1,3} ?(?:D?S?M?|DSML ?[|｜]{0,3} ?[\w:-]{0,40})\Z"
    rf"|{_ELEMENT}\s{{1,20}}\w{{0,8}}\s{{0,20}}\Z|\[/?(?:[A-Z_]{{0,40}}|[a-z_]{{0,14}})\Z"
    r"|✿[A-Z]{0,12}\Z|~{1,2}\Z|\]<?\]?[\w-]{0,20}\[?>?\[?<?\Z"
)
# Any special token, between a name and its arguments.
_ANY_MARK = r"<[|｜][^<>{}\n]{1,60}>|\[[A-Z_]{2,30}\]|✿[A-Z]{2,12}✿"
CLOSING = re.compile(r"/|<\|call\|>|(?:\b|[_▁|｜])(?:end|END|suffix|stop)(?:\b|[_▁|｜])")
# A result that the model made up, or another's turn that it began: nothing after it counts.
RESULT = re.compile(r"(?i)response|result|output|observation|<\|(?:im_start|start_header)")
_UNSURE = ("<xml>", "<|channel|>commentary ", "<|start|>assistant")
_SPEAKS_OF_TOOLS = ("<tool>", "<tools>", *_UNSURE)  # other texts have these, too


# -- what stands after a mark ---------------------------------------------------------------------

_FENCE = re.compile(r"`{3,}[ \t]*\w*\s*(?=[^\s`])")
_SPILL = re.compile(r"[\s}\])]*")  # closers too many
_SPOKEN_OF = re.compile(r"[^\n{}\[\]()<>=:\"]+(?:\Z|[;.,])")  # as in: <tool_call> and </tool_call>
_MARK_FOLLOWS = re.compile(f"{CALL_MARK.pattern}|{_NAMED_ELEMENT.pattern}")
_OWN_END = re.compile(r"</?tool_call>|\n[ \t]*\n|<tool_response")
_NEXT = re.compile(f"{_MARK_FOLLOWS.pattern}|{_ANY_MARK}|</?tool_res|</?think")
_CLOSER = re.compile(rf"</{_PREFIX}(?:{_CALL})s?>")
_STRAY_TEXT = "it holds text that is neither a key nor a value"
_NO_CLOSER = "its closing tag is missing, and text follows"
_FARTHEST_CLOSER = 4_000  # characters behind what is left over


def own(c: Cursor) -> list[Raw] | None:
    """`<tool_call>{"name": …, "arguments": …}</tool_call>`, or whatever stands in these tags."""
    c.space()
    begin = c.at
    if c.take("</tool_call>"):
        return [Raw(None, fault="the block is empty", whole=True)]
    raws = _inside(c, tagged=True)
    if raws:
        _close(c, raws, demanded=True)
        closed = c.text[begin : c.at].rstrip().endswith("</tool_call>")
        if closed and raws[-1].fault == CUT_OFF:  # the text is not cut: the model can be told
            raws[-1] = replace(raws[-1], fault="a value in it does not end", whole=True)
        return raws
    if raws is not None and _is_next(c):
        return raws
    return _unread(c, begin)


def _unread(c: Cursor, begin: int) -> list[Raw] | None:
    """What stands in our own tags and is a call in no format; tags alone were only spoken of."""
    c.at = begin
    text, end = c.until(_OWN_END, need=">\n")
    name = c.judge.named_in(text)
    if _SPOKEN_OF.match(text) and not name:
        return None
    fault = "this is not a JSON object with a name and arguments"
    if end is not None and end[0] == "</tool_call>":
        return [Raw(None, fault=fault, whole=True)]
    if not text.strip() and end is None:
        return [Raw(None, fault=CUT_OFF)]
    c.at = begin
    return [Raw(name, spare=fault)] if name else None


def marked(c: Cursor, mark: str) -> list[Raw] | None:
    """What stands after the mark of any family; the mark alone is dropped before another one."""
    begin, sure = c.at, mark not in _SPEAKS_OF_TOOLS
    c.space()
    raws = _inside(c, tagged=sure) or None
    if raws is None:
        c.at = begin
        raws = headed(c, offered=not sure)
    if raws is None:
        c.at = begin
        c.space()
        dropped = mark[1] in "|｜" or c.match(_MARK_FOLLOWS, 80)
        c.at = begin
        return [] if dropped else None
    # Special tokens and brackets often have no closer, elements have one.
    _close(c, raws, demanded=mark[0] == "<" and mark[1].isalpha())
    return raws


def _inside(c: Cursor, *, tagged: bool) -> list[Raw] | None:
    """The calls that begin here; empty if another opening tag stands here."""
    fence = c.match(_FENCE, 60) if c.char() == "`" else None
    char, begin, raws = c.char(), c.at, None
    if char == "<":
        raws = _name_and_arguments(c) if c.sees(*_NAME_TAGS) else None
        c.at = c.at if raws else begin
        return raws or []
    if char in ("{", "["):
        raws = bare(c, tagged=tagged)
    else:
        for reader in (_name_and_arguments, _python, headed):
            c.at = begin
            raws = reader(c)
            if raws:
                break
    if fence:
        c.space()
        c.take("```")
    return raws


def _close(c: Cursor, raws: list[Raw], *, demanded: bool) -> None:
    """Pass over brackets too many and the closing tag; what stands before it is left over.

    `demanded`: the form has a closing tag, so without one the call ends only where the answer does
    or another call begins.
    """
    begin = c.at
    c.skip(_SPILL)
    closing = c.match(CALL_MARK, 80) if c.char() in ("<", "[", "✿") else None
    if closing and CLOSING.search(closing[0]):
        return
    c.at = begin
    if demanded or raws[-1].repaired:
        _account(c, raws, closing)


def _account(c: Cursor, raws: list[Raw], another: object = None) -> None:
    """Say of the last call that text follows it which belongs to no part of it."""
    begin = c.at
    c.skip(_SPILL)
    if another or not c.char() or raws[-1].fault or raws[-1].spare or _is_next(c):
        c.at = begin
        return
    raws[-1] = replace(raws[-1], spare=_NO_CLOSER)
    c.at = begin
    _pass_closer(c)


def _is_next(c: Cursor) -> bool:
    """Whether another call begins here, or the turn ends; the cursor stays."""
    if c.char() not in ("<", "[", "✿"):
        return False
    begin = c.at
    match = c.match(_NEXT, 120)
    c.at = begin
    return match is not None or c.sees(*(f"<{name}>" for name in c.judge.names))


def _pass_closer(c: Cursor) -> None:
    """Go behind the closing tag of a call that holds text which nobody reads, if one comes soon."""
    match = _CLOSER.search(c.text, c.at, c.at + _FARTHEST_CLOSER)
    if match is None and not c.final and len(c.text) - c.at < _FARTHEST_CLOSER:
        raise More(">")
    opening = _MARK_FOLLOWS.search(c.text, c.at, match.start()) if match else None
    if match and opening is None:
        c.at = match.end()


def _json_calls(c: Cursor, *, tagged: bool) -> list[Raw] | None:
    begin = c.at
    json = c.json(lines=not tagged)
    if json is None:
        return None
    raws = calls_in(json.value, c.judge, tagged=tagged)
    if raws is None and json.fault:
        c.at = begin  # other calls may stand in what was left open
    if raws:
        fault = raws[-1].fault or json.fault
        raws[-1] = replace(raws[-1], fault=fault, whole=json.whole)
    if raws and json.repaired:
        raws = [replace(raw, repaired=True) for raw in raws]
    return raws


def _functools(c: Cursor) -> list[Raw] | None:
    """`functools[{…}, …]`: Phi-4 mini."""
    c.at -= 1
    return _json_calls(c, tagged=True)


# -- a name, some marks, and JSON -----------------------------------------------------------------

_FILLERS = frozenset(
    ("function", "functions", "assistant", "commentary", "code", "json", "call", "to", "recipient",
     "name", "tool", "tool_code")
)  # fmt: skip
_FILLER_BEGINS = f" {' '.join(sorted(_FILLERS))}"
_BEFORE_NAME = re.compile(r"[\s:：(\[\].=]+|\d+\b|(?P<word>[A-Za-z_]+)\b")
# What may stand around a name, a token at a time.
_HEAD_TOKEN = re.compile(
    rf"(?P<id>(?:\[[A-Z_]{{0,20}}ID\]|<[|｜]\w{{0,20}}id[|｜]>)[\w:-]{{1,80}})"
    rf"|(?P<mark>{_ANY_MARK})|(?P<fence>`{{3,}}\w*)|(?P<word>[A-Za-z_][\w./-]*)"
    r"|(?P<plain>[\s:：(\[\].=]|\d+\b)"
)
_HALF_HEAD_TOKEN = re.compile(r"(?:<[|｜][^<>{}\n]{0,60}|<|\[[A-Z_]{0,30}|✿[A-Z]{0,12}|`{1,2})\Z")
_LONGEST_HEAD = 200


def headed(c: Cursor, *, offered: bool = True) -> list[Raw] | None:
    """A name and JSON, whatever marks stand around the name: most families' own formats."""
    begin = c.at
    name = _head(c)
    if name is None or (offered and not c.judge.find(name)):
        return None
    bracketed = "(" in c.text[begin : c.at]
    raw = _with_json(c, name)
    c.space()
    c.take("```", *([")"] if bracketed else []))
    return [raw]


def _head(c: Cursor) -> str | None:
    """Pass over the one name before a brace, and what stands around it; None if there is none.

    A filler is the name only where there is no other word.
    """
    end = c.at + _LONGEST_HEAD
    filler: str | None = None
    name: str | None = None
    while c.char() != "{":
        match = _HEAD_TOKEN.match(c.text, c.at, end)
        may_grow = match is not None and match.end() == len(c.text)
        if may_grow or _HALF_HEAD_TOKEN.match(c.text, c.at, end):
            if not c.final and len(c.text) < end:
                raise More
        if match is None:
            return None
        c.at = match.end()
        if word := match["word"]:
            if word in _FILLERS:
                filler = filler or word
            elif name is not None:
                return None
            else:
                name = word
    return name or filler


def _with_json(c: Cursor, name: str, *, loose: bool = False) -> Raw:
    fence = c.match(_FENCE, 60) if c.char() == "`" else None
    json = c.json() if c.char() in ("{", "[") else None
    if fence:
        c.space()
        c.take("```")
    if json is None:
        return Raw(name, fault="unreadable arguments")
    return Raw(name, json.value, json.fault, loose=loose, whole=json.whole, repaired=json.repaired)


def unmarked(c: Cursor) -> list[Raw] | None:
    """A call whose marks a server has taken away; prose may begin with a tool's name, too."""
    while (match := _BEFORE_NAME.match(c.text, c.at)) and (
        not match["word"] or match["word"] in _FILLERS
    ):
        c.at = match.end()
    begin = c.at
    if not c.final and f" {c.text[begin:]}" in _FILLER_BEGINS:
        raise More
    c.take("print(")
    if not c.judge.find(c.word()):
        return None
    c.at = begin
    raws = headed(c)
    if raws is None:
        c.at = begin
        raws = _python(c)
        if raws and c.char() not in ("", "\n"):
            return None
    return raws if raws and all(c.judge.fits(raw) for raw in raws) else None


_EDGE = re.compile(r"[*`'\" \t\r]*")
_INPUT = re.compile(r"\**Action Input\s*\**:?[ \t*]*", re.IGNORECASE)
_INPUT_WORDS = ("Action Input", "**Action Input", "Action input", "action input")
_NEXT_STEP = re.compile(r"(?=\n[ \t*]*(?:Observation|Thought|Action|Final Answer)\**:)")
_LINE_END = re.compile(r"(?=\n)")


def _react(c: Cursor) -> list[Raw] | None:
    """`Action: name`, `Action Input: …` as JSON or a plain text; `Action: search[Oslo]`."""
    c.skip(_EDGE)
    begin = c.at
    name = c.word()
    if c.judge.find(name) and c.char() == "[":
        text = c.until(_LINE_END, need="\n")[0].strip("*`'\" \t\r")
        return [Raw(name, text[1:-1], loose=True)] if text.endswith("]") else None
    c.skip(_EDGE)
    if not c.judge.find(name) or c.char() not in ("\n", ""):
        c.at = begin
        return unmarked(c)
    c.space()
    if not c.sees(*_INPUT_WORDS):
        return [Raw(name)] if c.sees("Observation:") else None
    c.skip(_INPUT)
    begin = c.at
    c.space()
    raw = _with_json(c, name, loose=True)
    if raw.arguments is MISSING:
        c.at = begin
        text = c.until(_NEXT_STEP, need=":")[0].strip()
        cut = text[:3] in ("`", "``", "```")  # in a fence that was to hold JSON
        return [Raw(name, text, CUT_OFF if cut else "", loose=True)]
    return [raw]


_GEMMA_HEAD = re.compile(r"\s*call:\s*(?P<name>[\w.:/-]+)\s*(?=\{)")
_GEMMA_QUOTE = re.compile(r"<\|\"\|>|<escape>")
_GEMMA_END = re.compile(
    r"<tool_call\|>|<end_function_call>|(?=<\|tool_call>|<start_function_call>)"
)


def _gemma(c: Cursor) -> list[Raw] | None:
    """`<|tool_call>call:name{…}<tool_call|>`, and FunctionGemma's `<start_function_call>`."""
    head = c.match(_GEMMA_HEAD)
    if not head:
        return None
    parts = _GEMMA_QUOTE.split(c.until(_GEMMA_END)[0])
    # Every second part stood between two marks.
    found = read_json("".join(dumps(part) if at % 2 else part for at, part in enumerate(parts)))
    if found is None:
        return [Raw(head["name"], fault="unreadable arguments")]
    cut = len(parts) % 2 == 0 or found.cut_in_value
    fault = CUT_OFF if cut else found.spare
    return [Raw(head["name"], found.value, fault, whole=found.complete, repaired=True)]


# -- Python's syntax ------------------------------------------------------------------------------

_BETWEEN = re.compile(r"[\s,;]*")
_KEYWORD = re.compile(r"(\w+)\s*=(?!=)\s*")


def _python_list(c: Cursor) -> list[Raw] | None:
    """`[name(key=value), …]`: Llama 3.2 and 4, LFM2, BFCL's own prompt."""
    c.at += 1
    found = _python(c, listed=True)
    c.skip(_BETWEEN)
    return found if found and (c.take("]") or not c.char()) else None


def _python(c: Cursor, *, listed: bool = False) -> list[Raw] | None:
    """`name(key=value)`, one or several; in a list the first of them tells what it is."""
    found: list[Raw] = []
    while True:
        begin = c.at
        c.skip(_BETWEEN)
        printed = c.take("print(")
        name = c.word()
        offered = c.judge.find(name) or (listed and found)
        text, closed = c.bracketed() if offered and c.char() == "(" else ("", False)
        arguments = _keywords(name, text[1:-1] if closed else text[1:], c.judge) if text else None
        if arguments is None:
            c.at = begin
            return found or None
        found.append(Raw(name, arguments, "" if closed else CUT_OFF, whole=closed))
        if printed:
            c.take(")")


def _keywords(name: str, body: str, judge: Judge) -> dict[str, object] | None:
    """The arguments; None if this is a call of code that has variables, not of a tool."""
    tool = judge.find(name)
    order = list(tool.properties) if tool else []
    arguments: dict[str, object] = {}
    for place, part in enumerate(split_commas(body)):
        keyword = _KEYWORD.match(part)
        text = part[keyword.end() :] if keyword else part
        json = read_json(f"[{text}]")  # a list makes a value of its own of a bare word or number
        items = json.value if json and isinstance(json.value, list) else []
        value = items[0] if len(items) == 1 else text
        literal = len(items) == 1 and (text[0] in "\"'" or value != text)
        if keyword and (literal or "(" not in text):
            key = keyword[1]
        elif literal and place < len(order):
            key = order[place]
        else:
            return None
        if key in arguments:
            return None  # not even Python takes it
        arguments[key] = value
    return arguments


# -- elements -------------------------------------------------------------------------------------
# A value may hold anything, tags of calls too. So it ends at its own closing tag before another tag
# of the call; where that is missing, before the next parameter or the closing tag of the element.

_ELEMENT_HEAD = re.compile(
    rf"(?:{_BEFORE})?<(?P<element>{_PREFIX}{_CALL})(?:=|\s{{1,20}}(?:name|tool|function)\s{{0,20}}=\s{{0,20}})"
    r"\s*[\"']?(?P<name>\w[\w.:/-]*)[\"']?[^<>\n]{0,80}>"
)
_TAG = re.compile(
    rf"<{_PREFIX}(?:(?P<call>{_CALL})|{_PARAM})(?![\w-])(?:\s{{1,20}}name)?\s{{0,20}}=?\s{{0,20}}"
    r"(?:\"(?P<a>[^\"<>\n]{0,200})\"|'(?P<b>[^'<>\n]{0,200})'|(?P<c>[^\"'<>\s]{0,200}))[^<>\n]{0,200}>"
)
_LT = rf"(?:{_BEFORE})?<"
_VALUE_CLOSER = re.compile(rf"{_LT}/{_PREFIX}{_PARAM}>")


@lru_cache(maxsize=64)
def _value_ends(element: str) -> tuple[re.Pattern[str], ...]:
    """What ends a parameter's value in this element, the surest first."""
    own = f"{_LT}/{re.escape(element)}>" if element else rf"{_LT}/{_PREFIX}{_CALL}>"
    return (
        re.compile(
            rf"{_VALUE_CLOSER.pattern}(?=\s{{0,200}}{_LT}(?:/?{_PREFIX}(?:{_PARAM}|{_CALL})|/tool_calls?>))"
            rf"|\n?(?={_LT}{_PREFIX}{_PARAM}[\s=][^<>\n]{{0,200}}>)"
            rf"|(?={own}\s{{0,200}}{_LT}(?!/{_PREFIX}{_PARAM}>))"
        ),
        re.compile(rf"{_VALUE_CLOSER.pattern}|(?={_LT}/{_PREFIX}{_CALL}>)"),
    )


_END = re.compile(rf"</{_PREFIX}(?:{_CALL}|{_PARAM}|arg_(?:key|value))(?![\w-])[^<>\n]{{0,200}}>")
_BLANKS = re.compile(rf"(?:\s|{_BEFORE})*")
_HALF_BEFORE = re.compile(r"\]<?\]?[\w-]{0,20}\[?>?\[?\Z")
_KEY = re.compile(r"<(?P<key>[^<>/\s=\"']{1,80})>")
_ANY_KEY = re.compile(r"[A-Za-z_]")
_SEPARATOR = re.compile(rf"<tool_sep{_SUFFIX}>")
_ARGUMENT_KEY = re.compile(
    rf"<arg_key{_SUFFIX}>\s{{0,20}}(?P<key>[^<]{{1,120}}?)\s{{0,20}}</arg_key{_SUFFIX}>"
    rf"\s{{0,20}}(?:<arg_value{_SUFFIX}>|(?=[^<\s]|<[^a]))"
)
_CHILD_NAME = re.compile(
    rf"<({'|'.join(NAME_KEYS)})>\s{{0,20}}(?P<name>[\w.:/-]{{1,100}})\s{{0,20}}</\1>"
)
_NAME_TAGS = tuple(f"<{key}>" for key in NAME_KEYS)
_HOLDER = re.compile(rf"<({'|'.join(ARGUMENT_KEYS)})>")
_ARGUMENT_ENDS = (
    re.compile(rf"</arg_value{_SUFFIX}>(?=\s{{0,200}}<(?:arg_key|/))|(?=\n<arg_key)"),
    re.compile(rf"</arg_value{_SUFFIX}>|(?=</tool_call)"),
)


def named_element(c: Cursor) -> list[Raw] | None:
    """`<function=name>`, `<invoke name="…">` and their like; other documents have them, too."""
    head = c.match(_ELEMENT_HEAD, 300)
    if head is None:
        return None
    raw = _arguments(c, head["name"], element=head["element"])
    if not (raw.arguments or c.judge.find(raw.name)):
        return None
    return _accounted(c, raw)


def own_element(c: Cursor, name: str, prefix: str = "") -> list[Raw] | None:
    """`<get_weather><city>…</city></get_weather>`, or with JSON inside."""
    _space(c)
    begin, char, closing = c.at, c.char(), f"</{prefix}{name}>"
    if char != "{" and not (char == "<" and _own_key(c, name)):
        return None
    c.at = begin
    raw = _arguments(c, name, closing)
    if not (raw.texts or c.text.endswith(closing, begin, c.at)):
        return None
    return _accounted(c, raw)


def _name_and_arguments(c: Cursor) -> list[Raw] | None:
    """`name`, or an element with it, then elements or JSON: GLM and many others."""
    child = c.match(_CHILD_NAME, 260) if c.char() == "<" else None
    name = child["name"] if child else c.word()
    offered = c.judge.find(name)
    c.space()
    if c.sees("<tool_sep") and c.match(_SEPARATOR, 80):
        c.space()
    if not name or not (offered if child else c.char() == "<"):
        return None
    raw = _arguments(c, name)
    if raw.arguments or raw.fault or (raw.whole and offered):
        return _accounted(c, raw)
    return None


def _accounted(c: Cursor, raw: Raw) -> list[Raw]:
    """The call of an element; what follows an element that was not closed is left over."""
    raws = [raw]
    if not raw.whole:
        _account(c, raws)
    return raws


def _space(c: Cursor) -> None:
    """Pass over white space, and what a family writes before each tag."""
    c.skip(_BLANKS)
    half = _HALF_BEFORE.match(c.text, c.at) if not c.final else None
    if c.open or half:
        raise More


def _arguments(c: Cursor, name: str, closing: str = "", *, element: str = "") -> Raw:
    """JSON, or an element for each argument, maybe in one around all; then `closing` or any end."""
    _space(c)
    begin, outer, tool = c.at, closing, c.judge.find(name)
    holder = c.match(_HOLDER, 60) if c.char() == "<" else None
    if holder and tool and holder[1] in tool.properties:
        c.at, holder = begin, None
    closing = f"</{holder[1]}>" if holder else closing
    if c.char() in ("{", "["):
        raw = _with_json(c, name)
        _space(c)
        raw = replace(raw, whole=_ends(c, closing) and not raw.fault)
    else:
        raw = _elements(c, name, closing, element)
    if holder and raw.whole:
        _space(c)
        raw = replace(raw, whole=_ends(c, outer))
    return raw


def _elements(c: Cursor, name: str, closing: str, element: str) -> Raw:
    tool = c.judge.find(name)
    arguments: dict[str, str | list[str]] = {}
    spare = ""
    repaired = False
    while True:
        _space(c)
        if _ends(c, closing):
            return Raw(name, arguments, texts=True, whole=True, repaired=repaired, spare=spare)
        key, ends = _argument_begins(c, name, element, named=bool(closing))
        if not key:
            fault = CUT_OFF if c.sees("<arg_key") else ""
            return Raw(name, arguments, fault, texts=True, repaired=True, spare=spare)
        text, match = c.until(*ends)
        if match is None:
            return Raw(name, arguments | {key: text}, CUT_OFF, texts=True)
        repaired = repaired or not match[0].strip()
        if len(ends) > 1 and _VALUE_CLOSER.search(text):
            spare = spare or f"the value of {key[:40]!r} holds its own closing tag"
        text = text.removeprefix("\n").removesuffix("\n")  # they belong to the tags
        if key not in arguments:
            arguments[key] = text
        elif _is_list(tool, key):
            earlier = arguments[key]
            arguments[key] = [*([earlier] if isinstance(earlier, str) else earlier), text]
        else:
            spare = spare or f"the parameter {key[:40]!r} stands twice"


def _is_list(tool: Tool | None, key: str) -> bool:
    """Whether a tool wants a list here, so that a parameter may be written several times."""
    schema = tool.properties.get(key) if tool else None
    return isinstance(schema, dict) and "array" in schema.get("type", ())


def _ends(c: Cursor, closing: str) -> bool:
    if closing:
        return c.take(closing)
    return c.sees("</") and c.match(_END, 200) is not None


def _argument_begins(
    c: Cursor, name: str, element: str, *, named: bool
) -> tuple[str, tuple[re.Pattern[str], ...]]:
    """An argument's name and what ends its value; `named`: any element is one, a <function> too."""
    begin = c.at
    if c.sees("<arg_key"):
        pair = c.match(_ARGUMENT_KEY)
        return pair["key"] if pair else "", _ARGUMENT_ENDS
    if key := _own_key(c, name, other=named):
        return key, (re.compile(f"{_LT}/{re.escape(key)}>"),)
    tag = c.match(_TAG, 200) if c.char() == "<" else None
    if tag and not tag["call"]:
        return tag["a"] or tag["b"] or tag["c"] or "", _value_ends(element)
    c.at = begin
    return "", ()


def _own_key(c: Cursor, name: str, *, other: bool = False) -> str | None:
    """The argument whose element of its own name begins here; the tool must have it, or `other`."""
    begin = c.at
    tool = c.judge.find(name)
    key = c.match(_KEY, 80)
    named = key["key"] if key else ""
    if named and ((other and _ANY_KEY.match(named)) or (tool and named in tool.properties)):
        return named
    c.at = begin
    return None


# -- JSON with nothing around it, or only a fence -------------------------------------------------
# An answer may be made of JSON, too: what cannot be a call by its first keys is given back at once.

_Q = "\"'“”‘’`"
_COMMENT_OR_BLANK = re.compile(
    r"\s+|//[^\n]*(?:\n|\Z)|\#(?=\s)[^\n]*(?:\n|\Z)|/\*(?:(?!\*/)[^\0]){0,300}\*/"
)
_KEY_TOKEN = re.compile(rf"[{_Q}]?\s{{0,20}}(?P<key>[\w-]+)\s{{0,20}}[{_Q}]?\s{{0,20}}:")
_HALF_KEY_TOKEN = re.compile(rf"[{_Q}]?\s{{0,20}}[\w-]*\s{{0,20}}[{_Q}]?\s{{0,20}}\Z")
_SIDE_VALUE = re.compile(r"\"(?:[^\"\\]|\\[^\0])*\"|\d+\b|null\b")
_HALF_SIDE_VALUE = re.compile(r"(?:\"(?:[^\"\\]|\\[^\0])*\\?|\d*|n?u?l?l?)\Z")
_HALF_COMMENT = re.compile(r"/(?:\*[^\0]{0,300})?\Z|\#\Z")
_BARE_NAME = re.compile(rf"(?:[{_Q}]|(?![{_Q}]))([^{_Q}\n,}}]{{0,80}})[{_Q},}}]")
_SURE_KEYS = frozenset((*ARGUMENT_KEYS, *CONTAINER_KEYS))
_MOST = 4000  # characters in which a call must show what it is
_TICKS = re.compile(r"`{3,}|~{3,}")
_LABEL = re.compile(r"([\w+-]*)[ \t]*(?=[\n\r{[<])")
_CODE_LABELS = frozenset({"tool_code", "tool_call", "tool_calls"})
_SURE_LABELS = _CODE_LABELS.union(
    ("json", "jsonc", "json5", "javascript", "python", "tool", "tool_use", "function_call")
)
_LABELS = _SURE_LABELS.union(("", "xml", "text", "plaintext"))


def bare(c: Cursor, *, tagged: bool = False) -> list[Raw] | None:
    """`{"name": …, "arguments": …}`, lists of these, `{"tool_calls": […]}`, `[name(key=value)]`."""
    begin = c.at
    found = _python_list(c) if c.char() == "[" else None
    if found is not None:
        return found
    c.at = begin
    return _json_calls(c, tagged=tagged) if tagged or _may_be_call(c) else None


def _may_be_call(c: Cursor) -> bool:
    """Whether the first keys and the name are those of a call; the cursor stays."""
    begin = c.at
    end = min(len(c.text), begin + _MOST)
    try:
        may = _has_first_keys(c, end)
    finally:
        c.cost += c.at - begin
        c.at = begin
    return may


def _has_first_keys(c: Cursor, end: int) -> bool:
    """Read keys up to the one that decides: what names an offered tool, or holds arguments."""
    if c.text[c.at] == "[":
        c.at += 1
        _gap(c, end)
    for _ in range(2):  # braces may be doubled, as templates want them
        if c.text.startswith("{", c.at, end):
            c.at += 1
            _gap(c, end)
    while True:
        match = _KEY_TOKEN.match(c.text, c.at, end)
        if match is None:
            return _wait(c, end, _HALF_KEY_TOKEN.match(c.text, c.at, end))
        key = fold_key(match["key"])
        c.at = match.end()
        _gap(c, end)
        if c.at == end:
            return _wait(c, end, half=True)
        if c.text[c.at] in "{[":
            return key in _SURE_KEYS or key in NAME_KEYS
        if key in NAME_KEYS:
            name = _BARE_NAME.match(c.text, c.at, end)
            if name is None and c.judge.may_begin(c.text[c.at : end]):
                return _wait(c, end, half=True)
            if name and c.judge.find(name[1]):
                return True
        elif key not in SIDE_KEYS:
            return key in _SURE_KEYS
        # Such a key says nothing, so the next one decides.
        value = _SIDE_VALUE.match(c.text, c.at, end)
        if value is None:
            return _wait(c, end, _HALF_SIDE_VALUE.match(c.text, c.at, end))
        c.at = value.end()
        _gap(c, end)
        if not c.text.startswith(",", c.at, end):
            return _wait(c, end, half=c.at == end)
        c.at += 1
        _gap(c, end)


def _gap(c: Cursor, end: int) -> None:
    """Pass over white space and comments, a token at a time."""
    while match := _COMMENT_OR_BLANK.match(c.text, c.at, end):
        c.at = match.end()


def _wait(c: Cursor, end: int, half: object) -> bool:
    """No call is seen yet; if it is half seen, more text is waited for."""
    half = half or _HALF_COMMENT.match(c.text, c.at, end)
    if half and not c.final and end == len(c.text):
        raise More
    return False


def fenced(c: Cursor, *, after_prose: bool = False) -> list[Raw] | None:
    """A fence whose text begins with a call; the cursor is left inside of it.

    Fences show examples, too: it must name an offered tool, and after prose its label must be one
    for calls or data.
    """
    c.skip(_TICKS)
    match = c.match(_LABEL, 40)
    label = match[1].lower() if match else None
    if label not in (_SURE_LABELS if after_prose else _LABELS):
        return None
    raws: list[Raw] | None = []
    while raws == []:  # a mark before another one
        c.space()
        mark = c.match(CALL_MARK, 80) if c.char() in ("<", "[") else None
        if mark:
            raws = marked(c, mark[0])
        elif c.char() == "<":
            raws = named_element(c) if c.match(_NAMED_ELEMENT, 80, peek=True) else None
        elif c.char() in ("{", "["):
            raws = bare(c)
        else:
            raws = _python(c) if label in _CODE_LABELS else None
    return raws if raws and any(c.judge.find(raw.name) for raw in raws) else None


# -- the search for all of it ---------------------------------------------------------------------

READERS: dict[str, Reader] = {
    "<tool_call>": own,
    "<|tool_call>": _gemma,
    "<start_function_call>": _gemma,
    "functools[": _functools,
    ">>>": headed,
    "Action:": _react,
    **{mark: partial(marked, mark=mark) for mark in _UNSURE},
}
OBSERVATION = "Observation:"  # only if a call came before: other texts have observations, too
_LINE_STARTS = {"Action:", "functools[", OBSERVATION}  # markup at the beginning of a line only
# fmt: off
# Ends of turns and the like, which say nothing.
NOISE = frozenset({
    "</tool_call>", "</parameter>", "</xml>", "<|channel|>final<|message|>",
    "<|channel|>commentary<|message|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|im_end|>",
    "<|eot_id|>", "<|eom_id|>", "<|eom|>", "<|from|>assistant", "<|from|> assistant", "<|content|>",
    "<|recipient|>all", "<|recipient|> all", "<|end|>", "[BEGIN FINAL RESPONSE]",
    "[END FINAL RESPONSE]", ">>>all\n",
})
ENDINGS = frozenset({"<tool_response", "<tool_result", "<|im_start|>", "<|start_header_id|>"})
# fmt: on

_HALF_OPENER = re.compile(rf"{_HALF_MARK.pattern}|{HALF_MARK.pattern}")
# An object whose first key may follow, or whose brace is doubled.
_OBJECT = r"\{(?=\s*(?:\{\s*)?(?:[\"'“”‘’`/#\w]|\Z))"
_OTHERS = (
    rf"(?P<before>{_BEFORE})"
    rf"|(?P<thinks>{NATIVE})|(?P<thought>{NATIVE_ENDS})|(?P<spoken>{SPOKEN})"
    rf"|(?P<mark>{CALL_MARK.pattern})"
    r"|(?P<ticks>`+|~{3,})"
    rf"|(?P<json>{_OBJECT}|\[(?=\s*(?:{_OBJECT}|[/#A-Za-z_]|\Z)))"
    rf"|(?P<named>{_NAMED_ELEMENT.pattern})"
    rf"|<(?P<prefix>{_PREFIX})(?P<element>[A-Za-z_][\w.-]*)>"
)


@lru_cache(maxsize=1)
def openers() -> Markers:
    """What may concern the parser in prose; a match has one of the groups of `_OTHERS`."""
    markers = {*READERS, *NOISE, *ENDINGS}
    plain = sorted(markers - _LINE_STARTS, reverse=True)  # the longer one of two first
    return Markers(plain, _LINE_STARTS, _OTHERS, _HALF_OPENER)


@lru_cache(maxsize=32)
def ends(closer: str) -> Markers:
    """What ends a thought; or, with "", a fence of code, which a thought may leave open."""
    if closer:
        return Markers([closer])
    return Markers(others=rf"(?P<ticks>`+|~{{3,}})|{NATIVE_ENDS}", half=HALF_MARK)
