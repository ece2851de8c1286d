"""PatientContext.from_fhir sends one point in time: no stale reading, nothing ended, nobody else's."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone

import pytest
from fhir_records import (
    ANY_AGE,
    TODAY,
    bundle,
    concept,
    condition,
    medication,
    observation,
    patient,
    pressure,
    quantity,
    reasons,
    sent,
    smoking,
    taken,
)  # fmt: skip
from hypothesis import given
from hypothesis import strategies as st

import langchain_svc as svc

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")


def rate(at, value=88):
    return observation("8867-4", quantity(value, "/min"), at=at, issued=None)


def breaths(at):
    return observation("9279-1", quantity(18, "/min"), at=at, issued=None)


def creatinine(at):
    return observation("2160-0", quantity(1.1, "mg/dL"), at=at, issued=None)


# -- windows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "there"),
    [
        ("2025-06-15T23:00:00Z", True), ("2025-06-15", True), ("2025-06-14T01:00:00Z", True), ("2025-06-13T23:00:00Z", False), ("2025-06", False), ("2011-04-08", False),
        ("2025-06-16T01:00:00+10:00", True), ("2025-06-17T01:00:00Z", False), ("2031-01-01", False), (None, False),
    ],
)  # fmt: skip
def test_vital_signs_are_of_today_or_the_day_before(at, there):
    record = taken(rate(at))
    assert (record.vital_signs is not None) is there
    assert len(record.fhir_report.left_out) == (not there)


def test_vital_signs_are_of_one_time():
    record = taken(rate("2025-06-15T20:00:00Z"), breaths("2025-06-14T19:00:00Z"))
    assert record.vital_signs.heart_rate == 88
    assert record.vital_signs.respiratory_rate is None
    (out,) = record.fhir_report.left_out
    assert (out.entry, out.code, out.days) == (2, "9279-1", 1)
    assert "newest of its kind than vital_window allows" in out.reason
    wider = taken(
        rate("2025-06-15T20:00:00Z"),
        breaths("2025-06-14T19:00:00Z"),
        vital_window=timedelta(days=2),
    )
    assert wider.vital_signs.respiratory_rate == 18


@pytest.mark.parametrize(
    ("at", "there"), [("2025-03-17", True), ("2025-03-16", False), ("2005", False)]
)
def test_laboratory_results_have_a_window_of_their_own(at, there):
    record = taken(creatinine(at), rate("2025-06-15"))
    assert (record.lab_results is not None) is there
    assert record.vital_signs.heart_rate == 88
    assert taken(creatinine(at), lab_window=timedelta(days=36_500)).lab_results.creatinine == 1.1


def test_without_windows_any_age_is_taken_but_nothing_of_the_future():
    made = [rate("1999"), creatinine(None), breaths("2025-09-01")]
    assert sent(*made, **ANY_AGE) == {
        "age": 61, "sex": "female", "vitalSigns": {"heartRate": 88}, "labResults": {"creatinine": 1.1},
    }  # fmt: skip


def test_the_report_says_how_old_each_reading_is():
    record = taken(rate("2025-06-14T20:00:00Z"), creatinine("2025-05-16"), breaths("2011-04-08"))
    days = {one.field: one.days for one in record.fhir_report.taken}
    assert days["vital_signs.heart_rate"] == 1
    assert days["lab_results.creatinine"] == 30
    assert days["age"] is None
    text = str(record.fhir_report)
    assert "lab_results.creatinine: Observation entry[2], 2160-0, mg/dL, 30 days old" in text
    assert "entry[3] 9279-1, 5,182 days old: older than vital_window allows" in text
    assert json.loads(json.dumps(record.fhir_report.to_dict()))["left_out"][0]["days"] == 5182


def test_the_report_counts_what_is_alike():
    made = [rate(f"2025-06-15T00:{minute:02}:00Z") for minute in range(40)]
    text = str(taken(*made, condition(), condition(display="X")).fhir_report)
    assert "39 Observation, entries 1 (of that day), 2" in text
    assert "and 34 more: a newer one was taken" in text
    assert "medical_history: 2 Condition, entries 41, 42" in text
    assert len(text.splitlines()) < 12


@pytest.mark.parametrize("since", [date(2025, 6, 10), datetime(2025, 6, 10, tzinfo=timezone.utc)])
def test_since_loses_no_smoking_status(since):
    record = taken(smoking("449868002", at="2019-01-01"), creatinine("2025-06-01"), since=since)
    assert record.risk_factors == ("daily smoker",)
    assert record.lab_results is None


def test_a_future_answer_about_smoking_does_not_count():
    assert taken(smoking("449868002"), smoking("266919005", at="2026-01-01")).risk_factors == (
        "daily smoker",
    )


MOMENTS = st.datetimes(
    datetime.fromisoformat("2024-01-01"), datetime.fromisoformat("2026-01-01")
).map(lambda at: at.isoformat() + "Z")


@given(
    st.lists(st.tuples(st.sampled_from([rate, breaths, creatinine]), MOMENTS), max_size=8),
    st.dates(date(2024, 6, 1), date(2025, 6, 1)),
    st.integers(0, 200),
    st.integers(0, 200),
)
def test_no_stale_reading_is_sent(made, today, vital, lab):
    windows = {"vital_window": timedelta(days=vital), "lab_window": timedelta(days=lab)}
    record = svc.PatientContext.from_fhir(
        bundle(*(make(at) for make, at in made)), today=today, **windows
    )
    moments = [datetime.fromisoformat(at[:-1]) for _, at in made]
    for group, width in (("vital_signs", vital), ("lab_results", lab)):
        of_group = [one for one in record.fhir_report.taken if one.field.startswith(group)]
        for one in of_group:
            assert -1 <= (today - moments[one.entry - 1].date()).days <= width
        taken_at = [moments[one.entry - 1] for one in of_group]
        assert not taken_at or max(taken_at) - min(taken_at) <= timedelta(days=width)


def test_troponin_assays_are_not_one():
    made = [
        observation("6598-7", quantity(0.03, "ng/mL"), at="2025-06-14"),
        observation("89579-7", quantity(12, "ng/L"), at="2025-06-15"),
        observation("67151-1", quantity(22, "ng/L"), at="2025-06-15"),
        observation("10839-9", quantity(0.02, "ng/mL"), at="2025-06-15"),
    ]
    assert sent(*made)["labResults"] == {
        "troponinT": 0.03,
        "hsTroponinI": 12,
        "hsTroponinT": 22,
        "troponin": 0.02,
    }
    mapped = taken(made[1], lab_codes={"89579-7": "troponin"})
    assert mapped.lab_results.troponin == 0.012


@pytest.mark.parametrize("window", [24, timedelta(-1), "1 day"])
def test_a_window_is_a_timedelta(window):
    for name in ("vital_window", "lab_window"):
        with pytest.raises(svc.SvcRequestError, match=f"{name} must be a timedelta"):
            taken(**{name: window})


def test_today_may_be_a_moment():
    made = bundle(rate("2025-06-15T20:00:00Z"))
    at = datetime(2025, 6, 15, 21, tzinfo=timezone.utc)
    assert svc.PatientContext.from_fhir(made, today=at).vital_signs.heart_rate == 88


def test_a_medication_that_is_none_is_left_out():
    none = {"resourceType": "Medication", "id": "m", "code": {"text": "No known medications"}}
    refers = medication(
        medicationCodeableConcept=None,
        medicationReference={"reference": "Medication/m", "display": "none"},
    )
    assert taken(none, refers).current_medications == ()


# -- a patient who has died ------------------------------------------------------------------------

DEAD = {"deceasedDateTime": "2024-03-01T10:00:00Z"}


@pytest.mark.parametrize("first", [patient(**DEAD), patient(deceasedBoolean=True)])
def test_a_patient_who_has_died_is_refused(first):
    with pytest.raises(svc.SvcRequestError, match=r"entry\[0\].*has died.*deceased=True"):
        svc.PatientContext.from_fhir(bundle(first=first))


def test_a_record_ends_at_death():
    made = bundle(rate("2024-02-29T12:00:00Z"), rate("2024-05-01"), first=patient(**DEAD))
    made["entry"].reverse()
    record = svc.PatientContext.from_fhir(made, today=TODAY, deceased=True)
    assert (record.age, record.vital_signs.heart_rate) == (60, 88)
    assert reasons(record) == ["it was made after the day of the record"]


def test_a_death_without_a_day_gives_no_age():
    made = bundle(first=patient(deceasedBoolean=True))
    record = svc.PatientContext.from_fhir(made, today=TODAY, deceased=True)
    assert (record.age, record.sex) == (None, "female")
    assert "age is not sent" in reasons(record)[0]
    assert (
        svc.PatientContext.from_fhir(bundle(first=patient(deceasedBoolean=False)), today=TODAY).age
        == 61
    )


# -- what is not the patient's, not meant for all, or not there ------------------------------------


def labelled(code):
    system = "http://terminology.hl7.org/CodeSystem/v3-Confidentiality"
    return {"security": [{"system": system, "code": code}]}


@pytest.mark.parametrize(("code", "there"), [("R", False), ("V", False), ("N", True), ("U", True)])
def test_restricted_resources_are_left_out(code, there):
    made = condition("86406008", "HIV infection", meta=labelled(code))
    record = taken(made, condition())
    assert ("HIV infection" in record.medical_history) is there
    assert [("restricted" in reason) for reason in reasons(record)] == ([] if there else [True])
    assert "HIV infection" in taken(made, restricted=True).medical_history


def test_an_observation_of_somebody_else_in_the_patients_record_is_left_out():
    fetus = observation("8867-4", quantity(140, "/min"), focus=[{"reference": "RelatedPerson/1"}])
    record = taken(fetus)
    assert record.vital_signs is None
    assert "focus" in reasons(record)[0]


def test_an_entry_that_is_to_be_deleted_is_left_out():
    made = bundle(condition(), condition(display="X"))
    made["entry"][1]["request"] = {"method": "DELETE", "url": "Condition/1"}
    record = svc.PatientContext.from_fhir(made, today=TODAY)
    assert record.medical_history == ("X",)
    assert "delete" in reasons(record)[0]


@pytest.mark.parametrize(
    ("changes", "there"),
    [
        ({"effectivePeriod": {"start": "2020-01-01", "end": "2025-06-14"}}, False), ({"effectivePeriod": {"end": "2025-06-15"}}, True), ({"effectivePeriod": {"end": "2025-06-16"}}, True),
        ({"effectivePeriod": {"start": "2020"}}, True), ({"effectivePeriod": {"end": "2024"}}, False), ({"effectivePeriod": {"end": "2025"}}, True), ({"effectivePeriod": {"end": "2025-05"}}, False),
        ({"effectivePeriod": {"start": "2025-07-01"}}, False), ({"effectiveDateTime": "2025-06-20"}, False), ({"effectiveDateTime": "2020"}, True),
    ],
)  # fmt: skip
def test_medications_that_have_ended_or_not_begun_are_left_out(changes, there):
    record = taken(medication("MedicationStatement", **changes))
    assert bool(record.current_medications) is there
    assert len(reasons(record)) == (not there)


@pytest.mark.parametrize(
    ("changes", "history"),
    [
        ({"abatementDateTime": "2025-09-01"}, "X"), ({"abatementPeriod": {"start": "2025-06-01", "end": "2026-01-01"}}, "X"), ({"abatementDateTime": "2025-06-01"}, "X (past)"), ({"abatementPeriod": {"start": "2025-06-01"}}, "X (past)"),
        ({"abatementAge": {"value": 50, "unit": "a"}}, "X (past)"),
    ],
)  # fmt: skip
def test_what_ends_in_the_future_is_not_over(changes, history):
    made = condition(display="X", clinicalStatus={}, **changes)
    assert taken(made, past_conditions=True).medical_history == (history,)


IPS = "http://hl7.org/fhir/uv/ips/CodeSystem/absent-unknown-uv-ips"


@pytest.mark.parametrize(
    ("code", "there"),
    [
        (concept("no-problem-info", "No information about problems", IPS), False), (concept("160245001", "No current problems or disability"), False), ({"text": "No known problems"}, False), ({"text": "None known"}, False),
        (concept("UNK", "x", "http://terminology.hl7.org/CodeSystem/v3-NullFlavor"), False), ({"text": "unknown"}, False), ({"text": "Cancer of unknown primary"}, True), ({"text": "Nodule of thyroid"}, True), ({"text": "Unknown fever"}, True),
    ],
)  # fmt: skip
def test_that_nothing_is_known_is_no_condition_and_no_medication(code, there):
    for made in (condition(code=code), medication(medicationCodeableConcept=code)):
        record = taken(made)
        assert bool(record.medical_history or record.current_medications) is there
        assert ["nothing" in reason for reason in reasons(record)] == [True] * (not there)


def test_a_pressure_keeps_its_pair_within_the_window():
    record = taken(
        pressure(150, 95, at="2025-06-15T10:00:00Z"), pressure(118, None, at="2025-06-15T11:00:00Z")
    )
    assert (record.vital_signs.systolic, record.vital_signs.diastolic) == (118, None)
