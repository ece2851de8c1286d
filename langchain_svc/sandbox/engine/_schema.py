"""JSON schemas: references resolved, alternatives chosen, values bent to fit.

What a schema says comes from a stranger, too: references may be circular and patterns may be
traps. Depth is bounded, and only patterns of a simple form are ever run.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from langchain_svc.sandbox.engine._jsontext import Json

Schema: TypeAlias = "dict[str, Json]"

DEEPEST = 10
_MOST_HOPS = 12


def resolve(schema: Json, root: Schema) -> Schema:
    """Return the schema that `schema` stands for: references followed, `allOf` merged."""
    current: Schema = schema if isinstance(schema, dict) else {}
    for _ in range(_MOST_HOPS):
        reference = current.get("$ref")
        parts = current.get("allOf")
        if isinstance(reference, str):
            rest = {key: value for key, value in current.items() if key != "$ref"}
            current = {**_target(reference, root), **rest}
        elif isinstance(parts, list):
            rest = {key: value for key, value in current.items() if key != "allOf"}
            current = _merged([part for part in parts if isinstance(part, dict)], rest, root)
        else:
            break
    return current


def _target(reference: str, root: Schema) -> Schema:
    node: Json = root
    for step in reference.removeprefix("#").strip("/").split("/") if reference != "#" else []:
        key = step.replace("~1", "/").replace("~0", "~")
        node = node.get(key, {}) if isinstance(node, dict) else {}
    return node if isinstance(node, dict) else {}


def _merged(parts: list[Schema], rest: Schema, root: Schema) -> Schema:
    merged: Schema = {}
    properties: Schema = {}
    required: list[Json] = []
    for part in (*parts, rest):
        reference = part.get("$ref")
        whole = {**_target(reference, root), **part} if isinstance(reference, str) else part
        merged.update({key: value for key, value in whole.items() if key != "$ref"})
        properties.update(mapping(whole.get("properties")))
        required += items_of(whole.get("required"))
    if properties:
        merged.update(properties=properties, required=required)
    return merged


def mapping(value: Json) -> Schema:
    """Return `value` if it is an object, and an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def items_of(value: Json) -> list[Json]:
    """Return `value` if it is a list, and an empty one otherwise."""
    return value if isinstance(value, list) else []


def alternatives(schema: Schema, root: Schema) -> tuple[list[Schema], bool]:
    """Return what a value may be, apart from null, and whether it may be null."""
    choices = items_of(schema.get("anyOf")) or items_of(schema.get("oneOf"))
    kinds = schema.get("type")
    if choices:
        rest = {k: v for k, v in schema.items() if k not in {"anyOf", "oneOf"}}
        every = [{**rest, **resolve(choice, root)} for choice in choices]
    elif isinstance(kinds, list):
        every = [{**schema, "type": kind} for kind in kinds]
    else:
        every = [schema]
    real = [choice for choice in every if choice.get("type") != "null"]
    return real, len(real) < len(every) or schema.get("nullable") is True


def kind_of(schema: Schema) -> str:
    """Return the JSON type a schema asks for, where it does not say so by what it describes."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return {"dict": "object", "float": "number", "int": "integer", "str": "string"}.get(
            kind, kind
        )
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    numeric = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    return "number" if numeric & set(schema) else "string"


def number_of(schema: Schema, key: str) -> float | None:
    """Return a numeric keyword of a schema."""
    value = schema.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def count_of(schema: Schema, key: str, default: int) -> int:
    """Return a keyword that counts something, within reason."""
    value = number_of(schema, key)
    return default if value is None else max(0, min(int(value), 1_000))


# --- Bending values ------------------------------------------------------------------------


def bend_number(value: float, schema: Schema, *, whole: bool) -> int | float:
    """Move a number into the bounds of the schema, and make it whole where it must be."""
    step = number_of(schema, "multipleOf") or (1 if whole else 0)
    margin = 1 if whole else 0.1
    low, high = number_of(schema, "minimum"), number_of(schema, "maximum")
    above, below = number_of(schema, "exclusiveMinimum"), number_of(schema, "exclusiveMaximum")
    floor, ceiling = _first(low, above), _first(high, below)
    if high is not None:
        value = min(value, high)
    if below is not None and value >= below:
        value = below - _inside(floor, below, margin)
    if low is not None:
        value = max(value, low)
    if above is not None and value <= above:
        value = above + _inside(above, ceiling, margin)
    if step > 0:
        value = _on_step(value, step, floor)
    return round(value) if whole or value == int(value) else value


def _first(one: float | None, other: float | None) -> float | None:
    return other if one is None else one


def _inside(low: float | None, high: float | None, margin: float) -> float:
    """Return how far from its end a value stays inside a range, which may be narrow."""
    if low is None or high is None or margin >= 1:
        return margin
    return min(margin, (high - low) / 2)


def _on_step(value: float, step: float, floor: float | None) -> float:
    multiple = math.floor(value / step + 1e-9) * step
    return multiple + step if floor is not None and multiple < floor else multiple


def bend_text(text: str, schema: Schema) -> str:
    """Fit a text to the format, the pattern and the lengths of the schema."""
    told, pattern = schema.get("format"), schema.get("pattern")
    form = _FORMATS.get(told) if isinstance(told, str) else None
    if form:
        return text if form[0].fullmatch(text) else form[1]
    if isinstance(pattern, str):
        text = fit_pattern(text, pattern)
    shortest, longest = count_of(schema, "minLength", 0), count_of(schema, "maxLength", 1_000_000)
    if len(text) < shortest:
        text += ("." if text else "x") * (shortest - len(text))
    return text[:longest]


# Each format with a text that has it.
_FORMATS = {
    name: (re.compile(pattern), sample)
    for name, pattern, sample in (
        ("email", r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,6}", "alex@example.com"),
        ("date", r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", "2024-06-15"),
        ("date-time", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)", "2024-06-15T09:30:00Z"),
        ("time", r"\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)?", "09:30:00Z"),
        ("uri", r"[a-z][a-z0-9+.-]{1,20}://[^\s<>]{1,2000}", "https://example.com/"),
        (
            "uuid",
            r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            "5a6ff6a0-0000-4000-8000-000000000001",
        ),
        ("ipv4", r"(?:\d{1,3}\.){3}\d{1,3}", "192.0.2.1"),
        ("hostname", r"[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*", "example.com"),
    )
}

# --- Patterns ------------------------------------------------------------------------------

_ATOM = re.compile(
    r"(?:\[(?P<class>\^?(?:\\.|[^\]\\]){1,60})\]|\\(?P<escape>.)|(?P<dot>\.)|(?P<plain>[^\\\[\](){}|*+?^$.]))"
    r"(?:(?P<sign>[*+?])|\{(?P<least>\d{1,3})(?P<open>,\d{0,3})?\})?"
)
_ESCAPES = {"d": "4", "w": "a", "s": " ", "S": "a", "D": "a", "W": "-", "t": "\t", "n": "\n"}
_MOST_OPEN = 4  # quantifiers without an end; more of them make matching slow


def _atom_sample(found: re.Match[str]) -> str:
    if found["class"]:
        inner = found["class"]
        if inner.startswith("^"):
            return next((c for c in "a1-_ Z" if c not in inner), "é")
        return _ESCAPES.get(inner[1], inner[1]) if inner[0] == "\\" else inner[0]
    if found["escape"]:
        return _ESCAPES.get(found["escape"], found["escape"])
    return "a" if found["dot"] else found["plain"]


def _atoms(pattern: str) -> list[re.Match[str]] | None:
    """Return the atoms of a pattern without groups and alternatives, or `None`."""
    body = pattern.removeprefix("^").removesuffix("$")
    atoms: list[re.Match[str]] = []
    at = 0
    while at < len(body):
        found = _ATOM.match(body, at)
        if not found:
            return None
        atoms.append(found)
        at = found.end()
    return (
        atoms if sum(bool(atom["sign"] or atom["open"]) for atom in atoms) <= _MOST_OPEN else None
    )


def fit_pattern(text: str, pattern: str) -> str:
    """Return `text` if it matches a simple pattern, else a text that does.

    A pattern with groups or alternatives is neither run nor followed.
    """
    atoms = _atoms(pattern[:500])
    if atoms is None:
        return text
    try:
        compiled = re.compile(pattern)
    except re.error:
        return text
    for candidate in (text, text.upper(), text.lower(), *re.findall(r"\w+", text)[:20]):
        if compiled.search(candidate[:200]) and len(candidate) <= 200:  # noqa: PLR2004 - as above
            return str(candidate)
    return "".join(_atom_sample(atom) * _repeats(atom) for atom in atoms)


def _repeats(atom: re.Match[str]) -> int:
    if atom["least"]:
        return int(atom["least"])
    return 0 if atom["sign"] in {"*", "?"} else 1
