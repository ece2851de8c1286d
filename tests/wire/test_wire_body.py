"""Decoding a body while reading it, and holding it to a size."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import httpx
import pytest
from peers import answering

from langchain_svc import ChatSvc, SvcResponseError, SvcStreamError
from langchain_svc._wire.body import BodyDecoder, BodyError

TEXT = b"The quick brown fox. " * 500


ENCODED = {
    "plain": ("", TEXT),
    "gzip": ("gzip", gzip.compress(TEXT)),
    "capitals": ("GZIP ", gzip.compress(TEXT)),
}


def read(encoding, raw, limit=100_000, step=7):
    decoder = BodyDecoder(encoding, limit)
    out = b"".join(decoder.decode(raw[i : i + step]) for i in range(0, len(raw), step))
    decoder.close()
    return out


@pytest.mark.parametrize(("encoding", "raw"), ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_every_encoding_at_every_step(encoding, raw, step):
    assert read(encoding, raw, step=step) == TEXT


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_gzip_in_several_members(step):
    raw = b"".join(gzip.compress(TEXT[i : i + 3000]) for i in range(0, len(TEXT), 3000))
    assert read("gzip", raw, step=step) == TEXT
    with pytest.raises(BodyError, match="cut short"):
        read("gzip", raw + gzip.compress(b"x")[:1], step=step)
    with pytest.raises(BodyError, match="damaged"):
        read("gzip", raw + b"and more", step=step)
    with pytest.raises(BodyError, match="damaged"):
        read("gzip", raw + zlib.compress(TEXT), step=step)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_limit_is_exact_also_for_much_in_little(pack):
    raw, encoding = pack(b"\0" * 3_000_000), "gzip" if pack is gzip.compress else ""
    assert len(read(encoding, raw, limit=3_000_000, step=len(raw))) == 3_000_000
    with pytest.raises(BodyError, match="larger than 2999999 bytes"):
        read(encoding, raw, limit=2_999_999, step=len(raw))


def test_a_bomb_is_never_unpacked_beyond_the_limit():
    bomb = gzip.compress(b"\0" * 50_000_000)
    decoder = BodyDecoder("gzip", 1_000_000)
    sizes = []
    with pytest.raises(BodyError, match="larger than 1000000 bytes"):
        for i in range(0, len(bomb), 1000):
            sizes.append(len(decoder.decode(bomb[i : i + 1000])))
    assert sum(sizes) <= 1_000_000


MANY = b'{"choices":[{"message":{"content":"x"}}],"more":[%s0]}' % (b"[]," * 2_000_000)


@pytest.mark.parametrize(
    ("method", "content", "kind"),
    [("invoke", MANY, SvcResponseError), ("stream", b"data: %s\n\n" % MANY, SvcStreamError)],
)
def test_json_of_too_many_values_is_refused_before_it_fills_the_memory(method, content, kind):
    label = {"content-type": "text/event-stream" if method == "stream" else "application/json"}
    clients = answering(lambda _: httpx.Response(200, content=content, headers=label))
    words = {"api_key": "sk-key-0123456789", "base_url_v1": "http://127.0.0.1:9/v1"}
    model = ChatSvc(**words, **clients, max_retries=0)
    tracemalloc.start()
    try:
        with pytest.raises(kind):
            [*getattr(model, method)("x")]
        assert tracemalloc.get_traced_memory()[1] < 5 * len(content)  # read, it is 22 times as much
    finally:
        tracemalloc.stop()
