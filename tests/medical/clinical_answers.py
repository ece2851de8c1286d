"""Answers in five languages, each an advice and what rules it out for this patient, in odd JSON."""

from __future__ import annotations

import base64
import json
import re

TEXTS = [
    ("Start nitrofurantoin 100 mg twice daily for five days.", "Her eGFR of 27 mL/min rules nitrofurantoin out: give fosfomycin 3 g once."),
    ("Offer ibuprofen 400 mg with meals.\nReview after one week.", "He is on lithium, and ibuprofen raises its level:\n- stop ibuprofen\n- measure lithium in 5 days"),
    ("Bei Schmerzen Metamizol 1 g bis viermal am Tag.", "Nach der Agranulozytose von 2019 ist Metamizol für ihn „absolut“ kontraindiziert."),
    ("Réhydrater avec 500 ml de sérum salé.", "La fraction d'éjection à 20 % impose un débit réduit, et un arrêt dès l'apparition de crépitants."),
    ("Indique alendronato 70 mg cada semana.", "Por su acalasia no debe tragar alendronato; valore zoledronato tras corregir el calcio."),
    ("Iniziare allopurinolo 100 mg al giorno.", "Assume azatioprina 150 mg: senza ridurla a un quarto l'allopurinolo causa una grave aplasia."),
]  # fmt: skip
FILE = base64.b64encode(bytes(range(256)) * 4).decode()


def _twice(advice, against):
    """One name for two fields, which JSON allows and a dict forgets."""
    return f'{{"advice": {json.dumps(advice)}, "advice": {json.dumps(against, ensure_ascii=False)}}}'.encode()


def _nested(advice, against):
    body = {"finding": against}
    for level in range(60):
        body = {f"level{level}": [body]}
    return {"summary": advice, "detail": body}


SHAPES = {
    "text": lambda a, c: f"{a} {c}",
    "field": lambda a, c: {"response": f"{a}\n\n{c}"},
    "fields": lambda a, c: {"recommendation": a, "contraindication": c},
    "names of the protocol": lambda a, c: {"status": a, "time": c, "success": True, "code": 3, "id": "x"},
    "names of the request": lambda a, c: {"images": [a], "patient": {"note": c}, "input": None},
    "envelopes": lambda a, c: {"data": {"response": a}, "result": {"response": c}},
    "results": lambda a, c: {"results": [{"assessment": a}, {"assessment": c, "duration": "7 days"}]},
    "list": lambda a, c: [a, [[], {}, {"date": c}]],
    "completion": lambda a, c: {"choices": [{"index": 0, "message": {"role": "assistant", "content": f"{a} {c}"}}], "usage": {"tokens": 5}},
    "names that say it": lambda a, c: {a: True, "but": {c: False}},
    "a file between": lambda a, c: {"text": a, "report": f"data:application/pdf;base64,{FILE}", "then": c},
    "empty errors": lambda a, c: {"errors": [], "error": None, "message": a, "notes": ["", c]},
    "one name twice": _twice,
    "nested": _nested,
    "control characters": lambda a, c: {"a\u0007": f"{a}\t\r\n", "\u200bb": f" {c} \ud83d"},
}  # fmt: skip


def body_of(shape, pair):
    """The bytes of an answer; half of the shapes have escapes for letters beyond ASCII."""
    made = SHAPES[shape](*pair)
    if isinstance(made, bytes):
        return made
    escaped = len(shape) % 2 == 0 or "control" in shape
    return json.dumps(made, ensure_ascii=escaped).encode()


def runs_of_three(text):
    """All three words in a row, whatever stands between them or how it is escaped."""
    text = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), text)
    words = re.findall(r"\w+", re.sub(r"\\+[nrt]", " ", text).casefold())
    return set(zip(words, words[1:], words[2:], strict=False))
