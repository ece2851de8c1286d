"""`FhirReport`: what an import took from a record and what it left out, without any value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import Any

from ...errors import SvcRequestError
from .bundle import Resource
from .times import days_before


class Settled(str):
    """A reason that leaves nothing missing: over, refuted, said elsewhere, or of somebody else."""

    __slots__ = ()


NEWER, SAME = Settled("there is a newer one"), Settled("the same is there already")
_MOST_NAMED = 5  # entries that a line of the report names; the others are counted


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

    def __str__(self) -> str:
        return self.told(_listed(f"{self.resource} entry[{self.entry}]", self.code, self.age))

    def told(self, origin: str) -> str:
        """The line of one or of several, with where they are from."""
        return origin

    @property
    def age(self) -> str:
        if self.days is None:
            return ""
        return f"{self.days:,} day{'s'[: self.days > 1]} old" if self.days else "of that day"


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

    def told(self, origin: str) -> str:
        units = f"{self.converted_from} to {self.unit}" if self.converted_from else self.unit
        return f"{self.field}: {_listed(origin, units, self.note)}"


@dataclass(frozen=True, kw_only=True)
class FhirLeftOut(_ReportLine):
    """One resource, or a part of one, that was not taken, and the `reason` why."""

    reason: str

    @property
    def is_missing(self) -> bool:
        """Whether the record lacks it: not where it is over, refuted, or said by another one."""
        return not isinstance(self.reason, Settled)

    def told(self, origin: str) -> str:
        return f"{origin}: {self.reason}"


def _listed(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _lines(held: Iterable[_ReportLine]) -> Iterator[str]:
    """A line for each, or one for all that differ only in where they are from."""
    groups: dict[str, list[_ReportLine]] = {}
    for one in held:
        groups.setdefault(one.told(one.resource), []).append(one)
    for first, *others in groups.values():
        # Each entry once: an Observation may have two parts.
        ages = {one.entry: one.age and f" ({one.age})" for one in (first, *others)}
        shown = [f"{entry}{age}" for entry, age in ages.items()]
        more = f" and {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
        entries = f"entries {', '.join(shown[:_MOST_NAMED])}{more}"
        several = f"{len(others) + 1} {first.resource}, {entries}"
        yield f"  {first.told(several) if others else first}"


@dataclass(frozen=True)
class FhirReport:
    """What `PatientContext.from_fhir` did, by index and type. It holds nothing of the patient
    beyond which codes and units there were, and how old readings are. `print` it to read it.

    Attributes:
        taken: What was taken, in the order of the fields.
        left_out: What was not taken though it is of a type that is read.
        not_read: How many resources there were of each type that is not read, and how many
            Observations of codes that are not.
        further_pages: Whether the bundle names a next page, whose resources are not here.
    """  # noqa: D205  # one sentence over two lines

    taken: tuple[FhirTaken, ...] = ()
    left_out: tuple[FhirLeftOut, ...] = ()
    not_read: Mapping[str, int] = field(default_factory=dict)
    further_pages: bool = False

    def missing(self) -> dict[str, int]:
        """How many of each resource type the record lacks, though they may be true of the patient.

        What is over, refuted, or said by another resource is not among them.
        """
        return dict(Counter(one.resource for one in self.left_out if one.is_missing))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain lists, dicts, texts and numbers, for JSON."""
        return asdict(self)

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
            lines += ["The bundle is one page of several."]
        return "\n".join(lines)


@dataclass
class ImportLog:
    """What a report will tell, while a record is read."""

    today: date
    lenient: bool
    taken: list[FhirTaken] = field(default_factory=list, init=False)
    left_out: list[FhirLeftOut] = field(default_factory=list, init=False)

    def line(self, origin: Resource, name: str, *part: Any) -> FhirTaken:
        return FhirTaken(field=name, **self._origin(origin, *part))

    def leave(self, origin: Resource, reason: str, *part: Any) -> None:
        self.left_out.append(FhirLeftOut(reason=reason, **self._origin(origin, *part)))

    def refuse(self, origin: Resource, reason: str, *part: Any) -> None:
        """Leave out what cannot be taken, or raise."""
        if not self.lenient:
            raise SvcRequestError(f"{origin.place} ({origin.kind}): {reason}") from None
        self.leave(origin, reason, *part)

    def _origin(
        self, origin: Resource, code: str = "", at: datetime | None = None
    ) -> dict[str, Any]:
        days = None if at is None else days_before(at, self.today)
        return {"entry": origin.entry, "resource": origin.kind, "code": code, "days": days}
