"""Clients that nobody here wrote, pointed at the sandbox."""

import openai
import pytest
from langchain_openai import ChatOpenAI
from sandbox_peer import SAY

from langchain_svc.sandbox import Fault

TEXT = "Hello, whole world."
ASK = {"model": "svc-pro", "messages": SAY}


@pytest.fixture
def account(sandbox):
    sandbox.answers = lambda _: TEXT
    return {"base_url": sandbox.url + "/v1", "api_key": "sandbox-key", "max_retries": 0}


@pytest.fixture
def sdk(account):
    with openai.OpenAI(**account) as client:
        yield client


def test_the_sdk_reads_answers_streams_and_models(sdk):
    whole = sdk.chat.completions.create(**ASK)
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == (TEXT, "stop")
    chunks = list(sdk.chat.completions.create(**ASK, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    assert {(each.object, each.id) for each in chunks} == {("chat.completion.chunk", chunks[0].id)}
    choices = [each.choices[0] for each in chunks]
    assert [each.delta.role for each in choices] == ["assistant"] + [None] * (len(chunks) - 1)
    assert [each.finish_reason for each in choices] == [None] * (len(chunks) - 1) + ["stop"]
    assert chunks[-1].usage == whole.usage
    assert whole.usage.total_tokens > 0
    assert "svc-pro" in [each.id for each in sdk.models.list()]


def test_the_sdk_raises_its_own_errors(sdk, sandbox):
    with pytest.raises(openai.BadRequestError, match="temperature"):
        sdk.chat.completions.create(**ASK, temperature=3)
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.chat.completions.create(**{**ASK, "model": "nobody"})
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.AuthenticationError):
        sdk.with_options(api_key="wrong").models.list()
    sandbox.faults = [Fault(status=429, headers={"Retry-After": "1"})]
    with pytest.raises(openai.RateLimitError):
        sdk.models.list()


async def test_langchain_openai(account):
    chat = ChatOpenAI(model="svc-pro", stream_usage=True, **account)
    answer = chat.invoke("Hello")
    first, *rest = chat.stream("Hello")
    total = sum(rest, first)
    assert total.content == answer.content == TEXT
    assert total.usage_metadata["total_tokens"] == answer.usage_metadata["total_tokens"] > 0
    assert total.response_metadata["finish_reason"] == "stop"
    assert "".join([chunk.content async for chunk in chat.astream("Hello")]) == TEXT
