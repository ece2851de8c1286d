"""What the readers of JSON hold to: no value is invented, and sound JSON is read as it stands."""

from __future__ import annotations

import json
import math
from typing import Any

from langchain_svc._json.answer import read_answer
from langchain_svc._json.fit import SchemaMismatch, fit_schema, problems
from langchain_svc._json.parser import JsonValue, PartialObject, read_json

from .draw import Draw, cut

JSON_PIECES = (
    "{", "}", "[", "]", '"', "'", "`", ":", ",", " ", "\n", "\\", '\\"', "\\n", "\\u00e9", "\\ud83c", "\\q", "=",
    "=>", ";", "//", "/*", "*/",
    "# ", "<!--", "-->", "```", "```json\n", '"""', "“", "”", "„", "‘", "’", "«", "»", "「", "」",
    "｛", "｝", "【", "：",
    "，", "(", ")", "...", "…",
    "true", "false", "null", "None", "NaN", "undefined", "0", "1", "-", "-7", ".5", "1e5", "1e999", "007", "0x1F",
    "1_000", "9" * 5000,
    '{"a": ', '"a"', '"b": ', '"b": [1, 2]', "a: ", "key", "a", "x y", "+", "<think>", "</think>", "</a>", "<|x|>",
    "Here it is: ", "\ufeff", "\u200b",
    "\x00", "\ud7ff", "é", "🇧🇷", "C:\\new", "[[", "{{", "}}", "[" * 60, '{"a":' * 60, "answer", "yes", "ab", "cd",
    "\r\n", "\u2028",
)  # fmt: skip
_SMALL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b": {"type": "array", "items": {"type": "integer"}},
        "c": {"anyOf": [{"type": "number"}, {"type": "null"}, {"$ref": "#"}]},
    },
    "required": ["a"],
}
SCHEMAS: tuple[dict[str, Any], ...] = (
    _SMALL,
    {**_SMALL, "additionalProperties": False},
    {"type": "array", "items": _SMALL},
    {"type": "string", "enum": ["ab", "cd"]},
    {"type": "integer", "minimum": 1},
    {"type": "boolean"},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"type": "object"},
    {},
)
_DEEPEST = 200
_LONGEST_KEY = 60
_NO_CLOSERS = str.maketrans("", "", "}])｝】")


def lenient(data: bytes) -> None:
    """Any text is read as a value that JSON can say, or as none; sound JSON as it stands."""
    text = Draw(data).text(JSON_PIECES)
    found = read_json(text)
    if found is not None:
        _check_value(found, text)
        # Brackets and white space of other scripts are taken for JSON's, and that is no repair.
        if found.complete and not found.repairs and text.isascii():
            assert same(found.value, _sound(text[: found.end].lstrip("\ufeff")))
    sound = _sound(text)
    if isinstance(sound, dict | list) and _depth(sound) <= _DEEPEST:
        assert found is not None
        assert (same(found.value, sound), found.complete, found.end) == (
            True,
            True,
            len(text.rstrip()),
        )


def _check_value(found: JsonValue, text: str) -> None:
    assert 0 < found.end <= len(text)
    json.dumps(found.value, allow_nan=False).encode()
    lowered = text.casefold()
    for leaf in leaves(found.value):
        if isinstance(leaf, bool):
            assert str(leaf).casefold() in lowered
        elif isinstance(leaf, int | float):
            assert any(letter.isdecimal() for letter in text)
        elif isinstance(leaf, str) and not set("\\+") & set(text):
            # Each word of a text stands in the text that it was read from.
            assert all(word in text for word in leaf.split()), leaf


def leaves(value: Any) -> list[Any]:
    """All keys and scalars of a value."""
    if isinstance(value, dict):
        return [*value, *(leaf for held in value.values() for leaf in leaves(held))]
    if isinstance(value, list):
        return [leaf for held in value for leaf in leaves(held)]
    return [value]


def _sound(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _depth(value: Any) -> int:
    below = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else None
    )
    return 0 if below is None else 1 + max(map(_depth, below), default=0)


def same(found: Any, wanted: Any) -> bool:
    """Whether a value is what the standard library read, but for what no JSON can say."""
    if isinstance(wanted, dict):
        names = {_whole(name): held for name, held in wanted.items()}
        return (
            isinstance(found, dict)
            and found.keys() == names.keys()
            and all(same(found[name], held) for name, held in names.items())
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(map(same, found, wanted))
        )
    if isinstance(wanted, float) and not math.isfinite(wanted):
        return found is None or found == wanted
    if isinstance(wanted, str):
        return bool(found == _whole(wanted))
    return type(found) is type(wanted) and bool(found == wanted)


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def drawn(draw: Draw, depth: int = 4) -> Any:
    """A JSON value."""
    kind = draw.below(10 if depth else 7)
    if kind < 3:
        return draw.short(JSON_PIECES)
    if kind == 3:
        return draw.byte() - 100
    if kind == 4:
        return (draw.byte() - 100) / 8
    if kind == 5:
        return draw.one_of((True, False))
    if kind == 6:
        return None
    items = [drawn(draw, depth - 1) for _ in range(draw.below(5))]
    if kind == 7:
        return items
    return {_key(draw): item for item in items}


def _key(draw: Draw) -> str:
    """A key; one that is cut off behind a bracket could not be told from a stray quote."""
    return draw.short(JSON_PIECES, 3).translate(_NO_CLOSERS)[:_LONGEST_KEY]


def cut_off(data: bytes) -> None:
    """Of sound JSON that is cut off, what is read stands in the whole, or is said to be cut."""
    draw = Draw(data)
    style, at, more = (
        draw.below(4),
        draw.byte() << 8 | draw.byte(),
        draw.short(JSON_PIECES),
    )
    value = {_key(draw): drawn(draw) for _ in range(1 + draw.below(3))}
    text = json.dumps(value, ensure_ascii=style % 2 == 0, indent=style // 2 or None)
    if more.strip()[:1] not in ("", ","):
        more = ""
    whole = read_json(text + (more if more.isspace() else ""))
    assert whole is not None
    assert (same(whole.value, value), whole.complete, whole.end) == (
        True,
        True,
        len(text),
    )
    part = text[: at % (len(text) + 1)]
    found = read_json(part)
    shown = PartialObject().parse_chunk(part)
    if (
        found is not None and not found.complete
    ):  # a bracket at the end may close it, quote or not
        _check_begun(found.value, value, cut=found.cut_in_value)
    if shown is not None:
        _check_begun(shown, value, cut=True)


def _check_begun(found: Any, whole: Any, *, cut: bool) -> None:
    """Check that a value is the other one as far as it had come."""
    if isinstance(found, dict) and isinstance(whole, dict):
        names = {_whole(name): held for name, held in whole.items()}
        assert found.keys() <= names.keys(), (found, whole)
        last = [*names][: len(found)]
        for name, held in found.items():
            _check_begun(held, names[name], cut=cut and name == last[-1])
    elif isinstance(found, list) and isinstance(whole, list):
        assert len(found) <= len(whole)
        for at, held in enumerate(found):
            _check_begun(held, whole[at], cut=cut and at == len(found) - 1)
    elif cut and isinstance(found, str) and isinstance(whole, str):
        assert _whole(whole).startswith(found.rstrip("\ufffd")), (found, whole)
    elif (
        cut and isinstance(found, str | int | float) and not isinstance(found, bool)
    ):  # a number or a word that has begun
        begun = str(found).removesuffix(".0").lstrip("-")
        assert json.dumps(whole).lstrip("-").startswith(begun), (found, whole)
    else:
        assert same(found, whole), (found, whole)


def partial(data: bytes) -> None:
    """Whatever streams in is shown without complaint, and what is shown is JSON."""
    draw = Draw(data)
    how = draw.byte()
    parser = PartialObject()
    for part in cut(draw.text(JSON_PIECES), how + 1):
        json.dumps(parser.parse_chunk(part), allow_nan=False)


def answer(data: bytes) -> None:
    """An answer follows its schema; where the text holds none, that is said."""
    draw = Draw(data)
    schema = draw.one_of(SCHEMAS)
    text = draw.text(JSON_PIECES)
    try:
        found = read_answer(text, schema)
    except SchemaMismatch as error:
        assert error.problems
    else:
        assert problems(found, schema) == []
        json.dumps(found, allow_nan=False).encode()


def fitting(data: bytes) -> None:
    """A value that is valid stays as it is; what is made of another is valid."""
    draw = Draw(data)
    schema = draw.one_of(SCHEMAS)
    value = drawn(draw)
    wrong = problems(value, schema)
    try:
        fitted, penalty = fit_schema(value, schema)
    except SchemaMismatch as mismatch:
        assert wrong
        assert mismatch.problems
        return
    assert problems(fitted, schema) == []
    if not wrong:
        assert (fitted, penalty) == (value, 0)
