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
from .cursor import CUT_OFF, MISSING, Cursor, More, split_commas
from .elements import FENCE, NAME_TAGS, name_and_arguments, named_element, with_json
from .judge import (
    Judge,
    Raw,
    calls_in,
)
from .leftover import (
    SPILL,
    STRAY_TEXT,
    account,
    is_next,
    may_be_call,
    space,
    space_or_end,
)
from .marks import (
    ANY_MARK,
    BEFORE,
    CALL_MARK,
    CLOSING,
    HALF_CALL_MARK,
    MARK_FOLLOWS,
    NAMED_ELEMENT,
    PREFIX,
)

Reader = Callable[[Cursor], "list[Raw] | None"]

_UNSURE = ("<xml>", "<|channel|>commentary ", "<|start|>assistant")
_SPEAKS_OF_TOOLS = ("<tool>", "<tools>", *_UNSURE)  # other texts have these, too


# -- what stands after a mark ---------------------------------------------------------------------

_SPOKEN_OF = re.compile(
    r"[^\n{}\[\]()<>=:\"]+(?:\Z|[;.,])"
)  # as in: <tool_call> and </tool_call>
_OWN_END = re.compile(r"</?tool_call>|\n[ \t]*\n|<tool_response")
_CLOSED = re.compile(r"</[^<>\n]{1,60}>\s{0,10}\Z")


def own(c: Cursor) -> list[Raw] | None:
    """`<tool_call>{"name": …, "arguments": …}</tool_call>`, or whatever stands in these tags."""
    space(c)
    begin = c.at
    if c.take("</tool_call>"):
        return [Raw(None, fault="the block is empty", whole=True)]
    raws = _inside(c, tagged=True)
    if raws:
        _close(c, raws, "tool_call", demanded=True)
        closed = c.text[begin : c.at].rstrip().endswith("</tool_call>")
        if (
            closed and raws[-1].fault == CUT_OFF
        ):  # the text is not cut: the model can be told
            raws[-1] = replace(raws[-1], fault="a value in it does not end", whole=True)
        return raws
    if raws is not None and is_next(c):
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
    space(c)
    raws = _inside(c, tagged=sure) or None
    if raws is None:
        c.at = begin
        raws = headed(c, offered=not sure)
    if raws is None:
        c.at = begin
        space(c)
        dropped = mark[1] in "|｜" or c.match(MARK_FOLLOWS, 80)
        c.at = begin
        return [] if dropped else None
    # Special tokens and brackets often have no closer, elements have one.
    _close(c, raws, mark[1:-1], demanded=mark[0] == "<" and mark[1].isalpha())
    return raws


def _inside(c: Cursor, *, tagged: bool) -> list[Raw] | None:
    """The calls that begin here; empty if another opening tag stands here."""
    fence = c.match(FENCE, 60) if c.char() == "`" else None
    char, begin, raws = c.char(), c.at, None
    if char == "<":
        raws = name_and_arguments(c) if c.sees(*NAME_TAGS) else None
        c.at = c.at if raws else begin
        return raws or []
    if char in ("{", "["):
        raws = bare(c, tagged=tagged)
    else:
        for reader in (name_and_arguments, _python, headed):
            c.at = begin
            raws = reader(c)
            if raws:
                break
    if fence:
        c.space()
        c.take("```")
    return raws


def _close(c: Cursor, raws: list[Raw], word: str, *, demanded: bool) -> None:
    """Pass over brackets too many and the closing tag; what stands before it is left over.

    `demanded`: the form has a closing tag, so without one the call ends only where the answer does
    or another call begins.
    """
    begin = c.at
    if _CLOSED.search(c.text, max(0, begin - 80), begin):
        return
    c.skip(SPILL)
    space_or_end(c)
    if c.char() in ("<", "[", "✿"):
        closing = c.match(CALL_MARK, 80)
        if (closing and CLOSING.search(closing[0])) or (
            not closing and c.take(f"</{word}>")
        ):
            return
    c.at = begin
    if demanded or raws[-1].repaired:
        account(c, raws)


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
    rf"|(?P<mark>{ANY_MARK})|(?P<fence>`{{3,}}\w*)|(?P<word>[A-Za-z_][\w./-]*)"
    r"|(?P<plain>[\s:：(\[\].=]|\d+\b)"
)
_HALF_HEAD_TOKEN = re.compile(
    r"(?:<[|｜][^<>{}\n]{0,60}|<|\[[A-Z_]{0,30}|✿[A-Z]{0,12}|`{1,2})\Z"
)
_LONGEST_HEAD = 200


def headed(c: Cursor, *, offered: bool = True) -> list[Raw] | None:
    """A name and JSON, whatever marks stand around the name: most families' own formats."""
    begin = c.at
    name = _head(c)
    if name is None or (offered and not c.judge.find(name)):
        return None
    bracketed = "(" in c.text[begin : c.at]
    raw = with_json(c, name)
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
        is_half = may_grow or _HALF_HEAD_TOKEN.match(c.text, c.at, end) is not None
        if is_half and not c.final and len(c.text) < end:
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
_INPUT = re.compile(r"\*{0,3}Action Input\s{0,20}\*{0,3}:?[ \t*]*", re.IGNORECASE)
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
    raw = with_json(c, name, loose=True)
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
    found = read_json(
        "".join(dumps(part) if at % 2 else part for at, part in enumerate(parts))
    )
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
        keywords = (
            _keywords(name, text[1:-1] if closed else text[1:], c.judge)
            if text
            else None
        )
        if keywords is None:
            c.at = begin
            return found or None
        arguments, spare = keywords
        fault = "" if closed else CUT_OFF
        found.append(Raw(name, arguments, fault, whole=closed, spare=spare))
        if printed:
            c.take(")")


def _keywords(
    name: str, body: str, judge: Judge
) -> tuple[dict[str, object], str] | None:
    """The arguments, and what is left over; None if code with variables calls, and no model."""
    tool = judge.find(name)
    order = list(tool.properties) if tool else []
    arguments: dict[str, object] = {}
    spare = ""
    for place, part in enumerate(split_commas(body)):
        keyword = _KEYWORD.match(part)
        text = part[keyword.end() :] if keyword else part
        value, is_literal = _python_value(text)
        if keyword and (is_literal or "(" not in text):
            key = keyword[1]
        elif is_literal and place < len(order):
            key = order[place]
        else:
            return None
        if key in arguments:
            spare = f"the parameter {key[:40]!r} stands twice"
        elif not is_literal and _QUOTE.search(text):
            spare = STRAY_TEXT
        arguments[key] = value
    return arguments, spare


_QUOTE = re.compile("['\"]")


def _python_value(text: str) -> tuple[object, bool]:
    """An argument's value, and whether it is a literal and not a word."""
    json = read_json(
        f"[{text}]"
    )  # a list makes a value of its own of a bare word or number
    items = json.value if json and isinstance(json.value, list) else []
    if len(items) != 1:
        return text, False
    return items[0], text[0] in "\"'" or items[0] != text


# -- JSON with nothing around it, or only a fence -------------------------------------------------
# An answer may be made of JSON, too: what cannot be a call by its first keys is given back at once.

_TICKS = re.compile(r"`{3,}|~{3,}")
_LABEL = re.compile(r"([\w+-]*)[ \t]*(?=[\n\r{[<])")
_CODE_LABELS = frozenset({"tool_code", "tool_call", "tool_calls"})
_SURE_LABELS = _CODE_LABELS.union(
    (
        "json",
        "jsonc",
        "json5",
        "javascript",
        "python",
        "tool",
        "tool_use",
        "function_call",
    )
)
_LABELS = _SURE_LABELS.union(("", "xml", "text", "plaintext"))


def bare(c: Cursor, *, tagged: bool = False) -> list[Raw] | None:
    """`{"name": …, "arguments": …}`, lists of these, `{"tool_calls": […]}`, `[name(key=value)]`."""
    begin = c.at
    found = _python_list(c) if c.char() == "[" else None
    if found is not None:
        return found
    c.at = begin
    return _json_calls(c, tagged=tagged) if tagged or may_be_call(c) else None


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
            raws = named_element(c) if c.match(NAMED_ELEMENT, 80, peek=True) else None
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
OBSERVATION = (
    "Observation:"  # only if a call came before: other texts have observations, too
)
_LINE_STARTS = {
    "Action:",
    "functools[",
    OBSERVATION,
}  # markup at the beginning of a line only
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

_HALF_OPENER = re.compile(rf"{HALF_CALL_MARK.pattern}|{HALF_MARK.pattern}")
# An object whose first key may follow, or whose brace is doubled.
_OBJECT = r"\{(?=\s*(?:\{\s*)?(?:[\"'“”‘’`/#\w]|\Z))"
_OTHERS = (
    rf"(?P<before>{BEFORE})"
    rf"|(?P<thinks>{NATIVE})|(?P<thought>{NATIVE_ENDS})|(?P<spoken>{SPOKEN})"
    rf"|(?P<mark>{CALL_MARK.pattern})"
    r"|(?P<ticks>`+|~{3,})"
    rf"|(?P<json>{_OBJECT}|\[(?=\s*(?:{_OBJECT}|[/#A-Za-z_]|\Z)))"
    rf"|(?P<named>{NAMED_ELEMENT.pattern})"
    rf"|<(?P<prefix>{PREFIX})(?P<element>[A-Za-z_][\w.-]*)>"
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
