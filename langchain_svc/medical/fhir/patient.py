"""A record as the parameters of a `PatientContext`, with a report of what was taken and not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import SvcRequestError
from .bundle import Resource
from .history import read_allergy, read_condition, read_family, read_procedure
from .importing import Import, ImportOptions, Reader
from .medications import read_medication
from .observations import NO_RESULT, measurements, time_of
from .person import check_alive, read_person
from .report import FhirReport, Settled
from .source import FhirSource, read_source
from .statements import answer_of
from .subject import Subject
from .times import is_later


def read_patient(given: Any, options: ImportOptions) -> tuple[dict[str, Any], FhirReport]:
    """The parameters of a `PatientContext`, and what was taken.

    Raises:
        SvcRequestError: It is not the record of one living patient, is empty or not whole; or, if
            `options` are not lenient, an element is not what FHIR R4 allows or a reading cannot
            be taken.
    """
    source = read_source(given)
    if not options.partial:
        _check_whole(source)
    subject = Subject(source.resources, options.patient)
    medications: dict[str, Resource] = {}
    for one in source.resources:
        if one.kind == "Medication":
            names = (one.url, f"Medication/{one.id}" if one.id else "")
            medications |= {name: one for name in names if name}
    importing = Import(subject, options, medications)
    if subject.resource is not None:
        check_alive(subject.resource, options.today)
    for one in source.resources:
        importing.add(one, _READERS)
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


def _observation(importing: Import, resource: Resource, observation: Any) -> str | None:
    if observation.status in NO_RESULT:
        return Settled(f"its status is {observation.status}")
    today = importing.options.today
    if is_later(time_of(observation), today):
        return Settled("it was made after the day of the record")
    if answer := answer_of(resource, observation, today):
        importing.answers.append(answer)
        return None
    found = list(measurements(resource, observation, importing.options.codes))
    importing.measured += found
    return None if found else Settled("its code is not one that is read, or it has no number")


_READERS: Mapping[str, Reader] = {
    "Patient": read_person,
    "Condition": read_condition,
    "AllergyIntolerance": read_allergy,
    "Procedure": read_procedure,
    "MedicationStatement": read_medication,
    "MedicationRequest": read_medication,
    "FamilyMemberHistory": read_family,
    "Observation": _observation,
}
