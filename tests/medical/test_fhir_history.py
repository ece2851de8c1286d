"""PatientContext.from_fhir: allergies, procedures, cancers, habits, body, and typed texts."""

from __future__ import annotations

import pytest
from fhir_records import (
    ANY_AGE,
    ID,
    NAMES,
    OWN,
    TODAY,
    bundle,
    concept,
    condition,
    medication,
    observation,
    patient,
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

ICD10 = "http://hl7.org/fhir/sid/icd-10-cm"


def allergy(display="Penicillin V", clinical="active", verified="confirmed", **changes):
    system = "http://terminology.hl7.org/CodeSystem/allergyintolerance-"
    return {
        "resourceType": "AllergyIntolerance",
        "clinicalStatus": {"coding": [{"system": f"{system}clinical", "code": clinical}]},
        "verificationStatus": {"coding": [{"system": f"{system}verification", "code": verified}]},
        "code": concept("7984", display, "http://www.nlm.nih.gov/research/umls/rxnorm"),
        "patient": {**OWN, "display": NAMES["family"]},
        "criticality": "high",
        "recorder": {"display": NAMES["doctor"]},
        **changes,
    }


def procedure(display="Appendectomy", status="completed", **changes):
    return {
        "resourceType": "Procedure", "status": status, "code": concept("80146002", display), "subject": OWN,
        "performedDateTime": "2001-05-05", **changes,
    }  # fmt: skip


def report(conclusion=None, at="2025-06-01", status="final", **changes):
    made = {
        "resourceType": "DiagnosticReport", "status": status, "subject": OWN, "effectiveDateTime": at, "conclusion": conclusion,
        "code": concept("24627-2", "CT Chest", "http://loinc.org"), "result": [{"reference": "Observation/1"}], **changes,
    }  # fmt: skip
    return {k: v for k, v in made.items() if v is not None}


# -- allergies, procedures, conclusions -------------------------------------------------------------


def test_allergies_come_first_in_the_history():
    record = taken(condition(), procedure(), allergy(), allergy("Lactose", type="intolerance"))
    assert record.medical_history == (
        "allergy: Penicillin V", "intolerance: Lactose", "Essential hypertension (disorder)", "procedure: Appendectomy",
    )  # fmt: skip
    of_history = [one.entry for one in record.fhir_report.taken if one.field == "medical_history"]
    assert of_history == [3, 4, 1, 2]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"clinical": "inactive"}, None), ({"clinical": "resolved"}, None), ({"verified": "refuted"}, None), ({"verified": "entered-in-error"}, None), ({"verified": "unconfirmed"}, "allergy: X (unconfirmed)"),
        ({"clinicalStatus": {}}, "allergy: X"), ({"code": concept("716186003", "No known allergy")}, None), ({"code": concept("no-known-allergies", "No known allergies", "http://hl7.org/fhir/uv/ips/CodeSystem/absent-unknown-uv-ips")}, None),
        ({"code": {}}, None), ({"code": {"text": "no known drug allergies"}}, None),
    ],
)  # fmt: skip
def test_allergies(changes, expected):
    record = taken(allergy("X", **changes))
    assert record.medical_history == ((expected,) if expected else ())
    assert len(reasons(record)) == (not expected)


def test_an_allergy_of_another_patient_is_an_error():
    with pytest.raises(svc.SvcRequestError, match="patient is another patient"):
        taken(allergy(patient={"reference": "Patient/other"}))


@pytest.mark.parametrize(
    "status", ["preparation", "in-progress", "not-done", "stopped", "entered-in-error"]
)
def test_only_procedures_that_were_done_count(status):
    assert taken(procedure(status=status)).medical_history == ()
    assert taken(procedure()).medical_history == ("procedure: Appendectomy",)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (report("No acute findings"), "report: CT Chest: No acute findings"), (report(conclusionCode=[concept("1", "Pneumothorax")]), "report: CT Chest: Pneumothorax"), (report("typed", conclusionCode=[concept("1", "Pneumothorax")]), "report: CT Chest: Pneumothorax"),
        (report(), None), (report("x", status="preliminary"), None), (report("x", status="appended"), "report: CT Chest: x"), (report("x", at="2025-01-01"), None), (report("x", at="2025-09-01"), None), (report("x", at=None), None),
        (report(f"Nodule of {NAMES['family']}, seen 03/04/2025"), "report: CT Chest: Nodule of [...], seen [...]"), (report("x" * 201), None),
    ],
)  # fmt: skip
def test_conclusions_of_reports(made, expected):
    record = taken(made)
    assert record.medical_history == ((expected,) if expected else ())
    assert sum(record.fhir_report.not_read.values()) + len(reasons(record)) == (not expected)


def test_a_bare_code_is_the_last_resort_of_a_conclusion():
    bare = [{"coding": [{"system": "http://snomed.info/sct", "code": "263654008"}]}]
    assert taken(report("clear", conclusionCode=bare)).medical_history == (
        "report: CT Chest: clear",
    )
    assert taken(report(conclusionCode=bare)).medical_history == (
        "report: CT Chest: SNOMED CT 263654008",
    )


def test_of_reports_about_the_same_the_newest_counts():
    xray = concept("36643-5", "XR Chest", "http://loinc.org")
    made = [
        report("Normal", at="2025-06-10"),
        report("Abnormal", at="2025-05-01"),
        report("Clear", at="2025-05-02", code=xray),
    ]
    record = taken(*made)
    assert record.medical_history == ("report: CT Chest: Normal", "report: XR Chest: Clear")
    assert [(one.entry, one.reason) for one in record.fhir_report.left_out] == [
        (2, "a newer one was taken")
    ]


# -- cancer and its risks ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "clinical", "risk"),
    [
        (concept("254837009", "Malignant neoplasm of breast (disorder)"), "active", "cancer: Malignant neoplasm of breast (disorder)"),
        (concept("254837009", "Malignant neoplasm of breast (disorder)"), "remission", "personal history of Malignant neoplasm of breast (disorder)"),
        (concept("C50.9", "Brustkrebs", ICD10), "active", "cancer: Brustkrebs"), (concept("Z85.3", "Eigenanamnese Brust", ICD10), "active", "cancer: Eigenanamnese Brust"), (concept("174.9", "breast", "http://hl7.org/fhir/sid/icd-9-cm"), "resolved", "personal history of breast"),
        (concept("Z15.01", "Genetic susceptibility to malignant neoplasm of breast", ICD10), "active", "Genetic susceptibility to malignant neoplasm of breast"), (concept("412734009", "BRCA1 gene mutation positive"), "active", "BRCA1 gene mutation positive"),
        (concept("1", "Benign neoplasm of colon"), "active", None), (concept("2", "Family history of breast cancer"), "active", None), (concept("3", "Screening for malignant neoplasm"), "active", None), (concept("I10", "Hypertension", ICD10), "active", None),
    ],
)  # fmt: skip
def test_cancers_and_mutations_are_risk_factors(code, clinical, risk):
    record = taken(condition(code=code, clinical=clinical))
    assert record.risk_factors == ((risk,) if risk else ())
    assert record.medical_history == ((code["text"],) if clinical == "active" else ())


def test_habits_are_risk_factors_however_old():
    made = [
        smoking("449868002", at="2019-01-01"),
        observation("8664-5", quantity(30, "{pack-years}"), at="2018"),
        observation("74013-4", quantity(2, "{drinks}/d"), at="2015"),
        observation("74013-4", quantity(5, "{drinks}/d"), at="2010"),
    ]
    record = taken(*made)
    assert record.risk_factors == (
        "daily smoker",
        "tobacco: 30 pack-years",
        "alcohol: 2 drinks a day",
    )
    assert reasons(record) == ["a newer one was taken"]
    assert [one.code for one in record.fhir_report.taken if one.field == "risk_factors"] == [
        "72166-2",
        "8664-5",
        "74013-4",
    ]


@pytest.mark.parametrize(
    ("code", "value", "unit", "risk"),
    [
        ("74013-4", 1.5, "/d", "alcohol: 1.5 drinks a day"), ("74013-4", 3, "drinks/day", None), ("74013-4", 3, "{drinks}/wk", None), ("74013-4", 0, "/d", None), ("74013-4", 3, "g/d", None),
        ("8664-5", 12.5, "a", "tobacco: 12.5 pack-years"), ("8664-5", 12, "{PackYears}", "tobacco: 12 pack-years"), ("8664-5", 12, "{cigarettes}", None),
    ],
)  # fmt: skip
def test_habits_in_their_units_or_not_at_all(code, value, unit, risk):
    record = taken(observation(code, quantity(value, unit)))
    assert record.risk_factors == ((risk,) if risk else ())
    assert len(reasons(record)) == (risk is None)


def test_the_body():
    made = [
        observation("8302-2", quantity(68, "[in_i]"), at="2025-05-01"), observation("29463-7", quantity(180, "lbs"), at="2025-05-01"), observation("39156-5", quantity(27.4, "kg/m2"), at="2025-05-01"),
        observation("8867-4", quantity(88, "/min")),
    ]  # fmt: skip
    found = sent(*made)
    assert found["vitalSigns"] == {
        "heartRate": 88,
        "height": 172.72,
        "weight": 81.6466,
        "bmi": 27.4,
    }
    assert found["riskFactors"] == ("body mass index 27.4 kg/m2",)
    old = taken(observation("39156-5", quantity(27.4, "kg/m2"), at="2020"))
    assert (old.vital_signs, old.risk_factors) == (None, ())
    assert taken(*made, **ANY_AGE).vital_signs == taken(*made).vital_signs


@pytest.mark.parametrize(
    ("onset", "told"),
    [
        ({"onsetAge": {"value": 45, "unit": "years", "system": "http://unitsofmeasure.org", "code": "a"}}, "(mother, at 45)"), ({"onsetRange": {"low": {"value": 40, "unit": "years"}, "high": {"value": 50, "unit": "years"}}}, "(mother, at 40 to 50)"),
        ({"onsetString": "45 years"}, "(mother, at 45)"), ({"onsetString": "when Grobulina married"}, "(mother)"), ({}, "(mother)"), ({"onsetAge": {"value": 9, "unit": "mo", "code": "mo"}}, "(mother)"),
    ],
)  # fmt: skip
def test_the_age_at_which_a_relative_fell_ill(onset, told):
    member = {
        "resourceType": "FamilyMemberHistory", "status": "completed", "patient": OWN, "relationship": concept("MTH", "mother", "http://terminology.hl7.org/CodeSystem/v3-RoleCode"),
        "condition": [{"code": concept("254837009", "Breast cancer"), **onset}],
    }  # fmt: skip
    assert taken(member).risk_factors == (f"family history: Breast cancer {told}",)


# -- sex and social findings ------------------------------------------------------------------------

CORE = "http://hl7.org/fhir/us/core/StructureDefinition/us-core-"


@pytest.mark.parametrize(
    ("extensions", "sex"),
    [
        ([{"url": f"{CORE}birthsex", "valueCode": "M"}], "male"), ([{"url": f"{CORE}sex", "valueCode": "248153007"}], "male"), ([{"url": f"{CORE}sex", "valueCode": "248152002"}, {"url": f"{CORE}birthsex", "valueCode": "M"}], "male"),
        ([{"url": f"{CORE}birthsex", "valueCode": "UNK"}], "female"), ([{"url": f"{CORE}birthsex", "valueCode": {"x": 1}}], "female"), ([{"url": "http://x.example", "valueCode": "M"}], "female"), ("x", "female"),
    ],
)  # fmt: skip
def test_sex_at_birth_goes_before_administrative_gender(extensions, sex):
    record = svc.PatientContext.from_fhir(bundle(first=patient(extension=extensions)), today=TODAY)
    assert record.sex == sex
    noted = [one.note for one in record.fhir_report.taken if one.field == "sex"]
    assert ("US Core" in noted[0]) is (sex == "male")


SOCIAL = [
    condition("706893006", "Victim of intimate partner abuse (finding)"), condition("266948004", "Has a criminal record (finding)"), condition("224299000", "Received higher education (finding)"),
    condition(code=concept("Z59.0", "Homelessness", ICD10)), condition("1", "Food insecurity", category=[concept("sdoh", "SDOH", "http://hl7.org/fhir/us/core/CodeSystem/us-core-category")]),
]  # fmt: skip
MEDICAL = [
    condition("73595000", "Stress (finding)"),
    condition("361055000", "Misuses drugs (finding)"),
    condition(code=concept("Z85.3", "x", ICD10)),
]


def test_social_findings_are_left_out_unless_asked_for():
    record = taken(*SOCIAL, *MEDICAL)
    assert record.medical_history == ("Stress (finding)", "Misuses drugs (finding)", "x")
    assert [one.entry for one in record.fhir_report.left_out] == [1, 2, 3, 4, 5]
    assert "5 Condition, entries 1, 2, 3, 4, 5: it is a social finding" in str(record.fhir_report)
    assert len(taken(*SOCIAL, *MEDICAL, social_findings="take").medical_history) == 8


def test_habits_are_of_the_category_social_history_and_taken():
    system = "http://terminology.hl7.org/CodeSystem/observation-category"
    social = [concept("social-history", "Social History", system)]
    record = taken({**smoking("449868002"), "category": social})
    assert record.risk_factors == ("daily smoker",)


@pytest.mark.parametrize(
    "which",
    [
        ["73595000"],
        {"health-concern"},
        lambda one: one["resourceType"] == "Condition" and "Stress" in one["code"]["text"],
    ],
)
def test_the_application_leaves_out_what_it_will(which):
    stress = condition(
        "73595000",
        "Stress (finding)",
        category=[concept("health-concern", "x", "http://x.example")],
    )
    record = taken(stress, condition(), medication(), leave_out=which)
    assert record.medical_history == ("Essential hypertension (disorder)",)
    assert record.current_medications
    assert reasons(record) == ["the application leaves it out (leave_out)"]


# -- typed texts ------------------------------------------------------------------------------------


def typed(text):
    return condition(code={"text": text})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("visit on 6/22/2015 at the clinic", "visit on [...] at the clinic"), ("since 2015-06-22", "since [...]"), ("since 2015-06", "since [...]"), ("seit 22.06.2015 Husten", "seit [...] Husten"), ("on 22 June 2015", "on [...]"), ("on June 22nd, 2015", "on [...]"),
        ("el 22 de junio de 2015", "el [...]"), ("le 3 février 2015", "le [...]"), ("am 3. März 2015", "am [...]"), ("in Sept. 2015", "in [...]"), ("born 16.06.1963", "born [...]"), ("DOB 19630616", "DOB [...]"), ("at 2015-06-22T10:00:00Z", "at [...]"),
        ("type 2 diabetes", "type 2 diabetes"), ("since 2015", "since 2015"), ("1.5 mg twice", "1.5 mg twice"), ("BP 120/80", "BP 120/80"), ("stage 3/4", "stage 3/4"), ("1-0-1 a day", "1-0-1 a day"), ("C5-6 disc", "C5-6 disc"), ("may 2 weeks", "may 2 weeks"),
    ],
)  # fmt: skip
def test_dates_are_masked_in_typed_texts(text, expected):
    record = taken(typed(text))
    assert record.medical_history == (expected,)
    note = record.fhir_report.taken[-1].note
    assert note == (
        "typed, what identifies the patient is masked" if "[...]" in expected else "typed"
    )


def test_names_that_references_display_are_masked_without_a_patient():
    made = bundle(typed("diabetes of Zebulonia Quuxberg482"))
    made["entry"][1]["resource"]["subject"] = {
        "reference": f"Patient/{ID}",
        "display": "Zebulonia Quuxberg482",
    }
    del made["entry"][0]
    assert svc.PatientContext.from_fhir(made, today=TODAY).medical_history == (
        "diabetes of [...] [...]",
    )


def test_a_narrative_is_left_out():
    record = taken(typed("x" * 200), typed("Ms. Smith is 45 years old. " * 10))
    assert record.medical_history == ("x" * 200,)
    assert reasons(record) == ["its text was typed and has more than 200 characters"]


def test_typed_texts_can_be_left_out():
    coded = condition(
        code={"coding": [{"system": "http://hl7.org/fhir/sid/icd-10", "code": "E11.9"}]}
    )
    record = taken(typed("sugar"), condition(), coded, typed_texts="leave_out")
    assert record.medical_history == ("Essential hypertension (disorder)", "ICD-10 E11.9")
    assert "typed_texts='mask'" in reasons(record)[0]


@pytest.mark.parametrize(
    ("system", "code", "expected"),
    [
        ("http://www.saude.gov.br/fhir/r4/CodeSystem/BRCID10", "J03", "BRCID10 J03"), ("urn:oid:2.16.840.1.113883.6.90", "E11.9", "ICD-10-CM E11.9"), ("http://x.example/", "J03", None), (None, "J03", None),
    ],
)  # fmt: skip
def test_a_code_of_an_unknown_system_goes_by_its_name(system, code, expected):
    coding = {"code": code, **({"system": system} if system else {})}
    assert taken(condition(code={"coding": [coding]})).medical_history == (
        (expected,) if expected else ()
    )


TEXTS = st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=30)
MARKS = st.sampled_from(
    [
        NAMES["family"],
        NAMES["given"],
        NAMES["mrn"],
        NAMES["phone"],
        "1963-06-16",
        "16.06.1963",
        "06/16/1963",
        "16 June 1963",
        "19630616",
    ]
)


@given(
    st.lists(TEXTS, min_size=1, max_size=4),
    MARKS,
    st.sampled_from(
        [
            typed,
            lambda text: medication(medicationCodeableConcept={"text": text}),
            lambda text: allergy(code={"text": text}),
            report,
        ]
    ),
)
def test_nothing_typed_goes_unmarked_and_no_mark_of_the_patient_goes(words, mark, make):
    text = f" {mark} ".join(["", *words, ""])
    record = taken(make(text), problems="leave_out")
    values = (*record.medical_history, *record.current_medications, *record.risk_factors)
    for value in values:
        assert mark.lower() not in value.lower()
    notes = [one.note for one in record.fhir_report.taken if one.field not in {"age", "sex"}]
    assert len(notes) == len(values)
    assert all("typed" in note and "masked" in note for note in notes)
