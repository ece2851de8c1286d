"""SvcLLM against the sandbox: every way of calling, every stream, settings, secrets, failures."""

from __future__ import annotations

import asyncio
import copy
import json

import httpx
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.load import dumps, loads
from langchain_core.prompts import PromptTemplate
from peers import RunKeeper, thawed
from pydantic import ValidationError

import langchain_svc as svc
from langchain_svc.sandbox import Fault, Sandbox

HELLO = "Good morning! This is the sandbox; rules answer here, not a model. How can I help?"


def hello(_):
    return HELLO


@pytest.fixture(autouse=True)
def answers(box):
    box.answers = hello


@pytest.fixture
def llm(box):
    with svc.SvcLLM(**box.general) as model:
        yield model


def answering(body, content_type="application/json", **settings):
    """A SvcLLM whose service gives this body, and the list of what it is asked."""
    asked = []

    def answer(request):
        asked.append(request)
        text = body if isinstance(body, str) else json.dumps(body)
        return httpx.Response(200, text=text, headers={"content-type": content_type})

    transport = httpx.MockTransport(answer)
    clients = {
        "http_client": httpx.Client(transport=transport),
        "http_async_client": httpx.AsyncClient(transport=transport),
    }
    return svc.SvcLLM(api_key="k", base_url="https://svc.example", **clients, **settings), asked


class Recorder(RunKeeper):
    def __init__(self):
        super().__init__()
        self.tokens = []

    def on_llm_new_token(self, token, **kwargs):
        self.tokens.append(token)
        return super().on_llm_new_token(token, **kwargs)


# -- what is sent ----------------------------------------------------------------------------------


def test_every_field_is_sent_only_when_it_is_given(box, llm):
    llm.invoke("hi", model="svc-pro", temperature=0)
    list(llm.stream("hi"))
    list(
        svc.SvcLLM(**box.general, model="svc-pro", temperature=1).stream(
            "hi", model=None, temperature=None
        )
    )
    assert [r.json for r in box.requests] == [
        {"message": "hi", "model": "svc-pro", "temperature": 0},
        {"message": "hi", "stream": True},
        {"message": "hi", "stream": True},
    ]


def test_the_listing(box, llm):
    models = llm.list_models()
    assert len(models) == 23
    first = models[0]
    assert (first.id, first.name, first.provider, first.capabilities, first.max_tokens) == (
        "svc-turbo",
        "SVC Turbo",
        "SVC",
        ("chat",),
        128_000,
    )
    assert asyncio.run(llm.alist_models()) == models


def test_listings_in_other_shapes():
    for body, ids in (
        ({"models": ["a", {"id": "b", "max_tokens": True, "capabilities": None}]}, ["a", "b"]),
        ({"data": [{"id": "a", "max_tokens": "many"}]}, ["a"]),
        ([{"model": "a"}, 7], ["a"]),
    ):
        models = answering(body)[0].list_models()
        assert [(m.id, m.max_tokens) for m in models] == [(id_, None) for id_ in ids]


# -- ways of calling -------------------------------------------------------------------------------


async def test_invoke_stream_batch_and_their_twins(box, llm):
    assert await llm.ainvoke("good morning") == HELLO
    assert "".join(llm.stream("good morning")) == HELLO
    assert "".join([c async for c in llm.astream("good morning")]) == HELLO
    assert llm.batch(["good morning"] * 3) == [HELLO] * 3
    assert await llm.abatch(["good morning"] * 3) == [HELLO] * 3
    for result in (llm.generate(["hi", "ho"]), await llm.agenerate(["hi", "ho"])):
        assert [g[0].text for g in result.generations] == [HELLO] * 2
    assert (PromptTemplate.from_template("good {time}") | llm).invoke({"time": "morning"}) == HELLO
    await llm.aclose()


def test_one_failure_of_a_batch_loses_no_answer(box, llm):
    box.faults = [Fault(status=400, times=1)]
    answers = llm.batch(["good morning"] * 3, {"max_concurrency": 1}, return_exceptions=True)
    assert isinstance(answers[0], svc.SvcBadRequestError)
    assert answers[1:] == [HELLO] * 2
    box.faults = [Fault(status=400, times=1)]
    answers = asyncio.run(llm.abatch(["good morning"] * 3, return_exceptions=True))
    assert sorted(type(a).__name__ for a in answers) == ["SvcBadRequestError", "str", "str"]


async def test_the_first_failure_of_a_list_ends_the_others():
    # A sandbox of its own: what is cancelled may reach it late.
    with Sandbox(faults=[Fault(status=400, times=1), Fault(hang=True)]) as box:
        async with svc.SvcLLM(**box.general) as llm:
            with pytest.raises(svc.SvcBadRequestError):
                await asyncio.wait_for(llm.agenerate(["a", "b", "c"]), 5)


async def test_streaming_reads_invoke_as_a_stream(box, llm):
    model = svc.SvcLLM(**box.general, streaming=True)
    recorder = Recorder()
    assert model.invoke("good morning", {"callbacks": [recorder]}) == HELLO
    assert await model.ainvoke("good morning", {"callbacks": [recorder]}) == HELLO
    assert "".join(recorder.tokens) == HELLO * 2
    assert all(r.json["stream"] for r in box.requests)
    assert (await model.agenerate(["hi"])).generations[0][0].generation_info[
        "usage_source"
    ] == "estimated"
    await model.aclose()


@pytest.mark.parametrize("stream_format", ["sse", "sse-text", "ndjson", "text", "json"])
@pytest.mark.parametrize("merge", [True, False])
async def test_every_stream_format(stream_format, merge):
    recorder = Recorder()
    with Sandbox(answers=hello, stream_format=stream_format) as box:
        async with svc.SvcLLM(**box.general, merge_events=merge, callbacks=[recorder]) as llm:
            assert "".join(llm.stream("good morning")) == HELLO
            assert "".join(await collect(llm.astream("good morning"))) == HELLO
    assert "".join(recorder.tokens) == HELLO * 2
    info = recorder.runs[0].outputs["generations"][0][0]["generation_info"]
    counted = stream_format in {"sse", "ndjson", "json"}
    assert info["usage_source"] == ("service" if counted else "estimated")
    assert info["total_tokens"] > 10


async def collect(chunks):
    return [chunk async for chunk in chunks]


async def test_tokens_reach_events(llm):
    events = [event async for event in llm.astream_events("good morning", version="v2")]
    streamed = (e["data"]["chunk"] for e in events if e["event"] == "on_llm_stream")
    assert "".join(streamed) == HELLO
    await llm.aclose()


# -- what comes back -------------------------------------------------------------------------------


def test_generation_info(box, llm):
    box.faults = [Fault(status=503, times=1, headers={"Retry-After": "0"})]
    info = llm.generate(["good morning"]).generations[0][0].generation_info
    assert info["model_name"] == "svc-turbo"
    assert info["model_provider"] == "svc"
    assert (info["total_tokens"], info["usage_source"]) == (29, "service")
    assert "input_tokens" not in info  # one number, never split by guess
    assert info["timestamp"].endswith("Z")
    assert info["request_id"].startswith("req_")
    assert info["retries"] == 1


async def test_llm_output_sums_what_a_list_of_prompts_took(llm):
    for result in (llm.generate(["hi", "ho"]), await llm.agenerate(["hi", "ho"])):
        infos = [answer.generation_info for (answer,) in result.generations]
        total = sum(info["total_tokens"] for info in infos)
        assert result.llm_output["token_usage"] == {"total_tokens": total}
        assert result.llm_output["model_name"] == "svc-turbo"
    await llm.aclose()


def test_an_answer_without_tokens_is_estimated():
    model, _ = answering({"success": True, "response": "one two"})
    (generation,) = model.generate(["three four"]).generations[0]
    assert generation.text == "one two"
    assert generation.generation_info["usage_source"] == "estimated"
    assert generation.generation_info["total_tokens"] > 2


NO_SUCCESS = [
    {"success": False, "error": "no such plan"},
    {"success": False, "error": {"message": "no such plan"}},
    {"success": False, "message": "no such plan", "response": "ignored"},
    {"error": {"message": "no such plan"}},
]
NO_ANSWER = ["", "[]", "{", {"success": True}, {"success": True, "response": 7}, {"success": False}]


@pytest.mark.parametrize("body", NO_SUCCESS + NO_ANSWER, ids=str)
def test_a_body_without_an_answer_is_an_error_with_its_message(body):
    model, asked = answering(body)
    with pytest.raises(svc.SvcResponseError) as raised:
        model.invoke("hi")
    assert ("no such plan" in str(raised.value)) == (body in NO_SUCCESS)
    assert raised.value.status_code == 200
    assert len(asked) == 1


# -- stop ------------------------------------------------------------------------------------------


async def test_stop_on_our_side(box, llm):
    model = svc.SvcLLM(**box.general, stop="sandbox")
    for text in (
        model.invoke("good morning"),
        await model.ainvoke("good morning"),
        "".join(model.stream("good morning")),
        "".join(await collect(model.astream("good morning"))),
        llm.invoke("good morning", stop=["sandbox"]),
    ):
        assert text == "Good morning! This is the "
    assert model.invoke("good morning", stop=["morning"]) == "Good "
    assert model.invoke("good morning", stop=[]) == HELLO
    assert all("stop" not in r.json for r in box.requests)
    (generation,) = model.generate(["good morning"]).generations[0]
    assert generation.generation_info["finish_reason"] == "stop"
    assert generation.generation_info["total_tokens"] == 29  # what the service charged
    await model.aclose()
    await llm.aclose()


def test_a_stream_that_is_stopped_or_left_is_closed():
    with Sandbox(answers=hello, pace=0.05) as box, svc.SvcLLM(**box.general) as model:
        assert "".join(model.stream("good morning", stop=["This"])) == "Good morning! "
        assert model.generate(["hi"], stop=["!"]).generations[0][0].text
        stream = model.stream("good morning")
        next(stream)
        stream.close()
        assert model.invoke("good morning") == HELLO
        assert [r.disconnected for r in box.requests] == [True, False, True, False]


# -- settings --------------------------------------------------------------------------------------


BAD = [
    ({"temperature": 1.5}, "must be a number from 0 to 1, not 1.5"), ({"temperature": True}, "not True"), ({"temperature": float("nan")}, "not nan"), ({"temperature": "hot"}, "from 0 to 1"),
    ({"model": ""}, "must be a model id"), ({"model": " x"}, "must be a model id"), ({"stop": [""]}, "none of them empty"), ({"stop": [1]}, "valid string|a list of texts"), ({"temprature": 1}, "did you mean 'temperature'"),
    ({"max_retries": -1}, "a whole number from 0"), ({"timeout": 0}, "a number above 0"), ({"max_tokens": 5}, "max_tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), BAD)
def test_settings_are_checked_where_they_are_given_and_before_sending(box, llm, words, message):
    with pytest.raises(ValidationError, match=message):
        svc.SvcLLM(**words)
    for call in (
        lambda: llm.invoke("hi", **words),
        lambda: list(llm.stream("hi", **words)),
        lambda: asyncio.run(llm.ainvoke("hi", **words)),
    ):
        with pytest.raises(svc.SvcRequestError, match=message):
            call()
    assert box.requests == []


def test_what_is_missing_is_named():
    with pytest.raises(svc.SvcRequestError, match=r"base_url=.*SVC_BASE_URL"):
        svc.SvcLLM(api_key="k").invoke("hi")
    with pytest.raises(svc.SvcRequestError, match=r"api_key=.*SVC_API_KEY"):
        svc.SvcLLM(base_url="https://svc.example").invoke("hi")


def test_langsmith_params_and_names():
    model = svc.SvcLLM(model="svc-pro", temperature=0.5, stop=["x"])
    assert model._get_ls_params() == {
        "ls_provider": "svc",
        "ls_model_type": "llm",
        "ls_model_name": "svc-pro",
        "ls_temperature": 0.5,
        "ls_stop": ["x"],
    }
    assert model._get_ls_params(stop=["y"], model="m")["ls_model_name"] == "m"
    assert (model._llm_type, model.model_name) == ("svc-llm", "svc-pro")


def test_serialization_without_the_key():
    model = svc.SvcLLM(api_key="sk-MARKED", base_url="https://svc.example", model="svc-pro")
    text = dumps(model)
    assert "MARKED" not in text + repr(model) + str(model) + str(model.asdict())
    again = loads(
        text,
        secrets_map={"SVC_API_KEY": "sk-MARKED"},
        valid_namespaces=["langchain_svc"],
        allowed_objects=[svc.SvcLLM],
    )
    assert (again.model, again.base_url, again.api_key.get_secret_value()) == (
        "svc-pro",
        "https://svc.example",
        "sk-MARKED",
    )


def test_copies_and_pickles_work(llm):
    for other in (
        copy.deepcopy(llm),
        thawed(llm),
        llm.model_copy(update={"temperature": 0.0}),
    ):
        with other:
            assert other.invoke("good morning") == HELLO


def test_the_cache_tells_models_apart(box):
    cache = InMemoryCache()
    models = [
        svc.SvcLLM(**box.general, cache=cache, **words)
        for words in ({}, {"stop": "This"}, {"temperature": 0})
    ]
    texts = [model.invoke("good morning") for model in models for _ in range(2)]
    assert texts == [HELLO] * 2 + ["Good morning! "] * 2 + [HELLO] * 2
    assert len(box.requests) == 3


# -- counting and secrets --------------------------------------------------------------------------


def test_the_usage_handler_counts_a_text_model_too(box, llm):
    with svc.SvcUsageCallbackHandler() as usage:
        llm.batch(["good morning"] * 2)
        llm.invoke("good morning", model="svc-pro")
        box.faults = [Fault(status=400)]
        with pytest.raises(svc.SvcBadRequestError):
            llm.invoke("good morning")
        box.faults = []
        stream = llm.stream("good morning", model="svc-code")
        next(stream)
        stream.close()
    counted = usage.models["svc-turbo"]
    assert (counted.calls, counted.total_tokens, counted.unsplit_tokens) == (2, 58, 58)
    assert counted.input_tokens == counted.output_tokens == 0
    assert usage.models["svc-pro"].calls == 1
    left = usage.models["svc-code"]
    assert left.stopped == left.calls == 1
    assert usage.models["unknown"].errors == {"SvcBadRequestError": 1}
