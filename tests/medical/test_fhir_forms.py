"""PatientContext.from_fhir: the forms of a record, what is no record, and what is only a part of one."""

from __future__ import annotations

import copy
import functools
import traceback
from pathlib import Path

import pytest
from fhir_records import (
    EXPECTED,
    FAILED,
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
    read,
    reasons,
)

import langchain_svc as svc
from langchain_svc.medical.patient import on_wire

Bundle = pytest.importorskip("fhir.resources.R4B.bundle", reason="the extra fhir is not installed").Bundle  # fmt: skip


SECRET = NAMES["family"]


# -- forms ------------------------------------------------------------------------------------------

RESOURCES = [entry["resource"] for entry in WHOLE["entry"]]


def searchset(*resources, **changes):
    entries = [{"resource": resource, "search": {"mode": "match"}} for resource in resources]
    return {"resourceType": "Bundle", "type": "searchset", "entry": entries, **changes}


def batch(*bundles):
    entries = [{"resource": inner, "response": {"status": "200"}} for inner in bundles]
    return {"resourceType": "Bundle", "type": "batch-response", "entry": entries}


def test_the_answers_to_a_batch_are_read():
    record = read(batch(searchset(*RESOURCES[:5]), searchset(*RESOURCES[5:])))
    assert on_wire(record) == EXPECTED
    rates = [line for line in record.fhir_report.taken if line.code == "8867-4"]
    assert rates[0].entry == "1.6"
    bad = {**condition(), "code": {"text": 5}}
    (line,) = read(batch(searchset(patient()), searchset(bad))).fhir_report.left_out
    assert (line.entry, line.reason) == ("1.0", "code.text must be a text")


PAGES = [
    searchset(*RESOURCES[:9], link=[{"relation": "next", "url": "x"}]),
    searchset(*RESOURCES[9:], link=[{"relation": "self", "url": "x"}]),
]
LINES = "\n".join(map(as_json, RESOURCES))
KNOWN = [item for item in WHOLE["entry"] if item["resource"]["resourceType"] not in {"Claim", "Encounter"}]  # fmt: skip
FORMS = {
    "dict": lambda _: WHOLE,
    "text": lambda _: as_json(WHOLE),
    "bytes": lambda _: as_json(WHOLE).encode(),
    "bytes with a mark": lambda _: b"\xef\xbb\xbf" + as_json(WHOLE).encode(),
    "another library's JSON": lambda _: Bundle.model_validate_json(
        as_json({**WHOLE, "entry": KNOWN})
    ).model_dump_json(),
    "list": lambda _: RESOURCES,
    "pages": lambda _: PAGES,
    "list of texts": lambda _: [as_json(item) for item in RESOURCES],
    "lines": lambda _: LINES,
    "lines in bytes": lambda _: b"\xef\xbb\xbf" + LINES.encode(),
    "path": lambda at: written(at, as_json(WHOLE)),
    "path to lines": lambda at: written(at, LINES + "\n\n"),
    "paths": lambda at: [
        written(at, text) for text in ("\n".join(LINES.split("\n")[:9]), "", as_json(PAGES[1]))
    ],
}


def written(folder, text):
    path = folder / f"{len([*folder.iterdir()])}.ndjson"
    path.write_text(text)
    return path


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms_of_a_record(form, tmp_path):
    assert on_wire(read(form(tmp_path))) == EXPECTED


# -- what is no bundle -----------------------------------------------------------------------------

NO_RECORD = [
    ("/etc/passwd", "not valid JSON. Texts are not read as paths"),
    (b"\xff\xfe", "not valid JSON"),
    ("[" * 100_000, "not valid JSON"),
    ("", "not valid JSON"),
    ("{", "not valid JSON"),
    (None, "given as a Bundle, a resource or a list"),
    ([], "it has no resources"),
    (5, "given as a Bundle"),
    ({}, "given as a Bundle"),
    ([{"resourceType": "Patient"}, 5], r"resources\[1\] must be an object"),
    ({"resourceType": "Patient", "name": SECRET}, "neither birthDate nor gender"),
    ({"resourceType": "Bundle", "type": "history"}, "old versions"),
    ({"resourceType": SECRET + "-1"}, "resourceType must be the name"),
    ({"resourceType": "Bundle", "entry": {"a": SECRET}}, r"Bundle\.entry must be a list"),
    ({"resourceType": "Bundle", "entry": [SECRET]}, r"entry\[0\] must be an object"),
    (
        {"resourceType": "Bundle", "entry": [{"resource": SECRET}]},
        r"entry\[0\]\.resource must be an object",
    ),
    (
        {"resourceType": "Bundle", "entry": [{}, {"resource": {"resourceType": SECRET}}]},
        r"entry\[1\]\.resource\.resourceType must be the name",
    ),
    (Path(f"no/such/{SECRET}.json"), "cannot be read: No such file"),
    (as_json(patient()) + "\n{" + SECRET, "Line 2 of the record is not valid JSON"),
    (
        functools.reduce(lambda inner, _: batch(inner), range(9), searchset(*RESOURCES)),
        "nested more than",
    ),
    (bundle(condition(), patient(id=SECRET)), r"2 patients \(entries 0, 2\)"),
    (
        bundle(first=patient(link=[{"other": {"reference": "Patient/2"}, "type": "replaced-by"}])),
        "has replaced it",
    ),
    *(
        (bundle(first=patient(**died)), r"entry\[0\].*has died.*today=")
        for died in (
            {"deceasedDateTime": "2024-03-01T10:00:00Z"},
            {"deceasedDateTime": "2024"},
            {"deceasedDateTime": "soon"},
        )
    ),
]


@pytest.mark.parametrize(("source", "reason"), NO_RECORD)
def test_what_is_no_bundle_is_said_without_its_values(source, reason):
    with pytest.raises(svc.SvcRequestError, match=reason) as caught:
        svc.PatientContext.from_fhir(source, today=TODAY)
    assert SECRET not in str(caught.value)
    assert "1963-13" not in str(caught.value)
    frames = traceback.TracebackException.from_exception(caught.value, capture_locals=True).stack
    inside = [frame.locals for frame in frames if frame.filename != __file__]
    assert len(inside) == 1, "the frames of an error are those of its own function alone"
    assert not {"source", "patient", "options", "risk_factors", "images"} & inside[0].keys()


@pytest.mark.parametrize(
    "options", [{"risk_factors": "smoker"}, {"restricted": "no"}, {"partial": 1}]
)
def test_a_text_is_no_list_and_no_switch(options):
    with pytest.raises(svc.SvcRequestError, match=r"must be (a list of texts|True or False), not"):
        read(bundle(), **options)


OTHER = "11111111-0000-4000-8000-000000000000"


@pytest.mark.parametrize("name", [ID, f"Patient/{ID}", f"https://a.example/fhir/Patient/{ID}"])
def test_one_patient_of_a_bulk_export(name):
    others = {"reference": f"Patient/{OTHER}"}
    resources = [
        patient(id=OTHER, gender="male", birthDate="1990-01-01"),
        condition(display="X", subject=others),
        observation("8867-4", quantity(61, "/min"), subject=others),
        patient(),
        condition(subject={"reference": f"Patient/{ID}"}),
        observation("8867-4", quantity(88, "/min"), subject={"reference": f"Patient/{ID}"}),
    ]
    resources.append(patient(id="11111111-0000-4000-8000-000000000001"))
    lines = "\n".join(map(as_json, resources))
    record = read(lines, patient=name)
    assert on_wire(record) == {
        "age": 61,
        "sex": "female",
        "medicalHistory": ("Essential hypertension (disorder)",),
        "vitalSigns": {"heartRate": 88},
    }
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


WARNED = {"resourceType": "OperationOutcome", "issue": [{"severity": "warning", "code": "informational"}]}  # fmt: skip
NEXT = [{"relation": "self", "url": "http://x"}, {"relation": "next", "url": "http://y"}]
PAGE, EMPTY = "one page of several", r"nothing that is taken \("
INCOMPLETE = [
    (searchset(), f"{EMPTY}it has no resources"),
    (searchset({"resourceType": "Claim"}, {"resourceType": "Claim"}), f"{EMPTY}not read: 2 Claim"),
    (
        batch(searchset(), searchset({"resourceType": "OperationOutcome"})),
        f"{EMPTY}not read: 1 OperationOutcome",
    ),
    (searchset(condition(display="X", verified="refuted")), f"{EMPTY}left out: it is refuted"),
    (
        searchset(condition("160245001", "No current problems or disability")),
        f"{EMPTY}left out: it says that nothing is known",
    ),
    (bundle(condition(), link=NEXT), PAGE),
    (batch(bundle(condition(), link=NEXT)), PAGE),
    ([searchset(patient()), bundle(condition(), first=observation("1-8"), link=NEXT)], PAGE),
    (searchset(patient(), condition(), FAILED), "OperationOutcome with an error"),
]


@pytest.mark.parametrize(("source", "reason"), INCOMPLETE)
def test_what_is_not_a_whole_record_is_taken_only_as_a_part(source, reason):
    with pytest.raises(svc.SvcRequestError, match=rf"{reason}.*partial=True"):
        read(source)
    record = read(source, partial=True)
    assert (on_wire(record) == {}) is reason.startswith(EMPTY)
    assert record.fhir_report.further_pages is (reason == PAGE)
    assert (PAGE in str(record.fhir_report)) is (reason == PAGE)


def test_a_warning_of_the_server_is_no_failure():
    record = read(searchset(patient(), condition(), WARNED))
    assert record.medical_history and not record.fhir_report.further_pages


FOREIGN = "an element of FHIR STU3 or R5"


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        ({**condition(), "clinicalStatus": "active"}, "clinicalStatus is not what FHIR R4 allows"),
        ({**condition(), "assertedDate": "2020"}, FOREIGN),
        ({"resourceType": "Condition", "patient": {}, "code": {}}, "subject is missing"),
        ({"resourceType": "MedicationOrder"}, "no resource of this type"),
        (
            observation("8867-4", quantity(88, "/min"), context={"reference": "Encounter/1"}),
            FOREIGN,
        ),
        ({**medication("MedicationStatement"), "taken": "n"}, FOREIGN),
        (
            {
                "resourceType": "MedicationStatement",
                "status": "active",
                "patient": {},
                "wasNotTaken": True,
                "medicationCodeableConcept": {"text": "x"},
            },
            "subject is missing",
        ),
        (
            {
                **medication("MedicationStatement", medicationCodeableConcept=None),
                "medication": {"concept": {}},
            },
            FOREIGN,
        ),
        ({"resourceType": "Procedure", "status": "completed", "notDone": True}, FOREIGN),
        (
            {
                "resourceType": "AllergyIntolerance",
                "patient": {"reference": f"Patient/{ID}"},
                "type": {"text": "allergy"},
            },
            "type must be a text",
        ),
    ],
)
def test_what_is_of_another_version_is_left_out(resource, reason):
    record = read([pressure(120, 80), resource])
    assert on_wire(record) == {"vitalSigns": {"systolic": 120, "diastolic": 80}}
    assert [reason in text for text in reasons(record)] == [True]


def test_r4_is_not_taken_for_another_version():
    whole = copy.deepcopy(WHOLE)
    for entry in whole["entry"]:
        entry["resource"]["meta"] = {
            "profile": ["http://hl7.org/fhir/us/core/StructureDefinition/x"]
        }
        entry["resource"]["vendorsOwn"] = {"reference": "Encounter/1"}
    assert on_wire(read(whole)) == EXPECTED
