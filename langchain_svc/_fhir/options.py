"""How a record is read: what the application asks of `PatientContext.from_fhir`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from .fields import Codes
from .social import Filter


@dataclass(frozen=True)
class ImportOptions:
    """How a record is read; `PatientContext.from_fhir` documents each.

    Attributes:
        today: The day of the record: ages, windows and ends are judged on it.
        since: Readings made before it are left out.
        vital_window: How old a vital sign may be, on `today` and against the newest one.
        lab_window: The same for laboratory results and body measurements.
        past_conditions: Whether conditions that are over are taken too, marked as such.
        deceased: Whether the record of a patient who has died is read.
        restricted: Whether resources labelled as restricted are read.
        lenient: Whether an element that cannot be read is left out, and not an error.
        partial: Whether an empty record, one page of several or another version is read.
        patient: The id or reference of the patient; others are passed over.
        typed_texts: "mask" or "leave_out".
        social_findings: "leave_out" or "take".
        leave_out: Codes or categories of resources that are left out, or a function that says so.
        codes: LOINC codes and their fields.
    """

    today: date
    since: datetime | None
    vital_window: timedelta | None
    lab_window: timedelta | None
    past_conditions: bool
    deceased: bool
    restricted: bool
    lenient: bool
    partial: bool
    patient: str | None
    typed_texts: str
    social_findings: str
    leave_out: Filter
    codes: Codes
