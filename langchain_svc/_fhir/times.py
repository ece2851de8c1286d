"""FHIR's dates and times, which may be a year, a month, a day or a moment; and ages."""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from typing import Any

OLDEST = datetime.min.replace(tzinfo=timezone.utc)


def instant(told: Any) -> datetime:
    """A FHIR date or time as a moment; one without a time is its beginning, in UTC."""
    if isinstance(told, datetime):
        return told if told.tzinfo else told.replace(tzinfo=timezone.utc)
    return datetime.combine(day(told), time.min, timezone.utc)


def day(told: Any) -> date:
    """A FHIR date as a day; a year or month is its first one."""
    if isinstance(told, datetime):
        return told.date()
    if isinstance(told, date):
        return told
    year, _, month = str(told).partition("-")
    return date(int(year), int(month or 1), 1)


_MONTHS = 12
_TODDLER = 2


def age(birth: date, end: date) -> float:
    """Whole years; below two years whole months as a part of a year."""
    months = (end.year - birth.year) * _MONTHS + end.month - birth.month - (end.day < birth.day)
    years = months // _MONTHS
    return years if years >= _TODDLER else round(months / _MONTHS, 2)
