"""How a record is read: what the application asks of `PatientContext.from_fhir`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from .fields import Codes


@dataclass(frozen=True)
class Options:
    """How a record is read; `PatientContext.from_fhir` documents each.

    Attributes:
        today: The day of the record: ages, windows and ends are judged on it.
        since: Readings made before it are left out.
        vital_window: How old a vital sign may be, on `today` and against the newest one.
        lab_window: The same for laboratory results and body measurements.
        past_conditions: Whether conditions that are over are taken too, marked as such.
        deceased: Whether the record of a patient who has died is read.
        restricted: Whether resources labelled as restricted are read.
        codes: LOINC codes and their fields.
    """

    today: date
    since: datetime | None
    vital_window: timedelta | None
    lab_window: timedelta | None
    past_conditions: bool
    deceased: bool
    restricted: bool
    codes: Codes
