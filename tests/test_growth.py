"""No text makes a pattern, or a call, take more than its length's worth of time.

The first half asks every pattern of the package, so that a new one is asked, too: with texts that
repeat what its own repeats match. No window that bounds what a pattern is shown counts in its
favour. The second half goes through the public classes. CPU time is counted, and growth rather than
time, so that a busy machine does no harm.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import itertools
import json
import pkgutil
import random
import re
import time

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from peers import Scripted, answering
from share import part

import langchain_svc as svc

PARSER = importlib.import_module("re._parser")
COMPILER = importlib.import_module("re._compiler")

WAYS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
# In letters. Each is a quarter longer than the last, so that the first text that an exponential
# pattern cannot read costs tens of milliseconds and not hours.
SHORT = (8, 10, 12, 15, 19, 24, 30, 37, 46, 58, 72, 90, 112, 140, 175, 200)
LONG = 4000
SUSPECT_SHORT = 0.001  # CPU seconds; linear patterns take some microseconds
SUSPECT_LONG = 0.01
MOST_SAMPLES = 10
MOST_SEQUENCES = 120
ENDS = ("\x00", "!", "")
UNKNOWN_WAYS = ("match", "search")  # of patterns in tables, and of those passed on
MOST = 0.5
ROOMS = [info.name for info in pkgutil.iter_modules(svc.__path__) if info.name != "__main__"]


# -- which patterns there are ------------------------------------------------------------------------


def modules_of(room):
    yield importlib.import_module(f"langchain_svc.{room}")
    for info in pkgutil.walk_packages([f"{svc.__path__[0]}/{room}"], f"langchain_svc.{room}."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def patterns_in(value, depth=4):
    """The compiled patterns that a module's variable holds."""
    inner = ()
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        inner = (*value.keys(), *value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = value
    elif inspect.isclass(value):
        inner = vars(value).values() if value.__module__.startswith("langchain_svc") else ()
    elif type(value).__module__.startswith("langchain_svc"):
        inner = getattr(value, "__dict__", {}).values()
    if depth:
        for item in inner:
            yield from patterns_in(item, depth - 1)


def ways_of(name, source):
    """How a module asks the pattern of this name: `NAME.match(text)` or `cursor.match(NAME)`."""
    words = re.findall(rf"\b{name}(?:\[\w+\])?\.(\w+)|\.(\w+)\({name}\b", source)
    return set(itertools.chain(*words)) & set(WAYS)


def inline_patterns(tree, names):
    """The patterns that functions write where they ask them, `x` for what only a call knows."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for call in itertools.chain(*map(ast.walk, functions)):
        if not (isinstance(call, ast.Call) and call.args and isinstance(call.func, ast.Attribute)):
            continue
        if getattr(call.func.value, "id", "") != "re" or call.func.attr not in (*WAYS, "compile"):
            continue
        parts = call.args[0].values if isinstance(call.args[0], ast.JoinedStr) else [call.args[0]]
        text = "".join(str(constant(part, names)) for part in parts)
        with contextlib.suppress(re.error):
            yield re.compile(text), call.func.attr


def constant(node, names):
    if isinstance(node, ast.Constant):
        return node.value
    expression = node.value if isinstance(node, ast.FormattedValue) else node
    try:
        value = eval(ast.unparse(expression), dict(names))  # the package's own words
    except Exception:
        return "x"
    return value if isinstance(value, (str, int)) else "x"


def patterns_of(room):
    """Each pattern of a room: its place, and the ways in which it is asked."""
    patterns = {}
    for module in modules_of(room):
        source = inspect.getsource(module)
        for name, value in vars(module).items():
            for pattern in patterns_in(value):
                ways = ways_of(name, source)
                place, known_ways = patterns.get(pattern, ("", set()))
                if ways or not place:
                    place = f"{module.__name__}.{name}"
                patterns[pattern] = (place, known_ways | ways)
        for pattern, way in inline_patterns(ast.parse(source), vars(module)):
            place, known_ways = patterns.get(
                pattern, (f"{module.__name__}: {pattern.pattern}", set())
            )
            patterns[pattern] = (place, known_ways | ({way} - {"compile"}))
    return patterns


# -- texts that a pattern may choke on ---------------------------------------------------------------

CLASSES = {"LITERAL", "NOT_LITERAL", "IN", "ANY"}
REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
LOOKS = {"ASSERT", "ASSERT_NOT"}


class Texts:
    """Texts made of a pattern's own parts, as `re`'s parser sees them."""

    def __init__(self, pattern):
        self.flags = pattern.flags
        self.tree = PARSER.parse(pattern.pattern, pattern.flags)
        self.is_bytes = isinstance(pattern.pattern, bytes)
        self._class_of = {}
        self._letters = self._all_letters()

    def encoded(self, text):
        return text.encode("latin-1", "replace") if self.is_bytes else text

    def text(self, start, fill, end, size):
        pumped = start + fill * (size // len(fill) + 1)
        return self.encoded(pumped[:size] + end)

    def _parts(self, tree):
        """Every node, however deep, with its operator."""
        for op, argument in tree:
            yield str(op), argument
            for inner in self._inner(argument):
                yield from self._parts(inner)

    def _inner(self, argument):
        for item in argument if isinstance(argument, (tuple, list)) else (argument,):
            if isinstance(item, PARSER.SubPattern):
                yield item
            elif isinstance(item, list):
                yield from self._inner(item)

    def _matches(self, op, argument):
        """The letters that a class of the pattern matches."""
        key = op, str(argument)
        if key not in self._class_of:
            node = PARSER.SubPattern(self.tree.state, [(getattr(PARSER, op), argument)])
            flags = self.flags & ~re.VERBOSE
            match = COMPILER.compile(node, flags).fullmatch
            self._class_of[key] = {
                letter for letter in self._alphabet if match(self.encoded(letter))
            }
        return self._class_of[key]

    def _all_letters(self):
        """One letter of each kind that the pattern tells apart."""
        parts = [(op, argument) for op, argument in self._parts(self.tree) if op in CLASSES]
        literals = [chr(argument) for op, argument in parts if op == "LITERAL"]
        ascii_letters = [
            chr(code) for code in range(9, 127) if chr(code).isprintable() or code in (9, 10, 13)
        ]
        preferred = list('aA0 \n\t_-.:,"')
        self._alphabet = list(dict.fromkeys([*preferred, *literals, *ascii_letters, "\u00e9"]))
        if self.is_bytes:
            self._alphabet = [letter for letter in self._alphabet if ord(letter) < 128]
        classes = {(op, str(argument)): (op, argument) for op, argument in parts}
        kinds = {}
        for letter in self._alphabet:
            kind = frozenset(key for key, part in classes.items() if letter in self._matches(*part))
            kinds.setdefault(kind, letter)
        return list(kinds.values())

    def samples(self, tree):
        """Short texts that the parts of a pattern match, the plainest first."""
        texts = [""]
        for op, argument in tree:
            variants = self._variants(str(op), argument) or [""]
            plain = texts[0]
            texts = [text + variants[0] for text in texts] + [
                plain + variant for variant in variants[1:]
            ]
        return list(dict.fromkeys(texts))

    def _variants(self, op, argument):
        if op == "LITERAL":
            return [chr(argument)]
        if op in CLASSES:
            matches = self._matches(op, argument)
            return [letter for letter in self._letters if letter in matches] or sorted(matches)[:1]
        if op == "BRANCH":
            return list(
                itertools.chain(
                    *itertools.zip_longest(*map(self.samples, argument[1]), fillvalue="")
                )
            )
        if op in REPEATS:
            least, most, body = argument
            inner = self.samples(body)
            texts = [inner[0] * least] + [text * max(1, least) for text in inner]
            return texts + [text * (least + 1) for text in inner[:2] if least < most]
        if op in LOOKS:
            return [""]
        return [text for inner in self._inner(argument) for text in self.samples(inner)]

    def repeats(self, tree=None, head=""):
        """Each repeat's body and a text that leads up to it."""
        for op, argument in self.tree if tree is None else tree:
            for inner in self._inner(argument):
                if str(op) in REPEATS and argument[1] > 1:
                    yield head, inner
                yield from self.repeats(inner, head)
            if str(op) not in LOOKS:
                head += (self._variants(str(op), argument) or [""])[0]

    def pumps(self):
        """What a text begins with, and one to four samples of a repeat's body to go on with."""
        pumps = {}
        for head, body in self.repeats():
            samples = [text for text in self.samples(body) if text][:MOST_SAMPLES]
            for start, sequence in itertools.product((head, ""), sequences(samples)):
                pumps[start, primitive(sequence)] = None
        return list(pumps)


def sequences(samples):
    """The samples, each two of them, and some of the threes and fours."""
    choice = random.Random(0)
    texts = [*samples, *map("".join, itertools.product(samples, repeat=2))]
    for count in (3, 4) if samples else ():
        texts += ["".join(choice.choices(samples, k=count)) for _ in range(MOST_SEQUENCES // 2)]
    return texts


def primitive(text):
    """The shortest text of which this is a repetition."""
    return text[: (text + text).find(text, 1)]


# -- how long they take ------------------------------------------------------------------------------


def cpu(pattern, way, text):
    ask = getattr(pattern, way)
    start = time.thread_time()
    if way in {"sub", "subn"}:
        ask("" if isinstance(text, str) else b"", text)
    elif way == "finditer":
        for _ in ask(text):
            pass
    else:
        ask(text)
    return time.thread_time() - start


@functools.cache
def growth(pattern, ways):
    """How a pattern grows faster than its text, if it does: the worst kind first."""
    texts = Texts(pattern)
    for measure in (short_growth, long_growth):
        for start, fill in texts.pumps():
            for way, end in itertools.product(ways or UNKNOWN_WAYS, ENDS):
                problem = measure(pattern, way, functools.partial(texts.text, start, fill, end))
                if problem:
                    return f"{way} of {start!r} + {fill!r} * n + {end!r}: {problem}"
    return None


def short_growth(pattern, way, text_of):
    """Growth that shows before 200 letters: exponential, or with more than the square."""
    for size in SHORT:
        if cpu(pattern, way, text_of(size)) > SUSPECT_SHORT:
            return compare(pattern, way, text_of, size, SUSPECT_SHORT, factor=20)
    return None


def long_growth(pattern, way, text_of):
    """Growth that shows in some thousand letters: with the square."""
    if cpu(pattern, way, text_of(LONG // 4)) < SUSPECT_LONG / 20:
        return None
    return compare(pattern, way, text_of, LONG, SUSPECT_LONG, factor=8)


def compare(pattern, way, text_of, size, suspect, factor):
    """The times of a text and of its quarter, if they are further apart than a line would be."""
    few, many = (min(cpu(pattern, way, text_of(n)) for _ in range(3)) for n in (size // 4, size))
    if many > suspect and many > factor * few:
        return f"{size // 4} letters {few:.5f} s, {size} letters {many:.5f} s"
    return None


@pytest.mark.parametrize("room", ROOMS)
def test_no_pattern_grows_faster_than_its_text(room):
    problems = {}
    for pattern, (place, ways) in part(patterns_of(room).items(), ROOMS.index(room)):
        problem = growth(pattern, tuple(sorted(ways)))
        if problem:
            problems[place] = problem
    assert not problems, "\n".join(f"{place}: {text}" for place, text in problems.items())


def test_the_patterns_are_found():
    assert sum(len(patterns_of(room)) for room in ROOMS) > 200


@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        (r"(?:a|a)*b", "match"),
        (r"(?:\w|\[ID\]|[^a])+!", "match"),
        (r"(?:[\w:-]{1,80}|\[[A-Z]+\]|::?)*$", "match"),
        (r"\{(?:\s|/\*.{0,300}?\*/)*\w", "match"),
        (rb"(?:(?:id:[^\r\n]*)?(?:\r\n?|\n))*", "fullmatch"),
        (r"(?:<(?:a+)+>)?x", "match"),
        (r"\s{0,40}\n\s{0,40}[}\]][\s}\]]{0,40},$", "search"),
        (r"\s*\n\s*x", "match"),
        (r"\w+=", "search"),
    ],
)
def test_growth_is_noticed(pattern, way):
    assert growth(re.compile(pattern), (way,))


# -- through the public classes ----------------------------------------------------------------------

SIZE = 64_000
PUMPS = [
    ("<", " "), ("</", " "), ('{"', " "), ("", " "), ("", "\n"), ("", "\t\n"), ("a", "\u200b"), ("", "<"),
    ("", ">"), ("", "{"), ("", '{"'), ("", '{"a":'), ("", "["), ("", '[{"'), ("", "`"), ("", "```\n"), ("", "~~~"),
    ("", '```\n{"name":"save" '), ("", '"'), ("", "\\"), ("", '\\"'), ("", "\\u0041"), ("", "%41"), ("&#", "9"),
    ("", "&#9"), ("", "&lt;"), ("", "<tool_call>"), ("<tool_call>", " "), ("", '<tool_call>{"name": "save", '),
    ("", "[TOOL_CALLS]["), ("", "<think>"), ("", "</think>"), ("", "<|"), ("", "save "), ("", "save("), ("", "* "),
    ("", "1. "), ("", "1,"), ("<arg_key>", " "), ("", "<function=save>"), ("Action: save\n", "Action Input: "),
    ("", "data: "), ("", "sk-key "), ("", "- "), ("-", " "), ("", "."), ("", "'"), ("", "de "), ("", "A. "),
    ("", "Maria "), ("Maria ", "Maria"), ("", "A.M. "), ("", "030 "), ("", "1"), ("", "0000"), ("", "4.3.1950 "),
    ("", "MRN:"), ("", "[PERSON_1]"), ("", "[PERSON_"), ("", "PERSON_1 "), ("", "a. "), ("", "a"), ("", "山田"),
    ("a", "\u0301\u0323"),
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
    return Scripted(text, step=1000).model(max_repairs=0, max_retries=0, on_cut="mark")


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


def persons():
    """Pseudonyms of somebody whose names, numbers and places are in the texts."""
    return svc.Pseudonyms(
        names=["Maria de Souza", "A. Maria Reading", "山田 太郎"],
        identifiers=["MRN:00001234", "0000123456", "11111111"],
        telecoms=["030 1234567", "110"],
        addresses=["Data Street 1, 10115 Maria"],
        dates=["1950-03-04"],
    )


def hidden_and_restored(text):
    pseudonyms = persons()
    assert pseudonyms.restore(pseudonyms.hide(text)) == text


def restored_in_pieces(text):
    pseudonyms = persons()
    pseudonyms.hide("Maria de Souza")
    restorer = pseudonyms.restorer()
    pieces = [text[at : at + 1000] for at in range(0, len(text), 1000)]
    assert "".join([*map(restorer.parse_chunk, pieces), restorer.close()])


def sent_with_pseudonyms(text):
    model = Scripted(text, step=1000).model(pseudonyms=persons(), on_cut="mark")
    model.invoke(text)


def cited(text):
    model = Scripted(*["It is so <cite id='1'>word</cite>."] * 3, step=1000).model(max_repairs=0)
    model.with_citations([text]).invoke("?")


def answer_with_citations(text):
    model = Scripted(*[text] * 3, step=1000).model(max_repairs=0, on_cut="mark")
    model.with_citations(["A word."]).invoke("?")


def refused_prompt(text):
    with contextlib.suppress(svc.SvcError):
        given(status_code=400, json={"error": {"message": f"too long: {text[:300]}"}}).invoke(text)


KINDS = [
    hidden_and_restored, restored_in_pieces, sent_with_pseudonyms, cited, answer_with_citations, refused_prompt,
    said_by_user, said_by_tool, said_of_a_tool, answer_with_tools, answer_with_form, stream_with_tools,
    stream_with_form, stream_of_bytes, error_body,
]  # fmt: skip


# Beginnings of values and calls without an end, and dates: linear, but each is looked at several times, and machines
# are busy.
BEGINNINGS = {
    "4.3.1950 ",
    "{", "[", '{"', '[{"', '{"a":', "[TOOL_CALLS][", '```\n{"name":"save" ', '<tool_call>{"name": "save", ',
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_64_kb_of_anything_cost_half_a_second_at_most(kind):
    kind("warm")
    slow = {}
    for start, fill in part(PUMPS, KINDS.index(kind)):
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
