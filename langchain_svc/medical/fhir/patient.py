"""A record as the parameters of a `PatientContext`, with a report of what was taken."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from ...errors import SvcRequestError
from .elements import REFERRED, codes_in
from .history import read_allergy, read_condition, read_family, read_procedure
from .importing import Import, ImportOptions, Reader
from .medications import read_request, read_statement
from .observations import problem_of_specimen, read_observation
from .report import FhirReport, Untrue
from .resources import Resource, Subject, objects, text
from .source import UNDECIDED, FhirSource, current, read_source
from .times import TODDLER, Clock, FhirTime, age, day, effective

if TYPE_CHECKING:
    from fhir.resources.R4B.observation import Observation
    from fhir.resources.R4B.patient import Patient


def read_patient(
    record: object, options: ImportOptions
) -> tuple[dict[str, Any], FhirReport]:
    """The parameters of a `PatientContext`, and what was taken."""
    source = read_source(record)
    missing_pages = source.missing_pages()
    if not options.partial:
        _check_whole(source, missing_pages)
    resources, other_versions = current(source.resources)
    subject = Subject(resources, options.patient)
    undecided = [
        resource
        for resource, reason in other_versions
        if reason is UNDECIDED and not subject.passes_over(resource)
    ]
    _check_decided(undecided)
    if not options.restricted:
        _check_permitted(source, [*resources, *undecided], subject)
    now = datetime.now().astimezone()
    clock = options.clock or Clock(now.date(), now)
    importing = Import(clock, subject, options)
    if subject.resource is not None:
        _check_alive(importing, subject.resource)
    for resource, reason in other_versions:
        importing.leave_out_version(resource, reason)
    for resource in resources:
        if resource.kind not in REFERRED:
            importing.add_resource(resource, _READERS.get(resource.kind))
    parameters, report = importing.parameters_and_report(
        further_pages=bool(missing_pages)
    )
    if not parameters and not options.partial:
        raise SvcRequestError(_empty(report))
    return parameters, report


def _check_decided(undecided: Iterable[Resource]) -> None:
    """Refuse a record that does not say who the patient is: who has died may be among them."""
    entries = [str(item.entry) for item in undecided if item.kind == "Patient"]
    if entries:
        raise SvcRequestError(
            f"The record holds versions of the Patient that differ (entries {', '.join(entries)}), "
            "and nothing says which is the newest (meta.versionId, meta.lastUpdated): give that "
            "one alone"
        )


def _check_permitted(
    source: FhirSource, resources: Iterable[Resource], subject: Subject
) -> None:
    """Refuse a record that a label restricts as a whole, or a consent."""
    resources = [
        resource for resource in resources if not subject.passes_over(resource)
    ]
    labelled = ["Bundle"] if source.restricted else []
    labelled += [
        resource.kind
        for resource in resources
        if resource.kind in {"Patient", "Composition"} and resource.restricted
    ]
    if labelled:
        raise SvcRequestError(
            f"The record is labelled as restricted (security label of {labelled[0]}); only L, M, "
            "N, U and HTEST are not. Ask who may read it, then give restricted=True, which is "
            "recorded"
        )
    for resource in resources:
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


def _check_whole(source: FhirSource, missing_pages: str) -> None:
    if missing_pages:
        raise SvcRequestError(
            f"The bundle is one page of several: {missing_pages}. Fetch all pages and give them as "
            "a list, each with its own address (the self link), or read what is there with "
            "partial=True"
        )
    if source.failed:
        raise SvcRequestError(
            "The source holds an OperationOutcome with an error: the server did not give all of "
            "the record. Ask it again, or read what is there with partial=True"
        )


def _empty(report: FhirReport) -> str:
    parts = []
    if report.not_read:
        counts = ", ".join(f"{count} {kind}" for kind, count in report.not_read.items())
        parts.append(f"not read: {counts}")
    if report.left_out:
        reasons = dict.fromkeys(line.reason for line in report.left_out[:10])
        parts.append(f"left out: {'; '.join(reasons)}")
    contents = "; ".join(parts) or "it has no resources"
    return (
        f"The record holds nothing that is taken ({contents}). Give one with the patient's "
        "resources, or take it as an empty one with partial=True"
    )


# -- who the patient is ----------------------------------------------------------------------------

_DAY = re.compile(r"\d{4}(?:-\d\d){0,2}")
# US Core's extensions for the sex at birth and for clinical use; Patient.gender is administrative.
_SEXES: Mapping[str, str] = {
    "http://hl7.org/fhir/StructureDefinition/patient-sexParameterForClinicalUse":
        "Sex Parameter for Clinical Use",
    "http://hl7.org/fhir/us/core/StructureDefinition/us-core-individual-sex": "US Core sex",
    "http://hl7.org/fhir/us/core/StructureDefinition/us-core-birthsex": "US Core birthsex",
    "http://hl7.org/fhir/us/core/StructureDefinition/us-core-sex": "US Core sex",
}  # fmt: skip
_SEX_CODES: Mapping[str, str] = {
    "F": "female", "M": "male", "female": "female", "male": "male",
    "248152002": "female", "248153007": "male",  # SNOMED CT
    "female-typical": "female", "male-typical": "male",
}  # fmt: skip
# Nobody is known to have lived longer; the commonest placeholder is the first day of 1900.
_OLDEST_AGE = 122


def _check_alive(importing: Import, resource: Resource) -> None:
    """Refuse the record of a patient who had died by the day of the record, or was replaced.

    A death without a date is after the day that the caller names, if the caller names one.
    """
    place = f"{resource.place} (Patient)"
    if _had_died(resource.raw.get("deceasedDateTime"), importing.clock.today):
        raise SvcRequestError(
            f"{place}: the patient has died (deceasedDateTime); today= with a day until then reads "
            "the record as of that day"
        )
    if resource.raw.get("deceasedBoolean"):
        if importing.options.clock is None:
            raise SvcRequestError(
                f"{place}: the patient has died (deceasedBoolean), and nothing says when; today= "
                "or now= with a time of the patient's life reads the record as of then"
            )
        reason = "the patient has died, and nothing says when (deceasedBoolean)"
        importing.leave_out(resource, reason, part="date of death")
    for link in objects(resource.raw.get("link")):
        if link.get("type") == "replaced-by":
            raise SvcRequestError(
                f"{place}: another Patient resource has replaced it; give that one's"
            )


def _had_died(deceased: object, today: date) -> bool:
    """Whether an unchecked time of death has come; one that cannot be read has."""
    if not deceased:
        return False
    match = _DAY.match(deceased) if isinstance(deceased, str) else None
    if match is None:
        return True
    # A year or a month is compared as far as it goes.
    return match[0] < today.isoformat()[: len(match[0])]


def _read_person(importing: Import, resource: Resource, patient: Patient) -> str | None:
    sex, note = _sex(resource.raw, patient.gender)
    if sex:
        importing.person["sex"] = sex
        importing.lines.append(replace(importing.line(resource, "sex"), note=note))
    if patient.birthDate:
        if day(patient.birthDate) > importing.clock.today:
            return "birthDate is after the day of the record"
        _add_age(importing, resource, patient.birthDate)
    return None if importing.person else "it has neither birthDate nor gender"


def _add_age(importing: Import, resource: Resource, birth: FhirTime) -> None:
    years = age(day(birth), importing.clock.today)
    note = ""
    if not isinstance(birth, date):
        if years < TODDLER:
            reason = "a date of birth without a day tells no age below two years"
            importing.leave_out(resource, reason, part="age")
            return
        note = "from a date of birth without a day, so up to a year too high"
    if years > _OLDEST_AGE:
        reason = f"a date of birth of more than {_OLDEST_AGE} years ago is a placeholder or a slip"
        importing.leave_out(resource, reason, part="age")
        return
    importing.person["age"] = years
    line = importing.line(resource, "age")
    importing.lines.append(replace(line, unit="a", note=note))


def _sex(raw: Mapping[str, Any], gender: str | None) -> tuple[str, str]:
    """The sex, and which extension it is from; both empty if it is unknown."""
    for url, name in _SEXES.items():
        for extension in objects(raw.get("extension")):
            if extension.get("url") != url:
                continue
            sexes = {
                _SEX_CODES[code] for code in codes_in(extension) if code in _SEX_CODES
            }
            if len(sexes) == 1:
                (sex,) = sexes
                return sex, "" if sex == gender else f"from {name}"
    if gender in {"male", "female", "other"}:
        return gender, ""
    return "", ""


# -- readers ---------------------------------------------------------------------------------------


def _read_measured(
    importing: Import, resource: Resource, observation: Observation
) -> str | None:
    if observation.status == "registered":
        return "it has no result yet (registered)"
    if importing.clock.is_before(effective(observation)):
        return Untrue("it was made after the day of the record")
    count = len(importing.left_out)
    table = importing.options.codes
    whose, not_of_blood = problem_of_specimen(resource, importing.subject)
    if whose:
        return whose
    observed = read_observation(importing, table, resource, observation, not_of_blood)
    importing.observed += observed
    if not observed and len(importing.left_out) == count:
        importing.not_read[resource.name] += 1
    return None


_READERS: Mapping[str, Reader] = {
    "Patient": _read_person,
    "Condition": read_condition,
    "AllergyIntolerance": read_allergy,
    "Procedure": read_procedure,
    "MedicationStatement": read_statement,
    "MedicationRequest": read_request,
    "FamilyMemberHistory": read_family,
    "Observation": _read_measured,
}
