"""The forms in which people write a word: case, accents, transcription, endings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .._text import normalized

LANGUAGES = ("de", "en", "es", "fr", "nl", "pl", "tr")

# Letters of any script, with combining accents and the invisible characters that layout puts
# inside words; or digits. The blocks between are punctuation and symbols.
_LETTER = (
    "A-Za-z\u00aa\u00ad\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u0300-\u1fff"
    "\u200b-\u200d\u2c00-\u2dff\u3005-\u3007\u3040-\ud7ff\uf900-\ufdff\U00020000-\U0003ffff"
)
TOKEN = re.compile(f"[0-9]+|[{_LETTER}]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_PLAIN = str.maketrans(
    {
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "þ": "th",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "ı": "i",
        "\u00ad": None,
        "\u200b": None,
        "\u200c": None,
        "\u200d": None,
    }
)
_TRANSCRIBED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
# "ue" after another vowel is no ü: Bauer, Sauer.
_UMLAUT = re.compile("(?<![aeioq])([aou])e|a(?=a)")


def fold(word: str) -> str:
    """The base form of a word: small letters without accents. It may be longer or shorter."""
    if word.isascii():
        return word.lower()
    plain = word.lower().translate(_PLAIN)
    return _ACCENTS.sub("", normalized("NFKD", plain))


def tokens(text: str) -> list[str]:
    """The words and numbers of a text, in their base form."""
    return [fold(token) for token in TOKEN.findall(text)]


def spellings(word: str) -> set[str]:
    """The base forms of a word and of its transcriptions: muller and mueller for both."""
    base = fold(word)
    composed = normalized("NFC", word).lower()
    transcribed = fold(composed.translate(_TRANSCRIBED))
    forms = {base, transcribed}
    forms |= {_UMLAUT.sub(r"\1", form) for form in (base, transcribed)}
    return forms


# -- endings ---------------------------------------------------------------------------------------

_GENITIVES = {
    "de": ("s", "es", "ens", "sche", "schen", "scher", "sches"),
    "en": ("s", "es"),
    "es": ("s", "es"),
    "fr": ("s",),
    "nl": ("s", "tje", "je"),
}
# Written with an apostrophe, Turkish endings are words of their own; many people leave it out.
_TURKISH = [
    "i",
    "u",
    "a",
    "e",
    "yi",
    "yu",
    "ya",
    "ye",
    "in",
    "un",
    "nin",
    "nun",
    "yin",
    "da",
    "de",
    "ta",
    "te",
    "dan",
    "den",
    "tan",
    "ten",
    "la",
    "le",
    "yla",
    "yle",
    "lar",
    "ler",
    "larin",
    "lerin",
    "lara",
    "lere",
    "lari",
    "leri",
    "daki",
    "deki",
]
_POLISH_ADJECTIVE = ["i", "a", "ie", "iego", "iemu", "im", "iej", "ich", "imi"]
_POLISH_ADJECTIVE_HARD = ["y", "a", "e", "ego", "emu", "ym", "ej", "ych", "ymi"]
_POLISH_MASCULINE = [
    "a",
    "owi",
    "em",
    "iem",
    "u",
    "e",
    "ie",
    "owie",
    "ow",
    "om",
    "ami",
    "ach",
    "y",
    "i",
]
_POLISH_FEMININE = ["a", "y", "i", "e", "ie", "o", "om", "ami", "ach"]
# Before the ending -e, Polish softens the stem's last letter: Monika, Monice; Piotr, Piotrze.
_POLISH_SOFTENED = (
    ("ch", "sze"),
    ("st", "scie"),
    ("k", "ce"),
    ("g", "dze"),
    ("r", "rze"),
    ("t", "cie"),
    ("d", "dzie"),
    ("l", "le"),
)
_SHORTEST_STEM = 3
_SHORTEST_TURKISH = 4


def inflections(base: str, languages: Iterable[str]) -> set[str]:
    """The base form with the endings that names take in these languages."""
    if len(base) < _SHORTEST_STEM or not base.isalpha():
        return set()
    forms: set[str] = set()
    for language in languages:
        if language == "pl":
            forms.update(_polish(base))
        elif language == "tr":
            if len(base) >= _SHORTEST_TURKISH:
                forms.update(base + ending for ending in _TURKISH)
        else:
            forms.update(base + ending for ending in _GENITIVES[language])
    return forms


def _polish(base: str) -> Iterator[str]:
    if base.endswith(("ski", "cki", "dzki", "ska", "cka", "dzka")):
        yield from _with_endings(base[:-1], _POLISH_ADJECTIVE)
        return
    if base.endswith("y"):
        yield from _with_endings(base[:-1], _POLISH_ADJECTIVE_HARD)
        return
    if base.endswith("a"):
        stem = base[:-1]
        yield from _with_endings(stem, _POLISH_FEMININE)
        yield from _softened(stem)
        return
    if base.endswith("o"):
        yield from _with_endings(base[:-1], _POLISH_MASCULINE)
        return
    yield from _with_endings(base, _POLISH_MASCULINE)
    yield from _softened(base)
    # The e of Marek, Paweł and Kupiec is gone in Marka, Pawła, Kupca.
    if base[-2] == "e":
        stem = base[:-2] + base[-1]
        yield from _with_endings(stem, _POLISH_MASCULINE)
        yield from _softened(stem)


def _with_endings(stem: str, endings: Iterable[str]) -> Iterator[str]:
    for ending in endings:
        yield stem + ending


def _softened(stem: str) -> Iterator[str]:
    for last_letters, softened in _POLISH_SOFTENED:
        if stem.endswith(last_letters):
            yield stem.removesuffix(last_letters) + softened
            return
