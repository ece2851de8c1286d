"""Full dates in the forms in which people write them, read and written again as another date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from .masks import word_set
from .vocabulary import fold

# Twelve names each; the first list that has a name is the one in which another month is text_date.
_MONTHS = tuple(
    tuple(names.split())
    for names in (
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "jan feb mar apr may jun jul aug sept oct nov dec",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "jan feb mär apr mai jun jul aug sep okt nov dez",
        "jänner feber maerz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "janv févr mars avr mai juin juil août sept oct nov déc",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ene feb mar abr may jun jul ago set oct nov dic",
        "januari februari maart april mei juni juli augustus september oktober november december",
        "jan feb mrt apr mei jun jul aug sep okt nov dec",
        """stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października
        listopada grudnia""",
        """styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik
        listopad grudzień""",
        "sty lut mar kwi maj cze lip sie wrz paź lis gru",
        "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
        "oca şub mar nis may haz tem ağu eyl eki kas ara",
    )
)
_MONTH_NUMBERS = {
    fold(name): month
    for names in reversed(_MONTHS)
    for month, name in enumerate(names, start=1)
}
_WRITTEN = {name for names in _MONTHS for name in names}
MONTH_WORDS = _WRITTEN | set(_MONTH_NUMBERS)
_MONTH = r"[^\W\d_]{3,12}"
_ORDINAL = r"st|nd|rd|th|er|[.ºª°]"
_OF = r"(?:(?:de|of)\s|d['’]\s?)"

_DATE = re.compile(
    rf"""(?<![^\W_])(?<!\d[-./])(?:
    (?P<iso_year>\d{{4}})(?P<iso_mark>[-/.])(?P<iso_month>\d{{1,2}})(?P=iso_mark)(?P<iso_day>\d{{1,2}})(?!\d)
    |(?P<first>\d{{1,2}})(?P<mark>[-/.])\s?(?P<second>\d{{1,2}})(?P=mark)\s?(?P<year>\d{{4}}|\d{{2}})
        (?!\d)(?![-/.]\d)
    |(?P<day>\d{{1,2}})(?:{_ORDINAL})?[\s-]{{0,2}}(?:{_OF})?(?P<word>{_MONTH})\.?,?[\s-]{{1,2}}
        (?:(?:de|del|of)\s)?(?P<word_year>\d{{4}}|\d{{2}})(?![^\W_])(?![-/.]\d)
    |(?P<next_day>\d{{1,2}})(?:{_ORDINAL})?,?\s{{1,2}}(?P<next_year>\d{{4}})(?!\d)(?![-/.]\d)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# Where a date may start. One after another is faster than `_DATE` on all of a text.
_DIGITS = re.compile(r"\d+")
_MONTH_BEFORE = re.compile(
    rf"(?<![^\W_])(?P<word>{_MONTH})\.?\s{{1,2}}$", re.IGNORECASE
)
_LENGTHS = (1, 2, 4)  # of a day, a month and a year
_LONGEST_MONTH = 16
_PIVOT = 40  # of years with two digits: 40 is 1940, and 39 is 2039
LONGEST_DATE = 40


@dataclass(frozen=True, repr=False)
class Part:
    """The day, the month or the year of a written date: its place and its text."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, repr=False)
class WrittenDate:
    """A date as a text has it.

    Attributes:
        start: Where it starts in the text.
        end: Where it ends.
        readings: What it may mean: 3/4/1950 is a day of April, or of March.
        has_century: Whether the year has four digits.
    """

    start: int
    end: int
    readings: tuple[date, ...]
    has_century: bool
    day: Part
    month: Part
    year: Part

    def may_be(self, day: date) -> bool:
        """Whether the date may mean this day; a year of two digits is of any century."""
        for reading in self.readings:
            if (reading.month, reading.day) != (day.month, day.day):
                continue
            if reading.year == day.year:
                return True
            if not self.has_century and reading.year % 100 == day.year % 100:
                return True
        return False

    def write(self, text: str, day: date) -> str:
        """Another day in the form that this date has in its text."""
        numbers = [self.day.text]
        if self.month.text.isdigit():
            numbers.append(self.month.text)
        is_padded = any(number.startswith("0") for number in numbers)
        if len(numbers) == 2 and not any(len(number) == 1 for number in numbers):
            is_padded = True
        year = f"{day.year:04}"
        if not self.has_century:
            year = year[2:]
        new_texts = {
            self.day: _number(day.day, self.day, is_padded=is_padded),
            self.month: _month(day.month, self.month, is_padded=is_padded),
            self.year: year,
        }
        pieces: list[str] = []
        position = self.start
        for part in sorted(new_texts, key=lambda part: part.start):
            pieces += (text[position : part.start], new_texts[part])
            position = part.end
        pieces.append(text[position : self.end])
        return "".join(pieces)


def read_dates(
    text: str, start: int = 0, end: int | None = None
) -> Iterator[WrittenDate]:
    """The full dates of a text, in order and apart from one another."""
    if end is None:
        end = len(text)
    last_end = start
    for digits in _DIGITS.finditer(text, start, end):
        if digits.start() < last_end or len(digits[0]) not in _LENGTHS:
            continue
        match = _DATE.match(text, digits.start(), end)
        if match is None:
            continue
        text_date = _read(text, match)
        if text_date is not None and text_date.start >= last_end:
            last_end = text_date.end
            yield text_date


def _read(text: str, match: re.Match[str]) -> WrittenDate | None:
    if match["iso_year"]:
        names = ("iso_day", "iso_month", "iso_year")
    elif match["first"]:
        return _read_numbers(match)
    elif match["day"]:
        names = ("day", "word", "word_year")
    else:
        return _read_month_first(text, match)
    day, month, year = (_part(match, name) for name in names)
    return _written(match.start(), match.end(), day, month, year)


def _read_numbers(match: re.Match[str]) -> WrittenDate | None:
    """Day, month and year; or month, day and year."""
    first = _part(match, "first")
    second = _part(match, "second")
    year = _part(match, "year")
    day_first = _written(match.start(), match.end(), first, second, year)
    month_first = _written(match.start(), match.end(), second, first, year)
    if day_first is None or month_first is None:
        return day_first or month_first
    readings = (*day_first.readings, *month_first.readings)
    return WrittenDate(
        match.start(), match.end(), readings, day_first.has_century, first, second, year
    )


def _read_month_first(text: str, match: re.Match[str]) -> WrittenDate | None:
    """March 4th, 1950: what matched is the day and the year."""
    earliest = max(0, match.start() - _LONGEST_MONTH)
    before = _MONTH_BEFORE.search(text, earliest, match.start())
    if before is None:
        return None
    day = _part(match, "next_day")
    month = _part(before, "word")
    year = _part(match, "next_year")
    return _written(before.start(), match.end(), day, month, year)


def _part(match: re.Match[str], name: str) -> Part:
    return Part(match.start(name), match.end(name), match[name])


def _written(
    start: int, end: int, day: Part, month: Part, year: Part
) -> WrittenDate | None:
    if month.text.isdigit():
        month_number = int(month.text)
    else:
        month_number = _MONTH_NUMBERS.get(fold(month.text), 0)
    year_number = int(year.text)
    has_century = len(year.text) == 4
    if not has_century:
        year_number += 1900 if year_number >= _PIVOT else 2000
    try:
        reading = date(year_number, month_number, int(day.text))
    except ValueError:
        return None
    return WrittenDate(start, end, (reading,), has_century, day, month, year)


def _number(value: int, part: Part, *, is_padded: bool) -> str:
    if is_padded and len(part.text) == 2:
        return f"{value:02}"
    return str(value)


def _month(month: int, part: Part, *, is_padded: bool) -> str:
    if part.text.isdigit():
        return _number(month, part, is_padded=is_padded)
    name = part.text.lower()
    for names in _MONTHS:
        if name in names:
            return _in_case_of(part.text, names[month - 1])
    # Written without its accents.
    for names in _MONTHS:
        plain = [*map(fold, names)]
        if fold(name) in plain:
            return _in_case_of(part.text, plain[month - 1])
    return name


def _in_case_of(example: str, word: str) -> str:
    if example.isupper():
        return word.upper()
    if example[0].isupper():
        return word.capitalize()
    return word


# -- dates at the end of a stream's text -----------------------------------------------------------

_PARTS = re.compile(r"\d+|[^\W\d_]+")
_BETWEEN_PARTS = re.compile(r"[\s\-/.,'’ºª°]{0,3}")
_BESIDE_MONTHS = word_set("st nd rd th er de del of d")
_BEGINNINGS = {
    word[:length]
    for word in MONTH_WORDS | _BESIDE_MONTHS
    for length in range(1, len(word) + 1)
}


def unfinished_date(text: str) -> int:
    """Where at the end of a text a date may have begun, or the text's length."""
    begin = len(text)
    parts = [*_PARTS.finditer(text, max(0, len(text) - LONGEST_DATE))]
    for part in reversed(parts):
        if not _BETWEEN_PARTS.fullmatch(text, part.end(), begin):
            break
        is_last = part.end() == len(text)
        if not _may_be_of_date(part[0].lower(), is_last=is_last):
            break
        begin = part.start()
    return begin


def _may_be_of_date(word: str, *, is_last: bool) -> bool:
    if word.isdigit():
        return True
    if is_last:
        return word in _BEGINNINGS
    return word in MONTH_WORDS or word in _BESIDE_MONTHS


class DateShift:
    """Moves all dates by the same number of days, and back.

    The number is a multiple of 7, so that days of the week that stand beside dates stay true.
    """

    def __init__(self, days: int) -> None:
        self._moved_by = timedelta(days=days)
        self.days = days
        self._shifted: dict[str, str] = {}
        self._originals: dict[str, str] = {}

    def shift(self, text: str, text_date: WrittenDate) -> str | None:
        """Another date in the form of this one, or None if it could not be moved back."""
        original = text[text_date.start : text_date.end]
        shifted = self._shifted.get(original)
        if shifted is not None:
            return shifted
        try:
            day = text_date.readings[0] + self._moved_by
        except OverflowError:
            return None
        shifted = text_date.write(text, day)
        if [(item.start, item.end) for item in read_dates(shifted)] != [
            (0, len(shifted))
        ]:
            return None
        # Of two dates that would look the same, the first is moved.
        if self._originals.setdefault(shifted, original) != original:
            return None
        self._shifted[original] = shifted
        return shifted

    def restore(self, text: str, text_date: WrittenDate) -> str:
        """The original of a date; one that the model has computed is moved back."""
        shifted = text[text_date.start : text_date.end]
        original = self._originals.get(shifted)
        if original is not None:
            return original
        try:
            day = text_date.readings[0] - self._moved_by
        except OverflowError:
            return shifted
        return text_date.write(text, day)
