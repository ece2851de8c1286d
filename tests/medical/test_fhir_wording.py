"""What a clinician reads of a record: names, counts and units, under an answer and in the report."""

from __future__ import annotations

import re

import pytest
from fhir_records import (
    OWN,
    concept,
    condition,
    medication,
    observation,
    quantity,
    taken,
)
from peers import tool_call

import langchain_svc as svc
from langchain_svc.medical.fhir import fields_by_code

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")

FIELDS = {field.path: (code, field) for code, field in fields_by_code("common", {}, {}).items()}
UCUM_ALONE = re.compile(r"[][{}*]|\bCel\b|\bu[A-Zg]|m2")
ERIKA = "Erika Mustermann, room 7"


def told(box, record, kind=svc.SvcDecisionSupport):
    """What stands under an answer."""
    arguments = {"symptoms": ["cough"], "specialty": "pneumology"}
    if kind is svc.SvcMedicalConsult:
        arguments = {"message": "cough"}
    with kind(**box.medical, patient=record) as tool:
        return tool.invoke(tool_call(tool, arguments)).artifact.of_record


def reading(code, field):
    middle = max(field.low, 0.5) * 1.5
    return observation(code, quantity(middle, field.unit))


def allergy(**code):
    return {"resourceType": "AllergyIntolerance", "patient": OWN, "code": code}


# -- names and units --------------------------------------------------------------------------------


def test_readings_have_names_and_the_units_that_people_write(box):
    record = taken(*(reading(*known) for known in FIELDS.values()))
    report, under = str(record.fhir_report), told(box, record)
    lines = report.splitlines()
    names = [field.words for _, field in FIELDS.values()]
    assert len({*names}) == len(names)
    for code, field in FIELDS.values():
        assert code not in report
        assert "_" not in field.words
        assert field.words != field.name or field.name.islower()
        assert any(re.match(rf"  {field.words}(: | \[)", line) for line in lines), field
        assert re.search(rf"[(,] ?{field.words}[),]", under), field
    marked = [line for line in lines if UCUM_ALONE.search(re.sub(r" \[entr.*\]$", "", line))]
    assert not marked
    by_field = {line.field: line for line in record.fhir_report.taken}
    assert by_field["vital_signs.systolic"].unit == "mm[Hg]"
    assert "  systolic pressure: mmHg [entry 1 (of that day)]" in lines
    assert "  leukocytes: 10³/µL [entry" in report
    assert "  eGFR: mL/min/1.73 m² [entry" in report
    assert "  INR [entry" in report


@pytest.mark.parametrize("field", [field for _, field in FIELDS.values()], ids=lambda f: f.name)
def test_what_is_left_out_has_its_name_as_well(box, field):
    code = FIELDS[field.path][0]
    record = taken(observation(code, quantity(4, "furlong")))
    (line,) = record.fhir_report.left_out
    assert str(line).startswith(f"{field.words}: ")
    assert code not in str(line)
    assert not UCUM_ALONE.search(str(line))
    assert f"1 result ({field.words})" in told(box, record)


def test_names_in_a_record_that_nobody_knows_are_counted(box):
    labs = {"Urea Nitrogen": 12, ERIKA.replace(",", ""): 5, "HbA1c": 6.5}
    record = svc.PatientContext(vital_signs={"SpO2": 97, "Erika": 1}, lab_results=labs)
    under = told(box, record)
    assert "vital signs (oxygen saturation, 1 other), lab results (urea nitrogen, HbA1c, 1 other)" in under  # fmt: skip
    only = svc.PatientContext(lab_results={"Erika": 5})
    assert "lab results (1 reading)." in told(box, only)


def test_a_name_of_the_application_is_told(box):
    resource = observation("1798-8", quantity(80, "U/L"))
    options = {"lab_codes": {"1798-8": "CA 19-9"}, "units": {"CA 19-9": "U/L"}}
    assert "lab results (CA 19-9)" in told(box, taken(resource, **options))
    assert "  CA 19-9: U/L [entry 1" in str(taken(resource, **options).fhir_report)


@pytest.mark.parametrize(
    "system", ["http://loinc.org", "http://snomed.info/sct", "http://x.example"]
)
def test_of_a_result_that_is_not_read_nothing_is_shown_that_its_sender_wrote(box, system):
    strange, named = (
        {**observation("1", quantity(80, "U/L")), "code": concept(code, ERIKA, system)}
        for code in ("1798-8", ERIKA)
    )
    record = taken(strange, strange, named, condition())
    under = told(box, record)
    assert "Left out when the record was read: 3 results." in under
    for text in (under, str(record.fhir_report), repr(record.fhir_report)):
        assert "Erika" not in text
    code = " (2 of code 1798-8)" if system == "http://loinc.org" else ""
    assert f"Not read: 3 results{code}" in str(record.fhir_report)


# -- what is told, and where ------------------------------------------------------------------------

CLINICAL = ["MedicationAdministration", "Immunization", "DiagnosticReport", "Device", "CarePlan"]
ADMINISTRATIVE = [
    "Claim", "Encounter", "Organization", "Practitioner", "PractitionerRole", "Coverage",
    "ExplanationOfBenefit", "Location", "Provenance", "Appointment", "Account",
]  # fmt: skip


@pytest.mark.parametrize("kind", [*CLINICAL, *ADMINISTRATIVE])
def test_what_says_nothing_of_the_patients_health_stands_in_the_report_alone(box, kind):
    resource = {"resourceType": kind, "subject": OWN}
    record = taken(condition(), resource, resource)
    plain = told(box, taken(condition()))
    words = re.sub("(?<=[a-z])(?=[A-Z])", " ", kind).lower()
    words = {"diagnostic report": "report"}.get(words, words)
    several = "explanations of benefit" if " of " in words else f"{words}s"
    assert str(record.fhir_report).endswith(f"Not read: 2 {several}")
    if kind in ADMINISTRATIVE:
        assert told(box, record) == plain
    else:
        assert f"Left out when the record was read: 2 {several}." in told(box, record)


def test_what_a_clinician_misses_most_stands_first(box):
    unread = [{"resourceType": kind, "subject": OWN} for kind in reversed([*CLINICAL, "Claim"])]
    lost = [
        medication(status="unknown"),
        observation("2823-3", quantity(7.1, "furlong")),
        observation("1798-8", quantity(80, "U/L")),
        condition(clinical="resolved"),
        {**allergy(text="latex"), "modifierExtension": [{"url": "http://x.example"}]},
    ]
    assert told(box, taken(*unread, *lost)) == (
        "Sent of the patient's record: nothing. Left out when the record was read: 1 allergy, "
        "1 condition, 1 medication, 1 medication administration, 2 results (potassium, 1 other), "
        "1 care plan, 1 device, 1 report, 1 immunization. Not taken by this endpoint: age, sex. "
        "Not sent: vital signs, lab results, medical history."
    )  # fmt: skip


def test_an_allergy_that_is_only_typed_is_an_allergy(box):
    coded = allergy(coding=concept("91936005", "Allergy to penicillin")["coding"])
    resources = [allergy(text="latex"), allergy(text="nuts"), coded]
    assert "2 allergies (2 typed), 1 condition" in told(box, taken(*resources[:2], condition()))
    assert "3 allergies (2 typed)." in told(box, taken(*resources))
    assert "1 allergy." in told(box, taken(coded))
    assert "1 allergy." in told(box, taken(condition(), allergy(text="latex"), typed_texts="leave_out"))  # fmt: skip


# -- a record of many years -------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 30, 400])
def test_a_report_does_not_grow_with_what_is_older_or_repeated(box, count):
    heart_rates = [
        observation(
            "8867-4", quantity(60 + n % 30, "/min"), at=f"{2025 - n // 12}-06-{1 + n % 12:02}"
        )
        for n in range(count)
    ]
    record = taken(*heart_rates, *[condition()] * count, windows={"heart_rate": None})
    older = "result" if count == 2 else "results"
    report = str(record.fhir_report)
    assert f"  {count - 1} older {older}: there is a newer one\n" in report
    assert max(map(len, report.splitlines())) < 200
    assert len(record.fhir_report.left_out) == 2 * (count - 1)
    assert "older" not in told(box, record)
