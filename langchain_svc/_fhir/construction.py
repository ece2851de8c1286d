"""A record from the values that were read: what it does not take is an error, or left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from ..errors import SvcRequestError
from .report import FhirLeftOut, FhirReport

_T = TypeVar("_T")


def construct_record(
    make: Callable[[dict[str, Any]], _T],
    parameters: dict[str, Any],
    report: FhirReport,
    *,
    most: int,
    lenient: bool,
) -> tuple[_T, FhirReport]:
    """The record, and the report of what is in it.

    Args:
        make: Makes the record from its parameters.
        parameters: What was read.
        report: What was read from where.
        most: How many entries a field takes.
        lenient: Whether what the record does not take is left out.

    Raises:
        SvcRequestError: The record does not take a value; its entry and bounds are told.
    """
    while True:
        try:
            return make(parameters), report
        except ValidationError as error:  # noqa: PERF203  # each turn leaves one out
            first = error.errors(include_url=False, include_input=False)[0]
            dropped = _without(first, parameters, report, most) if lenient else None
            if dropped is None:
                raise SvcRequestError(_told(first, report, most)) from None
            parameters, report = dropped


def _reason(problem: Any, most: int) -> str:
    if problem["type"] == "too_long":
        return f"it takes at most {most} entries"
    return str(problem["msg"]).removeprefix("Value error, ")


def _told(problem: Any, report: FhirReport, most: int) -> str:
    """A problem with the entry that it came from."""
    names = [part for part in problem["loc"] if isinstance(part, str)]
    entries = [one.entry for one in report.taken if one.field.split(".")[: len(names)] == names]
    for part in problem["loc"]:
        if isinstance(part, int):
            entries = entries[part : part + 1]
    origin = f" (Bundle.entry {_listed(entries)})" if entries else ""
    return f"{'.'.join(map(str, problem['loc']))}{origin}: {_reason(problem, most)}"


def _listed(entries: Sequence[int | str], most: int = 10) -> str:
    more = f" and {len(entries) - most} more" if len(entries) > most else ""
    return ", ".join(map(str, entries[:most])) + more


def _without(
    problem: Any, parameters: dict[str, Any], report: FhirReport, most: int
) -> tuple[dict[str, Any], FhirReport] | None:
    """Words and report without what a problem is about; None where it was not read from FHIR."""
    name, *inner = problem["loc"]
    held = parameters.get(name)
    if held is None:
        return None
    kept = dict(parameters)
    if isinstance(held, tuple):
        first = inner[0] if inner else most
        gone = range(first, first + 1 if inner else len(held))
        kept[name] = tuple(text for index, text in enumerate(held) if index not in gone)
        of_field = [one for one in report.taken if one.field == name]
        dropped = [one for index, one in enumerate(of_field) if index in gone]
    elif isinstance(held, Mapping):
        pressures = [one for one in ("systolic", "diastolic") if one in held]
        names = set(inner[:1] or pressures or held)
        kept[name] = {key: value for key, value in held.items() if key not in names}
        paths = {f"{name}.{key}" for key in names}
        dropped = [one for one in report.taken if one.field in paths]
    else:
        del kept[name]
        dropped = [one for one in report.taken if one.field == name]
    left_out = [
        FhirLeftOut(one.entry, one.resource, _reason(problem, most), one.code, one.days)
        for one in dropped
    ]
    taken = tuple(one for one in report.taken if not any(one is out for out in dropped))
    return kept, replace(report, taken=taken, left_out=(*report.left_out, *left_out))
