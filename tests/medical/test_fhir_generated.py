"""PatientContext.from_fhir on generated records: times, zones, values, units, languages.

What is expected is computed here from the published factors, independently of the package.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from fhir_records import NAMES, bundle, concept, condition, medication, observation, patient
from hypothesis import given, settings
from hypothesis import strategies as st

import langchain_svc as svc
from langchain_svc.patient import on_wire

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")

TODAY = date(2025, 6, 15)
DAY, QUARTER = timedelta(hours=24), timedelta(days=90)


def times(factor):
    return lambda value: value * factor


same = times(1)
# By LOINC code: the name sent, plausible values in the unit sent, and what each unit becomes; None
# where it must be refused.
KINDS: dict[str, tuple[str, str, tuple[float, float], dict[str, Any]]] = {
    "8310-5": ("vitalSigns", "temperature", (35, 41), {"Cel": same, "[degF]": lambda v: (v - 32) / 1.8, "K": lambda v: v - 273.15, "mg/dL": None}),
    "8867-4": ("vitalSigns", "heartRate", (30, 200), {"/min": same, "{beats}/min": same, "bpm": same, "Hz": times(60), "": None}),
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
# Which readings must be of one time with each other.
WINDOWS = {"vitalSigns": DAY, "labResults": QUARTER, "body": QUARTER}


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
        zone = (
            timezone(timedelta(hours=draw(st.integers(-11, 13))))
            if form == "zone"
            else timezone.utc
        )
        return at.astimezone(zone).isoformat(), at.astimezone(zone)
    start = at.replace(hour=0, minute=0)
    return (
        (at.strftime("%Y-%m-%d"), start)
        if form == "day"
        else (at.strftime("%Y-%m"), start.replace(day=1))
    )


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


@settings(max_examples=200, deadline=None)
@given(st.lists(readings(), max_size=14), st.booleans(), st.randoms())
def test_what_is_sent_is_the_newest_of_its_time_in_the_right_unit_and_nothing_else_is_missing(
    made, coded, order
):
    held = [one.resource(coded=coded) for one in made]
    order.shuffle(held)
    record = svc.PatientContext.from_fhir(
        bundle(*held), today=TODAY, lab_codes="common", problems="leave_out"
    )
    sent = on_wire(record)
    usable = [one for one in made if one.at is None or days(one) >= 0]
    newest = {}
    for one in sorted((one for one in usable if one.at), key=lambda one: one.at):
        newest[one.code] = one
    latest = {
        kind: max((one.at for one in newest.values() if one.kind == kind), default=None)
        for kind in WINDOWS
    }
    expected = {}
    for one in newest.values():
        width = WINDOWS[one.kind]
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


# -- texts ------------------------------------------------------------------------------------------

PHRASES = {
    "en": "chest pain since {}, told by {}", "de": "Brustschmerz seit {}, berichtet von {}", "fr": "douleur depuis le {}, selon {}", "es": "dolor desde el {}, según {}", "it": "dolore dal {}, secondo {}", "pt": "dor desde {}, segundo {}",
    "nl": "pijn sinds {}, volgens {}", "ja": "{} から胸痛（{} さん）", "ar": "ألم منذ {} ، {}", "el": "πόνος από {} , {}",
}  # fmt: skip
DATES = ["2015-06-22", "22.06.2015", "06/22/2015", "22/6/15", "22 June 2015", "June 22, 2015", "22. Juni 2015", "22 juin 2015", "22 de junio de 2015", "22 giugno 2015", "22 de junho de 2015", "22 juni 2015", "1963-06-16", "19630616"]  # fmt: skip
PEOPLE = [
    NAMES["family"],
    NAMES["given"],
    NAMES["contact"],
    NAMES["mrn"],
    NAMES["phone"],
    NAMES["mail"],
    NAMES["street"],
]
MAKERS = [
    lambda code: condition(code=code), lambda code: medication(medicationCodeableConcept=code), lambda code: medication("MedicationStatement", medicationCodeableConcept=code),
    lambda code: {"resourceType": "FamilyMemberHistory", "status": "completed", "patient": {"reference": "Patient/p"}, "relationship": concept("MTH", "mother", "http://x.example"), "condition": [{"code": code}]},
    lambda code: {"resourceType": "Procedure", "status": "completed", "subject": {"reference": "Patient/p"}, "code": code},
    lambda code: {"resourceType": "AllergyIntolerance", "patient": {"reference": "Patient/p"}, "code": code},
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(MAKERS),
            st.sampled_from(sorted(PHRASES)),
            st.sampled_from(DATES),
            st.sampled_from(PEOPLE),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_nothing_typed_is_sent_unmarked_and_nothing_that_identifies_is_sent(parts, masked):
    held, published = [], 0
    for number, (make, language, day, person, coded) in enumerate(parts):
        text = f"{number}: {PHRASES[language].format(day, person)}"
        code = {"text": text}
        if coded:
            code = {
                "coding": [
                    {
                        "system": "http://snomed.info/sct",
                        "code": "1",
                        "display": f"Disorder {number}",
                    }
                ],
                "text": text,
            }
            published += 1
        one = make(code)
        for name in ("subject", "patient"):
            if name in one:
                one[name] = {"reference": "Patient/p"}
        held.append(one)
    made = bundle(*held, first=patient(id="p"))
    made["entry"][0]["fullUrl"] = "https://a.example/fhir/Patient/p"
    record = svc.PatientContext.from_fhir(
        made, today=TODAY, typed_texts="mask" if masked else "leave_out"
    )
    values = [*record.medical_history, *record.current_medications, *record.risk_factors]
    everything = " ".join(values) + str(record.fhir_report) + repr(record)
    for _, _, day, person, _ in parts:
        assert day not in everything
        assert person not in everything
    notes = [one.note for one in record.fhir_report.taken if one.field not in {"age", "sex"}]
    typed = [value for value in values if "Disorder" not in value or "[...]" in value]
    assert len(notes) == len(values) == (len(parts) if masked else len(values))
    assert sum("typed" in note for note in notes) >= len(typed)
    assert masked or not typed
