"""The constructor's words and a call's: what is refused, and with which words."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

import langchain_svc as svc
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
