"""PatientContext: what it takes, what it doubts and that it shows nothing."""

from __future__ import annotations

import base64
import io
import math
import re
import traceback

import pytest
from peers import png
from pydantic import ValidationError
from rich.console import Console

from langchain_svc import PatientContext, SvcMedicalConsult, SvcMedicalToolkit
from langchain_svc.medical.patient import on_wire

MARKED = {
    "age": 47.93417,
    "sex": "zebulonic",
    "medical_history": ["quuxitis major"],
    "current_medications": ["frobnicatol 88231"],
    "vital_signs": {"systolic": 133.71, "heart_rate": 73.19, "flurbidity": 9_418.27},
    "lab_results": {"troponin": 0.66613, "grobulin": 77_119},
    "risk_factors": ["wumpus exposure"],
}
MARKS = [
    "47.93417",
    "zebulonic",
    "quuxitis",
    "frobnicatol",
    "88231",
    "133.71",
    "73.19",
    "9418.27",
    "0.66613",
    "77119",
    "wumpus",
    "flurbidity",
    "grobulin",
]


PNG = png((1, 1))
# The marks of a JPEG with one frame and one scan, of which nothing is drawn.
JPEG = b"\xff\xd8\xff\xc0\0\x07\x08\0\x01\0\x01\xff\xda\0\x02\x55\xff\xd9"


def clean(text):
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}", "", text)  # ids hold any five digits
    found = [mark for mark in MARKS if mark.lower() in text.lower()]
    assert not found, f"{found} in: {text[:2000]}"


def test_documented_names_are_taken_too():
    readings = {"heartRate": 70, "respiratoryRate": 12}
    documented = PatientContext(medicalHistory=["a"], vitalSigns=readings, labResults={"bnp": 5})
    assert documented == PatientContext(
        medical_history=["a"],
        vital_signs={"heart_rate": 70, "respiratory_rate": 12},
        lab_results={"bnp": 5},
    )


def test_whole_numbers_stay_whole_and_absent_fields_absent():
    assert on_wire(PatientContext()) == {}
    assert on_wire(PatientContext(vital_signs={}, lab_results={}, medical_history=[])) == {}
    sent = on_wire(PatientContext(age=61, vital_signs={"systolic": 120, "temperature": None}))
    assert repr(sent) == "{'age': 61, 'vitalSigns': {'systolic': 120}}"


def test_it_cannot_be_changed():
    patient = PatientContext(**MARKED)
    for record, name in ((patient, "age"), (patient.vital_signs, "systolic")):
        with pytest.raises(ValidationError) as raised:
            setattr(record, name, 12)
        clean(str(raised.value))
    assert isinstance(patient.medical_history, tuple)


def test_views_show_names_and_counts_only():
    patient = PatientContext(**MARKED, images=[PNG])
    screen = io.StringIO()
    Console(file=screen, width=200).print(patient, patient.vital_signs)
    views = [repr(patient), str(patient), f"{patient}", screen.getvalue(), repr([patient])]
    views += [repr(patient.vital_signs), repr(patient.lab_results)]
    for view in views:
        clean(view)
        assert base64.b64encode(PNG).decode()[:12] not in view
    assert "vital_signs=<3 values>" in repr(patient)
    assert "medical_history=<1 value>" in repr(patient)
    assert repr(patient.vital_signs) == (
        "VitalSigns(systolic=<1 value>, heart_rate=<1 value>, further=<1 value>)"
    )


DOUBTED = [
    ({"age": "47.93417"}, "age", "finite number"),
    ({"vital_signs": {"temperature": True}}, "vital_signs.temperature", "finite number"),
    ({"lab_results": {"troponin": math.nan}}, "lab_results.troponin", "finite number"),
    ({"age": 10**400}, "age", "finite number"),
    ({"age": 300.93417}, "age", "years"),
    ({"age": -1}, "age", "0 or more"),
    ({"age": 1964}, "age", "year of birth"),
    ({"vital_signs": {"temperature": 98.6}}, "vital_signs.temperature", "Fahrenheit"),
    ({"vital_signs": {"temperature": 3}}, "vital_signs.temperature", "20 or more"),
    ({"vital_signs": {"systolic": 16.2}}, "vital_signs.systolic", "kPa"),
    ({"vital_signs": {"diastolic": 10.6}}, "vital_signs.diastolic", "kPa"),
    ({"vital_signs": {"systolic": 1200}}, "vital_signs.systolic", "350 or less"),
    ({"vital_signs": {"systolic": 80, "diastolic": 120}}, "vital_signs", "exchanged"),
    ({"vital_signs": {"systolic": 93.417, "diastolic": 93.417}}, "vital_signs", "exchanged"),
    ({"vital_signs": {"heart_rate": -3}}, "vital_signs.heart_rate", "beats"),
    ({"vital_signs": {"respiratory_rate": 900}}, "vital_signs.respiratory_rate", "breaths"),
    ({"lab_results": {"troponin": -0.5}}, "lab_results.troponin", "negative"),
    (
        {"vital_signs": {"flurbidity": "9418.27"}},
        "vital_signs",
        "further reading must be a finite number",
    ),
    ({"lab_results": {"grobulin": True}}, "lab_results", "finite"),
    ({"lab_results": {"grobulin": None}}, "lab_results", "finite"),
    ({"lab_results": {"x" * 61: 1}}, "lab_results", "at most 60"),
    ({"lab_results": {"<b>": 1}}, "lab_results", "letters"),
    ({"lab_results": {f"k{i}": i for i in range(201)}}, "lab_results", "at most 200"),
    ({"sex": "zebulonic" * 9}, "sex", "at most 40"),
    ({"sex": 1}, "sex", "text"),
    ({"medical_history": "quuxitis"}, "medical_history", "tuple"),
    ({"medical_history": ["quuxitis", 5]}, "medical_history.1", "text"),
    ({"risk_factors": ["wumpus\x00"]}, "risk_factors.0", "control"),
    ({"current_medications": ["<b>frobnicatol</b>"]}, "current_medications.0", "markup"),
]


@pytest.mark.parametrize(("words", "place", "said"), DOUBTED)
def test_what_is_doubted_is_said_without_the_value(words, place, said):
    with pytest.raises(ValidationError) as raised:
        PatientContext(**words)
    text = str(raised.value)
    assert text.splitlines()[1] == place
    assert said in text
    clean(text + "".join(traceback.format_exception(raised.value)).split("ValidationError")[-1])
    assert "93417" not in text


NO_IMAGES = [
    "/etc/passwd",
    "file:///etc/passwd",
    "http://127.0.0.1/x.png",
    "https://example.com/ct.png",
    "~/ct.png",
    "img_1",
    "",
    "data:image/png;base64,",
    "data:image/png,abc",
    base64.b64encode(b"GIF89a" + b"\0" * 50).decode(),
    base64.b64encode(PNG[:-4]).decode(),
    "data:image/png;base64," + base64.b64encode(b"%PDF-1.7").decode(),
    b"DICM",
    5,
    None,
    ["x"],
]


@pytest.mark.parametrize("image", NO_IMAGES, ids=lambda i: str(i)[:20])
def test_images_are_known_by_their_content(image):
    with pytest.raises(ValidationError, match="PNG or JPEG in base64"):
        PatientContext(images=[image])


def test_images_come_as_bytes_base64_or_data_uris():
    plain = base64.b64encode(PNG).decode()
    wrapped = base64.encodebytes(PNG).decode()
    forms = [PNG, bytearray(PNG), plain, wrapped, "data:image/png;base64," + plain]
    forms += ["DATA:image/jpeg;BASE64," + plain]  # a wrong label does not matter
    assert [PatientContext(images=[form]).images for form in forms] == [(plain,)] * len(forms)
    assert PatientContext(images=forms).images == (plain,)  # none is sent twice
    assert PatientContext(images=[JPEG + b"\0\0"])


def test_large_images_and_many_are_refused():
    with pytest.raises(ValidationError, match="at most 8 MB"):
        PatientContext(images=[PNG[:33] + b"\0" * 8 * 1024 * 1024 + PNG[33:]])
    with pytest.raises(ValidationError, match="at most 8 items"):
        PatientContext(images=[PNG] * 9)


@pytest.mark.parametrize("kind", [SvcMedicalConsult, SvcMedicalToolkit])
def test_what_is_no_patient_is_refused_by_all_that_is_one_and_not_repeated(kind):
    assert kind(patient={"age": 61}).patient.age == 61
    for wrong in ("case-7", 7, [{"age": 61}]):
        with pytest.raises(ValidationError, match="a dict of its fields, 'per_run'") as caught:
            kind(patient=wrong)
        assert caught.value.error_count() == 1
        assert "'svc_case'" in str(caught.value) and "case-7" not in str(caught.value)
    with pytest.raises(ValidationError, match="no field 'agee'; did you mean 'age'") as caught:
        kind(patient={"agee": 61})
    assert caught.value.error_count() == 1
