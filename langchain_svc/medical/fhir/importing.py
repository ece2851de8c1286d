"""The reading of one record: what is taken so far, what is left out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

from ...errors import SvcRequestError
from .concepts import LONGEST_TYPED, Wording, name_by_codes
from .elements import (
    OF_ANOTHER_VERSION,
    REFERRED,
    USED,
    ElementError,
    checked,
    extensions_of,
    is_of_another_version,
    is_of_r4,
)
from .fields import HISTORY, MEDICATIONS, RISKS, Codes
from .observations import TOPICS_BY_CODE, Answer, Measurement, Statement, newest, unread
from .report import OF_OTHERS, SAME, FhirReport, FhirTaken, ImportLog, Untrue
from .resources import Resource, Subject, is_restricted, text
from .times import Clock, days_before

_STATUS_RANK = -1  # pregnancy and weight: after allergies, before conditions
# Elements that say when something began, happened or was known. A later one is not of the record.
_BEGINNINGS = (
    "onsetDateTime", "recordedDate", "performedDateTime", "authoredOn", "dateAsserted", "date",
)  # fmt: skip
_PERIODS = ("onsetPeriod", "performedPeriod")
_CONCLUSIONS = {"conclusion", "conclusionCode"}
_STATEMENTS = frozenset(USED) - REFERRED - {"Patient"}


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
    """What has been read of a record.

    `person` has the parameters of the Patient resource. `entries` has the texts by field, and then
    by their lower case. `observed` has what Observations say.
    """

    subject: Subject
    options: ImportOptions
    person: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, dict[str, _Entry]] = field(default_factory=dict)
    observed: list[Measurement | Answer] = field(default_factory=list)
    not_read: Counter[str] = field(default_factory=Counter)

    def name_of(self, code: str) -> str:
        """What a LOINC code is called for a reader; empty if it is not known."""
        if code in TOPICS_BY_CODE:
            return TOPICS_BY_CODE[code].path
        reading = self.options.codes.get(code)
        return reading.words if reading else ""

    def add_resource(self, resource: Resource, reader: Reader | None) -> None:
        """Take what a resource holds, or record why not."""
        if self.subject.passes_over(resource):
            self.not_read[OF_OTHERS] += 1
            return
        self._leave_out_contained(resource)
        if reader is None:
            self._pass_over(resource)
            return
        # Another patient's resource is an error, even where its code is of no use.
        owned = self.subject.owns(resource)
        if self._is_of_no_use(resource):
            self.not_read[resource.name] += 1
        elif reason := self._unfit(resource, owned=owned):
            self.leave_out(resource, reason)
        else:
            self._add_fit(reader, resource)

    def _pass_over(self, resource: Resource) -> None:
        if resource.kind == "DiagnosticReport" and resource.raw.keys() & _CONCLUSIONS:
            self.leave_out(
                resource,
                "conclusions of reports are not read, as they may tell anything",
            )
        elif not is_of_r4(resource.kind):
            self.leave_out(
                resource, "FHIR R4 has no resource of this type; other versions may"
            )
        else:
            self.not_read[resource.kind] += 1

    def leave_out_version(self, resource: Resource, reason: str) -> None:
        """Record that another version counts, or none."""
        if self.subject.passes_over(resource):
            self.not_read[OF_OTHERS] += 1
        else:
            self.leave_out(resource, reason)

    def _leave_out_contained(self, resource: Resource) -> None:
        """Record the statements about a patient that stand in another resource."""
        for inner in resource.contained():
            kind = text(inner.get("resourceType"))
            if kind in _STATEMENTS:
                reason = f"it is contained in a {resource.kind}, where it is not read"
                self.leave_out(replace(resource, kind=kind), reason)

    def _is_of_no_use(self, resource: Resource) -> bool:
        """Whether it is an Observation of another code: most are, and checking them takes long."""
        codes = resource.codes()
        if codes is None:
            return False
        table = self.options.codes
        return not any(code in table or code in TOPICS_BY_CODE for code in codes)

    def _unfit(self, resource: Resource, *, owned: bool) -> str:
        """Why a resource says nothing about the patient, whatever it holds; empty if it may."""
        if not owned:
            return "its subject is not the patient, or cannot be told"
        if resource.raw.get("focus"):
            return Untrue(
                "it is about somebody or something other than the patient (focus)"
            )
        status = resource.raw.get("status")
        if status == "entered-in-error":
            return Untrue("it is entered-in-error")
        if not resource.kind.startswith("Medication"):
            return ""
        # Records have many old medications, and checking them all takes long.
        if is_of_another_version(resource.kind, resource.raw):
            return OF_ANOTHER_VERSION
        return "" if status == "active" else "it is not active"

    def _add_fit(self, reader: Reader, resource: Resource) -> None:
        problem = self.doubts_about(resource.raw)
        if not problem:
            try:
                self._read(reader, resource)
            except ElementError as error:
                problem = str(error)
        if problem:
            self._leave_out_unread(resource, problem)

    def _read(self, reader: Reader, resource: Resource) -> None:
        elements = self.checked(resource.kind, resource.raw, resource)
        reason = self._out_of_time(elements) or reader(self, resource, elements)
        if reason:
            self.leave_out(resource, reason)
        for name in extensions_of(resource).unknown:
            self.add_aside(resource, "extension", f"an extension is not read: {name}")

    def checked(self, kind: str, raw: Mapping[str, Any], origin: Resource) -> Any:
        """A resource's used elements, of codes alone where nothing is sent that a sender wrote.

        What is dropped of it is an aside of `origin`, which is the resource or refers to it.
        """
        elements, dropped = checked(kind, raw)
        for part, reason in dropped:
            self.add_aside(origin, part, reason)
        if self.options.typed_texts == "leave_out":
            name_by_codes(elements)
        return elements

    def _leave_out_unread(self, resource: Resource, problem: str) -> None:
        """Leave out what cannot be read; an Observation may be the newest all the same."""
        readings = []
        for reading in unread(resource, problem, self.options.codes):
            is_later = reading.at and days_before(reading.at, self.clock.today) < 0
            if not is_later:
                readings.append(reading)
        self.observed += readings
        if not readings:
            self.leave_out(resource, problem)

    def doubts_about(self, raw: Mapping[str, Any]) -> str:
        """Why a resource is not read, though it may be true; empty if it is."""
        if "modifierExtension" in raw or "implicitRules" in raw:
            return "it has a modifierExtension or implicitRules, which may change it"
        if is_restricted(raw) and not self.options.restricted:
            return "it is labelled as restricted (restricted=True takes it)"
        if self.options.leaves_out(raw):
            return "the application never sends it (leave_out)"
        return ""

    def _out_of_time(self, elements: object) -> str:
        """Why a resource is not of the time of the record; empty if it is, and for readings."""
        times = [getattr(elements, name, None) for name in _BEGINNINGS]
        for name in _PERIODS:
            period = getattr(elements, name, None)
            if period is not None:
                times.append(period.start or period.end)
        if any(self.clock.is_before(moment) for moment in times):
            return Untrue("it is of after the day of the record")
        return ""

    # -- texts -------------------------------------------------------------------------------------

    def add_text(
        self,
        name: str,
        resource: Resource,
        words: Sequence[Wording],
        prefix: str = "",
        *,
        remarks: Sequence[str] = (),
        details: Sequence[Wording] = (),
        rank: int = 0,
        code: str = "",
        at: datetime | None = None,
    ) -> str | None:
        """Take a text, or say why not: there is none, it is there already, or it may not be typed.

        The first of the words stands behind the prefix and before the remarks in parentheses; the
        others and the details follow. Of these, what was typed and may not be is left out alone.
        Texts of a lower `rank` stand first in the field.
        """
        if not words:
            return "it has no text"
        first, *others = words
        if reason := self._unwanted(first):
            return reason
        remark = f" ({', '.join(remarks)})" if remarks else ""
        parts = [Wording(f"{prefix}{first.text}{remark}", first.typed)]
        for detail in (*others, *details):
            if reason := self._unwanted(detail):
                self.add_aside(resource, "text", reason)
            else:
                parts.append(detail)
        text = "; ".join(part.text for part in parts)
        if problem := self.options.text_problem(text):
            raise ElementError(problem)
        line = self.line(resource, name, code, at)
        if any(part.typed for part in parts):
            line = replace(line, note="typed")
        entry = _Entry(rank, text, line, resource)
        entries = self.entries.setdefault(name, {})
        if entries.setdefault(text.lower(), entry) is not entry:
            return SAME
        return None

    def _unwanted(self, words: Wording) -> str:
        if not words.typed:
            return ""
        if self.options.typed_texts == "leave_out":
            return "its text was typed (typed_texts='take' takes it)"
        if len(words.text) > LONGEST_TYPED:
            return f"its text was typed and has more than {LONGEST_TYPED} characters"
        return ""

    # -- the whole ---------------------------------------------------------------------------------

    def parameters_and_report(
        self, *, further_pages: bool
    ) -> tuple[dict[str, Any], FhirReport]:
        """The parameters of a `PatientContext`, and the report."""
        lines = sorted(self.lines, key=lambda line: line.field)  # of the person
        self.lines = []
        values, statements = newest(self.observed, self)
        for statement in statements:
            self._add_statement(statement)
        texts = {}
        for name in (HISTORY, MEDICATIONS, RISKS):
            if name in self.entries:
                entries = self._at_most(self.entries[name].values())
                texts[name] = tuple(entry.text for entry in entries)
                lines += [entry.line for entry in entries]
        lines += self.lines
        self.leave_out_asides({line.entry for line in lines})
        report = FhirReport(
            tuple(lines),
            tuple(self.left_out),
            dict(self.not_read),
            further_pages,
            self.options.restricted,
        )
        return {**self.person, **texts, **values}, report

    def _add_statement(self, statement: Statement) -> None:
        observed = statement.observed
        try:
            reason = self.add_text(
                statement.field,
                observed.origin,
                [statement.words],
                rank=_STATUS_RANK,
                code=observed.code,
                at=observed.at,
            )
        except ElementError as error:
            reason = str(error)
        if reason:
            self.leave_out(observed.origin, reason, observed.code, observed.at)

    def _at_most(self, entries: Iterable[_Entry]) -> list[_Entry]:
        """As many texts as a record takes, the lowest ranks first."""
        ranked = sorted(entries, key=lambda entry: entry.rank)
        most = self.options.most
        for entry in ranked[most:]:
            self.leave_out(entry.resource, f"it takes at most {most} entries")
        return ranked[:most]


# Takes what a resource of one type holds; returns why it took nothing.
Reader: TypeAlias = Callable[[Import, Resource, Any], "str | None"]


# -- leave out -------------------------------------------------------------------------------------
# What an application never sends, by its codes or its own function.

_CONCEPTS = ("code", "category", "medicationCodeableConcept", "component")
Rule = Iterable[str] | Callable[[Mapping[str, Any]], bool]


def leaves_out(rule: Rule) -> Callable[[Mapping[str, Any]], bool]:
    """A function that tells whether a resource is never sent."""
    if callable(rule):
        return lambda raw: _applies(rule, raw)
    if isinstance(rule, str):
        raise SvcRequestError(
            "leave_out must be a list of codes or a function, not one text"
        )
    codes = frozenset(rule)
    return lambda raw: bool(codes) and not codes.isdisjoint(_codes(raw))


def _applies(rule: Callable[[Mapping[str, Any]], bool], raw: Mapping[str, Any]) -> bool:
    try:
        return bool(rule(raw))
    except Exception as error:  # noqa: BLE001  # the application's own, which may hold the resource
        name = type(error).__name__
    raise SvcRequestError(f"leave_out raised {name}; it must return True or False")


def _codes(raw: Mapping[str, Any]) -> Iterator[str]:
    """The codes of a resource, its components and its categories, alone and with their systems."""
    values = [raw[name] for name in _CONCEPTS if name in raw]
    while values:
        value = values.pop()
        if isinstance(value, (list, tuple)):
            values += value
        elif isinstance(value, Mapping):
            values += [value[name] for name in ("coding", "code") if name in value]
            if code := text(value.get("code")):
                yield code
                yield f"{text(value.get('system'))}|{code}"
