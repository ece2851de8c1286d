"""Which fact of a text belongs to which field: the clearest pairs are made first."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._dates import dated
from langchain_svc.sandbox.engine._facts import Fact, facts_of
from langchain_svc.sandbox.engine._fields import Field, evidence, is_certain, suits
from langchain_svc.sandbox.engine._gazetteer import LANGUAGE_CODES
from langchain_svc.sandbox.engine._schema import bend_number, bend_text
from langchain_svc.sandbox.engine._source import Source, overlap

if TYPE_CHECKING:
    from collections.abc import Sequence

ENOUGH = 0.6  # evidence that an optional value is meant
_SCALARS = {"string", "integer", "number"}


def scalar(one: Field, fact: Fact, text: str) -> str | int | float:
    """Return a fact as a value of the field's type; `text` is where the fact stands."""
    if one.kind == "string":
        said = fact.value if isinstance(fact.value, str) else text[fact.start : fact.end]
        if fact.kind == "language" and one.wants_code:
            said = LANGUAGE_CODES[said.lower()]
        if fact.kind in {"date", "day"}:
            described = str(one.schema.get("description", ""))
            said = dated(said, str(one.schema.get("format", "")), described)
        return bend_text(said, one.schema)
    number = fact.value if isinstance(fact.value, (int, float)) else 0
    if fact.kind == "percent" and one.kind == "number" and "percent" not in one.hints:
        number = round(number / 100, 10)
    return bend_number(number, one.schema, whole=one.kind == "integer")


def assign(fields: Sequence[Field], source: Source, *, form: bool) -> dict[str, str | int | float]:
    """Deal the facts of the text to the scalar fields.

    A required field takes any fact of a suitable kind, an optional one of a call only a fact
    that the words around it, or its kind alone, show to be meant.
    """
    scalars = [one for one in fields if one.kind in _SCALARS and not one.is_chosen]
    pairs = [
        (claim, one, fact)
        for one in scalars
        for fact in source.free()
        if (claim := _claim(one, fact, source, form=form)) is not None
    ]
    dealt: dict[str, str | int | float] = {}
    for _, one, fact in sorted(pairs, key=itemgetter(0), reverse=True):
        if one.name not in dealt and not any(overlap(fact, taken) for taken in source.taken):
            dealt[one.name] = scalar(one, fact, source.text)
            source.take(one, fact)
    return dealt


def _claim(one: Field, fact: Fact, source: Source, *, form: bool) -> float | None:
    """Return how strong a field's claim to a fact is; `None` where it has none."""
    suited = suits(one, fact)
    if suited is None:
        return None
    said = evidence(one, fact, source.text)
    if fact.kind == "number_word" and said < ENOUGH and _has_digits(source):
        return None
    meant = said >= ENOUGH or is_certain(one, fact) or _takes_any(one, fact, form=form)
    return suited + said + 0.5 * one.required if meant else None


def _has_digits(source: Source) -> bool:
    """Tell whether numbers are written in figures, so that those in words only count things."""
    return any(f.kind == "number" for f in facts_of(source.background or source.text))


def _takes_any(one: Field, fact: Fact, *, form: bool) -> bool:
    """Tell whether a field takes a fact with nothing but its kind to speak for it."""
    if one.is_free_text:
        return one.required and fact.kind == "quoted" and not form
    return one.required or form


def from_background(one: Field, source: Source) -> str | int | float | None:
    """Look for a value in the rest of the question, where this part does not tell it."""
    text = source.background
    best: tuple[float, Fact] | None = None
    for fact in facts_of(text) if text else ():
        suited = suits(one, fact)
        if suited is None:
            continue
        said = evidence(one, fact, text)
        if (one.required or said >= ENOUGH) and (best is None or suited + said > best[0]):
            best = (suited + said, fact)
    return scalar(one, best[1], text) if best else None
