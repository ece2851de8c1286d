"""The image store: what it takes, what it refuses, its bounds, what a pickle holds of it."""

from __future__ import annotations

import base64
import copy
import pickle
import re
import struct
import zlib
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

import langchain_svc as svc
from langchain_svc.images import ImageError, check_address


def made(kind="PNG", size=(5, 3), mode="RGB", **options):
    file = BytesIO()
    Image.new(mode, size, 1).save(file, kind, **options)
    return file.getvalue()


def png_header(width, height):
    head = struct.pack(">II5B", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    return b"\x89PNG\r\n\x1a\n" + chunk


# -- what an image is ------------------------------------------------------------------------------


def test_decompression_bombs_are_refused_by_their_header():
    with pytest.raises(svc.SvcRequestError, match="50000x50000 pixels"):
        svc.ImageStore().add(png_header(50_000, 50_000))
    for image in (made(), Image.new("RGB", (5, 3))):
        with pytest.raises(svc.SvcRequestError, match="pixels"):
            svc.ImageStore(max_pixels=14).add(image)


# -- addresses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/a.png",
        "http://example.com",
        "https://sub.example.co.uk:8443/a%20b?c=d&e=f#g",
        "https://EXAMPLE.com/a",
        "https://example.com./a",
        "https://xn--bcher-kva.example/a",
        "https://contest.net/",
        "https://ts.network/",
        "https://example.com:80/",
    ],
)
def test_public_addresses(url):
    assert check_address(url) == url


# What some parser or network would read as an address of its own.
NEARLY_PUBLIC = [
    "https://8.8.8.8/a", "https://[2606:4700::1111]/a", "https://8.8.8.8%2elocalhost/",
    "https://8.8.8.8%/", "https://8.8.8.8%25x/", "https://[2606:4700::1111%25eth0]/",
    "https://[::127.0.0.1]/", "https://[::ffff:0:127.0.0.1]/", "https://[64:ff9b:1::7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[fec0::1]/", "https://[5f00::1]/", "https://[8000::1]/",
    "https://010.8.8.8/", "https://01.1.1.1/", "https://8.8.2056/", "https://0x08.8.8.8/", "https://134744072/",
    "https://localhost.localdomain/", "https://api.default.svc/",
    "https://168.63.129.16/metadata", "https://192.0.0.192/", "https://192.0.0.9/",
    "https://192.88.99.1/", "https://[3fff::1]/", "https://[3fff:fff::1]/",
    "https://example.com:0/", "https://[::ffff:168.63.129.16]/", "https://[2002:a83f:8110::]/",
    *[
        f"https://api.{end}/"
        for end in (
            "private", "intra", "consul", "default", "test", "onion", "invalid", "example.ts.net",
            "TS.NET.",
        )
    ],
]  # fmt: skip


@pytest.mark.parametrize(
    "url",
    [
        "https://user@example.com/",
        "https://[::ffff:10.0.0.1]/",
        "https://[2002:7f00:1::]/",
        "https://[2001:0:53aa:64c:0:fbff:b6f5:1]/",
        "https://[ff02::1]/",
        "https://[::]/",
        "https://192.168.1/",
        "https://0/",
        "https://255.255.255.255/",
        "https://example/",
        "https://-a.example/",
        "https://ex_ample..com/",
        "https://[::1",
        "mailto:a@example.com",
        "https://é.example/",
        "https://example.com:x/",
        *NEARLY_PUBLIC,
    ],
)
def test_other_addresses(url):
    with pytest.raises(ImageError):
        check_address(url)
    with pytest.raises(svc.SvcRequestError):
        svc.ImageStore().add(url)


# -- the store -------------------------------------------------------------------------------------


FILES = [
    ("PNG", {}), ("JPEG", {}), ("JPEG", {"progressive": True}), ("JPEG", {"exif": b"Exif\0\0" + bytes(300)}),
    ("WEBP", {}), ("WEBP", {"lossless": True}), ("WEBP", {"mode": "RGBA", "exif": b"Exif\0\0" + bytes(40)}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options"), FILES)
def test_what_can_be_added(tmp_path, kind, options):
    store, data = svc.ImageStore(), made(kind, (300, 70), **options)
    file = tmp_path / "named.wrongly.txt"
    file.write_bytes(data)
    text = base64.b64encode(data).decode()
    forms = [file, str(file), data, bytearray(data), text, f"data:image/x;base64,{text}"]
    forms += [text.rstrip("="), base64.urlsafe_b64encode(data).decode(), base64.encodebytes(data).decode()]  # fmt: skip
    forms += [f"DATA:image/png;charset=x;BASE64,{text}"]
    for index, image in enumerate(forms, 1):
        assert store.add(image, label="mine", keep_metadata="exif" in options) == f"img_{index}"
        stored = store.get(f"img_{index}")
        assert (stored.data, stored.format, stored.label) == (data, kind, "mine")
        assert (stored.width, stored.height) == (300, 70)
        assert stored.mime_type == f"image/{kind.lower()}"
        assert base64.b64decode(stored.base64) == data
        assert not stored.generated
    assert len(store) == len(forms)
    assert "img_1" in store
    assert "img_11" not in store


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1", "I;16"])
def test_pil_images(mode):
    store, picture = svc.ImageStore(), Image.new(mode, (5, 3))
    stored = store.get(store.add(picture))
    assert (stored.format, stored.width, stored.height) == ("PNG", 5, 3)
    with Image.open(BytesIO(stored.data)) as kept:
        assert kept.tobytes() == picture.tobytes()


def test_a_missed_file_is_named_from_the_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("nope.png", Path("nope.png"), "./no.folder/nope", "photo", "scans/abc"):
        with pytest.raises(svc.SvcRequestError, match="cannot be added") as caught:
            svc.ImageStore().add(path)
        assert str(tmp_path / path) in str(caught.value)
    text = base64.b64encode(made()[:40]).decode() + "*"  # an image is not a path
    with pytest.raises(svc.SvcRequestError, match="not valid base64") as caught:
        svc.ImageStore().add(text)
    assert text[:20] not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["cat.png", "C:\\Users\\zoe\\cat.png", "file:///home/zoe/cat.png", "~/cat.png"]
)
def test_a_path_where_an_address_belongs_is_told_what_to_write(path):
    with pytest.raises(ImageError, match=r"path is not read from here.*images\.add\(path\)"):
        check_address(path)
    tool = svc.SvcAnalyzeImage(api_key="k", base_url="https://example.com")
    with pytest.raises(svc.SvcRequestError, match=r"images\.add\(path\)"):
        tool.invoke({"image": path, "task": "ocr"})


def test_addresses_are_kept_and_never_fetched():
    store = svc.ImageStore()
    stored = store.get(store.add(" https://example.com/a.png "))
    assert (stored.url, stored.data) == ("https://example.com/a.png", None)
    assert (stored.mime_type, stored.base64) == (None, "")
    with pytest.raises(svc.SvcRequestError, match="never fetched"):
        store.save("img_1", "x.png")


NO_IMAGES = [
    b"\x89PNG\r\n\x1a\n",
    b"<svg/>",
    b"BM" + bytes(60),
    b"%PDF-1.7",
    b"RIFF\0\0\0\0WAVE" + bytes(40),
    b"RIFF\0\0\0\0WEBPVP8?" + bytes(40),
    b"GIF89a",
    b"\xff\xd8\xff\xe0\x00\x00" + bytes(30),
    b"\xff\xd8\xff" + b"\xff" * 100,
    png_header(0, 5),
    "%%%",
    "data:image/png,abc",
    "data:",
    "Ä",
    "A" * 5,
]
NO_IMAGES += [
    SimpleNamespace(_repr_png_=lambda held=held: held)
    for held in (None, "/etc/hosts", (made(), {}), b"no PNG")
]


@pytest.mark.parametrize(
    "image",
    [
        *NO_IMAGES,
        b"",
        b"text",
        "",
        "no/such/file.png",
        "\0",
        "data:image/png;base64,AAAA",
        "x" * 5000,
        7,
        None,
        object(),
        Image.new("CMYK", (5, 3)),
        Path("no/such/file.png"),
        Path(),
    ],
)
def test_what_cannot_be_added(image):
    with pytest.raises(svc.SvcRequestError, match="cannot be added"):
        svc.ImageStore().add(image)


def test_large_images_are_refused(tmp_path):
    store, file = svc.ImageStore(max_image_bytes=10), tmp_path / "a.png"
    file.write_bytes(made())
    for image in (file, made(), base64.b64encode(made()).decode(), "A" * 1000):
        with pytest.raises(svc.SvcRequestError, match="more than 10 bytes"):
            store.add(image)


def test_save_and_remove(tmp_path):
    store = svc.ImageStore()
    store.add(made())
    assert store.save("img_1", tmp_path / "a.png").read_bytes() == made()
    store.remove("img_1")
    for use in (store.get, store.remove):
        with pytest.raises(svc.SvcRequestError, match="There is no image 'img_1'"):
            use("img_1")
    assert store.add(made()) == "img_2"  # never the same handle again
    with pytest.raises(svc.SvcRequestError, match="There is no image 'img_1'") as caught:
        store.get("img_1")
    assert "img_2" not in str(caught.value)  # it may be another user's


@pytest.mark.usefixtures("random_handles")
def test_handles_cannot_be_guessed():
    stores = [svc.ImageStore() for _ in range(50)]
    handles = [store.add(made()) for store in stores]
    assert len(set(handles)) == 50
    assert all(re.fullmatch(r"img_1[a-z]{8}", handle) for handle in handles)
    assert all(handle in store for handle, store in zip(handles, stores, strict=True))
    assert "img_1" not in stores[0] and handles[1] not in stores[0]
    assert handles[0] not in repr(stores[0])


def test_the_oldest_generated_images_make_room():
    store = svc.ImageStore(max_images=3)
    store.add(made())
    assert [store.add_generated(made()).handle[-1] for _ in range(4)] == list("2345")
    assert [image.handle for image in store] == ["img_1", "img_4", "img_5"]
    store.add(made())
    store.add(made())
    with pytest.raises(svc.SvcRequestError, match="the store is full"):
        store.add(made())
    with pytest.raises(ValueError, match="the store is full"):
        store.add_generated(made())
    assert [image.handle for image in store] == ["img_1", "img_6", "img_7"]


def test_bytes_are_bounded():
    size = len(made())
    store = svc.ImageStore(max_bytes=2 * size)
    store.add_generated(made())
    store.add(made())
    store.add(made())
    assert [image.handle for image in store] == ["img_2", "img_3"]
    with pytest.raises(svc.SvcRequestError, match="full"):
        store.add(made())


@pytest.mark.parametrize("owner", [svc.ChatSvc, svc.SvcAnalyzeImage, svc.SvcToolkit])
def test_a_pickle_of_what_is_private_holds_no_image(owner):
    secret = made(size=(31, 17))
    for privacy, held in ((None, True), ("phi", False)):
        store = svc.ImageStore(max_images=7)
        handle = store.add(secret, label="Zebulon", keep_metadata=True)
        store.describe(handle, "Zebulon smiles")
        used = owner(api_key="k", images=store, privacy=privacy)
        data = pickle.dumps(used)
        assert (secret in data, b"Zebulon" in data) == (held, held)
        again = pickle.loads(data).images
        assert (handle in again, again.max_images) == (held, 7)
        assert again.add(made()) not in store
        assert repr(again) == f"ImageStore({1 + held} image{'s' * held})"
        for copied in (used, copy.copy(used), copy.deepcopy(used)):
            assert copied.images.get(handle).data == secret
