"""The reading of a text: what it says once the escapes of its format are undone, with places.

Tools return text as they receive it: HTML with a tag around each word, URLs and forms with `%7B`,
mails with `=20`, JSON in JSON, the colours of a terminal. A model reads through all of these, so
whoever looks for something in a text looks in its reading, and finds the place in the text itself.

    characters(text)   undoes what stands for characters
    rendered(reading)  takes out what a page does not show: the tags of HTML, or all tags
    joined(reading)    joins words that a line's end divides

Each round takes time linear in the text, and there are `_ROUNDS` of them: an escape may stand in an
escape. What can be something else is undone only where the text shows that it is not: `limit=50` is
no "limitP", unless it stands in a mail whose lines end in `=`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote_to_bytes

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


# -- reading ---------------------------------------------------------------------------------------

_ROUNDS = 3

# fmt: off
_FORMATS = re.compile(
    r"(?P<json>\\{1,8}(?:u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,5}\}|x[0-9a-fA-F]{2}|[nrtbf\"/]))"
    r"|(?P<entity>&(?:\#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6})(?![0-9a-fA-F])|[a-zA-Z][a-zA-Z0-9]{1,31});?)"
    r"|(?P<percent>%[0-7][0-9a-fA-F]|%[c-fC-F][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){1,3}"
    r"|%[89a-fA-F][0-9a-fA-F])"
    r"|(?P<colour>\x1b\[[0-?]{0,30}[ -/]{0,5}[@-~])"
    r"|(?P<wide>[\uff01-\uff5e])"
    r"|(?P<tag>[\U000e0020-\U000e007e])"
    r"|(?P<leftward>\u202e[^\u202c\u202e]*)"
    r"|(?P<hidden>[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff])"
)
# fmt: on
_SIGNS = re.compile(
    "[\\\\&%\x1b\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\uff01-\uff5e\U000e0020-\U000e007e]"
)
# A letter each, so that each has its place.
_MAIL = re.compile(
    r"=\r?\n|=[0-7][0-9A-F]|=[C-F][0-9A-F](?:(?:=\r?\n)?=[89AB][0-9A-F]){1,3}|=[89A-F][0-9A-F]"
)
_IS_MAIL = re.compile(r"=3D|=\r?\n|=20\r?\n")
_SOFT_BREAK = re.compile(r"=\r?\n")
_PARTIAL_ESCAPE = re.compile(r"(?:\\u?[0-9a-fA-F{]{0,4}|&#?\w{0,8})\Z")

_OPENS = re.compile(r"<(?=[a-zA-Z!?/])")
# html.parser takes 34 s for 60 KB of "<a <a <a" on the Python versions that we support.
_TAG = re.compile(
    r"""</?[a-zA-Z!?](?:[^<>"']|"[^"]*"|'[^']*')*>|</?[a-zA-Z!?][^<>]*>"""
)
_TAG_NAME = re.compile(r"</?([a-zA-Z][\w:.-]*)")
_FOOTNOTE = re.compile(r"<sup>\s{0,9}\[[\w*†‡]{1,4}\]\s{0,9}</sup>", re.IGNORECASE)
_UNSEEN_ELEMENTS = frozenset({"script", "style"})
# What pages put around letters, words and blocks. Other elements may be a call's: <path>, <param>.
_INLINE_ELEMENTS = frozenset(
    """
    a abbr b bdi bdo big cite code del dfn em font i img ins kbd mark nobr q s samp small span
    strike strong sub sup tt u var wbr
    """.split()
)
_BLOCK_ELEMENTS = frozenset(
    """
    blockquote body br div h1 h2 h3 h4 h5 h6 head hr html li ol p pre table tbody td th thead tr ul
    """.split()
)


@dataclass(frozen=True, eq=False)
class Reading:
    """A text as it reads: `begins` and `ends` are the places of each character in the original.

    Both are None where the reading is the text itself.
    """

    text: str
    begins: Sequence[int] | None = None
    ends: Sequence[int] | None = None

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """Where a part of the reading, which is not empty, stands in the original."""
        if self.begins is None or self.ends is None:
            return begin, end
        return min(self.begins[begin:end]), max(self.ends[begin:end])


class _Rewriting:
    """Writes a reading anew: `keep` a part of it, or `put` a text in the place of one."""

    def __init__(self, reading: Reading) -> None:
        self._text = reading.text
        size = range(len(reading.text) + 1)
        self._old_begins = size if reading.begins is None else reading.begins
        self._old_ends = size[1:] if reading.ends is None else reading.ends
        self._pieces: list[str] = []
        self._begins: list[int] = []
        self._ends: list[int] = []

    def keep(self, begin: int, end: int) -> None:
        if begin < end:
            self._pieces.append(self._text[begin:end])
            self._begins += self._old_begins[begin:end]
            self._ends += self._old_ends[begin:end]

    def put(self, text: str, begin: int, end: int) -> None:
        self._pieces.append(text)
        self._begins += [self._old_begins[begin]] * len(text)
        self._ends += [self._old_ends[end - 1]] * len(text)

    def reading(self) -> Reading:
        return Reading("".join(self._pieces), self._begins, self._ends)


def characters(text: str, *, is_mail: bool | None = None) -> Reading:
    """The text with each escape of a format as the characters that it stands for.

    `is_mail`: whether it is quoted-printable; None: if it shows it.
    """
    if is_mail is None:
        is_mail = _IS_MAIL.search(text) is not None
    reading = Reading(text)
    if "=" in text:
        undo = _mail_letters if is_mail else _letters_of_bytes
        reading = _with_replaced(reading, _MAIL.finditer(text), undo)
    return _with_characters(reading)


def _with_characters(reading: Reading) -> Reading:
    if _SIGNS.search(reading.text) is None:
        return reading
    for _ in range(_ROUNDS):
        undone = _with_replaced(reading, _escapes(reading.text), _undone)
        if undone is reading:
            break
        reading = undone
    return reading


def _escapes(text: str) -> Iterator[re.Match[str]]:
    """The escapes of a text: `re` passes quickly over all that cannot begin one."""
    end = 0
    for sign in _SIGNS.finditer(text):
        if sign.start() >= end:
            match = _FORMATS.match(text, sign.start())
            if match is not None:
                end = match.end()
                yield match


def _with_replaced(
    reading: Reading,
    matches: Iterable[re.Match[str]],
    replace: Callable[[re.Match[str]], str | None],
) -> Reading:
    """The reading with other text in the place of matches; the same object if all stay."""
    rewriting: _Rewriting | None = None
    at = 0
    for match in matches:
        text = replace(match)
        if text is None:
            continue
        rewriting = rewriting or _Rewriting(reading)
        rewriting.keep(at, match.start())
        rewriting.put(text, *match.span())
        at = match.end()
    if rewriting is None:
        return reading
    rewriting.keep(at, len(reading.text))
    return rewriting.reading()


def _undone(match: re.Match[str]) -> str | None:
    """What an escape stands for; None where it is none."""
    kind = match.lastgroup
    escape = match[0]
    if kind == "json":
        return _json_letter(escape.lstrip("\\"))
    if kind == "entity":
        letter = html.unescape(escape)
        return letter if letter != escape else None
    if kind == "percent":
        return _decoded(unquote_to_bytes(escape))
    if kind == "wide":
        return chr(ord(escape) - 0xFEE0)
    if kind == "tag":
        return chr(ord(escape) - 0xE0000)
    if kind == "leftward":
        return escape[:0:-1]
    return ""


def _json_letter(escape: str) -> str:
    if escape[0] in "ux":
        return chr(int(escape[1:].strip("{}"), 16))
    return escape if escape in '"/' else "\n"


def _mail_letters(match: re.Match[str]) -> str:
    """What quoted-printable stands for."""
    return _decoded(_bytes_of(match[0]))


def _letters_of_bytes(match: re.Match[str]) -> str | None:
    """What quoted-printable stands for outside of a mail: a letter of several bytes, or nothing."""
    try:
        letters = _bytes_of(match[0]).decode()
    except UnicodeDecodeError:
        return None
    return None if letters.isascii() else letters


def _bytes_of(escape: str) -> bytes:
    return bytes.fromhex(_SOFT_BREAK.sub("", escape).replace("=", ""))


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def without_partial_escape(text: str) -> str:
    """The text without the begin of an escape at its end, of which the rest is still to come."""
    return _PARTIAL_ESCAPE.sub("", text)


_DIVIDED = re.compile(r"(?<=[^\W\d_])[-\u2010\u2011]\r?\n[ \t>]{0,20}(?=[^\W\d_])")


def joined(reading: Reading) -> Reading:
    """The reading without the hyphens that divide words at the ends of lines.

    It is a reading of its own: some of them are hyphens of the word.
    """
    return _with_replaced(reading, _DIVIDED.finditer(reading.text), lambda _: "")


# -- pages -----------------------------------------------------------------------------------------


def rendered(reading: Reading, *, all_tags: bool = False) -> Reading:
    """What a page shows: without comments, scripts and tags of HTML; or without `all_tags`.

    Nothing stands in the place of a tag within a line, and a blank in that of a block's. A tag or
    an escape can come out of tags, as `<b>` out of `<i>&lt;</i><i>b</i><i>&gt;</i>`.
    """
    for _ in range(_ROUNDS):
        page = _without_tags(reading, all_tags=all_tags)
        if page is reading:
            break
        reading = _with_characters(page)
        all_tags = False  # what comes out of tags may be a call's
    return reading


def _without_tags(reading: Reading, *, all_tags: bool) -> Reading:
    text = reading.text
    rewriting: _Rewriting | None = None
    at = 0
    ends = _Ends(text)
    opening = _OPENS.search(text)
    while opening is not None:
        begin = opening.start()
        end, shown = _unseen(text, begin, ends, all_tags=all_tags)
        if end > begin:
            rewriting = rewriting or _Rewriting(reading)
            rewriting.keep(at, begin)
            rewriting.put(shown, begin, end)
            at = end
        opening = _OPENS.search(text, max(end, begin + 1))
    if rewriting is None:
        return reading
    rewriting.keep(at, len(text))
    return rewriting.reading()


class _Ends:
    """Where ends stand in a text; one that stands nowhere behind a place is sought once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._missing: set[str] = set()

    def after(self, end: str, at: int) -> int:
        """The place behind the next `end`, in any case, or -1."""
        if end in self._missing:
            return -1
        found = re.compile(re.escape(end), re.IGNORECASE).search(self._text, at)
        if found is None:
            self._missing.add(end)
            return -1
        return found.end()


def _unseen(text: str, begin: int, ends: _Ends, *, all_tags: bool) -> tuple[int, str]:
    """Where something ends that a page does not show, and what stands in its place; or `begin`."""
    if text.startswith("<!--", begin):
        return max(ends.after("-->", begin + 4), begin), ""
    note = _FOOTNOTE.match(text, begin)
    if note is not None:
        return note.end(), ""
    tag = _TAG.match(text, begin)
    if tag is None:
        return begin, ""
    named = _TAG_NAME.match(tag[0])
    name = named[1].lower() if named is not None else ""
    if name in _UNSEEN_ELEMENTS and tag[0][1] != "/":
        return max(ends.after(f"</{name}>", tag.end()), tag.end()), ""
    if name in _BLOCK_ELEMENTS:
        return tag.end(), " "
    if all_tags or not name or name in _INLINE_ELEMENTS:
        return tag.end(), ""
    return begin, ""
