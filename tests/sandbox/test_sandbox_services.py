"""What the sandbox answers where no chat is: shaped like the real thing, and marked as unreal."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from langchain_svc.sandbox.samples import (
    analyze,
    cancer_risk,
    consult,
    decision_support,
    draw,
    translate,
)


def test_a_translation_is_labelled_and_keeps_the_text():
    told = translate("Hello {name}", source=None, target="fr")
    assert told["translation"] == "[fr] Hello {name}"
    assert (told["source"], told["target"]) == ("en", "fr")
    assert "not a real translation" in told["note"]
    assert translate("x", source="pl", target="en")["source"] == "pl"


TEXTS, NUMBERS = st.text(max_size=8), st.floats(allow_nan=False, allow_infinity=False)
LISTS = st.lists(TEXTS, max_size=3)
READINGS = st.dictionaries(TEXTS, NUMBERS)
WHO = {"age": NUMBERS, "sex": TEXTS, "medicalHistory": LISTS, "currentMedications": LISTS}
PATIENT = st.fixed_dictionaries({}, optional=WHO)
BODIES = {
    consult: (
        {"message": TEXTS},
        {"specialty": TEXTS, "language": TEXTS, "patientContext": PATIENT},
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
def test_every_medical_answer_says_that_it_is_synthetic(work, data):
    required, optional = BODIES[work]
    sent = data.draw(st.fixed_dictionaries(required, optional=optional))
    told = work(sent)
    assert told["synthetic"] is True
    assert "not medical advice" in told["disclaimer"]
    assert json.dumps(told) == json.dumps(work(sent))


def drawn(prompt="a red circle", size="1024x1024", quality="standard", index=0):
    return draw(prompt, size=size, quality=quality, index=index)


def test_a_drawing_is_a_small_png_that_follows_from_the_request():
    assert drawn() == drawn()
    assert len({drawn(), drawn(quality="hd"), drawn(index=1), drawn("a \ud800 \u732b")}) == 4
    for size in ("1024x1024", "1792x1024", "1024x1792"):
        with Image.open(io.BytesIO(drawn(size=size))) as picture:
            assert f"{picture.width}x{picture.height}" == size
        assert len(drawn(size=size)) < 20_000


def test_what_was_drawn_is_found_again():
    described = analyze(drawn(), "describe")
    assert "1024x1024" in described["description"]
    assert "a red circle" in described["description"]
    assert (described["width"], described["height"]) == (1024, 1024)
    assert analyze(drawn(), "ocr")["text"] == "a red circle"
    assert analyze(drawn(), "detect")["objects"]
    assert analyze(drawn(), "moderate")["flagged"] is False


def bomb():
    file = io.BytesIO()
    Image.new("1", (30_000, 30_000)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("data", [b"", b"no image", drawn()[:300], b"<svg/>", bomb()])
def test_what_is_no_picture_is_refused(data):
    with pytest.raises(ValueError, match="image"):
        analyze(data, "describe")
