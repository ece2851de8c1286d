"""`FhirReport`: what an import took from a record and what it left out, without any value.

A clinician reads it, so types of resources and counts have words here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from .resources import Resource
from .times import Clock, day_or_days, days_before
from .units import unit_in_words


class Untrue(str):
    """A reason why a record is right without something: it is not true of the patient on that day,
    or stands there already. Every other reason leaves out what may be true.
    """  # noqa: D205  # one sentence over two lines

    __slots__ = ()


NEWER = Untrue("there is a newer one")
SAME = Untrue("the same is there already")
OF_OTHERS = "of other patients"  # what is not read, beside types of resources


@dataclass(frozen=True, kw_only=True)
class _ReportLine:
    """A line about a resource or a part of one.

    Attributes:
        entry: Its index in `Bundle.entry`, in the list or among the lines, counted from 0; of a
            bundle within a bundle both, such as "3.0".
        resource: Its resource type.
        code: The LOINC code of a part that was known by one; empty for others.
        name: What a part of a known code is called, such as "urea nitrogen"; empty for others.
        days: How many days before the day of the record a reading was made; None for others.
    """

    entry: int | str
    resource: str
    code: str = ""
    name: str = ""
    days: int | None = None

    @property
    def place(self) -> str:
        """Its entry, and how old it is."""
        if self.days is None:
            return str(self.entry)
        if self.days == 0:
            return f"{self.entry} (of that day)"
        return f"{self.entry} ({self.days:,} {day_or_days(self.days)} old)"

    @property
    def source(self) -> str:
        """What it is about in words: its name, or else the type of its resource."""
        return self.name or kind_in_words(self.resource)


@dataclass(frozen=True, kw_only=True)
class FhirTaken(_ReportLine):
    """One thing that was taken.

    Attributes:
        field: Where it stands now, such as `vital_signs.temperature` or `medical_history`.
        unit: The unit it is in now, in UCUM.
        converted_from: The unit it came in, where it was converted.
        note: What else was done to it.
    """

    field: str
    unit: str = ""
    converted_from: str = ""
    note: str = ""

    def __str__(self) -> str:
        group, _, reading = self.field.partition(".")
        unit = unit_in_words(self.unit)
        if self.converted_from:
            unit = f"{unit_in_words(self.converted_from)} to {unit}"
        if reading:
            head, parts = self.source, [unit, self.note]
        else:
            head, parts = spaced(group), [self.source, unit, self.note]
        details = ", ".join(filter(None, parts))
        return ": ".join(filter(None, (head, details)))


@dataclass(frozen=True, kw_only=True)
class FhirLeftOut(_ReportLine):
    """One resource, or a part of one, that was not taken, and the `reason` why.

    Attributes:
        part: What of the resource was left out, such as "dosage" or "extension"; empty where it is
            the whole or a reading.
    """

    reason: str
    part: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether it may be true: not entered in error, refuted, older, a duplicate, another's."""
        return not isinstance(self.reason, Untrue)

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


def _texts(lines: Iterable[_ReportLine]) -> Iterator[str]:
    """A text for each line, or one for all lines that differ only in where they are from."""
    places_by_text: dict[str, list[str]] = {}
    for line in lines:
        places_by_text.setdefault(str(line), []).append(line.place)
    for text, places in places_by_text.items():
        label = "entry" if len(places) == 1 else "entries"
        yield f"  {text} [{label} {listed(places)}]"


def _texts_left_out(lines: Iterable[FhirLeftOut]) -> Iterator[str]:
    """The same for what was left out. Older results, of which there may be thousands, are one."""
    older = 0
    others = []
    for line in lines:
        if line.reason == NEWER:
            older += 1
        else:
            others.append(line)
    yield from _texts(others)
    if older:
        yield f"  {counted(older, 'older result')}: {NEWER}"


def _texts_not_read(not_read: Mapping[str, int]) -> Iterator[str]:
    """The counts of what is not read, what says nothing of the patient's health last."""
    counts: Counter[str] = Counter()
    codes: list[str] = []
    for name in sorted(not_read, key=lambda name: name in ADMINISTRATIVE):
        kind, _, code = name.partition(" ")
        counts[name if name == OF_OTHERS else kind] += not_read[name]
        if kind == "Observation" and code:
            codes.append(f"{not_read[name]:,} of code {code}")
    for kind, count in counts.items():
        if kind == OF_OTHERS:
            yield f"{count:,} {OF_OTHERS}"
        elif kind == "Observation" and codes:
            yield f"{counted(count, kind_in_words(kind))} ({listed(codes)})"
        else:
            yield counted(count, kind_in_words(kind))


@dataclass(frozen=True)
class FhirReport:
    """What `PatientContext.from_fhir` did, by index and type. It holds nothing of the patient
    beyond which codes and units there were, and how old readings are. `print` it to read it: it has
    names in place of codes, units as people write them, and older readings as a count.

    Attributes:
        taken: What was taken, in the order of the fields.
        left_out: What was not taken though it is of a type that is read.
        not_read: How many resources there were of each type that is not read, and how many
            Observations of each code that is not, such as "Observation 8303-0".
        further_pages: Whether the bundle names a next page, whose resources are not here.
        restricted: Whether labels and consents were overruled by `restricted=True`.
    """  # noqa: D205  # one sentence over two lines

    taken: tuple[FhirTaken, ...] = ()
    left_out: tuple[FhirLeftOut, ...] = ()
    not_read: Mapping[str, int] = field(default_factory=dict)
    further_pages: bool = False
    restricted: bool = False

    def missing(self) -> dict[str, int]:
        """How many of each resource type, or of its parts, were not taken though they may be true.

        What is entered in error, refuted, older or a duplicate is not among them, nor what
        `not_read` counts.
        """
        missing = (line for line in self.left_out if line.is_missing)
        return dict(Counter(line.part or line.resource for line in missing))

    def __str__(self) -> str:
        unread = sum(self.not_read.values())
        lines = [
            f"{len(self.taken)} taken, {len(self.left_out)} left out, {unread} not read",
            "Taken:",
            *_texts(self.taken),
            "Left out:",
            *_texts_left_out(self.left_out),
            f"Not read: {', '.join(_texts_not_read(self.not_read)) or 'nothing'}",
        ]
        if self.further_pages:
            lines.append("The bundle is one page of several.")
        if self.restricted:
            lines.append(
                "Labels and consents that restrict it were overruled (restricted=True)."
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Aside:
    """A part of a resource that is not taken.

    The report tells of it only where something else of the resource is taken.
    """

    resource: Resource
    part: str
    reason: str


@dataclass
class ImportLog(ABC):
    """The lines of a report, collected while a record is read; `lines` is what was taken."""

    clock: Clock
    lines: list[FhirTaken] = field(default_factory=list, init=False)
    left_out: list[FhirLeftOut] = field(default_factory=list, init=False)
    asides: list[Aside] = field(default_factory=list, init=False)

    @abstractmethod
    def name_of(self, code: str) -> str:
        """What a LOINC code is called for a reader; empty if it is not known."""

    def line(
        self, origin: Resource, name: str, code: str = "", at: datetime | None = None
    ) -> FhirTaken:
        """A line on what was taken for a field; the caller adds it where it belongs."""
        return FhirTaken(
            entry=origin.entry,
            resource=origin.kind,
            code=code,
            name=self.name_of(code),
            days=self._days(at),
            field=name,
        )

    def leave_out(
        self,
        origin: Resource,
        reason: str,
        code: str = "",
        at: datetime | None = None,
        part: str = "",
    ) -> None:
        """Record that a resource, or a part of one, is left out."""
        line = FhirLeftOut(
            entry=origin.entry,
            resource=origin.kind,
            code=code,
            name=self.name_of(code),
            days=self._days(at),
            reason=reason,
            part=part,
        )
        self.left_out.append(line)

    def _days(self, at: datetime | None) -> int | None:
        if at is None:
            return None
        return days_before(at, self.clock.today)

    def add_aside(self, resource: Resource, part: str, reason: str) -> None:
        """Note that a part of a resource is not taken, in case something else of it is."""
        self.asides.append(Aside(resource, part, reason))

    def leave_out_asides(self, entries: set[int | str]) -> None:
        """Record the parts that are missing of the resources of which something was taken."""
        for aside in self.asides:
            if aside.resource.entry in entries:
                self.leave_out(aside.resource, aside.reason, part=aside.part)


# -- in words --------------------------------------------------------------------------------------

_KINDS: Mapping[str, str] = {
    "AllergyIntolerance": "allergy",
    "DiagnosticReport": "report",
    "FamilyMemberHistory": "family history",
    "MedicationRequest": "medication",
    "MedicationStatement": "medication",
    "Observation": "result",
    "component": "part of a result",
    "text": "typed text",
}
# Who, where, when and for how much: they say nothing of the patient's health. Every other type may,
# also one that nobody knows.
_ADMINISTRATIVE = """
    Account Appointment AppointmentResponse AuditEvent ChargeItem Claim ClaimResponse Consent
    Contract Coverage CoverageEligibilityRequest CoverageEligibilityResponse Encounter Endpoint
    EnrollmentRequest EnrollmentResponse EpisodeOfCare ExplanationOfBenefit Group HealthcareService
    InsurancePlan Invoice Location MessageHeader OperationOutcome Organization
    OrganizationAffiliation PaymentNotice PaymentReconciliation Person Practitioner
    PractitionerRole Provenance RelatedPerson Schedule Slot Subscription VerificationResult
"""
ADMINISTRATIVE = frozenset(_ADMINISTRATIVE.split())
_MOST = 20  # of a list that people read


def kind_in_words(kind: str) -> str:
    """A type of resource, or a part of one: `MedicationDispense` is "medication dispense"."""
    return _KINDS.get(kind) or spaced(kind)


def spaced(name: str) -> str:
    """`heartRate`, `HeartRate` and `heart_rate` are all "heart rate"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()


def counted(count: int, word: str) -> str:
    """A number of things: "1 allergy", "2,300 allergies", "2 explanations of benefit"."""
    if count == 1:
        return f"1 {word}"
    head, of, rest = word.partition(" of ")
    plural = f"{head[:-1]}ies" if head.endswith("y") else f"{head}s"
    return f"{count:,} {plural}{of}{rest}"


def listed(items: Sequence[str]) -> str:
    """A list that a person can read: of more than twenty only their number."""
    further = len(items) - _MOST
    shown = ", ".join(items[:_MOST])
    return f"{shown} and {further:,} more" if further > 0 else shown
