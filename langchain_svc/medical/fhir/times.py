"""FHIR's dates and times, which may be a year, a month, a day or a moment; and ages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fhir.resources.R4B.observation import Observation
    from fhir.resources.R4B.period import Period

# As fhir.resources gives it: a datetime, a date, or the text of a year or of a month.
FhirTime: TypeAlias = "date | str"


@dataclass(frozen=True)
class Clock:
    """The day of a record, and its moment where that is known; without it, days are whole."""

    today: date
    now: datetime | None = None

    def is_before(self, moment: FhirTime | None) -> bool:
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


OLDEST = datetime.min.replace(tzinfo=UTC)
_LEAP_SECOND = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:)60")


def without_leap_second(text: str) -> str:
    """A time of a leap second, which Python does not have, as the second before it."""
    if not _LEAP_SECOND.match(text):
        return text
    return _LEAP_SECOND.sub(r"\g<1>59", text)


def to_datetime(moment: FhirTime) -> datetime:
    """A FHIR date or time as a moment; a date without a time as its beginning in UTC."""
    if not isinstance(moment, datetime):
        return datetime.combine(day(moment), time.min, UTC)
    if moment.tzinfo:
        return moment
    return moment.replace(tzinfo=UTC)


def rough_day(text: object) -> datetime | None:
    """The day with which an unchecked text begins; None if it begins with no day."""
    try:
        return to_datetime(date.fromisoformat(str(text)[: len("2000-01-01")]))
    except ValueError:
        return None


def day(moment: FhirTime) -> date:
    """A FHIR date as a day; a year or month as its first day."""
    if isinstance(moment, datetime):
        return moment.date()
    if isinstance(moment, date):
        return moment
    year, _, month = moment.partition("-")
    return date(int(year), int(month or 1), 1)


def is_past(end: FhirTime | None, today: date) -> bool:
    """Whether an end was before `today`.

    A year or a month in which `today` lies may end tomorrow, so it is not past.
    """
    if end is None:
        return False
    end_text = day(end).isoformat()
    if isinstance(end, str):
        end_text = end_text[: len(end)]
    return end_text < today.isoformat()[: len(end_text)]


def days_before(at: datetime, today: date) -> int:
    """How many days before `today` a moment was, by its own time zone; below 0 if after it."""
    days = (today - at.date()).days
    if days == -1:  # where the patient is, the next day may have begun
        return 0
    return days


def start_of(period: Period | None) -> FhirTime | None:
    """The start of a period; None where it has none, or there is no period."""
    if period is None:
        return None
    return period.start


def end_of(period: Period | None) -> FhirTime | None:
    """The end of a period, or else its start."""
    if period is None:
        return None
    return period.end or period.start


def effective(observation: Observation) -> FhirTime | None:
    """When an observation was made; the end of a period. None if that is unknown."""
    if observation.effectiveTiming:
        return None  # several moments, of which nobody says which the value is of
    return (
        observation.effectiveDateTime
        or observation.effectiveInstant
        or end_of(observation.effectivePeriod)
        or observation.issued
    )


def time_of(observation: Observation) -> datetime | None:
    """When an observation was made, as a moment."""
    moment = effective(observation)
    if moment is None:
        return None
    return to_datetime(moment)


def year(moment: FhirTime | None) -> str:
    """The year of a FHIR date or time; empty for None."""
    if moment is None:
        return ""
    return f"{day(moment):%Y}"


def month(moment: FhirTime | None) -> str:
    """The month of a FHIR date or time, or the year where it says no more; empty for None."""
    if moment is None:
        return ""
    if isinstance(moment, str):
        return moment
    return f"{day(moment):%Y-%m}"


def as_of(days: int | None) -> str:
    """How old something is, to end a line of text; empty if it is of the day."""
    if not days:
        return ""
    return f" (as of {days} {day_or_days(days)} ago)"


def day_or_days(count: int) -> str:
    """The word behind a number of days."""
    return "days" if count > 1 else "day"


TODDLER = 2
_DAYS_OF_A_YEAR = 365.25


def age(birth: date, end: date) -> float:
    """Whole years; below two years the days as a part of a year."""
    years = end.year - birth.year
    if (end.month, end.day) < (birth.month, birth.day):
        years -= 1
    if years >= TODDLER:
        return years
    return round((end - birth).days / _DAYS_OF_A_YEAR, 2)
