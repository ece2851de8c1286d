"""The constructor's words and a call's: what is refused, and with which words."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

import langchain_svc as svc
from langchain_svc._http.connections import proxy_for
from langchain_svc.sandbox import Sandbox

URL = "https://svc.example/v1"


def make(**words):
    return svc.ChatSvc(**{"api_key": "k", "base_url_v1": URL, **words})


BAD = [
    ("temperature", 2.1, "a number from 0 to 2, not 2.1"),
    ("temperature", -0.1, "not -0.1"),
    ("temperature", True, "not True"),
    ("temperature", "hot", "not 'hot'"),
    ("temperature", math.nan, "not nan"),
    ("max_tokens", 0, "a whole number from 1, not 0"),
    ("max_tokens", 1.5, "not 1.5"),
    ("max_tokens", True, "not True"),
    ("timeout", 0, "a number above 0, not 0"),
    ("timeout", math.inf, "not inf"),
    ("timeout", "60", "not '60'"),
    ("deadline", -1, "not -1"),
    ("max_retries", -1, "a whole number from 0, not -1"),
    ("max_retries", 1.0, "not 1.0"),
    ("model", "", "must be a model id"),
    ("model", "a\nb", "must be a model id"),
    ("model", 5, "must be a model id"),
    ("stop", [""], "none of them empty"),
    ("stop", 5, "must be a list of texts"),
]


@pytest.mark.parametrize(("word", "value", "said"), BAD)
def test_a_bad_value_is_named_with_its_bounds(word, value, said):
    with pytest.raises(ValidationError) as raised:
        make(**{word: value})
    assert said in str(raised.value)
    assert word in str(raised.value)


@pytest.mark.parametrize(("word", "value", "said"), BAD)
def test_a_call_is_as_strict_as_the_constructor(word, value, said):
    with pytest.raises(svc.SvcRequestError) as raised:
        make().invoke("hi", **{word: value})
    assert said in str(raised.value)
    assert str(raised.value).startswith(word)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    ("word", "value"),
    [("temperature", 0), ("temperature", 2), ("temperature", 0.5), ("temperature", None), ("max_tokens", 1), ("timeout", None),
     ("timeout", 0.01), ("deadline", None), ("max_retries", 0), ("stop", []), ("stop", "x"), ("stop", ("a", "b"))],
)  # fmt: skip
def test_good_values(word, value):
    assert make(**{word: value}) is not None


@pytest.mark.parametrize(
    ("word", "said"),
    [("temprature", "did you mean 'temperature'?"), ("base_url_v", "did you mean 'base_url_v1'?"),
     ("max_token", "did you mean 'max_tokens'?"), ("zzz", "known are:")],
)  # fmt: skip
def test_an_unknown_word_is_refused(word, said):
    with pytest.raises(ValidationError) as raised:
        make(**{word: "value-that-may-be-secret"})
    assert said in str(raised.value)
    assert "value-that-may-be-secret" not in str(raised.value)


def test_an_unknown_word_of_a_call_is_refused():
    with pytest.raises(svc.SvcRequestError, match="did you mean 'temperature'"):
        make().invoke("hi", temprature=1)
    with pytest.raises(svc.SvcRequestError, match="takes no 'cache_control'"):
        make().invoke("hi", cache_control={})


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("svc.example/v1", "must look like"), ("ftp://svc.example", "must look like"), ("https://", "must look like"),
        ("https://user:pw@svc.example/v1", "user name or password"), ("https://svc.example/v1?key=1", "no query"),
        ("https://svc.example/v1#top", "no fragment"), ("http://svc.example/v1", "plain http"), ("http://10.0.0.1/v1", "plain http"),
        ("https://svc.example:99999/v1", "valid host and port"), ("https://svc.ex ample/v1", "white space"), ("https://[::1/v1", "valid host"),
        ("https://svc.example/v1\n", "white space"), ("http://localhost.evil.example/v1", "plain http"),
        ("http://127.0.0.1.evil.example/v1", "plain http"),
    ],
)  # fmt: skip
def test_base_urls_that_are_refused(url, said):
    with pytest.raises(ValidationError, match=said) as raised:
        make(base_url_v1=url)
    assert "pw" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://svc.example/v1/", URL), ("https://svc.example:8443/a/v1//", "https://svc.example:8443/a/v1"),
        ("http://localhost:1/v1", "http://localhost:1/v1"), ("http://127.0.0.9/v1", "http://127.0.0.9/v1"), ("http://[::1]:5/v1", "http://[::1]:5/v1"),
        ("http://app.localhost/v1", "http://app.localhost/v1"),
    ],
)  # fmt: skip
def test_base_urls_that_are_kept(url, kept):
    assert make(base_url_v1=url).base_url_v1 == kept


def test_plain_http_to_a_host_that_is_named():
    assert make(base_url_v1="http://gateway.lan/v1", insecure_hosts=["gateway.lan"]).base_url_v1


@pytest.mark.parametrize("key", ["a\nb", "a\r\nX: y", "a b", "ключ", "a\x00", "a\x7f"])
def test_keys_that_no_header_can_carry(key):
    with pytest.raises(ValidationError, match="API key") as raised:
        make(api_key=key)
    assert key not in str(raised.value)


def test_white_space_around_a_key_is_dropped():
    assert make(api_key=" k1\n").api_key.get_secret_value() == "k1"


@pytest.mark.parametrize(
    ("headers", "said"),
    [({"Authorization": "Bearer x1"}, "api_key"), ({"X-API-Key": "x1"}, "api_key"), ({"Host": "x1"}, "for each request"),
     ({"Bad Name": "x1"}, "no header name"), ({"X": "x1\r\nY: z"}, "cannot stand"), ({"X": "x1é"}, "cannot stand"), ({"": "x1"}, "no header name")],
)  # fmt: skip
def test_headers_that_are_refused(headers, said):
    with pytest.raises(ValidationError, match=said) as raised:
        make(default_headers=headers)
    assert "x1" not in str(raised.value)


def test_headers_of_yours_are_sent_and_stay_private():
    with Sandbox() as box, svc.ChatSvc(**box.v1, default_headers={"X-Team": "t-77"}) as model:
        model.invoke("hi")
        assert box.requests[0].headers["x-team"] == "t-77"
        assert "t-77" not in repr(model)


def test_only_documented_fields_are_sent():
    with (
        Sandbox(strict=True) as box,
        svc.ChatSvc(**box.v1, temperature=1, max_tokens=50, stop=["x"], model="svc-pro") as model,
    ):
        model.invoke([("system", "Be brief"), ("human", "hi")])
        list(model.stream("hi"))
        assert [set(request.json) for request in box.requests] == [
            {"model", "messages", "temperature", "max_tokens"},
            {"model", "messages", "temperature", "max_tokens", "stream"},
        ]


def test_settings_from_the_environment(monkeypatch):
    monkeypatch.setenv("SVC_API_KEY", "from-env")
    monkeypatch.setenv("SVC_BASE_URL_V1", URL + "/")
    model = svc.ChatSvc()
    assert model.api_key.get_secret_value() == "from-env"
    assert model.base_url_v1 == URL


@pytest.mark.parametrize(
    ("words", "said"),
    [({"api_key": "k"}, ["base_url_v1", "SVC_BASE_URL_V1", "langchain-svc sandbox"]),
     ({"base_url_v1": URL}, ["api_key", "SVC_API_KEY", "langchain-svc sandbox"]), ({"base_url_v1": "", "api_key": "k"}, ["SVC_BASE_URL_V1"])],
)  # fmt: skip
def test_what_is_missing_is_named_when_it_is_needed(words, said):
    model = svc.ChatSvc(**words)
    for call in (lambda: model.invoke("hi"), lambda: list(model.stream("hi")), model.list_models):
        with pytest.raises(svc.SvcRequestError) as raised:
            call()
        assert all(word in str(raised.value) for word in said)


def test_the_medical_key_is_not_taken(monkeypatch):
    monkeypatch.setenv("SVC_MEDICAL_API_KEY", "medical")
    assert svc.ChatSvc(base_url_v1=URL).api_key is None


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://svc.example/v1", {"HTTPS_PROXY": "http://proxy:1"}, "http://proxy:1"), ("https://svc.example/v1", {"HTTPS_PROXY": "proxy:1"}, "http://proxy:1"),
        ("https://svc.example/v1", {"HTTP_PROXY": "http://proxy:1"}, None), ("https://svc.example/v1", {"ALL_PROXY": "http://proxy:2"}, "http://proxy:2"),
        ("https://svc.example/v1", {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "svc.example"}, None),
        ("http://127.0.0.1:9/v1", {"HTTP_PROXY": "http://proxy:1", "ALL_PROXY": "http://proxy:1"}, None), ("http://localhost/v1", {"HTTP_PROXY": "http://proxy:1"}, None),
    ],
)  # fmt: skip
def test_proxies_of_the_environment(monkeypatch, url, environment, proxy):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == proxy


def test_a_proxy_of_yours_is_used_and_stays_private():
    from peers import RawServer, response

    with RawServer(lambda c: c.sendall(response(b"{}", status="502 Bad"))) as server:
        words = {
            "api_key": "k",
            "base_url_v1": "http://gateway.lan/v1",
            "insecure_hosts": ["gateway.lan"],
        }
        with svc.ChatSvc(**words, proxy=server.url, max_retries=0) as model:
            with pytest.raises(svc.SvcServerError):
                model.invoke("hi")
            assert server.requests[0].startswith(b"POST http://gateway.lan/v1/chat/completions")
            assert server.url not in repr(model)


def test_listed_models_bring_their_profiles():
    with Sandbox() as box, svc.ChatSvc(**box.v1) as model:
        listed = {record.id: record for record in model.list_models()}
        assert set(listed) == {"svc-turbo", "svc-pro", "svc-vision", "svc-code"}
        assert listed["svc-pro"].profile["max_input_tokens"] == 200_000
        assert listed["svc-pro"].pricing
        assert svc.ChatSvc(model="svc-pro").profile == listed["svc-pro"].profile
        assert svc.ChatSvc(model="other").profile is None


async def test_listed_models_async():
    with Sandbox() as box:
        async with svc.ChatSvc(**box.v1) as model:
            assert [m.id for m in await model.alist_models()] == [m.id for m in model.list_models()]


def test_a_prompt_that_cannot_fit_is_not_sent():
    with Sandbox() as box, svc.ChatSvc(**box.v1) as model:
        with pytest.raises(svc.SvcContextOverflowError, match="nothing was sent"):
            model.invoke("word " * 200_000)
        assert box.requests == []
        with pytest.raises(svc.SvcContextOverflowError, match="'svc-pro'"):
            model.invoke("word " * 300_000, model="svc-pro")
        assert model.invoke("word " * 20_000).content


def test_a_prompt_that_the_service_finds_too_long_is_the_same_error():
    with (
        Sandbox() as box,
        svc.ChatSvc(**box.v1) as model,
        pytest.raises(svc.SvcContextOverflowError) as raised,
    ):
        model.invoke("a b c d e " * 30_000)
    assert raised.value.status_code == 400
