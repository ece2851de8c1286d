"""Error answers: the right class and the right words.

What no error repeats of what was sent is tested in privacy/test_error_words.py.
"""

from __future__ import annotations

import json
import pickle

import pytest
from langchain_core import exceptions as core

from langchain_svc import errors
from langchain_svc._wire.failures import read_failure

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


def test_a_key_in_the_message_is_masked():
    body = b'{"error": {"message": "Invalid key sk-secret-1 given", "code": "sk-secret-1"}}'
    error = failure(401, body, secrets=["sk-secret-1"])
    assert "sk-secret-1" not in str(error) + repr(error) + repr(vars(error))
    assert "Invalid key [key] given" in str(error)


def test_a_part_of_a_key_is_masked_too():
    body = b'{"error": "bad key sk-Marked-7Z, ends in 5678"}'
    error = failure(401, body, secrets=["sk-Marked-7Zq-345678"])
    assert "bad key [key], ends in 5678" in str(error)


def test_errors_survive_pickling():
    error = failure(429, b'{"error": {"message": "m", "code": "c"}}', {"retry-after": "9"})
    error.is_retryable = False
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
    partial = pickle.loads(pickle.dumps(errors.SvcStreamError("m", partial="half")))
    assert partial.partial == "half"
