"""The constructor's words and a call's: what is refused, and with which words."""

from __future__ import annotations

import functools
import inspect
import json
import math

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumpd, load
from langchain_core.tools import BaseTool
from peers import RawServer, response
from pydantic import ValidationError

import langchain_svc as svc
from langchain_svc._settings import ServiceSettings, limits_of, new_exchange
from langchain_svc._settings.names import HINTS
from langchain_svc.config import GENERAL, MEDICAL, V1, Endpoint
from langchain_svc.sandbox import Sandbox

URL = "https://svc.example/v1"


def make(**words):
    return svc.ChatSvc(**{"api_key": "k", "base_url_v1": URL, **words})


DEEP = functools.reduce(lambda inner, _: [inner], range(3_000), [])
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
    ("deadline", -1, "not -1"),
    ("max_retries", -1, "a whole number from 0, not -1"),
    ("extra_body", {"messages": []}, "must not hold ['messages']"),
    ("extra_body", {"a": math.nan}, "what JSON can say"),
    ("extra_body", {"a": DEEP}, "nested more than 100 deep"),
    ("model", "", "must be a model id"),
    ("model", "a\nb", "must be a model id"),
    ("model", 5, "must be a model id"),
    ("stop", [""], "none of them empty"),
    ("stop", 5, "must be a list of texts"),
]


@pytest.mark.parametrize(("word", "value", "said"), BAD)
def test_a_bad_value_of_the_constructor_or_a_call_is_named_with_its_bounds(word, value, said):
    with pytest.raises(ValidationError) as raised:
        make(**{word: value})
    assert said in str(raised.value)
    assert word in str(raised.value)
    with pytest.raises(svc.SvcRequestError) as refused:
        make().invoke("hi", **{word: value})
    assert said in str(refused.value)
    assert str(refused.value).startswith(word)
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("temperature", 0),
        ("temperature", 2),
        ("temperature", 0.5),
        ("temperature", None),
        ("max_tokens", 1),
        ("timeout", None),
        ("timeout", 0.01),
        ("timeout", "60"),
        ("temperature", "0.3"),
        ("max_tokens", "10"),
        ("max_tokens", 10.0),
        ("deadline", None),
        ("max_retries", 0),
        ("stop", []),
        ("stop", "x"),
        ("stop", ("a", "b")),
    ],
)
def test_good_values(word, value):
    assert make(**{word: value}) is not None


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("temprature", "did you mean 'temperature'?"),
        ("base_url_v", "did you mean 'base_url_v1'?"),
        ("max_token", "did you mean 'max_tokens'?"),
        ("zzz", "known are:"),
    ],
)
def test_an_unknown_word_is_refused(word, said):
    with pytest.raises(ValidationError) as raised:
        make(**{word: "value-that-may-be-secret"})
    assert said in str(raised.value)
    assert "value-that-may-be-secret" not in str(raised.value)


OPENAI = [
    ("api_base", "did you mean 'base_url_v1'"),
    ("openai_api_key", "did you mean 'api_key'"),
    ("n", "model.batch([messages] * n)"),
    ("model_kwargs", "did you mean 'extra_body'"),
    ("top_p", "no 'top_p'; extra_body={'top_p': ...} sends it"),
    ("seed", "extra_body"),
    ("stream_usage", "usage comes with every answer"),
    ("functions", "bind_tools"),
    ("organization", "leave it out"),
    ("max_retry", "did you mean 'max_retries'"),
    ("tools", "bind_tools"),
    ("response_format", "with_structured_output"),
]


@pytest.mark.parametrize(("word", "said"), OPENAI)
def test_words_of_other_models_are_refused_with_what_to_write_instead(word, said):
    with pytest.raises(ValidationError) as raised:
        make(**{word: 2})
    assert said in str(raised.value)
    if word not in {"n", "tools", "response_format"}:  # which a call takes
        with pytest.raises(svc.SvcRequestError) as refused:
            make().invoke("hi", **{word: 2})
        assert said in str(refused.value)


def test_no_setting_has_a_hint_to_write_something_else():
    public = [getattr(svc, name) for name in svc.__all__]
    kinds = [one for one in public if isinstance(one, type) and issubclass(one, ServiceSettings)]
    settings = set().union(*(kind.model_fields for kind in kinds))
    own = settings - BaseChatModel.model_fields.keys() - BaseTool.model_fields.keys()
    hinted = sorted(own & HINTS.keys())
    assert not hinted, f"settings now: take {hinted} out of langchain_svc/_settings/names.py"


@pytest.mark.parametrize(
    ("word", "value", "ours"),
    [
        ("model_name", "svc-pro", "model"),
        ("request_timeout", 5, "timeout"),
        ("stop_sequences", ["x"], "stop"),
        ("max_completion_tokens", 5, "max_tokens"),
        ("base_url", URL + "/other", "base_url_v1"),
    ],
)
def test_words_of_other_models_that_mean_the_same(word, value, ours):
    given = {"api_key": "k", "base_url_v1": URL} if ours != "base_url_v1" else {"api_key": "k"}
    assert getattr(svc.ChatSvc(**given, **{word: value}), ours) == value
    with pytest.raises(ValidationError, match=r"mean the same|is set already"):
        svc.ChatSvc(**given, **{word: value, ours: value})


def test_a_model_is_named_by_keyword():
    with pytest.raises(
        TypeError, match=r"ChatSvc takes its settings by name, as in ChatSvc\(model="
    ):
        svc.ChatSvc("svc-pro")


def test_none_is_what_the_environment_says(monkeypatch):
    monkeypatch.setenv("SVC_API_KEY", "from-env")
    monkeypatch.setenv("SVC_BASE_URL_V1", URL)
    monkeypatch.setenv("SVC_BASE_URL", "https://general.example")
    model = svc.ChatSvc(api_key=None, base_url_v1=None)
    assert model.api_key.get_secret_value() == "from-env"
    assert model.base_url_v1 == URL
    general = svc.ChatSvc(interface="general", api_key=None, base_url=None)
    assert general.base_url == "https://general.example"
    monkeypatch.setenv("SVC_MEDICAL_API_KEY", "medical")
    assert svc.SvcMedicalConsult(api_key=None).api_key.get_secret_value() == "medical"


class OwnChat(svc.ChatSvc):
    """As users write one."""


@pytest.mark.parametrize("kind", [svc.ChatSvc, OwnChat])
def test_a_saved_model_names_the_place_where_users_import_it(kind):
    saved = dumpd(kind(temperature=0.5))
    home = "langchain_svc" if kind is svc.ChatSvc else __name__
    assert saved["id"] == [home, kind.__name__]
    again = load(saved, allowed_objects=[kind], valid_namespaces=[home])
    assert (type(again), again.temperature) == (kind, 0.5)


def test_fields_beside_the_documented_ones_are_sent_where_that_is_asked_for():
    with Sandbox() as box, svc.ChatSvc(**box.v1, extra_body={"top_p": 0.9, "seed": 1}) as model:
        model.invoke("hi", extra_body={"seed": 2}, extra_headers={"X-Trace": "t-1"})
        list(model.bind(extra_body={"seed": 3}).stream("hi"))
        first, second = box.requests
        assert (first.json["top_p"], first.json["seed"], second.json["seed"]) == (0.9, 2, 3)
        assert first.headers["x-trace"] == "t-1"
        assert "x-trace" not in second.headers
        with pytest.raises(svc.SvcRequestError, match="give the key as api_key"):
            model.invoke("hi", extra_headers={"Authorization": "Bearer other"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"api_key": "k"}, ["base_url_v1", "SVC_BASE_URL_V1", "langchain-svc sandbox"]),
        ({"base_url_v1": URL}, ["api_key", "SVC_API_KEY", "langchain-svc sandbox"]),
        ({"base_url_v1": "", "api_key": "k"}, ["SVC_BASE_URL_V1"]),
    ],
)
def test_what_is_missing_is_named_when_it_is_needed(words, said):
    model = svc.ChatSvc(**words)
    for call in (lambda: model.invoke("hi"), lambda: list(model.stream("hi")), model.list_models):
        with pytest.raises(svc.SvcRequestError) as raised:
            call()
        assert all(word in str(raised.value) for word in said)


PUBLIC = [getattr(svc, name) for name in svc.__all__]
ON_INTERFACES = [
    kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, ServiceSettings)
]


def test_the_docstring_lists_what_one_call_may_set():
    told = (
        inspect.getsource(svc.ChatSvc)
        .partition("can be given for one call")[2]
        .partition("Stream:")[0]
    )
    missing = [name for name in svc.ChatSvc.overrides if name not in told]
    assert not missing, "the docstring of ChatSvc lists what can be given for one call"


@pytest.mark.parametrize("kind", ON_INTERFACES)
def test_a_key_goes_only_to_the_interfaces_it_was_given_for(kind, monkeypatch):
    monkeypatch.setenv("SVC_API_KEY", "general")
    monkeypatch.setenv("SVC_MEDICAL_API_KEY", "medical")
    keys = {"general" if one in {V1, GENERAL} else "medical" for one in kind.interfaces}
    with kind() as made:
        assert {made.api_key.get_secret_value()} == keys
        for other in {V1, GENERAL, MEDICAL} - set(kind.interfaces):
            with pytest.raises(svc.SvcRequestError, match=f"no key for the {other.name} interface"):
                new_exchange(made, Endpoint(other, "GET", "/models"), list, limits_of(made))


def test_listed_models_bring_their_profiles():
    with Sandbox() as box, svc.ChatSvc(**box.v1) as model:
        listed = {record.id: record for record in model.list_models()}
        assert set(listed) == {"svc-turbo", "svc-pro", "svc-vision", "svc-code"}
        assert listed["svc-pro"].profile["max_input_tokens"] == 200_000
        assert listed["svc-pro"].pricing
        assert svc.ChatSvc(model="svc-pro").profile == listed["svc-pro"].profile
        assert svc.ChatSvc(model="other").profile is None


def test_each_interface_lists_its_own_fields_and_prices_count_for_v1_alone():
    record = {"id": "svc-pro", "name": "Pro", "provider": "Acme", "max_tokens": 4096}
    price = {"input": 0, "output": 0, "per_tokens": 1000}
    body = json.dumps({"models": [record | {"pricing": price}]}).encode()
    with (
        Sandbox() as box,
        svc.ChatSvc(**box.v1, model="svc-pro") as model,
        RawServer(lambda c: c.sendall(response(body))) as server,
        svc.ChatSvc(interface="general", base_url=server.url, api_key="k") as general,
    ):
        model.list_models()
        (found,) = general.list_models()
        assert (found.name, found.provider, found.max_tokens) == ("Pro", "Acme", 4096)
        with svc.SvcBudget(max_cost=1) as budget:
            model.invoke("Hi")
        assert budget.used.cost > 0


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
