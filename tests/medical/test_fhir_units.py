"""Laboratory results in the unit that was asked for: converted rightly, or refused.

The factors are those that journals and laboratories publish (AMA Manual of Style, SI conversion
calculator; the NGSP and IFCC table of HbA1c), written here independently of the package's masses.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from fhir_records import TODAY, observation, quantity, refused, sent, taken
from hypothesis import given, settings
from hypothesis import strategies as st
from share import fewer

from langchain_svc.medical.patient import on_wire

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")


def lab(code, value, unit, **options):
    options.setdefault("lab_codes", "common")
    (number,) = sent(observation(code, quantity(value, unit)), **options)["labResults"].values()
    return number


# (code, conventional unit, SI unit, published factor from the first to the second)
PUBLISHED = [
    ("2345-7", "mg/dL", "mmol/L", 0.0555),
    ("2093-3", "mg/dL", "mmol/L", 0.0259),
    ("2085-9", "mg/dL", "mmol/L", 0.0259),
    ("13457-7", "mg/dL", "mmol/L", 0.0259),
    ("2571-8", "mg/dL", "mmol/L", 0.0113),
    ("2160-0", "mg/dL", "umol/L", 88.4),
    ("1975-2", "mg/dL", "umol/L", 17.1),
    ("17861-6", "mg/dL", "mmol/L", 0.25),
    ("17861-6", "meq/L", "mmol/L", 0.5),
    ("19123-9", "mg/dL", "mmol/L", 0.411),
    ("19123-9", "meq/L", "mmol/L", 0.5),
    ("2777-1", "mg/dL", "mmol/L", 0.323),
    ("3094-0", "mg/dL", "mmol/L", 0.357),
    ("2823-3", "meq/L", "mmol/L", 1),
    ("2951-2", "meq/L", "mmol/L", 1),
    ("2075-0", "meq/L", "mmol/L", 1),
    ("1963-8", "meq/L", "mmol/L", 1),
    ("3024-7", "ng/dL", "pmol/L", 12.871),
    ("3051-0", "pg/mL", "pmol/L", 1.536),
    ("718-7", "g/dL", "mmol/L", 0.6206),
    ("718-7", "g/dL", "g/L", 10),
    ("1742-6", "U/L", "ukat/L", 0.0167),
    ("1742-6", "[IU]/L", "U/L", 1),
    ("3016-3", "u[IU]/mL", "m[IU]/L", 1),
    ("3016-3", "mU/L", "m[IU]/L", 1),
    ("6690-2", "10*3/uL", "10*9/L", 1),
    ("789-8", "10*6/uL", "10*12/L", 1),
    ("4544-3", "%", "L/L", 0.01),
    ("42637-9", "pg/mL", "pmol/L", 0.289),
    ("33762-6", "pg/mL", "pmol/L", 0.118),
    ("67151-1", "ng/L", "ng/mL", 0.001),
    ("1988-5", "mg/dL", "mg/L", 10),
]


def plausible(code, unit):
    """A value in a unit that a patient may have, and the name of the result."""
    for value in (8, 80, 800, 0.8):
        values = sent(observation(code, quantity(value, unit)), lab_codes="common")
        for name in values.get("labResults", ()):
            return value, name
    raise AssertionError(code)


@pytest.mark.parametrize(("code", "unit", "si", "factor"), PUBLISHED)
def test_published_factors(code, unit, si, factor):
    value, name = plausible(code, unit)
    there = lab(code, value, unit, units={name: si})
    assert there == pytest.approx(value * factor, rel=6e-3)
    back = lab(code, Decimal(repr(there)), si, units={name: unit})
    assert back == pytest.approx(value, rel=6e-3)


# What NGSP publishes beside each other: % and mmol/mol.
HBA1C = [
    (5.0, 31),
    (5.5, 37),
    (6.0, 42),
    (6.5, 48),
    (7.0, 53),
    (7.5, 58),
    (8.0, 64),
    (9.0, 75),
    (10.0, 86),
    (12.0, 108),
]


@pytest.mark.parametrize(("ngsp", "ifcc"), HBA1C)
def test_hemoglobin_a1c_in_both_scales(ngsp, ifcc):
    assert round(lab("59261-8", ifcc, "mmol/mol"), 1) == pytest.approx(ngsp, abs=0.1)
    assert round(lab("4548-4", ngsp, "%", units={"hba1c": "mmol/mol"})) == ifcc
    own = {"lab_codes": {"59261-8": "a1c", "4548-4": "a1c"}, "units": {"a1c": "%"}}
    assert round(lab("59261-8", ifcc, "mmol/mol", **own), 1) == pytest.approx(ngsp, abs=0.1)
    assert lab("4548-4", ngsp, "%", **own) == ngsp
    assert lab("59261-8", ifcc / 1000, "mol/mol") == pytest.approx(ngsp, abs=0.06)


CONVERTED = [
    ("10*9/L", "10*3/uL", 7),
    ("10^9/L", "10*6/L", 7000),
    ("m[IU]/L", "u[iU]/mL", 7),
    ("U/L", "nkat/L", 116.667),
    ("mL/min/{1.73_m2}", "L/h", None),
    ("mL/min/{1.73_m2}", "L/h/{1.73m2}", 0.42),
    ("mg/g{creat}", "ug/mg", 7),
    ("mg/24.h", "mg.h", 0.291667),
    ("[lb_av]", "kg", 3.17515),
    ("[in_i]", "cm", 17.78),
    ("kg.m-2", "kg/m2", 7),
    ("meq/L", "mmol/L", None),
    ("{INR}", "1", 7),
    ("fL", "um3", 7),
    ("cm[H2O]", "mm[Hg]", 5.14893),
    ("wk", "d", None),
    ("B", "1", None),
    ("mg/(24.h)", "mg/h", 0.291667),
    ("mg//dL", "mg/dL", None),
    ("mg/", "mg", None),
    ("mg dL", "mg", None),
    ("dL.", "dL", None),
    ("kmin", "h", None),
    ("m" * 61, "m", None),
    ("mCel", "Cel", None),
    ("Cel/min", "K/min", None),
    ("10", "%", 7000),
    ("mg/L", "g", None),
    *(
        (unit, to, None)
        for unit, to in [
            ("{Log_copies}/mL", "{copies}/mL"),
            ("{Log_copies}/mL", "/mL"),
            ("ng/mL{FEU}", "ng/mL{DDU}"),
            ("ng/mL{FEU}", "ng/mL"),
            ("ug/mL{DDU}", "ng/mL"),
            ("meq/L", "mmol/L"),
            ("mmol/mol", "%"),
            ("%", "mmol/mol"),
            ("mL/min/{1.73_m2}", "mL/min"),
            ("mg/g{creat}", "mg/g{tissue}"),
            ("[IU]/L", "U/L"),
            ("mg/dL", "mmol/L"),
            ("10*3/uL", "mg/dL"),
            ("log copies/mL", "{copies}/mL"),
            ("mg/24.h", "mg/d"),
        ]
    ),
    *(
        (unit, "g/d", 0.007)
        for unit in ("mg/24h", "mg/24 h", "mg/24hr", "mg/(24.h)", "mg/{24h}", "mg/day", "mg/d")
    ),
]


@pytest.mark.parametrize(("unit", "to", "expected"), CONVERTED)
def test_a_unit_is_converted_or_what_cannot_be_told_is_refused(unit, to, expected):
    resource = observation("99998-1", quantity(7, unit))
    options = {"lab_codes": {"99998-1": "it"}, "units": {"it": to}}
    if expected is None:
        assert "cannot be converted" in refused(resource, **options)
    else:
        assert sent(resource, **options)["labResults"] == {"it": expected}


SPELLINGS = [
    ("6690-2", "K/uL", 7.2),
    ("6690-2", "k/µL", 7.2),
    ("6690-2", "x10E3/uL", 7.2),
    ("6690-2", "X10(3)/uL", 7.2),
    ("6690-2", "10E3/uL", 7.2),
    ("6690-2", "x10^9/L", 7.2),
    ("6690-2", "10^3/mcL", 7.2),
    ("6690-2", "G/L", 7.2),
    ("6690-2", "Gpt/l", 7.2),
    ("6690-2", "Thousand/uL", 7.2),
    ("6690-2", "K/mm3", 7.2),
    ("6690-2", "10*9/l", 7.2),
    ("6690-2", "{cells}/uL", 0.0072),
    ("6690-2", "cells/uL", 0.0072),
    ("6690-2", "/cumm", 0.0072),
    ("789-8", "M/uL", 7.2),
    ("789-8", "Mill/uL", 7.2),
    ("789-8", "T/L", 7.2),
    ("789-8", "10E12/L", 7.2),
    ("3016-3", "mIU/L", 7.2),
    ("3016-3", "uIU/mL", 7.2),
    ("3016-3", "mU/L", 7.2),
    ("1742-6", "IU/L", 7.2),
    ("1742-6", "UI/L", 7.2),
    ("1742-6", "U/l", 7.2),
    ("2823-3", "mEq/L", 7.2),
    ("718-7", "gm/dL", 7.2),
    ("718-7", "g/L", 0.72),
    ("98979-8", "mL/min/1.73m2", 7.2),
    ("98979-8", "mL/min/1.73 m²", 7.2),
    ("98979-8", "ml/min/1,73m2", 7.2),
    ("98979-8", "mL/min/{1.73m2}", 7.2),
    ("98979-8", "mL/min/1.73 sq m", None),
    ("2345-7", "mg/dl", 7.2),
    ("2160-0", "µmol/l", 0.0814464),
    ("1988-5", "mcg/mL", 7.2),
    ("4548-4", "percent", 7.2),
    ("6301-6", "{INR}", 7.2),
    ("6301-6", "INR", 7.2),
    ("6301-6", "ratio", 7.2),
]


@pytest.mark.parametrize(("code", "unit", "expected"), SPELLINGS)
def test_units_as_laboratories_print_them(code, unit, expected):
    if expected is None:
        resource = observation(code, quantity(Decimal("7.2"), unit))
        assert "cannot be converted" in refused(resource, lab_codes="common")
        return
    assert lab(code, Decimal("7.2"), unit) == pytest.approx(expected, rel=1e-5)
    plain = observation(code, {"value": 7.2, "unit": unit})
    (number,) = sent(plain, lab_codes="common")["labResults"].values()
    assert number == pytest.approx(expected, rel=1e-5)


def test_what_a_code_measures_does_not_depend_on_its_name():
    options = {"lab_codes": {"2345-7": "sugar"}, "units": {"sugar": "mmol/L"}}
    assert lab("2345-7", 90, "mg/dL", **options) == pytest.approx(5, abs=0.01)


# Atomic weights (IUPAC) and the formula that each molar mass stands for.
WEIGHTS = {
    "H": 1.008,
    "C": 12.011,
    "N": 14.007,
    "O": 15.999,
    "P": 30.974,
    "Cl": 35.45,
    "Na": 22.990,
    "K": 39.098,
    "Mg": 24.305,
    "Ca": 40.078,
    "I": 126.904,
}
FORMULAS = {
    "creatinine": "C4H7N3O",
    "cholesterol": "C27H46O",
    "hdlCholesterol": "C27H46O",
    "ldlCholesterol": "C27H46O",
    "triglycerides": "C57H104O6",
    "glucose": "C6H12O6",
    "fastingGlucose": "C6H12O6",
    "sodium": "Na",
    "potassium": "K",
    "chloride": "Cl",
    "bicarbonate": "HCO3",
    "calcium": "Ca",
    "magnesium": "Mg",
    "phosphate": "P",
    "ureaNitrogen": "N2",
    "bilirubin": "C33H36N4O6",
    "freeT4": "C15H11I4NO4",
    "freeT3": "C15H12I3NO4",
    "lactate": "C3H6O3",
}
NOT_OF_A_FORMULA = {"bnp", "ntProBnp", "hemoglobin"}


def test_molar_masses_follow_from_formulas():
    from langchain_svc.medical.fhir.fields import fields_by_code

    masses = {
        field.name: field.substance.molar_mass
        for field in fields_by_code("common", {}, {}).values()
        if field.substance.molar_mass
    }
    assert masses.keys() == FORMULAS.keys() | NOT_OF_A_FORMULA
    for name, formula in FORMULAS.items():
        parts = re.findall(r"([A-Z][a-z]?)([0-9]*)", formula)
        assert masses[name] == pytest.approx(
            sum(WEIGHTS[atom] * int(count or 1) for atom, count in parts), rel=1e-4
        ), name


def test_no_code_stands_for_two_results():
    from langchain_svc.medical.fhir import fields

    rows = (*fields._VITAL_SIGNS, *fields._LAB_RESULTS, *fields._COMMON)
    listed = [code for row in rows for code in row[-1].split()]
    assert len(listed) == len(set(listed))
    for code in listed:  # LOINC's check digit, by Luhn
        digits = [int(digit) for digit in code.replace("-", "")][::-1]
        total = sum(digits[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])
        assert total % 10 == 0, code


# -- generated records: times, zones, values, units ---------------------------------------------------

DAY, WEEK, QUARTER = timedelta(hours=24), timedelta(days=7), timedelta(days=90)


def times(factor):
    return lambda value: value * factor


same = times(1)
AS_PEOPLE_WRITE = {"degF", "°F", "F"}  # and codes do not: F is a farad
fahrenheit = dict.fromkeys(["[degF]", *AS_PEOPLE_WRITE], lambda value: (value - 32) / 1.8)
# By LOINC code: the name sent, plausible values in the unit sent, and what each unit becomes; None
# where it must be refused.
KINDS: dict[str, tuple[str, str, tuple[float, float], dict[str, Any]]] = {
    "8310-5": (
        "vitalSigns",
        "temperature",
        (35, 41),
        {"Cel": same, **fahrenheit, "K": lambda v: v - 273.15, "mg/dL": None},
    ),
    "8480-6": (
        "vitalSigns",
        "systolic",
        (80, 200),
        {"mm[Hg]": same, "mmHg": same, "kPa": times(7.50062), "[psi]": times(51.7149)},
    ),
    "8867-4": (
        "vitalSigns",
        "heartRate",
        (30, 200),
        {"/min": same, "{beats}/min": same, "bpm": same, "1/min": same, "Hz": times(60), "": None},
    ),
    "9279-1": (
        "vitalSigns",
        "respiratoryRate",
        (6, 40),
        {"/min": same, "breaths/minute": same, "/s": times(60)},
    ),
    "2708-6": ("vitalSigns", "oxygenSaturation", (70, 100), {"%": same, "1": times(100)}),
    "29463-7": (
        "vitalSigns",
        "weight",
        (2, 200),
        {"kg": same, "g": times(0.001), "[lb_av]": times(0.45359237), "lbs": times(0.45359237)},
    ),
    "2345-7": (
        "labResults",
        "glucose",
        (40, 500),
        {"mg/dL": same, "mmol/L": times(18.016), "g/L": times(100), "%": None},
    ),
    "2823-3": (
        "labResults",
        "potassium",
        (2, 8),
        {"mmol/L": same, "meq/L": same, "mEq/L": same, "mg/dL": times(1 / 3.9098)},
    ),
    "17861-6": (
        "labResults",
        "calcium",
        (6, 14),
        {"mg/dL": same, "mmol/L": times(4.0078), "meq/L": times(2.0039), "mEq/L": times(2.0039)},
    ),
    "4548-4": (
        "labResults",
        "hba1c",
        (4, 14),
        {"%": same, "mmol/mol": lambda v: 0.09148 * v + 2.152, "mg/dL": None},
    ),
    "6690-2": (
        "labResults",
        "leukocytes",
        (1, 40),
        {
            "10*3/uL": same,
            "10*9/L": same,
            "K/uL": same,
            "x10E3/uL": same,
            "G/L": same,
            "/uL": times(0.001),
            "{Log}/uL": None,
        },
    ),
    "718-7": (
        "labResults",
        "hemoglobin",
        (5, 20),
        {"g/dL": same, "g/L": times(0.1), "mmol/L": times(1.6114)},
    ),
    "1742-6": (
        "labResults",
        "alt",
        (5, 900),
        {"U/L": same, "IU/L": same, "[IU]/L": same, "ukat/L": times(60)},
    ),
    "3016-3": (
        "labResults",
        "tsh",
        (0.01, 90),
        {"m[IU]/L": same, "uIU/mL": same, "mU/L": same, "mg/L": None},
    ),
    "98979-8": (
        "labResults",
        "egfr",
        (5, 120),
        {"mL/min/{1.73_m2}": same, "mL/min/1.73m2": same, "mL/min": None},
    ),
}
# How old each may be, and which must be of one time with each other.
WINDOWS = {"glucose": DAY, "potassium": WEEK, "calcium": WEEK, "leukocytes": WEEK}


@dataclass(frozen=True)
class Made:
    """A reading as it stands in a record, when it was made, and what it becomes."""

    resource: dict[str, Any]
    path: tuple[str, str]
    at: datetime | None
    becomes: float | None

    @property
    def kind(self):
        return "body" if self.path[1] == "weight" else self.path[0]

    @property
    def window(self):
        return WINDOWS.get(self.path[1], DAY if self.kind == "vitalSigns" else QUARTER)


@st.composite
def moments(draw):
    """A time as FHIR writes it, and the moment that it stands for."""
    at = datetime(2025, 6, 17, tzinfo=UTC) - timedelta(
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
    *path, (low, high), units = KINDS[code]
    unit = draw(st.sampled_from(sorted(units)))
    expected = draw(st.floats(low, high))
    # The value in its unit that becomes the expected number; both scales are straight lines.
    line = units[unit] or same
    value = round((expected - line(0)) / (line(1) - line(0)), 4)
    text, at = draw(moments())
    coded = unit not in AS_PEOPLE_WRITE and draw(st.booleans())
    element = quantity(value, unit) if coded else {"value": value, "unit": unit}
    resource = observation(
        code, {k: v for k, v in element.items() if unit or k == "value"}, text, issued=None
    )
    return Made(resource, tuple(path), at, units[unit] and line(value))


def days(reading):
    count = (TODAY - reading.at.date()).days
    return 0 if count == -1 else count


@pytest.mark.slow
@settings(max_examples=fewer(200))
@given(st.lists(readings(), max_size=14))
def test_what_is_sent_is_the_newest_of_its_time_in_the_right_unit_and_nothing_else_is_missing(
    observed,
):
    record = taken(*(reading.resource for reading in observed), lab_codes="common")
    values = on_wire(record)
    newest = {}
    for reading in sorted(
        (reading for reading in observed if reading.at), key=lambda reading: reading.at
    ):
        if days(reading) >= 0:
            newest[reading.path] = reading
    latest = {
        kind: max((reading.at for reading in newest.values() if reading.kind == kind), default=None)
        for kind in ("vitalSigns", "labResults", "body")
    }
    expected = {}
    for path, reading in newest.items():
        ties = [
            other.becomes
            for other in observed
            if (other.path, other.at) == (path, reading.at) and days(other) >= 0
        ]
        fits = (
            max(timedelta(days=days(reading)), latest[reading.kind] - reading.at) <= reading.window
        )
        agree = None not in ties and all(tie == pytest.approx(ties[0], rel=1e-3) for tie in ties)
        exact = len(set(ties)) == 1  # in other units, equal values may differ in their last digits
        expected[path] = [*ties, *[None] * (not exact)] if fits and agree else [None]
    numbers = {
        (group, name): value
        for group in ("vitalSigns", "labResults")
        for name, value in values.get(group, {}).items()
    }
    for where, ties in expected.items():
        if where not in numbers:
            assert None in ties, where
        else:
            assert any(
                value is not None and numbers[where] == pytest.approx(value, rel=1e-3)
                for value in ties
            ), where
    assert numbers.keys() <= expected.keys()
    # Every reading is told of, once.
    report = record.fhir_report
    entries = {
        line.entry for line in (*report.taken, *report.left_out) if line.resource == "Observation"
    }
    assert entries == set(range(1, len(observed) + 1))
    json.dumps(asdict(report))
