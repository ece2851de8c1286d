"""A filled form that a prompt asks for -> the JSON Schema that it stands for.

    ... of this form ... in the place of each <...>:
    {"title": "<string>", "stars": <integer or null, 1 to 5>, "people": ["<string: who>", ...]}

In the form a placeholder stands for each value; the lines before it say how many items a list has,
and which keys may be left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Schema = dict[str, Any]

_ASKED = re.compile(r"\bof this form\b[^\n]*<\.\.\.>:\n")
_LEFT_OUT = re.compile(r"(?m)^These keys may be left out: (.*)\.$")
_ABOUT = re.compile(r"(?m)^About (.*?): (.*)$")
_STEP = re.compile(r'[\w-]+|"(?:[^"\\]|\\.)*"?|\[\]|\{\}|(,)')
_NUMBER = r"-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?(?:[eE][+-]?\d{1,3})?"
_FACT = re.compile(
    rf"(?:(at least|at most|above|below|a multiple of) )?({_NUMBER})(?: to ({_NUMBER}))?"
    r"(?: (character|item)s?)?"
)
_FORMAT = re.compile(r"[a-z][a-z0-9-]*")
_KINDS = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "true or false": "boolean",
}
_OTHER_BOUNDS = {
    "above": "exclusiveMinimum",
    "below": "exclusiveMaximum",
    "a multiple of": "multipleOf",
}
_BOUNDED = {
    "": ("minimum", "maximum"),
    "character": ("minLength", "maxLength"),
    "item": ("minItems", "maxItems"),
}
_NONE: Schema = {"const": None}
_NULL: Schema = {"type": "null"}
_DECODER = json.JSONDecoder()
Path = tuple[str, ...]


def forms_in(text: str) -> Iterator[tuple[Schema, int, int]]:
    """The schema of each form that a text asks for, and where the form stands."""
    done = 0
    for asked in _ASKED.finditer(text):
        notes = text[done : asked.start()]
        done = asked.end()
        try:
            reader = _Reader(text, done, notes)
            schema = reader.value(())
        except (ValueError, RecursionError):
            continue
        yield schema, done, reader.at


class _Reader:
    """Reads one form; a ValueError says that it is none."""

    def __init__(self, text: str, start: int, notes: str) -> None:
        self._text = text
        self.at = start
        self._optional: set[Path] = set()
        for names in _LEFT_OUT.findall(notes):
            self._optional.update(_paths(names))
        self._counts: dict[Path, Schema] = {}
        for name, said in _ABOUT.findall(notes):
            path = () if name == "the answer" else next(_paths(name))
            self._counts[path] = _bounds(said.partition(";")[0])

    def value(self, path: Path) -> Schema:
        """The value here, whose alternatives are joined by "or"."""
        alternatives = [self._alternative(path)]
        while self._passes(" or "):
            alternatives.append(self._alternative(path))
        if len(alternatives) == 1:
            return alternatives[0]
        return {"anyOf": [_NULL if one == _NONE else one for one in alternatives]}

    def _alternative(self, path: Path) -> Schema:
        if self._passes("{"):
            return self._object(path)
        if self._passes("["):
            item = self.value((*path, "[]"))
            self._expect(", ...]")
            return {"type": "array", "items": item, **self._counts.get(path, {})}
        if self._passes("<"):
            return _placeholder(self._until(">"), json.loads)
        if self._passes('"<'):
            return _placeholder(self._until('>"'), str)
        value, self.at = _DECODER.raw_decode(self._text, self.at)
        return {"const": value}

    def _object(self, path: Path) -> Schema:
        fields: dict[str, Schema] = {}
        required: list[str] = []
        others: Schema | bool = False
        while not self._passes("}"):
            if fields:
                self._expect(", ")
            if self._passes('"<key>": '):
                others = self.value((*path, "{}"))
                self._expect(", ...}")
                break
            name, self.at = _DECODER.raw_decode(self._text, self.at)
            self._expect(": ")
            place = (*path, str(name))
            fields[str(name)] = self.value(place)
            if place not in self._optional:
                required.append(str(name))
        return {
            "type": "object",
            "properties": fields,
            "required": required,
            "additionalProperties": others,
        }

    def _passes(self, sign: str) -> bool:
        found = self._text.startswith(sign, self.at)
        if found:
            self.at += len(sign)
        return found

    def _expect(self, sign: str) -> None:
        if not self._passes(sign):
            raise ValueError(sign)

    def _until(self, sign: str) -> str:
        """What stands before a sign, with its escapes undone."""
        end = self._text.index(sign, self.at)
        words, self.at = self._text[self.at : end], end + len(sign)
        return str(json.loads(f'"{words}"'))


def _paths(names: str) -> Iterator[Path]:
    """The paths in a list of them: "nights, start.country, lines[].note"."""
    path: list[str] = []
    for step in _STEP.finditer(names):
        if step[1]:
            yield tuple(path)
            path = []
        elif step[0].startswith('"'):
            path.append(str(json.loads(step[0])))
        else:
            path.append(step[0])
    yield tuple(path)


def _placeholder(words: str, option: Callable[[str], object]) -> Schema:
    """What a placeholder stands for; `option` reads one of those that it lists."""
    kind, _, about = words.partition(": ")
    if kind == "any value":
        return {}
    if kind == "one of":
        return {"enum": [option(word) for word in about.split("; ")[0].split(", ")]}
    kind = kind.partition(", pattern ")[0]
    kind, _, facts = kind.partition(", ")
    or_null = kind.endswith(" or null")
    kind = kind.removesuffix(" or null")
    if kind not in _KINDS:
        raise ValueError(kind)
    schema: Schema = {"type": _KINDS[kind], **_bounds(facts)}
    if about:
        schema["description"] = about
    return {"anyOf": [schema, _NULL]} if or_null else schema


def _bounds(facts: str) -> Schema:
    """The bounds that are said of a value, and its format."""
    schema: Schema = {}
    for fact in facts.split(", "):
        bound = _FACT.fullmatch(fact)
        if bound is None:
            if _FORMAT.fullmatch(fact):
                schema["format"] = fact
            continue
        words, first, last, unit = bound.groups(default="")
        if words in _OTHER_BOUNDS:
            schema[_OTHER_BOUNDS[words]] = json.loads(first)
        else:
            lowest, highest = _BOUNDED[unit]
            if words != "at most":
                schema[lowest] = json.loads(first)
            if words != "at least":
                schema[highest] = json.loads(last or first)
    return schema
