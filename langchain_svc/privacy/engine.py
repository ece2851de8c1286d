"""Hides and restores: finds every identifier of a text, and gives each writing its mark.

`[PERSON_1]` is the first writing of the first person, `[PERSON_1_2]` the second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from .._base.safe_errors import type_text
from .._text import Reading, characters, joined, rendered
from .calendar_dates import (
    LONGEST_DATE,
    DateShift,
    WrittenDate,
    read_dates,
    unfinished_date,
)
from .identities import Identities
from .names import PersonNames, Phrases
from .numbers import Numbers
from .vocabulary import GENERIC_PLACES, Vocabulary, fold, tokens
from .whole_values import GivenOut, WholeValues

# -- marks -----------------------------------------------------------------------------------------

_KINDS = ("PERSON", "DATE", "ID", "PHONE", "EMAIL", "PLACE", "TEXT")

# Models write a mark a little otherwise: [Person 1], PERSON_1, \[PERSON\_1\]. Without brackets it
# needs its underscore: "person 1" is English.
_KIND = "|".join(_KINDS)
_LOOSE = r"(?:\\?[_ -])"
_NUMBERS = rf"(\d{{1,6}})(?:{_LOOSE}(\d{{1,6}}))?"
_IN_BRACKETS = rf"({_KIND}){_LOOSE}?{_NUMBERS}"
_BARE = rf"({_KIND})\\?_(\d{{1,6}})(?:\\?_(\d{{1,6}}))?"
_MARK = re.compile(
    rf"\\\[ ?{_IN_BRACKETS} ?\\\]|\[ ?{_IN_BRACKETS} ?\]|(?<!\w){_BARE}(?!\w)",
    re.IGNORECASE | re.ASCII,
)
_LOOKALIKE = re.compile(
    rf"\\?\[ ?{_IN_BRACKETS} ?\\?\]|{_BARE}", re.IGNORECASE | re.ASCII
)
# A text without any of these, in small letters, holds no mark: the patterns are slow on long texts.
_SIGNS = tuple(
    sign.format(kind.lower())
    for kind in _KINDS
    for sign in ("{}_", "{}\\_", "[{}", "[ {}")
)
_LONGEST_MARK = 48


def _beginnings(word: str) -> str:
    """A pattern for all beginnings of a word."""
    pattern = ""
    for letter in reversed(word):
        pattern = f"{letter}(?:{pattern})?"
    return pattern


_FIRST_LETTERS = "|".join(map(_beginnings, _KINDS))
_UNFINISHED = re.compile(
    rf"""(?:
    \\?(?:\[\ ?(?:(?:{_KIND})[\\_\ \d-]{{0,20}}|{_FIRST_LETTERS})?)?
    |(?<!\w)(?:(?:{_KIND})(?:\\|\\?_[\\_\d]{{0,18}})?|{_FIRST_LETTERS})
    )\Z""",
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)


def _unfinished_mark(text: str) -> int:
    """Where at the end of a text a mark may have begun, or the text's length."""
    match = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_MARK))
    if match is None:
        return len(text)
    return match.start()


def _lookalikes(text: str) -> Iterator[tuple[int, int]]:
    """The places of a text that look like a mark before any identifier is hidden."""
    if _may_have_marks(text):
        for match in _LOOKALIKE.finditer(text):
            yield match.span()


def _may_have_marks(text: str) -> bool:
    if "_" not in text and "[" not in text:
        return False
    small = text.lower()
    return any(sign in small for sign in _SIGNS)


class MarkTable:
    """The marks that were given out. One lock: threads may hide and restore at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._marks: dict[tuple[str, int, str], str] = {}
        self._owners: dict[str, tuple[str, int]] = {}
        self._writings: dict[tuple[str, int], list[str]] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._counts: dict[str, int] = {}

    def reserve(self, kind: str, number: int) -> None:
        """Keeps the numbers of a kind up to this one for the record's own identifiers."""
        self._counts[kind] = max(number, self._counts.get(kind, 0))

    def number_of(self, kind: str, key: str) -> int:
        """The number of a value that the record does not name; the same for the same key."""
        with self._lock:
            number = self._numbers.get((kind, key))
            if number is None:
                number = self._counts.get(kind, 0) + 1
                self._counts[kind] = number
                self._numbers[kind, key] = number
            return number

    def mark(self, kind: str, number: int, writing: str) -> str:
        """The mark of a writing."""
        with self._lock:
            mark = self._marks.get((kind, number, writing))
            if mark is None:
                writings = self._writings.setdefault((kind, number), [])
                writings.append(writing)
                mark = f"[{kind}_{number}]"
                if len(writings) > 1:
                    mark = f"[{kind}_{number}_{len(writings)}]"
                self._marks[kind, number, writing] = mark
                self._owners.setdefault(writing, (kind, number))
            return mark

    def owner(self, writing: str) -> tuple[str, int] | None:
        """The kind and the number that a writing was marked with; None if it never was."""
        return self._owners.get(writing)

    def restored(self, text: str, start: int = 0) -> Iterable[tuple[int, int, str]]:
        """The marks of a text that were given out: start, end and the writing."""
        if not _may_have_marks(text):
            return []
        marks: list[tuple[int, int, str]] = []
        for match in _MARK.finditer(text, start):
            if match.end() == len(text) and _is_half(text, match.start()):
                continue
            # The groups of one of three forms; the first writing has no number of its own.
            kind, number, index = [*filter(None, match.groups()), "1"][:3]
            writings = self._writings.get((kind.upper(), int(number)), [])
            position = int(index) - 1
            if 0 <= position < len(writings):
                marks.append((*match.span(), writings[position]))
        return marks


def _is_half(text: str, start: int) -> bool:
    """Whether a mark at the end of a text lacks its bracket, as [PERSON_1 of [PERSON_12]."""
    before = text[max(0, start - 2) : start].rstrip()
    return before.endswith("[") and text[-1].isdigit()


# -- the engine ------------------------------------------------------------------------------------

ExtraFinder = Callable[[str], Iterable[tuple[int, int, str]]]

# A writing holds none of these, so that restoring it within JSON leaves valid JSON.
_CUTS = re.compile(r"""\\(?!u[0-9a-fA-F]{4})[nrtbf"\\/]?|[\n\r"]""")
_DIGITS = re.compile(r"\d(?:[\d./-]*\d)?")
_COMPACT_TIME = re.compile(r"(?:\d\d){0,3}(?!\d)")  # none, or hours, minutes, seconds
_WHOLE = re.compile(r"\]\Z|\A\d{4}-\d\d-\d\d\Z")  # a mark or a date that ends here
_BEFORE_SHORT_YEAR = "-/. '’\u00a0\t\n"
_LONGEST_REST_OF_DATE = 16  # of an ISO date from its year on
_KINDS_OF_OTHERS = {
    "PER": "PERSON",
    "NAME": "PERSON",
    "PATIENT": "PERSON",
    "DOCTOR": "PERSON",
    "DATE_TIME": "DATE",
    "PHONE_NUMBER": "PHONE",
    "EMAIL_ADDRESS": "EMAIL",
    "LOC": "PLACE",
    "GPE": "PLACE",
    "LOCATION": "PLACE",
    "ADDRESS": "PLACE",
    "ORG": "PLACE",
    "ORGANIZATION": "PLACE",
    "MEDICAL_RECORD_NUMBER": "ID",
}


class ExtraFailedError(Exception):
    """Says how the application's `extra` failed, without a word of the text."""


class Span(NamedTuple):
    """A place of a text that is hidden, and whose mark it gets."""

    start: int
    end: int
    kind: str
    number: int


@dataclass(frozen=True, repr=False)
class Replacement:
    """A place of a text and the text that goes there."""

    start: int
    end: int
    text: str


class Engine:
    """The finders of one set of identities, and the marks that were given out for them."""

    def __init__(
        self,
        identities: Identities,
        languages: Collection[str],
        extras: tuple[ExtraFinder, ...],
        shift_days: int,
    ) -> None:
        self.identities = identities
        self.languages = languages
        self.extras = extras
        self.shift_days = shift_days
        self._shift = DateShift(shift_days) if shift_days else None
        self._vocabulary = Vocabulary(languages)
        self._values = WholeValues()
        self._persons = PersonNames(self._vocabulary, self._values)
        self._phrases = Phrases(self._vocabulary, self._values)
        self._numbers = Numbers(self._values)
        self._dates = [*dict.fromkeys(identities.dates)]
        self._years: set[str] = set()
        self._marks = MarkTable()
        self._given_out = GivenOut()
        self._add(identities)

    def _add(self, identities: Identities) -> None:
        for names in identities.persons:
            self._persons.add(names)
        for identifier in identities.identifiers:
            self._numbers.add_identifier(identifier)
        for telecom in identities.telecoms:
            self._numbers.add_telecom(telecom)
        for address in identities.addresses:
            self._phrases.add_address(address)
        for place in identities.places:
            if not GENERIC_PLACES.issuperset(tokens(place)):
                self._phrases.add("PLACE", place)
        for text in identities.texts:
            self._phrases.add("TEXT", text)
        self._add_dates()

    def _add_dates(self) -> None:
        for day in self._dates:
            year = f"{day.year:04}"
            self._years |= {year, year[2:]}
        self._marks.reserve("PERSON", self._persons.count)
        self._marks.reserve("DATE", len(self._dates))
        for counts in (self._numbers.counts, self._phrases.counts):
            for kind, count in counts.items():
                self._marks.reserve(kind, count)

    # -- hiding ----------------------------------------------------------------------------------

    def hide(self, text: str) -> str:
        """The text with marks in the place of identifiers.

        Raises:
            ExtraFailedError: A finder of the application's failed.
        """
        spans = [*self._find(text)]
        if self._shift is None:
            return _replaced(text, self._marked(text, spans))
        shifted = self._shifted_dates(text, self._shift)
        replacements = self._marked(text, spans, shifted)
        result = _replaced(text, replacements)
        if _replaced(result, self._restored(result)) == text:
            return result
        # A date stands beside an identifier so that, without it, other digits would read as one.
        for match in _DIGITS.finditer(text):
            number = self._marks.number_of("DATE", match[0])
            spans.append(Span(match.start(), match.end(), "DATE", number))
        return _replaced(text, self._marked(text, spans))

    def _find(self, text: str) -> Iterator[Span]:
        """What is to be hidden; of places that overlap, the earlier here has the letters."""
        yield from self._find_given_out(text)
        for start, end in _lookalikes(text):
            yield self._new_span(text, start, end, "TEXT")
        readings = _readings(text)
        if text not in [reading.text for reading in readings]:
            for value in self._values.find(text):  # it may look like an escape
                yield Span(*value)
        for reading in readings:
            for span in self._find_in_reading(reading.text, text):
                start, end = reading.place(span.start, span.end)
                yield span._replace(start=start, end=end)
        for extra in self.extras:
            for start, end, kind in _called(extra, text):
                yield self._new_span(text, start, end, kind)

    def _find_given_out(self, text: str) -> Iterator[Span]:
        for start, end in self._given_out.find(text):
            writing = text[start:end]
            owner = self._marks.owner(writing)
            if owner is not None:
                yield Span(start, end, *owner)
            elif not [*read_dates(text, start, end)]:
                # A date that was moved back; where it stands as a date, it is moved again.
                yield self._new_span(text, start, end, "DATE")

    def _find_in_reading(self, text: str, original: str) -> Iterator[Span]:
        """What is to be hidden of a reading; what was given out was sought in the original."""
        if text != original:
            yield from self._find_given_out(text)
        for value in self._values.find(text):
            yield Span(*value)
        scan = self._vocabulary.scan(text)
        yield from self._find_dates(text)
        for place in self._numbers.find(text):
            yield Span(*place)
        for place in self._phrases.find(scan):
            yield Span(*place)
        for start, end, number in self._persons.find(scan):
            yield Span(start, end, "PERSON", number)

    def _new_span(self, text: str, start: int, end: int, kind: str) -> Span:
        number = self._marks.number_of(kind, fold(text[start:end]))
        return Span(start, end, kind, number)

    def _find_dates(self, text: str) -> Iterator[Span]:
        """The record's dates, near their years."""
        for number, day in enumerate(self._dates, start=1):
            for start, end in _compact_dates(text, f"{day:%Y%m%d}"):
                yield Span(start, end, "DATE", number)
        if self._shift is not None:
            return
        for year in self._years:
            for start in _year_places(text, year):
                first = max(0, start - LONGEST_DATE)
                last = start + _LONGEST_REST_OF_DATE
                for text_date in read_dates(text, first, last):
                    number = self._date_number(text_date)
                    if number and text_date.year.start == start:
                        yield Span(text_date.start, text_date.end, "DATE", number)

    def _date_number(self, text_date: WrittenDate) -> int:
        """The number of the record's date that this is, or 0."""
        for number, day in enumerate(self._dates, start=1):
            if text_date.may_be(day):
                return number
        return 0

    def _shifted_dates(self, text: str, shift: DateShift) -> list[Replacement]:
        dates: list[Replacement] = []
        for text_date in read_dates(text):
            shifted = shift.shift(text, text_date)
            if shifted is None:
                span = self._new_span(text, text_date.start, text_date.end, "DATE")
                dates += self._pieces(text, span)
            else:
                dates.append(Replacement(text_date.start, text_date.end, shifted))
        return dates

    def _marked(
        self, text: str, spans: Iterable[Span], dates: Iterable[Replacement] = ()
    ) -> list[Replacement]:
        """The marks of these places, and the dates that no mark overlaps."""
        covered = bytearray(len(text))
        parts: list[Span] = []
        for span in spans:
            for start, end in _uncovered(covered, span.start, span.end):
                covered[start:end] = b"\1" * (end - start)
                parts.append(span._replace(start=start, end=end))
        replacements: list[Replacement] = []
        for part in sorted(parts):  # so that marks are numbered as the text has them
            replacements += self._pieces(text, part)
        for date in dates:
            if covered.find(1, date.start, date.end) < 0:
                replacements.append(date)
        replacements.sort(key=lambda replacement: replacement.start)
        return replacements

    def _pieces(self, text: str, span: Span) -> Iterator[Replacement]:
        """A place as marks: one for each part that may be a writing."""
        position = span.start
        ends = [match.span() for match in _CUTS.finditer(text, span.start, span.end)]
        for cut_start, cut_end in [*ends, (span.end, span.end)]:
            writing = text[position:cut_start]
            start = position + len(writing) - len(writing.lstrip())
            writing = writing.strip()
            if any(map(str.isalnum, writing)):
                mark = self._marks.mark(span.kind, span.number, writing)
                yield Replacement(start, start + len(writing), mark)
            position = cut_end

    # -- restoring -------------------------------------------------------------------------------

    def restore(self, text: str) -> str:
        """The text with what was hidden in the place of its marks."""
        return self._give_out(text, self._restored(text))

    def _give_out(
        self,
        text: str,
        replacements: list[Replacement],
        start: int = 0,
        end: int | None = None,
    ) -> str:
        """A part of a text with its replacements, which are remembered."""
        self._given_out.add(replacement.text for replacement in replacements)
        return _replaced(text, replacements, start, end)

    def _restored(self, text: str, start: int = 0) -> list[Replacement]:
        marks = [Replacement(*mark) for mark in self._marks.restored(text, start)]
        if self._shift is None:
            return marks
        covered = bytearray(len(text))
        for mark in marks:
            covered[mark.start : mark.end] = b"\1" * (mark.end - mark.start)
        for text_date in read_dates(text, start):
            if covered.find(1, text_date.start, text_date.end) < 0:
                original = self._shift.restore(text, text_date)
                marks.append(Replacement(text_date.start, text_date.end, original))
        marks.sort(key=lambda replacement: replacement.start)
        return marks

    def restore_end(self, text: str, start: int, *, cut: bool) -> str:
        """The text after `start`, restored; what stands before it was restored already.

        What a text that was `cut` off ends in is restored only if it cannot go on.
        """
        replacements = self._restored(text, start)
        if cut and replacements:
            last = replacements[-1]
            is_open = last.end == len(text)
            if is_open and not _WHOLE.search(text[last.start :]):
                replacements.pop()
        return self._give_out(text, replacements, start)

    def restore_begin(self, text: str, start: int) -> tuple[str, int]:
        """What is certain of an unfinished text, restored from `start`; and where the rest is."""
        end = _unfinished_mark(text)
        if self._shift is not None:
            end = min(end, unfinished_date(text))
        end = max(end, start)
        certain: list[Replacement] = []
        for replacement in self._restored(text, start):
            if replacement.start >= end:
                break
            certain.append(replacement)
            end = max(end, replacement.end)
        return self._give_out(text, certain, start, end), end


def _readings(text: str) -> list[Reading]:
    """What a text says: with its tags, whose attributes may name somebody, and without.

    Each also with the words whole that a line's end divides.
    """
    decoded = characters(text)
    views = [*dict.fromkeys([decoded, rendered(decoded, all_tags=True)])]
    return [*dict.fromkeys([*views, *map(joined, views)])]


def _compact_dates(text: str, digits: str) -> Iterator[tuple[int, int]]:
    """Where a date stands as eight digits, as in DICOM, or before a time, as in HL7."""
    start = text.find(digits)
    while start >= 0:
        end = start + len(digits)
        is_begin = not text[max(0, start - 1) : start].isdigit()
        if is_begin and _COMPACT_TIME.match(text, end):
            yield start, end
        start = text.find(digits, end)


def _year_places(text: str, year: str) -> Iterator[int]:
    """Where a year may be that of a date."""
    start = text.find(year)
    while start >= 0:
        is_short = len(year) == 2
        before = text[max(0, start - 1) : start]
        after = text[start + len(year) : start + len(year) + 1]
        follows_mark = not is_short or (before and before in _BEFORE_SHORT_YEAR)
        if follows_mark and not before.isdigit() and not after.isdigit():
            yield start
        start = text.find(year, start + 1)


def _uncovered(covered: bytearray, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a place that no other place has."""
    while start < end:
        first = covered.find(0, start, end)
        if first < 0:
            return
        last = covered.find(1, first, end)
        if last < 0:
            last = end
        yield first, last
        start = last


def _replaced(
    text: str,
    replacements: Iterable[Replacement],
    start: int = 0,
    end: int | None = None,
) -> str:
    pieces: list[str] = []
    for replacement in replacements:
        pieces += (text[start : replacement.start], replacement.text)
        start = replacement.end
    pieces.append(text[start:end])
    return "".join(pieces)


def _called(extra: ExtraFinder, text: str) -> list[tuple[int, int, str]]:
    """The places that a finder of the application's returns, checked."""
    try:
        places = [*extra(text)]
    except Exception as error:  # noqa: BLE001  # of any class: its frames and words hold the text
        kind = type(error).__name__
    else:
        return [_checked(place, len(text)) for place in places]
    raise ExtraFailedError(
        f"`extra` failed with {kind}, so nothing was hidden and nothing may be sent; call it with "
        "the same text to see why"
    )


def _checked(place: object, length: int) -> tuple[int, int, str]:
    if isinstance(place, (tuple, list)) and len(place) == 3:
        start, end, kind = place
        are_numbers = type(start) is int and type(end) is int
        if are_numbers and isinstance(kind, str) and 0 <= start < end <= length:
            kind = kind.upper()
            kind = _KINDS_OF_OTHERS.get(kind, kind)
            if kind not in _KINDS:
                kind = "TEXT"
            return start, end, kind
        problem = f"places outside of 0 <= start < end <= {length}, or of other types"
    else:
        problem = type_text(place)
    raise ExtraFailedError(
        f"`extra` returned {problem}, so nothing was hidden and nothing may be sent; it returns "
        "tuples (start, end, kind), as in (0, 4, 'PERSON')"
    )
