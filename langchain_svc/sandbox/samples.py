"""What the sandbox answers where no chat is: shaped like the real thing, and marked as unreal.

Whoever needs another answer scripts it: `Sandbox(faults=[Fault(path="/vision", body={...})])`.
"""

from __future__ import annotations

import hashlib
import io
import textwrap
from collections.abc import Mapping
from typing import Any

from PIL import Image, ImageDraw, PngImagePlugin

CheckedBody = Mapping[str, Any]

DISCLAIMER = (
    "Synthetic sandbox output made by fixed rules: not medical advice, not from a clinician "
    "or a model. In an emergency call the local emergency number."
)


def translate(text: str, *, source: str | None, target: str) -> dict[str, object]:
    """Answer a translation request: the text itself, labelled, so that nobody takes it for one."""
    return {
        "translation": f"[{target}] {text}",
        "source": source or "en",
        "target": target,
        "note": "made by the sandbox: not a real translation",
    }


# -- medicine -------------------------------------------------------------------------------------


def _synthetic(**fields: object) -> dict[str, object]:
    return {**fields, "disclaimer": DISCLAIMER, "synthetic": True}


def consult(sent: CheckedBody) -> dict[str, object]:
    """Answer a consultation with what was sent."""
    patient = sent.get("patientContext") or {}
    known = ", ".join(patient) or "nothing"
    return _synthetic(
        response=f'Synthetic sandbox answer: you wrote "{sent["message"][:500].strip()}", and of '
        f"the patient you told: {known}. Please see a clinician.",
        specialty=sent.get("specialty") or "general medicine",
        language=sent.get("language") or "en",
        urgency="routine",
        recommendations=["a visit to a general practitioner"],
        patientContextUsed=bool(patient),
    )


def decision_support(sent: CheckedBody) -> dict[str, object]:
    """Answer with the symptoms that were given; no reading is judged."""
    symptoms, specialty = sent["symptoms"], sent["specialty"]
    return _synthetic(
        assessment=[f"{symptom}: considered under {specialty}" for symptom in symptoms],
        recommendations=["an examination by a specialist"],
        protocols=[{"id": "SYN-1", "title": f"synthetic protocol for {specialty}"}],
        specialty=specialty,
        urgency="routine",
        abnormalFindings=[],
        note=f"Synthetic sandbox answer about: {', '.join(symptoms)}.",
    )


def cancer_risk(sent: CheckedBody) -> dict[str, object]:
    """Answer with the risk factors that were given; nothing is scored."""
    return _synthetic(
        riskLevel="low",
        riskScore=0,
        factors=[{"factor": text, "points": 0} for text in sent.get("riskFactors", ())],
        recommendations=["an appointment for targeted tests"],
        imagesReceived=len(sent.get("images", ())),
        imagingType=sent.get("imagingType"),
        note=f"Synthetic sandbox score for: {sent.get('symptoms') or 'no symptoms'}.",
    )


# -- pictures -------------------------------------------------------------------------------------

_CAPTION = 220  # characters
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_CATEGORIES = ("violence", "sexual", "hate", "self_harm", "drugs")


def draw(prompt: str, *, size: str, quality: str, index: int) -> bytes:
    """A PNG of `size` ("1024x1024") in one colour, with the prompt in it and in the file.

    It follows from the prompt, the quality and the index alone, so the same request is the same
    file.
    """
    prompt = prompt.encode("utf-8", "replace").decode("utf-8")
    seed = hashlib.sha256(f"{prompt}\n{quality}\n{index}".encode()).digest()
    width, height = map(int, size.split("x"))
    # Two colours in a palette: a picture of a megapixel takes a few kilobytes.
    picture = Image.new("P", (width, height), 0)
    picture.putpalette([*(channel // 2 + 64 for channel in seed[:3]), 255, 255, 255])
    # A font without Unicode refuses what it cannot draw; the file carries the exact text.
    caption = f"{prompt[:_CAPTION]}\n({quality}, variant {index})".encode(
        "latin-1", "replace"
    )
    lines = "\n".join(textwrap.wrap(caption.decode("latin-1"), 64))
    ImageDraw.Draw(picture).text((width // 20, height // 2), lines, fill=1)
    notes, file = PngImagePlugin.PngInfo(), io.BytesIO()
    notes.add_itxt("prompt", prompt)
    notes.add_itxt("software", "sandbox drawing by rules, no model")
    picture.save(file, "PNG", pnginfo=notes)
    return file.getvalue()


def analyze(image: bytes, task: str) -> dict[str, object]:
    """What the bytes of an image say: the prompt that drew it, and its size.

    Raises:
        ValueError: The bytes are not an image.
    """
    try:
        picture = Image.open(io.BytesIO(image), formats=_FORMATS)
        picture.verify()  # without its pixels: a small file can claim a huge picture
    except Exception as error:
        raise ValueError("the bytes are not a whole image of a known format") from error
    width, height = picture.size
    shown = str(picture.info.get("prompt", ""))
    drawn = f' It was drawn for the prompt "{shown}".' if shown else ""
    text = f"A {picture.format} image of {width}x{height} pixels.{drawn}"
    whole = {"label": "the whole picture", "score": 1.0, "box": {"x": 0, "y": 0}}
    found: dict[str, dict[str, object]] = {
        "describe": {"description": text, "width": width, "height": height},
        "ocr": {"text": shown},
        "detect": {"objects": [whole]},
        "moderate": {"flagged": False, "categories": dict.fromkeys(_CATEGORIES, False)},
    }
    note = "found by the sandbox's rules, not by a vision model"
    return {"task": task, **found[task], "note": note}
