"""A bundle as the words of a `PatientContext`, with a report of what was taken and what was not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypeAlias

from ..errors import SvcRequestError
from .bundle import Resource, checked, read_bundle
from .concepts import NOTHING, Words, codes_of, masked, says_nothing, words_of
from .observations import Measurement, Window, is_final, measurements, newest, time_of
from .options import Options
from .report import FhirLeftOut, FhirReport, FhirTaken
from .smoking import SMOKING, Smoking, read_smoking
from .subject import Subject, identifying
from .times import OLDEST, age, day, days_before, is_past

_HISTORY, _MEDICATIONS, _RISKS = "medical_history", "current_medications", "risk_factors"


def read_patient(bundle: Any, options: Options) -> tuple[dict[str, Any], FhirReport]:
    """The words of a `PatientContext`, and what was taken.

    Raises:
        SvcRequestError: It is no bundle of one patient, an element is not what FHIR R4 allows, or
            a reading's unit cannot be converted.
    """
    read = read_bundle(bundle)
    importing = _Import(Subject(read.resources), read.resources, options)
    # The Patient goes first: with a death, the day of the record is another one.
    for resource in sorted(read.resources, key=lambda one: one.kind != "Patient"):
        importing.add(resource)
    return importing.finish(further_pages=read.further_pages)


@dataclass
class _Import:
    """One reading of a bundle, entry by entry."""

    subject: Subject
    resources: tuple[Resource, ...]
    options: Options
    person: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, dict[str, str]] = field(default_factory=dict)  # by field, then in lower case
    measured: list[Measurement] = field(default_factory=list)
    smoking: list[Smoking] = field(default_factory=list)
    taken: list[FhirTaken] = field(default_factory=list)
    left_out: list[FhirLeftOut] = field(default_factory=list)
    not_read: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.today = self.options.today
        resource = self.subject.resource
        self.identifying: re.Pattern[str] | None = (
            identifying(resource.raw) if resource is not None else None
        )
        self.medications: dict[str, Resource] = {}
        for one in self.resources:
            if one.kind == "Medication":
                names = (one.url, f"Medication/{one.id}" if one.id else "")
                self.medications |= {name: one for name in names if name}

    def add(self, resource: Resource) -> None:
        """Take what a resource holds, or say why not."""
        reader = _READERS.get(resource.kind)
        if resource.kind == "Medication":
            return  # read where a statement or request refers to it
        if reader is None or self._has_other_codes(resource):
            self.not_read[resource.kind] += 1
        elif reason := self._unfit(resource) or self._read(reader, resource):
            self.leave(resource, reason)

    def _unfit(self, resource: Resource) -> str:
        """Why a resource is not read at all, whatever it says."""
        if resource.modified:
            return "it has a modifierExtension or implicitRules, which may change it"
        if resource.method == "DELETE":
            return "its entry is a request to delete it"
        if resource.restricted and not self.options.restricted:
            return "it is labelled as restricted (restricted=True takes it)"
        if resource.raw.get("focus"):
            return "it is about somebody or something other than the patient (focus)"
        return ""

    def _read(self, reader: _Reader, resource: Resource) -> str | None:
        read = resource.read()
        if resource.kind != "Patient" and not self.subject.owns(resource):
            return "its subject is not the patient, or cannot be told"
        return reader(self, resource, read)

    def _has_other_codes(self, resource: Resource) -> bool:
        """Whether it is an Observation that is not read: most are, and checking them takes long."""
        found = resource.codes()
        if found is None or found & self.options.codes.keys() or SMOKING in found:
            return False
        self.subject.owns(resource)  # another patient's is an error all the same
        return True

    def leave(self, resource: Resource, reason: str) -> None:
        """Say why a resource was not taken."""
        self.left_out.append(FhirLeftOut(resource.entry, resource.kind, reason))

    def take(self, name: str, resource: Resource, words: Words, ending: str = "") -> str | None:
        """Take a text, unless it is there already."""
        held = self.texts.setdefault(name, {})
        text = words.text + ending
        if text.lower() in held:
            return "the same is there already"
        held[text.lower()] = text
        note = "what identifies the patient is masked" if words.masked else ""
        self.taken.append(FhirTaken(name, resource.entry, resource.kind, note=note))
        return None

    def finish(self, *, further_pages: bool) -> tuple[dict[str, Any], FhirReport]:
        """The words of a `PatientContext`, and the report."""
        options = self.options
        windows = {
            "vital_signs": Window("vital_window", options.vital_window),
            "lab_results": Window("lab_window", options.lab_window),
        }
        readings = newest(self.measured, self.today, windows)
        self._take_smoking()
        words = {
            **self.person,
            **{name: tuple(texts.values()) for name, texts in self.texts.items()},
            **readings.values,
        }
        taken = (
            *self._taken_for("age", "sex", _HISTORY, _MEDICATIONS),
            *readings.taken,
            *self._taken_for(_RISKS),
        )
        report = FhirReport(
            taken,
            (*self.left_out, *readings.left_out),
            dict(self.not_read),
            further_pages,
        )
        return words, report

    def _taken_for(self, *names: str) -> list[FhirTaken]:
        return [one for name in names for one in self.taken if one.field == name]

    def _take_smoking(self) -> None:
        """The newest answer counts, also where it says that there is no smoking."""
        if not self.smoking:
            return
        *older, last = sorted(self.smoking)
        self.left_out += [one.left_out("a newer one was taken") for one in older]
        if not last.text:
            self.left_out.append(last.left_out("it is no risk factor, or no answer that is known"))
        else:
            self.texts.setdefault(_RISKS, {})[last.text] = last.text
            self.taken.append(FhirTaken(_RISKS, last.entry, "Observation", SMOKING))


# -- one reader for each type; each returns why it took nothing -----------------------------------


def _patient(importing: _Import, resource: Resource, patient: Any) -> str | None:
    died = patient.deceasedDateTime
    if (died or patient.deceasedBoolean) and not importing.options.deceased:
        raise SvcRequestError(
            f"Bundle.entry[{resource.entry}].resource (Patient): the patient has died "
            f"(deceased{'DateTime' if died else 'Boolean'}); from_fhir(deceased=True) reads the "
            "record as of the day of death"
        )
    if died:
        importing.today = min(importing.today, day(died))
    if patient.gender in {"male", "female", "other"}:
        importing.person["sex"] = patient.gender
        importing.taken.append(FhirTaken("sex", resource.entry, "Patient"))
    if patient.birthDate and patient.deceasedBoolean:
        return "its age is not sent: it has died on a day that is not told"
    if patient.birthDate:
        end = importing.today
        born = day(patient.birthDate)
        if born > end:
            raise SvcRequestError(
                f"Bundle.entry[{resource.entry}].resource (Patient): birthDate is after "
                "the day for which the age is wanted (today, or the day of death)"
            )
        importing.person["age"] = age(born, end)
        exact = isinstance(patient.birthDate, date)
        note = "" if exact else "from a date of birth without a day, so up to a year too high"
        importing.taken.append(FhirTaken("age", resource.entry, "Patient", unit="a", note=note))
    return None if importing.person else "it has neither birthDate nor gender"


_OVER = frozenset({"inactive", "remission", "resolved"})
_DOUBTED = frozenset({"unconfirmed", "provisional", "differential"})


def _condition(importing: _Import, resource: Resource, condition: Any) -> str | None:
    verified = set(codes_of(condition.verificationStatus))
    if wrong := verified & {"refuted", "entered-in-error"}:
        return f"it is {wrong.pop()}"
    if says_nothing(condition.code):
        return NOTHING
    states = set(codes_of(condition.clinicalStatus))
    abated = _has_abated(condition, importing.today)
    over = bool(states & _OVER) or (not states and abated)
    if over and not importing.options.past_conditions:
        return "it is over (past_conditions=True takes it)"
    words = words_of(condition.code, importing.identifying)
    if words is None:
        return "it has no text"
    ending = " (unconfirmed)" if verified & _DOUBTED else ""
    return importing.take(_HISTORY, resource, words, ending + (" (past)" if over else ""))


def _has_abated(condition: Any, today: date) -> bool:
    """Whether an abatement is told that is not in the future."""
    period = condition.abatementPeriod
    end = condition.abatementDateTime or (period and (period.end or period.start))
    if end:
        return day(end) <= today
    return bool(condition.abatementAge or condition.abatementRange or condition.abatementString)


def _medication(importing: _Import, resource: Resource, medication: Any) -> str | None:
    if medication.status != "active":
        return "it is not active"
    if resource.kind == "MedicationRequest":
        if medication.doNotPerform:
            return "it says that the medication is not to be given (doNotPerform)"
        if medication.intent in {"proposal", "plan", "option"}:
            return "it is a proposal, a plan or an option"
    elif reason := _not_now(medication, importing.today):
        return reason
    if says_nothing(medication.medicationCodeableConcept):
        return NOTHING
    words = words_of(medication.medicationCodeableConcept, importing.identifying)
    if words is None and medication.medicationReference is not None:
        words = _referred(importing, resource, medication.medicationReference)
    if words is None:
        return "it has no text, or refers to a medication that is not in the bundle"
    return importing.take(_MEDICATIONS, resource, words)


def _not_now(statement: Any, today: date) -> str | None:
    """Why a statement about a medication is not about this day."""
    period = statement.effectivePeriod
    if period and is_past(period.end, today):
        return "it has ended (effectivePeriod.end)"
    begun = statement.effectiveDateTime or (period and period.start)
    if begun and day(begun) > today:
        return "it has not begun yet"
    return None


def _referred(importing: _Import, resource: Resource, reference: Any) -> Words | None:
    """The medication that a reference names: contained, in the bundle, or by its display only."""
    name = str(reference.reference or "")
    place, raw = f"entry[{resource.entry}].resource.contained", _contained(resource, name)
    if raw is None and name in importing.medications:
        found = importing.medications[name]
        place, raw = f"entry[{found.entry}].resource", found.raw
    words = None
    if raw is not None:
        words = words_of(checked("Medication", raw, place).code, importing.identifying)
    return words or masked(reference.display, importing.identifying)


def _contained(resource: Resource, name: str) -> Mapping[str, Any] | None:
    held = resource.raw.get("contained")
    for one in held if isinstance(held, (list, tuple)) else ():
        if isinstance(one, Mapping) and one.get("resourceType") == "Medication":
            known = one.get("id")
            if isinstance(known, str) and name == f"#{known}":
                return one
    return None


def _family(importing: _Import, resource: Resource, family: Any) -> str | None:
    if family.status not in {"completed", "partial"}:
        return "its status is neither completed nor partial"
    relation = words_of(family.relationship, importing.identifying)
    reasons = [
        importing.take(
            _RISKS,
            resource,
            Words(f"family history: {words.text}", words.masked),
            f" ({relation.text})" if relation else "",
        )
        for words in _conditions_of(family, importing.identifying)
    ]
    if not reasons:
        return "it names no condition"
    return None if None in reasons else reasons[0]


def _conditions_of(family: Any, pattern: re.Pattern[str] | None) -> Iterator[Words]:
    for condition in family.condition or ():
        words = None if says_nothing(condition.code) else words_of(condition.code, pattern)
        if words:
            yield words


def _observation(importing: _Import, resource: Resource, observation: Any) -> str | None:
    if not is_final(observation):
        return "its status is not final, amended or corrected"
    made = time_of(observation)
    if made is not None and days_before(made, importing.today) < 0:
        return "it was made after the day of the record"
    if any("modifierExtension" in part for part in _components(resource)):
        return "a component has a modifierExtension, which may change it"
    if SMOKING in codes_of(observation.code):
        importing.smoking.append(read_smoking(resource, observation))
        return None
    since = importing.options.since
    if since is not None and (made or OLDEST) < since:
        return "it was made before `since`, or does not say when"
    found = list(measurements(resource, observation, importing.options.codes))
    importing.measured += found
    return None if found else "its code is not one that is read, or it has no number"


def _components(resource: Resource) -> Iterator[Mapping[str, Any]]:
    held = resource.raw.get("component")
    for one in held if isinstance(held, (list, tuple)) else ():
        if isinstance(one, Mapping):
            yield one


_Reader: TypeAlias = Callable[[_Import, Resource, Any], "str | None"]
_READERS: Mapping[str, _Reader] = {
    "Patient": _patient,
    "Condition": _condition,
    "MedicationStatement": _medication,
    "MedicationRequest": _medication,
    "FamilyMemberHistory": _family,
    "Observation": _observation,
}
