"""What langchain-core and langgraph build on a model: chains, caches, copies, configuration, graphs."""

from __future__ import annotations

import copy
import json
import operator
import os
import pickle
from typing import Annotated, Any

from common import ASK, GOOD, ONE_TWO, Meeting, add, shape
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import InjectedState
from player import Play, calls, on_both, same
from registry import program
from typing_extensions import TypedDict

from langchain_svc import register


@program("checkpointers", "langgraph-checkpoint-sqlite")
def checkpointers():
    """A thread kept in SQLite and in memory, continued, and forked from its history."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    def run(model, saver):
        agent = create_agent(model, [add], checkpointer=saver)
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke(ASK, config)
        before = next(s for s in agent.get_state_history(config) if s.next == ("model",))
        agent.invoke({"messages": [("user", "again")]}, config)
        forked = agent.invoke(None, before.config)
        return shape(forked), len(list(agent.get_state_history(config)))

    script = [calls(ONE_TWO), "3", "again 3", "forked"]
    ours, _ = on_both(script, lambda m: run(m, InMemorySaver()))
    with SqliteSaver.from_conn_string(":memory:") as first, Play(script) as play:
        same(run(play.svc(), first), ours)


@program("interrupt and resume", "langgraph")
def interrupts():
    """Two tools of one answer wait for a person; both are resumed at once."""
    from langgraph.types import Command, interrupt

    @tool
    def confirm(what: str) -> str:
        """Ask a person."""
        return interrupt(what)

    def run(model):
        agent = create_agent(model, [confirm], checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        waiting = agent.invoke(ASK, config)["__interrupt__"]
        resume = {each.id: f"yes to {each.value}" for each in waiting}
        return shape(agent.invoke(Command(resume=resume), config))

    script = [calls(("confirm", {"what": "a"}), ("confirm", {"what": "b"})), "done"]
    came, _ = on_both(script, run)
    assert ("tool", "yes to b", []) in came, came


@program("parallel sends", "langgraph")
def sends():
    """Three sends of one prompt into one state; no two calls have the same id."""
    from langgraph.graph import START, StateGraph
    from langgraph.types import Send

    class State(TypedDict):
        found: Annotated[list[Any], operator.add]

    def run(model):
        graph = StateGraph(State)
        graph.add_node("ask", lambda _: {"found": [model.bind_tools([add]).invoke("x")]})
        graph.add_conditional_edges(START, lambda _: [Send("ask", {})] * 3, ["ask"])
        found = graph.compile().invoke({"found": []})["found"]
        return len({call["id"] for message in found for call in message.tool_calls})

    came, _ = on_both([calls(ONE_TWO)] * 3, run)
    same(came, 3)


@program("dumpd and load", "langchain-core")
def dump_and_load():
    """Messages, a model, a model with tools; no key is in the text."""
    from langchain_core.load import dumps, loads

    with Play(["hi", "hi"]) as play:
        model = play.svc(api_key="sk-secret")
        for one in (model, model.bind_tools([add])):
            text = dumps(one)
            assert "sk-secret" not in text, text
            allowed = [*ALLOWED, "langchain_svc"]
            again = loads(
                text,
                secrets_map={"SVC_API_KEY": "sk-secret"},
                valid_namespaces=allowed,
                allowed_objects="all",
            )
            same(again.invoke("x").text, "hi")
    message = AIMessage("hi", tool_calls=[{"name": "add", "args": {"a": 1}, "id": "c"}])
    same(loads(dumps(message), allowed_objects="all"), message)


ALLOWED = ["langchain_core", "langchain"]


@program("caches", "langchain-core")
def caches():
    """InMemoryCache: plain, with tools, structured; the second answer costs no request."""
    from langchain_core.caches import InMemoryCache

    def run(model):
        made = [
            model.invoke("x").text,
            model.bind_tools([add]).invoke("x").tool_calls[0]["args"],
            model.with_structured_output(Meeting, method="function_calling").invoke("x"),
        ]
        return made, made == [
            model.invoke("x").text,
            model.bind_tools([add]).invoke("x").tool_calls[0]["args"],
            model.with_structured_output(Meeting, method="function_calling").invoke("x"),
        ]

    script = ["hi", calls(ONE_TWO), calls(("Meeting", GOOD))]
    for make in (Play.svc, Play.openai):
        with Play(script) as play:
            same(run(make(play, cache=InMemoryCache()))[1], True)
            same(len(play.requests), 3)


@program("batches, retries, limits", "langchain-core")
def batches():
    """RunnableParallel, with_retry, batch_as_completed, return_exceptions, a rate limiter."""
    from langchain_core.rate_limiters import InMemoryRateLimiter
    from langchain_core.runnables import RunnableParallel

    on_both(lambda _: "hi", lambda m: RunnableParallel(a=m | _text, b=m | _text).invoke("x"))
    on_both(lambda _: "hi", lambda m: sorted(i for i, _ in m.batch_as_completed(["x"] * 4)))
    on_both([503, "hi"], lambda m: m.with_retry(wait_exponential_jitter=False).invoke("x").text)
    on_both([], lambda m: [bool(e.args) for e in m.batch(["x", "y"], return_exceptions=True)])
    limiter = InMemoryRateLimiter(requests_per_second=100)
    with Play(["hi"]) as play:
        same(play.svc(rate_limiter=limiter).invoke("x").text, "hi")


def _text(message):
    return message.text


@program("with_fallbacks", "langchain-core")
def fallbacks():
    """`with_fallbacks([...])`, then `bind_tools` and `with_structured_output`; from ChatOpenAI to ChatSvc."""
    for make in (Play.svc, Play.openai):
        with Play([]) as broken, Play([calls(ONE_TWO), calls(("Meeting", GOOD))]) as good:
            safe = make(broken).with_fallbacks([good.svc()])
            same(safe.bind_tools([add]).invoke("x").tool_calls[0]["args"], ONE_TWO[1])
            structured = safe.with_structured_output(Meeting, method="function_calling")
            same(structured.invoke("x"), Meeting(**GOOD))
            same(len(good.requests), 2)


@program("configurable models", "langchain-core")
def configurable():
    """configurable_fields, configurable_alternatives, with_config."""
    from langchain_core.runnables import ConfigurableField

    with Play(lambda _: "hi") as play:
        model = play.svc()
        field = model.configurable_fields(temperature=ConfigurableField(id="t"))
        field.invoke("x", {"configurable": {"t": 0.5}})
        same(play.requests[-1]["temperature"], 0.5)
        other = model.configurable_alternatives(
            ConfigurableField(id="which"), other=play.svc(model="svc-turbo")
        )
        other.with_config(configurable={"which": "other"}).invoke("x")
        same(play.requests[-1]["model"], "svc-turbo")


@program("init_chat_model", "langchain")
def init():
    """`svc:svc-pro` after register(), with base_url, numbers as text, aliases; configurable by "any"."""
    from langchain.chat_models import init_chat_model

    register()
    with Play(lambda _: "hi") as play:
        words = {
            "base_url": f"{play.url}/v1",
            "api_key": "k",
            "temperature": "0.3",
            "max_completion_tokens": 9,
            "request_timeout": 5,
            "extra_body": {"seed": 1},
        }
        same(init_chat_model("svc:svc-pro", **words).invoke("x").text, "hi")
        sent = play.requests[-1]
        same([sent["temperature"], sent["max_tokens"], sent["seed"]], [0.3, 9, 1])
        os.environ.update(SVC_API_KEY="k", SVC_BASE_URL_V1=f"{play.url}/v1")
        model = init_chat_model(configurable_fields="any", temperature=0)
        config = {"configurable": {"model": "svc-turbo", "model_provider": "svc"}}
        same(model.bind_tools([add]).invoke("x", config).text, "hi")
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


@program("the older interface", "langchain-core")
def older_interface():
    """`generate().llm_output`, a class as `response_format`, values that ask for nothing, results that are dicts."""

    def run(model):
        asked = [HumanMessage("x")]
        several = model.generate([asked, asked]).llm_output["token_usage"]["total_tokens"]
        parsed = model.bind(response_format=Meeting).invoke("x").additional_kwargs["parsed"]
        call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "1"}
        hits = ToolMessage([{"url": "u1", "content": "hit"}], tool_call_id="1")
        model.bind(n=1, top_p=None, seed=None, logprobs=None, user=None).invoke(
            [*asked, AIMessage("", tool_calls=[call]), hits]
        )
        return several, parsed, model.model_name[:0]

    _, play = on_both(lambda _: json.dumps(GOOD), run)
    assert "hit" in play.asked[-1]


@program("copies and pickles", "langchain-core")
def copies():
    """deepcopy, pickle, model_copy, each of a used model."""
    with Play(lambda _: "hi") as play:
        model = play.svc()
        model.invoke("x")
        for other in (
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model)),
            model.model_copy(update={"temperature": 1}),
        ):
            same(other.invoke("x").text, "hi")


@program("output parsers", "langchain-core")
def parsers():
    """Pydantic tools, JSON, XML and lists."""
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
        on_both(script, lambda m, chain=chain: chain(m).invoke("x"))
        on_both(script, lambda m, chain=chain: list(chain(m).stream("x"))[-1])


@program("ToolNode with injected arguments", "langgraph-prebuilt")
def injected():
    """InjectedState and InjectedToolCallId, which the model never sees."""

    @tool
    def count(
        what: str,
        state: Annotated[dict, InjectedState],
        call: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Count messages."""
        return f"{what}: {len(state['messages'])}, {bool(call)}"

    script = [calls(("count", {"what": "all"})), "done"]
    came, _ = on_both(script, lambda m: shape(create_agent(m, [count]).invoke(ASK)))
    same(came[2][1], "all: 2, True")


@program("threads of other providers", "langchain-core")
def threads():
    """Histories of OpenAI's Responses API, Anthropic and Gemini are continued, their calls rebuilt."""
    call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "c", "type": "tool_call"}
    blocks = {
        "openai": [
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "function_call", "name": "add", "arguments": "{}", "call_id": "c", "id": "f"},
            {"type": "web_search_call", "id": "w", "status": "completed"},
        ],
        "anthropic": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
            {"type": "tool_use", "id": "c", "name": "add", "input": {"a": 1, "b": 2}},
        ],
        "gemini": [
            {"type": "executable_code", "executable_code": "1+1", "language": "python"},
            {"type": "code_execution_result", "code_execution_result": "2"},
        ],
    }
    for content in blocks.values():
        with Play(["on we go"]) as play:
            history = [
                HumanMessage("x"),
                AIMessage(content, tool_calls=[call]),
                ToolMessage("3", tool_call_id="c"),
            ]
            same(play.svc().bind_tools([add]).invoke(history).text, "on we go")
            assert '{"name": "add", "arguments": {"a": 1, "b": 2}}' in play.asked[0], play.asked
    refusal = AIMessage(
        [{"type": "refusal", "refusal": "no"}, {"type": "non_standard", "value": {}}]
    )
    with Play(["on we go"]) as play:
        same(play.svc().invoke([HumanMessage("x"), refusal, HumanMessage("y")]).text, "on we go")


@program("messages of every form", "langchain-core")
def messages():
    """System text anywhere, empty answers, names, several text blocks, an image in a tool's result."""
    system, user = SystemMessage("s"), HumanMessage("u")
    for given in (
        [system, user],
        [user, system, user],
        [user, system],
        [user, AIMessage(""), user],
        [AIMessage("first"), user],
        [HumanMessage("u", name="bob")],
    ):
        on_both(["ok"], lambda m, given=given: m.invoke(given).text)
    parts = [{"type": "text", "text": part} for part in ("Sum up:", "DOC 1", "DOC 2")]
    with Play(["ok"]) as play:
        play.svc().invoke([HumanMessage(parts)])
        assert "Sum up:\nDOC 1\nDOC 2" in play.asked[0], play.asked
    call = {"name": "shoot", "args": {}, "id": "c", "type": "tool_call"}
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    result = ToolMessage([{"type": "text", "text": "the screen"}, image], tool_call_id="c")
    with Play(["ok"]) as play:
        play.svc().invoke([user, AIMessage("", tool_calls=[call]), result])
        assert "the screen" in play.asked[0], play.asked
        assert "aGk=" not in play.asked[0], play.asked


@program("a tool's result beyond the window", "langchain")
def overflow():
    """Refused before it is sent, as LangChain's ContextOverflowError."""
    from langchain_core.exceptions import ContextOverflowError

    @tool
    def flood() -> str:
        """Say much."""
        return "word " * 2_000_000

    with Play([calls(("flood", {})), "never"]) as play:
        try:
            create_agent(play.svc(), [flood]).invoke(ASK)
        except ContextOverflowError:
            same(len(play.requests), 1)
        else:
            raise AssertionError("it was sent")


@program("reasoning as content blocks", "langchain-core")
def reasoning():
    """`<think>` becomes a reasoning block, with tools and without, streamed and not."""
    with Play(lambda _: "<think>hm</think>Hello") as play:
        for model in (play.svc(), play.svc().bind_tools([add])):
            whole = model.invoke("x")
            chunks = list(model.stream("x"))
            streamed = sum(chunks[1:], chunks[0])
            for message in (whole, streamed):
                same(message.text, "Hello")
                same([b["type"] for b in message.content_blocks], ["reasoning", "text"])
