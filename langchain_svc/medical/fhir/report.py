"""`FhirReport`: what an import took from a record and what it left out, without any value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .bundle import Resource
from .times import Clock, day_or_days, days_before


class Untrue(str):
    """A reason why a record is right without something: it is not true of the patient on that day,
    or stands there already. Every other reason leaves out what may be true.
    """  # noqa: D205  # one sentence over two lines

    __slots__ = ()


NEWER = Untrue("there is a newer one")
SAME = Untrue("the same is there already")


@dataclass(frozen=True, kw_only=True)
class _ReportLine:
    """A line about a resource or a part of one.

    Attributes:
        entry: Its index in `Bundle.entry`, in the list or among the lines, counted from 0; of a
            bundle within a bundle both, such as "3.0".
        resource: Its resource type.
        code: The LOINC code of a part that was known by one; empty for others.
        days: How many days before the day of the record a reading was made; None for others.
    """

    entry: int | str
    resource: str
    code: str = ""
    days: int | None = None

    @property
    def place(self) -> str:
        """Its entry, and how old it is."""
        if self.days is None:
            return str(self.entry)
        if self.days == 0:
            return f"{self.entry} (of that day)"
        return f"{self.entry} ({self.days:,} {day_or_days(self.days)} old)"


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
        unit = self.unit
        if self.converted_from:
            unit = f"{self.converted_from} to {unit}"
        parts = (self.resource, self.code, unit, self.note)
        return f"{self.field}: {', '.join(filter(None, parts))}"


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
        origin = ", ".join(filter(None, (self.resource, self.code)))
        return f"{origin}: {self.reason}"


def _texts(lines: Iterable[_ReportLine]) -> Iterator[str]:
    """A text for each line, or one for all lines that differ only in where they are from."""
    places_by_text: dict[str, list[str]] = {}
    for line in lines:
        places_by_text.setdefault(str(line), []).append(line.place)
    for text, places in places_by_text.items():
        label = "entry" if len(places) == 1 else "entries"
        yield f"  {text} [{label} {', '.join(places)}]"


@dataclass(frozen=True)
class FhirReport:
    """What `PatientContext.from_fhir` did, by index and type. It holds nothing of the patient
    beyond which codes and units there were, and how old readings are. `print` it to read it.

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
        counts = ", ".join(f"{count} {kind}" for kind, count in self.not_read.items())
        unread = sum(self.not_read.values())
        lines = [
            f"{len(self.taken)} taken, {len(self.left_out)} left out, {unread} not read",
            "Taken:",
            *_texts(self.taken),
            "Left out:",
            *_texts(self.left_out),
            f"Not read: {counts or 'nothing'}",
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
class ImportLog:
    """The lines of a report, collected while a record is read; `lines` is what was taken."""

    clock: Clock
    lines: list[FhirTaken] = field(default_factory=list, init=False)
    left_out: list[FhirLeftOut] = field(default_factory=list, init=False)
    asides: list[Aside] = field(default_factory=list, init=False)

    def line(
        self, origin: Resource, name: str, code: str = "", at: datetime | None = None
    ) -> FhirTaken:
        """A line on what was taken for a field; the caller adds it where it belongs."""
        return FhirTaken(
            entry=origin.entry,
            resource=origin.kind,
            code=code,
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
