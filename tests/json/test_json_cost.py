"""What reading costs: in proportion to the length of the text, whatever the text.

Counted are the calls that the reader makes, into Python and into C. What one call costs inside a
regular expression is not counted: `tests/test_growth.py` asks each pattern, and 64 kB of anything.
"""

import json

import pytest
from share import pairs

from fuzz.cost import counted
from langchain_svc._json.answer import read_answer
from langchain_svc._json.fit import SchemaMismatch, fit_schema, problems
from langchain_svc._json.parser import PartialObject, read_json

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}},
    "required": ["a"],
}
HARD = {
    "quotes": lambda n: '{"a": ' + '"' * n,
    "quotes and spaces": lambda n: '{"a": "' + '" ' * n,
    "quotes and commas": lambda n: '{"a": "' + 'x", ' * n,
    "quotes and comments": lambda n: '{"a": "' + 'x" /* ' * n,
    "opening braces": lambda n: "{" * n,
    "opening brackets": lambda n: "[" * n,
    "fields of fields": lambda n: '{"a":' * n,
    "lists of lists": lambda n: "[1," * n,
    "closing brackets": lambda n: '{"a":[{"b":1' + "]" * n,
    "lost ends": lambda n: "[" + '{"a": "x\n}, ' * n,
    "triple quotes": lambda n: "{" + '"a": """ x ' * n,
    "objects in prose": lambda n: 'use {"a": x, ' * n,
    "brackets in prose": lambda n: "[a " * n,
    "many objects": lambda n: '{"a": 1} ' * n,
    "many broken objects": lambda n: "{'a': [x], 'c': {'d': 1}} " * n,
    "thoughts": lambda n: '<think>{"a":' * n,
    "ends of thoughts": lambda n: '</think>{"a":1}' * n,
    "escapes": lambda n: '{"a": "\\q C:' + "\\n" * n + '"}',
    "sums": lambda n: '{"a": "x"' + ' + "y"' * n + "}",
    "lines": lambda n: '{"a": b' + "\n c" * n,
    "sound": lambda n: json.dumps({"a": "x", "b": list(range(n))}),
    "repaired": lambda n: "{'a': 'x', 'b': [" + "1, " * n + "]}",
}


def answer(text):
    try:
        return read_answer(text, SCHEMA)
    except SchemaMismatch:
        return None


def by_letters(text):
    parser = PartialObject()
    for letter in text:
        shown = parser.parse_chunk(letter)
    return shown


@pytest.mark.parametrize(("kind", "function"), pairs(HARD, [read_json, answer, by_letters]))
def test_twice_the_text_takes_about_twice_the_calls(kind, function):
    if function is read_json and kind == "opening brackets":
        pytest.skip("stops at the depth that is read")
    one, two = (counted(lambda n=n: function(HARD[kind](n))) for n in (200, 400))
    assert two <= 2.6 * one + 2_000


def test_a_stream_of_small_pieces_is_read_once():
    text = json.dumps({"l": [{"s": "x" * 20, "n": n} for n in range(2_500)]})  # about 100 KB
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)]

    def stream(pieces):
        parser = PartialObject()
        for piece in pieces:
            shown = parser.parse_chunk(piece)
        return shown

    assert stream([*pieces, " " * len(text)]) == json.loads(text)
    half, whole = (counted(lambda n=n: stream(pieces[: len(pieces) // n])) for n in (2, 1))
    assert whole <= 2.2 * half
    assert whole <= 20 * len(pieces)


def test_what_a_union_tries_does_not_multiply():
    node = {"$ref": "#/$defs/node"}
    members = [
        {"type": "object", "properties": {"t": node, name: {"type": "integer"}}, "required": [name]}
        for name in "xy"
    ]
    schema = {**node, "$defs": {"node": {"anyOf": members}}}

    def nested(depth):
        value = {"z": 1}
        for _ in range(depth):
            value = {"t": value, "x": "1", "y": "2"}
        return value

    def refuse(value):
        assert problems(value, schema)
        with pytest.raises(SchemaMismatch):
            fit_schema(value, schema)

    shallow, deep = (counted(lambda n=n: refuse(nested(n))) for n in (12, 24))
    assert deep <= 3 * shallow
