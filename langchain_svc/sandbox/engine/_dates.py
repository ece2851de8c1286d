"""Dates as they are said, written as a schema wants them."""

from __future__ import annotations

import re

from langchain_svc.sandbox.engine._gazetteer import MONTHS

# The day and the year of the sandbox: its answers must not depend on when they are asked for.
TODAY, _YEAR = "2024-06-15", 2024
_DAYS = {"today": TODAY, "tonight": TODAY, "tomorrow": "2024-06-16", "yesterday": "2024-06-14"}
_SHORT_YEAR = 100
_MONTHS = {month[:3].lower(): number for number, month in enumerate(MONTHS, 1)}
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_NUMERIC = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{2,4})")
_DAY_FIRST = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]{3})[a-z.]*,? ?(\d{4})?")
_MONTH_FIRST = re.compile(r"([a-z]{3})[a-z.]* (\d{1,2})(?:st|nd|rd|th)?,? ?(\d{4})?")
_MOST_MONTHS = 12


def _parts(said: str) -> tuple[int, int, int] | None:
    """Return year, month and day; a date in figures is read with the month first."""
    text = _DAYS.get(said.lower().strip(), said.lower())
    if found := _ISO.search(text):
        return int(found[1]), int(found[2]), int(found[3])
    if found := _NUMERIC.search(text):
        first, second, year = int(found[1]), int(found[2]), int(found[3])
        month, day = (second, first) if first > _MOST_MONTHS else (first, second)
        return year + 2000 * (year < _SHORT_YEAR), month, day
    if (found := _DAY_FIRST.search(text)) and found[2] in _MONTHS:
        return int(found[3] or _YEAR), _MONTHS[found[2]], int(found[1])
    if (found := _MONTH_FIRST.search(text)) and found[1] in _MONTHS:
        return int(found[3] or _YEAR), _MONTHS[found[1]], int(found[2])
    return None


# What a description calls the form, and how the three parts are written in it.
_WRITTEN = (
    (re.compile(r"yyyy-mm-dd|iso[ -]?8601", re.IGNORECASE), "{0:04d}-{1:02d}-{2:02d}"),
    (re.compile(r"mm-dd-yyyy", re.IGNORECASE), "{1:02d}-{2:02d}-{0:04d}"),
    (re.compile(r"mm/dd/yyyy", re.IGNORECASE), "{1:02d}/{2:02d}/{0:04d}"),
    (re.compile(r"dd-mm-yyyy", re.IGNORECASE), "{2:02d}-{1:02d}-{0:04d}"),
    (re.compile(r"dd/mm/yyyy", re.IGNORECASE), "{2:02d}/{1:02d}/{0:04d}"),
)
_FORMATS = {"date": "{0:04d}-{1:02d}-{2:02d}", "date-time": "{0:04d}-{1:02d}-{2:02d}T00:00:00Z"}
_LAST_DAY = 31


def dated(said: str, told: str, description: str) -> str:
    """Write a date in the `format` or the described form; as it was said where neither is told."""
    form = _FORMATS.get(told) or next((w for p, w in _WRITTEN if p.search(description)), None)
    if form is None:
        return said
    parts = _parts(said)
    if parts is None or not (1 <= parts[1] <= _MOST_MONTHS and 1 <= parts[2] <= _LAST_DAY):
        return form.format(*map(int, TODAY.split("-"))) if told else said
    return form.format(*parts)
