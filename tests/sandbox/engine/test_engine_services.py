"""Translation and medicine: shaped like the real thing, and marked as not being it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_svc.sandbox.engine import cancer_risk, consult, decision_support, translate


def test_a_pseudo_translation_is_labelled_and_readable():
    assert translate("Hello world", source=None, target="fr") == {
        "translation": "[fr] Ĥéļļö ŵöřļď",
        "source": "en",
        "target": "fr",
        "note": "pseudo-localisation by the sandbox: not a real translation",
    }


@pytest.mark.parametrize(
    "kept",
    ["{name}", "%s", "%(count)d", "https://example.com/a?b=c", "<b>", "42", "`code`", "${x}"],
)
def test_what_a_program_put_in_stays(kept):
    assert kept in str(translate(f"Dear {kept} reader", source="en", target="de")["translation"])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat is on the table", "en"),
        ("Le chat est sur la table", "fr"),
        ("Die Katze ist nicht auf dem Tisch", "de"),
        ("El gato no está en la mesa", "es"),
        ("Кошка на столе", "ru"),
        ("猫がいます", "ja"),
        ("你好", "zh"),
        ("안녕하세요", "ko"),
        ("xyzzy", "en"),
    ],
)
def test_the_source_language_is_detected(text, language):
    assert translate(text, source=None, target="en")["source"] == language


def test_a_given_source_is_believed():
    assert translate("chat", source="en", target="fr")["source"] == "en"


@settings(deadline=None)
@given(st.text(), st.sampled_from(["fr", "ja"]))
def test_any_text_translates_the_same_way_twice(text, target):
    first = translate(text, source=None, target=target)
    assert first == translate(text, source=None, target=target)


# --- Medicine -----------------------------------------------------------------------------------

PATIENT = {
    "age": 61,
    "sex": "female",
    "medicalHistory": ["hypertension"],
    "currentMedications": ["lisinopril"],
}


def test_a_consultation_speaks_of_the_symptoms_and_the_patient():
    told = consult({"message": "I have chest pain", "patientContext": PATIENT})
    for part in ("chest pain", "61-year-old", "hypertension", "lisinopril", "Synthetic"):
        assert part in told["response"]
    assert (told["specialty"], told["language"], told["urgency"]) == (
        "cardiology",
        "en",
        "emergency",
    )


def test_a_consultation_in_another_language_is_labelled():
    told = consult({"message": "a rash", "language": "fr", "specialty": "paediatrics"})
    assert told["response"].startswith("[fr] ")
    assert (told["specialty"], told["language"]) == ("paediatrics", "fr")


@pytest.mark.parametrize(
    ("vitals", "labs", "urgency", "finding"),
    [
        ({"systolic": 120, "heartRate": 70}, {}, "routine", ""),
        ({"systolic": 145}, {}, "urgent", "systolic pressure 145"),
        ({"systolic": 185}, {}, "emergency", "is high"),
        ({"systolic": 85}, {}, "urgent", "is low"),
        ({"temperature": 38.5}, {}, "urgent", "temperature 38.5"),
        ({"respiratoryRate": 32}, {}, "emergency", "respiratory rate"),
        ({}, {"troponin": 0.5}, "emergency", "troponin 0.5"),
        ({}, {"bnp": 150, "creatinine": 1.0}, "urgent", "BNP 150"),
        ({"mood": 3, "systolic": "high", "heartRate": True}, {}, "routine", ""),
    ],
)
def test_thresholds_drive_the_urgency(vitals, labs, urgency, finding):
    told = decision_support(
        {"symptoms": ["fatigue"], "specialty": "x", "vitalSigns": vitals, "labResults": labs}
    )
    assert told["urgency"] == urgency
    assert finding in " ".join(told["abnormalFindings"])
    assert bool(told["abnormalFindings"]) == bool(finding)


def test_decision_support_refers_to_what_was_sent():
    told = decision_support(
        {
            "symptoms": ["chest pain", "dizziness"],
            "specialty": "cardiovascular",
            "medicalHistory": ["diabetes"],
        }
    )
    said = " ".join(told["assessment"])
    assert all(part in said for part in ("chest pain", "dizziness", "diabetes"))
    assert told["specialty"] == "cardiovascular"
    assert told["recommendations"]
    assert told["protocols"]


@pytest.mark.parametrize(
    ("request_", "level"),
    [
        ({}, "low"),
        ({"patientAge": 72, "symptoms": "cough"}, "moderate"),
        ({"patientAge": 62, "symptoms": "cough, weight loss", "riskFactors": ["smoking"]}, "high"),
    ],
)
def test_the_risk_adds_up(request_, level):
    told = cancer_risk(request_)
    assert told["riskLevel"] == level
    assert told["riskScore"] == sum(factor["points"] for factor in told["factors"])
    assert cancer_risk({**request_, "images": ["a", "b"]})["imagesReceived"] == 2


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "message",
        "specialty",
        "language",
        "patientContext",
        "symptoms",
        "vitalSigns",
        "labResults",
        "medicalHistory",
        "patientAge",
        "patientSex",
        "riskFactors",
        "images",
        "imagingType",
    ]
)


@pytest.mark.parametrize("work", [consult, decision_support, cancer_risk])
@settings(deadline=None)
@given(request_=st.dictionaries(KEYS, ANYTHING, max_size=6))
def test_every_answer_says_that_it_is_synthetic(work, request_):
    told = work(request_)
    assert told["synthetic"] is True
    assert "not medical advice" in told["disclaimer"]
    assert json.dumps(told) == json.dumps(work(request_))
