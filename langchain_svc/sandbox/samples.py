"""The answers of all endpoints but chats: shaped like the real ones, and marked as unreal.

A test that needs another answer scripts it: `Sandbox(faults=[Fault(path="/vision", body={...})])`.
"""

from __future__ import annotations

import hashlib
import io
import textwrap
from collections.abc import Mapping
from typing import Any

from PIL import Image, ImageDraw, PngImagePlugin

BodyFields = Mapping[str, Any]

DISCLAIMER = (
    "Synthetic sandbox output made by fixed rules: not medical advice, not from a clinician "
    "or a model. In an emergency call the local emergency number."
)


def translate(text: str, *, source: str | None, target: str) -> dict[str, object]:
    """Answer a translation request with the text itself, labelled as no translation."""
    return {
        "translation": f"[{target}] {text}",
        "source": source or "en",
        "target": target,
        "note": "made by the sandbox: not a real translation",
    }


# -- medicine -------------------------------------------------------------------------------------


def _synthetic(**fields: object) -> dict[str, object]:
    return {**fields, "disclaimer": DISCLAIMER, "synthetic": True}


def consult(fields: BodyFields) -> dict[str, object]:
    """Answer a consultation with what the request holds."""
    patient = fields.get("patientContext") or {}
    message = fields["message"][:500].strip()
    context = ", ".join(patient) or "nothing"
    return _synthetic(
        response=f'Synthetic sandbox answer: you wrote "{message}", and of '
        f"the patient you told: {context}. Please see a clinician.",
        specialty=fields.get("specialty") or "general medicine",
        language=fields.get("language") or "en",
        urgency="routine",
        recommendations=["a visit to a general practitioner"],
        patientContextUsed=bool(patient),
    )


def decision_support(fields: BodyFields) -> dict[str, object]:
    """Answer with the symptoms of the request; no reading is judged."""
    symptoms = fields["symptoms"]
    specialty = fields["specialty"]
    return _synthetic(
        assessment=[f"{symptom}: considered under {specialty}" for symptom in symptoms],
        recommendations=["an examination by a specialist"],
        protocols=[{"id": "SYN-1", "title": f"synthetic protocol for {specialty}"}],
        specialty=specialty,
        urgency="routine",
        abnormalFindings=[],
        note=f"Synthetic sandbox answer about: {', '.join(symptoms)}.",
    )


def cancer_risk(fields: BodyFields) -> dict[str, object]:
    """Answer with the risk factors of the request; nothing is scored."""
    factors = fields.get("riskFactors", ())
    return _synthetic(
        riskLevel="low",
        riskScore=0,
        factors=[{"factor": factor, "points": 0} for factor in factors],
        recommendations=["an appointment for targeted tests"],
        imagesReceived=len(fields.get("images", ())),
        imagingType=fields.get("imagingType"),
        note=f"Synthetic sandbox score for: {fields.get('symptoms') or 'no symptoms'}.",
    )


# -- pictures -------------------------------------------------------------------------------------

_CAPTION = 220  # characters
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_CATEGORIES = ("violence", "sexual", "hate", "self_harm", "drugs")


def draw(prompt: str, *, size: str, quality: str, index: int) -> bytes:
    """A PNG of `size` ("1024x1024") in one colour, with the prompt in it and in the file.

    It depends on the prompt, the quality and the index alone, so equal requests get equal files.
    """
    prompt = prompt.encode("utf-8", "replace").decode("utf-8")
    seed = f"{prompt}\n{quality}\n{index}"
    digest = hashlib.sha256(seed.encode()).digest()
    background = [channel // 2 + 64 for channel in digest[:3]]
    white = [255, 255, 255]
    width, height = map(int, size.split("x"))
    # Two colours in a palette: a picture of a megapixel takes a few kilobytes.
    picture = Image.new("P", (width, height), 0)
    picture.putpalette(background + white)
    # A font without Unicode refuses what it cannot draw; the file carries the exact text.
    caption = f"{prompt[:_CAPTION]}\n({quality}, variant {index})"
    caption = caption.encode("latin-1", "replace").decode("latin-1")
    lines = "\n".join(textwrap.wrap(caption, 64))
    place = (width // 20, height // 2)
    ImageDraw.Draw(picture).text(place, lines, fill=1)
    notes = PngImagePlugin.PngInfo()
    notes.add_itxt("prompt", prompt)
    notes.add_itxt("software", "sandbox drawing by rules, no model")
    file = io.BytesIO()
    picture.save(file, "PNG", pnginfo=notes)
    return file.getvalue()


def analyze(image: bytes, task: str) -> dict[str, object]:
    """What the bytes of an image tell: its size, and the prompt that drew it.

    Raises:
        ValueError: The bytes are not an image.
    """
    try:
        picture = Image.open(io.BytesIO(image), formats=_FORMATS)
        picture.verify()  # without its pixels: a small file can claim a huge picture
    except Exception as error:
        raise ValueError("the bytes are not a whole image of a known format") from error
    prompt = str(picture.info.get("prompt", ""))
    return {
        "task": task,
        **_analysis(task, picture, prompt),
        "note": "found by the sandbox's rules, not by a vision model",
    }


def _analysis(task: str, picture: Image.Image, prompt: str) -> dict[str, object]:
    if task == "ocr":
        return {"text": prompt}
    if task == "detect":
        box = {"x": 0, "y": 0}
        return {"objects": [{"label": "the whole picture", "score": 1.0, "box": box}]}
    if task == "moderate":
        return {"flagged": False, "categories": dict.fromkeys(_CATEGORIES, False)}
    width, height = picture.size
    text = f"A {picture.format} image of {width}x{height} pixels."
    if prompt:
        text += f' It was drawn for the prompt "{prompt}".'
    return {"description": text, "width": width, "height": height}
