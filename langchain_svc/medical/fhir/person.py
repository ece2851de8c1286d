"""Who the patient is: age and sex, and whether the record is one of the living."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from ...errors import SvcRequestError
from .bundle import ElementError, Resource, objects
from .importing import Import
from .report import FhirTaken
from .times import age, day

_DAY = re.compile(r"\d{4}(?:-\d\d){0,2}")


def check_alive(resource: Resource, today: date) -> None:
    """Refuse the record of a patient who had died by the day of the record, or has been replaced.

    Raises:
        SvcRequestError: The patient has died, or the record goes on in another Patient.
    """
    place = f"{resource.place} (Patient)"
    for element in ("deceasedDateTime", "deceasedBoolean"):
        told = resource.raw.get(element)
        of_day = _DAY.match(told) if isinstance(told, str) else None
        if told and not (of_day and of_day[0] >= today.isoformat()[: len(of_day[0])]):
            raise SvcRequestError(
                f"{place}: the patient has died ({element}); today= with a day until then reads "
                "the record as of that day"
            )
    if any(link.get("type") == "replaced-by" for link in objects(resource.raw.get("link"))):
        raise SvcRequestError(f"{place}: another Patient resource has replaced it; give that one's")


def read_person(importing: Import, resource: Resource, patient: Any) -> str | None:
    """Take age and sex."""
    sex, note = _sex(resource.raw, patient.gender)
    if sex:
        importing.person["sex"] = sex
        importing.taken.append(FhirTaken("sex", resource.entry, "Patient", note=note))
    if patient.birthDate:
        end, born = importing.options.today, day(patient.birthDate)
        if born > end:
            raise ElementError(
                resource.place, "Patient", "birthDate is after the day of the record"
            )
        importing.person["age"] = age(born, end)
        exact = isinstance(patient.birthDate, date)
        note = "" if exact else "from a date of birth without a day, so up to a year too high"
        importing.taken.append(FhirTaken("age", resource.entry, "Patient", unit="a", note=note))
    return None if importing.person else "it has neither birthDate nor gender"


# US Core's extensions for the sex at birth and for clinical use; Patient.gender is administrative.
_SEXES: tuple[tuple[str, str], ...] = (
    ("http://hl7.org/fhir/us/core/StructureDefinition/us-core-birthsex", "US Core birthsex"),
    ("http://hl7.org/fhir/us/core/StructureDefinition/us-core-sex", "US Core sex"),
)
_SEX_CODES: Mapping[str, str] = {
    "F": "female", "M": "male", "female": "female", "male": "male",
    "248152002": "female", "248153007": "male",  # SNOMED CT
}  # fmt: skip


def _sex(raw: Mapping[str, Any], gender: str | None) -> tuple[str, str]:
    """The sex and where it is from; none where it is unknown."""
    for url, name in _SEXES:
        for one in objects(raw.get("extension")):
            if one.get("url") == url:
                code = one.get("valueCode")
                sex = _SEX_CODES.get(code) if isinstance(code, str) else None
                if sex:
                    return sex, f"from {name}" if sex != gender else ""
    return (gender, "") if gender in {"male", "female", "other"} else ("", "")
