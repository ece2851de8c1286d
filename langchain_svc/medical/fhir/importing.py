"""One reading of a record: what was taken so far, what was left out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

from .bundle import ElementError, Resource, is_of_another_version, is_of_r4
from .concepts import LONGEST_TYPED, NOTHING, Words, says_nothing, words_of
from .extensions import extensions_of
from .fields import HISTORY, MEDICATIONS, RISKS, Codes
from .observations import Measurement, Statement, newest, unread
from .report import SAME, FhirReport, FhirTaken, ImportLog, Untrue
from .statements import QUESTIONS
from .subject import Subject
from .times import Clock, days_before

_STATUS_RANK = -1  # pregnancy and weight: after allergies, before conditions
# What says when something began, happened or was known: nothing after the day of the record is.
_BEGINNINGS = (
    "onsetDateTime", "recordedDate", "performedDateTime", "authoredOn", "dateAsserted", "date",
)  # fmt: skip
_PERIODS = ("onsetPeriod", "performedPeriod")
_CONCLUSIONS = {"conclusion", "conclusionCode"}


@dataclass(frozen=True)
class ImportOptions:
    """How a record is read; `PatientContext.from_fhir` documents each.

    `clock` is None where the caller named neither a day nor a moment. `leaves_out` says whether
    the application never sends a resource. `text_problem` says what a record does not take of a
    text, and `most` how many texts it takes.
    """

    clock: Clock | None
    patient: str | None
    codes: Codes
    past_conditions: bool
    typed_texts: str
    restricted: bool
    partial: bool
    leaves_out: Callable[[Mapping[str, Any]], bool]
    text_problem: Callable[[str], str]
    most: int


@dataclass(frozen=True)
class _Entry:
    rank: int
    text: str
    line: FhirTaken
    resource: Resource


@dataclass
class Import(ImportLog):
    """What one reading of a record has found."""

    subject: Subject
    options: ImportOptions
    medications: Mapping[str, Resource]
    person: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, dict[str, _Entry]] = field(
        default_factory=dict
    )  # by field, then lower case
    measured: list[Measurement] = field(default_factory=list)
    not_read: Counter[str] = field(default_factory=Counter)

    def add(self, resource: Resource, reader: Reader | None) -> None:
        """Take what a resource holds, or say why not."""
        if self.subject.passes_over(resource):
            self.not_read["of other patients"] += 1
        elif resource.kind == "Patient" and self.person:
            self.leave(resource, SAME)
        elif reader is None:
            self._pass_over(resource)
        else:
            owned = self.subject.owns(resource)
            if self._is_of_no_use(resource):
                self.not_read[resource.name] += 1
            elif reason := self._unfit(resource, owned=owned):
                self.leave(resource, reason)
            else:
                self._add_checked(reader, resource)

    def _pass_over(self, resource: Resource) -> None:
        if resource.kind == "DiagnosticReport" and resource.raw.keys() & _CONCLUSIONS:
            self.leave(
                resource,
                "conclusions of reports are not read, as they may tell anything",
            )
        elif not is_of_r4(resource.kind):
            self.leave(
                resource, "FHIR R4 has no resource of this type; other versions may"
            )
        else:
            self.not_read[resource.kind] += 1

    def _is_of_no_use(self, resource: Resource) -> bool:
        """Whether it is an Observation of another code: most are, and checking them takes long."""
        found = resource.codes()
        known = self.options.codes.keys()
        return found is not None and not (found & known or found & QUESTIONS.keys())

    def _unfit(self, resource: Resource, *, owned: bool) -> str:
        """Why a resource says nothing of the patient, whatever it holds."""
        if not owned:
            return "its subject is not the patient, or cannot be told"
        if resource.method == "DELETE":
            return Untrue("its entry is a request to delete it")
        if resource.raw.get("focus"):
            return Untrue(
                "it is about somebody or something other than the patient (focus)"
            )
        if not resource.kind.startswith("Medication"):
            return ""
        if is_of_another_version(resource.kind, resource.raw):
            return "it holds an element of FHIR STU3 or R5, which R4 lacks"
        status = resource.raw.get("status")
        if status == "entered-in-error":
            return Untrue("it is entered-in-error")
        return (
            "" if status == "active" else "it is not active"
        )  # checking them all takes long

    def _add_checked(self, reader: Reader, resource: Resource) -> None:
        try:
            reason = self._doubtful(resource)
            if not reason:
                read = resource.read()
                if untaken := self._out_of_time(read) or reader(self, resource, read):
                    self.leave(resource, untaken)
                for name in extensions_of(resource).unknown:
                    self.beside(
                        resource, "extension", f"an extension is not read: {name}"
                    )
                return
        except ElementError as error:
            reason = str(error)
        # An Observation that is not read may be the newest all the same.
        measurements = [
            measurement
            for measurement in unread(resource, reason, self.options.codes)
            if not (
                measurement.at and days_before(measurement.at, self.clock.today) < 0
            )
        ]
        self.measured += measurements
        if not measurements:
            self.leave(resource, reason)

    def _doubtful(self, resource: Resource) -> str:
        """Why a resource is not read, though it may be about the patient."""
        if resource.modified:
            return "it has a modifierExtension or implicitRules, which may change it"
        if resource.restricted and not self.options.restricted:
            return "it is labelled as restricted (restricted=True takes it)"
        if self.options.leaves_out(resource.raw):
            return "the application never sends it (leave_out)"
        return ""

    def _out_of_time(self, read: Any) -> str:
        """Why a resource is not of the time of the record; empty where it is, and of a reading."""
        told = [getattr(read, name, None) for name in _BEGINNINGS]
        periods = [getattr(read, name, None) for name in _PERIODS]
        told += [period.start or period.end for period in periods if period]
        later = any(self.clock.is_before(moment) for moment in told)
        return Untrue("it is of after the day of the record") if later else ""

    # -- texts -------------------------------------------------------------------------------------

    def take_concept(
        self, name: str, resource: Resource, concept: Any, prefix: str = "", **more: Any
    ) -> str | None:
        """Take a concept in words, or say why not; `more` is for `take`."""
        if says_nothing(concept):
            return NOTHING
        words = words_of(concept)
        return (
            self.take(name, resource, words, prefix, **more)
            if words
            else "it has no text"
        )

    def take(
        self,
        name: str,
        resource: Resource,
        words: Sequence[Words],
        prefix: str = "",
        *,
        remarks: Sequence[str] = (),
        details: Sequence[Words] = (),
        rank: int = 0,
        code: str = "",
        at: datetime | None = None,
    ) -> str | None:
        """Take a text, unless it is there already or was typed and is not wanted.

        The first of the words stands behind the prefix and before the remarks in parentheses; the
        others and the details follow. What was typed among these and is not wanted is left out
        alone. Those of a lower `rank` stand first in the field.
        """
        first, *others = words
        if reason := self._unwanted(first):
            return reason
        remark = f" ({', '.join(remarks)})" if remarks else ""
        parts = [Words(f"{prefix}{first.text}{remark}", first.typed)]
        for detail in (*others, *details):
            if reason := self._unwanted(detail):
                self.beside(resource, "text", reason)
            else:
                parts.append(detail)
        text = "; ".join(part.text for part in parts)
        if problem := self.options.text_problem(text):
            raise ElementError(problem)
        note = "typed" if any(part.typed for part in parts) else ""
        line = replace(self.line(resource, name, code, at), note=note)
        return None if self._put(_Entry(rank, text, line, resource)) else SAME

    def _put(self, entry: _Entry) -> bool:
        """Whether a text was not in its field yet."""
        held = self.texts.setdefault(entry.line.field, {})
        return held.setdefault(entry.text.lower(), entry) is entry

    def _unwanted(self, words: Words) -> str:
        if words.typed and self.options.typed_texts == "leave_out":
            return "its text was typed (typed_texts='take' takes it)"
        if words.typed and len(words.text) > LONGEST_TYPED:
            return f"its text was typed and has more than {LONGEST_TYPED} characters"
        return ""

    # -- the whole ---------------------------------------------------------------------------------

    def finish(self, *, further_pages: bool) -> tuple[dict[str, Any], FhirReport]:
        """The parameters of a `PatientContext`, and the report."""
        person = sorted(self.taken, key=lambda line: line.field)
        self.taken = []
        values, statements = newest(self.measured, self)
        for measurement, statement in statements:
            self._take_statement(measurement, statement)
        entries = {
            name: self._at_most(self.texts[name].values())
            for name in (HISTORY, MEDICATIONS, RISKS)
            if name in self.texts
        }
        texts = {
            name: tuple(entry.text for entry in held) for name, held in entries.items()
        }
        parameters = {**self.person, **texts, **values}
        lines = (
            *person,
            *(entry.line for held in entries.values() for entry in held),
            *self.taken,
        )
        self.leave_asides({line.entry for line in lines})
        report = FhirReport(
            lines,
            tuple(self.left_out),
            dict(self.not_read),
            further_pages,
            self.options.restricted,
        )
        return parameters, report

    def _take_statement(self, measurement: Measurement, statement: Statement) -> None:
        origin = measurement.origin
        code = measurement.code
        at = measurement.at
        try:
            reason = self.take(
                statement.field,
                origin,
                [statement.words],
                rank=_STATUS_RANK,
                code=code,
                at=at,
            )
        except ElementError as error:
            reason = str(error)
        if reason:
            self.leave(origin, reason, code, at)

    def _at_most(self, held: Iterable[_Entry]) -> list[_Entry]:
        """As many texts as a record takes, by their rank."""
        ranked = sorted(held, key=lambda entry: entry.rank)
        most = self.options.most
        for entry in ranked[most:]:
            self.leave(entry.resource, f"it takes at most {most} entries")
        return ranked[:most]


# Takes what a resource of one type holds; returns why it took nothing.
Reader: TypeAlias = Callable[[Import, Resource, Any], "str | None"]
