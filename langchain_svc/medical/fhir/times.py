"""FHIR's dates and times, which may be a year, a month, a day or a moment; and ages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Any


@dataclass(frozen=True)
class Clock:
    """The day of a record, and its moment where that is known; without it, days are whole."""

    today: date
    now: datetime | None = None

    def is_before(self, moment: Any) -> bool:
        """Whether a FHIR date or time is after the day or the moment; False where there is none."""
        if moment is None:
            return False
        at = to_datetime(moment)
        if self.now is not None and isinstance(moment, datetime):
            return at > self.now
        return days_before(at, self.today) < 0

    def age_of(self, at: datetime) -> timedelta:
        """How long before the day or the moment a reading was made."""
        if self.now is not None:
            return max(self.now - at, timedelta())
        return timedelta(days=days_before(at, self.today))


OLDEST = datetime.min.replace(tzinfo=timezone.utc)
_LEAP_SECOND = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:)60")


def without_leap_second(text: str) -> str:
    """A time of a leap second, which Python does not have, as the second before it."""
    return _LEAP_SECOND.sub(r"\g<1>59", text) if _LEAP_SECOND.match(text) else text


def to_datetime(told: Any) -> datetime:
    """A FHIR date or time as a moment; one without a time is its beginning, in UTC."""
    if isinstance(told, datetime):
        return told if told.tzinfo else told.replace(tzinfo=timezone.utc)
    return datetime.combine(day(told), time.min, timezone.utc)


def rough_day(text: Any) -> datetime | None:
    """The day that an unchecked text begins with; None where it begins with none."""
    try:
        return to_datetime(date.fromisoformat(str(text)[: len("2000-01-01")]))
    except ValueError:
        return None


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
    return (
        0 if days == -1 else days
    )  # where the patient is, the next day may have begun


def effective(observation: Any) -> Any:
    """When an observation was made, as FHIR has it; of a period its end. None if unknown."""
    period = observation.effectivePeriod
    return (
        observation.effectiveDateTime
        or observation.effectiveInstant
        or (period and (period.end or period.start))
        or observation.issued
    )


def time_of(observation: Any) -> datetime | None:
    """The same as a moment."""
    moment = effective(observation)
    return to_datetime(moment) if moment else None


def year(moment: Any) -> str:
    """The year of a FHIR date or time; empty where there is none."""
    return f"{day(moment):%Y}" if moment else ""


def as_of(days: int | None) -> str:
    """How old something is, for a line of text; empty where it is of the day."""
    return f" (as of {days} day{'s'[: days > 1]} ago)" if days else ""


TODDLER = 2
_DAYS_OF_A_YEAR = 365.25


def age(birth: date, end: date) -> float:
    """Whole years; below two years the days as a part of a year."""
    years = end.year - birth.year - ((end.month, end.day) < (birth.month, birth.day))
    return years if years >= TODDLER else round((end - birth).days / _DAYS_OF_A_YEAR, 2)
