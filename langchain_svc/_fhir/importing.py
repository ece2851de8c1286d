"""One reading of a record: what was taken so far, what was left out, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from ..errors import SvcRequestError
from .bundle import ElementError, Resource
from .concepts import Words
from .lifestyle import CODES, Answer, risks_of
from .observations import Measurement, Window, newest
from .options import ImportOptions
from .report import FhirLeftOut, FhirReport, FhirTaken
from .social import is_social, named_by
from .subject import Subject, identifying

HISTORY, MEDICATIONS, RISKS = "medical_history", "current_medications", "risk_factors"
_CONCLUSIONS = 2  # their rank in the history: after all else
_LONGEST_TYPED = 200  # what is longer is a narrative, which may tell anything of anybody


@dataclass(frozen=True)
class _Entry:
    rank: int
    text: str
    taken: FhirTaken


@dataclass(frozen=True)
class Conclusion:
    """What a report concludes; of those of one subject the newest counts."""

    about: tuple[str, ...]
    at: datetime
    resource: Resource
    words: Words


@dataclass
class Import:
    """What one reading of a record has found."""

    subject: Subject
    resources: tuple[Resource, ...]
    options: ImportOptions
    person: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, dict[str, _Entry]] = field(default_factory=dict)  # by field, then lower case
    measured: list[Measurement] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    conclusions: list[Conclusion] = field(default_factory=list)
    taken: list[FhirTaken] = field(default_factory=list)
    left_out: list[FhirLeftOut] = field(default_factory=list)
    not_read: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.today = self.options.today
        patient = self.subject.resource
        self.identifying: re.Pattern[str] = identifying(
            patient.raw if patient is not None else {}, self.resources
        )
        self.medications: dict[str, Resource] = {}
        for one in self.resources:
            if one.kind == "Medication":
                names = (one.url, f"Medication/{one.id}" if one.id else "")
                self.medications |= {name: one for name in names if name}

    def add(self, resource: Resource, readers: Mapping[str, Reader]) -> None:
        """Take what a resource holds, or say why not.

        Raises:
            SvcRequestError: It is another patient's, or cannot be read and that is no reason to
                leave it out.
        """
        reader = readers.get(resource.kind)
        if resource.kind == "Medication":
            return  # read where a statement or request refers to it
        if self.subject.passes_over(resource):
            self.not_read["of other patients"] += 1
            return
        if resource.kind == "Patient" and self.person:
            self.leave(resource, "the same is there already")
            return
        if reader is None or self._is_not_read(resource):
            self.not_read[resource.kind] += 1
            return
        try:
            reason = self._unfit(resource) or self._read(reader, resource)
        except ElementError as error:
            if not self.options.lenient:
                raise SvcRequestError(str(error)) from None
            reason = error.reason
        if reason:
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
        if resource.kind == "Patient":
            return ""
        finding = resource.kind in {"Condition", "Procedure"}  # habits are observations
        if finding and self.options.social_findings == "leave_out" and is_social(resource.raw):
            return "it is a social finding (social_findings='take' takes it)"
        if named_by(self.options.leave_out, resource.raw):
            return "the application leaves it out (leave_out)"
        return ""

    def _read(self, reader: Reader, resource: Resource) -> str | None:
        read = resource.read()
        if resource.kind != "Patient" and not self.subject.owns(resource):
            return "its subject is not the patient, or cannot be told"
        return reader(self, resource, read)

    def _is_not_read(self, resource: Resource) -> bool:
        """Whether it is an Observation of another code, or a report without a conclusion.

        Most are, and checking them takes long.
        """
        if resource.kind == "DiagnosticReport":
            if "conclusion" in resource.raw or "conclusionCode" in resource.raw:
                return False
        else:
            found = resource.codes()
            if found is None or found & self.options.codes.keys() or found & CODES:
                return False
        self.subject.owns(resource)  # another patient's is an error all the same
        return True

    def leave(self, resource: Resource, reason: str) -> None:
        """Say why a resource was not taken."""
        self.left_out.append(FhirLeftOut(resource.entry, resource.kind, reason))

    def take(
        self, name: str, resource: Resource, words: Words, form: str = "{}", rank: int = 0
    ) -> str | None:
        """Take a text, unless it is there already or was typed and is not wanted.

        Args:
            name: The field.
            resource: Where it is from.
            words: The text.
            form: The entry, with the text in place of its braces.
            rank: Those of a lower rank stand first in the field.
        """
        if words.typed and self.options.typed_texts == "leave_out":
            return "its text was typed (typed_texts='mask' takes it)"
        if words.typed and len(words.text) > _LONGEST_TYPED:
            return f"its text was typed and has more than {_LONGEST_TYPED} characters"
        held = self.texts.setdefault(name, {})
        text = form.format(words.text)
        if text.lower() in held:
            return "the same is there already"
        taken = FhirTaken(name, resource.entry, resource.kind, note=words.note)
        held[text.lower()] = _Entry(rank, text, taken)
        return None

    def _take_conclusions(self) -> None:
        newest: dict[tuple[str, ...], datetime] = {}
        for one in self.conclusions:
            newest[one.about] = max(one.at, newest.get(one.about, one.at))
        for one in self.conclusions:
            reason: str | None = "a newer one was taken"
            if one.at == newest[one.about]:
                reason = self.take(HISTORY, one.resource, one.words, "report: {}", _CONCLUSIONS)
            if reason:
                self.leave(one.resource, reason)

    def finish(self, *, further_pages: bool) -> tuple[dict[str, Any], FhirReport]:
        """The parameters of a `PatientContext`, and the report."""
        options = self.options
        self._take_conclusions()
        windows = {
            "vital_signs": Window("vital_window", options.vital_window),
            "lab_results": Window("lab_window", options.lab_window),
            "body": Window("lab_window", options.lab_window),
        }
        readings = newest(self.measured, self.today, windows, lenient=options.lenient)
        risks, left_out = risks_of(self.answers)
        for one in readings.taken:
            if one.field == "vital_signs.bmi":  # the request about cancer has no vital signs
                index = readings.values["vital_signs"]["bmi"]
                risk = FhirTaken(RISKS, one.entry, one.resource, one.code, days=one.days)
                risks.append((f"body mass index {index:.3g} kg/m2", risk))
        for text, taken in risks:
            self.texts.setdefault(RISKS, {})[text] = _Entry(0, text, taken)
        texts = {
            name: sorted(held.values(), key=lambda one: one.rank)
            for name, held in self.texts.items()
        }
        parameters = {
            **self.person,
            **{name: tuple(one.text for one in held) for name, held in texts.items()},
            **readings.values,
        }
        report = FhirReport(
            (
                *sorted(self.taken, key=lambda one: one.field),
                *_taken(texts, HISTORY, MEDICATIONS),
                *readings.taken,
                *_taken(texts, RISKS),
            ),
            (*self.left_out, *readings.left_out, *left_out),
            dict(self.not_read),
            further_pages,
        )
        return parameters, report


def _taken(texts: Mapping[str, Iterable[_Entry]], *names: str) -> list[FhirTaken]:
    return [one.taken for name in names for one in texts.get(name, ())]


# Takes what a resource of one type holds; returns why it took nothing.
Reader: TypeAlias = Callable[[Import, Resource, Any], "str | None"]
