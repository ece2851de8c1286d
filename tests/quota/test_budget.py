"""Budgets: the call that would pass one is not sent."""

from __future__ import annotations

import asyncio
import copy
import pickle

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda

import langchain_svc as svc
from langchain_svc._settings import requests
from langchain_svc.config import V1
from langchain_svc.sandbox import Fault, Sandbox

PRICES = {"svc-turbo": {"input": 1.0, "output": 2.0, "per_tokens": 1_000}}


def test_the_call_that_would_pass_a_block_is_not_sent(chat, sandbox):
    with svc.SvcBudget(max_requests=2) as budget:
        chat.invoke("Hi")
        list(chat.stream("Hi"))
        with pytest.raises(
            svc.SvcBudgetError,
            match=r"max_requests=2 would be exceeded: 2 used, 0 left, and this request asks for 1",
        ) as told:
            chat.invoke("Hi")
    assert told.value.is_retryable is False
    assert (told.value.used.requests, told.value.left.requests) == (2, 0)
    assert told.value.left.tokens is None
    assert len(sandbox.requests) == 2
    assert budget.used.requests == 2
    chat.invoke("outside of the block")


def test_one_object_has_a_budget_for_itself(sandbox):
    budget = svc.SvcBudget(max_requests=1)
    model = svc.ChatSvc(budget=budget, **sandbox.v1)
    model.invoke("Hi")
    for other in (model, copy.deepcopy(model), model.model_copy(update={"temperature": 0})):
        with pytest.raises(svc.SvcBudgetError):
            other.invoke("Hi")
    svc.ChatSvc(**sandbox.v1).invoke("Hi")
    assert pickle.loads(pickle.dumps(budget)) is budget


def test_blocks_nest_and_count_once(chat, sandbox):
    with svc.SvcBudget(max_requests=3) as outer:
        with svc.SvcBudget(max_requests=1) as inner, inner:
            chat.invoke("Hi")
            with pytest.raises(svc.SvcBudgetError):
                chat.invoke("Hi")
        chat.invoke("Hi")
        assert (outer.used.requests, inner.used.requests) == (2, 1)
        assert outer.left.requests == 1


async def test_it_counts_in_threads_and_tasks(chat):
    with svc.SvcBudget(max_requests=8) as budget:
        chat.batch(["Hi"] * 3)
        RunnableLambda(lambda _: chat.invoke("Hi")).batch([1, 2])
        await asyncio.gather(*(chat.ainvoke("Hi") for _ in range(3)))
        assert budget.left.requests == 0
        found = await chat.abatch(["Hi"] * 4, return_exceptions=True)
    assert all(isinstance(error, svc.SvcBudgetError) for error in found)


def test_tokens_are_counted_as_reported(chat):
    with svc.SvcBudget(max_tokens=2_000) as budget:
        total = sum(chat.invoke("Hi " * n).usage_metadata["total_tokens"] for n in range(1, 9))
        assert budget.used.tokens == total
        assert budget.left.tokens == 2_000 - total


def test_a_bounded_answer_cannot_pass_the_budget(chat, sandbox):
    budget = svc.SvcBudget(max_tokens=300)
    with budget, pytest.raises(svc.SvcBudgetError, match=r"max_tokens=300 would be exceeded"):
        for _ in range(100):
            chat.invoke("Tell me a story", max_tokens=50)
    assert 200 < budget.used.tokens <= 300
    with budget, pytest.raises(svc.SvcBudgetError, match=r"this request asks for 9,\d{3}"):
        chat.invoke("Hi", max_tokens=9_000)


def test_cost_by_prices_that_are_given(chat):
    with svc.SvcBudget(max_cost=1.0, prices=PRICES) as budget:
        usage = chat.invoke("Hi", max_tokens=100).usage_metadata
        cost = usage["input_tokens"] / 1000 + 2 * usage["output_tokens"] / 1000
        assert budget.used.cost == pytest.approx(cost)
        with pytest.raises(svc.SvcBudgetError, match=r"max_cost=1 would be exceeded"):
            for _ in range(100):
                chat.invoke("Hi", max_tokens=100)
        assert 0.7 < budget.used.cost <= 1.0


def test_a_retry_is_a_request():
    with Sandbox(faults=[Fault(status=503)]) as sandbox:
        model = svc.ChatSvc(max_retries=5, **sandbox.v1)
        text = r"It was not sent\..*max_retries="
        budget = svc.SvcBudget(max_requests=2)
        with budget, pytest.raises(svc.SvcBudgetError, match=text) as told:
            model.invoke("Hi")
        assert told.value.retries == 2
        assert len(sandbox.requests) == 2
        assert budget.used == svc.BudgetUse(2, 0, 0.0)


def test_what_was_not_sent_or_is_given_up_is_free_again(sandbox):
    nowhere = svc.ChatSvc(api_key="k" * 20, base_url_v1="http://127.0.0.1:9/v1", max_retries=0)
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=1))
    model = svc.ChatSvc(quota=quota, **sandbox.v1)
    with svc.SvcBudget(max_requests=2, max_tokens=9_000) as budget:
        with pytest.raises(svc.SvcConnectionError):
            nowhere.invoke("Hi")
        assert budget.left.requests == 2
        model.invoke("Hi")
        with pytest.raises(svc.SvcRateLimitError):
            model.invoke("Hi", deadline=1)
        assert budget.left.requests == 1
        assert budget.left.tokens == 9_000 - budget.used.tokens


def test_cost_needs_a_price(chat, sandbox):
    with svc.SvcBudget(max_cost=5.0, prices=PRICES) as budget:
        with pytest.raises(
            svc.SvcBudgetError, match=r"No price of model 'other' is known.*svc-turbo.*list_models"
        ):
            chat.invoke("Hi", model="other")
        with pytest.raises(svc.SvcBudgetError, match="this endpoint"):
            svc.SvcTranslate(**sandbox.general).invoke({"text": "Hi", "target": "es"})
    assert budget.used.requests == 0
    assert not sandbox.requests
    with svc.SvcBudget(max_cost=5.0) as budget:
        chat.list_models()  # costs nothing
        chat.invoke("Hi")
        assert budget.used.cost > 0


def priced_at(price):
    return {"svc-turbo": {"input": price, "output": price, "per_tokens": 1000}}


def priced(price):
    """A service that lists one model at a price of a thousand tokens, and says ten to anything."""
    listing = {"data": [{"id": "svc-turbo", "pricing": priced_at(price)["svc-turbo"]}]}
    usage = {"prompt_tokens": 990, "completion_tokens": 10, "total_tokens": 1000}
    choice = {"message": {"content": "ten"}, "finish_reason": "stop"}
    answer = {"choices": [choice], "usage": usage}

    def serve(request):
        return httpx.Response(200, json=listing if request.method == "GET" else answer)

    return httpx.Client(transport=httpx.MockTransport(serve))


@given(st.integers(1, 99), st.integers(1, 9))
def test_costs_add_up_to_their_sum_and_no_error_of_rounding(cents, calls):
    url, key = "https://a.example/v1", "key-of-a"
    budget = svc.SvcBudget(max_cost=cents, prices=priced_at(cents / 100))
    model = svc.ChatSvc(base_url_v1=url, api_key=key, http_client=priced(0), budget=budget)
    for _ in range(calls):
        model.invoke("Hi")
    assert budget.used.cost == cents * calls / 100
    assert budget.left.cost == (100 * cents - cents * calls) / 100


TENANTS = [("https://a.example/v1", "key-of-a"), ("https://b.example/v1", "key-of-b")]


@pytest.mark.parametrize(
    "others",
    [("https://a.example/v1", "key-of-b"), ("https://b.example/v1", "key-of-a"), TENANTS[1]],
)
def test_the_prices_of_another_tenant_count_for_nothing(others):
    url, key = TENANTS[0]
    ours = svc.ChatSvc(base_url_v1=url, api_key=key, http_client=priced(2.0))
    url, key = others
    theirs = svc.ChatSvc(base_url_v1=url, api_key=key, http_client=priced(0.002))
    budget = svc.SvcBudget(max_cost=100.0)
    theirs.list_models()
    with budget, pytest.raises(svc.SvcBudgetError, match=r"Known are prices of: none"):
        svc.ChatSvc(base_url_v1="https://c.example/v1", api_key="c", http_client=priced(1)).invoke(
            "Hi"
        )
    ours.list_models()
    theirs.list_models()
    with budget:
        ours.invoke("Hi")
    assert budget.used.cost == pytest.approx(2.0)
    with budget:
        theirs.invoke("Hi")
    assert budget.used.cost == pytest.approx(2.002)


def test_another_object_of_the_same_key_has_the_prices_and_nobody_the_key():
    url, key = "https://same.example/v1", "a-key-that-nobody-keeps"
    svc.ChatSvc(base_url_v1=url, api_key=key, http_client=priced(2.0)).list_models()
    with svc.SvcBudget(max_cost=100.0) as budget:
        svc.ChatSvc(base_url_v1=url, api_key=key, http_client=priced(2.0)).invoke("Hi")
    assert budget.used.cost == pytest.approx(2.0)
    assert key not in repr(vars(requests))


def test_the_lists_of_many_tenants_are_bounded(monkeypatch):
    monkeypatch.setattr(requests, "_LISTS", {})
    url = "https://many.example/v1"
    for number in range(1_200):
        tenant = svc.ChatSvc(base_url_v1=url, api_key=f"key-{number}")
        requests.keep_prices(tenant, V1, {"m": None})
    assert len(requests._LISTS) == 1_000
    assert "m" in requests.listed_prices(url, "key-1199")
    assert not requests.listed_prices(url, "key-1")
