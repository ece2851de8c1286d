"""`FhirReport`: what an import took from a record and what it left out, without any value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar


class Settled(str):
    """A reason that leaves nothing missing: over, refuted, said elsewhere, or of somebody else."""

    __slots__ = ()


NEWER, SAME = Settled("there is a newer one"), Settled("the same is there already")
_MOST_NAMED = 5  # entries that a line of the report names; the others are counted


@dataclass(frozen=True)
class FhirTaken:
    """One thing that was taken.

    Attributes:
        field: Where it stands now, such as `vital_signs.temperature` or `medical_history`.
        entry: Its index in `Bundle.entry`, in the list or among the lines, counted from 0; of a
            bundle within a bundle both, such as "3.0".
        resource: Its resource type.
        code: The LOINC code it was known by; empty where there is none.
        unit: The unit it is in now, in UCUM.
        converted_from: The unit it came in, where it was converted.
        note: What else was done to it.
        days: How many days before the day of the record a reading was made; None for others.
    """

    field: str
    entry: int | str
    resource: str
    code: str = ""
    unit: str = ""
    converted_from: str = ""
    note: str = ""
    days: int | None = None

    def __str__(self) -> str:
        units = f"{self.converted_from} to {self.unit}" if self.converted_from else self.unit
        told = [f"{self.resource} entry[{self.entry}]", self.code, units, self.note]
        return f"{self.field}: {', '.join(filter(None, (*told, _old(self.days))))}"


@dataclass(frozen=True)
class FhirLeftOut:
    """One resource, or a part of one, that was not taken.

    Attributes:
        entry: Its index in `Bundle.entry`, in the list or among the lines, counted from 0; of a
            bundle within a bundle both, such as "3.0".
        resource: Its resource type.
        reason: Why.
        code: The LOINC code of the part; empty where it is about the whole resource.
        days: How many days before the day of the record a reading was made; None for others.
    """

    entry: int | str
    resource: str
    reason: str
    code: str = ""
    days: int | None = None

    @property
    def is_missing(self) -> bool:
        """Whether the record lacks it: not where it is over, refuted, or said by another one."""
        return not isinstance(self.reason, Settled)

    def __str__(self) -> str:
        return f"{self.resource} {self._place}: {self.reason}"

    @property
    def _place(self) -> str:
        return ", ".join(
            filter(None, (f"entry[{self.entry}] {self.code}".rstrip(), _old(self.days)))
        )


def _old(days: int | None) -> str:
    return "" if days is None else "of that day" if days == 0 else f"{days:,} days old"


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
            *(f"  {line}" for line in self._lines_taken()),
            "Left out:",
            *(f"  {line}" for line in self._lines_left_out()),
            f"Not read: {counted or 'nothing'}",
        ]
        if self.further_pages:
            lines += ["The bundle is one page of several."]
        return "\n".join(lines)

    def _lines_taken(self) -> Iterator[str]:
        """A line for each reading; texts of one field are counted."""
        for several in _grouped(self.taken, lambda one: (one.field, one.resource, one.note)):
            if len(several) == 1:
                yield str(several[0])
            else:
                first = several[0]
                told = [f"{len(several)} {first.resource}", _entries(several), first.note]
                yield f"{first.field}: {', '.join(filter(None, told))}"

    def _lines_left_out(self) -> Iterator[str]:
        for several in _grouped(self.left_out, lambda one: (one.resource, one.reason)):
            if len(several) == 1:
                yield str(several[0])
            else:
                first = several[0]
                yield f"{len(several)} {first.resource}, {_entries(several)}: {first.reason}"


_T = TypeVar("_T", FhirTaken, FhirLeftOut)


def _grouped(held: Iterable[_T], key: Callable[[_T], Hashable]) -> Iterable[list[_T]]:
    groups: dict[Hashable, list[_T]] = {}
    for one in held:
        groups.setdefault(key(one), []).append(one)
    return groups.values()


def _entries(held: Sequence[FhirTaken | FhirLeftOut]) -> str:
    """The first entries of several, each once: an Observation may have two parts."""
    shown = list(dict.fromkeys(_entry(one) for one in held))
    more = len(shown) - _MOST_NAMED
    return f"entries {', '.join(shown[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")


def _entry(one: FhirTaken | FhirLeftOut) -> str:
    return f"{one.entry} ({_old(one.days)})" if one.days is not None else str(one.entry)
