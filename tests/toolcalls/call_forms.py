"""Forms in which models write calls, as a generator: each writes any calls of the tools below.

A form is made of what its family chose: a wrapper around JSON, or an element by its word, the way it
names the tool, and the way it writes arguments. What is read of one has to be read of all.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from langchain_svc._calls.reading import Call, Doubt, Prose, StreamParser, Tool

PROPERTIES = {
    "text": {"type": "string"},
    "path": {"type": "string"},
    "count": {"type": "integer"},
    "ratio": {"type": "number"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "meta": {"type": "object"},
}
TOOLS = [
    Tool("write_file", {"type": "object", "properties": PROPERTIES}),
    Tool("now", {"type": "object", "properties": {}}),
]


def events(text, step=None, tools=TOOLS, *, cut=False):
    """What the parser makes of a text in steps, or of a whole one."""
    parser = StreamParser(tools)
    step = step or len(text) + 1
    result = []
    for at in range(0, len(text), step):
        result += parser.parse_chunk(text[at : at + step])
    result += parser.close(cut=cut)
    return result


def called(answer):
    """The calls that run, of the events of an answer."""
    return [(event.name, event.arguments) for event in answer if isinstance(event, Call)]


def said(answer):
    """The text of an answer, of its events."""
    return "".join(event.text for event in answer if isinstance(event, (Prose, Doubt))).strip()


@dataclass(frozen=True)
class Form:
    """A way of writing calls.

    Attributes:
        write: One call as text.
        tags: The family's own tags, which no argument may hold when it was read.
        json: Whether arguments are JSON, so that they can hold any text, those tags too.
        prose: Whether prose can stand before and between them.
        several: Whether another call can follow.
        loose: Whether it is a call only where the answer ends with it.
        bare: Whether a call without arguments is one; else it is an element like any other.
    """

    write: Callable[[str, dict[str, Any]], str]
    tags: tuple[str, ...] = ()
    json: bool = True
    prose: bool = True
    several: bool = True
    loose: bool = False
    bare: bool = True


def dump(value: Any) -> str:
    """JSON as models write it."""
    return json.dumps(value, ensure_ascii=False)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else dump(value)


def _body(name: str, arguments: dict[str, Any]) -> str:
    return dump({"name": name, "arguments": arguments})


WRAPPERS = [
    ("<tool_call>", "</tool_call>"),
    ("<tool_call>\n", "\n</tool_call>"),
    ("<tool_calls>[", "]</tool_calls>"),
    ("<function_call>", "</function_call>"),
    ("<tool_use>", "</tool_use>"),
    ("<function>", "</function>"),
    ("<tool>", "</tool>"),
    ("<call>", "</call>"),
    ("<action>", "</action>"),
    ("<invoke>", "</invoke>"),
    ("<seed:tool_call>", "</seed:tool_call>"),
    ("<tool_call:opensource>", "</tool_call:opensource>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("<|tool_call|>[", "]"),
    ("<|tool_call_start|>[", "]<|tool_call_end|>"),
    ("[TOOL_CALLS][", "]"),
    ("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    ("[tool_call]\n", "\n[/tool_call]"),
    ("<|START_ACTION|>[", "]<|END_ACTION|>"),
    ("<|action_start|><|plugin|>", "<|action_end|>"),
    ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
    ("✿FUNCTION✿", "✿END✿"),
]
KEYS = [
    ("name", "parameters"),
    ("tool", "args"),
    ("function", "arguments"),
    ("action", "action_input"),
    ("tool_name", "tool_input"),
]
WORDS = ("invoke", "function", "tool_call", "tool", "call", "action")
NAMINGS = {"=": "={}>", "name=": ' name="{}">'}
ARGUMENTS = {
    "parameter=": ("<{p}parameter={}>", "</{p}parameter>"),
    "parameter name=": ('<{p}parameter name="{}">', "</{p}parameter>"),
    "param name=": ('<{p}param name="{}">', "</{p}param>"),
    "own": ("<{}>", "</{}>"),
}
JSON_STYLES = {"json": "{}", "arguments": "<arguments>{}</arguments>"}
PREFIXES = ("antml:", "｜DSML｜")


def _wrapped(opens: str, closes: str, body: Callable[..., str] = _body) -> Form:
    marks = (opens.strip().removesuffix("["), closes.strip().removeprefix("]"))
    tags = tuple(filter(None, marks))
    return Form(lambda name, arguments: f"{opens}{body(name, arguments)}{closes}", tags)


def _keyed(name_key: str, arguments_key: str) -> Callable[..., str]:
    return lambda name, arguments: dump({name_key: name, arguments_key: arguments})


def _element(word: str, naming: str, style: str, prefix: str = "") -> Form:
    opens, closes = f"<{prefix}{word}", f"</{prefix}{word}>"

    def write(name: str, arguments: dict[str, Any]) -> str:
        head = opens + NAMINGS[naming].format(name)
        if style in JSON_STYLES:
            return f"{head}\n{JSON_STYLES[style].format(dump(arguments))}\n{closes}"
        begin, end = ARGUMENTS[style]
        values = [
            begin.format(key, p=prefix) + _value(value) + end.format(key, p=prefix)
            for key, value in arguments.items()
        ]
        return "\n".join([head, *values, closes])

    inner = () if style in JSON_STYLES else ("</parameter", "</param", "<parameter")
    return Form(write, (opens, closes, *inner), json=not inner)


def _named(begin: str, middle: str, end: str, **how: Any) -> Form:
    """A name and JSON with marks around them."""
    tags = tuple(tag for tag in (begin, middle, end) if tag.strip("\n`json") and len(tag) > 2)
    return Form(lambda name, arguments: f"{begin}{name}{middle}{dump(arguments)}{end}", tags, **how)


def _python(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _glm(opens: str) -> Form:
    def write(name: str, arguments: dict[str, Any]) -> str:
        pairs = [
            f"<arg_key>{key}</arg_key>\n{opens}{_value(value)}</arg_value>"
            for key, value in arguments.items()
        ]
        return "\n".join([f"<tool_call>{name}", *pairs, "</tool_call>"])

    return Form(write, ("<arg_key>", "</arg_value>", "<tool_call>"), json=False)


def _gemma(opens: str, quote: str, closes: str) -> Form:
    def value(item: Any) -> str:
        if isinstance(item, str):
            return f"{quote}{item}{quote}"
        if isinstance(item, list):
            return f"[{','.join(map(value, item))}]"
        if isinstance(item, dict):
            return f"{{{','.join(f'{key}:{value(field)}' for key, field in item.items())}}}"
        return dump(item)

    def write(name: str, arguments: dict[str, Any]) -> str:
        return f"{opens}call:{name}{value(arguments)}{closes}"

    return Form(write, (opens, quote, closes), json=False)


def _own_element(name: str, arguments: dict[str, Any]) -> str:
    return f"<{name}>{''.join(f'<{k}>{_value(v)}</{k}>' for k, v in arguments.items())}</{name}>"


def _openai(name: str, arguments: dict[str, Any]) -> str:
    return dump({"type": "function", "function": {"name": name, "arguments": dump(arguments)}})


def _react(name: str, arguments: dict[str, Any]) -> str:
    return f"Action: {name}\nAction Input: {dump(arguments)}"


def _react_in_a_fence(name: str, arguments: dict[str, Any]) -> str:
    return f"Action: {name}\nAction Input:\n```json\n{dump(arguments)}\n```\nObservation:"


def _forms() -> Iterator[tuple[str, Form]]:
    for opens, closes in WRAPPERS:
        yield f"{opens}…{closes}".replace("\n", "⏎"), _wrapped(opens, closes)
    for keys in KEYS:
        yield (
            f"<tool_call> with {keys[0]}, {keys[1]}",
            _wrapped("<tool_call>", "</tool_call>", _keyed(*keys)),
        )
    for word, naming, style in itertools.product(WORDS, NAMINGS, (*JSON_STYLES, *ARGUMENTS)):
        if style in {*JSON_STYLES, "own"} or word in WORDS[:3]:
            yield f"<{word}> {naming} {style}", _element(word, naming, style)
    for prefix, word in itertools.product(PREFIXES, ("invoke", "function")):
        yield f"<{prefix}{word}>", _element(word, "name=", "parameter name=", prefix)
    for word in ("invoke", "function", "tool_call"):
        yield f"<{word}:suffix>", _element(f"{word}:suffix", "name=", "parameter name=")
    yield "own element", Form(_own_element, ("<write_file>", "</text>"), json=False, bare=False)
    yield "own element with JSON", Form(lambda n, a: f"<{n}>{dump(a)}</{n}>", ("</write_file>",))
    yield "GLM", _glm("<arg_value>")
    yield "Gemma", _gemma("<|tool_call>", '<|"|>', "<tool_call|>")
    yield "FunctionGemma", _gemma("<start_function_call>", "<escape>", "<end_function_call>")
    yield (
        "Kimi",
        _named(
            "<|tool_call_begin|>functions.", ":0<|tool_call_argument_begin|>", "<|tool_call_end|>"
        ),
    )
    yield (
        "DeepSeek",
        _named(
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>"
        ),
    )
    yield "DeepSeek 3.1", _named("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>")
    yield (
        "harmony",
        _named("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "<|call|>"),
    )
    yield "Mistral by name", _named("[TOOL_CALLS]", "[ARGS]", "")
    yield "a family not known yet", _named("[ACTION_REQUEST]", ": ", "[/ACTION_REQUEST]")
    yield (
        "arguments as text",
        _wrapped("<tool_call>", "</tool_call>", lambda n, a: _body(n, dump(a))),
    )
    yield "a name before JSON", _named("", "", "", prose=False, several=False)
    yield "ReAct", Form(_react, ("Action:",), prose=False, several=False)
    yield "ReAct in a fence", Form(_react_in_a_fence, ("Action:",), prose=False, several=False)
    yield "Python in a list", Form(lambda n, a: f"[{_python(n, a)}]", loose=True)
    yield (
        "Python between marks",
        Form(
            lambda n, a: f"<|tool_call_start|>[{_python(n, a)}]<|tool_call_end|>",
            ("<|tool_call_end|>",),
        ),
    )
    yield (
        "Python in tags",
        Form(lambda n, a: f"<tool_call>{_python(n, a)}</tool_call>", ("</tool_call>",)),
    )
    yield "Python in a fence", Form(lambda n, a: f"```tool_code\n{_python(n, a)}\n```", loose=True)
    yield (
        "Python after a tag",
        Form(lambda n, a: f"<|python_tag|>{_python(n, a)}", prose=False, several=False),
    )
    yield "JSON", Form(_body, loose=True)
    yield "JSON in a list", Form(lambda n, a: f"[{_body(n, a)}]", loose=True)
    yield "JSON in a fence", Form(lambda n, a: f"```json\n{_body(n, a)}\n```", loose=True)
    yield (
        "an element in a fence",
        Form(
            lambda n, a: f"```xml\n{_element('function', '=', 'parameter=').write(n, a)}\n```",
            json=False,
            prose=False,
            loose=True,
            several=False,
        ),
    )
    yield (
        "JSON with a thought",
        Form(lambda n, a: dump({"thought": "I look.", "id": 1, "tool": n, "args": a}), loose=True),
    )
    yield "JSON as OpenAI has it", Form(_openai, loose=True)


FORMS = dict(_forms())
