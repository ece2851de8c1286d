"""FHIR's dates and times, which may be a year, a month, a day or a moment; and ages."""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from typing import Any

OLDEST = datetime.min.replace(tzinfo=timezone.utc)


def to_datetime(told: Any) -> datetime:
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


def is_past(end: Any, today: date) -> bool:
    """Whether an end has come: before `today`, and for a year or month before its own beginning.

    A year or month that `today` lies in may end tomorrow, so it is not past.
    """
    if end is None:
        return False
    shape = len(str(end)) if not isinstance(end, date) else len("2000-01-01")
    return day(end).isoformat()[:shape] < today.isoformat()[:shape]


def days_before(at: datetime, today: date) -> int:
    """How many days before `today` a moment was, where it was; below 0 is after it."""
    days = (today - at.date()).days
    return 0 if days == -1 else days  # where the patient is, the next day may have begun


_MONTHS = 12
_TODDLER = 2


def age(birth: date, end: date) -> float:
    """Whole years; below two years whole months as a part of a year."""
    months = (end.year - birth.year) * _MONTHS + end.month - birth.month - (end.day < birth.day)
    years = months // _MONTHS
    return years if years >= _TODDLER else round(months / _MONTHS, 2)
