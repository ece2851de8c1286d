"""A record as the parameters of a `PatientContext`, with a report of what was taken and not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from ...errors import SvcRequestError
from .bundle import Resource, objects, text
from .history import read_allergy, read_condition, read_family, read_procedure
from .importing import Import, ImportOptions, Reader
from .medications import read_medication
from .observations import measurements
from .report import FhirReport, Untrue
from .source import FhirSource, read_source
from .subject import Subject
from .times import TODDLER, Clock, age, day, effective


def read_patient(
    given: Any, options: ImportOptions
) -> tuple[dict[str, Any], FhirReport]:
    """The parameters of a `PatientContext`, and what was taken."""
    source = read_source(given)
    if not options.partial:
        _check_whole(source)
    subject = Subject(source.resources, options.patient)
    if not options.restricted:
        _check_permitted(source, subject)
    medications = [one for one in source.resources if one.kind == "Medication"]
    by_name = {
        name: one
        for one in medications
        for name in (one.url, one.id and f"Medication/{one.id}")
        if name
    }
    now = datetime.now().astimezone()
    importing = Import(
        options.clock or Clock(now.date(), now), subject, options, by_name
    )
    if subject.resource is not None:
        _check_alive(importing, subject.resource)
    for one in source.resources:
        if one.kind != "Medication":  # read where a statement or request refers to it
            importing.add(one, _READERS.get(one.kind))
    parameters, report = importing.finish(further_pages=source.further_pages)
    if not parameters and not options.partial:
        raise SvcRequestError(_empty(report))
    return parameters, report


def _check_permitted(source: FhirSource, subject: Subject) -> None:
    """Refuse a record that as a whole is restricted by a label, or by a consent that denies."""
    own = [
        resource for resource in source.resources if not subject.passes_over(resource)
    ]
    labelled = [
        resource.kind
        for resource in own
        if resource.kind in {"Patient", "Composition"} and resource.restricted
    ]
    if source.restricted:
        labelled.insert(0, "Bundle")
    if labelled:
        raise SvcRequestError(
            f"The record is labelled as restricted (security label of {labelled[0]}); only L, M, "
            "N, U and HTEST are not. Ask who may read it, then give restricted=True, which is "
            "recorded"
        )
    for resource in own:
        if resource.kind == "Consent" and _denies(resource.raw):
            raise SvcRequestError(
                f"{resource.place} (Consent): a consent that is active denies something. Ask what "
                "it denies, then give restricted=True, which is recorded"
            )


def _denies(consent: Mapping[str, Any]) -> bool:
    """Whether a Consent is active and has a provision that denies, at any depth."""
    if consent.get("status") != "active":
        return False
    provisions = [consent]
    while provisions:
        provision = provisions.pop()
        if "deny" in {text(provision.get("type")), text(provision.get("decision"))}:
            return True
        nested = provision.get("provision")
        provisions += objects([nested] if isinstance(nested, Mapping) else nested)
    return False


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
    told = [
        f"not read: {unread}" if unread else "",
        f"left out: {reasons}" if reasons else "",
    ]
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


def _check_alive(importing: Import, resource: Resource) -> None:
    """Refuse the record of a patient who had died by the day of the record, or was replaced.

    Where nothing says when, the day that the caller names is believed.
    """
    place = f"{resource.place} (Patient)"
    today = importing.clock.today
    died = resource.raw.get("deceasedDateTime")
    of_day = _DAY.match(died) if isinstance(died, str) else None
    undated = bool(resource.raw.get("deceasedBoolean"))
    if died and not (of_day and of_day[0] >= today.isoformat()[: len(of_day[0])]):
        raise SvcRequestError(
            f"{place}: the patient has died (deceasedDateTime); today= with a day until then reads "
            "the record as of that day"
        )
    if undated and importing.options.clock is None:
        raise SvcRequestError(
            f"{place}: the patient has died (deceasedBoolean), and nothing says when; today= or "
            "now= with a time of the patient's life reads the record as of then"
        )
    if undated:
        reason = "the patient has died, and nothing says when (deceasedBoolean)"
        importing.leave(resource, reason, part="date of death")
    if any(
        link.get("type") == "replaced-by" for link in objects(resource.raw.get("link"))
    ):
        raise SvcRequestError(
            f"{place}: another Patient resource has replaced it; give that one's"
        )


def _patient(importing: Import, resource: Resource, patient: Any) -> str | None:
    sex, note = _sex(resource.raw, patient.gender)
    if sex:
        importing.person["sex"] = sex
        importing.taken.append(replace(importing.line(resource, "sex"), note=note))
    if patient.birthDate:
        born = day(patient.birthDate)
        if born > importing.clock.today:
            return "birthDate is after the day of the record"
        _take_age(importing, resource, patient.birthDate)
    return None if importing.person else "it has neither birthDate nor gender"


def _take_age(importing: Import, resource: Resource, born: Any) -> None:
    years = age(day(born), importing.clock.today)
    is_whole = isinstance(born, date)
    if years < TODDLER and not is_whole:
        reason = "a date of birth without a day tells no age below two years"
        importing.leave(resource, reason, part="age")
        return
    note = (
        ""
        if is_whole
        else "from a date of birth without a day, so up to a year too high"
    )
    importing.person["age"] = years
    importing.taken.append(
        replace(importing.line(resource, "age"), unit="a", note=note)
    )


def _sex(raw: Mapping[str, Any], gender: str | None) -> tuple[str, str]:
    """The sex and where it is from; none where it is unknown."""
    for url, name in _SEXES.items():
        for one in objects(raw.get("extension")):
            sex = (
                _SEX_CODES.get(str(one.get("valueCode")))
                if one.get("url") == url
                else None
            )
            if sex:
                return sex, f"from {name}" if sex != gender else ""
    return (gender, "") if gender in {"male", "female", "other"} else ("", "")


# -- readers ---------------------------------------------------------------------------------------


def _observation(importing: Import, resource: Resource, observation: Any) -> str | None:
    if observation.status == "entered-in-error":
        return Untrue("it is entered-in-error")
    if observation.status == "registered":
        return "it has no result yet (registered)"
    if importing.clock.is_before(effective(observation)):
        return Untrue("it was made after the day of the record")
    before = len(importing.left_out)
    table = importing.options.codes
    read = list(measurements(importing, table, resource, observation))
    importing.measured += read
    if not read and len(importing.left_out) == before:
        importing.not_read[resource.name] += 1
    return None


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
