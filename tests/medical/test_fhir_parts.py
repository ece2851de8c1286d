"""The parts of a statement: what stands beside its words is sent, told of or harmless; and when."""

from __future__ import annotations

import pytest
from fhir_records import (
    TODAY,
    bundle,
    condition,
    medication,
    observation,
    on_wire,
    patient,
    quantity,
    reasons,
    taken,
)

import langchain_svc as svc

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")

NULL_FLAVOR = "http://terminology.hl7.org/CodeSystem/v3-NullFlavor"
ABSENT = "http://terminology.hl7.org/CodeSystem/data-absent-reason"
IPS = "http://hl7.org/fhir/uv/ips/CodeSystem/absent-unknown-uv-ips"
STATEMENTS = {
    "Condition": lambda code: condition(code=code),
    "MedicationRequest": lambda code: medication(medicationCodeableConcept=code),
    "AllergyIntolerance": lambda code: {
        "resourceType": "AllergyIntolerance",
        "patient": condition()["subject"],
        "code": code,
    },
}


def texts(record):
    return (*record.medical_history, *record.current_medications, *record.risk_factors)


# -- a code that says nothing ------------------------------------------------------------------------


@pytest.mark.parametrize("make", STATEMENTS.values(), ids=STATEMENTS)
@pytest.mark.parametrize(
    "codings",
    [
        [{"system": NULL_FLAVOR, "code": "OTH"}],
        [{"system": ABSENT, "code": "unsupported"}],
        [{"system": NULL_FLAVOR, "code": "UNK"}, {"code": "L1", "display": "Warfarin"}],
        [{"code": "L1", "display": "Warfarin"}, {"system": IPS, "code": "no-known-medications"}],
    ],
)
def test_words_beside_a_code_that_says_nothing_are_sent(make, codings):
    (text,) = texts(taken(make({"coding": codings, "text": "Warfarin"})))
    assert text.endswith("Warfarin")
    named = [coding for coding in codings if "display" in coding]
    if named:
        assert texts(taken(make({"coding": codings}))) == (text,)


@pytest.mark.parametrize("make", STATEMENTS.values(), ids=STATEMENTS)
@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ({"coding": [{"system": NULL_FLAVOR, "code": "UNK", "display": "unknown"}]}, False),
        (
            {
                "coding": [{"system": IPS, "code": "no-known-x", "display": "None known"}],
                "text": "none known",
            },
            False,
        ),
        (
            {
                "coding": [{"system": IPS, "code": "no-known-x", "display": "None known"}],
                "text": "none but penicillin",
            },
            True,
        ),
    ],
)
def test_a_code_that_says_nothing_alone_is_not_sent(make, code, missing):
    record = taken(make(code))
    assert texts(record) == ()
    assert bool(record.fhir_report.missing()) is missing


# -- what stands beside ------------------------------------------------------------------------------

MODIFIED = {"modifierExtension": [{"url": "http://x.example/absent", "valueBoolean": True}]}
DOSED = {"text": "4 tablets"}


def dosed(**parts):
    return medication(display="X", dosageInstruction=[{**DOSED, **parts}])


def relative(**parts):
    part = {"code": {"text": "Breast cancer"}, **parts}
    return {
        "resourceType": "FamilyMemberHistory",
        "status": "completed",
        "patient": condition()["subject"],
        "relationship": {"text": "mother"},
        "condition": [part],
    }


def reacting(**parts):
    part = {"manifestation": [{"text": "rash"}], **parts}
    return {**STATEMENTS["AllergyIntolerance"]({"text": "nuts"}), "reaction": [part]}


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        (
            dosed(additionalInstruction=[{"text": "once a week, not daily"}]),
            "X; 4 tablets; once a week, not daily",
        ),
        (dosed(patientInstruction="stop if fever"), "X; 4 tablets; stop if fever"),
        (dosed(asNeededBoolean=True), "X; 4 tablets; as needed"),
        (dosed(asNeededCodeableConcept={"text": "pain"}), "X; 4 tablets; as needed for pain"),
        (dosed(asNeededBoolean=False, sequence=1), "X; 4 tablets"),
    ],
)
def test_what_stands_beside_a_dosage_is_sent_with_it(resource, text):
    record = taken(resource)
    assert record.current_medications == (text,)
    assert record.fhir_report.missing() == {}


@pytest.mark.parametrize(
    ("resource", "part", "reason"),
    [
        (
            dosed(maxDosePerAdministration=quantity(2, "g")),
            "detail",
            "dosageInstruction.maxDosePerAdministration is not read",
        ),
        (condition(note=[{"text": "not so"}]), "note", "note is not read"),
        (condition(onsetString="as a child"), "detail", "onsetString is not read"),
        (relative(note=[{"text": "aunt"}]), "note", "condition.note is not read"),
        (reacting(description="as a child"), "detail", "reaction.description is not read"),
        (
            observation("8867-4", quantity(88, "/min"), note=[{"text": "moved"}]),
            "note",
            "note is not read",
        ),
        (
            {**reacting(), "Erika Mustermann": 1},
            "detail",
            "an element that FHIR R4 does not have is not read",
        ),
    ],
)
def test_what_is_not_sent_of_a_statement_is_told(resource, part, reason):
    record = taken(resource)
    assert on_wire(record) != on_wire(taken())
    assert record.fhir_report.missing() == {part: 1}
    assert reasons(record) == [reason]
    assert "Mustermann" not in str(record.fhir_report)


@pytest.mark.parametrize(
    ("resource", "part", "left"),
    [
        (dosed(**MODIFIED), "dosage", ("X",)),
        (relative(**MODIFIED), "FamilyMemberHistory", ()),
        (reacting(**MODIFIED), "reaction", ("allergy as written: nuts",)),
        (
            condition(display="Z", stage=[{"summary": {"text": "IV"}, **MODIFIED}]),
            "stage",
            ("Z",),
        ),
    ],
)
def test_a_part_that_something_may_change_is_not_sent(resource, part, left):
    record = taken(resource)
    assert texts(record) == left
    assert record.fhir_report.missing() == {part: 1}


def test_statements_within_other_resources_are_told():
    inner = [
        observation("2823-3", quantity(7.1, "mmol/L")),
        condition(),
        {"resourceType": "Device"},
    ]
    for kind in ("DiagnosticReport", "List", "MedicationDispense"):
        record = taken({"resourceType": kind, "contained": inner})
        assert record.fhir_report.missing() == {"Observation": 1, "Condition": 1}
        assert f"contained in a {kind}" in str(record.fhir_report)


# -- medicines ---------------------------------------------------------------------------------------


def stepwise(*steps):
    return medication(
        display="X",
        dosageInstruction=[{"text": text, "timing": timing} for text, timing in steps],
    )


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        (medication(display="X", authoredOn="2025-01-03"), "X (ordered 2025-01)"),
        (medication(display="X", authoredOn="2019"), "X (ordered 2019)"),
        (
            {
                **stepwise(("daily", {"repeat": {"boundsDuration": quantity(7, "d")}})),
                "authoredOn": "2019-02-01",
            },
            "X (ordered 2019-02, for 7 days); daily",
        ),
        (
            stepwise(
                ("daily", {"repeat": {"boundsRange": {"low": quantity(5, "d"), "high": quantity(7, "d")}}})
            ),
            "X (for 5 days to 7 days); daily",
        ),
        (stepwise(("once", {"event": ["2025-03-01T10:00:00Z"]})), "X (2025-03); once"),
        (
            stepwise(
                ("40 mg", {"repeat": {"boundsPeriod": {"start": "2025-05-01", "end": "2025-05-07"}}}),
                ("5 mg", {"repeat": {"boundsPeriod": {"start": "2025-06-10", "end": "2025-06-30"}}}),
            ),
            "X (2025-06 to 2025-06); 5 mg",
        ),
        (
            stepwise(
                ("20 mg", {"repeat": {"boundsPeriod": {"end": "2025-06-20"}}}),
                ("5 mg", {"repeat": {"boundsPeriod": {"start": "2025-06-10"}}}),
            ),
            "X; 20 mg (until 2025-06); 5 mg (since 2025-06)",
        ),
        (
            medication("MedicationStatement", "X", effectivePeriod={"start": "2024-03-01"}),
            "X (since 2024-03)",
        ),
        (medication("MedicationStatement", "X", dateAsserted="2024-03-01"), "X (recorded 2024-03)"),
        (
            medication("MedicationStatement", "X", effectiveDateTime="2024-03-01"),
            "X (taken 2024-03)",
        ),
    ],
)  # fmt: skip
def test_a_medicine_says_when(resource, text):
    assert taken(resource).current_medications == (text,)


def test_orders_of_several_stays_stand_apart():
    orders = [medication(display="X", authoredOn=f"2025-0{month}-01") for month in (1, 4, 6)]
    assert len(taken(*orders, orders[0]).current_medications) == 3


SUBSTANCE = {"resourceType": "Substance", "id": "s", "code": {"text": "warfarin"}}
BY_CODE = {"itemCodeableConcept": {"text": "warfarin"}}
BY_REFERENCE = {"itemReference": {"reference": "#s"}}


@pytest.mark.parametrize("ingredient", [BY_CODE, BY_REFERENCE])
@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "contains warfarin"),
        ({"code": {"coding": [{"system": NULL_FLAVOR, "code": "OTH"}]}}, "contains warfarin"),
        ({"code": {"text": "Coumadin"}}, "Coumadin; contains warfarin"),
        ({"status": "entered-in-error"}, None),
        ({"status": "inactive"}, None),
        (MODIFIED, None),
        ({"meta": {"security": [{"code": "R"}]}}, None),
    ],
)
def test_a_medicine_is_named_by_what_it_contains(ingredient, more, text):
    drug = {
        "resourceType": "Medication",
        "id": "1",
        "contained": [SUBSTANCE],
        "ingredient": [ingredient],
        **more,
    }
    inside = {name: value for name, value in drug.items() if name != "contained"}
    refers = {
        "medicationCodeableConcept": None,
        "medicationReference": {"reference": "Medication/1"},
    }
    within = {
        "medicationCodeableConcept": None,
        "medicationReference": {"reference": "#1"},
        "contained": [inside, SUBSTANCE],
    }
    for source in ([drug, medication(**refers)], [medication(**within)]):
        record = taken(*source)
        assert record.current_medications == ((text,) if text else ())
        assert bool(record.fhir_report.missing()) is (text is None)


# -- who the patient is, and what nobody has ---------------------------------------------------------

CORE = "http://hl7.org/fhir/us/core/StructureDefinition/us-core-individual-sex"
CLINICAL = "http://hl7.org/fhir/StructureDefinition/patient-sexParameterForClinicalUse"


def typical(*codes):
    value = {"coding": [{"code": code} for code in codes]}
    return {"url": CLINICAL, "extension": [{"url": "value", "valueCodeableConcept": value}]}


@pytest.mark.parametrize(
    ("extensions", "sex"),
    [
        ([{"url": CORE, "valueCoding": {"code": "248152002"}}], "female"),
        ([typical("female-typical")], "female"),
        ([typical("male-typical", "female-typical")], "male"),
        ([{"url": CORE, "valueCoding": {"code": "asked-declined"}}], "male"),
        (
            [{"url": CORE, "valueCoding": {"code": "248153007"}}, typical("female-typical")],
            "female",
        ),
    ],
)
def test_the_sex_for_clinical_use_goes_before_the_administrative_one(extensions, sex):
    person = patient(extension=extensions, gender="male")
    assert svc.PatientContext.from_fhir(bundle(first=person), today=TODAY).sex == sex


@pytest.mark.parametrize("day", ["1850-01-01", "1900-01-01", "0001-01-01", "1900"])
def test_a_birth_date_that_nobody_has_leaves_the_age_out_and_nothing_else(day):
    source = bundle(condition(display="X"), first=patient(birthDate=day))
    record = svc.PatientContext.from_fhir(source, today=TODAY)
    assert on_wire(record) == {"sex": "female", "medicalHistory": ("X",)}
    assert record.fhir_report.missing() == {"age": 1}


@pytest.mark.parametrize("code", ["8867-4", "9279-1"])
def test_a_rate_of_0_is_no_reading(code):
    record = taken(observation(code, quantity(0, "/min")))
    assert record.vital_signs is None
    assert record.fhir_report.missing() == {"Observation": 1}


# -- the unit that is printed ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loinc", "value", "code", "printed", "there"),
    [
        ("2345-7", 5.5, "mg/dL", "mmol/L", False),
        ("29463-7", 154, "kg", "lb", False),
        ("2708-6", 0.97, "%", "1", False),
        ("8310-5", 98, "Cel", "°F", False),
        ("8310-5", 37, "Cel", "degrees C", True),
        ("2345-7", 99, "mg/dL", "mg/dl", True),
        ("2345-7", 99, "mg/dL", "mg per deciliter", True),
        ("6690-2", 7.5, "10*3/uL", "K/uL", True),
        ("6690-2", 7.5, "10*3/uL", "10^9/L", True),
        ("1742-6", 40, "U/L", "IU/L", True),
        ("2951-2", 140, "mmol/L", "mEq/L", True),
        ("98979-8", 60, "mL/min/{1.73_m2}", "mL/min", True),
        ("8480-6", 120, "mm[Hg]", "mmHg", True),
        ("8480-6", 16, "mm[Hg]", "kPa", False),
        ("6301-6", 2.5, "{INR}", "", True),
        ("2345-7", 99, "mg/dL", "{}", True),
        ("22664-7", 6.7, "mmol/L", "mmol/L", True),
        ("22664-7", 40, "mg/dL", "mg/dL", False),
        ("3094-0", 40, "mg/dL", "mg/dL", True),
    ],
)
def test_a_unit_that_is_printed_as_another_is_not_read(loinc, value, code, printed, there):
    record = taken(observation(loinc, quantity(value, code, printed or None)))
    assert bool(record.vital_signs or record.lab_results) is there
    assert record.fhir_report.missing() == ({} if there else {"Observation": 1})
