"""Secrets are found however a body is cut, and only what is one counts."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_svc._wire.redact import Redactor, secrets_of

KEY, TOKEN = "sk-MARKED/KEY+93417=", "tenant-7f3a9c2b7d04"


@given(st.lists(st.sampled_from([KEY[:3], KEY[3:8], KEY[8:], KEY, TOKEN, TOKEN[:9], TOKEN[9:], " ", "s"]), max_size=8))  # fmt: skip
def test_no_cut_of_a_text_shows_a_secret_or_loses_a_letter(pieces):
    whole = Redactor([KEY, TOKEN])
    fed = "".join([*map(whole.feed, pieces), whole.finish()])
    assert KEY not in fed and TOKEN not in fed
    text = "".join(pieces)
    if KEY not in text and TOKEN not in text:
        assert fed == text


def test_what_counts_as_a_secret():
    headers = (("X-Team", f"Bearer {TOKEN}"), ("Accept", "application/json"), ("X-N", "7"))
    found = secrets_of("k", headers, ("http://al%2Fice:p%40ss@proxy.example:3128",))
    assert found[:3] == ("k", f"Bearer {TOKEN}", TOKEN)
    assert {"al/ice", "p@ss", "p%40ss", base64.b64encode(b"al/ice:p@ss").decode()} < set(found)
    assert "application/json" not in found and "7" not in found


WRITTEN = {
    "as it is": KEY,
    "with slashes as JSON": KEY.replace("/", "\\/"),
    "for JSON": "".join(f"\\u{ord(one):04X}" for one in KEY),
}


@pytest.mark.parametrize("way", WRITTEN)
@pytest.mark.parametrize(
    "around", [('{"a": "\\n', '"}'), ('{"a":' * 20_000, ""), ('{"a": \xe9', "")]
)
def test_a_secret_in_a_body_is_found_however_it_is_written(around, way):
    before, after = (part.encode("latin-1") for part in around)
    clean = Redactor([TOKEN, KEY]).body(before + WRITTEN[way].encode() + after)
    assert clean == before + b"[key]" + after
