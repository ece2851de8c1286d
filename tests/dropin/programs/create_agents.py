"""LangChain's create_agent: calls, wrong calls, streams, structured responses;
with_structured_output.
"""

from __future__ import annotations

import asyncio
import enum
import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from common import (
    ASK,
    BROKEN,
    GOOD,
    ONE_TWO,
    SCHEMA,
    THREE_FOUR,
    Meeting,
    add,
    agent_run,
    agent_state,
    shape,
)
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from player import Play, calls, on_both, same
from pydantic import BaseModel, Field, field_validator
from registry import program
from typing_extensions import TypedDict

SCRIPT = [calls(ONE_TWO), "It is three."]
WRONG = {
    "a missing argument": ("add", {"a": 1}),
    "an unknown name": ("ad", {"a": 1, "b": 2}),
    "a wrong type": ("add", {"a": "one", "b": 2}),
}


@program("create_agent: parallel calls", "langchain")
def parallel_calls():
    """Two calls in one answer; ids differ and results are paired."""

    def run(model):
        state = create_agent(model, [add]).invoke(ASK)
        asked, results = state["messages"][1].tool_calls, state["messages"][2:4]
        same([c["id"] for c in asked], [r.tool_call_id for r in results])
        same(len({c["id"] for c in asked}), 2)
        return shape(state)

    on_both([calls(ONE_TWO, THREE_FOUR, text="Both."), "3 and 7"], run)


@program("create_agent: wrong calls", "langchain")
def wrong_calls():
    """A missing argument, an unknown name, a wrong type: the tool's error reaches the model, which
    goes on. After a call that is not JSON, ChatSvc asks again in the run, where ChatOpenAI's run
    ends.
    """
    for wrong in WRONG.values():
        for text in ("", "I will."):
            _, play = on_both([calls(wrong, text=text), "recovered"], agent_run)
            same(len(play.requests), 2)
            assert 'status="error"' in play.asked[-1]
    with Play([BROKEN, *SCRIPT]) as play:
        same(agent_run(play.svc())[-1][1], "It is three.")
        same(len(play.requests), 3)
        assert "could not be used" in play.asked[1], play.asked
        assert "add one and two" not in play.asked[1]  # it would be written again


@program("create_agent: stream modes", "langchain")
def stream_modes():
    """values, updates, messages, debug, tasks; usage is on the messages, blocking and
    asynchronously.
    """

    def streamed(model, mode):
        return create_agent(model, [add]).stream(ASK, stream_mode=mode)

    for mode in ("values", "updates", "debug", "tasks"):
        on_both(SCRIPT, lambda m: len(list(streamed(m, mode))))

    def told(chunks):
        ai = [c for c, _ in chunks if c.type == "AIMessageChunk"]
        used = sum(c.usage_metadata["total_tokens"] for c in ai if c.usage_metadata)
        return "".join(c.text for c in ai), used

    async def listed(agent):
        return [chunk async for chunk in agent.astream(ASK, stream_mode="messages")]

    on_both(SCRIPT, lambda m: told(streamed(m, "messages")))
    on_both(SCRIPT, lambda m: told(asyncio.run(listed(create_agent(m, [add])))))


@program("create_agent: events", "langchain")
def events():
    """astream_events v2: every event's name, and the usage at the end of each model run.
    stream_events v3: the typed events of the run, and the kinds of blocks of its model in order.
    """

    async def older(agent):
        events = [e async for e in agent.astream_events(ASK, version="v2")]
        ends = [e["data"]["output"] for e in events if e["event"] == "on_chat_model_end"]
        same([e.usage_metadata["total_tokens"] for e in ends], [15, 15])
        return sorted({e["event"] for e in events})

    on_both(SCRIPT, lambda m: asyncio.run(older(create_agent(m, [add]))))

    def methods(model):
        events = create_agent(model, [add]).stream_events(ASK, version="v3")
        return sorted({event["method"] for event in events})

    came, _ = on_both(SCRIPT, methods)
    assert "messages" in came, came

    def kinds(model):
        events = list(model.bind_tools([add]).stream_events("x", version="v3"))
        names = [event["event"] for event in events]
        return [name for i, name in enumerate(names) if not i or name != names[i - 1]]

    came, _ = on_both([calls(ONE_TWO, text="I add.")], kinds)
    same((came[0], came[-1]), ("message-start", "message-finish"))


@dataclass
class Data:
    city: str
    people: int


class Typed(TypedDict):
    """A meeting."""

    city: str
    people: int


@program("create_agent: structured responses", "langchain")
def structured_responses():
    """ToolStrategy: a good answer, after none, one, two and three that do not fit.
    ProviderStrategy: a class, a dict schema, a dataclass and a TypedDict, with and without
    tools.
    """

    def answered(script, strategy, tools=()):
        words = {"response_format": strategy}
        return on_both(script, lambda m: agent_state(m, tools, **words)["structured_response"])

    bad = calls(("Meeting", {"city": "Rome", "people": "many"}))
    for times in range(4):
        came, play = answered([bad] * times + [calls(("Meeting", GOOD))], ToolStrategy(Meeting))
        same((came, len(play.requests)), (Meeting(**GOOD), times + 1))
    answer = json.dumps(GOOD)
    for form in (Meeting, SCHEMA, Data, Typed):
        for tools, script in (([], [answer]), ([add], [calls(ONE_TWO), answer])):
            came, _ = answered(script, ProviderStrategy(form), tools)
            same(came if isinstance(came, dict) else vars(came), GOOD)


@program("output_version v1, streamed", "langchain-core")
def output_version():
    """Text, then a call, as v1 content blocks. *Third party*: LangChain merges a call into the text
    block before it, for every model; `tool_calls` is right.
    """

    def run(model):
        chunks = list(model.bind_tools([add]).stream("x"))
        whole = sum(chunks[1:], chunks[0])
        same([block["type"] for block in whole.content_blocks], ["text"])  # if not: change the note
        return [(c["name"], c["args"]) for c in whole.tool_calls]

    v1 = {"output_version": "v1"}
    script = [calls(ONE_TWO, text="I add.")]
    same(on_both(script, lambda m: run(m.model_copy(update=v1)))[0], [ONE_TWO])


class Colour(enum.Enum):
    RED = "red"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool


class Many(BaseModel):
    """Many types, an alias, a validator, and more of its kind."""

    day: date
    price: Decimal
    id: UUID
    colour: Colour
    pair: tuple[int, str]
    names: set[str]
    either: int | str
    table: dict[str, int]
    raw: bytes
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    children: list[Many]
    people: int = Field(alias="howMany", gt=0)

    @field_validator("people")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


MANY = {
    "day": "2024-02-29",
    "price": "1.50",
    "id": "12345678-1234-5678-1234-567812345678",
    "colour": "red",
    "pair": [1, "a"],
    "names": ["a", "b"],
    "either": "x",
    "table": {"a": 1},
    "raw": "abc",
    "pet": {"kind": "dog", "barks": True},
    "howMany": 4,
}


@program("with_structured_output", "langchain-core")
def schemas():
    """Recursive, discriminated, dates, enums, sets, aliases, validators, $defs, TypedDict, dict:
    each with three methods; include_raw; streams of partial objects.
    """
    tree = {**MANY, "children": [{**MANY, "children": []}]}
    for method in ("json_schema", "function_calling", "json_mode"):
        called = method == "function_calling"
        for schema, data in ((Meeting, GOOD), (Many, tree)):
            answer = calls((schema.__name__, data)) if called else json.dumps(data)
            with Play([answer, answer]) as play:
                model = play.svc()
                structured = model.with_structured_output(schema, method=method)
                same(structured.invoke("x"), schema(**data))
                both = model.with_structured_output(schema, method=method, include_raw=True)
                same(both.invoke("x")["parsed"], schema(**data))
        for name, form in (("Typed", Typed), ("Meeting", SCHEMA)):
            made = lambda m: m.with_structured_output(form, method=method)
            script = [calls((name, GOOD)) if called else json.dumps(GOOD)]
            same(on_both(script, lambda m: made(m).invoke("x"))[0], GOOD)
            same(on_both(script, lambda m: list(made(m).stream("x"))[-1])[0], GOOD)
