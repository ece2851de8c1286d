"""What a request is about, and the little prose that can be made of a topic alone."""

from __future__ import annotations

import re

from langchain_svc.sandbox.engine._facts import facts_of
from langchain_svc.sandbox.engine._words import (
    STOP_WORDS,
    clip,
    terms,
)

_ABOUT = re.compile(
    r"\b(?:about|regarding|concerning|on the (?:topic|subject) of|joke on|topic:|subject:)\s+"
    r"((?:an?|the)\s)?(?:some\s)?([^\s.,;:!?\n][^.,;:!?\n]{0,60})",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\s(?:in|with|for|and|that|which|who|to|include|please|using|as|no|without)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_TASK_WORDS = frozenset(
    terms(
        """
        write tell give make create generate list name explain describe story joke poem haiku haikus
        sentence paragraph essay short long brief briefly summary summarize summarise translate
        answer question please hello hi hey return result json keys only following text word words
        include exactly sentences use tool value first second new one two three four five six seven
        eight nine ten capital
        """
    )
)
_WORD = re.compile(r"[^\W_][\w'\u2019-]{0,40}")
_LOOKED_AT = 2_000


def topic_of(text: str) -> str:
    """Return the thing a request is about, in its own words; "that" when there is none."""
    text = text[:_LOOKED_AT]
    about = _ABOUT.search(text)
    if about:
        return _TAIL.sub("", about[2]).strip() or about[2]
    names = [str(f.value) for f in facts_of(text) if f.kind in {"quoted", "name"}]
    if names:
        return clip(names[0], 60)
    said = [w for w in _WORD.findall(text) if w.lower() not in STOP_WORDS | _TASK_WORDS]
    said = [w for w in said if not w.isdigit()]
    return " ".join(said[:2]) if said else "that"


def subject_of(text: str) -> str:
    """Return the topic as the subject of a sentence: "the cat" for a story about a cat."""
    about = _ABOUT.search(text[:_LOOKED_AT])
    topic = topic_of(text)
    if topic == "that":
        return "the river"
    return f"the {topic}" if about and about[1] else topic


_JOKES = (
    (
        "Why did the sandbox hire {topic}?",
        "Because with {topic} on the team, every test had somebody to laugh at it.",
    ),
    (
        "What do you get when {topic} and a rule engine share an office?",
        "The same joke every day, with {topic} still waiting for the end of it.",
    ),
    (
        "How many rules does it take to tell a joke about {topic}?",
        "One, but it must be told the same way each time it is about {topic}.",
    ),
    (
        "Why did {topic} stay calm during the deployment?",
        "Nobody had said that it was a Friday.",
    ),
    (
        "What did the log file say about {topic}?",
        "Nothing to report: all of it had left without a trace.",
    ),
)


def joke(topic: str, seed: int) -> tuple[str, str]:
    """Return the two halves of a joke about a topic."""
    setup, punchline = _JOKES[seed % len(_JOKES)]
    return setup.format(topic=topic), punchline.format(topic=topic)
