"""An agent at the end of its budget keeps what it has."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import langchain_svc as svc
from langchain_svc.sandbox import Sandbox, ToolCall

QUESTION = {"messages": [{"role": "user", "content": "What is the status of order 1234?"}]}
THREAD = {"configurable": {"thread_id": "1"}}


@tool
def order_status(order: int) -> str:
    """The status of an order."""
    return f"order {order} was shipped"


@pytest.fixture
def sandbox():
    calls = [ToolCall("order_status", {"order": number}) for number in (1, 2)]
    with Sandbox(answers=[*calls, "Both were shipped."]) as running:
        yield running


def agent_of(sandbox, budget, at_limit="end", **words):
    middleware = svc.SvcBudgetMiddleware(budget, at_limit=at_limit)
    return create_agent(
        svc.ChatSvc(**sandbox.v1, **words.pop("model", {})),
        [order_status],
        middleware=[middleware],
        **words,
    )


def run(agent, question, how, config=None):
    if how == "invoke":
        return agent.invoke(question, config)
    return asyncio.run(agent.ainvoke(question, config))


HOWS = ["invoke", "ainvoke"]


@pytest.mark.parametrize("how", HOWS)
def test_it_ends_with_what_it_has(sandbox, how):
    budget = svc.SvcBudget(max_requests=2)
    messages = run(agent_of(sandbox, budget), QUESTION, how)["messages"]
    results = [message.content for message in messages if isinstance(message, ToolMessage)]
    assert results == ["order 1 was shipped", "order 2 was shipped"]
    last = messages[-1]
    assert isinstance(last, AIMessage)
    assert last.text.startswith("I stopped here, because the budget of this run is used up.")
    assert "max_requests=2 would be exceeded" in last.text
    assert last.response_metadata["finish_reason"] == "budget"
    assert not last.tool_calls
    assert len(sandbox.requests) == budget.used.requests == 2


@pytest.mark.parametrize("how", HOWS)
def test_it_raises_the_error_of_the_budget(sandbox, how):
    agent = agent_of(sandbox, svc.SvcBudget(max_requests=2), "raise")
    with pytest.raises(svc.SvcBudgetError, match="max_requests=2 would be exceeded"):
        run(agent, QUESTION, how)


@pytest.mark.parametrize("how", HOWS)
def test_a_person_may_raise_the_limit(sandbox, how):
    budget = svc.SvcBudget(max_requests=1)
    agent = agent_of(sandbox, budget, "ask", checkpointer=InMemorySaver())
    (question,) = run(agent, QUESTION, how, THREAD)["__interrupt__"]
    assert question.value["used"]["requests"] == 1
    assert question.value["left"]["requests"] == 0
    assert "max_requests=1 would be exceeded" in question.value["message"]
    # Not enough: asked again at the next call.
    (question,) = run(agent, Command(resume={"max_requests": 2}), how, THREAD)["__interrupt__"]
    assert question.value["used"]["requests"] == 2
    messages = run(agent, Command(resume={"max_requests": 9}), how, THREAD)["messages"]
    assert messages[-1].text == "Both were shipped."
    assert len(sandbox.requests) == budget.used.requests == 3


@pytest.mark.parametrize("how", HOWS)
def test_a_person_may_end_it(sandbox, how):
    budget = svc.SvcBudget(max_requests=1)
    agent = agent_of(sandbox, budget, "ask", checkpointer=InMemorySaver())
    run(agent, QUESTION, how, THREAD)
    messages = run(agent, Command(resume="end"), how, THREAD)["messages"]
    assert messages[-1].response_metadata["finish_reason"] == "budget"
    assert len(sandbox.requests) == 1


@pytest.mark.parametrize("answer", ["more", {"max_calls": 3}, {"max_requests": -1}, 7])
def test_an_answer_that_says_neither_is_asked_about_again(sandbox, answer):
    agent = agent_of(sandbox, svc.SvcBudget(max_requests=1), "ask", checkpointer=InMemorySaver())
    agent.invoke(QUESTION, THREAD)
    (question,) = agent.invoke(Command(resume=answer), THREAD)["__interrupt__"]
    assert "max_requests" in question.value["problem"]
    messages = agent.invoke(Command(resume="end"), THREAD)["messages"]
    assert messages[-1].response_metadata["finish_reason"] == "budget"
    assert len(sandbox.requests) == 1


def test_the_budget_of_somebody_else_is_raised(sandbox):
    inner = svc.SvcBudget(max_requests=9)
    agent = agent_of(sandbox, inner)
    with svc.SvcBudget(max_requests=1), pytest.raises(svc.SvcBudgetError, match="max_requests=1"):
        agent.invoke(QUESTION)


def test_a_missing_price_is_raised(sandbox):
    budget = svc.SvcBudget(
        max_cost=5.0, prices={"other": {"input": 1, "output": 1, "per_tokens": 1}}
    )
    with pytest.raises(svc.SvcBudgetError, match="No price"):
        agent_of(sandbox, budget).invoke(QUESTION)


def test_a_model_with_the_same_budget_counts_once(sandbox):
    budget = svc.SvcBudget(max_requests=3)
    messages = agent_of(sandbox, budget, model={"budget": budget}).invoke(QUESTION)["messages"]
    assert messages[-1].text == "Both were shipped."
    assert budget.used.requests == 3


def test_tools_that_call_the_service_count():
    call = ToolCall("svc_translate", {"text": "Hi", "target": "es"})
    with Sandbox(answers=[call, "Done."]) as sandbox:
        budget = svc.SvcBudget(max_requests=3)
        tools = [svc.SvcTranslate(**sandbox.general)]
        middleware = [svc.SvcBudgetMiddleware(budget)]
        agent = create_agent(svc.ChatSvc(**sandbox.v1), tools, middleware=middleware)
        agent.invoke(QUESTION)
        assert budget.used.requests == len(sandbox.requests) == 3


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"budget": 5}, r"budget must be a SvcBudget such as .*, not 5"),
        (
            {"budget": svc.SvcBudget(max_requests=1), "at_limit": "stop"},
            r"'end' .*'raise' .*'ask' .*not 'stop'",
        ),
    ],
)
def test_a_wrong_argument_is_told_with_the_right_ones(words, text):
    with pytest.raises(ValueError, match=text):
        svc.SvcBudgetMiddleware(**words)


@pytest.mark.slow
def test_without_langchain_the_name_is_there_and_says_what_is_missing():
    code = """
import sys
sys.modules["langchain"] = sys.modules["langchain.agents"] = None
from langchain_svc import *
try:
    SvcBudgetMiddleware(SvcBudget(max_requests=1))
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert 'pip install "langchain-svc[agents]"' in done.stdout
