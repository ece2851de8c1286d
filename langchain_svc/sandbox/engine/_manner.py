"""The manner of an answer, where a rule can follow it: one word, capitals, a pirate's speech."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._gazetteer import LANGUAGE_CODES
from langchain_svc.sandbox.engine._translate import pseudo_localise
from langchain_svc.sandbox.engine._words import any_of, sentences

if TYPE_CHECKING:
    from collections.abc import Callable

_FIXED = re.compile(
    r"\b(?:always |only )?(?:reply|respond|answer|say)(?: only| always| just)?(?: with)?"
    r"(?: exactly| only)?(?: with)?(?: the (?:word|words|text|phrase|sentence))?:?\s"
    r"(?:\"([^\"\n]{1,500})\"|'([^'\n]{1,500})'(?!\w)|`([^`\n]{1,500})`)",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:if|when|unless|whenever|otherwise|cannot|can't|don't know)\b", re.IGNORECASE
)


def fixed_reply(instructions: str) -> str | None:
    """Return the text that the instructions want as the answer to everything."""
    for sentence in sentences(instructions[:8_000]):
        found = _FIXED.search(sentence)
        if found and not _CONDITION.search(sentence) and "JSON" not in sentence:
            return str(next(group for group in found.groups() if group))
    return None


_QUOTED = re.compile(r"[\"\u201c]([^\"\u201d]{1,2000})[\"\u201d]")
_RESULT = re.compile(r"=\s*(-?[\d.]{1,80})\s*$")


def _one_word(text: str) -> str:
    value = _RESULT.search(text)
    if value:
        return value[1].rstrip(".")
    quoted = _QUOTED.search(text)
    said = quoted[1] if quoted else text
    candidates: list[str] = re.findall(r"[^\W_][\w'\u2019-]*", said)
    names = [word for word in candidates[1:] if word[0].isupper()]
    return (names or candidates or [text])[0]


def _one_sentence(text: str) -> str:
    return next(iter(sentences(text)), text)


def _pirate(text: str) -> str:
    return f"Arr, matey! {text}"


_MANNERS: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (
        any_of("(?:in|with|using) (?:only |just |exactly )?(?:one|a single|1) word", "one-word"),
        _one_word,
    ),
    (any_of("in (?:only |just |exactly )?(?:one|a single|1) sentence"), _one_sentence),
    (any_of("pirate"), _pirate),
    (any_of("in (?:all )?(?:capital letters|upper[- ]?case|all caps|capitals)"), str.upper),
    (any_of("in (?:all )?lower[- ]?case"), str.lower),
)
_IN_LANGUAGE = re.compile(
    rf"\b(?:answer|respond|reply|speak|write)\b[^.\n]{{0,30}}\bin ({'|'.join(LANGUAGE_CODES)})\b",
    re.IGNORECASE,
)


def apply_manner(text: str, wishes: str) -> str:
    """Return the answer in the manner that the prompt wishes for."""
    wishes = wishes[:8_000]
    language = _IN_LANGUAGE.search(wishes)
    code = LANGUAGE_CODES.get(language[1].lower(), "en") if language else "en"
    for pattern, change in _MANNERS:
        if pattern.search(wishes):
            text = change(text)
    return text if code == "en" else f"[{code}] {pseudo_localise(text)}"
