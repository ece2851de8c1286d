"""What to say where a text does not: plausible values by field name, the same for the same text."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._facts import LONGEST
from langchain_svc.sandbox.engine._topic import joke, topic_of
from langchain_svc.sandbox.engine._words import (
    content_stems,
    name_words,
    terms,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_svc.sandbox.engine._fields import Field
    from langchain_svc.sandbox.engine._jsontext import Json
    from langchain_svc.sandbox.engine._source import Source


def digest(*parts: str) -> int:
    """Return a number that depends on all parts and on nothing else."""
    text = "\n".join(parts).encode("utf-8", "replace")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


def pick(options: Sequence[str], *parts: str) -> str:
    """Choose one of the options for the given texts, always the same."""
    return options[digest(*parts) % len(options)]


# The words of a field name and what such a field may hold.
_PLAUSIBLE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("email mail", ("alex@example.com", "sam@example.org", "kim@example.net")),
    ("url link website uri href", ("https://example.com/", "https://example.org/page")),
    ("phone telephone mobile", ("+1-202-555-0143", "+1-202-555-0178")),
    ("date day birthday deadline", ("2024-06-15", "2024-03-01", "2024-11-20")),
    ("time hour", ("09:30", "14:00", "18:45")),
    ("language lang locale", ("English",)),
    ("currency", ("EUR", "USD", "GBP")),
    ("color colour", ("blue", "green", "orange")),
    ("unit units", ("metric",)),
    ("city town location place destination", ("Lisbon", "Oslo", "Kyoto")),
    ("country nation", ("Portugal", "Norway", "Japan")),
    ("address street", ("12 Harbour Street", "4 Mill Lane")),
    ("company organization organisation employer", ("Northwind Works", "Blue Harbor Ltd")),
    ("person author customer user patient employee", ("Alex Morgan", "Sam Rivera", "Kim Larsen")),
    ("id identifier code key", ("A-1001", "B-2002", "C-3003")),
    ("genre", ("folk", "jazz", "ambient")),
    ("style tone mood answer_style", ("friendly", "playful", "formal")),
)
_BY_WORD = {word: choices for line, choices in _PLAUSIBLE for word in line.split()}
# Kinds of facts with a form of their own, by a word above that has it.
_BY_KIND = {kind: kind for kind in ("email", "url", "phone", "date", "time", "currency", "unit")}
_SENTIMENT = {
    "positive": "good great love loved excellent happy wonderful best enjoy enjoyed amazing fine "
    "delicious perfect recommend fantastic nice",
    "negative": "bad terrible hate hated awful sad worst poor broken angry disappointing slow "
    "horrible disgusting refund",
}
_FEELINGS = {name: frozenset(line.split()) for name, line in _SENTIMENT.items()}
_NUMBERS = (
    (re.compile(r"confidence|probability|certainty|score"), (0.7, 0.8, 0.9)),
    (re.compile(r"rating|stars"), (3, 4, 5)),
    (re.compile(r"^age$|_age$|years_old"), (28, 34, 47)),
    (re.compile(r"year"), (2019, 2021, 2023)),
    (re.compile(r"price|cost|amount|salary|total"), (19, 49, 120)),
    (re.compile(r"temperature|temp"), (14, 18, 22)),
    (re.compile(r"percent"), (25, 50, 75)),
)


def feeling(text: str) -> str:
    """Return positive, negative or neutral by counting words of both kinds."""
    counts = Counter(name for word in words(text) for name, own in _FEELINGS.items() if word in own)
    if counts["positive"] == counts["negative"]:
        return "neutral"
    return "positive" if counts["positive"] > counts["negative"] else "negative"


class Rules:
    """Invents by the name of the field; `reply` answers the question in words where asked."""

    def __init__(self, question: str, reply: Callable[[], str] | None = None) -> None:
        question = question[:LONGEST]
        self._question = question
        self._reply = reply
        self._topic = topic_of(question)

    def text(self, field: Field, source: Source) -> str:
        """Return a text for a field: a reply, a joke's half, a topic, or an example."""
        del source
        parts = name_words(field.name)
        for part in reversed(parts):
            if part in _WRITTEN:
                return _WRITTEN[part](self)
            if part in _BY_WORD:
                return pick(_BY_WORD[part], field.name, self._question)
        for kind in field.kinds:
            if kind in _BY_KIND:
                return pick(_BY_WORD[_BY_KIND[kind]], field.name, self._question)
        return self._example(field) or f"{' '.join(parts)} of {self._topic}"

    def number(self, field: Field, source: Source) -> float:
        """Return a number that such a field may hold."""
        del source
        seed = digest(field.name, self._question)
        for pattern, choices in _NUMBERS:
            if pattern.search(field.name.lower()):
                chosen = choices[seed % len(choices)]
                return round(chosen) or 1 if field.kind == "integer" else chosen
        return float(1 + seed % 5)

    def option(self, field: Field, options: Sequence[Json], source: Source) -> Json:
        """Return the option closest to the text: by feeling, by shared words, else the first."""
        mood = feeling(source.text)
        for option in options:
            if str(option).lower() == mood:
                return option
        described = [str(option) for option in options]
        del field
        return options[self.closest(described, source)] if options else None

    def writes(self, field: Field) -> bool:
        """Tell whether a list is made from the whole text: its keywords, or its sources."""
        return bool(_GATHERED.intersection(name_words(field.name)))

    def items(self, field: Field) -> Sequence[str]:
        """Return the items of a list: the sources quoted, the lines replied, or keywords."""
        reply = self.answer() if self._reply else ""
        sources = _QUOTED_SOURCE.findall(reply)
        if sources and _SOURCES.intersection(name_words(field.name)):
            return list(dict.fromkeys(sources))
        lines = [_NUMBERING.sub("", line) for line in reply.splitlines() if line.strip()]
        if len(lines) > 1 and not self.writes(field):
            return lines[:50]
        said = [w for w in words(self._question[:4_000]) if content_stems(w) and not w.isdigit()]
        return list(dict.fromkeys(said))[:3] or [self._topic]

    def closest(self, descriptions: Sequence[str], source: Source) -> int:
        """Return the description that shares most words with the text, the first by default."""
        known = set(content_stems(source.text))
        shared = [len(known.intersection(content_stems(text))) for text in descriptions]
        return shared.index(max(shared)) if shared else 0

    def _example(self, field: Field) -> str | None:
        described = field.schema.get("description")
        found = _EXAMPLE.search(described) if isinstance(described, str) else None
        examples = field.schema.get("examples")
        if isinstance(examples, list) and examples and isinstance(examples[0], str):
            return examples[0]
        return found[1].strip(" '\"`") if found else None

    def answer(self) -> str:
        """Return the reply to the question in words."""
        return self._reply() if self._reply else f"About {self._topic}: see the sandbox."

    def setup(self) -> str:
        """Return the first half of a joke."""
        return joke(self._topic, digest(self._question))[0]

    def punchline(self) -> str:
        """Return the second half of the same joke."""
        return joke(self._topic, digest(self._question))[1]

    def title(self) -> str:
        """Return the topic as a title."""
        return f"About {self._topic}"

    def topic(self) -> str:
        """Return the topic."""
        return self._topic

    def mood(self) -> str:
        """Return the feeling of the question."""
        return feeling(self._question)

    def question(self) -> str:
        """Return the question."""
        return self._question[:500].strip() or self._topic


_EXAMPLE = re.compile(
    r"(?:e\.g\.?|for example|such as|example:|eg\.?),?:?\s([^,;()\n]{1,60}?(?:, [A-Z]{2}\b)?)"
    r"(?:[,;()\n]|\.(?:\s|$)|$)",
    re.IGNORECASE,
)
_SOURCES = frozenset(terms("sources source citations citation references reference"))
_GATHERED = _SOURCES | frozenset(
    terms("tags keywords topics labels categories themes hashtags entities")
)
_QUOTED_SOURCE = re.compile(r"According to ([^:\n]{1,120}):")
_NUMBERING = re.compile(r"^\s{0,4}(?:\d{1,3}[.)]|[-*])\s")
_WRITTEN: dict[str, Callable[[Rules], str]] = {
    **dict.fromkeys(
        terms(
            """
            answer response reply explanation reasoning rationale summary content text description
            thought thoughts analysis result conclusion message body details notes comment
            """
        ),
        Rules.answer,
    ),
    **dict.fromkeys(["setup", "premise"], Rules.setup),
    **dict.fromkeys(["punchline", "punch", "resolution"], Rules.punchline),
    **dict.fromkeys(["title", "headline", "heading"], Rules.title),
    **dict.fromkeys(terms("topic subject theme term keyword name item product"), Rules.topic),
    **dict.fromkeys(["sentiment", "emotion", "feeling"], Rules.mood),
    **dict.fromkeys(["question", "query", "prompt", "request", "input"], Rules.question),
}
