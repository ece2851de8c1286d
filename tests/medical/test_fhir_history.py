"""PatientContext.from_fhir: allergies, medicines, pregnancies, habits, and typed texts."""

from __future__ import annotations

import pytest
from fhir_records import (
    ANY_AGE,
    CATEGORY,
    DAY,
    NAMES,
    NEXT,
    OWN,
    PAST,
    RXNORM,
    TODAY,
    bundle,
    concept,
    condition,
    medication,
    observation,
    patient,
    quantity,
    reasons,
    refers,
    sent,
    smoking,
    taken,
)
from hypothesis import given
from hypothesis import strategies as st

import langchain_svc as svc

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")

ICD10 = "http://hl7.org/fhir/sid/icd-10-cm"
SNOMED = "http://snomed.info/sct"
IPS = "http://hl7.org/fhir/uv/ips/CodeSystem/absent-unknown-uv-ips"


def allergy(display="Penicillin V", clinical="active", verified="confirmed", **changes):
    system = "http://terminology.hl7.org/CodeSystem/allergyintolerance-"
    return {
        "resourceType": "AllergyIntolerance",
        "clinicalStatus": {"coding": [{"system": f"{system}clinical", "code": clinical}]},
        "verificationStatus": {"coding": [{"system": f"{system}verification", "code": verified}]},
        "code": concept("7984", display, RXNORM),
        "patient": {**OWN, "display": NAMES["family"]},
        "recorder": {"display": NAMES["doctor"]},
        **changes,
    }


def procedure(display="Appendectomy", status="completed", **changes):
    return {
        "resourceType": "Procedure", "status": status, "code": concept("80146002", display), "subject": OWN,
        "performedDateTime": "2001-05-05", **changes,
    }  # fmt: skip


# -- what a resource, or a few, become in words --------------------------------------------------------


def says(code, at="2025-06-15", **value):
    return observation(code, at=at, issued=None, **value)


def pregnant(code, at="2025-06-15", system=SNOMED):
    return says("82810-3", at, valueCodeableConcept=concept(code, "x", system))


def relative(status="completed", **onset):
    mother = concept("MTH", "mother", "http://terminology.hl7.org/CodeSystem/v3-RoleCode")
    ill = [{"code": concept("254837009", "Breast cancer"), **onset}]
    return {
        "resourceType": "FamilyMemberHistory",
        "status": status,
        "patient": OWN,
        "relationship": mother,
        "condition": ill,
    }


def dosed(**repeat):
    return {"dosageInstruction": [{"text": "daily", "timing": {"repeat": repeat}}]}


WEEK = {"value": 1, "unit": "week", "code": "wk", "system": "http://unitsofmeasure.org"}


STATED = "MedicationStatement"
MEDICATIONS = [
    (medication(), True),
    (medication(STATED), True),
    (medication(status="stopped"), False),
    (medication(status="on-hold"), False),
    (medication(STATED, status="not-taken"), False),
    (medication(STATED, status="entered-in-error"), False),
    (medication(intent="plan"), False),
    (medication(intent="proposal"), False),
    (medication(intent="instance-order"), True),
    (medication(doNotPerform=True), False),
    (medication(doNotPerform=False), True),
    (medication(modifierExtension=[{"url": "http://x.example"}]), False),
    *(
        (medication(**changes), there)
        for changes, there in [
            (
                {
                    "dispenseRequest": {
                        "validityPeriod": {"start": "2012-01-01", "end": "2012-06-01"}
                    }
                },
                False,
            ),
            ({"dispenseRequest": {"validityPeriod": {"end": DAY}}}, True),
            ({"dispenseRequest": {"validityPeriod": {"start": NEXT}}}, False),
            (dosed(boundsPeriod={"start": "2012-01-01", "end": "2012-02-01"}), False),
            (dosed(boundsPeriod={"start": "2012-01-01"}), True),
            (dosed(boundsPeriod={"start": NEXT}), False),
            (dosed(frequency=1), True),
            (dosed(boundsPeriod={"end": "2016-12-31T23:59:60Z"}), False),
            ({"authoredOn": PAST, **dosed(boundsDuration=WEEK)}, True),
        ]
    ),
    *(
        (medication(STATED, **changes), there)
        for changes, there in [
            ({"effectivePeriod": {"start": "2020-01-01", "end": "2025-06-14"}}, False),
            ({"effectivePeriod": {"end": "2025-06-15"}}, True),
            ({"effectivePeriod": {"end": "2025-06-16"}}, True),
            ({"effectivePeriod": {"start": "2020"}}, True),
            ({"effectivePeriod": {"end": "2024"}}, False),
            ({"effectivePeriod": {"end": "2025"}}, True),
            ({"effectivePeriod": {"end": "2025-05"}}, False),
            ({"effectivePeriod": {"start": "2025-07-01"}}, False),
            ({"effectiveDateTime": "2025-06-20"}, False),
            ({"effectiveDateTime": "2020"}, True),
        ]
    ),
]


def typed(text):
    return condition(code={"text": text})


NOTHING_KNOWN = [
    (concept("no-problem-info", "No information about problems", IPS), False),
    (concept("160245001", "No current problems or disability"), False),
    ({"text": "No known problems"}, "No known problems"),
    (concept("UNK", "x", "http://terminology.hl7.org/CodeSystem/v3-NullFlavor"), False),
    ({"text": "N/A"}, "N/A"),
    ({"text": "Cancer of unknown primary"}, True),
    ({"text": "Nodule of thyroid"}, True),
    ({"text": "Unknown fever"}, True),
]
CODES = [
    ("http://www.saude.gov.br/fhir/r4/CodeSystem/BRCID10", "J03", "BRCID10 J03"),
    ("urn:oid:2.16.840.1.113883.6.90", "E11.9", "ICD-10-CM E11.9"),
    ("http://x.example/", "J03", None),
    (None, "J03", None),
]
FAMILY = "family history: Breast cancer (mother)"
BECOMES = [
    *(
        (condition(display="X", **changes), text)
        for changes, text in [
            ({}, "X"),
            ({"clinical": "recurrence"}, "X"),
            ({"clinical": "relapse"}, "X"),
            ({"clinical": "resolved"}, "X (past)"),
            ({"clinical": "inactive"}, "X (past)"),
            ({"clinical": "remission"}, "X (past)"),
            ({"verified": "refuted"}, None),
            ({"verified": "entered-in-error"}, None),
            ({"verified": "unconfirmed"}, "X (unconfirmed)"),
            ({"clinicalStatus": {}}, "X"),
            ({"clinicalStatus": {}, "abatementDateTime": "2020"}, "X (past)"),
            ({"clinicalStatus": {}, "abatementString": "in May"}, "X (past)"),
            ({"code": {}}, None),
            ({"modifierExtension": [{"url": "http://x.example/not"}]}, None),
            ({"implicitRules": "http://x.example"}, None),
            ({"clinicalStatus": {}, "abatementDateTime": "2025-09-01"}, "X"),
            (
                {
                    "clinicalStatus": {},
                    "abatementPeriod": {"start": "2025-06-01", "end": "2026-01-01"},
                },
                "X",
            ),
            ({"clinicalStatus": {}, "abatementDateTime": "2025-06-01"}, "X (past)"),
            ({"clinicalStatus": {}, "abatementPeriod": {"start": "2025-06-01"}}, "X (past)"),
            ({"clinicalStatus": {}, "abatementAge": {"value": 50, "unit": "a"}}, "X (past)"),
        ]
    ),
    *(
        (allergy("X", **changes), text)
        for changes, text in [
            ({"clinical": "inactive"}, None),
            ({"clinical": "resolved"}, None),
            ({"verified": "refuted"}, None),
            ({"verified": "entered-in-error"}, None),
            ({"verified": "unconfirmed"}, "allergy: X (unconfirmed)"),
            ({"clinicalStatus": {}}, "allergy: X"),
            ({"code": concept("716186003", "No known allergy")}, None),
            ({"code": concept("no-known-allergies", "No known allergies", IPS)}, None),
            ({"code": {}}, None),
            (
                {"code": {"text": "no known drug allergies"}},
                "allergy as written: no known drug allergies",
            ),
        ]
    ),
    ([pregnant("77386006")], "observation: pregnant"),
    ([pregnant("LA15173-0", system="http://loinc.org")], "observation: pregnant"),
    ([pregnant("77386006", "2025-05-15")], "observation: pregnant (as of 31 days ago)"),
    ([pregnant("77386006", "2024-06-01")], None),
    ([pregnant("60001007")], "observation: not pregnant"),
    ([pregnant("LA4489-6")], "observation: pregnancy status: x"),
    ([pregnant("146799005")], "observation: possibly pregnant"),
    ([pregnant("77386006", "2025-05-15"), pregnant("60001007")], "observation: not pregnant"),
    ([pregnant("77386006"), pregnant("60001007", "2025-05-15")], "observation: pregnant"),
    (
        [says("11778-8", valueDateTime="2025-09-23")],
        "observation: estimated date of delivery in 100 days",
    ),
    (
        [says("11779-6", valueDateTime="2025-06-10")],
        "observation: estimated date of delivery passed by 5 days",
    ),
    ([says("11778-8", valueDateTime="2025-01-01")], None),
    ([says("11778-8", valueDateTime="2029-01")], None),
    (
        [says("11778-8", "2025-06-01", valueDateTime="2025-09-23"), pregnant("60001007")],
        "observation: not pregnant",
    ),
    (
        [says("63895-7", valueCodeableConcept=concept("LA29252-6", "x", "http://loinc.org"))],
        "observation: breastfeeding",
    ),
    ([says("63895-7", valueBoolean=True)], "observation: breastfeeding"),
    ([says("63895-7", valueBoolean=False)], "observation: not breastfeeding"),
    (
        [says("63895-7", "2025-06-14", valueBoolean=True)],
        "observation: breastfeeding (as of 1 day ago)",
    ),
    ([says("63895-7", "2023-01-01", valueBoolean=True)], None),
    ([says("63895-7", valueBoolean=True, status="preliminary")], None),
    ([smoking("449868002")], "daily smoker"),
    ([smoking("LA18976-3", system="http://loinc.org")], "daily smoker"),
    ([smoking("266919005")], "never smoked"),
    ([smoking("1")], "tobacco smoking status: a status"),
    ([smoking("449868002", at="2019"), smoking("8517006")], "former smoker"),
    ([smoking("8517006"), smoking("449868002", at="2019")], "former smoker"),
    ([smoking("449868002", at="2019"), smoking("266919005")], "never smoked"),
    *(
        (
            condition(code={"coding": [{"code": code, **({"system": system} if system else {})}]}),
            text,
        )
        for system, code, text in CODES
    ),
    *(
        (make(code), there)
        for code, there in NOTHING_KNOWN
        for make in (
            lambda code: condition(code=code),
            lambda code: medication(medicationCodeableConcept=code),
        )
    ),
    *(
        (procedure(status=status), None)
        for status in ("preparation", "in-progress", "not-done", "stopped", "entered-in-error")
    ),
    *(
        (relative(status), text)
        for status, text in (
            ("partial", FAMILY),
            ("entered-in-error", None),
            ("health-unknown", None),
        )
    ),
    (
        relative(
            onsetAge={
                "value": 45,
                "unit": "years",
                "system": "http://unitsofmeasure.org",
                "code": "a",
            }
        ),
        FAMILY.replace(")", ", at 45)"),
    ),
    (relative(onsetAge={"value": 9, "unit": "mo", "code": "mo"}), FAMILY),
    *(
        ({"resourceType": "DiagnosticReport", "status": "final", "subject": OWN, **elements}, None)
        for elements in (
            {"conclusion": "Nodule"},
            {"conclusionCode": [concept("1", "Pneumothorax")]},
        )
    ),
    *MEDICATIONS,
    ([smoking("449868002"), smoking("266919005", at="2026-01-01")], "daily smoker"),
    (
        {
            **smoking("449868002"),
            "category": [concept("social-history", "Social History", CATEGORY)],
        },
        "daily smoker",
    ),
    (typed("x" * 200), "x" * 200),
    (typed("Ms. Smith is 45 years old. " * 10), None),
]


@pytest.mark.parametrize(("resources", "text"), BECOMES)
def test_what_is_taken_in_words_and_what_is_left_out_with_a_line(resources, text):
    resources = resources if isinstance(resources, list) else [resources]
    for options in ({}, {"past_conditions": True}):
        record = taken(*resources, **options)
        there = bool(text) and (bool(options) or "(past)" not in str(text))
        texts = (*record.medical_history, *record.current_medications, *record.risk_factors)
        assert len(texts) == there
        assert texts in {(), (text,)} or text is True
        assert len(reasons(record)) == len(resources) - there


# -- allergies and procedures -----------------------------------------------------------------------


def test_allergies_come_first_in_the_history():
    record = taken(condition(), procedure(), allergy(), allergy("Lactose", type="intolerance"))
    assert record.medical_history == (
        "allergy: Penicillin V",
        "intolerance: Lactose",
        "Essential hypertension (disorder)",
        "procedure: Appendectomy (2001)",
    )
    of_history = [
        line.entry for line in record.fhir_report.taken if line.field == "medical_history"
    ]
    assert of_history == [3, 4, 1, 2]


ANAPHYLAXIS = concept("39579001", "Anaphylaxis")


@pytest.mark.parametrize(
    ("changes", "expected", "without_typed"),
    [
        (
            {
                "reaction": [{"manifestation": [ANAPHYLAXIS], "severity": "severe"}],
                "criticality": "high",
            },
            "allergy: X; reaction: Anaphylaxis (severe); criticality: high",
            "allergy: RxNorm 7984; reaction: SNOMED CT 39579001 (severe); criticality: high",
        ),
        (
            {
                "reaction": [{"manifestation": [{"text": "rash on the arms"}, ANAPHYLAXIS]}],
                "criticality": "low",
            },
            "allergy: X; reaction: rash on the arms; reaction: Anaphylaxis; criticality: low",
            "allergy: RxNorm 7984; reaction: SNOMED CT 39579001; criticality: low",
        ),
        (
            {
                "reaction": [{"manifestation": [ANAPHYLAXIS]}] * 2,
                "criticality": "unable-to-assess",
                "verified": "unconfirmed",
            },
            "allergy: X (unconfirmed); reaction: Anaphylaxis",
            "allergy: RxNorm 7984 (unconfirmed); reaction: SNOMED CT 39579001",
        ),
        (
            {"reaction": [{"manifestation": [{"text": "a" * 201}]}]},
            "allergy: X",
            "allergy: RxNorm 7984",
        ),
    ],
)
def test_an_allergy_tells_its_reaction_and_criticality(changes, expected, without_typed):
    resource = allergy("X", **changes)
    assert taken(resource).medical_history == (expected,)
    record = taken(resource, typed_texts="leave_out")
    assert record.medical_history == (without_typed,)
    is_typed = changes["reaction"][0]["manifestation"][0] is not ANAPHYLAXIS
    assert record.fhir_report.missing() == ({"text": 1} if is_typed else {})


# -- medicines --------------------------------------------------------------------------------------


def coded(display, text, system=SNOMED):
    return {"coding": [{"system": system, "code": "1", "display": display}], "text": text}


@pytest.mark.parametrize(
    ("code", "dosage", "expected", "without_typed"),
    [
        (
            coded("Product containing lisinopril (medicinal product)", "lisinopril 5 mg tablet"),
            None,
            "Product containing lisinopril (medicinal product) [SNOMED CT 1]; as written: lisinopril 5 mg tablet",
            "SNOMED CT 1",
        ),
        (
            coded("lisinopril 10 MG Oral Tablet", "lisinopril", RXNORM),
            None,
            "lisinopril 10 MG Oral Tablet",
            "RxNorm 1",
        ),
        (
            coded("Fluocortolone", "Ultraproct"),
            None,
            "Fluocortolone [SNOMED CT 1]; as written: Ultraproct",
            "SNOMED CT 1",
        ),
        (
            {"coding": [{"system": SNOMED, "display": "Warfarin"}], "text": "Coumadin"},
            None,
            "Warfarin [SNOMED CT]; as written: Coumadin",
            None,
        ),
        (coded("Warfarin", "w" * 201), None, "Warfarin [SNOMED CT 1]", "SNOMED CT 1"),
        (
            coded("Apixaban 5 MG", None),
            [{"text": "1 tablet twice daily"}, {"text": "with food"}],
            "Apixaban 5 MG; 1 tablet twice daily; with food",
            "SNOMED CT 1",
        ),
        ({"text": "aspirin"}, [{"text": "as needed"}], "aspirin; as needed", None),
        (
            coded("Apixaban 5 MG", None),
            [{"timing": {"repeat": {"frequency": 2}}}],
            "Apixaban 5 MG",
            "SNOMED CT 1",
        ),
    ],
)
def test_a_medicine_keeps_its_strength_and_dosage(code, dosage, expected, without_typed):
    elements = {"MedicationRequest": "dosageInstruction", "MedicationStatement": "dosage"}
    for kind, element in elements.items():
        resource = medication(kind, medicationCodeableConcept=code, **{element: dosage})
        record = taken(resource)
        assert record.current_medications == (expected,)
        untold = dosage is not None and "text" not in dosage[0]
        assert (record.fhir_report.missing().get("dosage") == 1) is untold
        untyped = taken(resource, typed_texts="leave_out")
        assert untyped.current_medications == ((without_typed,) if without_typed else ())


def test_a_medication_resource_tells_its_strength():
    strength = {"numerator": quantity(500, "mg"), "denominator": {"value": 1, "unit": "tablet"}}
    resource = {
        "resourceType": "Medication",
        "id": "m",
        "code": concept("1", "Metformin"),
        "ingredient": [{"itemCodeableConcept": {"text": "metformin"}, "strength": strength}],
    }
    request = refers("Medication/m")
    two = {**resource, "ingredient": resource["ingredient"] * 2}
    contents = "; contains metformin 500 mg / 1 tablet"
    assert taken(resource, request).current_medications == (f"Metformin{contents}",)
    assert taken(two, request).current_medications == (f"Metformin{contents}{contents}",)


@pytest.mark.parametrize(
    ("unit", "is_typed"),
    [
        ("mg", False),
        ("mg/mL", False),
        ("tablet", True),
        ("mg for Erika", True),
        ("mg{Erika}", True),
    ],
)
def test_a_strength_in_a_unit_that_somebody_typed_was_typed(unit, is_typed):
    strength = {"numerator": {"value": 500, "unit": unit}}
    ingredient = {"itemCodeableConcept": concept("387137007", "X"), "strength": strength}
    inside = {"resourceType": "Medication", "id": "m", "code": concept("1", "X")}
    request = {**refers("#m"), "contained": [{**inside, "ingredient": [ingredient]}]}
    assert taken(request).current_medications == (f"X; contains X 500 {unit}",)
    without = taken(request, typed_texts="leave_out")
    contents = "" if is_typed else f"; contains SNOMED CT 387137007 500 {unit}"
    assert without.current_medications == (f"SNOMED CT 1{contents}",)
    assert without.fhir_report.missing() == ({"text": 1} if is_typed else {})


# -- risk factors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "system"), [("254837009", SNOMED), ("C50.9", ICD10), ("Z15.01", ICD10)]
)
def test_a_cancer_is_a_condition_and_its_risk_is_the_callers_to_name(code, system):
    record = taken(condition(code=concept(code, "X", system)))
    assert (record.medical_history, record.risk_factors) == (("X",), ())


def test_the_applications_own_risk_factors_follow():
    record = taken(smoking("449868002"), risk_factors=["asbestos"], images=())
    assert record.risk_factors == ("daily smoker", "asbestos")


# -- what Observations say in words -----------------------------------------------------------------


def test_habits_are_risk_factors_however_old():
    pack_years = observation("8664-5", quantity(30, "{pack-years}"), at="2018")
    record = taken(smoking("449868002", at="2019-01-01"), pack_years)
    assert record.risk_factors == ("daily smoker",)
    assert record.fhir_report.not_read == {"Observation 8664-5": 1}


def test_the_body():
    observations = [
        observation("8302-2", quantity(68, "[in_i]"), at="2025-05-01"),
        observation("29463-7", quantity(180, "lbs"), at="2025-05-01"),
        observation("39156-5", quantity(27.4, "kg/m2"), at="2025-05-01"),
        observation("8867-4", quantity(88, "/min")),
    ]
    values = sent(*observations)
    body = {"height": 172.72, "weight": 81.6466, "bmi": 27.4}
    assert values["vitalSigns"] == {"heartRate": 88, **body}
    assert values["riskFactors"] == ("body mass index 27.4 kg/m2",)
    assert values["medicalHistory"] == ("observation: weight 81.6466 kg (as of 45 days ago)",)
    old = taken(observation("39156-5", quantity(27.4, "kg/m2"), at="2020"))
    assert (old.vital_signs, old.risk_factors) == (None, ())
    assert taken(*observations, **ANY_AGE).vital_signs == taken(*observations).vital_signs


# -- sex, and what is left out ----------------------------------------------------------------------

CORE = "http://hl7.org/fhir/us/core/StructureDefinition/us-core-"


SEXES = [
    *(
        (None, gender, sex)
        for gender, sex in (("male", "male"), ("other", "other"), ("unknown", None), (None, None))
    ),
    *(
        (extensions, "female", sex)
        for extensions, sex in [
            ([{"url": f"{CORE}birthsex", "valueCode": "M"}], "male"),
            ([{"url": f"{CORE}sex", "valueCode": "248153007"}], "male"),
            (
                [
                    {"url": f"{CORE}sex", "valueCode": "248152002"},
                    {"url": f"{CORE}birthsex", "valueCode": "M"},
                ],
                "male",
            ),
            ([{"url": f"{CORE}birthsex", "valueCode": "UNK"}], "female"),
            ([{"url": f"{CORE}birthsex", "valueCode": {"x": 1}}], "female"),
            ([{"url": "http://x.example", "valueCode": "M"}], "female"),
            ("x", "female"),
        ]
    ),
]


@pytest.mark.parametrize(("extensions", "gender", "sex"), SEXES)
def test_sex_at_birth_goes_before_administrative_gender(extensions, gender, sex):
    person = patient(extension=extensions or [], gender=gender)
    record = svc.PatientContext.from_fhir(bundle(first=person), today=TODAY)
    assert record.sex == sex
    noted = [line.note for line in record.fhir_report.taken if line.field == "sex"]
    assert ["US Core" in note for note in noted] == [bool(extensions) and sex == "male"] * bool(sex)


# -- typed texts ------------------------------------------------------------------------------------


TEXTS = st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=30)


@given(
    TEXTS,
    st.sampled_from(
        [
            typed,
            lambda text: medication(medicationCodeableConcept={"text": text}),
            lambda text: allergy(code={"text": text}),
        ]
    ),
)
def test_what_was_typed_is_marked_or_left_out(text, make):
    for option in ("take", "leave_out"):
        record = taken(make(f"a {text}"), typed_texts=option)
        values = (*record.medical_history, *record.current_medications, *record.risk_factors)
        notes = [line.note for line in record.fhir_report.taken if line.field not in {"age", "sex"}]
        assert notes == ["typed"] * len(values)
        assert option == "take" or not values


CODES = ["38341003", "E11.9", "MTH", "855332"]
NO_CODES = ["Erika", "Erika Mustermann 7", "for 7", "", None]
PUBLISHED = {SNOMED: "SNOMED CT", ICD10: "ICD-10-CM", RXNORM: "RxNorm", "http://loinc.org": "LOINC"}


def stand_in(code):
    """A resource for each place where a concept is put into words."""
    inside = {"resourceType": "Medication", "id": "m", "code": code}
    parts = [{"itemCodeableConcept": code}]
    mother = {"relationship": code, "condition": [{"code": code}]}
    family = {"resourceType": "FamilyMemberHistory", "status": "completed", "patient": OWN}
    severe = [{"substance": code, "manifestation": [code]}]
    says = {"valueCodeableConcept": code, "at": DAY}
    return [
        condition(code=code, bodySite=[code], severity=code, stage=[{"summary": code}]),
        allergy(code=code, reaction=severe),
        procedure(code=code, bodySite=[code]),
        medication(medicationCodeableConcept=code),
        medication("MedicationStatement", medicationCodeableConcept=code),
        {**refers("#m"), "contained": [{**inside, "ingredient": parts}]},
        {**inside, "id": "beside"},
        refers("Medication/beside"),
        {**family, **mother},
        *(observation(topic, **says) for topic in ("82810-3", "63895-7", "72166-2")),
    ]


@given(
    st.sampled_from(sorted(PUBLISHED)),
    st.sampled_from([*CODES, *NO_CODES]),
    st.sampled_from([None, "Hypertension", "Hypertension (Erika, room 7)"]),
)
def test_without_typed_texts_nothing_is_sent_that_a_sender_wrote_as_a_display(system, code, text):
    coding = {"system": system, "code": code, "display": "Hypertension (Erika, room 7)"}
    coding = {name: value for name, value in coding.items() if value}
    concept = {"coding": [coding], "text": text} if text else {"coding": [coding]}
    record = taken(*stand_in(concept), typed_texts="leave_out")
    texts = (*record.medical_history, *record.current_medications, *record.risk_factors)
    assert not [word for word in ("Erika", "room", "Hyper") if word in str(texts)]
    assert not [word for word in ("Erika", "room", "Hyper") if word in str(record.fhir_report)]
    assert "typed" not in {line.note for line in record.fhir_report.taken}
    if code not in CODES:
        assert texts == ()
        return
    name = f"{PUBLISHED[system]} {code}"
    assert f"{name}; site: {name}; severity: {name}; stage: {name}" in record.medical_history
    assert (len(record.medical_history), len(record.risk_factors)) == (5, 2)
    assert all(name in text for text in texts)
    assert "text" not in record.fhir_report.missing()


# -- whether a medicine is taken yet ----------------------------------------------------------------


BEGUN = st.sampled_from([{}, {"start": PAST}, {"start": DAY}])
LATER = st.builds(lambda end: {"start": NEXT, **end}, st.sampled_from([{}, {"end": "2026"}]))


def request(validity, bounds):
    dosages = [{"text": "daily", "timing": {"repeat": {"boundsPeriod": b}}} for b in bounds]
    return medication(
        dosageInstruction=dosages or None,
        dispenseRequest={"validityPeriod": validity} if validity else None,
    )


@given(BEGUN | LATER, st.lists(LATER, min_size=1, max_size=3))
def test_what_is_not_to_be_taken_yet_is_reported_and_not_sent(validity, bounds):
    record = taken(request(validity, bounds))
    assert not record.current_medications
    assert reasons(record) == ["it has not begun yet"]


@given(BEGUN, st.lists(LATER, max_size=2), BEGUN)
def test_one_dosage_that_has_begun_makes_a_request_current(validity, later, begun):
    assert taken(request(validity, [*later, begun])).current_medications


@given(BEGUN | LATER, st.lists(st.just({}), max_size=3))
def test_dosages_that_name_no_day_begin_with_the_validity(validity, bounds):
    current = taken(request(validity, bounds)).current_medications
    assert bool(current) == bool(taken(request(validity, [])).current_medications)
    assert bool(current) == (validity.get("start") != NEXT)
