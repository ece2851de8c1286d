"""Words for a question: small talk, what was said before, quotations, and a way out.

The order is: a task that rules can do, small talk, a quotation from the given text, a memory of
the conversation, and last an honest answer that a rule wrote.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._context import (
    answer_from,
    best_passages,
    material_of,
    passages_of,
    quote,
)
from langchain_svc.sandbox.engine._invent import pick
from langchain_svc.sandbox.engine._manner import apply_manner, fixed_reply
from langchain_svc.sandbox.engine._split import without_instructions
from langchain_svc.sandbox.engine._tasks import do_task
from langchain_svc.sandbox.engine._topic import topic_of
from langchain_svc.sandbox.engine._words import clip, content_stems, sentences, words

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_svc.sandbox.engine._reading import Reading
    from langchain_svc.sandbox.engine._results import Result

# --- Small talk ----------------------------------------------------------------------------

_GREETING = re.compile(
    r"(?:\w{1,30}: )?\W{0,3}(hello|hi|hey|good (?:morning|afternoon|evening)|howdy|greetings"
    r"|bonjour|hola)\b",
    re.IGNORECASE,
)
_HOW = re.compile(r"\bhow (?:are|is) (?:you|it going|things)\b", re.IGNORECASE)
_WHICH = re.compile(
    r"\b(?:which|what) (?:ai |language )?(?:model|llm)\b(?: are you| is this| do you| am i)?"
    r"|\bare you (?:gpt|claude|a model)",
    re.IGNORECASE,
)
_WHO = re.compile(r"\bwho (?:are|made|built) you\b|\bwhat are you\b|\byour name\b", re.IGNORECASE)
_THANKS = re.compile(
    r"\W{0,3}(?:(?:well|ok|okay|great|perfect)\W{1,3})?(?:thanks|thank you|thx)\b.{0,40}$"
    r"|\W{0,3}(?:great|perfect|ok|okay)\W{0,3}$",
    re.IGNORECASE,
)
_BYE = re.compile(r"\W{0,3}(?:bye|goodbye|see you|good night)\b.{0,40}$", re.IGNORECASE)
_SHORT = 60


def _greet(text: str, _model: str) -> str:
    word = _GREETING.match(text)
    said = word[1].capitalize() if word else "Hello"
    rest = text[word.end() :].strip(" ,.!") if word else ""
    heard = f' You also said: "{clip(rest, 60)}".' if rest else ""
    return f"{said}! This is the sandbox; rules answer here, not a model.{heard} How can I help?"


def _feel(text: str, _model: str) -> str:
    asked = clip(text.strip(), 80)
    return f'To "{asked}": all rules are in order, thank you. What can the sandbox do for you?'


def _name_model(_text: str, model: str) -> str:
    return f'You asked for the model "{model}"; the sandbox answers for it, by rules.'


def _introduce(_text: str, model: str) -> str:
    return f'I am the sandbox, a set of rules that stands in for the model "{model}".'


def _welcome(text: str, _model: str) -> str:
    return f'You are welcome. (The sandbox heard: "{clip(text.strip(), 60)}".)'


def _part(_text: str, _model: str) -> str:
    return "Goodbye from the sandbox."


_SMALL_TALK: tuple[tuple[re.Pattern[str], Callable[[str, str], str]], ...] = (
    (_WHICH, _name_model),
    (_WHO, _introduce),
    (_HOW, _feel),
    (_BYE, _part),
    (_THANKS, _welcome),
)


def _small_talk(text: str, model: str) -> str | None:
    if len(text) > 3 * _SHORT:
        return None
    for pattern, reply in _SMALL_TALK:
        if pattern.search(text) if pattern in {_WHICH, _WHO, _HOW} else pattern.match(text):
            return reply(text, model)
    return _greet(text, model) if _GREETING.match(text) and len(text) <= _SHORT else None


# --- Memory --------------------------------------------------------------------------------

_ABOUT_US = re.compile(r"\b(?:my|i|me|we|our|mine|you (?:say|said|tell|told))\b", re.IGNORECASE)
_LAST_QUESTION = re.compile(
    r"\bwhat (?:did i|was my|have i) (?:just |last |previous |first )?"
    r"(?:ask|say|said|question|message)",
    re.IGNORECASE,
)
_MINE = re.compile(r"\b(my [\w' -]{1,40}?) (is|are|was) ([^.!?\n]{1,120})", re.IGNORECASE)
_I_AM = re.compile(r"\b(?:[Ii] am|[Ii]'m|[Cc]all me) ([A-Z][\w'-]{1,40})")


def _remember(reading: Reading, ask: str) -> str | None:
    """Answer from what the user said earlier."""
    said = [turn.text for turn in reading.history if turn.role == "user" and turn.text]
    if not said:
        return None
    if _LAST_QUESTION.search(ask):
        first = re.search(r"\bfirst\b", ask, re.IGNORECASE)
        return f'You said: "{clip(said[0] if first else said[-1], 300)}"'
    if not _ABOUT_US.search(ask):
        return None
    for text in reversed(said):
        known = _of_the_user(text[:4_000], ask)
        if known:
            return known
    statements = [s for text in said for s in sentences(text[:4_000]) if not s.endswith("?")]
    found = best_passages(passages_of("\n".join(statements)), ask)
    return f'You told me: "{found.passages[0].text}"' if found.coverage >= _REMEMBERED else None


def _of_the_user(text: str, ask: str) -> str | None:
    """Return what a text says of its writer, if that is what is asked for."""
    asked = set(content_stems(ask))
    for found in _MINE.finditer(text):
        if asked.intersection(content_stems(found[1])):
            return f"Your{found[1][2:]} {found[2]} {found[3].strip()}."
    named = _I_AM.search(text)
    return f"Your name is {named[1]}." if named and "name" in words(ask) else None


_REMEMBERED = 0.4

# --- Everything else -----------------------------------------------------------------------

_CLOSINGS = (
    "Ask for a sum, a list, a summary or a quotation, and the rules can do more.",
    "A model behind the real service would go into {topic}; here only the form is real.",
    "Give a text about {topic} along with the question, and the sandbox will quote from it.",
)


def _honest(ask: str, model: str) -> str:
    topic = clip(topic_of(ask), 80)
    told = list(dict.fromkeys(word for word in words(ask[:2_000]) if content_stems(word)))
    others = ", ".join(word for word in told[:8] if word not in topic.lower())
    about = f" The words it saw: {others}." if others else ""
    opening = "No rule sees a topic here." if topic == "that" else f"This is about {topic}."
    asked = f"You asked: {clip(ask.strip(), 200)}" if ask.strip() else "The question was empty."
    return (
        f"{opening}{about} The sandbox answers for {model} by fixed rules and knows nothing beyond "
        f"the prompt. {pick(_CLOSINGS, ask).format(topic=topic)} {asked}"
    )


def _before(reading: Reading) -> str:
    """Return the user's question before the newest one."""
    said = [turn.text for turn in reading.history if turn.role == "user" and turn.text]
    return said[-1] if said else ""


def reply(reading: Reading, model: str) -> str:
    """Answer the newest question of a prompt in words."""
    fixed = fixed_reply(reading.instructions)
    if fixed is not None:
        return fixed
    before = _before(reading)
    # Instructions about tools are no text to answer from.
    given = without_instructions(reading.instructions) if reading.tools else reading.instructions
    material = material_of(given, reading.question)
    text = (
        do_task(material, reading.instructions, before)
        or _small_talk(material.ask, model)
        or (answer_from(material, before) if material.context else None)
        or _remember(reading, material.ask)
        or _honest(material.ask or reading.question, model)
    )
    return apply_manner(text, f"{reading.instructions}\n{material.ask}")


# --- Results of tools ----------------------------------------------------------------------

_LONG_RESULT = 600


def _tell(result: Result, ask: str) -> str:
    who = f"The tool {result.name}" if result.name else "The tool"
    if result.failed:
        return f"{who} failed: {clip(result.text, 300)} Nothing was done instead."
    if len(result.text) > _LONG_RESULT:
        found = best_passages(passages_of(result.text), ask)
        if found.passages:
            return f"{who} found this. {quote(found.passages)}"
    return f"{who} answered: {clip(result.text, _LONG_RESULT)}"


def tell_results(reading: Reading) -> str:
    """Answer in words that quote what the tools returned."""
    lines = list(dict.fromkeys(_tell(result, reading.question) for result in reading.results))
    return apply_manner("\n".join(lines), "")
