"""Answers that must be JSON: filled by a schema, by named keys, or by an example."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._fields import field_of
from langchain_svc.sandbox.engine._fill import Filler
from langchain_svc.sandbox.engine._invent import Rules
from langchain_svc.sandbox.engine._jsontext import Json, dump, json_values
from langchain_svc.sandbox.engine._mend import mended
from langchain_svc.sandbox.engine._schema import Schema, kind_of, resolve
from langchain_svc.sandbox.engine._source import Missing, Source
from langchain_svc.sandbox.engine._words import sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_svc.sandbox.engine._reading import Reading

_LONGEST = 20_000  # characters of a prompt that are searched for its demands
_JSON = re.compile(r"\bJSON\b")
_DEMANDED = re.compile(
    r"\b(?:return|respond|reply|answer|output|give|produce|format\w*|generate|extract|write|provide)\b"
    r"[^.\n]{0,120}\bJSON\b|\bJSON\b[^.\n]{0,40}\b(?:only|format|object|with|output|response)\b"
    r"|\b(?:as|in|valid|only) (?:an? )?(?:valid )?JSON\b",
    re.IGNORECASE,
)
_ASKED_ABOUT = re.compile(r"\bwhat (?:is|does) JSON\b|\bexplain JSON\b", re.IGNORECASE)
_KEY_WORD = re.compile(r"\b(?:keys?|fields?|properties|property|attributes?)\b", re.IGNORECASE)
_QUOTED_KEY = re.compile(r"[\"'`\u201c]([A-Za-z_][\w-]{0,60})[\"'`\u201d]")
_BARE_KEYS = re.compile(
    r"\b(?:keys|fields|properties|attributes)\b:?(?: named| called| are)?\s"
    r"((?:[A-Za-z_]\w{0,40}(?:, (?:and )?| and )){0,20}[A-Za-z_]\w{0,40})",
    re.IGNORECASE,
)


def _keys_named(text: str) -> list[str]:
    """Return the keys that the sentences about JSON or about keys name."""
    for sentence in sentences(text):
        if not (_KEY_WORD.search(sentence) or _JSON.search(sentence)):
            continue
        quoted = _QUOTED_KEY.findall(sentence)
        if quoted:
            return list(dict.fromkeys(quoted))
        bare = _BARE_KEYS.search(sentence)
        if bare and _KEY_WORD.search(sentence):
            return list(dict.fromkeys(re.split(r", (?:and )?| and ", bare[1])))
    return []


_TYPES = (
    (
        re.compile(r"(?:^|_)(?:age|year|count|quantity|rating|stars|size)$", re.IGNORECASE),
        "integer",
    ),
    (
        re.compile(r"(?:price|cost|amount|score|confidence|total|temperature)$", re.IGNORECASE),
        "number",
    ),
    (re.compile(r"^(?:is|has|can|should)_", re.IGNORECASE), "boolean"),
    (re.compile(r"^(?:tags|keywords|items|steps|topics|sources)$", re.IGNORECASE), "array"),
)


def _typed(key: str) -> Schema:
    """Guess the type of a key that came without a schema from its name."""
    kind = next((kind for pattern, kind in _TYPES if pattern.search(key)), "string")
    return {"type": kind, "items": {"type": "string"}} if kind == "array" else {"type": kind}


# What stands before an example, as opposed to data.
_SHOWN = re.compile(
    r"\b(?:like|such as|format|example|structure|shape|following|form|template|this|schema)\b"
    r"[^.]{0,40}$",
    re.IGNORECASE,
)
_SHOWN_REACH = 80


def _example_schema(text: str) -> Schema | None:
    """Return the shape of a JSON example in the instructions as a schema."""
    for found in json_values(text):
        shown = _SHOWN.search(text[max(0, found.start - _SHOWN_REACH) : found.start])
        if shown and isinstance(found.value, dict) and found.value:
            return _shape(found.value, 0)
    return None


_DEEPEST_EXAMPLE = 6


def _shape(value: Json, depth: int) -> Schema:
    if isinstance(value, dict) and depth < _DEEPEST_EXAMPLE:
        inner: Schema = {key: _shape(item, depth + 1) for key, item in value.items()}
        return {"type": "object", "properties": inner, "required": list(value)}
    if isinstance(value, list) and depth < _DEEPEST_EXAMPLE:
        return {"type": "array", "items": _shape(value[0], depth + 1) if value else {}}
    if isinstance(value, str) and "|" in value:
        options: list[Json] = [part.strip(" '\"") for part in value.split("|")]
        return {"enum": options}
    kinds: dict[type, str] = {bool: "boolean", int: "integer", float: "number"}
    return {"type": kinds.get(type(value), "string")}


def wanted_schema(reading: Reading) -> Schema | None:
    """Return the schema of the JSON that the prompt demands, if it demands any."""
    instructions = reading.instructions[:_LONGEST]
    told = f"{instructions}\n{reading.question[:_LONGEST]}\n{reading.complaint}"
    if reading.schema is not None and re.search(r"\b(?:JSON|schema)\b", told, re.IGNORECASE):
        return mended(reading.schema, reading.complaint)
    # Instructions about calls speak of JSON, too.
    demanded = reading.question[:_LONGEST] if reading.tools else told
    if not _DEMANDED.search(demanded) or _ASKED_ABOUT.search(reading.question):
        return None
    example = _example_schema(told)
    if example:
        return example
    keys = _keys_named(told)
    if keys:
        properties: Schema = {key: _typed(key) for key in keys}
        return {"type": "object", "properties": properties, "required": [*keys]}
    return {"type": "object", "properties": {"answer": {}}, "required": ["answer"]}


def fill_form(schema: Schema, reading: Reading, reply: Callable[[], str]) -> str:
    """Return the JSON text that the schema asks for, filled for the question."""
    results = [result.text for result in reading.results if not result.failed]
    text = "\n".join([_without_format(reading.question), *results])
    filler = Filler(schema, Source(text), Rules(text, reply), form=True)
    root = resolve(schema, schema)
    if kind_of(root) == "object" and "anyOf" not in root and "oneOf" not in root:
        return dump(filler.object(root))
    value = filler.value(field_of("answer", root, schema, required=True), 0)
    return dump(None if isinstance(value, Missing) else value)


def _without_format(question: str) -> str:
    """Return the question without its sentences about the form of the answer."""
    kept = [s for s in sentences(question) if not _JSON.search(s)]
    return " ".join(kept) if kept else question
