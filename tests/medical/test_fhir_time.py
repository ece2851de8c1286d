"""PatientContext.from_fhir sends one point in time: no stale reading, nothing ended, nobody else's."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import date, timedelta

import pytest
from fhir_records import (
    ANY_AGE,
    DAY,
    ID,
    NEXT,
    PAST,
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
    taken,
)

import langchain_svc as svc

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")


def rate(at, value=88, **changes):
    return observation("8867-4", quantity(value, "/min"), at=at, **{"issued": None, **changes})


def breaths(at):
    return observation("9279-1", quantity(18, "/min"), at=at, issued=None)


def creatinine(at):
    return observation("2160-0", quantity(1.1, "mg/dL"), at=at, issued=None)


# -- the newest decides -----------------------------------------------------------------------------

OLD = observation("6298-4", quantity(4.1, "mmol/L"), at="2025-06-14", issued=None)


def newer(value=None, **changes):
    return observation("6298-4", value, at="2025-06-15", issued=None, **changes)


SEVEN = quantity(7.1, "mmol/L")
HEMOLYSED = concept(
    "error", "hemolysed", "http://terminology.hl7.org/CodeSystem/data-absent-reason"
)


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        (newer(valueString="<0.01"), "it is not a number with a unit (valueString)"),
        (
            newer(valueCodeableConcept=concept("260415000", "Not detected")),
            "(valueCodeableConcept)",
        ),
        (newer(dataAbsentReason=HEMOLYSED), "value is absent"),
        (newer(SEVEN, dataAbsentReason=HEMOLYSED), "value is absent"),
        (newer(valueBoolean=True), "(valueBoolean)"),
        (newer(valueInteger=4), "(valueInteger)"),
        (newer(valueRange={"low": SEVEN}), "(valueRange)"),
        (newer(), "it has no value"),
        (newer(quantity(4, "mmol/L", comparator="<")), "it is a bound"),
        (newer(SEVEN, status="preliminary"), "status is not final"),
        (newer(SEVEN, status="cancelled"), "status is not final"),
        (newer(SEVEN, status="unknown"), "status is not final"),
        (newer({"value": 4}), "it has no unit"),
        (newer(quantity(4, "furlong")), "cannot be converted"),
        (
            newer(quantity(45, "mmol/L")),
            "it is not between 0.5 and 20 mmol/L, which no patient has",
        ),
        (newer(SEVEN, modifierExtension=[{"url": "http://x.example"}]), "modifierExtension"),
        (newer(SEVEN, meta={"security": [{"code": "R"}]}), "labelled as restricted"),
        (
            {**newer(SEVEN), "effectiveDateTime": "2025-06-15 10:00"},
            "effectiveDateTime is not what FHIR R4 allows",
        ),
    ],
)
def test_whatever_the_newest_is_no_older_number_takes_its_place(resource, reason):
    for order in ((OLD, resource), (resource, OLD)):
        record = taken(*order, lab_codes="common")
        assert record.lab_results is None
        reasons_by_entry = {line.entry: line.reason for line in record.fhir_report.left_out}
        assert reason in reasons_by_entry[order.index(resource) + 1]
        assert reasons_by_entry[order.index(OLD) + 1] == "there is a newer one"


@pytest.mark.parametrize(
    "resource",
    [
        newer(SEVEN, status="entered-in-error"),
        newer(status="registered"),
        newer(SEVEN, focus=[{"reference": "RelatedPerson/1"}]),
        newer(SEVEN, subject={"reference": "Group/1"}),
        newer(SEVEN) | {"effectiveDateTime": "2025-07-01"},
        newer(SEVEN) | {"effectiveDateTime": "2025-07-01 10:00"},
    ],
)
def test_what_never_was_or_is_not_yet_decides_nothing(resource):
    record = taken(OLD, resource, lab_codes="common")
    assert sent(OLD, resource, lab_codes="common")["labResults"] == {"potassium": 4.1}
    assert [line.entry for line in record.fhir_report.left_out] == [2]


def test_the_newest_component_decides_as_well():
    absent = pressure(150, 95, at="2025-06-15T09:00:00Z")
    diastolic = concept("8462-4", "x", "http://loinc.org")
    absent["component"][1] = {"code": diastolic, "dataAbsentReason": HEMOLYSED}
    record = taken(pressure(118, 44, at="2025-06-15T08:00:00Z"), absent)
    assert (record.vital_signs.systolic, record.vital_signs.diastolic) == (150, None)
    absent["component"][1] |= {"modifierExtension": [{"url": "http://x.example"}]}
    assert taken(absent).vital_signs.systolic == 150


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (
            rate("2025-06-15", 61, issued="2025-03-02T00:00:00Z"),
            rate("2025-06-15", 62, issued="2025-03-01T00:00:00Z"),
            61,
        ),
        (rate("2025-06-15", 61), rate("2025-06-15", 62, status="preliminary"), 61),
        (rate("2025-06-15", 61, status="amended"), rate("2025-06-14", 62), 61),
        (rate("2025-06-15", 61, status="corrected"), rate("2025-06-14", 62), 61),
        (
            rate(None, 61, effectivePeriod={"start": "2025-06-01", "end": "2025-06-15"}),
            rate(None, 62, effectiveInstant="2025-06-14T00:00:00Z"),
            61,
        ),
        (
            rate(None, 61, issued="2025-06-14T09:00:00Z"),
            rate(None, 62, effectiveInstant="2025-06-15T00:00:00Z"),
            62,
        ),
        (rate("2016-12-31T23:59:60Z", 61), rate("2016-12-31T23:59:58Z", 62), 61),
        (
            rate(None, 61, issued="2016-12-31T23:59:60.5Z"),
            rate("2016-12-31T23:59:58+00:00", 62),
            61,
        ),
    ],
)
def test_which_of_two_is_the_newest(first, second, expected):
    assert taken(first, second, **ANY_AGE).vital_signs.heart_rate == expected


# -- the possible -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "value", "unit", "there"),
    [
        ("2160-0", 0.9, "Mg/dL", False),
        ("2160-0", 80, "mg/dL", False),
        ("2160-0", 0.9, "mg/dL", True),
        ("2823-3", 45, "mmol/L", False),
        ("2823-3", 9.5, "mmol/L", True),
        ("2708-6", 970, "%", False),
        ("2708-6", 0.97, "%", False),
        ("2708-6", 0.97, "1", True),
        ("29463-7", 3500, "kg", False),
        ("29463-7", 3500, "g", True),
        ("8302-2", 1.75, "cm", False),
        ("8302-2", 1.75, "m", True),
        ("8310-5", 98.6, "Cel", False),
        ("8480-6", 16.2, "mm[Hg]", False),
        ("718-7", 140, "g/dL", False),
        ("718-7", 140, "g/L", True),
        ("2345-7", 5.5, "mmol/L", True),
        ("1751-7", 40, "g/dL", False),
        ("6301-6", 2.4, "%", False),
        ("2744-1", 7.4, "[pH]", True),
        ("2744-1", 75, "[pH]", False),
    ],
)
def test_a_number_that_no_patient_has_is_left_out_by_name(code, value, unit, there):
    resource = observation(code, quantity(value, unit))
    record = taken(resource, lab_codes="common")
    assert bool(record.vital_signs or record.lab_results) is there
    left_out = record.fhir_report.left_out
    assert [line.code for line in left_out] == [code] * (not there)
    for line in left_out:
        assert line.name
        assert str(line).startswith(f"{line.name}: it")
        assert str(value) not in str(line)


def test_bounds_hold_in_whatever_unit_is_sent():
    resource = observation("2160-0", quantity(8000, "umol/L"))  # 90 mg/dL
    for units in ({}, {"creatinine": "umol/L"}):
        assert "between 0.01 and 75 mg/dL" in reasons(taken(resource, units=units))[0]


@pytest.mark.parametrize(
    ("code", "value", "name", "expected"),
    [
        ("6301-6", {"value": 2.4}, "inr", 2.4),
        ("6301-6", {"value": 2.4, "unit": "INR"}, "inr", 2.4),
        (
            "6301-6",
            {
                "value": 2.4,
                "unit": "ratio",
                "system": "http://snomed.info/sct",
                "code": "118586006",
            },
            "inr",
            2.4,
        ),
        ("2744-1", {"value": 7.31}, "arterialPh", 7.31),
        ("2160-0", {"value": 1.1, "code": "mg/dL"}, "creatinine", 1.1),
        (
            "14682-9",
            {
                "value": 122,
                "unit": "umol/L",
                "system": "http://snomed.info/sct",
                "code": "258814008",
            },
            "creatinine",
            1.38006,
        ),
        (
            "14682-9",
            {"value": 122, "system": "http://snomed.info/sct", "code": "258814008"},
            None,
            None,
        ),
        ("2823-3", {"value": 4}, None, None),
    ],
)
def test_numbers_without_a_unit_of_ucum_are_read_where_they_are_plain(code, value, name, expected):
    record = taken(observation(code, value), lab_codes="common")
    numbers = record.lab_results.model_extra or {} if record.lab_results else {}
    numbers |= {"creatinine": record.lab_results.creatinine} if name == "creatinine" else {}
    assert numbers == ({name: expected} if name else {})
    assert len(reasons(record)) == (name is None)


# -- windows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "unit", "value", "days"),
    [
        ("8867-4", "/min", 88, 1),
        ("10839-9", "ng/mL", 0.02, 1),
        ("67151-1", "ng/L", 12, 1),
        ("2524-7", "mmol/L", 1, 1),
        ("2019-8", "mm[Hg]", 40, 1),
        ("2345-7", "mg/dL", 99, 1),
        ("2823-3", "mmol/L", 4, 7),
        ("33762-6", "pg/mL", 80, 7),
        ("1988-5", "mg/L", 5, 7),
        ("2093-3", "mg/dL", 180, 90),
        ("4548-4", "%", 6, 90),
        ("2160-0", "mg/dL", 1, 90),
        ("29463-7", "kg", 80, 90),
    ],
)
def test_each_reading_has_a_window_of_its_own(code, unit, value, days):
    for old, there in ((days, True), (days + 1, False)):
        resource = observation(
            code, quantity(value, unit), at=str(TODAY - timedelta(days=old)), issued=None
        )
        record = taken(resource, lab_codes="common")
        assert bool(record.vital_signs or record.lab_results) is there
        assert len(record.fhir_report.left_out) == (not there)
    name = record.fhir_report.left_out[0].reason
    assert name == f"older than its window of {f'{days} days' if days > 1 else '24 hours'}"
    group = {"vital_signs": timedelta(days + 1), "lab_results": timedelta(days + 1)}
    assert taken(resource, lab_codes="common", windows=group).fhir_report.left_out == ()


def test_without_windows_any_age_is_taken_but_nothing_of_the_future():
    resources = [rate("1999"), creatinine(None), breaths("2025-09-01")]
    assert "it does not say when it was made" in reasons(taken(*resources))
    assert sent(*resources, **ANY_AGE) == {
        "age": 61, "sex": "female", "vitalSigns": {"heartRate": 88}, "labResults": {"creatinine": 1.1},
    }  # fmt: skip


def test_the_report_says_how_old_each_reading_is():
    record = taken(rate("2025-06-14T20:00:00Z"), creatinine("2025-05-16"), breaths("2011-04-08"))
    days = {line.field: line.days for line in record.fhir_report.taken}
    assert days["vital_signs.heart_rate"] == 1
    assert days["lab_results.creatinine"] == 30
    assert days["age"] is None
    text = str(record.fhir_report)
    assert (
        "30 days old" in text
        and "older than its window of 24 hours [entry 3 (5,182 days old)]" in text
    )
    assert json.loads(json.dumps(asdict(record.fhir_report)))["left_out"][0]["days"] == 5182


def test_troponin_assays_are_not_one():
    resources = [
        observation("6598-7", quantity(0.03, "ng/mL"), at="2025-06-14"),
        observation("89579-7", quantity(12, "ng/L"), at="2025-06-15"),
        observation("67151-1", quantity(22, "ng/L"), at="2025-06-15"),
        observation("10839-9", quantity(0.02, "ng/mL"), at="2025-06-15"),
    ]
    expected = {"troponinT": 0.03, "hsTroponinI": 12, "hsTroponinT": 22, "troponin": 0.02}
    assert sent(*resources)["labResults"] == expected


def test_a_medication_that_is_none_is_left_out():
    none = {
        "resourceType": "Medication",
        "id": "m",
        "code": concept("787481004", "No known medications"),
    }
    reference = {"reference": "Medication/m", "display": "none"}
    refers = medication(medicationCodeableConcept=None, medicationReference=reference)
    assert taken(none, refers).current_medications == ()


# -- the day of the record ---------------------------------------------------------------------------

BEGUN = [
    (condition, "onsetDateTime"),
    (condition, "onsetPeriod"),
    (condition, "recordedDate"),
    (medication, "authoredOn"),
    (lambda **c: medication("MedicationStatement", **c), "effectiveDateTime"),
    (lambda **c: medication("MedicationStatement", **c), "dateAsserted"),
    *(
        (
            lambda k=kind, **c: {
                "resourceType": k[0],
                "status": "completed",
                "code": {"text": "x"},
                k[1]: {"reference": f"Patient/{ID}"},
                **c,
            },
            element,
        )
        for kind, element in (
            (("Procedure", "subject"), "performedDateTime"),
            (("Procedure", "subject"), "performedPeriod"),
            (("AllergyIntolerance", "patient"), "onsetDateTime"),
            (("AllergyIntolerance", "patient"), "recordedDate"),
        )
    ),
]


@pytest.mark.parametrize(("make", "element"), BEGUN)
@pytest.mark.parametrize(
    ("at", "there"),
    [
        ("2019", True),
        (PAST, True),
        (DAY, True),
        (NEXT, False),
        ("2026", False),
        ("2031-05-01T10:00:00Z", False),
        ("2016-12-31T23:59:60Z", True),
    ],
)
def test_nothing_of_after_the_day_of_the_record_is_taken(make, element, at, there):
    value = {"start": at} if element.endswith("Period") else at
    resource = make(**{element: value})
    if resource["resourceType"] == "AllergyIntolerance":
        del resource["status"]
    record = taken({k: v for k, v in resource.items() if v is not None})
    assert bool(record.medical_history or record.current_medications) is there
    assert len(reasons(record)) == (not there)


# -- a patient who has died ------------------------------------------------------------------------

DEAD = {"deceasedDateTime": "2024-03-01T10:00:00Z"}


@pytest.mark.parametrize("day", [date(2024, 3, 1), date(2024, 2, 29)])
def test_the_record_of_a_day_before_a_death_is_read(day):
    source = bundle(rate("2024-02-29T12:00:00Z"), rate("2024-05-01"), first=patient(**DEAD))
    record = svc.PatientContext.from_fhir(source, today=day)
    assert (record.age, record.vital_signs.heart_rate) == (60, 88)
    assert reasons(record) == ["it was made after the day of the record"]


# -- what is not the patient's, not meant for all, or not there ------------------------------------


def labelled(code):
    system = "http://terminology.hl7.org/CodeSystem/v3-Confidentiality"
    return {"security": [{"system": system, "code": code}]}


@pytest.mark.parametrize(
    ("code", "there"),
    [
        ("R", False),
        ("V", False),
        ("HIV", False),
        ("TABOO", False),
        ("42CFRPart2", False),
        (None, False),
        *((code, True) for code in ["L", "M", "N", "U", "HTEST"]),
    ],
)
def test_restricted_resources_are_left_out(code, there):
    resource = condition("86406008", "HIV infection", meta=labelled(code))
    record = taken(resource, condition())
    assert ("HIV infection" in record.medical_history) is there
    assert [("restricted" in reason) for reason in reasons(record)] == ([] if there else [True])
    assert "HIV infection" in taken(resource, restricted=True).medical_history


def test_an_entry_that_is_to_be_deleted_is_left_out():
    source = bundle(condition(), condition(display="X"))
    source["entry"][1]["request"] = {"method": "DELETE", "url": "Condition/1"}
    record = svc.PatientContext.from_fhir(source, today=TODAY)
    assert record.medical_history == ("X",)
    assert "delete" in reasons(record)[0]


def test_a_pressure_keeps_its_pair_within_the_window():
    record = taken(
        pressure(150, 95, at="2025-06-15T10:00:00Z"), pressure(118, None, at="2025-06-15T11:00:00Z")
    )
    assert (record.vital_signs.systolic, record.vital_signs.diastolic) == (118, None)
