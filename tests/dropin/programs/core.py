"""What langchain-core and langgraph build on a model: threads, caches, copies, configuration."""

from __future__ import annotations

import copy
import json
import os
import pickle
from typing import Annotated

from common import ASK, GOOD, ONE_TWO, THREAD, Meeting, add, shape
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    trim_messages,
)
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import InjectedState
from player import Play, calls, on_both, same
from registry import program

from langchain_svc import register


@program("checkpointers", "langgraph-checkpoint-sqlite")
def checkpointers():
    """A thread in SQLite and in memory: stopped at a breakpoint, its call edited, continued, and
    forked from its history.
    """
    from langgraph.checkpoint.sqlite import SqliteSaver

    def run(model, saver):
        agent = create_agent(model, [add], checkpointer=saver, interrupt_before=["tools"])
        stopped = agent.invoke(ASK, THREAD)["messages"][-1]
        edited = [{**stopped.tool_calls[0], "args": {"a": 5, "b": 5}}]
        agent.update_state(
            THREAD, {"messages": [stopped.model_copy(update={"tool_calls": edited})]}
        )
        agent.invoke(None, THREAD)
        states = [one for one in agent.get_state_history(THREAD) if one.next == ("model",)]
        agent.invoke({"messages": [("user", "again")]}, THREAD)
        forked = agent.invoke(None, states[-1].config)
        return shape(forked), len(list(agent.get_state_history(THREAD)))

    script = [calls(ONE_TWO), "10", "again 10", "forked"]
    ours, play = on_both(script, lambda m: run(m, InMemorySaver()))
    assert '{"a": 5, "b": 5}' in play.asked[1], play.asked
    with SqliteSaver.from_conn_string(":memory:") as kept, Play(script) as play:
        same(run(play.svc(), kept), ours)


@program("interrupt and resume", "langgraph")
def interrupts():
    """Two tools of one answer wait for a person; both are resumed at once. Injected state and ids
    are never the model's.
    """
    from langgraph.types import Command, interrupt

    @tool
    def confirm(
        what: str,
        state: Annotated[dict, InjectedState],
        call: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Ask a person."""
        return f"{interrupt(what)} of {len(state['messages'])}, {bool(call)}"

    def run(model):
        agent = create_agent(model, [confirm], checkpointer=InMemorySaver())
        waiting = agent.invoke(ASK, THREAD)["__interrupt__"]
        resume = {each.id: f"yes to {each.value}" for each in waiting}
        return shape(agent.invoke(Command(resume=resume), THREAD))

    script = [calls(("confirm", {"what": "a"}), ("confirm", {"what": "b"})), "done"]
    came, play = on_both(script, run)
    assert ("tool", "yes to b of 2, True", []) in came, came
    assert "InjectedState" not in play.asked[0]


@program("caches, dumps, copies", "langchain-core")
def kept():
    """InMemoryCache: plain, with tools, structured; the second answer costs no request. dumps,
    deepcopy, pickle and model_copy of a used model, also with tools; no key is in the text.
    """
    from langchain_core.caches import InMemoryCache
    from langchain_core.load import dumps, loads

    def run(model):
        structured = model.with_structured_output(Meeting, method="function_calling")
        called = model.bind_tools([add]).invoke("x").tool_calls[0]["args"]
        return model.invoke("x").text, called, structured.invoke("x")

    script = [calls(ONE_TWO), "hi", calls(("Meeting", GOOD))]
    for make in (Play.svc, Play.openai):
        with Play(script) as play:
            model = make(play, cache=InMemoryCache())
            same(run(model), run(model))
            same(len(play.requests), 3)

    def loaded(runnable):
        text = dumps(runnable)
        assert "sk-secret" not in text, text
        spaces = ["langchain_core", "langchain", "langchain_svc"]
        secrets = {"SVC_API_KEY": "sk-secret"}
        return loads(text, secrets_map=secrets, valid_namespaces=spaces, allowed_objects="all")

    os.environ["SVC_API_KEY"] = "sk-secret"  # no pickle holds it
    with Play(script * 6) as play:
        model = play.svc(api_key="sk-secret")
        wanted = run(model)
        warmer = model.model_copy(update={"temperature": 1})
        for other in (
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model)),
            warmer,
            loaded(model),
        ):
            same(run(other), wanted)
        same(loaded(model.bind_tools([add])).invoke("x").text, "")


@program("batches, retries, fallbacks", "langchain-core")
def batches():
    """RunnableParallel, with_retry, batch_as_completed, return_exceptions, a rate limiter;
    `with_fallbacks([...])`, then `bind_tools` and `with_structured_output`.
    """
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.rate_limiters import InMemoryRateLimiter
    from langchain_core.runnables import RunnableParallel

    text = StrOutputParser()
    on_both(lambda _: "hi", lambda m: RunnableParallel(a=m | text, b=m | text).invoke("x"))
    on_both(lambda _: "hi", lambda m: sorted(i for i, _ in m.batch_as_completed(["x"] * 4)))
    on_both([503, "hi"], lambda m: m.with_retry(wait_exponential_jitter=False).invoke("x").text)
    on_both([], lambda m: [bool(e.args) for e in m.batch(["x", "y"], return_exceptions=True)])
    limiter = InMemoryRateLimiter(requests_per_second=100)
    with Play(["hi"]) as play:
        same(play.svc(rate_limiter=limiter).invoke("x").text, "hi")
    for make in (Play.svc, Play.openai):
        with Play([]) as broken, Play([calls(ONE_TWO), calls(("Meeting", GOOD))]) as good:
            safe = make(broken).with_fallbacks([good.svc()])
            same(safe.bind_tools([add]).invoke("x").tool_calls[0]["args"], ONE_TWO[1])
            structured = safe.with_structured_output(Meeting, method="function_calling")
            same((structured.invoke("x"), len(good.requests)), (Meeting(**GOOD), 2))


@program("init_chat_model and configurable models", "langchain")
def init():
    """`svc:svc-pro` after register(), with base_url, numbers as text, aliases; configurable by
    "any"; configurable_fields, configurable_alternatives.
    """
    from langchain.chat_models import init_chat_model
    from langchain_core.runnables import ConfigurableField

    register()
    with Play(lambda _: "hi") as play:
        words = {"base_url": f"{play.url}/v1", "api_key": "k", "temperature": "0.3"}
        words |= {"max_completion_tokens": 9, "request_timeout": 5, "extra_body": {"seed": 1}}
        same(init_chat_model("svc:svc-pro", **words).invoke("x").text, "hi")
        sent = play.requests[-1]
        same([sent["temperature"], sent["max_tokens"], sent["seed"]], [0.3, 9, 1])
        os.environ.update(SVC_API_KEY="k", SVC_BASE_URL_V1=f"{play.url}/v1")
        model = init_chat_model(configurable_fields="any", temperature=0)
        config = {"configurable": {"model": "svc-turbo", "model_provider": "svc"}}
        same(model.bind_tools([add]).invoke("x", config).text, "hi")
        same(play.requests[-1]["model"], "svc-turbo")
        field = play.svc().configurable_fields(temperature=ConfigurableField(id="t"))
        field.invoke("x", {"configurable": {"t": 0.5}})
        same(play.requests[-1]["temperature"], 0.5)
        turbo = play.svc(model="svc-turbo")
        other = play.svc().configurable_alternatives(ConfigurableField(id="which"), other=turbo)
        other.with_config(configurable={"which": "other"}).invoke("x")
        same(play.requests[-1]["model"], "svc-turbo")


@program("histories", "langchain-core")
def histories():
    """RunnableWithMessageHistory, and trim_messages with the model as its token counter, offline."""
    from langchain_core.chat_history import InMemoryChatMessageHistory
    from langchain_core.runnables.history import RunnableWithMessageHistory

    def run(model):
        kept = InMemoryChatMessageHistory()
        chain = RunnableWithMessageHistory(model, lambda session_id: kept)
        config = {"configurable": {"session_id": "1"}}
        chain.invoke("one", config)
        chain.invoke([HumanMessage("two")], config)
        return [m.text for m in kept.messages]

    on_both(["first", "second"], run)
    talk = [SystemMessage("s"), HumanMessage("word " * 200), AIMessage("a"), HumanMessage("b")]
    with Play([]) as play:
        kept = trim_messages(talk, max_tokens=60, token_counter=play.svc(), include_system=True)
        same([m.text for m in kept], ["s", "a", "b"])


@program("output parsers", "langchain-core")
def parsers():
    """Pydantic tools, JSON, XML and lists, streamed and not; a class as `response_format`, with
    values that ask for nothing.
    """
    from langchain_core.output_parsers import (
        CommaSeparatedListOutputParser,
        JsonOutputParser,
        PydanticToolsParser,
        XMLOutputParser,
    )

    tools = PydanticToolsParser(tools=[Meeting], first_tool_only=True)
    for script, chain in (
        ([calls(("Meeting", GOOD))], lambda m: m.bind_tools([Meeting]) | tools),
        (['```json\n{"a": 1}\n```'], lambda m: m | JsonOutputParser()),
        (["<a><b>1</b></a>"], lambda m: m | XMLOutputParser(parser="xml")),
        (["red, green"], lambda m: m | CommaSeparatedListOutputParser()),
    ):
        on_both(script, lambda m: chain(m).invoke("x"))
        on_both(script, lambda m: list(chain(m).stream("x"))[-1])
    nothing = {"n": 1, "top_p": None, "seed": None, "logprobs": None, "user": None}
    bound = lambda m: m.bind(response_format=Meeting, **nothing)
    on_both([json.dumps(GOOD)], lambda m: bound(m).invoke("x").additional_kwargs["parsed"])
