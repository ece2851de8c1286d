"""One reading of a record: what was taken so far, what was left out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypeAlias

from ...errors import SvcRequestError
from .bundle import ElementError, Resource, carries, is_of_r4
from .concepts import LONGEST_TYPED, Words
from .fields import Codes
from .observations import Measurement, NewestReadings, newest, unread
from .report import SAME, FhirLeftOut, FhirReport, FhirTaken, Settled
from .statements import CODES, HISTORY, RISKS, FhirAnswer, answers_taken
from .subject import Subject
from .times import is_later

_STATUS_RANK = -1  # pregnancy and weight: after allergies, before conditions
# What says when something began, happened or was known: nothing after the day of the record is.
_BEGINNINGS = (
    "onsetDateTime", "recordedDate", "performedDateTime", "authoredOn", "dateAsserted", "date",
)  # fmt: skip
_PERIODS = ("onsetPeriod", "performedPeriod")


@dataclass(frozen=True)
class ImportOptions:
    """How a record is read; `PatientContext.from_fhir` documents each.

    `text_problem` says what a record does not take of a text, and `most` how many texts it takes.
    """

    today: date
    patient: str | None
    codes: Codes
    past_conditions: bool
    typed_texts: str
    leave_out: Collection[str] | Callable[[Mapping[str, Any]], bool]
    restricted: bool
    partial: bool
    lenient: bool
    text_problem: Callable[[str], str]
    most: int


@dataclass(frozen=True)
class _Entry:
    rank: int
    text: str
    taken: FhirTaken


@dataclass
class Import:
    """What one reading of a record has found."""

    subject: Subject
    options: ImportOptions
    medications: Mapping[str, Resource]
    person: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, dict[str, _Entry]] = field(default_factory=dict)  # by field, then lower case
    measured: list[Measurement] = field(default_factory=list)
    answers: list[FhirAnswer] = field(default_factory=list)
    taken: list[FhirTaken] = field(default_factory=list)
    left_out: list[FhirLeftOut] = field(default_factory=list)
    not_read: Counter[str] = field(default_factory=Counter)

    def add(self, resource: Resource, readers: Mapping[str, Reader]) -> None:
        """Take what a resource holds, or say why not.

        Raises:
            SvcRequestError: It is another patient's, or cannot be read and that is no reason to
                leave it out.
        """
        if resource.kind == "Medication":
            return  # read where a statement or request refers to it
        if self.subject.passes_over(resource):
            self.not_read["of other patients"] += 1
        elif resource.kind == "Patient" and self.person:
            self.leave(resource, SAME)
        elif resource.kind not in readers:
            self._pass_over(resource)
        else:
            owned = resource.kind == "Patient" or self.subject.owns(resource)
            if self._is_of_no_use(resource):
                self.not_read[resource.kind] += 1
            elif not owned:
                self.leave(resource, "its subject is not the patient, or cannot be told")
            elif reason := self._unfit(resource):
                self.leave(resource, reason)
            else:
                self._add_checked(readers[resource.kind], resource)

    def _pass_over(self, resource: Resource) -> None:
        if resource.kind == "DiagnosticReport" and resource.raw.keys() & _CONCLUSIONS:
            self.leave(resource, "conclusions of reports are not read, as they may tell anything")
        elif not is_of_r4(resource.kind):
            self.leave(resource, "FHIR R4 has no resource of this type; other versions may")
        else:
            self.not_read[resource.kind] += 1

    def _is_of_no_use(self, resource: Resource) -> bool:
        """Whether it is an Observation of another code: most are, and checking them takes long."""
        found = resource.codes()
        return found is not None and not (found & self.options.codes.keys() or found & CODES)

    def _unfit(self, resource: Resource) -> str:
        """Why a resource says nothing of the patient, whatever it holds."""
        if resource.method == "DELETE":
            return Settled("its entry is a request to delete it")
        if resource.raw.get("focus"):
            return Settled("it is about somebody or something other than the patient (focus)")
        if resource.kind in _MEDICATIONS and resource.raw.get("status") != "active":
            return Settled("it is not active")  # most are not, and checking them takes long
        wanted = self.options.leave_out
        if wanted(resource.raw) if callable(wanted) else carries(resource.raw, wanted):
            return "the application leaves it out (leave_out)"
        return ""

    def _add_checked(self, reader: Reader, resource: Resource) -> None:
        try:
            reason = self._doubtful(resource)
            if not reason:
                read = resource.read()
                untaken = _out_of_time(read, self.options.today) or reader(self, resource, read)
                if untaken:
                    self.leave(resource, untaken)
                return
        except ElementError as error:
            if not self.options.lenient:
                raise SvcRequestError(str(error)) from None
            reason = error.reason
        # An Observation that is not read may be the newest all the same.
        codes, today = self.options.codes, self.options.today
        found = [
            one
            for one in unread(resource, reason, codes)
            if not one.at or not is_later(one.at, today)
        ]
        self.measured += found
        if not found:
            self.leave(resource, reason)

    def _doubtful(self, resource: Resource) -> str:
        """Why a resource is not read, though it may be about the patient."""
        if resource.modified:
            return "it has a modifierExtension or implicitRules, which may change it"
        if resource.restricted and not self.options.restricted:
            return "it is labelled as restricted (restricted=True takes it)"
        return ""

    def leave(self, resource: Resource, reason: str) -> None:
        """Say why a resource was not taken."""
        self.left_out.append(FhirLeftOut(resource.entry, resource.kind, reason))

    def take(
        self,
        name: str,
        resource: Resource,
        words: Words,
        form: str = "{}",
        *,
        rank: int = 0,
        details: Sequence[Words] = (),
        note: str = "",
    ) -> str | None:
        """Take a text, unless it is there already or was typed and is not wanted.

        Args:
            name: The field.
            resource: Where it is from.
            words: The text.
            form: The entry, with the text and its details in place of its braces.
            rank: Those of a lower rank stand first in the field.
            details: What follows the text; those that are not wanted are noted.
            note: What the report says of it.

        Raises:
            ElementError: A record does not take the text.
        """
        if reason := self._unwanted(words):
            return reason
        kept = [one for one in details if not self._unwanted(one)]
        if len(kept) < len(details):
            note = "a detail that was typed is not sent"
        text = form.format("; ".join(one.text for one in (words, *kept)))
        if problem := self.options.text_problem(text):
            raise ElementError(resource.place, resource.kind, problem)
        held = self.texts.setdefault(name, {})
        if text.lower() in held:
            return SAME
        typed = "typed" if any(one.typed for one in (words, *kept)) else ""
        told = ", ".join(filter(None, (typed, note)))
        held[text.lower()] = _Entry(
            rank, text, FhirTaken(name, resource.entry, resource.kind, note=told)
        )
        return None

    def _unwanted(self, words: Words) -> str:
        if words.typed and self.options.typed_texts == "leave_out":
            return "its text was typed (typed_texts='take' takes it)"
        if words.typed and len(words.text) > LONGEST_TYPED:
            return f"its text was typed and has more than {LONGEST_TYPED} characters"
        return ""

    def finish(self, *, further_pages: bool) -> tuple[dict[str, Any], FhirReport]:
        """The parameters of a `PatientContext`, and the report.

        Raises:
            SvcRequestError: A reading cannot be read, or there are too many texts, unless
                `lenient` leaves them out.
        """
        readings = newest(self.measured, self.options.today, lenient=self.options.lenient)
        answers, left_out = answers_taken(self.answers)
        for text, one in (*answers, *_body(readings)):
            held = self.texts.setdefault(one.field, {})
            held.setdefault(text.lower(), _Entry(_STATUS_RANK, text, one))
        texts = {name: self._at_most(held.values()) for name, held in self.texts.items()}
        parameters = {
            **self.person,
            **{name: tuple(one.text for one in held) for name, held in texts.items() if held},
            **readings.values,
        }
        of_texts = [one.taken for name in sorted(texts, key=_ORDER.index) for one in texts[name]]
        taken = (*sorted(self.taken, key=lambda one: one.field), *of_texts, *readings.taken)
        report = FhirReport(
            taken,
            (*self.left_out, *readings.left_out, *left_out),
            dict(self.not_read),
            further_pages,
        )
        return parameters, report

    def _at_most(self, held: Iterable[_Entry]) -> list[_Entry]:
        """As many texts as a record takes, by their rank."""
        ranked, most = sorted(held, key=lambda one: one.rank), self.options.most
        reason = f"it takes at most {most} entries"
        if len(ranked) > most and not self.options.lenient:
            raise SvcRequestError(f"{ranked[0].taken.field}: {reason}, and there are {len(ranked)}")
        for one in ranked[most:]:
            self.left_out.append(FhirLeftOut(one.taken.entry, one.taken.resource, reason))
        return ranked[:most]


_MEDICATIONS = frozenset({"MedicationStatement", "MedicationRequest"})
_ORDER = (HISTORY, "current_medications", RISKS)
_CONCLUSIONS = {"conclusion", "conclusionCode"}


def _out_of_time(read: Any, today: date) -> str:
    """Why a resource is not of the time of the record; empty where it is, and of a reading."""
    told = [getattr(read, name, None) for name in _BEGINNINGS]
    periods = [getattr(read, name, None) for name in _PERIODS]
    told += [period.start or period.end for period in periods if period]
    later = any(is_later(one, today) for one in told)
    return Settled("it is of after the day of the record") if later else ""


def _body(readings: NewestReadings) -> Iterable[tuple[str, FhirTaken]]:
    """Weight and body mass index as texts, for the requests that have no vital signs."""
    held = readings.values.get("vital_signs", {})
    for one in readings.taken:
        old = f" (as of {one.days} days ago)" if one.days else ""
        if one.field == "vital_signs.weight":
            yield f"observation: weight {held['weight']:g} kg{old}", _told_again(one, HISTORY)
        elif one.field == "vital_signs.bmi":
            yield f"body mass index {held['bmi']:.3g} kg/m2", _told_again(one, RISKS)


def _told_again(one: FhirTaken, name: str) -> FhirTaken:
    return FhirTaken(name, one.entry, one.resource, one.code, days=one.days)


# Takes what a resource of one type holds; returns why it took nothing.
Reader: TypeAlias = Callable[[Import, Resource, Any], "str | None"]
