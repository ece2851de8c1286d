"""A case: what is asked and what is right, as data; and what became of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .ways import Way

FOLDER = Path(__file__).with_name("cases")
SEEN = "seen"
"""The part of a suite that wordings of the package were written on."""


@dataclass(frozen=True)
class Case:
    """One question of a suite.

    Attributes:
        suite: The suite.
        group: What shares the beginning of its prompt, such as a list of tools; `SEEN` is one.
        name: Unique in its group.
        category: What is counted together.
        data: All else; JSON.
    """

    suite: str
    group: str
    name: str
    category: str
    data: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Its name in a file of results."""
        return f"{self.suite}/{self.group}/{self.name}"

    @property
    def part(self) -> str:
        """The suite, and whether it is the part that wordings were written on."""
        return f"{self.suite}, seen" if self.group == SEEN else self.suite

    @property
    def digest(self) -> str:
        """Changes with the case, whose old answers then say nothing."""
        text = json.dumps(self.data, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass
class Outcome:
    """What a contestant delivered, and the judge's word.

    Attributes:
        right: Whether it is what was asked for.
        why: What was wrong.
        delivered: What a user would have got; JSON.
        turns: Requests that it takes if nothing is repaired.
        empty: Nothing was delivered of an answer.
        error: The error that a user would have got.
    """

    right: bool
    why: str = ""
    delivered: Mapping[str, Any] = field(default_factory=dict)
    turns: int = 1
    empty: bool = False
    error: str = ""


class Suite(NamedTuple):
    """Cases of one kind, who can be asked them, and how."""

    name: str
    ways: Sequence[str]
    cases: Callable[[], Iterable[Case]]
    ask: Callable[[Way, Case], Outcome]
    own: Callable[[Case], str]  # what a prompt must hold: tools, a schema, passages


def sample(cases: Iterable[Case], most: int | None) -> list[Case]:
    """So many cases, of all categories and groups in turn, in their old order."""
    cases = list(cases)
    seen: Counter[tuple[str, str]] = Counter()
    ranks: dict[str, int] = {}
    for case in cases:
        ranks[case.key] = seen[case.group, case.category]
        seen[case.group, case.category] += 1
    chosen = sorted(cases, key=lambda case: ranks[case.key])[:most]
    return sorted(chosen, key=cases.index)


def says(text: str, wanted: Iterable[Sequence[str]]) -> bool:
    """Whether a text has one of each of these words or numbers, none as part of another."""
    return all(
        any(
            re.search(
                rf"(?<!\w)(?<!\d[.,]){re.escape(one)}(?!\w)(?![.,]\d)",
                text,
                re.IGNORECASE,
            )
            for one in alternatives
        )
        for alternatives in wanted
    )


def agree(given: Any, wanted: Any) -> bool:
    """Whether a value is the wanted one; a tuple lists alternatives, a dict may leave keys out."""
    if isinstance(wanted, tuple):
        return any(agree(given, one) for one in wanted)
    if isinstance(wanted, dict):
        return isinstance(given, dict) and all(
            agree(given.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(given, list)
            and len(given) == len(wanted)
            and all(map(agree, given, wanted))
        )
    if isinstance(wanted, str) and isinstance(given, str):
        return given.strip(" .").casefold() == wanted.casefold()
    same_kind = isinstance(given, bool) == isinstance(wanted, bool)
    return same_kind and bool(given == wanted)
