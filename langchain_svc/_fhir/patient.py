"""A record as the parameters of a `PatientContext`, with a report of what was taken and not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import SvcRequestError
from .bundle import Resource, objects
from .history import read_allergy, read_condition, read_family, read_procedure, read_report
from .importing import Import, Reader
from .lifestyle import answer_of
from .medications import read_medication
from .observations import is_final, measurements, time_of
from .options import ImportOptions
from .person import check_alive, read_person
from .report import FhirReport
from .source import read_source
from .subject import Subject
from .times import OLDEST, days_before
from .versions import check_version


def read_patient(given: Any, options: ImportOptions) -> tuple[dict[str, Any], FhirReport]:
    """The parameters of a `PatientContext`, and what was taken.

    Raises:
        SvcRequestError: It is not the record of one patient, is empty, one page of several or of
            another version; an element is not what FHIR R4 allows, or a reading's unit cannot be
            converted.
    """
    source = read_source(given)
    if not options.partial:
        check_version(source.resources)
    if source.further_pages and not options.partial:
        raise SvcRequestError(
            "The bundle is one page of several: it links to a next one. Fetch them all and give "
            "them as a list, or read this page with partial=True"
        )
    subject = Subject(source.resources, options.patient)
    importing = Import(subject, source.resources, options)
    if subject.resource is not None:
        check_alive(importing, subject.resource)
    # The Patient goes first: with a death, the day of the record is another one.
    for resource in sorted(source.resources, key=lambda one: one.kind != "Patient"):
        importing.add(resource, _READERS)
    parameters, report = importing.finish(further_pages=source.further_pages)
    if not parameters and not options.partial:
        raise SvcRequestError(_empty(report))
    return parameters, report


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
    if not is_final(observation):
        return "its status is not final, amended or corrected"
    made = time_of(observation)
    if made is not None and days_before(made, importing.today) < 0:
        return "it was made after the day of the record"
    if any("modifierExtension" in part for part in objects(resource.raw.get("component"))):
        return "a component has a modifierExtension, which may change it"
    if answer := answer_of(resource, observation):
        importing.answers.append(answer)
        return None
    since = importing.options.since
    if since is not None and (made or OLDEST) < since:
        return "it was made before `since`, or does not say when"
    found = list(measurements(resource, observation, importing.options.codes))
    importing.measured += found
    return None if found else "its code is not one that is read, or it has no number"


_READERS: Mapping[str, Reader] = {
    "Patient": read_person,
    "Condition": read_condition,
    "AllergyIntolerance": read_allergy,
    "Procedure": read_procedure,
    "DiagnosticReport": read_report,
    "MedicationStatement": read_medication,
    "MedicationRequest": read_medication,
    "FamilyMemberHistory": read_family,
    "Observation": _observation,
}
