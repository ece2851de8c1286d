"""PatientContext.from_fhir: the forms a record comes in, and that nothing is silently missing."""

from __future__ import annotations

import copy
import json
import re
import traceback
import warnings

import pytest
from fhir_records import (
    EXPECTED,
    ID,
    NAMES,
    TODAY,
    WHOLE,
    as_json,
    bundle,
    condition,
    medication,
    observation,
    patient,
    pressure,
    quantity,
    reasons,
    refused,
    taken,
)  # fmt: skip

import langchain_svc as svc
from langchain_svc.medical.patient import on_wire

Bundle = pytest.importorskip("fhir.resources.R4B.bundle", reason="the extra fhir is not installed").Bundle  # fmt: skip


def read(source, **options):
    return svc.PatientContext.from_fhir(source, today=TODAY, **options)


# -- forms ------------------------------------------------------------------------------------------

RESOURCES = [entry["resource"] for entry in WHOLE["entry"]]


def searchset(*resources, **changes):
    entries = [{"resource": one, "search": {"mode": "match"}} for one in resources]
    return {"resourceType": "Bundle", "type": "searchset", "entry": entries, **changes}


def batch(*bundles):
    entries = [{"resource": one, "response": {"status": "200"}} for one in bundles]
    return {"resourceType": "Bundle", "type": "batch-response", "entry": entries}


def test_the_answers_to_a_batch_are_read():
    record = read(batch(searchset(*RESOURCES[:5]), searchset(*RESOURCES[5:])))
    assert on_wire(record) == EXPECTED
    rates = [one for one in record.fhir_report.taken if one.code == "8867-4"]
    assert rates[0].entry == "1.6"
    bad = {**condition(), "code": {"text": 5}}
    with pytest.raises(
        svc.SvcRequestError,
        match=r"^Bundle\.entry\[1\]\.resource\.entry\[0\]\.resource \(Condition\): code\.text",
    ):
        read(batch(searchset(patient()), searchset(bad)), problems="raise")


def test_bundles_are_not_nested_without_end():
    made = searchset(*RESOURCES)
    for _ in range(9):
        made = batch(made)
    with pytest.raises(svc.SvcRequestError, match="nested more than"):
        read(made)


PAGES = [
    searchset(*RESOURCES[:9], link=[{"relation": "next", "url": "x"}]),
    searchset(*RESOURCES[9:]),
]
LINES = "\n".join(map(as_json, RESOURCES))
KNOWN = [one for one in WHOLE["entry"] if one["resource"]["resourceType"] not in {"Claim", "Encounter"}]  # fmt: skip
FORMS = {
    "dict": lambda _: WHOLE, "text": lambda _: as_json(WHOLE), "bytes": lambda _: as_json(WHOLE).encode(), "bytes with a mark": lambda _: b"\xef\xbb\xbf" + as_json(WHOLE).encode(),
    "object": lambda _: Bundle.model_validate_json(as_json({**WHOLE, "entry": KNOWN})),
    "list": lambda _: RESOURCES, "pages": lambda _: PAGES, "list of texts": lambda _: [as_json(one) for one in RESOURCES], "lines": lambda _: LINES, "lines in bytes": lambda _: b"\xef\xbb\xbf" + LINES.encode(),
    "path": lambda at: written(at, as_json(WHOLE)), "path to lines": lambda at: written(at, LINES + "\n\n"), "paths": lambda at: [written(at, text) for text in ("\n".join(LINES.split("\n")[:9]), "", as_json(PAGES[1]))],
}  # fmt: skip


def written(folder, text):
    path = folder / f"{len([*folder.iterdir()])}.ndjson"
    path.write_text(text)
    return path


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms_of_a_record(form, tmp_path):
    assert on_wire(read(form(tmp_path))) == EXPECTED


def test_one_patient_alone_and_objects():
    from fhir.resources.R4B.condition import Condition
    from fhir.resources.R4B.patient import Patient

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = pytest.importorskip("fhirclient.models.bundle")
    assert on_wire(read(patient())) == {"age": 61, "sex": "female"}
    assert on_wire(read(Patient.model_validate(patient()))) == {"age": 61, "sex": "female"}
    objects = [
        Patient.model_validate(patient()),
        Condition.model_validate_json(as_json(condition())),
        medication(),
    ]
    assert read(objects).medical_history == ("Essential hypertension (disorder)",)
    assert read(objects).current_medications == ("lisinopril 10 MG Oral Tablet",)
    made = json.loads(as_json({**WHOLE, "entry": WHOLE["entry"][:1] + WHOLE["entry"][2:-2]}))
    assert on_wire(read(client.Bundle(made))) == EXPECTED


def test_a_file_or_line_that_cannot_be_read_is_told_without_its_name(tmp_path):
    with pytest.raises(svc.SvcRequestError, match="cannot be read: No such file") as raised:
        read(tmp_path / f"{NAMES['family']}.json")
    assert NAMES["family"] not in str(raised.value)
    lines = as_json(patient()) + "\n{" + NAMES["family"]
    with pytest.raises(
        svc.SvcRequestError, match="Line 2 of the record is not valid JSON"
    ) as raised:
        read(lines)
    assert NAMES["family"] not in str(raised.value)


OTHER = "11111111-0000-4000-8000-000000000000"


@pytest.mark.parametrize("wanted", [ID, f"Patient/{ID}", f"https://a.example/fhir/Patient/{ID}"])
def test_one_patient_of_a_bulk_export(wanted):
    others = {"reference": f"Patient/{OTHER}"}
    made = [
        patient(id=OTHER, gender="male", birthDate="1990-01-01"), condition(display="X", subject=others), observation("8867-4", quantity(61, "/min"), subject=others),
        patient(), condition(subject={"reference": f"Patient/{ID}"}), observation("8867-4", quantity(88, "/min"), subject={"reference": f"Patient/{ID}"}),
    ]  # fmt: skip
    made.append(patient(id="11111111-0000-4000-8000-000000000001"))
    lines = "\n".join(map(as_json, made))
    record = read(lines, patient=wanted)
    assert on_wire(record) == {
        "age": 61, "sex": "female", "medicalHistory": ("Essential hypertension (disorder)",), "vitalSigns": {"heartRate": 88},
    }  # fmt: skip
    assert record.fhir_report.not_read == {"of other patients": 4}
    with pytest.raises(
        svc.SvcRequestError, match=r"3 patients \(entries 0, 3, 6\).*name one with patient="
    ):
        read(lines)
    with pytest.raises(
        svc.SvcRequestError, match=r"nothing that is taken \(not read: 7 of other patients"
    ):
        read(lines, patient="nobody")


def test_pages_may_repeat_the_patient():
    pages = [
        searchset(observation("8867-4", quantity(88, "/min")), patient()),
        searchset(condition(), patient()),
    ]
    record = read(pages)
    assert (record.age, record.vital_signs.heart_rate) == (61, 88)
    assert reasons(record) == ["the same is there already"]
    for page, host in zip(pages, "ab", strict=True):
        page["entry"][1]["fullUrl"] = f"https://{host}.example/fhir/Patient/{ID}"
    with pytest.raises(svc.SvcRequestError, match="2 patients"):
        read(pages)
    with pytest.raises(svc.SvcRequestError, match="2 patients"):
        read([patient(id=None), patient(id=None)])


# -- what is missing --------------------------------------------------------------------------------


NOTHING = [
    (searchset(), "it has no resources"), (searchset({"resourceType": "Claim"}, {"resourceType": "Claim"}), "not read: 2 Claim"), (batch(searchset(), searchset({"resourceType": "OperationOutcome"})), "not read: 1 OperationOutcome"),
    (searchset(condition(display="X", verified="refuted")), "left out: it is refuted"), (searchset(condition("160245001", "No current problems or disability")), "left out: it says that nothing is known"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "said"), NOTHING)
def test_an_empty_record_is_refused(made, said):
    with pytest.raises(svc.SvcRequestError, match=rf"nothing that is taken \({said}.*partial=True"):
        read(made)
    record = read(made, partial=True)
    assert on_wire(record) == {}
    assert isinstance(record.fhir_report, svc.FhirReport)


NEXT = [{"relation": "self", "url": "http://x"}, {"relation": "next", "url": "http://y"}]


@pytest.mark.parametrize(
    "made",
    [
        bundle(condition(), link=NEXT),
        batch(bundle(condition(), link=NEXT)),
        [searchset(patient()), bundle(condition(), first=observation("1-8"), link=NEXT)],
    ],
)
def test_one_page_of_several_is_refused(made):
    with pytest.raises(svc.SvcRequestError, match=r"one page of several.*partial=True"):
        read(made)
    record = read(made, partial=True)
    assert record.fhir_report.further_pages
    assert "one page of several" in str(record.fhir_report)
    assert not taken().fhir_report.further_pages


FAILED = {"resourceType": "OperationOutcome", "issue": [{"severity": "error", "code": "timeout"}]}
WARNED = {"resourceType": "OperationOutcome", "issue": [{"severity": "warning", "code": "informational"}]}  # fmt: skip


def test_a_search_that_failed_in_part_is_no_record():
    with pytest.raises(svc.SvcRequestError, match=r"OperationOutcome with an error.*partial=True"):
        read(searchset(patient(), condition(), FAILED))
    assert read(searchset(patient(), condition(), FAILED), partial=True).medical_history
    assert read(searchset(patient(), condition(), WARNED)).medical_history


FOREIGN = "an element of FHIR STU3 or R5"


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({**condition(), "clinicalStatus": "active"}, "clinicalStatus is not what FHIR R4 allows"), ({**condition(), "assertedDate": "2020"}, FOREIGN), ({"resourceType": "Condition", "patient": {}, "code": {}}, "subject is missing"), ({"resourceType": "MedicationOrder"}, "no resource of this type"),
        (observation("8867-4", quantity(88, "/min"), context={"reference": "Encounter/1"}), FOREIGN), ({**medication("MedicationStatement"), "taken": "n"}, FOREIGN), ({"resourceType": "MedicationStatement", "status": "active", "patient": {}, "wasNotTaken": True, "medicationCodeableConcept": {"text": "x"}}, "subject is missing"),
        ({**medication("MedicationStatement", medicationCodeableConcept=None), "medication": {"concept": {}}}, FOREIGN), ({"resourceType": "Procedure", "status": "completed", "notDone": True}, FOREIGN), ({"resourceType": "AllergyIntolerance", "patient": {"reference": f"Patient/{ID}"}, "type": {"text": "allergy"}}, "type must be a text"),
    ],
)  # fmt: skip
def test_what_is_of_another_version_is_left_out(made, reason):
    record = read([pressure(120, 80), made])
    assert on_wire(record) == {"vitalSigns": {"systolic": 120, "diastolic": 80}}
    assert [reason in one for one in reasons(record)] == [True]


def test_r4_is_not_taken_for_another_version():
    whole = copy.deepcopy(WHOLE)
    for entry in whole["entry"]:
        entry["resource"]["meta"] = {
            "profile": ["http://hl7.org/fhir/us/core/StructureDefinition/x"]
        }
        entry["resource"]["vendorsOwn"] = {"reference": "Encounter/1"}
    assert on_wire(read(whole)) == EXPECTED


# -- one bad element --------------------------------------------------------------------------------

SECRET = NAMES["family"]
BAD = [
    (observation("8310-5", {"value": 98.6137}), r"entry\[2\].*8310-5, for vital_signs\.temperature: it has no unit; it is sent in Cel"), (observation("9279-1", quantity(986.6137, "/min")), "is not between 0 and 150"),
    (observation("8310-5", quantity(98.6137, "Cel")), r"temperature: it is not between 20 and 45 Cel"), (observation("9279-1", quantity(18, "/min"), at="2025-06-15 10:00"), "effectiveDateTime is not what FHIR R4 allows"),
    (pressure(93.6137, 98.6137), "diastolic must be below systolic.*exchanged"), (condition(display="a <b>98.6137</b>"), r"entry\[2\].* \(Condition\): .*markup"), (condition(display="x" * 2100), "at most 2,000 characters"), ({**condition(), "code": {"text": 5}}, "must be a text"),
    (observation("2160-0", quantity(98.6137, "furlong")), "unit cannot be converted to mg/dL"), (observation("10839-9", quantity(98.6137, "mol/L")), "cannot be converted to ng/mL"), (observation("2160-0", quantity(-98.6137, "mg/dL")), "creatinine: it is not between"),
    (patient(birthDate="2999-01-01"), "birthDate is after"), (patient(birthDate=SECRET), r"entry\[0\]\.resource \(Patient\): birthDate is not what"), (patient(birthDate="1963-13-41"), "birthDate is not what"),
    (observation("9279-1", {"value": SECRET}), r"entry\[2\].*valueQuantity\.value is not what"), (observation("9279-1", {SECRET: 1}), "valueQuantity holds an element that FHIR R4 does not have"), ({**condition(), "assertedDate": SECRET}, "holds an element of FHIR STU3 or R5"),
    ({"resourceType": "Observation", "status": "final"}, "code is missing"), (observation("9279-1", quantity(18, "/min"), valueCodeableConcept={}), "the resource is not what"), (observation("9279-1", quantity(float("nan"), "/min")), "value is not what"),
    (medication(medicationCodeableConcept={"text": [SECRET]}), r"medicationCodeableConcept\.text must be a text"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "said"), BAD)
def test_one_bad_element_loses_itself_and_not_the_record(bad, said):
    good = [condition("1", "good"), observation("8867-4", quantity(88, "/min"))]
    first = bad if bad["resourceType"] == "Patient" else patient()
    made = bundle(good[0], *([] if first is bad else [bad]), good[1], first=first)
    with pytest.raises(svc.SvcRequestError, match=said) as raised:
        read(made, problems="raise")
    text = "".join(traceback.format_exception(raised.value)).split("SvcRequestError: ")[-1]
    assert "direct cause" not in text and "During handling" not in text
    record = read(made)
    for told in (text, str(record.fhir_report)):
        assert not [mark for mark in (".6137", SECRET, "1963-13") if mark in told]
    assert record.medical_history == ("good",)
    assert record.vital_signs.heart_rate == 88
    assert record.vital_signs.systolic is None
    assert {one.entry for one in record.fhir_report.left_out} == {0 if first is bad else 2}
    said = said.rpartition(": ")[2].rpartition(".*")[2]
    assert any(re.search(said, reason) for reason in reasons(record))


def test_what_is_too_many_is_left_out():
    made = [condition(display=f"c{n}") for n in range(230)]
    with pytest.raises(svc.SvcRequestError, match="it takes at most 200 entries"):
        refused(*made)
    record = taken(*made, medication())
    assert record.medical_history == tuple(f"c{n}" for n in range(200))
    assert [one.entry for one in record.fhir_report.left_out] == list(range(201, 231))
    assert (
        "30 Condition, entries 201, 202, 203, 204, 205 and 25 more: it takes at most 200 entries"
        in str(record.fhir_report)
    )


def test_another_patients_resource_is_an_error_however_lenient():
    stranger = condition(subject={"reference": f"Patient/{OTHER}"})
    with pytest.raises(svc.SvcRequestError, match="another patient"):
        taken(stranger, partial=True)


def test_an_image_that_cannot_be_used_is_an_error_however_lenient():
    with pytest.raises(svc.SvcRequestError, match=r"images\.0: "):
        taken(images=["/etc/passwd"])
