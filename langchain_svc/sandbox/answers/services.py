"""Translation and medicine: shaped like the real thing, and marked as not being it.

Translation is pseudo-localisation: accents on Latin letters. Medical answers come from two tables,
so that a reader can foresee every finding; they are worthless as medicine and say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NOTE = "pseudo-localisation by the sandbox: not a real translation"
DISCLAIMER = (
    "Synthetic sandbox output made by fixed rules: not medical advice, not from a clinician "
    "or a model. In an emergency call the local emergency number."
)

# -- translation ----------------------------------------------------------------------------------

_ACCENTS = str.maketrans(
    "AaCcDdEeGgHhIiJjKkLlNnOoRrSsTtUuWwYyZz",
    "ÅåÇçĎďÉéĜĝĤĥÎîĴĵĶķĻļÑñÖöŘřŠšŤťÛûŴŵÝýŽž",
)
# What a program put into the text must come out of it unchanged.
_KEPT = re.compile(
    r"(https?://\S+|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}|\{\{[^{}\n]{0,200}\}\}"
    r"|\$?\{[^{}\n]{0,200}\}|<[^<>\n]{1,200}>|`[^`\n]{1,200}`|%\(\w{1,64}\)[a-z]|%[sdif]\b)"
)
_SCRIPTS = {
    "ja": "\u3040-\u30ff",
    "ko": "\uac00-\ud7af",
    "zh": "\u4e00-\u9fff",
    "ru": "\u0400-\u04ff",
    "ar": "\u0600-\u06ff",
    "el": "\u0370-\u03ff",
}
_COMMON = {
    "en": "the and is are of to it you that for with what this have hello not",
    "fr": "le la les et est un une des que dans pour pas vous je bonjour avec sur",
    "de": "der die das und ist nicht ein eine ich sie mit für auf zu wie hallo",
    "es": "el los las y es un una que por con para no está hola del qué",
    "it": "il gli e è un una che di per con non sono ciao della questo",
}


def pseudo_localised(text: str) -> str:
    """The text with accents, but not on its placeholders and addresses."""
    pieces = _KEPT.split(text)
    pieces[::2] = [piece.translate(_ACCENTS) for piece in pieces[::2]]
    return "".join(pieces)


def _language(text: str) -> str:
    sample = text[:4_000]
    for code, letters in _SCRIPTS.items():
        if re.search(f"[{letters}]", sample):
            return code
    words = re.findall(r"[^\W\d_]+", sample.lower())
    return max(_COMMON, key=lambda code: sum(word in _COMMON[code].split() for word in words))


def translate(text: str, *, source: str | None, target: str) -> dict[str, object]:
    """Answer a translation request, labelled with the target so that nobody takes it for real."""
    return {
        "translation": f"[{target}] {pseudo_localised(text)}",
        "source": source or _language(text),
        "target": target,
        "note": NOTE,
    }


# -- medicine -------------------------------------------------------------------------------------

_URGENCY = ("routine", "urgent", "emergency")
_HEART, _BRAIN, _LUNGS = "cardiology", "neurology", "pulmonology"
_CANCER, _GUT, _GERMS = "oncology", "gastroenterology", "infectious diseases"
_ECG, _SCAN = "an electrocardiogram and cardiac markers", "an examination by a specialist"
_AIR, _REST = "oxygen saturation and a chest X-ray", "fluids, and readings twice a day"
# Words -> specialty, advice, urgency, points of a cancer risk. The first row with a word wins.
_TOPICS = {
    "chest pain|chest tightness|palpitation|heart": (_HEART, _ECG, "emergency", 5),
    "stroke|slurred|seizure|numb|headache|dizz": (_BRAIN, "a neurological test", "urgent", 5),
    "breath|dyspn|wheez|cough|asthma": (_LUNGS, _AIR, "urgent", 5),
    "smok|tobacco|asbestos": (_CANCER, _AIR, "routine", 25),
    "lump|weight loss|tumou?r|cancer|mole|blood|family": (_CANCER, _SCAN, "urgent", 20),
    "abdominal|stomach|nausea|vomit|diarr": (_GUT, _REST, "routine", 5),
    "fever|chill|infection": (_GERMS, _REST, "routine", 5),
    "": ("general medicine", "a visit to a general practitioner", "routine", 5),
}
# Reading -> name, unit, thresholds: severely low, low, high, severely high.
_READINGS = {
    "systolic": ("systolic pressure", " mmHg", 80, 90, 140, 180),
    "diastolic": ("diastolic pressure", " mmHg", 40, 55, 90, 120),
    "heartRate": ("heart rate", "/min", 40, 50, 100, 130),
    "temperature": ("temperature", " °C", 34, 35, 38, 40),
    "respiratoryRate": ("respiratory rate", "/min", 8, 10, 20, 30),
    "troponin": ("troponin", " ng/mL", -2, -1, 0.04, 0.4),
    "bnp": ("BNP", " pg/mL", -2, -1, 100, 900),
    "creatinine": ("creatinine", " mg/dL", -2, -1, 1.3, 4),
}
_AGE_POINTS = ((70, 25), (60, 20), (50, 15), (40, 8))
_LEVELS = (
    (60, "high", "referral to a specialist within two weeks, with imaging"),
    (30, "moderate", "an appointment for targeted tests"),
    (0, "low", "routine screening for the age group"),
)
_Topic = tuple[str, str, str, int]
Request = Mapping[str, Any]  # a checked body


def _topic(text: str) -> _Topic:
    return next(row for words, row in _TOPICS.items() if re.search(words, text.lower()))


def _strings(value: Any) -> list[str]:
    items = re.split(r"[,;\n]", value) if isinstance(value, str) else value or ()
    return list(dict.fromkeys(said for item in items if (said := item.strip())))


def _synthetic(**fields: object) -> dict[str, object]:
    return {**fields, "disclaimer": DISCLAIMER, "synthetic": True}


def consult(request: Request) -> dict[str, object]:
    """Answer a consultation by naming the matching topic and what usually follows."""
    message = request["message"]
    own, advice, urgency, _ = _topic(message)
    specialty, language = request.get("specialty") or own, request.get("language") or "en"
    patient = _patient(request.get("patientContext", {}))
    words = (
        f'Synthetic sandbox answer: you wrote "{message[:500].strip()}". By the sandbox\'s table '
        f"this belongs to {specialty}{', ' + patient if patient else ''}. "
        f"Usual next step: {advice}."
    )
    return _synthetic(
        response=words if language == "en" else f"[{language}] {pseudo_localised(words)}",
        specialty=specialty,
        language=language,
        urgency=urgency,
        recommendations=[advice],
        patientContextUsed=bool(patient),
    )


def _patient(context: Request) -> str:
    age = f"{context['age']:g}-year-old" if context.get("age") else ""
    who = " ".join(filter(None, [age, context.get("sex")]))
    parts = [f"for a {who} patient" if who else ""]
    for words, name in (("with a history of", "medicalHistory"), ("taking", "currentMedications")):
        held = ", ".join(_strings(context.get(name)))
        parts.append(f"{words} {held}" if held else "")
    return " ".join(filter(None, parts))


def _finding(name: str, value: float) -> tuple[str, str] | None:
    """The urgency of a reading out of its range, and a sentence."""
    if name not in _READINGS:
        return None
    words, unit, severely_low, low, high, severely_high = _READINGS[name]
    if low < value < high:
        return None
    side, limit = ("low", low) if value <= low else ("high", high)
    urgency = "urgent" if severely_low < value < severely_high else "emergency"
    return urgency, f"{words} {value:g}{unit} is {side} (threshold {limit:g}{unit})"


def decision_support(request: Request) -> dict[str, object]:
    """Answer with the symptoms given and every reading beyond a threshold of the tables."""
    symptoms = _strings(request.get("symptoms"))
    topics = [_topic(symptom) for symptom in symptoms]
    readings = {**request.get("vitalSigns", {}), **request.get("labResults", {})}
    findings = [found for item in readings.items() if (found := _finding(*item))]
    abnormal = [words for _, words in findings]
    specialty = request["specialty"]
    considered = [f"{s}: considered under {t[0]}" for s, t in zip(symptoms, topics, strict=True)]
    history = _strings(request.get("medicalHistory"))
    urgencies = ["routine", *(found[0] for found in findings), *(topic[2] for topic in topics)]
    titles = dict.fromkeys([specialty, *(topic[0] for topic in topics)])
    return _synthetic(
        assessment=[
            *considered,
            *abnormal,
            *(f"history of {item} taken into account" for item in history),
        ],
        recommendations=list(dict.fromkeys(topic[1] for topic in topics)),
        protocols=[
            {"id": f"SYN-{number}", "title": f"synthetic protocol for {name}"}
            for number, name in enumerate(titles, 1)
        ],
        specialty=specialty,
        urgency=max(urgencies, key=_URGENCY.index),
        abnormalFindings=abnormal,
        note=f"Synthetic sandbox answer about: {', '.join(symptoms)}.",
    )


def cancer_risk(request: Request) -> dict[str, object]:
    """Add up points for the age, the risk factors and the symptoms; the images count no point."""
    symptoms = _strings(request.get("symptoms"))
    given = [*_strings(request.get("riskFactors")), *symptoms]
    factors: list[dict[str, Any]] = [{"factor": text, "points": _topic(text)[3]} for text in given]
    age = request.get("patientAge", 0)
    steps = [points for limit, points in _AGE_POINTS if age >= limit]
    factors[:0] = [{"factor": f"age {age:g}", "points": points} for points in steps[:1]]
    score = min(100, sum(factor["points"] for factor in factors))
    level, advice = next((level, advice) for least, level, advice in _LEVELS if score >= least)
    return _synthetic(
        riskLevel=level,
        riskScore=score,
        factors=factors,
        recommendations=[advice],
        imagesReceived=len(_strings(request.get("images"))),
        imagingType=request.get("imagingType"),
        note=f"Synthetic sandbox score for: {', '.join(symptoms) or 'no symptoms'}.",
    )
