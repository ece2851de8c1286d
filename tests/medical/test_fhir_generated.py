"""PatientContext.from_fhir on generated records: times, zones, values, units, languages.

What is expected is computed here from the published factors, independently of the package.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from fhir_records import bundle, observation
from hypothesis import given, settings
from hypothesis import strategies as st

import langchain_svc as svc
from langchain_svc.medical.patient import on_wire

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")

TODAY = date(2025, 6, 15)
DAY, WEEK, QUARTER = timedelta(hours=24), timedelta(days=7), timedelta(days=90)


def times(factor):
    return lambda value: value * factor


same = times(1)
# By LOINC code: the name sent, plausible values in the unit sent, and what each unit becomes; None
# where it must be refused.
KINDS: dict[str, tuple[str, str, tuple[float, float], dict[str, Any]]] = {
    "8310-5": ("vitalSigns", "temperature", (35, 41), {"Cel": same, "[degF]": lambda v: (v - 32) / 1.8, "K": lambda v: v - 273.15, "mg/dL": None}),
    "8480-6": ("vitalSigns", "systolic", (80, 200), {"mm[Hg]": same, "mmHg": same, "kPa": times(7.50062), "[psi]": times(51.7149)}),
    "8867-4": ("vitalSigns", "heartRate", (30, 200), {"/min": same, "{beats}/min": same, "bpm": same, "1/min": same, "Hz": times(60), "": None}),
    "9279-1": ("vitalSigns", "respiratoryRate", (6, 40), {"/min": same, "breaths/minute": same, "/s": times(60)}),
    "2708-6": ("vitalSigns", "oxygenSaturation", (70, 100), {"%": same, "1": times(100)}),
    "29463-7": ("vitalSigns", "weight", (2, 200), {"kg": same, "g": times(0.001), "[lb_av]": times(0.45359237), "lbs": times(0.45359237)}),
    "2345-7": ("labResults", "glucose", (40, 500), {"mg/dL": same, "mmol/L": times(18.016), "g/L": times(100), "%": None}),
    "2823-3": ("labResults", "potassium", (2, 8), {"mmol/L": same, "meq/L": same, "mEq/L": same, "mg/dL": times(1 / 3.9098)}),
    "17861-6": ("labResults", "calcium", (6, 14), {"mg/dL": same, "mmol/L": times(4.0078), "meq/L": times(2.0039), "mEq/L": times(2.0039)}),
    "4548-4": ("labResults", "hba1c", (4, 14), {"%": same, "mmol/mol": lambda v: 0.09148 * v + 2.152, "mg/dL": None}),
    "6690-2": ("labResults", "leukocytes", (1, 40), {"10*3/uL": same, "10*9/L": same, "K/uL": same, "x10E3/uL": same, "G/L": same, "/uL": times(0.001), "{Log}/uL": None}),
    "718-7": ("labResults", "hemoglobin", (5, 20), {"g/dL": same, "g/L": times(0.1), "mmol/L": times(1.6114)}),
    "1742-6": ("labResults", "alt", (5, 900), {"U/L": same, "IU/L": same, "[IU]/L": same, "ukat/L": times(60)}),
    "3016-3": ("labResults", "tsh", (0.01, 90), {"m[IU]/L": same, "uIU/mL": same, "mU/L": same, "mg/L": None}),
    "98979-8": ("labResults", "egfr", (5, 120), {"mL/min/{1.73_m2}": same, "mL/min/1.73m2": same, "mL/min": None}),
}  # fmt: skip
# How old each may be, and which must be of one time with each other.
WINDOWS = {"glucose": DAY, "potassium": WEEK, "calcium": WEEK, "leukocytes": WEEK}


@dataclass(frozen=True)
class Made:
    """A reading as it stands in a record, and what is true of it."""

    code: str
    value: float
    unit: str
    told: str | None
    at: datetime | None

    @property
    def kind(self):
        group, name = KINDS[self.code][:2]
        return "body" if name == "weight" else group

    @property
    def window(self):
        name = KINDS[self.code][1]
        return WINDOWS.get(name, DAY if self.kind == "vitalSigns" else QUARTER)

    @property
    def expected(self):
        becomes = KINDS[self.code][3][self.unit]
        return becomes and becomes(self.value)

    def resource(self, *, coded):
        held = {"value": self.value, "unit": self.unit}
        if coded:
            held |= {"code": self.unit, "system": "http://unitsofmeasure.org"}
        return observation(
            self.code, {k: v for k, v in held.items() if v != ""}, at=self.told, issued=None
        )


@st.composite
def moments(draw):
    """A time as FHIR writes it, and the moment that it stands for."""
    at = datetime(2025, 6, 17, tzinfo=timezone.utc) - timedelta(
        minutes=draw(st.integers(0, 60 * 24 * 5) | st.integers(0, 60 * 24 * 400))
    )
    form = draw(st.sampled_from(["utc", "zone", "zone", "day", "month", "none"]))
    if form == "none":
        return None, None
    if form in {"utc", "zone"}:
        hours = draw(st.integers(-11, 13)) if form == "zone" else 0
        at = at.astimezone(timezone(timedelta(hours=hours)))
        return at.isoformat(), at
    start = at.replace(hour=0, minute=0, **({} if form == "day" else {"day": 1}))
    return start.strftime("%Y-%m-%d" if form == "day" else "%Y-%m"), start


@st.composite
def readings(draw):
    code = draw(st.sampled_from(sorted(KINDS)))
    *_, (low, high), units = KINDS[code]
    unit = draw(st.sampled_from(sorted(units)))
    wanted = draw(st.floats(low, high))
    # The value in its unit that becomes the wanted one; both scales are straight lines.
    line = units[unit] or same
    value = round((wanted - line(0)) / (line(1) - line(0)), 4)
    told, at = draw(moments())
    return Made(code, value, unit, told, at)


def days(one):
    gone = (TODAY - one.at.date()).days
    return 0 if gone == -1 else gone


@settings(max_examples=200)
@given(st.lists(readings(), max_size=14), st.booleans(), st.randoms())
def test_what_is_sent_is_the_newest_of_its_time_in_the_right_unit_and_nothing_else_is_missing(
    made, coded, order
):
    held = [one.resource(coded=coded) for one in made]
    order.shuffle(held)
    record = svc.PatientContext.from_fhir(bundle(*held), today=TODAY, lab_codes="common")
    sent = on_wire(record)
    usable = [one for one in made if one.at is None or days(one) >= 0]
    newest = {}
    for one in sorted((one for one in usable if one.at), key=lambda one: one.at):
        newest[one.code] = one
    latest = {
        kind: max((one.at for one in newest.values() if one.kind == kind), default=None)
        for kind in ("vitalSigns", "labResults", "body")
    }
    expected = {}
    for one in newest.values():
        width = one.window
        ties = [other for other in made if other.code == one.code and other.at == one.at]
        fits = timedelta(days=days(one)) <= width and latest[one.kind] - one.at <= width
        expected[KINDS[one.code][:2]] = [other.expected for other in ties] if fits else [None]
    found = {
        (group, name): value
        for group in ("vitalSigns", "labResults")
        for name, value in sent.get(group, {}).items()
    }
    for where, values in expected.items():
        if where not in found:
            assert None in values, where
        else:
            assert any(
                value is not None and found[where] == pytest.approx(value, rel=1e-3)
                for value in values
            ), where
    assert found.keys() <= expected.keys()
    # Every reading is told of, once.
    report = record.fhir_report
    entries = {
        one.entry for one in (*report.taken, *report.left_out) if one.resource == "Observation"
    }
    assert entries == set(range(1, len(made) + 1))
    json.dumps(report.to_dict())
