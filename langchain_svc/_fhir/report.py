"""`FhirReport`: what an import took from a bundle and what it left out, without any value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FhirTaken:
    """One thing that was taken.

    Attributes:
        field: Where it stands now, such as `vital_signs.temperature` or `medical_history`.
        entry: Its index in `Bundle.entry`, counted from 0.
        resource: Its resource type.
        code: The LOINC code it was known by; empty where there is none.
        unit: The unit it is in now, in UCUM.
        converted_from: The unit it came in, where it was converted.
        note: What else was done to it.
    """

    field: str
    entry: int
    resource: str
    code: str = ""
    unit: str = ""
    converted_from: str = ""
    note: str = ""

    def __str__(self) -> str:
        units = f"{self.converted_from} to {self.unit}" if self.converted_from else self.unit
        told = [f"{self.resource} entry[{self.entry}]", self.code, units, self.note]
        return f"{self.field}: {', '.join(filter(None, told))}"


@dataclass(frozen=True)
class FhirLeftOut:
    """One resource, or a part of one, that was not taken.

    Attributes:
        entry: Its index in `Bundle.entry`, counted from 0.
        resource: Its resource type.
        reason: Why.
        code: The LOINC code of the part; empty where it is about the whole resource.
    """

    entry: int
    resource: str
    reason: str
    code: str = ""

    def __str__(self) -> str:
        about = f"{self.resource} entry[{self.entry}] {self.code}".rstrip()
        return f"{about}: {self.reason}"


@dataclass(frozen=True)
class FhirReport:
    """What `PatientContext.from_fhir` did, by index and type. It holds nothing of the patient
    beyond which codes and units there were. `print` it to read it.

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

    def __str__(self) -> str:
        lines = ["Taken:", *(f"  {one}" for one in self.taken)]
        lines += ["Left out:", *(f"  {one}" for one in self.left_out)]
        counted = ", ".join(f"{count} {kind}" for kind, count in self.not_read.items())
        lines += [f"Not read: {counted or 'nothing'}"]
        if self.further_pages:
            lines += ["The bundle is one page of several."]
        return "\n".join(lines)
