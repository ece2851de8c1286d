"""`FhirReport`: what an import took from a record and what it left out, without any value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .bundle import Resource
from .times import Clock, days_before


class Untrue(str):
    """A reason why a record is right without something: it is not true of the patient on that day,
    or stands there already. Every other reason leaves out what may be true.
    """  # noqa: D205  # one sentence over two lines

    __slots__ = ()


NEWER = Untrue("there is a newer one")
SAME = Untrue("the same is there already")


@dataclass(frozen=True, kw_only=True)
class _ReportLine:
    """A resource, or a part of one, of which a report tells.

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
        age = (
            f"{self.days:,} day{'s'[: self.days > 1]} old"
            if self.days
            else "of that day"
        )
        return f"{self.entry} ({age})"


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
        units = (
            f"{self.converted_from} to {self.unit}"
            if self.converted_from
            else self.unit
        )
        parts = (self.resource, self.code, units, self.note)
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
        return f"{', '.join(filter(None, (self.resource, self.code)))}: {self.reason}"


def _lines(held: Iterable[_ReportLine]) -> Iterator[str]:
    """A line for each, or one for all that differ only in where they are from."""
    groups: dict[str, list[str]] = {}
    for one in held:
        groups.setdefault(str(one), []).append(one.place)
    for text, places in groups.items():
        yield f"  {text} [{'entry' if len(places) == 1 else 'entries'} {', '.join(places)}]"


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
        return dict(
            Counter(
                line.part or line.resource for line in self.left_out if line.is_missing
            )
        )

    def __str__(self) -> str:
        counted = ", ".join(f"{count} {kind}" for kind, count in self.not_read.items())
        unread = sum(self.not_read.values())
        lines = [
            f"{len(self.taken)} taken, {len(self.left_out)} left out, {unread} not read",
            "Taken:",
            *_lines(self.taken),
            "Left out:",
            *_lines(self.left_out),
            f"Not read: {counted or 'nothing'}",
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
    """A part of a resource that is not taken, and of which nobody asks where none of it is."""

    resource: Resource
    part: str
    reason: str


@dataclass
class ImportLog:
    """What a report will tell, while a record is read."""

    clock: Clock
    taken: list[FhirTaken] = field(default_factory=list, init=False)
    left_out: list[FhirLeftOut] = field(default_factory=list, init=False)
    asides: list[Aside] = field(default_factory=list, init=False)

    def line(self, origin: Resource, name: str, *reading: Any) -> FhirTaken:
        return FhirTaken(field=name, **self._origin(origin, *reading))

    def leave(
        self, origin: Resource, reason: str, *reading: Any, part: str = ""
    ) -> None:
        origins = self._origin(origin, *reading)
        self.left_out.append(FhirLeftOut(reason=reason, part=part, **origins))

    def _origin(
        self, origin: Resource, code: str = "", at: datetime | None = None
    ) -> dict[str, Any]:
        days = None if at is None else days_before(at, self.clock.today)
        return {
            "entry": origin.entry,
            "resource": origin.kind,
            "code": code,
            "days": days,
        }

    def beside(self, resource: Resource, part: str, reason: str) -> None:
        """Say, if anything of a resource is taken, that a part of it is not."""
        self.asides.append(Aside(resource, part, reason))

    def leave_asides(self, entries: set[int | str]) -> None:
        """The parts that are missing of the resources of which something was taken."""
        for aside in self.asides:
            if aside.resource.entry in entries:
                self.leave(aside.resource, aside.reason, part=aside.part)
