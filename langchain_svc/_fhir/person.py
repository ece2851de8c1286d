"""Who the patient is: age and sex, and whether the record is one of the living."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from ..errors import SvcRequestError
from .bundle import ElementError, Resource, objects
from .importing import Import
from .report import FhirTaken
from .times import age, day


def check_alive(importing: Import, resource: Resource) -> None:
    """Refuse the record of a patient who has died, unless it was asked for.

    Raises:
        SvcRequestError: The patient has died.
    """
    for element in ("deceasedDateTime", "deceasedBoolean"):
        if resource.raw.get(element) and not importing.options.deceased:
            raise SvcRequestError(
                f"{resource.place} (Patient): the patient has died ({element}); "
                "from_fhir(deceased=True) reads the record as of the day of death"
            )


def read_person(importing: Import, resource: Resource, patient: Any) -> str | None:
    """Take age and sex; the day of the record is that of a death."""
    if patient.deceasedDateTime:
        importing.today = min(importing.today, day(patient.deceasedDateTime))
    sex, note = _sex(resource.raw, patient.gender)
    if sex:
        importing.person["sex"] = sex
        importing.taken.append(FhirTaken("sex", resource.entry, "Patient", note=note))
    if patient.birthDate and patient.deceasedBoolean:
        return "its age is not sent: it has died on a day that is not told"
    if patient.birthDate:
        end, born = importing.today, day(patient.birthDate)
        if born > end:
            raise ElementError(
                resource.place,
                "Patient",
                "birthDate is after the day for which the age is wanted (today, or the day of "
                "death)",
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
