"""Translation, medicine and pictures: shaped like the real thing, and marked as not being it."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from langchain_svc.sandbox.answers import (
    analyze,
    cancer_risk,
    consult,
    decision_support,
    draw,
    translate,
)

# -- translation ------------------------------------------------------------------------------------


def test_a_translation_is_labelled_and_keeps_what_a_program_put_in():
    told = translate("Hello {name}, see https://example.com/a <b>", source=None, target="fr")
    assert told["translation"] == "[fr] Ĥéļļö {name}, šéé https://example.com/a <b>"
    assert (told["source"], told["target"]) == ("en", "fr")
    assert "not a real translation" in told["note"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Die Katze ist nicht da", "de"),
        ("El gato no está", "es"),
        ("猫がいます", "ja"),
        ("x", "en"),
    ],
)
def test_the_source_language_is_detected(text, code):
    assert translate(text, source=None, target="en")["source"] == code
    assert translate(text, source="pl", target="en")["source"] == "pl"


# -- medicine ---------------------------------------------------------------------------------------

PATIENT = {"age": 61, "sex": "female", "medicalHistory": ["gout"], "currentMedications": ["iron"]}


def test_a_consultation_speaks_of_the_symptoms_and_the_patient():
    told = consult({"message": "I have chest pain", "patientContext": PATIENT})
    for part in ("chest pain", "61-year-old female", "gout", "iron", "Synthetic"):
        assert part in told["response"]
    assert (told["specialty"], told["language"]) == ("cardiology", "en")
    assert consult({"message": "x", "language": "fr"})["response"].startswith("[fr] ")


@pytest.mark.parametrize(
    ("vitals", "labs", "urgency", "finding"),
    [
        ({"systolic": 120, "mood": 3}, {}, "routine", ""),
        ({"systolic": 145}, {}, "urgent", "systolic pressure 145 mmHg is high"),
        ({"systolic": 85}, {}, "urgent", "systolic pressure 85 mmHg is low"),
        ({}, {"troponin": 0.5}, "emergency", "troponin 0.5"),
        ({"temperature": 38.5}, {"bnp": 150, "creatinine": 1.0}, "urgent", "BNP 150"),
    ],
)
def test_thresholds_drive_the_urgency(vitals, labs, urgency, finding):
    asked = {"symptoms": ["fatigue"], "specialty": "x", "vitalSigns": vitals, "labResults": labs}
    told = decision_support(asked)
    assert told["urgency"] == urgency
    assert finding in " ".join(told["abnormalFindings"])
    assert bool(told["abnormalFindings"]) == bool(finding)


def test_the_risk_adds_up():
    asked = {"patientAge": 62, "symptoms": "cough, weight loss", "riskFactors": ["smoking"]}
    told = cancer_risk(asked)
    assert told["riskScore"] == sum(factor["points"] for factor in told["factors"])
    assert (told["riskLevel"], cancer_risk({})["riskLevel"]) == ("high", "low")
    assert cancer_risk({"images": ["a", "b"]})["imagesReceived"] == 2


TEXTS, NUMBERS = st.text(max_size=8), st.floats(allow_nan=False, allow_infinity=False)
LISTS = st.lists(TEXTS, max_size=3)
READINGS = st.dictionaries(st.sampled_from(["systolic", "bnp", "mood"]), NUMBERS)
WHO = {"age": NUMBERS, "sex": TEXTS, "medicalHistory": LISTS, "currentMedications": LISTS}
BODIES = {
    consult: (
        {"message": TEXTS},
        {
            "specialty": TEXTS,
            "language": TEXTS,
            "patientContext": st.fixed_dictionaries({}, optional=WHO),
        },
    ),
    decision_support: (
        {"symptoms": st.lists(TEXTS, min_size=1), "specialty": TEXTS},
        {"vitalSigns": READINGS, "labResults": READINGS, "medicalHistory": LISTS},
    ),
    cancer_risk: (
        {},
        {"patientAge": NUMBERS, "symptoms": TEXTS, "riskFactors": LISTS, "images": LISTS},
    ),
}


@pytest.mark.parametrize("work", BODIES)
@settings(deadline=None)
@given(data=st.data())
def test_every_answer_says_that_it_is_synthetic(work, data):
    required, optional = BODIES[work]
    asked = data.draw(st.fixed_dictionaries(required, optional=optional))
    told = work(asked)
    assert told["synthetic"] is True
    assert "not medical advice" in told["disclaimer"]
    assert json.dumps(told) == json.dumps(work(asked))


# -- pictures ---------------------------------------------------------------------------------------

PROMPT = "a red circle and a green tree, blue background"


def drawn(prompt=PROMPT, size="1024x1024", quality="standard", index=0):
    return draw(prompt, size=size, quality=quality, index=index)


@pytest.mark.parametrize("size", ["1024x1024", "1792x1024", "1024x1792"])
def test_a_real_png_of_the_asked_size(size):
    picture = Image.open(io.BytesIO(drawn(size=size)))
    picture.load()
    assert (picture.format, f"{picture.width}x{picture.height}") == ("PNG", size)


def test_the_same_request_is_the_same_file_and_others_differ():
    assert drawn() == drawn()
    assert len({drawn(), drawn(index=1), drawn(quality="hd"), drawn("a blue boat")}) == 4


@pytest.mark.parametrize("prompt", ["", "你好 🌊", "x" * 1000, "{braces} \ud800", "a\nb"])
def test_any_prompt_is_drawn_and_found_again(prompt):
    expected = prompt.encode("utf-8", "replace").decode()
    assert analyze(drawn(prompt), "ocr")["text"] == expected


def test_what_was_drawn_is_seen():
    told = analyze(drawn(), "describe")
    assert told["description"].startswith("A medium PNG image of 1024x1024 pixels, mostly blue")
    assert told["description"].endswith(f'It was drawn for the prompt "{PROMPT}".')
    found = analyze(drawn(), "detect")["objects"]
    assert {"red region", "green region"} <= {each["label"] for each in found}
    for box in (each["box"] for each in found):
        assert 0 <= box["x"] < box["x"] + box["width"] <= 1024
        assert 0 <= box["y"] < box["y"] + box["height"] <= 1024
    assert analyze(drawn(), "moderate")["flagged"] is False


def test_a_shape_is_never_in_the_colour_of_the_ground():
    for number in range(20):
        found = analyze(drawn(f"a red circle {'!' * number}"), "detect")
        assert "red region" in [each["label"] for each in found["objects"]]


def bomb():
    file = io.BytesIO()
    Image.new("1", (6000, 6000)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    "data", [b"", b"no image", drawn()[:900], b"%!PS-Adobe-3.0 EPSF-3.0\n", bomb()]
)
def test_what_is_no_image_is_refused(data):
    with pytest.raises(ValueError, match="image"):
        analyze(data, "describe")


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["describe", "detect", "ocr", "moderate"]))
def test_hostile_bytes_raise_nothing_else(data, task):
    for prefix in (b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"II*\x00", b"\xff\xd8\xff"):
        with pytest.raises(ValueError, match="image"):
            analyze(prefix + data, task)
