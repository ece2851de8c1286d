"""SvcLLM against the sandbox: every way of calling, every stream, settings, secrets, failures."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.load import dumps, loads
from langchain_core.prompts import PromptTemplate
from peers import RunKeeper, hearing, listed
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


# -- what is sent ----------------------------------------------------------------------------------


def test_what_one_call_sets(box, llm):
    llm.invoke("hi", model="svc-pro", temperature=0)
    set_otherwise = svc.SvcLLM(**box.general, model="svc-pro", temperature=1)
    set_otherwise.invoke("hi", model=None, temperature=None)
    assert [r.json for r in box.requests] == [
        {"message": "hi", "model": "svc-pro", "temperature": 0},
        {"message": "hi"},
    ]


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
    seen = hearing()
    assert model.invoke("good morning", {"callbacks": [seen]}) == HELLO
    assert await model.ainvoke("good morning", {"callbacks": [seen]}) == HELLO
    assert "on_llm_new_token" in seen.names
    assert all(r.json["stream"] for r in box.requests)
    assert (await model.agenerate(["hi"])).generations[0][0].generation_info[
        "usage_source"
    ] == "estimated"
    await model.aclose()


@pytest.mark.parametrize("stream_format", ["sse", "sse-text", "ndjson", "text", "json"])
async def test_every_stream_format(stream_format):
    recorder = RunKeeper()
    with Sandbox(answers=hello, stream_format=stream_format) as box:
        async with svc.SvcLLM(**box.general, callbacks=[recorder]) as llm:
            assert "".join(llm.stream("good morning")) == HELLO
            assert "".join(await listed(llm.astream("good morning"))) == HELLO
    info = recorder.runs[0].outputs["generations"][0][0]["generation_info"]
    counted = stream_format in {"sse", "ndjson", "json"}
    assert info["usage_source"] == ("service" if counted else "estimated")
    assert info["total_tokens"] > 10


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


def test_an_answer_without_tokens_is_estimated(box, llm):
    box.faults = [Fault(body={"success": True, "response": "one two"})]
    (generation,) = llm.generate(["three four"]).generations[0]
    assert generation.text == "one two"
    assert generation.generation_info["usage_source"] == "estimated"
    assert generation.generation_info["total_tokens"] > 2


NO_SUCCESS = [
    {"success": False, "error": {"message": "no such plan"}},
    {"success": False, "message": "no such plan", "response": "ignored"},
    {"error": {"message": "no such plan"}},
    {"success": False},
]


@pytest.mark.parametrize("body", NO_SUCCESS, ids=str)
def test_a_body_that_says_no_success_is_an_error_with_its_message(box, llm, body):
    box.faults = [Fault(body=body)]
    with pytest.raises(svc.SvcResponseError) as raised:
        llm.invoke("hi")
    assert ("no such plan" in str(raised.value)) == (len(body) > 1 or "error" in body)
    assert raised.value.status_code == 200
    assert len(box.requests) == 1


# -- stop ------------------------------------------------------------------------------------------


async def test_stop_on_our_side(box, llm):
    model = svc.SvcLLM(**box.general, stop="sandbox")
    for text in (
        model.invoke("good morning"),
        await model.ainvoke("good morning"),
        "".join(model.stream("good morning")),
        "".join(await listed(model.astream("good morning"))),
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


# -- settings --------------------------------------------------------------------------------------


BAD = [
    ({"temperature": 1.5}, "must be a number from 0 to 1, not 1.5"),
    ({"model": " x"}, "must be a model id"),
    ({"stop": [""]}, "none of them empty"),
    ({"temprature": 1}, "did you mean 'temperature'"),
    ({"max_tokens": 5}, "max_tokens"),
]


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


def test_the_cache_tells_models_apart(box):
    cache = InMemoryCache()
    models = [
        svc.SvcLLM(**box.general, cache=cache, **words)
        for words in ({}, {"stop": "This"}, {"temperature": 0})
    ]
    texts = [model.invoke("good morning") for model in models for _ in range(2)]
    assert texts == [HELLO] * 2 + ["Good morning! "] * 2 + [HELLO] * 2
    assert len(box.requests) == 3
