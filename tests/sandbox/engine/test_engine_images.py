"""Pictures: drawn for their prompt, described by what is in them, refused when they are none."""

import io
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from langchain_svc.sandbox.engine import analyze, draw

PROMPT = "a red circle and a green tree, blue background"


def drawn(prompt=PROMPT, size="1024x1024", quality="standard", index=0):
    return draw(prompt, size=size, quality=quality, index=index)


@pytest.mark.parametrize("size", ["1024x1024", "1792x1024", "1024x1792"])
def test_a_real_png_of_the_asked_size(size):
    begun = time.perf_counter()
    data = drawn(size=size)
    assert time.perf_counter() - begun < 2
    picture = Image.open(io.BytesIO(data))
    picture.load()
    assert (picture.format, f"{picture.width}x{picture.height}") == ("PNG", size)
    assert len(data) < 100_000


def test_the_same_request_is_the_same_file_and_others_differ():
    assert drawn() == drawn()
    others = {drawn(), drawn(index=1), drawn(quality="hd"), drawn("a blue kite")}
    assert len(others) == 4


@pytest.mark.parametrize("prompt", ["", "你好 🌊", "x" * 1000, "{braces} \ud800", "a\nb"])
def test_any_prompt_is_drawn_and_found_again(prompt):
    text = analyze(drawn(prompt), "ocr")["text"]
    assert text == prompt.encode("utf-8", "replace").decode()


def test_a_description_tells_size_colours_and_prompt():
    told = analyze(drawn(), "describe")
    assert told["description"].endswith(f'It was drawn for the prompt "{PROMPT}".')
    assert (told["width"], told["height"], told["format"]) == (1024, 1024, "PNG")
    assert told["colors"][0]["name"] == "blue"
    assert 0 <= told["brightness"] <= 1
    assert "rules" in told["note"]


def test_objects_are_regions_with_boxes():
    found = analyze(drawn(), "detect")
    labels = [one["label"] for one in found["objects"]]
    assert {"red region", "green region"} <= set(labels)
    for one in found["objects"]:
        box = one["box"]
        assert 0 <= box["x"] < box["x"] + box["width"] <= 1024
        assert 0 <= box["y"] < box["y"] + box["height"] <= 1024
    assert found["faces"] == []


def test_other_pictures_are_described_too():
    file = io.BytesIO()
    Image.new("L", (50, 20), 250).save(file, "JPEG")
    told = analyze(file.getvalue(), "describe")
    assert (told["format"], told["width"], told["prompt"]) == ("JPEG", 50, None)
    assert "bright" in told["description"]
    assert analyze(file.getvalue(), "ocr")["text"] == ""
    moderated = analyze(file.getvalue(), "moderate")
    assert moderated["flagged"] is False
    assert set(moderated["categories"].values()) == {False}


@pytest.mark.parametrize(
    "data", [b"", b"no image", drawn()[:900], b"%!PS-Adobe-3.0 EPSF-3.0\n", b"\x89PNG\r\n\x1a\n"]
)
def test_what_is_no_image_is_refused(data):
    with pytest.raises(ValueError, match="image"):
        analyze(data, "describe")


def test_a_bomb_is_refused_before_it_is_unpacked():
    file = io.BytesIO()
    Image.new("1", (6000, 6000)).save(file, "PNG")
    with pytest.raises(ValueError, match="too many"):
        analyze(file.getvalue(), "describe")


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match="detect"):
        analyze(drawn(), "guess")


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["describe", "detect", "ocr", "moderate"]))
def test_hostile_bytes_raise_nothing_else(data, task):
    for prefix in (b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"II*\x00", b"\xff\xd8\xff"):
        with pytest.raises(ValueError, match="image"):
            analyze(prefix + data, task)
