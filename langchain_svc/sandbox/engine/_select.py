"""Which of the offered tools a text asks for, by the words that they share.

A word counts by where the tool has it (its name most, then its description, then its
parameters) and by how few of the tools have it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._gazetteer import LANGUAGES
from langchain_svc.sandbox.engine._schema import mapping
from langchain_svc.sandbox.engine._words import (
    content_stems,
    name_words,
    stem,
    terms,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_svc.sandbox.engine._offer import Tool

# The least score at which a tool is called without being told to.
THRESHOLD = 1.9
_NAME, _DESCRIPTION, _PARAMETER, _HINT = 3.0, 1.0, 0.6, 0.25
_VAGUE_SHARE = 0.2
_LONGEST_DESCRIPTION = 600

# Words of so many tools that they tell little about one.
_VAGUE = frozenset(
    map(
        stem,
        terms(
            """
            get find calculate compute search list retrieve fetch create make show check use tool
            function information data details value number given specific provide determine return
            time date name type result based using certain particular generate perform set run look
            current new total amount two different help need answer question text input api service
            estimate analyze convert day year item list recent best top first
            """
        ),
    )
)
# Groups of words that mean much the same to a tool.
_GROUPS = (
    "weather forecast temperature rain sunny climate humid",
    "add addition plus sum adder total",
    "subtract minus difference subtraction",
    "multiply multiplication times product multiplier",
    "divide division quotient divided",
    "translate translation translator french german spanish italian japanese english",
    "draw image picture paint illustration photo sketch painting",
    "describe description analyze caption vision",
    "buy purchase order",
    "email mail",
    "restaurant dining eat food",
    "movie film cinema",
    "flight fly airline plane",
    "hotel room accommodation stay",
    "search lookup google web internet",
    "remind reminder alarm schedule",
    "currency exchange dollars euros pounds usd eur",
    "route directions drive distance",
    "greeting greet",
    "symptom symptoms pain medical doctor patient",
    "prime factorial calculator math arithmetic calculate expression",
)
_ALIKE: dict[str, set[str]] = {}
for _group in _GROUPS:
    _stems = {stem(word) for word in _group.split()}
    for _stem in _stems:
        _ALIKE.setdefault(_stem, set()).update(_stems - {_stem})
_ALIKE_SHARE = 0.6
# Signs and turns of phrase that ask for a tool without using any of its words. Each tool word
# is a choice: "generat|creat" is satisfied by either stem.
_SEE = (
    r"\b(?:describe|analy[sz]e|read|look at|what(?:'s| is) (?:in|on))\b.{0,20}"
    r"\b(?:image|picture|photo|drawing|img_\d)"
)
_CUES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), tuple(needed.split()))
    for pattern, needed in (
        (r"\d\s?(?:\+|plus|added to)\s?-?\d|\bsum of\b", "add|addition|sum|plus"),
        (r"\d\s?(?:[*\u00d7x]|times|multiplied by)\s?-?\d", "multipli|product|time"),
        (r"\d\s(?:[-\u2212]|minus)\s-?\d|\bsubtract\b", "subtract|minu|differenc"),
        (r"\d\s?(?:[/\u00f7]|divided by)\s?-?\d", "divid|divis|quoti"),
        (r"\d\s?[-+*/^\u00d7\u00f7]\s?\d", "calculat|expres|math|arithmetic|evaluat"),
        (r"\b(?:draw|paint|sketch|illustrate)\b", "generat|creat|draw|mak imag|pictur"),
        (r"\b(?:picture|image|photo) of\b", "generat|creat|draw|mak imag|pictur"),
        (_SEE, "analyz|analys|describ|vis|recogn imag|pictur|photo"),
        (rf"\b(?:in|to|into) (?:{'|'.join(LANGUAGES)})\b", "translat"),
    )
)
_CUE = 3.0


@lru_cache(maxsize=512)
def _weights(name: str, description: str, parameters: str, hints: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for text, worth in (
        (hints, _HINT),
        (parameters, _PARAMETER),
        (description, _DESCRIPTION),
        (name, _NAME),
    ):
        for cut in content_stems(text):
            weights[cut] = worth * (_VAGUE_SHARE if cut in _VAGUE else 1.0)
    return weights


def weights_of(tool: Tool) -> dict[str, float]:
    """Return the stems a tool is known by, with what each is worth."""
    properties = mapping(tool.parameters.get("properties"))
    hints = [str(mapping(p).get("description", ""))[:200] for p in properties.values()]
    options = [str(mapping(p).get("enum", ""))[:200] for p in properties.values()]
    return _weights(
        " ".join(name_words(tool.name)),
        tool.description[:_LONGEST_DESCRIPTION],
        " ".join(word for name in properties for word in name_words(name)),
        " ".join([*hints, *options]),
    )


def _asked(text: str) -> dict[str, float]:
    """Return the stems of a text, with those that mean the same at a discount."""
    asked = dict.fromkeys(content_stems(text), 1.0)
    for cut in list(asked):
        for other in _ALIKE.get(cut, ()):
            asked.setdefault(other, _ALIKE_SHARE)
    return asked


def _cued(own: dict[str, float], text: str) -> bool:
    """Tell whether a turn of phrase in the text asks for a tool known by these stems."""
    return any(
        all(any(cut.startswith(tuple(needed.split("|"))) for cut in own) for needed in choices)
        for pattern, choices in _CUES
        if pattern.search(text)
    )


@dataclass(frozen=True)
class Chooser:
    """Scores the offered tools for texts."""

    tools: tuple[Tool, ...]
    weights: tuple[dict[str, float], ...]
    names: tuple[frozenset[str], ...]
    spread: Counter[str]
    name_spread: Counter[str]

    @staticmethod
    def of(tools: Sequence[Tool]) -> Chooser:
        """Prepare the tools of one prompt."""
        weights = tuple(weights_of(tool) for tool in tools)
        names = tuple(frozenset(content_stems(" ".join(name_words(tool.name)))) for tool in tools)
        return Chooser(
            tuple(tools),
            weights,
            names,
            Counter(cut for own in weights for cut in own),
            Counter(cut for own in names for cut in own),
        )

    def _rarity(self, at: int, cut: str) -> float:
        """Return 1 for a word that only one tool has, and a third for one that all have.

        A word of a tool's name competes with other names only: a description may hold anything.
        """
        count = (self.name_spread if cut in self.names[at] else self.spread)[cut]
        return 1.0 - 0.67 * math.log(max(count, 1)) / math.log(max(len(self.tools), 2))

    def score(self, at: int, text: str) -> float:
        """Return how much a text asks for the tool with index `at`."""
        own, asked = self.weights[at], _asked(text)
        tool = self.tools[at]
        named = bool(re.search(rf"(?<![\w]){re.escape(tool.name)}(?![\w])", text))
        # A plain word that happens to be a tool's name ("time") is no mention by itself.
        bonus = 10.0 if named and (len(name_words(tool.name)) > 1 or "(" in text) else 0.0
        shared = [cut for cut in asked if cut in own]
        worth = sum(own[cut] * self._rarity(at, cut) * asked[cut] for cut in shared)
        return bonus + _CUE * _cued(own, text) + worth

    def is_meant(self, at: int, text: str) -> bool:
        """Tell whether a text names the tool with index `at`, or has a phrase that asks for it."""
        named = (self.names[at] - _VAGUE).intersection(content_stems(text))
        return bool(named) or _cued(self.weights[at], text)

    def best(self, text: str) -> tuple[int, float]:
        """Return the index of the tool that a text asks for most, and its score."""
        scores = [self.score(at, text) for at in range(len(self.tools))]
        top = max(range(len(scores)), key=lambda at: scores[at])
        return top, scores[top]


def is_form(tool: Tool) -> bool:
    """Tell whether a tool is a form for the final answer: a class name, no action."""
    return bool(re.fullmatch(r"(?:[A-Z][a-z0-9]+)+", tool.name)) or tool.name.lower() in {
        "final_answer",
        "respond",
        "response",
        "answer",
    }
