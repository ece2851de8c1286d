"""A record as the parameters of a `PatientContext`, with a report of what was taken and not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from ...errors import SvcRequestError
from .bundle import Resource, objects
from .history import read_allergy, read_condition, read_family, read_procedure
from .importing import Import, ImportOptions, Reader
from .medications import read_medication
from .observations import NO_RESULT, measurements
from .report import FhirReport, Settled
from .source import FhirSource, read_source
from .subject import Subject
from .times import age, day, is_later, time_of


def read_patient(given: Any, options: ImportOptions) -> tuple[dict[str, Any], FhirReport]:
    """The parameters of a `PatientContext`, and what was taken."""
    source = read_source(given)
    if not options.partial:
        _check_whole(source)
    subject = Subject(source.resources, options.patient)
    medications = [one for one in source.resources if one.kind == "Medication"]
    by_name = {
        name: one
        for one in medications
        for name in (one.url, one.id and f"Medication/{one.id}")
        if name
    }
    importing = Import(options.today, subject, options, by_name)
    if subject.resource is not None:
        _check_alive(subject.resource, options.today)
    for one in source.resources:
        if one.kind != "Medication":  # read where a statement or request refers to it
            importing.add(one, _READERS.get(one.kind))
    parameters, report = importing.finish(further_pages=source.further_pages)
    if not parameters and not options.partial:
        raise SvcRequestError(_empty(report))
    return parameters, report


def _check_whole(source: FhirSource) -> None:
    if source.further_pages:
        raise SvcRequestError(
            "The bundle is one page of several: it links to a next one. Fetch them all and give "
            "them as a list, or read this page with partial=True"
        )
    if source.failed:
        raise SvcRequestError(
            "The source holds an OperationOutcome with an error: the server did not give all of "
            "the record. Ask it again, or read what is there with partial=True"
        )


def _empty(report: FhirReport) -> str:
    unread = ", ".join(f"{count} {kind}" for kind, count in report.not_read.items())
    reasons = "; ".join(dict.fromkeys(one.reason for one in report.left_out[:10]))
    told = [f"not read: {unread}" if unread else "", f"left out: {reasons}" if reasons else ""]
    seen = "; ".join(filter(None, told)) or "it has no resources"
    return (
        f"The record holds nothing that is taken ({seen}). Give one with the patient's resources, "
        "or take it as an empty one with partial=True"
    )


# -- who the patient is ----------------------------------------------------------------------------

_DAY = re.compile(r"\d{4}(?:-\d\d){0,2}")
# US Core's extensions for the sex at birth and for clinical use; Patient.gender is administrative.
_SEXES: Mapping[str, str] = {
    "http://hl7.org/fhir/us/core/StructureDefinition/us-core-birthsex": "US Core birthsex",
    "http://hl7.org/fhir/us/core/StructureDefinition/us-core-sex": "US Core sex",
}
_SEX_CODES: Mapping[str, str] = {
    "F": "female", "M": "male", "female": "female", "male": "male",
    "248152002": "female", "248153007": "male",  # SNOMED CT
}  # fmt: skip


def _check_alive(resource: Resource, today: date) -> None:
    """Refuse the record of a patient who had died by the day of the record, or was replaced."""
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


def _patient(importing: Import, resource: Resource, patient: Any) -> str | None:
    sex, note = _sex(resource.raw, patient.gender)
    if sex:
        importing.person["sex"] = sex
        importing.taken.append(replace(importing.line(resource, "sex"), note=note))
    if patient.birthDate:
        end, born = importing.today, day(patient.birthDate)
        if born > end:
            return "birthDate is after the day of the record"
        importing.person["age"] = age(born, end)
        exact = isinstance(patient.birthDate, date)
        note = "" if exact else "from a date of birth without a day, so up to a year too high"
        importing.taken.append(replace(importing.line(resource, "age"), unit="a", note=note))
    return None if importing.person else "it has neither birthDate nor gender"


def _sex(raw: Mapping[str, Any], gender: str | None) -> tuple[str, str]:
    """The sex and where it is from; none where it is unknown."""
    for url, name in _SEXES.items():
        for one in objects(raw.get("extension")):
            sex = _SEX_CODES.get(str(one.get("valueCode"))) if one.get("url") == url else None
            if sex:
                return sex, f"from {name}" if sex != gender else ""
    return (gender, "") if gender in {"male", "female", "other"} else ("", "")


# -- readers ---------------------------------------------------------------------------------------


def _observation(importing: Import, resource: Resource, observation: Any) -> str | None:
    if observation.status in NO_RESULT:
        return Settled(f"its status is {observation.status}")
    if is_later(time_of(observation), importing.today):
        return Settled("it was made after the day of the record")
    found = [*measurements(resource, observation, importing.options.codes, importing.today)]
    importing.measured += found
    return None if found else Settled("its code is not one that is read, or it has no number")


_READERS: Mapping[str, Reader] = {
    "Patient": _patient,
    "Condition": read_condition,
    "AllergyIntolerance": read_allergy,
    "Procedure": read_procedure,
    "MedicationStatement": read_medication,
    "MedicationRequest": read_medication,
    "FamilyMemberHistory": read_family,
    "Observation": _observation,
}
