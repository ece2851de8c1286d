"""Where the values of a schema come from: one text, what surrounds it, what came before."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from langchain_svc.sandbox.engine._facts import LONGEST, Fact, facts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_svc.sandbox.engine._fields import Field
    from langchain_svc.sandbox.engine._jsontext import Json


class Missing:
    """What stands for a value that is left out; `None` is a value in JSON."""


MISSING = Missing()


class Inventor(Protocol):
    """Makes up what the text does not say."""

    def text(self, field: Field, source: Source) -> str:
        """Return a text for a field."""

    def number(self, field: Field, source: Source) -> float:
        """Return a number for a field, bounds aside."""

    def option(self, field: Field, options: Sequence[Json], source: Source) -> Json:
        """Return one of the options of a field."""

    def writes(self, field: Field) -> bool:
        """Tell whether the items of a list are made from the whole text and not found in it."""

    def items(self, field: Field) -> Sequence[str]:
        """Return the texts of a list."""

    def closest(self, descriptions: Sequence[str], source: Source) -> int:
        """Return the index of the description that is closest to the text."""


@dataclass
class Source:
    """The text that values come from, what surrounds it, and what of it is used up.

    `previous` are the results of earlier tools, for fields that take a handle or a text;
    `given` are arguments written out in the question, as in `add(a=1)`;
    `known` are the stems that name the work and therefore are no values.
    """

    text: str
    background: str = ""
    previous: tuple[str, ...] = ()
    given: dict[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    taken: list[Fact] = field(default_factory=list)
    found: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Cut texts to what is searched for values: the caches must not hold more."""
        self.text, self.background = self.text[:LONGEST], self.background[:LONGEST]

    def free(self) -> list[Fact]:
        """Return the facts of the text that no field has taken, nor any that overlap it."""
        return [f for f in facts_of(self.text) if not any(overlap(f, t) for t in self.taken)]

    def take(self, owner: Field, fact: Fact) -> None:
        """Give a fact to a field."""
        self.taken.append(fact)
        self.found.add(owner.name)


def overlap(one: Fact, other: Fact) -> bool:
    return one.start < other.end and other.start < one.end


_THINGS = (
    "results?|output|outcome|image|picture|photo|drawing|description|translation|summary|text|answer"
    "|file|number|value|sum|product|greeting|joke"
)
# "that has" and "this time" point at nothing that came before.
_POINTING = re.compile(
    rf"\b(?:its|the same|(?:the|that|this|these|those) (?:{_THINGS}))\b"
    r"|\b(?:it|that|this|them|those)(?=\s*(?:[.,;!?]|$|(?:to|into|in|by|with|for|from|and)\b))",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"\u201c]([^\"\u201d]{3,4000})[\"\u201d]")
_LONGEST_PASSED = 2_000


def points_back(text: str) -> bool:
    """Tell whether a text speaks of something that came before it."""
    return bool(_POINTING.search(text))


def previous_handle(source: Source) -> str | None:
    """Return the newest handle, such as `img_1`, that an earlier result names."""
    for text in reversed(source.previous):
        handles = [str(fact.value) for fact in facts_of(text) if fact.kind == "handle"]
        if handles:
            return handles[-1]
    return None


def previous_text(source: Source) -> str | None:
    """Return the newest result as a text to work on: what it quotes, or all of it."""
    if not source.previous:
        return None
    newest = source.previous[-1][:_LONGEST_PASSED].strip()
    quoted = max(_QUOTED.findall(newest), key=len, default="")
    return quoted if len(quoted) > len(newest) // 2 and newest[0] not in "{[" else newest
