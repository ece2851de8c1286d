"""Images without what their files hold beside the picture: the pixels stay, the rest goes."""

from __future__ import annotations

import base64
import contextlib
import struct
import zlib
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

import langchain_svc as svc
from langchain_svc.images import ImageError, without_metadata

Image = pytest.importorskip("PIL.Image", reason="Pillow draws the pictures of these tests")
PngInfo = pytest.importorskip("PIL.PngImagePlugin").PngInfo

SECRET = b"Zebulon Quux 1931-04-07"
FORMATS = ["PNG", "JPEG", "WEBP"]


def pixels(data):
    with Image.open(BytesIO(data)) as image:
        return image.size, image.convert("RGBA").tobytes()


def picture(mode="RGB", size=(13, 9)):
    made = Image.new("RGB", size)
    made.putdata([(n * 37 % 256, n * 91 % 256, n * 11 % 256) for n in range(size[0] * size[1])])
    return made.convert(mode)


def exif(orientation=None):
    block = Image.Exif()
    block[0x010E] = SECRET.decode()
    block[0x8298] = SECRET.decode()
    if orientation:
        block[0x0112] = orientation
    return block


def text_chunks():
    info = PngInfo()
    info.add_text("Patient", SECRET.decode())
    info.add_text("Packed", SECRET.decode() * 9, zip=True)
    info.add_itxt("XML:com.adobe.xmp", f"<x>{SECRET.decode()}</x>")
    info.add(b"tIME", struct.pack(">H5B", 1931, 4, 7, 1, 2, 3))
    info.add(b"prVt", SECRET)
    return info


def written(image, kind, **options):
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def saved(kind, mode="RGB", size=(13, 9), orientation=None, **options):
    """A picture with all the metadata that its format can hold, as Pillow writes it."""
    words = {
        "PNG": {"pnginfo": text_chunks(), "exif": exif(orientation), "dpi": (72, 72)},
        "JPEG": {"comment": SECRET, "exif": exif(orientation), "xmp": SECRET, "dpi": (72, 72)},
        "WEBP": {"exif": exif(orientation), "xmp": SECRET, "lossless": True},
    }[kind]
    words["icc_profile"] = b"\0" * 128 + SECRET
    return written(picture(mode, size), kind, **{**words, **options}) + SECRET


def segment(marker, body):
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


CASES = [
    ("PNG", "1", {}), ("PNG", "L", {}), ("PNG", "LA", {}), ("PNG", "P", {}), ("PNG", "RGB", {}),
    ("PNG", "RGBA", {}), ("PNG", "I;16", {}),
    ("PNG", "P", {"transparency": 3}), ("PNG", "RGB", {"transparency": (0, 0, 0)}),
    ("JPEG", "L", {}), ("JPEG", "RGB", {}), ("JPEG", "CMYK", {}),
    ("JPEG", "RGB", {"progressive": True}), ("JPEG", "RGB", {"restart_marker_rows": 1}),
    ("JPEG", "RGB", {"keep_rgb": True}), ("JPEG", "RGB", {"subsampling": 0, "quality": 99}),
    ("WEBP", "RGB", {}), ("WEBP", "RGBA", {}), ("WEBP", "RGB", {"lossless": False}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "mode", "options"), CASES)
@pytest.mark.parametrize("size", [(13, 9), (1, 1), (97, 64)])
def test_the_picture_stays_and_the_rest_goes(kind, mode, options, size):
    data = saved(kind, mode, size, **options)
    assert SECRET in data
    bare = without_metadata(data)
    assert pixels(bare) == pixels(data)
    for word in b"Quux tEXt zTXt iTXt tIME iCCP ICC_PROFILE Exif XMP ICCP".split():
        assert word not in bare
    with Image.open(BytesIO(bare)) as image:
        assert not image.getexif()
        told = {"icc_profile", "comment", "xmp", "exif", "Patient", "XML:com.adobe.xmp"}
        assert not told & image.info.keys()
    assert without_metadata(bare) == bare


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_the_orientation_is_kept_alone(kind, orientation):
    data = saved(kind, orientation=orientation)
    bare = without_metadata(data)
    assert SECRET not in bare
    with Image.open(BytesIO(bare)) as image:
        assert dict(image.getexif()) == ({0x0112: orientation} if orientation > 1 else {})
    assert pixels(bare) == pixels(data)


@pytest.mark.parametrize(
    "block",
    [
        b"II*\0" + b"\xff" * 20,
        b"MM\0*",
        b"",
        b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x63\0\0\0",
        SECRET,
    ],
)
def test_unreadable_exif_is_left_out_whole(block):
    data = written(picture(), "JPEG")
    with_it = data[:2] + segment(0xE1, b"Exif\0\0" + block) + data[2:]
    assert without_metadata(with_it) == without_metadata(data)


def test_second_pictures_go():
    thumbnail = saved("JPEG", size=(3, 2))
    jfxx = b"JFXX\0\x10" + thumbnail
    data = written(picture(), "JPEG")
    with_both = data[:20] + segment(0xE0, jfxx) + data[20:] + thumbnail
    assert without_metadata(with_both) == without_metadata(data)
    jfif = b"JFIF\0\x01\x02\x01\0H\0H\x01\x01" + SECRET[:3]
    assert SECRET[:3] not in without_metadata(b"\xff\xd8" + segment(0xE0, jfif) + data[20:])


def test_animations_are_refused():
    frames = [picture(), picture().rotate(180)]
    for kind, said in (("GIF", "it is a GIF"), ("WEBP", "it is animated")):
        data = written(frames[0], kind, save_all=True, append_images=frames[1:])
        for image in (data, base64.b64encode(data).decode()):
            for keep in (False, True):
                with pytest.raises(
                    svc.SvcRequestError, match=f"{said}, which is not supported: save"
                ):
                    svc.ImageStore().add(image, keep_metadata=keep)


def png_chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


@pytest.mark.parametrize("name", [b"gAMA", b"sRGB", b"pHYs", b"cHRM"])
def test_a_known_chunk_of_a_wrong_size_is_something_else(name):
    data = written(picture(), "PNG")
    bare = without_metadata(data[:33] + png_chunk(name, SECRET) + data[33:])
    assert bare == without_metadata(data)


@pytest.mark.parametrize("kind", FORMATS)
def test_cut_anywhere_it_is_refused_or_whole(kind):
    data = saved(kind)[: -len(SECRET)]
    for end in range(len(data)):
        store = svc.ImageStore()
        with contextlib.suppress(ImageError):  # a store reads the header before
            assert pixels(without_metadata(data[:end])) == pixels(data)
        try:
            found = store.get(store.add(data[:end]))
        except svc.SvcRequestError:
            continue
        assert pixels(found.data) == pixels(data)
        assert (found.format, found.width, found.height) == (kind, 13, 9)
        assert SECRET not in found.data


@given(st.sampled_from(FORMATS), st.data())
def test_damage_never_escapes_as_another_error(kind, data):
    whole = bytearray(saved(kind, size=(5, 4)))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        without_metadata(bytes(whole))
    except ImageError as error:
        assert "Quux" not in str(error)


SIDES = st.tuples(st.integers(1, 40), st.integers(1, 40))


@given(st.sampled_from(FORMATS), SIDES, st.binary(min_size=48), st.sampled_from(["L", "RGB"]))
def test_pixels_stay_for_any_picture(kind, size, noise, mode):
    need = size[0] * size[1] * len(mode)
    image = Image.frombytes(mode, size, (noise * (need // len(noise) + 1))[:need])
    held = {"exif": exif(6)} if kind in {"PNG", "WEBP"} else {"comment": SECRET}
    data = written(image, kind, **held)
    bare = without_metadata(data)
    assert pixels(bare) == pixels(data)
    assert SECRET in data
    assert SECRET not in bare


# -- through the doors -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_patients_images_hold_no_metadata(kind):
    data = saved(kind, orientation=6)
    for given_as in (data, base64.b64encode(data).decode()):
        (sent,) = svc.PatientContext(images=[given_as]).images
        assert base64.b64decode(sent) == without_metadata(data)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_store_leaves_metadata_out_unless_told_otherwise(kind, tmp_path):
    data, store = saved(kind), svc.ImageStore()
    path = tmp_path / "a file"
    path.write_bytes(data)
    for given_as in (data, path, base64.b64encode(data).decode()):
        assert store.get(store.add(given_as)).data == without_metadata(data)
    assert store.get(store.add(data, keep_metadata=True)).data == data
    with pytest.raises(svc.SvcRequestError, match="cannot be removed"):
        store.add(data[: len(data) // 2])


def test_what_the_service_made_stays_as_it_came():
    data = saved("PNG")
    assert svc.ImageStore().add_generated(data).data == data
