"""Clients that nobody here wrote, pointed at the sandbox."""

import openai
import pytest
from langchain_openai import ChatOpenAI

from langchain_svc.sandbox import Fault, Sandbox

PROMPT = "Say hello to the whole world, please."


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as s:
        yield s


@pytest.fixture
def sdk(sandbox):
    with openai.OpenAI(
        base_url=sandbox.url + "/v1", api_key="sandbox-key", max_retries=0
    ) as client:
        yield client


@pytest.fixture
def chat(sandbox):
    return ChatOpenAI(
        model="svc-pro",
        base_url=sandbox.url + "/v1",
        api_key="sandbox-key",
        max_retries=0,
        stream_usage=True,
    )


def messages():
    return [{"role": "user", "content": PROMPT}]


def test_sdk_plain(sdk):
    answer = sdk.chat.completions.create(model="svc-pro", messages=messages())
    assert "hello" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens > 0


def test_sdk_streaming(sdk):
    whole = sdk.chat.completions.create(model="svc-pro", messages=messages())
    chunks = list(sdk.chat.completions.create(model="svc-pro", messages=messages(), stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert chunks[-1].usage == whole.usage


def test_sdk_models(sdk):
    assert [each.id for each in sdk.models.list()] == [
        "svc-turbo",
        "svc-pro",
        "svc-vision",
        "svc-code",
    ]


def test_sdk_errors(sdk, sandbox):
    with pytest.raises(openai.BadRequestError, match="temperature"):
        sdk.chat.completions.create(model="svc-pro", messages=messages(), temperature=3)
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.chat.completions.create(model="nobody", messages=messages())
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.AuthenticationError):
        sdk.with_options(api_key="wrong").models.list()
    sandbox.faults = [Fault(status=429, headers={"Retry-After": "1"})]
    with pytest.raises(openai.RateLimitError):
        sdk.models.list()
    sandbox.faults = []


def test_langchain_openai(chat):
    answer = chat.invoke(PROMPT)
    assert "hello" in answer.content
    assert answer.usage_metadata["total_tokens"] > 0
    chunks = list(chat.stream(PROMPT))
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    assert total.content == answer.content
    assert total.usage_metadata["total_tokens"] == answer.usage_metadata["total_tokens"]
    assert total.response_metadata["finish_reason"] == "stop"


async def test_langchain_openai_async(chat):
    answer = await chat.ainvoke(PROMPT)
    text = "".join([chunk.content async for chunk in chat.astream(PROMPT)])
    assert text == answer.content
