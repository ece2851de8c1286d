"""Error answers: the right class, the right words, and nothing that was sent."""

from __future__ import annotations

import json
import pickle
import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core import exceptions as core

from langchain_svc import errors
from langchain_svc._wire.failures import read_failure, safe_text

NOW = 1_790_000_000.0


def failure(status, body=b"", headers=None, **more):
    return read_failure(status, headers or {}, body, now=NOW, **more)


@pytest.mark.parametrize(
    ("status", "kind", "parent"),
    [
        (400, errors.SvcBadRequestError, core.ModelInvalidRequestError),
        (401, errors.SvcAuthenticationError, core.ModelAuthenticationError),
        (403, errors.SvcPermissionDeniedError, core.ModelPermissionDeniedError),
        (404, errors.SvcNotFoundError, core.ModelNotFoundError),
        (429, errors.SvcRateLimitError, core.ModelRateLimitError),
        (500, errors.SvcServerError, core.ModelAPIError),
        (307, errors.SvcAPIError, core.ModelError),
    ],
)
def test_each_status_has_its_class_and_kin(status, kind, parent):
    error = failure(status)
    assert type(error) is kind
    assert isinstance(error, parent) and isinstance(error, errors.SvcError)
    assert isinstance(error, core.ModelAPIError) is (status == 500)


@pytest.mark.parametrize(
    ("url", "sent", "said"),
    [
        (
            "https://h/chat/completions",
            b'{"model": "m"}',
            "does not end in /v1: write https://h/v1",
        ),
        ("https://h/v1/chat/completions/chat/completions", b"{}", "must end in /v1: https://h/v1"),
        ("https://h/api/api/models", None, "before the /api of the paths: https://h"),
        ("https://h/v1/api/models", None, "before the /api of the paths: https://h"),
        ("https://h/v1/chat/completions", b'{"model": "gpt-4o"}', "'gpt-4o'; list_models() names"),
        ("https://h/v1/models", None, "check the base URL, which is at https://h"),
        ("https://h/v1/chat/completions", b'{"model": 5}', "check the base URL"),
    ],
)
def test_what_is_not_found_says_what_was_asked(url, sent, said):
    assert said in str(failure(404, url=url, sent=sent))


def test_the_path_of_a_base_url_is_not_repeated():
    assert "token" not in str(failure(404, url="https://h/token/models"))


@pytest.mark.parametrize("name", ["message", "detail"])
@pytest.mark.parametrize("around", ['{"error": %s}', "%s"])
def test_every_shape_of_an_error_object(name, around):
    said = {name: "No such thing", "type": "t1", "code": "c1"}
    error = failure(400, (around % json.dumps(said)).encode())
    assert "No such thing" in str(error)
    assert (error.type, error.code) == ("t1", "c1")


@pytest.mark.parametrize("body", [b'{"error": "No such thing"}', b'"No such thing"'])
def test_a_bare_message(body):
    assert "No such thing" in str(failure(400, body))


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>Bad gateway</html>", b"\xff\xfe", b"[1]", b"null", b'{"error": 5}', b"[" * 9000],
)
def test_bodies_that_say_nothing(body):
    assert str(failure(502, body)) == "The service answered 502"


def test_a_message_is_kept_short():
    error = failure(400, b'{"error": {"message": "' + b"word " * 100_000 + b'"}}')
    assert len(str(error)) < 1_500


def test_a_key_in_the_message_is_masked():
    body = b'{"error": {"message": "Invalid key sk-secret-1 given", "code": "sk-secret-1"}}'
    error = failure(401, body, secrets=["sk-secret-1"])
    assert "sk-secret-1" not in str(error) + repr(error) + repr(vars(error))
    assert "Invalid key [key] given" in str(error)


@pytest.mark.parametrize(
    ("said", "sent", "shown"),
    [
        (
            "Cannot parse 'Ann Meyer, 57, HIV positive'",
            "Ann Meyer, 57, HIV positive",
            "Cannot parse '[...]'",
        ),
        ("content ANN-MEYER rejected", "about Ann-Meyer", "content [...] rejected"),
        ("bad text: Meye", "Ann Meyer is ill", "bad text: [...]"),
        (
            "temperature must be from 0 to 2",
            "What temperature is it?",
            "temperature must be from 0 to 2",
        ),
        ("The model svc-x does not exist", "What is a model?", "The model svc-x does not exist"),
        ("limit is 60 requests per minute", "hello", "limit is 60 requests per minute"),
        (
            "pulse 140bpm and BP140 of 1400ml",
            "at a rate of 140",
            "pulse [...]bpm and BP[...] of 1400ml",
        ),
        ("Straße ÉMILE", "in der straße von Émile", "[...]"),
        ("no patient Garcia or GARCI\u0301A", "García", "no patient [...] or [...]"),
        ("no patient Mueller or Muller", "Müller", "no patient [...] or [...]"),
        ("García is unknown", "Garcia", "[...] is unknown"),
        ("Strasse is unknown", "Straße", "[...] is unknown"),
        ("at most 1,500 or 1.500 or 1 500 here", "1500 ml", "at most [...] or [...] or [...] here"),
        ("at most 1500000 here", "1,500,000 cells", "at most [...] here"),
        ("no patient 123-45-6789", "SSN 123456789", "no patient [...]"),
        ("no patient 123456789", "SSN 123-45-6789", "no patient [...]"),
        ("born 19700102", "1970-01-02", "born [...]"),
        ("limit is 60,000 tokens", "hello", "limit is 60,000 tokens"),
    ],
)
def test_words_that_were_sent_do_not_come_back(said, sent, shown):
    assert safe_text(said, private=[sent]) == shown


WAYS = {
    "in capitals": str.upper,
    "for a URL": quote,
    "for a URL, twice": lambda text: quote(quote(text)),
    "each letter for a URL": lambda text: "".join(f"%{one:02X}" for one in text.encode()),
    "for a form": lambda text: text.replace(" ", "+"),
    "for HTML": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "for JSON": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
    "for JSON, twice": lambda text: "".join(f"\\\\u{ord(one):04x}" for one in text),
    "with line ends as JSON": lambda text: text.replace(" ", "\\n"),
    "with slashes as JSON": lambda text: text.replace("/", "\\/"),
    "with control characters": lambda text: text.replace(" ", "\x1b[31m"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_sent_does_not_come_back_in_another_spelling(way):
    quoted = WAYS[way]("sk-Zq9/Kw+Xv77 Ann Meyerling")
    body = json.dumps({"error": {"message": f"no route for <{quoted}> here"}}).encode()
    error = failure(400, body, secrets=["sk-Zq9/Kw+Xv77"], private=["Ann Meyerling"])
    assert not re.search("zq9|xv77|ann|meyer", str(error), re.IGNORECASE)
    assert "no route for <" in str(error)
    assert str(error).isprintable()


@pytest.mark.parametrize("quotes", ["as it was sent", *WAYS])
@pytest.mark.parametrize("way", WAYS)
def test_what_was_sent_in_another_spelling_does_not_come_back(way, quotes):
    sent = WAYS[way]("Renée Bö Zürich/Ulm")
    said = sent if quotes == "as it was sent" else WAYS[quotes]("Renée Bö Zürich/Ulm")
    shown = safe_text(f"no route for <{said}> here", private=[f"name: {sent}; 5"])
    assert shown == "no route for <[...]> here"


def test_a_part_of_a_key_is_masked_too():
    shown = safe_text("bad key sk-Marked-7Z, ends in 5678", secrets=["sk-Marked-7Zq-345678"])
    assert shown == "bad key [key], ends in 5678"


@given(st.text(max_size=200), st.text(min_size=5, max_size=60))
def test_no_long_word_of_a_prompt_survives(said, sent):
    word = "zq" + "".join(c for c in sent if c.isalnum())[:20]
    assert word not in safe_text(f"{said} {word} {said}", private=[f"patient {word} here"])


def test_errors_survive_pickling():
    error = failure(429, b'{"error": {"message": "m", "code": "c"}}', {"retry-after": "9"})
    error.is_retryable = False
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
    partial = pickle.loads(pickle.dumps(errors.SvcStreamError("m", partial="half")))
    assert partial.partial == "half"
