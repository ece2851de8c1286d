"""Letters as they are compared: without case, accents and width. Nothing else normalizes."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

# Unicode sorts the marks of a letter in quadratic time, so no letter keeps more than these. No
# writing has so many.
_MOST_MARKS = 8
_RUN = re.compile(rf"[^\w\s\x00-\x7f]{{{_MOST_MARKS + 1},}}")
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters that nobody sees

# Letters that look like Latin ones, in lower case: the part of Unicode's confusables.txt (UTS 39)
# with which an English word can be written.
_LOOK_ALIKES = str.maketrans(
    "авгеһніјкӏмпорԛѕтуѵԝхԁԍсαβγεηικνορτυχωօսհոցզɑɡı",
    "abrehhijklmnopqstyvwxdgcabyenikvoptuxwouhngqagi",
)


def normalized(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """A text in one of Unicode's normal forms, in time linear in its length."""
    if text.isascii():
        return text
    return unicodedata.normalize(form, _RUN.sub(_first_marks, text))


def _first_marks(run: re.Match[str]) -> str:
    """A run of signs, of whose marks in a row the first are kept."""
    kept: list[str] = []
    count = 0
    for sign in run[0]:
        count = count + 1 if unicodedata.combining(sign) else 0
        if count <= _MOST_MARKS:
            kept.append(sign)
    return "".join(kept)


def fold(text: str) -> str:
    """The text without invisible letters and without differences of case, width and alphabet."""
    if text.isascii():
        return text.lower()
    # Halves of one letter are joined.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    invisible = {ord(letter): None for letter in set(text) if _is_invisible(letter)}
    text = normalized("NFKD", text.translate(invisible)).casefold()
    return normalized("NFKD", text).translate(_LOOK_ALIKES)


def _is_invisible(letter: str) -> bool:
    """Whether a reader does not see it as a letter of its own: accents, joiners, directions."""
    return unicodedata.category(letter) in {"Mn", "Me", "Cf"} or letter in _FILLERS
