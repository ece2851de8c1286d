"""Words, stems, sentences: the small linguistics that every rule of the engine shares."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['\u2019][a-z]+)?")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")
# A sentence ends at its mark before white space, or at a line break.
_BOUNDARY = re.compile(r"(?<=[.!?])[\"'”)\]]?\s+|(?<=[。！？])|\n+")  # noqa: RUF001 - they do
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|No|[A-Z]))\.$")

_SMALL_WORDS = """
    a about above after again all also am an and any are as at be because been before being
    below between both but by can could did do does doing down during each either few for from
    further get give given go had has have having he her here hers him his how however i if in
    into is it its itself just kindly know let like made make many may me might more most much
    must my need no nor not now of off on once one only or other our out over own please put
    quite rather really same say see shall she should so some such tell than thank thanks that
    the their them then there these they thing things this those through to too try under until
    up upon us very want was way we well were what whatever when where which while who whom
    whose why will with within without would yes yet you your yours s t re ve ll m d
    what's that's it's i'm i'd i've i'll let's don't can't won't there's who's whats
"""
STOP_WORDS = frozenset(_SMALL_WORDS.split())

_SUFFIXES = ("ings", "ing", "ions", "ion", "ers", "er", "ors", "or", "ed", "es", "s", "e")
_SHORTEST_STEM = 3


def words(text: str) -> list[str]:
    """Return the words of `text` in lower case, numbers included."""
    return [found.lower() for found in _WORD.findall(text)]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Cut the usual English endings, so that `images`, `image` and `imaging` meet."""
    word = re.sub(r"['\u2019]s?$", "", word)
    for ending, short in (("ies", "i"), ("ied", "i"), ("y", "i")):
        if word.endswith(ending) and len(word) > _SHORTEST_STEM:
            return word.removesuffix(ending) + short
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            word = word.removesuffix(suffix)
            break
    doubled = len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word


def content_stems(text: str) -> list[str]:
    """Return the stems of the words that carry meaning; ideographs count as pairs."""
    stems = [stem(word) for word in words(text) if word not in STOP_WORDS]
    for run in _IDEOGRAPHS.findall(text):
        stems += [run[at : at + 2] for at in range(len(run) - 1)]
    return stems


def name_words(name: str) -> list[str]:
    """Split an identifier: `getCurrent_weather.v2` has get, current, weather, v, 2."""
    return [part.lower() for part in _HUMP.findall(name)] or words(name)


def sentences(text: str) -> list[str]:
    """Split `text` into sentences and lines, without the white space around them."""
    found: list[str] = []
    for piece in _BOUNDARY.split(text):
        part = piece.strip()
        if not part:
            continue
        if found and _ABBREVIATION.search(found[-1][-8:]):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return found


def paragraphs(text: str) -> list[str]:
    """Split `text` at its blank lines."""
    return [part.strip() for part in re.split(r"\n[ \t]*\n", text) if part.strip()]


def clip(text: str, limit: int) -> str:
    """Return `text`, or its beginning and an ellipsis when it is longer than `limit`."""
    return text if len(text) <= limit else f"{text[:limit].rstrip()}…"


def any_of(*alternatives: str) -> re.Pattern[str]:
    """Compile a case-blind pattern that finds any of the alternatives as whole words."""
    return re.compile(rf"\b(?:{'|'.join(alternatives)})\b", re.IGNORECASE)


def terms(text: str) -> list[str]:
    """Return the words of a vocabulary that is written as one text."""
    return text.split()


def phrases(text: str) -> list[str]:
    """Return the entries of a vocabulary that is written with commas."""
    return [" ".join(entry.split()) for entry in text.split(",")]
