"""How a text mentions the value of one field: outright, by name, nearby, or as a whole."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._facts import LONGEST, facts_of
from langchain_svc.sandbox.engine._gazetteer import LANGUAGE_CODES, LANGUAGES, NUMBER_WORDS
from langchain_svc.sandbox.engine._words import (
    STOP_WORDS,
    name_words,
    stem,
    terms,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_svc.sandbox.engine._jsontext import Json

_NEGATIONS = frozenset(
    terms("no not without don't dont never exclude excluding except skip disable")
)
_GENERIC_FLAG = frozenset(map(stem, terms("include use is has with enable show return get allow")))


# --- Said outright -------------------------------------------------------------------------

_OUTRIGHT_VALUE = (
    r"\s?[=:]\s?(\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'|\[[^\]\n]{0,500}\]|[^\s,;)\]]{1,200})"
)


def outright(name: str, text: str) -> str | None:
    """Return what the text assigns to `name`, as in `name=3` or `name: "x"`."""
    spaced = re.escape(name).replace("_", "[_ ]")
    found = re.search(rf"(?<![\w.]){spaced}[\"'`]?{_OUTRIGHT_VALUE}", text[:LONGEST], re.IGNORECASE)
    if not found:
        return None
    # "at 10:30" and "https://" are no assignments, a sentence's colon at its end neither.
    value = found[1].rstrip(".?!") if found[1][0] not in "\"'[" else found[1]
    return None if value.startswith("//") or not value else value


def call_arguments(name: str, text: str) -> list[tuple[list[str], dict[str, str]]]:
    """Return the arguments of every `name(…)` that is written in the text."""
    found: list[tuple[list[str], dict[str, str]]] = []
    for written in re.finditer(
        rf"(?<![\w.]){re.escape(name)}\(([^()\n]{{0,500}})\)", text[:LONGEST]
    ):
        positional: list[str] = []
        named: dict[str, str] = {}
        for part in _split_arguments(written[1]):
            key, equals, value = part.partition("=")
            if equals and key.strip().isidentifier():
                named[key.strip()] = value.strip()
            else:
                positional.append(part.strip())
        found.append((positional, named))
    return found


_ARGUMENT = re.compile(r"(?:\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^,\"'\[]|[\"'\[])+")


def _split_arguments(inner: str) -> list[str]:
    return [part for part in _ARGUMENT.findall(inner) if part.strip()]


def literal(text: str) -> Json:
    """Read a written value: JSON where it is some, the bare text otherwise."""
    stripped = text.strip()
    if stripped[:1] in {"'", "`"} and stripped[-1:] == stripped[:1]:
        return stripped[1:-1]
    words_of_python = {"True": True, "False": False, "None": None}
    if stripped in words_of_python:
        return words_of_python[stripped]
    try:
        value: Json = json.loads(stripped)
    except ValueError:
        return stripped
    return value


# --- Options and flags ---------------------------------------------------------------------


def _spelled(option: str, text: str, text_stems: Sequence[str]) -> int:
    """Return where the option is mentioned, or -1."""
    exact = re.search(
        rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE if len(option) > 1 else 0
    )
    if exact and option.lower() not in STOP_WORDS - _PLAIN_OPTIONS:
        return exact.start()
    parts = [stem(word) for word in name_words(option) if word not in STOP_WORDS]
    if len(option) > 1 and parts and all(part in text_stems for part in parts):
        return len(text) + text_stems.index(parts[0])
    return -1


def chosen_option(options: Sequence[Json], text: str) -> Json:
    """Return the option that the text mentions first, or `None`."""
    text = text[:LONGEST]
    stems = [stem(word) for word in words(text)]
    places: list[tuple[int, int]] = []
    for number, option in enumerate(options):
        at = max((_spelled(form, text, stems) for form in _forms(option)), default=-1)
        if at >= 0:
            places.append((at, number))
    return options[min(places)[1]] if places else None


_PLAIN_OPTIONS = frozenset(terms("yes no on off all up down"))
_UNIT_LETTERS = {"c": "celsius", "f": "fahrenheit", "k": "kelvin", "m": "metric", "i": "imperial"}


def _forms(option: Json) -> list[str]:
    """Return how people say an option: a language code is said as the language."""
    if isinstance(option, bool) or not isinstance(option, (str, int, float)) or option == "":
        return []
    said = str(option)
    forms = [said]
    forms += [name for name in LANGUAGES if LANGUAGE_CODES.get(name) == said]
    if said.lower() in _UNIT_LETTERS:
        forms.append(_UNIT_LETTERS[said.lower()])
    return forms


def mentioned_options(options: Sequence[Json], text: str) -> list[Json]:
    """Return every option that the text mentions."""
    return [option for option in options if chosen_option([option], text) is not None]


def mentioned_flag(name: str, text: str) -> bool | None:
    """Return whether the text wants a flag on or off, or `None` when it does not say."""
    spoken = words(text[:LONGEST])
    stems = [stem(word) for word in spoken]
    own = [s for s in map(stem, name_words(name)) if s not in _GENERIC_FLAG and s not in STOP_WORDS]
    for part in own:
        if part in stems:
            at = stems.index(part)
            return not _NEGATIONS.intersection(spoken[max(0, at - 3) : at])
    return None


def excluded(name: str, text: str) -> bool:
    """Tell whether the text wants a part left out: "no punchline", "without the age"."""
    own = "|".join(re.escape(word) for word in name_words(name) if word not in STOP_WORDS)
    pattern = (
        rf"\b(?:no|without|skip|omit|exclude|excluding|leave out|not include|don't include)\s"
        rf"(?:the |a |an |any )?(?:{own})s?\b"
    )
    return bool(own) and bool(re.search(pattern, text[:LONGEST], re.IGNORECASE))


# --- Near the word ---------------------------------------------------------------------------

_STOP = (
    r"(?=\s*(?:[,.;:?!\n]|$|\b(?:and|with|for|in|on|at|from|to|who|that|which|by|but|is|are|of)\b))"
)
_NEAR_AFTER = (
    r"\s(?:is|are|was|of|as|called|named|titled|equals|will be|should be|being|set to)\s"
    r"(?:the |a |an )?((?:[^\s,.;:?!]{1,40}\s){0,4}?[^\s,.;:?!]{1,40})"
)


def said_words(name: str, text: str) -> str | None:
    """Return what the text says the field is: "the genre is jazz", "a genre of jazz"."""
    for word in _own_words(name):
        found = re.search(
            rf"\b{re.escape(word)}s?{_NEAR_AFTER}{_STOP}", text[:LONGEST], re.IGNORECASE
        )
        if found and found[1].lower() not in STOP_WORDS:
            return found[1]
    return None


def beside_words(name: str, text: str) -> str | None:
    """Return the word right before the field's own word: "the jazz genre"."""
    for word in _own_words(name):
        found = re.search(rf"([\w-]{{2,40}})\s{re.escape(word)}\b", text[:LONGEST], re.IGNORECASE)
        if found and found[1].lower() not in STOP_WORDS and not found[1].endswith("ing"):
            return found[1]
    return None


def _own_words(name: str) -> list[str]:
    return [word for word in reversed(name_words(name)) if word not in STOP_WORDS]


# --- The request as a text -------------------------------------------------------------------

_POLITE = re.compile(
    r"^(?:(?:please|kindly|now|then|and|also|hey|hi|hello|can you|could you|would you|will you"
    r"|i want you to|i would like you to|i'd like you to|i want to|i would like to|i'd like to"
    r"|i need to|i need you to|help me(?: to)?|let's|using (?:the|a|your) tools?|use (?:the|a) "
    r"tools? to)[, ]+)+",
    re.IGNORECASE,
)
_USE_TOOL = re.compile(
    r"\s*\b(?:use|using|with|call) (?:the|a|your|this) (?:[\w]{1,40} )?(?:tool|function)s?\b[.!]?",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"^(?:draw|paint|sketch|generate|create|make|design|render|produce|translate|search|look up"
    r"|find|summari[sz]e|analy[sz]e|describe|send|write|say|post|tell|ask|remind|show|google|give"
    r"|add|note|save|store|record|explain|rewrite|classify|detect)\b"
    r"(?: me| us)?(?: (?:the web|the internet|online|wikipedia|google))?"
    r"(?: (?:for|about|on|to|that))?(?: (?:an?|the) (?:image|picture|photo|drawing|illustration"
    r"|translation|summary|note|message|search|joke|story|poem|text|sentence|phrase) "
    r"(?:of|for|about|that says|saying|showing))?\s+",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"\b(?:about|regarding|concerning|on the topic of|related to)\s+", re.IGNORECASE
)
_INTO_LANGUAGE = re.compile(
    rf"\s(?:from (?:{'|'.join(LANGUAGES)}) ?)?(?:in)?to (?:{'|'.join(LANGUAGES)})\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_TOPICAL = frozenset({"topic", "subject", "query", "term", "keyword", "keywords", "search"})


def plain_request(text: str) -> str:
    """Return a request without the courtesies before it."""
    return _POLITE.sub("", text[:LONGEST].strip())


def leftover(text: str, known: frozenset[str]) -> str | None:
    """Return the first words of a request that name neither the work nor the courtesy."""
    words_said = [word for word in _USE_TOOL.sub("", text[:LONGEST]).split() if word.strip(_EDGES)]
    run: list[str] = []
    for word in words_said:
        bare = word.strip(_EDGES)
        low = bare.lower()
        plain = low in STOP_WORDS | NUMBER_WORDS.keys() or stem(low) in known
        plain = plain or not bare or bare[0].isdigit()
        if run and (plain or len(run) == _LONGEST_LEFTOVER):
            break
        if not plain:
            run.append(bare)
    return " ".join(run) or None


_EDGES = " ,.!?;:\"'()"
_LONGEST_LEFTOVER = 4  # words


def request_text(name: str, text: str, used: Sequence[str] = ()) -> str:
    """Return the part of a request that a free text field called `name` would take."""
    text = _USE_TOOL.sub("", text[:LONGEST]).strip(" ,")
    quoted = [str(fact.value) for fact in facts_of(text) if fact.kind == "quoted"]
    if [said for said in quoted if said not in used]:
        return max((said for said in quoted if said not in used), key=len)
    if quoted and " - " in text:
        return text.rpartition(" - ")[2].strip(" .")
    about = _ABOUT.search(text)
    if about and _TOPICAL.intersection(name_words(name)):
        return text[about.end() :].strip(" .?!")
    head, colon, tail = text.partition(": ")
    if colon and tail.strip() and len(head) < len(text) // 2 + 40:
        return tail.strip()
    bare = _VERB.sub("", plain_request(text), count=1)
    bare = _INTO_LANGUAGE.sub("", bare)
    return bare.strip(" .!") or text


_BEGIN_LIST = re.compile(
    r".*(?:[:]|\b(?:of|for|with|are|is|in|at|from|to|on|by|the|and|like|as|including|buy|add|order"
    r"|sort|between|both|about|use|using|these|me|need|want|tags?|items?|cities|list))\s+",
    re.IGNORECASE | re.DOTALL,
)
_END_LIST = re.compile(
    r"\s(?:for|in|with|to|at|on|from|by|please|using|and|is|are|as)\b.*$|[.?!;].*$", re.DOTALL
)
_BEFORE_NUMBER = re.compile(r"^\D{1,60}(?=\b\d)")
_SEPARATOR = re.compile(r",\s?(?:(?:and|or)\s)?|\s(?:and|or|&)\s")
_LONGEST_ITEM = 5  # words
_ITEM_REACH = 100  # characters


def listed(text: str) -> list[str]:
    """Return the items of an enumeration in the text: "A, B and C"."""
    best: list[str] = []
    for sentence in re.split(r"(?<=[.?!;])\s+|\n", text[:LONGEST]):
        parts = _SEPARATOR.split(sentence)
        if len(parts) < 2:  # noqa: PLR2004 - an enumeration has two items at least
            continue
        first = _BEGIN_LIST.sub("", parts[0][-_ITEM_REACH:])
        first = _BEFORE_NUMBER.sub("", first)
        items = [first, *parts[1:-1], _END_LIST.sub("", parts[-1][:_ITEM_REACH])]
        items = [item.strip(" .?!'\"") for item in items]
        items = [item for item in items if item and len(item.split()) <= _LONGEST_ITEM]
        best = max(best, items, key=len)
    return best
