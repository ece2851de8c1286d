"""Clinical situations in which a number or a word would be taken for something that it is not."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from fhir_records import (
    ID,
    OWN,
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
    refers,
    sent,
    smoking,
    taken,
)
from pydantic import ValidationError
from test_fhir_history import allergy, procedure, relative, says

import langchain_svc as svc
from langchain_svc.medical.patient import on_wire

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")

LOINC = "http://loinc.org"
SNOMED = "http://snomed.info/sct"


def missing(*resources, **options):
    return taken(*resources, **options).fhir_report.missing()


def component(value, unit, *codes):
    coding = [{"system": LOINC, "code": code} for code in codes]
    return {"code": {"coding": coding}, "valueQuantity": quantity(value, unit)}


def panel(code, *components, **changes):
    return observation(code, component=list(components), **changes)


# -- what a number is about -------------------------------------------------------------------------


def test_a_pulmonary_artery_is_not_the_patients_blood_pressure():
    systolic = component(45, "mm[Hg]", "8480-6", "8440-0")
    diastolic = component(20, "mm[Hg]", "8462-4", "8385-7")
    pulmonary = panel("76284-9", systolic, diastolic, at="2025-06-15T09:00:00Z")
    arterial = pressure(125, 80, at="2025-06-15T08:00:00Z")
    record = taken(arterial, pulmonary)
    assert on_wire(record)["vitalSigns"] == {"systolic": 125, "diastolic": 80}
    assert record.fhir_report.missing() == {"component": 2}


def test_a_pulmonary_pressure_that_is_not_read_takes_no_place_either():
    systolic = component(45, "mm[Hg]", "8480-6")
    pulmonary = panel("76284-9", systolic, meta={"security": [{"code": "R"}]})
    record = taken(pressure(125, 80, at="2025-06-15T08:00:00Z"), pulmonary)
    assert on_wire(record)["vitalSigns"] == {"systolic": 125, "diastolic": 80}
    assert record.fhir_report.missing() == {"Observation": 1}


@pytest.mark.parametrize("codes", [("8480-6",), ("8480-6", "8462-4")])
def test_a_left_ventricle_in_aortic_stenosis_is_no_blood_pressure(codes):
    ventricle = panel("101867-0", component(200, "mm[Hg]", *codes))
    assert taken(ventricle).vital_signs is None
    assert missing(ventricle) == {"component": 1}


def test_a_component_that_names_another_vessel_too_is_no_blood_pressure_in_any_panel():
    assert taken(panel("85354-9", component(45, "mm[Hg]", "8480-6", "8440-0"))).vital_signs is None


@pytest.mark.parametrize("code", ["85354-9", "85353-1", "55284-4"])
def test_a_pressure_of_a_known_panel_is_the_patients(code):
    systolic, diastolic = component(150, "mm[Hg]", "8480-6"), component(95, "mm[Hg]", "8462-4")
    expected = {"systolic": 150, "diastolic": 95}
    assert sent(panel(code, systolic, diastolic))["vitalSigns"] == expected


def test_a_pulse_of_a_cuff_is_the_patients_and_a_mean_pressure_beside_it_gets_a_line():
    pulse, mean = component(71, "/min", "8867-4"), component(110, "mm[Hg]", "8478-0")
    record = taken(panel("85354-9", pulse, mean))
    assert record.vital_signs.heart_rate == 71
    assert reasons(record) == ["a component is not read: 8478-0"]


def test_a_saturation_under_oxygen_says_that_the_oxygen_is_not_sent():
    saturation = observation(
        "2708-6", quantity(95, "%"), component=[component(15, "L/min", "3151-8")]
    )
    record = taken(saturation)
    assert on_wire(record)["vitalSigns"] == {"oxygenSaturation": 95}
    assert record.fhir_report.missing() == {"component": 1}


def test_pressures_lying_and_standing_in_one_panel_are_not_one_reading():
    values = [("8480-6", 160), ("8462-4", 95), ("8480-6", 95), ("8462-4", 60)]
    parts = [component(value, "mm[Hg]", code) for code, value in values]
    for order in (parts, parts[::-1]):
        record = taken(panel("85354-9", *order))
        assert record.vital_signs is None
        assert all("several postures" in reason for reason in reasons(record))


@pytest.mark.parametrize(
    ("site", "there"),
    [
        (concept("368209003", "Right upper arm"), True),
        (concept("45631007", "Radial artery"), True),
        (concept("38266002", "Entire body"), True),
        (concept("344001", "Ankle"), False),
        (concept("61685007", "Lower limb"), False),
        ({"text": "left arm"}, False),
    ],
)
def test_an_ankle_pressure_is_left_out_and_takes_no_place(site, there):
    ankle = pressure(180, 90, at="2025-06-15T10:00:00Z", bodySite=site)
    record = taken(pressure(125, 80, at="2025-06-15T08:00:00Z"), ankle)
    assert record.vital_signs.systolic == (180 if there else 125)
    assert record.fhir_report.missing() == ({} if there else {"Observation": 2})


def test_a_saturation_of_a_finger_is_the_patients_and_of_a_flap_is_not():
    finger = observation("2708-6", quantity(97, "%"), bodySite=concept("7569003", "Finger"))
    flap = observation("2708-6", quantity(60, "%"), bodySite=concept("26107004", "Flap"))
    assert sent(finger, flap)["vitalSigns"] == {"oxygenSaturation": 97}


# -- what a word is about ---------------------------------------------------------------------------

DEGRADED = {
    "coding": [
        {"system": SNOMED, "code": "196461000000101", "display": "Transfer-degraded drug allergy"}
    ],
    "text": "Amoxicillin 250mg capsules",
}


def test_an_allergy_whose_coding_was_lost_keeps_its_substance():
    code = "SNOMED CT 196461000000101"
    resource = allergy(code=DEGRADED)
    assert taken(resource).medical_history == (
        f"allergy: Transfer-degraded drug allergy [{code}]; as written: Amoxicillin 250mg capsules",
    )
    without = taken(resource, typed_texts="leave_out")
    assert without.medical_history == (f"allergy: {code}",)
    assert without.fhir_report.missing() == {"text": 1}


def test_an_allergy_to_nothing_named_has_the_substance_of_its_reaction():
    reaction = {
        "substance": concept("372687004", "Amoxicillin"),
        "manifestation": [concept("39579001", "Anaphylaxis")],
    }
    resource = allergy("Allergy", reaction=[reaction])
    expected = "allergy: Allergy; substance: Amoxicillin; reaction: Anaphylaxis"
    assert taken(resource).medical_history == (expected,)


def test_a_tolerated_food_stays_beside_the_one_that_is_not():
    code = {**concept("91935009", "Fish"), "text": "Allergic to fresh fish. Tolerates canned fish"}
    (text,) = taken(allergy(code=code)).medical_history
    assert text.endswith("as written: Allergic to fresh fish. Tolerates canned fish")


def test_a_cancer_keeps_its_site_severity_and_stage():
    resource = condition(
        display="Malignant neoplasm of colon",
        bodySite=[concept("10200004", "Liver")],
        severity=concept("24484000", "Severe"),
        stage=[{"summary": concept("2640006", "Stage IV"), "type": {"text": "not sent"}}],
    )
    expected = "Malignant neoplasm of colon; site: Liver; severity: Severe; stage: Stage IV"
    assert taken(resource).medical_history == (expected,)


def test_an_amputation_keeps_its_side():
    resource = procedure("Amputation", bodySite=[concept("32153003", "Left lower limb")])
    assert taken(resource).medical_history == (
        "procedure: Amputation (2001); site: Left lower limb",
    )


def test_two_terminologies_that_differ_are_both_told():
    coding = [
        *concept("1", "Colon cancer")["coding"],
        *concept("C18", "Cancer, spread", "http://hl7.org/fhir/sid/icd-10")["coding"],
    ]
    (text,) = taken(condition(code={"coding": coding})).medical_history
    assert text == "Colon cancer; also coded as: Cancer, spread"


# -- what changes a meaning -------------------------------------------------------------------------

CERTAINTY = "http://fhir.de/StructureDefinition/icd-10-gm-diagnosesicherheit"
ADHERENCE = "http://hl7.org/fhir/us/core/StructureDefinition/us-core-medication-adherence"
EXPOSURE = "http://hl7.org/fhir/StructureDefinition/allergyintolerance-substanceExposureRisk"


def certain(code):
    resource = condition(
        code=concept("I21.9", "Infarction", "http://fhir.de/CodeSystem/bfarm/icd-10-gm")
    )
    resource["code"]["coding"][0]["extension"] = [{"url": CERTAINTY, "valueCoding": {"code": code}}]
    return resource


@pytest.mark.parametrize(
    ("code", "text", "counts"),
    [
        ("A", None, {}),
        ("V", "Infarction (unconfirmed)", {}),
        ("Z", None, {"Condition": 1}),
        ("G", "Infarction", {}),
        ("X", "Infarction", {"extension": 1}),
    ],
)
def test_an_excluded_infarction_is_none_and_a_suspected_one_says_so(code, text, counts):
    record = taken(certain(code))
    assert record.medical_history == ((text,) if text else ())
    assert record.fhir_report.missing() == counts
    state_after = taken(certain("Z"), past_conditions=True)
    assert state_after.medical_history == ("Infarction (past)",)


def adherent(code):
    inner = {"url": "medicationAdherence", "valueCodeableConcept": concept(code, "x")}
    return medication(extension=[{"url": ADHERENCE, "extension": [inner]}])


@pytest.mark.parametrize(
    ("code", "there", "counts"),
    [
        ("715036001", False, {"MedicationRequest": 1}),
        ("1156699004", True, {}),
        ("1", True, {"extension": 1}),
    ],
)
def test_a_medicine_that_the_patient_does_not_take_is_not_current(code, there, counts):
    record = taken(adherent(code))
    assert bool(record.current_medications) is there
    assert record.fhir_report.missing() == counts


def test_a_substance_without_a_known_risk_is_no_allergy():
    risk = {"url": EXPOSURE, "valueCodeableConcept": concept("no-known-reaction-risk", "x")}
    assert taken(allergy(extension=[risk])).medical_history == ()


UNKNOWN_EXTENSIONS = {
    "http://x.example/StructureDefinition/negated": "negated",
    "http://x.example/r4/StructureDefinition/extension/legal-sex": "legal-sex",
    "https://x.example/StructureDefinition/X_EX_Base_Stage": "X_EX_Base_Stage",
    **dict.fromkeys(
        (
            "Quuxberg482",
            "urn:x:Quuxberg482",
            "http://x.example/Quuxberg482",
            "http://x.example/Patient/Quuxberg482",
            "http://x.example/StructureDefinition/negated?of=Quuxberg482",
            "http://x.example/StructureDefinition/of Quuxberg482",
            "http://x.example/StructureDefinition/born/1970/Quuxberg482",
        ),
        "one without a definition",
    ),
}


@pytest.mark.parametrize(("url", "name"), UNKNOWN_EXTENSIONS.items())
def test_extensions_that_nobody_knows_are_named_by_their_definition_alone(url, name):
    resource = condition(extension=[{"url": url, "valueString": "Quuxberg482"}])
    resource["_recordedDate"] = {"extension": [{"url": url}]}
    record = taken(resource)
    assert set(reasons(record)) == {f"an extension is not read: {name}"}
    assert "Quuxberg482" not in str(record.fhir_report)


@pytest.mark.parametrize(
    ("status", "remark"),
    [
        ({"text": "Confirmed"}, ""),
        ({"text": "unconfirmed"}, " (unconfirmed)"),
        ({"coding": [{"code": "415684004"}]}, " (unconfirmed)"),
        ({"text": "Refuted"}, None),
        ({"coding": [{"code": "410516002"}], "text": "Known absent"}, None),
        ({"text": "perhaps"}, None),
    ],
)
def test_what_is_not_verified_is_not_sent(status, remark):
    for make in (lambda **c: condition(display="X", **c), lambda **c: allergy("X", **c)):
        record = taken(make(verificationStatus=status))
        assert [text.partition("X")[2] for text in record.medical_history] == (
            [] if remark is None else [remark]
        )
        # What nobody understands may be true, and is missing.
        assert bool(record.fhir_report.missing()) is (status == {"text": "perhaps"})


def test_a_clinical_status_that_is_not_known_is_said():
    (text,) = taken(condition(display="X", clinicalStatus={"text": "chronic"})).medical_history
    assert text == "X (status unknown)"


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        (
            says("82810-3", valueString="pregnant, 20 weeks"),
            "observation: pregnancy status: pregnant, 20 weeks",
        ),
        (
            says("82810-3", valueCodeableConcept={"text": "schwanger"}),
            "observation: pregnancy status: schwanger",
        ),
        (
            says("63895-7", "2025-06-14", valueString="still nursing"),
            "observation: breastfeeding status: still nursing (as of 1 day ago)",
        ),
    ],
)
def test_a_pregnancy_that_was_only_typed_reaches_the_record(resource, text):
    assert taken(resource).medical_history == (text,)
    without = taken(resource, typed_texts="leave_out")
    assert without.medical_history == ()
    assert without.fhir_report.missing() == {"Observation": 1}


def test_a_typed_pregnancy_that_no_record_takes_loses_itself_and_not_the_record():
    record = taken(says("82810-3", valueString="<b>pregnant</b>"), condition())
    assert record.medical_history == ("Essential hypertension (disorder)",)
    assert record.fhir_report.missing() == {"Observation": 1}


# -- whose it is ------------------------------------------------------------------------------------

OTHER = "11111111-0000-4000-8000-000000000000"
CREATININE = {
    k: v for k, v in observation("2160-0", quantity(9.9, "mg/dL")).items() if k != "subject"
}


def test_a_creatinine_of_nobody_is_not_given_to_one_of_two_patients():
    source = [patient(), patient(id=OTHER), CREATININE]
    record = svc.PatientContext.from_fhir(source, today=TODAY, patient=ID)
    assert record.lab_results is None
    assert record.fhir_report.missing() == {"Observation": 1}
    alone = svc.PatientContext.from_fhir([patient(), CREATININE], today=TODAY, patient=ID)
    assert alone.lab_results.creatinine == 9.9


def test_the_same_id_on_two_laboratories_servers_is_nobody():
    hosts = ("https://lab.example/fhir", "https://other.example")
    about = [{"reference": f"{host}/Patient/{ID}"} for host in hosts]
    resources = [
        patient(),
        observation("2160-0", quantity(9.9, "mg/dL"), subject=about[0]),
        condition(subject=about[1]),
        condition(display="Own", subject={"reference": f"Patient/{ID}"}),
    ]
    record = svc.PatientContext.from_fhir(resources, today=TODAY)
    assert on_wire(record) == {"age": 61, "sex": "female", "medicalHistory": ("Own",)}
    assert record.fhir_report.missing() == {"Observation": 1, "Condition": 1}
    one_server = svc.PatientContext.from_fhir(resources[:2], today=TODAY)
    assert one_server.lab_results.creatinine == 9.9


# -- false, and not sent ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "counts"),
    [
        (condition(clinical="resolved"), {"Condition": 1}),
        (medication(doNotPerform=True), {"MedicationRequest": 1}),
        *(
            (medication(status=status), {"MedicationRequest": 1})
            for status in ("on-hold", "unknown", "stopped")
        ),
        (medication(intent="plan", reportedBoolean=True), {"MedicationRequest": 1}),
        (
            {
                "resourceType": "MedicationStatement",
                "status": "recorded",
                "subject": OWN,
                "medication": {"concept": {"text": "Tylenol"}},
            },
            {"MedicationStatement": 1},
        ),
        (procedure(status="in-progress"), {"Procedure": 1}),
        *(
            (resource, {})
            for resource in (
                condition(verified="refuted"),
                condition(verified="entered-in-error"),
                medication(status="entered-in-error"),
                procedure(status="entered-in-error"),
                observation("8867-4", quantity(80, "/min"), status="entered-in-error"),
            )
        ),
    ],
)
def test_only_what_is_false_is_left_out_without_being_counted(resource, counts):
    record = taken(resource)
    assert on_wire(record) == on_wire(taken())
    assert record.fhir_report.missing() == counts
    assert len(reasons(record)) == 1


@pytest.mark.parametrize(
    "resource",
    [medication(), procedure(), observation("8867-4", quantity(80, "/min")), relative()],
    ids=lambda resource: resource["resourceType"],
)
@pytest.mark.parametrize(
    "changes",
    [
        {"meta": {"security": [{"code": "R"}]}},
        {"modifierExtension": [{"url": "http://x.example"}]},
        {"subject": OWN, "patient": OWN, "wrong": [1]},
    ],
)
def test_what_was_entered_in_error_is_not_missing_whatever_else_it_is(resource, changes):
    pulse = observation("8867-4", quantity(70, "/min"), at="2025-06-15T08:00:00-05:00")
    record = taken(pulse, {**resource, **changes, "status": "entered-in-error"})
    assert record.vital_signs.heart_rate == 70
    assert reasons(record) == ["it is entered-in-error"]
    assert record.fhir_report.missing() == {}


def test_a_duplicate_and_an_older_reading_are_not_missing():
    rates = [observation("8867-4", quantity(80, "/min"), at=f"2025-06-1{day}") for day in (4, 5)]
    assert missing(condition(), condition(), *rates) == {}


CODES = [
    ("46418-0", 2.4, "{INR}", "inr"),
    ("39789-3", 7.1, "mmol/L", "potassium"),
    ("33914-3", 44, "mL/min/{1.73_m2}", "egfr"),
    ("48642-3", 44, "mL/min/{1.73_m2}", "egfr"),
    ("41653-7", 99, "mg/dL", "glucose"),
    ("32016-8", 99, "mg/dL", "glucose"),
    ("20564-1", 70, "%", "bloodOxygenSaturation"),
    ("20565-8", 24, "mmol/L", "totalCo2"),
    ("49765-1", 9, "mg/dL", "calcium"),
]


@pytest.mark.parametrize(("code", "value", "unit", "name"), CODES)
def test_a_bedside_result_reaches_the_record_without_an_option(code, value, unit, name):
    assert sent(observation(code, quantity(value, unit)))["labResults"] == {name: value}


def test_what_a_sender_wrote_as_the_code_of_a_component_is_not_repeated():
    named = [component(1, "1", "Erika Mustermann"), component(1, "1", "8867-4", "Erika Mustermann")]
    record = taken(panel("85354-9", component(120, "mm[Hg]", "8480-6"), *named))
    assert len(reasons(record)) == 2
    assert "Erika" not in repr(record.fhir_report)


def test_codes_that_are_not_read_are_counted_by_name():
    observations = [observation("1798-8", quantity(80, "U/L"))] * 2
    observations += [
        observation("1", quantity(1, "1")),
        {**observation("1"), "code": concept("27113001", "Body weight")},
    ]
    record = taken(*observations, {"resourceType": "Immunization"})
    assert record.fhir_report.not_read == {
        "Observation 1798-8": 2,
        "Observation": 1,
        "Observation 27113001": 1,
        "Immunization": 1,
    }


def test_a_weekly_dose_without_a_text_is_counted():
    weekly = {"timing": {"repeat": {"frequency": 1, "period": 1, "periodUnit": "wk"}}}
    record = taken(medication(display="methotrexate 2.5 MG", dosageInstruction=[weekly]))
    assert record.fhir_report.missing() == {"dosage": 1}


# -- labels and consent -----------------------------------------------------------------------------


def labelled(code):
    return {"meta": {"security": [{"code": code}]}}


HIV = condition("86406008", "HIV infection")
DENIES = {
    "resourceType": "Consent",
    "status": "active",
    "patient": OWN,
    "provision": {"type": "deny"},
}
WITHIN = {**DENIES, "provision": {"type": "permit", "provision": [{"type": "deny"}]}}
COMPOSITION = {"resourceType": "Composition", "status": "final", "subject": OWN}
RESTRICTED = [
    (bundle(HIV, **labelled("V")), "security label of Bundle"),
    (bundle(HIV, first=patient(**labelled("R"))), "security label of Patient"),
    (bundle(HIV, first=patient(**labelled("SPI"))), "security label of Patient"),
    (bundle(HIV, {**COMPOSITION, "confidentiality": "V"}), "security label of Composition"),
    (bundle(HIV, {**COMPOSITION, **labelled("GDIS")}), "security label of Composition"),
    ([bundle(), bundle(HIV, **labelled("V"))], "security label of Bundle"),
    (bundle(HIV, DENIES), r"entry\[2\].*a consent that is active denies"),
    (bundle(HIV, WITHIN), "a consent that is active denies"),
]


@pytest.mark.parametrize(("source", "reason"), RESTRICTED)
def test_a_record_that_is_restricted_as_a_whole_is_not_read(source, reason):
    with pytest.raises(svc.SvcRequestError, match=f"{reason}.*restricted=True"):
        svc.PatientContext.from_fhir(source, today=TODAY)
    record = svc.PatientContext.from_fhir(source, today=TODAY, restricted=True)
    assert "HIV infection" in record.medical_history
    assert record.fhir_report.restricted
    assert "restricted=True" in str(record.fhir_report)


@pytest.mark.parametrize(
    "consent",
    [
        {**DENIES, "status": "inactive"},
        {**DENIES, "provision": {"type": "permit"}},
        {**DENIES, "patient": {"reference": f"Patient/{OTHER}"}},
    ],
)
def test_a_consent_that_denies_nothing_of_this_patient_stops_nothing(consent):
    record = svc.PatientContext.from_fhir(bundle(HIV, consent), today=TODAY, patient=ID)
    assert record.medical_history == ("HIV infection",)
    assert not record.fhir_report.restricted


# -- the time of the record -------------------------------------------------------------------------

NOW = datetime(2025, 6, 15, 8, tzinfo=UTC)


def read(*resources, **options):
    return svc.PatientContext.from_fhir(bundle(*resources), **options)


@pytest.mark.parametrize(
    ("hours", "there"), [(1, True), (9, True), (23.9, True), (24.1, False), (47, False)]
)
def test_a_troponin_of_47_hours_is_not_of_the_last_24(hours, there):
    at = (NOW - timedelta(hours=hours)).isoformat()
    record = read(observation("10839-9", quantity(0.04, "ng/mL"), at=at), now=NOW)
    assert (record.lab_results is not None) is there


@pytest.mark.parametrize(("hours", "there"), [(1, True), (7, False)])
def test_a_window_of_six_hours_is_one_of_hours_across_midnight(hours, there):
    just_after_midnight = datetime(2025, 6, 15, 0, 30, tzinfo=UTC)
    at = (just_after_midnight - timedelta(hours=hours)).isoformat()
    width = {"troponin": timedelta(hours=6)}
    resource = observation("10839-9", quantity(0.04, "ng/mL"), at=at)
    record = read(resource, now=just_after_midnight, windows=width)
    assert (record.lab_results is not None) is there


def test_a_result_of_later_the_same_day_is_not_known_yet():
    at = (NOW + timedelta(hours=3)).isoformat()
    record = read(observation("8867-4", quantity(88, "/min"), at=at), now=NOW)
    assert record.vital_signs is None
    assert reasons(record) == ["it was made after the day of the record"]


@pytest.mark.parametrize(
    "options", [{"now": NOW, "today": TODAY}, {"now": NOW.replace(tzinfo=None)}, {"now": TODAY}]
)
def test_a_moment_without_a_time_zone_or_beside_a_day_is_refused(options):
    with pytest.raises(svc.SvcRequestError, match="now"):
        read(**options)


DOUBTED = [
    (
        {"lab_results": {"creatinine": 88}},
        "creatinine must be 0.01 to 75 mg/dL: it is probably in µmol/L",
    ),
    (
        {"lab_results": {"potassium": 45}},
        "potassium must be 0.5 to 20 mmol/L: it is probably in mg/dL",
    ),
    (
        {"vital_signs": {"SpO2": 0.97}},
        "oxygenSaturation must be 10 to 100 %: it is probably a fraction",
    ),
    ({"vital_signs": {"oxygenSaturation": 970}}, "another unit, or a slip"),
    ({"lab_results": {"hemoglobin": 140}}, "probably in g/L"),
]


@pytest.mark.parametrize(("fields", "reason"), DOUBTED)
def test_a_reading_that_nobody_has_is_refused_with_its_probable_unit(fields, reason):
    with pytest.raises(ValidationError) as caught:
        svc.PatientContext(**fields)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("born", "age"), [("2025", None), ("2024-01", None), ("2023-06-16", 2.0), ("2022", 3)]
)
def test_a_newborn_whose_day_of_birth_is_unknown_has_no_age(born, age):
    record = svc.PatientContext.from_fhir(bundle(first=patient(birthDate=born)), today=TODAY)
    assert record.age == age
    assert record.fhir_report.missing() == ({} if age else {"age": 1})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"onsetDateTime": "2009-03"}, "Normal pregnancy (since 2009)"),
        ({"onsetPeriod": {"start": "2009"}}, "Normal pregnancy (since 2009)"),
        ({"recordedDate": "2009-03-01"}, "Normal pregnancy (recorded 2009)"),
        ({}, "Normal pregnancy"),
    ],
)
def test_a_pregnancy_that_was_never_closed_says_its_year(changes, text):
    assert taken(condition(display="Normal pregnancy", **changes)).medical_history == (text,)


@pytest.mark.parametrize(
    "text", ["NKDA", "Keine bekannten Allergien", "Nessuna allergia nota", "Penicillin"]
)
def test_an_allergy_that_was_only_typed_may_say_that_there_is_none(text):
    assert taken(allergy(code={"text": text})).medical_history == (f"allergy as written: {text}",)


@pytest.mark.parametrize(
    "system", [SNOMED, "http://hl7.org/fhir/uv/ips/CodeSystem/absent-unknown-uv-ips"]
)
def test_no_known_allergies_as_a_code_is_no_allergy(system):
    resource = allergy(code=concept("716186003", "Keine bekannte Allergie", system))
    assert taken(resource).medical_history == ()


# -- the dead, and what a house never sends ---------------------------------------------------------


def test_the_record_of_somebody_who_has_died_at_an_unknown_time_is_read_as_of_a_day_that_is_named():
    source = bundle(condition(), first=patient(deceasedBoolean=True))
    with pytest.raises(svc.SvcRequestError, match=r"has died \(deceasedBoolean\).*today= or now="):
        svc.PatientContext.from_fhir(source)
    record = svc.PatientContext.from_fhir(source, today=TODAY)
    assert record.medical_history
    assert record.fhir_report.missing() == {"date of death": 1}
    alive = patient(deceasedBoolean=False)
    assert svc.PatientContext.from_fhir(bundle(first=alive)).sex == "female"


def is_hiv(resource):
    codings = resource.get("code", {}).get("coding", [])
    return any(coding["code"] == "86406008" for coding in codings)


@pytest.mark.parametrize(
    "rule", [["86406008"], [f"{SNOMED}|86406008"], is_hiv], ids=["code", "system", "function"]
)
def test_what_a_house_never_sends_is_left_out_with_a_line(rule):
    record = taken(HIV, condition(), leave_out=rule)
    assert record.medical_history == ("Essential hypertension (disorder)",)
    assert reasons(record) == ["the application never sends it (leave_out)"]


def test_a_category_and_a_medicine_elsewhere_are_left_out_as_well():
    resource = {"resourceType": "Medication", "id": "m", "code": concept("1", "zidovudine")}
    request = refers("Medication/m")
    record = taken(resource, request, smoking("449868002"), leave_out=["1", "vital-signs"])
    assert on_wire(record) == on_wire(taken())
    assert record.fhir_report.missing() == {"MedicationRequest": 1, "Observation": 1}


def test_an_older_reading_does_not_take_the_place_of_one_that_is_never_sent():
    readings = [observation("8867-4", quantity(80, "/min"), at=f"2025-06-1{day}") for day in (4, 5)]
    record = taken(*readings, leave_out=lambda raw: raw.get("effectiveDateTime") == "2025-06-15")
    assert record.vital_signs is None


def test_a_rule_of_the_house_that_fails_says_nothing_of_the_patient():
    def rule(resource):
        raise ValueError(resource)

    with pytest.raises(svc.SvcRequestError, match="leave_out raised ValueError") as raised:
        taken(HIV, leave_out=rule)
    assert raised.value.__context__ is None
    with pytest.raises(svc.SvcRequestError, match="not one text"):
        taken(leave_out="86406008")


def test_the_day_that_is_named_may_be_a_moment_of_it():
    assert read(today=datetime(2025, 6, 15, 21, tzinfo=UTC)).age == 61
    assert read(today=date(2025, 6, 16)).age == 62
