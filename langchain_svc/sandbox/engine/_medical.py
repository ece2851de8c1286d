"""Synthetic medical answers: plausible in shape, driven by thresholds, worthless as medicine.

Every answer carries `"synthetic": True` and says so in words. The thresholds are the round
numbers of first-aid leaflets, kept in tables, so that a reader can foresee every finding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from langchain_svc.sandbox.engine._translate import pseudo_localise

DISCLAIMER = (
    "Synthetic sandbox output made by fixed rules: not medical advice, not from a clinician "
    "or a model. In an emergency call the local emergency number."
)
_MOST_ITEMS = 20


@dataclass(frozen=True)
class _Topic:
    specialty: str
    words: tuple[str, ...]
    advice: str
    urgency: str  # of the symptom alone: "routine", "urgent" or "emergency"


# The first topic with a word in the text wins, so the dangerous ones come first.
_TOPICS = (
    _Topic(
        "cardiology",
        ("chest pain", "chest tightness", "palpitation", "heart"),
        "an electrocardiogram and repeated cardiac markers",
        "emergency",
    ),
    _Topic(
        "neurology",
        ("stroke", "facial droop", "slurred", "seizure", "numb", "headache", "migraine", "dizz"),
        "a neurological examination, and imaging when signs are new",
        "urgent",
    ),
    _Topic(
        "pulmonology",
        ("breath", "dyspn", "wheez", "cough", "asthma"),
        "oxygen saturation, auscultation and a chest X-ray when it lasts",
        "urgent",
    ),
    _Topic(
        "oncology",
        ("lump", "weight loss", "tumor", "tumour", "cancer", "night sweats", "mole"),
        "an examination by a specialist and imaging",
        "urgent",
    ),
    _Topic(
        "gastroenterology",
        ("abdominal", "stomach", "nausea", "vomit", "diarr", "heartburn"),
        "fluids, an abdominal examination and basic blood tests",
        "routine",
    ),
    _Topic("dermatology", ("rash", "itch", "skin", "acne"), "an inspection of the skin", "routine"),
    _Topic(
        "infectious diseases",
        ("fever", "chill", "sore throat", "infection"),
        "temperature readings twice a day, rest and fluids",
        "routine",
    ),
    _Topic(
        "endocrinology",
        ("thirst", "diabet", "thyroid", "glucose"),
        "fasting glucose and thyroid tests",
        "routine",
    ),
)
_GENERAL = _Topic("general medicine", (), "a visit to a general practitioner", "routine")
_URGENCY = ("routine", "urgent", "emergency")


@dataclass(frozen=True)
class _Range:
    """Readings at or beyond a limit are findings; `severe` ones raise the urgency to the top."""

    name: str
    low: float = -math.inf
    high: float = math.inf
    severe_low: float = -math.inf
    severe_high: float = math.inf
    unit: str = ""

    def finding(self, value: float) -> tuple[str, str] | None:
        """Return (urgency, sentence) for a reading out of range."""
        if self.low < value < self.high:
            return None
        side, limit = ("low", self.low) if value <= self.low else ("high", self.high)
        severe = value <= self.severe_low or value >= self.severe_high
        words = f"{self.name} {value:g}{self.unit} is {side} (threshold {limit:g}{self.unit})"
        return ("emergency" if severe else "urgent", words)


_VITALS = {
    "systolic": _Range("systolic pressure", 90, 140, 80, 180, " mmHg"),
    "diastolic": _Range("diastolic pressure", 55, 90, 40, 120, " mmHg"),
    "heartRate": _Range("heart rate", 50, 100, 40, 130, "/min"),
    "temperature": _Range("temperature", 35, 38, 34, 40, " °C"),
    "respiratoryRate": _Range("respiratory rate", 10, 20, 8, 30, "/min"),
    "oxygenSaturation": _Range("oxygen saturation", low=93, severe_low=88, unit=" %"),
}
_LABS = {
    "troponin": _Range("troponin", high=0.04, severe_high=0.4, unit=" ng/mL"),
    "bnp": _Range("BNP", high=100, severe_high=900, unit=" pg/mL"),
    "creatinine": _Range("creatinine", high=1.3, severe_high=4, unit=" mg/dL"),
    "glucose": _Range("glucose", 70, 140, 50, 300, " mg/dL"),
}


def _strings(value: object) -> list[str]:
    """Read a field that should be a list of strings from whatever was sent."""
    if isinstance(value, str):
        return [part.strip() for part in re.split(r"[,;\n]", value) if part.strip()][:_MOST_ITEMS]
    if isinstance(value, Sequence):
        return [str(item) for item in value if str(item).strip()][:_MOST_ITEMS]
    return []


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def _topic(text: str) -> _Topic:
    lowered = text.lower()
    for topic in _TOPICS:
        if any(word in lowered for word in topic.words):
            return topic
    return _GENERAL


def _worst(urgencies: Iterable[str]) -> str:
    return max(urgencies, key=_URGENCY.index, default="routine")


def _patient_words(context: Mapping[str, object]) -> str:
    age, sex = context.get("age"), context.get("sex")
    who = " ".join(str(part) for part in (f"{age}-year-old" if age else "", sex or "") if part)
    history = _strings(context.get("medicalHistory"))
    medicines = _strings(context.get("currentMedications"))
    parts = [f"for a {who} patient" if who else ""]
    parts.append(f"with a history of {', '.join(history)}" if history else "")
    parts.append(f"taking {', '.join(medicines)}" if medicines else "")
    return " ".join(part for part in parts if part)


def consult(request: Mapping[str, object]) -> dict[str, object]:
    """Answer a consultation by naming the matching topic and what usually follows."""
    message = str(request.get("message", ""))
    topic = _topic(message)
    specialty = str(request.get("specialty") or topic.specialty)
    language = str(request.get("language") or "en")
    patient = _patient_words(_mapping(request.get("patientContext")))
    words = (
        f'Synthetic sandbox answer: you wrote "{message[:500].strip()}". '
        f"By the sandbox's table this belongs to {specialty}"
        f"{', ' + patient if patient else ''}. Usual next step: {topic.advice}."
    )
    response = words if language == "en" else f"[{language}] {pseudo_localise(words)}"
    return {
        "response": response,
        "specialty": specialty,
        "language": language,
        "urgency": topic.urgency,
        "recommendations": [topic.advice],
        "patientContextUsed": bool(patient),
        "disclaimer": DISCLAIMER,
        "synthetic": True,
    }


def _readings(values: Mapping[str, object], table: Mapping[str, _Range]) -> list[tuple[str, str]]:
    findings: list[tuple[str, str]] = []
    for key, reading in values.items():
        number = _number(reading)
        if number is not None and key in table:
            found = table[key].finding(number)
            findings += [found] if found else []
    return findings


def decision_support(request: Mapping[str, object]) -> dict[str, object]:
    """Answer with the symptoms given and every reading beyond a threshold of the tables."""
    symptoms = _once(_strings(request.get("symptoms")))
    topics = [_topic(symptom) for symptom in symptoms]
    findings = _readings(_mapping(request.get("vitalSigns")), _VITALS)
    findings += _readings(_mapping(request.get("labResults")), _LABS)
    abnormal = [words for _, words in findings]
    specialty = str(request.get("specialty") or _GENERAL.specialty)
    considered = zip(symptoms, topics, strict=True)
    history = _strings(request.get("medicalHistory"))
    return {
        "assessment": [
            *(f"{symptom}: considered under {topic.specialty}" for symptom, topic in considered),
            *abnormal,
            *(f"history of {item} taken into account" for item in history),
        ],
        "recommendations": _once(topic.advice for topic in topics) or [_GENERAL.advice],
        "protocols": _protocols(_once([specialty, *(topic.specialty for topic in topics)])),
        "specialty": specialty,
        "urgency": _worst([u for u, _ in findings] + [topic.urgency for topic in topics]),
        "abnormalFindings": abnormal,
        "note": f"Synthetic sandbox answer about: {', '.join(symptoms) or 'no symptoms'}.",
        "disclaimer": DISCLAIMER,
        "synthetic": True,
    }


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _protocols(specialties: list[str]) -> list[dict[str, str]]:
    return [
        {"id": f"SYN-{number}", "title": f"synthetic protocol for {name}"}
        for number, name in enumerate(specialties, 1)
    ]


# What each word of the request adds to the score of 0 to 100.
_RISK_WORDS = {
    "smok": 25,
    "tobacco": 25,
    "family": 15,
    "asbestos": 20,
    "radiation": 15,
    "alcohol": 10,
    "obes": 10,
    "hpv": 15,
    "blood": 15,
    "lump": 20,
    "weight loss": 15,
    "night sweats": 10,
    "cough": 5,
    "mole": 10,
}
_AGE_STEPS = ((70, 25), (60, 20), (50, 15), (40, 8))
_PLAIN_FACTOR, _HIGH, _MODERATE = 5, 60, 30
_ADVICE = {
    "high": "referral to a specialist within two weeks, with imaging",
    "moderate": "an appointment for targeted tests",
    "low": "routine screening for the age group",
}


def _factor(text: str) -> dict[str, object]:
    lowered = text.lower()
    points = [worth for word, worth in _RISK_WORDS.items() if word in lowered]
    return {"factor": text, "points": sum(points) or _PLAIN_FACTOR}


def cancer_risk(request: Mapping[str, object]) -> dict[str, object]:
    """Add up points for the age, the risk factors and the symptoms; the images count no point."""
    symptoms, risks = _strings(request.get("symptoms")), _strings(request.get("riskFactors"))
    factors = [_factor(text) for text in (*risks, *symptoms)]
    age = _number(request.get("patientAge"))
    steps = [points for limit, points in _AGE_STEPS if age is not None and age >= limit]
    if steps:
        factors.insert(0, {"factor": f"age {age:g}", "points": steps[0]})
    score = min(100, sum(int(str(factor["points"])) for factor in factors))
    level = "high" if score >= _HIGH else "moderate" if score >= _MODERATE else "low"
    images = request.get("images")
    count = len(images) if isinstance(images, Sequence) and not isinstance(images, str) else 0
    return {
        "riskLevel": level,
        "riskScore": score,
        "factors": factors,
        "recommendations": [_ADVICE[level]],
        "imagesReceived": count,
        "imagingType": request.get("imagingType"),
        "note": f"Synthetic sandbox score for: {', '.join(symptoms) or 'no symptoms'}.",
        "disclaimer": DISCLAIMER,
        "synthetic": True,
    }
