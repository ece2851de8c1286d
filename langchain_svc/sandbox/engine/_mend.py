"""What a complaint about an answer says beyond the schema: bounds and choices in plain words.

A validator may know more than the schema that was sent, and says so only in its error. Written
into the schema, it will be obeyed by the next answer.
"""

from __future__ import annotations

import re

from langchain_svc.sandbox.engine._schema import Schema, mapping

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_BOUNDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(rf"\bgreater than or equal to {_NUMBER}|\bat least {_NUMBER}(?! (?:char|item))"),
        "minimum",
    ),
    (
        re.compile(rf"\bless than or equal to {_NUMBER}|\bat most {_NUMBER}(?! (?:char|item))"),
        "maximum",
    ),
    (re.compile(rf"\b(?:greater|more) than {_NUMBER}"), "exclusiveMinimum"),
    (re.compile(rf"\bless than {_NUMBER}"), "exclusiveMaximum"),
    (re.compile(r"\bat least (\d+) char"), "minLength"),
    (re.compile(r"\bat most (\d+) char"), "maxLength"),
    (re.compile(r"\bat least (\d+) items?"), "minItems"),
    (re.compile(r"\bat most (\d+) items?"), "maxItems"),
)
_CHOICES = re.compile(
    r"\b(?:should be|one of|must be)\b:?\s?\[?((?:'[^'\n]{1,80}'(?:, | or )?){2,40})"
)
_REACH = 250  # characters behind a field's name that speak about it
_LONGEST = 8_000


def mended(schema: Schema, complaint: str) -> Schema:
    """Return the schema with the demands that the complaint makes on its properties."""
    properties = mapping(schema.get("properties"))
    if not complaint or not properties:
        return schema
    text = complaint[:_LONGEST]
    names = "|".join(map(re.escape, sorted(properties, key=len, reverse=True)))
    places = list(re.finditer(rf"(?<!\w)(?:{names})(?!\w)", text))
    ends = [place.start() for place in places[1:]] + [len(text)]
    demands: dict[str, Schema] = {}
    for place, end in zip(places, ends, strict=False):
        said = text[place.end() : min(end, place.end() + _REACH)]
        demands.setdefault(place[0], {}).update(_demands(said))
    changed: Schema = {
        name: {**mapping(old), **demands.get(name, {})} for name, old in properties.items()
    }
    return {**schema, "properties": changed}


def _demands(said: str) -> Schema:
    found: Schema = {}
    choices = _CHOICES.search(said)
    if choices:
        found["enum"] = [*re.findall(r"'([^']+)'", choices[1])]
    for pattern, keyword in _BOUNDS:
        bound = pattern.search(said)
        if bound:
            number = float(next(group for group in bound.groups() if group))
            found[keyword] = int(number) if number.is_integer() else number
    return found
