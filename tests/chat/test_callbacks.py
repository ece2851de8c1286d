"""SvcUsageCallbackHandler, as it sees real calls of a sandbox."""

import asyncio
import contextlib
import copy
import json
import re
from contextvars import copy_context

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from peers import summed, thawed
from rich.console import Console

from langchain_svc import (
    ChatSvc,
    SvcError,
    SvcRequestError,
    SvcServerError,
    SvcUsageCallbackHandler,
)
from langchain_svc.observe import usage as usage_module
from langchain_svc.sandbox import Fault, Sandbox

QUESTIONS = [f"Question {number}" for number in range(10)]


def watched(handler):
    return {"callbacks": [handler]}


def counted(handler, model="svc-turbo"):
    """What differs from nothing."""
    usage = handler.to_dict()[model]
    return {name: value for name, value in usage.items() if value and name != "kind"}


def spent(*answers):
    """What these answers say they cost."""
    return {
        "calls": len(answers),
        "input_tokens": sum(answer.usage_metadata["input_tokens"] for answer in answers),
        "output_tokens": sum(answer.usage_metadata["output_tokens"] for answer in answers),
    }


@pytest.fixture
def usage():
    return SvcUsageCallbackHandler()


@pytest.fixture
def slow():
    """A model whose pieces come one by one."""
    with Sandbox(pace=0.005) as s, ChatSvc(**s.v1) as model:
        yield model


# -- how it is given --------------------------------------------------------------------------------


async def test_context_manager(chat):
    usage = SvcUsageCallbackHandler()
    with usage:
        answers = [chat.invoke("Hello")]
        answers.append(await chat.ainvoke("Hello"))
    chat.invoke("Outside")
    with pytest.raises(ZeroDivisionError), usage:
        answers.append(await chat.ainvoke("Hello"))
        raise ZeroDivisionError
    await chat.ainvoke("Outside")
    assert counted(usage) == spent(*answers)


def test_the_same_handler_cannot_be_nested_in_itself(usage):
    with usage, pytest.raises(RuntimeError, match="make another"), usage:
        pass


def test_each_of_two_handlers_counts_once_however_often_it_is_given(chat):
    given = SvcUsageCallbackHandler()
    with SvcUsageCallbackHandler() as active:
        answer = chat.invoke("Hello", config={"callbacks": [given, given, active]})
        (chat | RunnableLambda(lambda said: said)).invoke("Hello", config=watched(given))
        list(chat.stream("Hello", config=watched(given)))
    assert counted(given) == counted(active) == spent(answer, answer, answer)


async def test_nested_blocks(chat):
    with SvcUsageCallbackHandler() as outer:
        chat.invoke("Hello")
        with SvcUsageCallbackHandler() as middle:
            await chat.ainvoke("Hello")
            with SvcUsageCallbackHandler() as inner:
                list(chat.stream("Hello"))
                chat.invoke("Hello", config=watched(outer))
            chat.batch(["one", "two"])
        chat.invoke("Hello")
    calls = [counted(handler)["calls"] for handler in (outer, middle, inner)]
    assert calls == [7, 5, 2]


def test_a_stream_that_outlives_the_inner_block_counts_in_the_outer(chat):
    with SvcUsageCallbackHandler() as outer:
        with SvcUsageCallbackHandler() as inner:
            stream = chat.stream("Hello")
            first = next(stream)
        answer = summed([first, *stream])
    assert counted(outer) == counted(inner) == spent(answer)


def test_blocks_that_end_in_another_context_leave_no_depth_taken(chat):
    def enter_here_and_leave_elsewhere():
        for _ in range(20):
            left = SvcUsageCallbackHandler().__enter__()
            copy_context().run(left.__exit__)
        with SvcUsageCallbackHandler() as usage:
            chat.invoke("Hello")
        return counted(usage)["calls"]

    assert copy_context().run(enter_here_and_leave_elsewhere) == 1
    assert len(usage_module._ACTIVE) < 10


async def test_tasks_are_watched_apart(chat):
    async def work(times):
        with SvcUsageCallbackHandler() as usage:
            for _ in range(times):
                await chat.ainvoke("Hello")
        return counted(usage)["calls"]

    assert await asyncio.gather(*map(work, (1, 2, 3, 4))) == [1, 2, 3, 4]


# -- many calls at once -----------------------------------------------------------------------------


async def test_batches(chat):
    with SvcUsageCallbackHandler() as usage:
        answers = chat.batch(QUESTIONS, config={"max_concurrency": 4})
        answers += await chat.abatch(QUESTIONS, config={"max_concurrency": 4})
        answers += [answer for _, answer in chat.batch_as_completed(QUESTIONS)]
    assert counted(usage) == spent(*answers)
    assert len(answers) == 30


def test_each_model_has_its_own_counts(chat, usage):
    fast = chat.invoke("Hello", config=watched(usage))
    good = [
        chat.invoke("Hello", model="svc-pro", config=watched(usage)),
        chat.bind(model="svc-pro").invoke("Hello", config=watched(usage)),
    ]
    assert usage.to_dict().keys() == {"svc-turbo", "svc-pro"}
    assert counted(usage, "svc-turbo") == spent(fast)
    assert counted(usage, "svc-pro") == spent(*good)


# -- streams ----------------------------------------------------------------------------------------


async def test_streams(slow, usage):
    answers = [
        summed(slow.stream("Hello", config=watched(usage))),
        summed([chunk async for chunk in slow.astream("Hello", config=watched(usage))]),
        slow.invoke("Hello", stream=True, config=watched(usage)),
        slow.stream_events("Hello", version="v3", config=watched(usage)).output,
    ]
    stream = await slow.astream_events("Hello", version="v3", config=watched(usage))
    answers.append(await stream.output)
    events = slow.astream_events("Hello", version="v2", config=watched(usage))
    answers += [
        event["data"]["output"] async for event in events if event["event"] == "on_chat_model_end"
    ]
    assert counted(usage) == spent(*answers)
    assert len(answers) == 6


async def read_until(slow, usage, way, text):
    """Reads a stream, and leaves it in one of three ways."""
    if way == "closed":
        with contextlib.closing(slow.stream("Tell me of the sea", config=watched(usage))) as stream:
            while len("".join(text)) <= 5:
                text.append(next(stream).content)
        return
    async with contextlib.aclosing(
        slow.astream("Tell me of the sea", config=watched(usage))
    ) as stream:
        async for chunk in stream:
            text.append(chunk.content)
            if len("".join(text)) > 5:
                if way == "aclosed":
                    return
                asyncio.current_task().cancel()


@pytest.mark.parametrize("way", ["closed", "aclosed", "cancelled"])
async def test_a_stream_left_early(slow, usage, way):
    text = []
    task = asyncio.create_task(read_until(slow, usage, way, text))
    await asyncio.wait([task])
    assert task.cancelled() == (way == "cancelled")
    found = counted(usage)
    assert found.pop("estimated_input_tokens") > 3
    assert 1 <= found.pop("estimated_output_tokens") <= len("".join(text))
    assert found == {"calls": 1, "stopped": 1}


async def test_stream_cut_off_by_the_service(sandbox, chat, usage):
    sandbox.faults = [Fault(cut=True, after=3)]
    with pytest.raises(SvcError):
        list(chat.stream("Tell me of the sea", config=watched(usage)))
    with pytest.raises(SvcError):
        _ = [chunk async for chunk in chat.astream("Tell me of the sea", config=watched(usage))]
    found = counted(usage)
    assert found["errors"] == {"SvcStreamError": 2}
    assert found["calls"] == 2
    assert found["estimated_output_tokens"] > 0
    assert "stopped" not in found


def test_counts_of_the_service_and_estimates_are_kept_apart(usage):
    with Sandbox(stream_usage=False) as s, ChatSvc(**s.v1) as model:
        counts = model.invoke("Hello", config=watched(usage))
        guess = summed(model.stream("Hello", config=watched(usage)))
    assert guess.response_metadata["usage_source"] == "estimated"
    assert counted(usage) == {
        **spent(counts),
        "calls": 2,
        "estimated_input_tokens": guess.usage_metadata["input_tokens"],
        "estimated_output_tokens": guess.usage_metadata["output_tokens"],
    }
    both = counts.usage_metadata["total_tokens"] + guess.usage_metadata["total_tokens"]
    assert usage.models["svc-turbo"].total_tokens == both


# -- what is no spend, and what went wrong ----------------------------------------------------------


async def test_cache_hits_are_no_spend(sandbox, chat):
    cached = chat.model_copy(update={"cache": InMemoryCache()})
    price = {"input": 5.0, "output": 15.0, "per_tokens": 1_000_000, "currency": "USD"}
    usage = SvcUsageCallbackHandler(prices={"svc-turbo": price})
    first = cached.invoke("Hello", config=watched(usage))
    cost = usage.to_dict()["svc-turbo"]["cost"]
    cached.invoke("Hello", config=watched(usage))
    await cached.ainvoke("Hello", config=watched(usage))
    assert len(sandbox.requests) == 1
    assert counted(usage) == {**spent(first), "cache_hits": 2, "cost": cost}


async def test_retries_and_waits(sandbox, chat, usage):
    sandbox.faults = [Fault(status=429, headers={"Retry-After": "0.05"}, times=2)]
    answer = chat.invoke("Hello", config=watched(usage))
    found = counted(usage)
    assert 0.1 <= found.pop("waited") < 0.2
    assert found == {**spent(answer), "retries": 2}
    sandbox.faults = [Fault(status=503, headers={"Retry-After": "0"}, times=1)]
    summed([chunk async for chunk in chat.astream("Hello", config=watched(usage))])
    assert counted(usage)["retries"] == 3
    sandbox.faults = [Fault(status=503, headers={"Retry-After": "0"})]
    with pytest.raises(SvcServerError):
        chat.invoke("Hello", config=watched(usage))
    assert counted(usage)["retries"] == 5
    assert counted(usage)["errors"] == {"SvcServerError": 1}


# -- what is read from it ---------------------------------------------------------------------------


def test_to_dict_is_plain_and_a_copy(sandbox, chat, usage):
    chat.invoke("Hello", config=watched(usage))
    sandbox.faults = [Fault(status=404)]
    with pytest.raises(SvcError):
        chat.invoke("Hello", config=watched(usage))
    counts = usage.to_dict()
    assert json.loads(json.dumps(counts)) == counts
    assert type(counts["svc-turbo"]["errors"]) is dict
    counts["svc-turbo"]["errors"]["SvcNotFoundError"] = 99
    counts["svc-turbo"]["calls"] = 99
    assert usage.to_dict()["svc-turbo"]["errors"] == {"SvcNotFoundError": 1}
    assert usage.to_dict()["svc-turbo"]["calls"] == 2


def rendered(usage, width=140):
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(usage.table())
    return captured.get()


def row(text, model):
    """The line of one model, with one space between its cells."""
    (line,) = [line for line in text.splitlines() if line.split()[:1] == [model]]
    return " ".join(line.split())


def test_table(sandbox, chat, usage):
    assert "Usage" in rendered(usage)
    answers = chat.batch(QUESTIONS, config=watched(usage))
    list(chat.stream("Hello", model="svc-pro", config=watched(usage)))
    sandbox.faults = [Fault(status=429, headers={"Retry-After": "0"}, times=1), Fault(status=404)]
    with pytest.raises(SvcError):
        chat.invoke("Hello", model="svc-pro", config=watched(usage))
    text = rendered(usage)
    for word in ("model", "calls", "tokens", "retries"):
        assert word in text.split("svc-pro")[0]
    assert "cached" not in text  # there was none
    tokens = spent(*answers)
    cells = f"10 {tokens['input_tokens']:,} {tokens['output_tokens']:,} 0"
    assert row(text, "svc-turbo") == f"svc-turbo {cells}"
    assert re.fullmatch(r"svc-pro 2 \d+ \d+ 1 \(0\.0 s\)", row(text, "svc-pro"))
    assert "svc-pro: 1 SvcNotFoundError" in text.splitlines()
    assert text.index("svc-pro") < text.index("svc-turbo")


@pytest.mark.parametrize("copied", [copy.deepcopy, thawed])
def test_a_model_that_holds_a_handler_counts_and_can_be_copied(sandbox, usage, copied):
    with ChatSvc(**sandbox.v1, callbacks=[usage]) as model:
        answer = model.invoke("Hello")
        assert counted(usage) == spent(answer)
        assert copied(model).invoke("Hello").content == answer.content


# -- a call that never reaches the service ----------------------------------------------------------


def test_a_refused_call_is_an_error(sandbox, chat, usage):
    with pytest.raises(SvcRequestError):
        chat.invoke([], config=watched(usage))
    with pytest.raises(SvcRequestError):
        chat.invoke("Hello", temperature=5, config=watched(usage))
    assert sandbox.requests == []
    assert counted(usage)["errors"] == {"SvcRequestError": 2}
    assert "calls" not in counted(usage)


@pytest.mark.parametrize("way", ["invoke", "stream", "bind"])
@pytest.mark.parametrize("name", ["model", "model_name"])
def test_traces_name_the_model_of_the_call(sandbox, name, way):
    class Seen(BaseCallbackHandler):
        def on_chat_model_start(self, *_, metadata, invocation_params, **__):
            params = invocation_params
            models.append((metadata["ls_model_name"], params["model"], params["model_name"]))

    models = []
    config = {"callbacks": [Seen()]}
    with ChatSvc(**sandbox.v1, model="svc-turbo") as model:
        if way == "invoke":
            model.invoke("Hi", config, **{name: "svc-pro"})
        elif way == "stream":
            summed(model.stream("Hi", config, **{name: "svc-pro"}))
        else:
            model.bind(**{name: "svc-pro"}).invoke("Hi", config)
        model.invoke("Hi", config)
    assert models == [("svc-pro",) * 3, ("svc-turbo",) * 3]


def test_a_trace_has_a_setting_of_the_call_under_its_own_name(sandbox):
    class Seen(BaseCallbackHandler):
        def on_chat_model_start(self, *_, invocation_params, **__):
            params.update(invocation_params)

    params = {}
    with ChatSvc(**sandbox.v1, max_tokens=7, stop=["a"]) as model:
        model.invoke("Hi", {"callbacks": [Seen()]}, max_completion_tokens=9, stop_sequences=["b"])
    assert (params["max_tokens"], params["stop"]) == (9, ["b"])
    assert params.keys().isdisjoint({"max_completion_tokens", "stop_sequences"})
