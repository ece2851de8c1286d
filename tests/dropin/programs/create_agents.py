"""LangChain's create_agent: calls, wrong calls, streams, structured responses."""

from __future__ import annotations

import asyncio

from common import ASK, GOOD, ONE_TWO, Meeting, add, shape
from langchain.agents import create_agent
from player import Play, calls, on_both, same
from registry import program


@program("create_agent: parallel calls", "langchain")
def parallel_calls():
    """Two calls in one answer; ids differ and results are paired."""
    script = [calls(ONE_TWO, ("add", {"a": 3, "b": 4}), text="Both."), "3 and 7"]

    def run(model):
        state = create_agent(model, [add]).invoke(ASK)
        asked, results = state["messages"][1].tool_calls, state["messages"][2:4]
        same([c["id"] for c in asked], [r.tool_call_id for r in results])
        same(len({c["id"] for c in asked}), 2)
        return shape(state)

    on_both(script, run)


WRONG = {
    "a missing argument": ("add", {"a": 1}),
    "an unknown name": ("ad", {"a": 1, "b": 2}),
    "a wrong type": ("add", {"a": "one", "b": 2}),
}


@program("create_agent: wrong calls", "langchain")
def wrong_calls():
    """A missing argument, an unknown name, a wrong type: the tool's error reaches the model, which goes on."""
    for wrong in WRONG.values():
        for script in ([calls(wrong), "recovered"], [calls(wrong, text="I will."), "recovered"]):
            _, play = on_both(script, lambda m: shape(create_agent(m, [add]).invoke(ASK)))
            same(len(play.requests), 2)
            assert 'status="error"' in play.asked[-1]


@program("create_agent: an unreadable call", "langchain")
def unreadable_call():
    """A call that is not JSON: ChatSvc asks again in the run, where ChatOpenAI's run ends."""
    broken = "<tool_call>\nadd one and two\n</tool_call>"
    with Play([broken, calls(ONE_TWO), "3"]) as play:
        same(create_agent(play.svc(), [add]).invoke(ASK)["messages"][-1].text, "3")
        same(len(play.requests), 3)
        same(play.asked[1].count("add one and two"), 1)


@program("create_agent: stream modes", "langchain")
def stream_modes():
    """values, updates, messages, debug, tasks; usage is on the messages, blocking and asynchronously."""
    script = [calls(ONE_TWO), "It is three."]
    for mode in ("values", "updates", "debug", "tasks"):
        on_both(
            script,
            lambda m, mode=mode: len(list(create_agent(m, [add]).stream(ASK, stream_mode=mode))),
        )

    def told(chunks):
        ai = [c for c, _ in chunks if c.type == "AIMessageChunk"]
        used = sum(c.usage_metadata["total_tokens"] for c in ai if c.usage_metadata)
        return "".join(c.text for c in ai), used

    async def alist(agent):
        return [chunk async for chunk in agent.astream(ASK, stream_mode="messages")]

    on_both(script, lambda m: told(create_agent(m, [add]).stream(ASK, stream_mode="messages")))
    on_both(script, lambda m: told(asyncio.run(alist(create_agent(m, [add])))))


@program("create_agent: astream_events v2", "langchain", python=(3, 11))
def events_v2():
    """Every event's name; the end of each model run carries its usage."""

    async def run(agent):
        events = [e async for e in agent.astream_events(ASK, version="v2")]
        ends = [e["data"]["output"] for e in events if e["event"] == "on_chat_model_end"]
        same([e.usage_metadata["total_tokens"] for e in ends], [15, 15])
        return sorted({e["event"] for e in events})

    script = [calls(ONE_TWO), "3"]
    on_both(script, lambda m: asyncio.run(run(create_agent(m, [add]))))


@program("stream_events v3", "langchain-core")
def events_v3():
    """The typed event stream of a model: the same kinds of blocks in the same order."""
    script = [calls(ONE_TWO, text="I add.")]

    def kinds(model):
        events = list(model.bind_tools([add]).stream_events("x", version="v3"))
        return [
            e["event"]
            for i, e in enumerate(events)
            if not i or e["event"] != events[i - 1]["event"]
        ]

    ours, _ = on_both(script, kinds)
    same((ours[0], ours[-1]), ("message-start", "message-finish"))


@program("create_agent: ToolStrategy", "langchain")
def tool_strategy():
    """A good answer, one that does not fit, and two and three of them in a row."""
    from langchain.agents.structured_output import ToolStrategy

    bad = calls(("Meeting", {"city": "Rome", "people": "many"}))

    def run(model):
        agent = create_agent(model, [], response_format=ToolStrategy(Meeting))
        return agent.invoke(ASK)["structured_response"]

    for times in range(4):
        came, play = on_both([bad] * times + [calls(("Meeting", GOOD))], run)
        same((came, len(play.requests)), (Meeting(**GOOD), times + 1))


@program("create_agent: ProviderStrategy", "langchain")
def provider_strategy():
    """A class, a dict schema, a dataclass and a TypedDict, with and without tools."""
    import json
    from dataclasses import dataclass

    from langchain.agents.structured_output import ProviderStrategy
    from typing_extensions import TypedDict

    @dataclass
    class Data:
        city: str
        people: int

    class Typed(TypedDict):
        city: str
        people: int

    schema = {**Meeting.model_json_schema(), "additionalProperties": False}
    for form in (Meeting, schema, Data, Typed):
        for tools, script in (
            ([], [json.dumps(GOOD)]),
            ([add], [calls(ONE_TWO), json.dumps(GOOD)]),
        ):
            made = lambda m: create_agent(m, tools, response_format=ProviderStrategy(form))  # noqa: B023, E731
            came, _ = on_both(script, lambda m: made(m).invoke(ASK)["structured_response"])  # noqa: B023
            same(
                came if isinstance(came, dict) else {"city": came.city, "people": came.people}, GOOD
            )


@program("create_agent: stream_events v3", "langchain")
def agent_events_v3():
    """The typed events of a whole run: messages and tools."""

    def methods(model):
        events = create_agent(model, [add]).stream_events(ASK, version="v3")
        return sorted({event["method"] for event in events})

    came, _ = on_both([calls(ONE_TWO), "3"], methods)
    assert "messages" in came, came


@program(
    "output_version v1, streamed",
    "langchain-core",
    third_party="LangChain merges a call into the text block before it, for every model; `tool_calls` is right",
)
def output_version():
    """Text, then a call, as v1 content blocks."""

    def run(model):
        chunks = list(model.bind_tools([add]).stream("x"))
        whole = sum(chunks[1:], chunks[0])
        same([block["type"] for block in whole.content_blocks], ["text"])  # if not: change the note
        return [(c["name"], c["args"]) for c in whole.tool_calls]

    for make in (Play.svc, Play.openai):
        with Play([calls(ONE_TWO, text="I add.")]) as play:
            same(run(make(play, output_version="v1")), [ONE_TWO])
