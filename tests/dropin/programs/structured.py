"""with_structured_output and bind_tools over many schemas."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from common import GOOD, Meeting, add
from player import Play, calls, on_both, same
from pydantic import BaseModel, Field, RootModel, field_validator
from registry import program
from typing_extensions import TypedDict

METHODS = ("json_schema", "function_calling", "json_mode")


class Colour(enum.Enum):
    RED = "red"


class Node(BaseModel):
    """A tree."""

    name: str
    children: list[Node] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool


class Pet(BaseModel):
    """A pet."""

    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Many(BaseModel):
    """Many types."""

    day: date
    price: Decimal
    id: UUID
    colour: Colour
    pair: tuple[int, str]
    names: set[str]
    either: int | str
    maybe: float | None = None
    table: dict[str, int]
    raw: bytes


class Checked(BaseModel):
    """With an alias and a validator."""

    people: int = Field(alias="howMany", gt=0)

    @field_validator("people")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


class Typed(TypedDict):
    """A meeting."""

    city: str
    people: int


MANY = {
    "day": "2024-02-29",
    "price": "1.50",
    "id": "12345678-1234-5678-1234-567812345678",
    "colour": "red",
    "pair": [1, "a"],
    "names": ["a", "b"],
    "either": "x",
    "maybe": None,
    "table": {"a": 1},
    "raw": "abc",
}
CASES = [
    (Meeting, GOOD),
    (Node, {"name": "a", "children": [{"name": "b", "children": []}]}),
    (Pet, {"pet": {"kind": "dog", "barks": True}}),
    (Many, MANY),
    (Checked, {"howMany": 4}),
]


@program("with_structured_output: schemas and methods", "langchain-core")
def schemas():
    """Recursive, discriminated, dates, enums, sets, aliases, validators, $defs: each with three methods; include_raw."""
    for schema, data in CASES:
        for method in METHODS:
            answer = (
                calls((schema.__name__, data)) if method == "function_calling" else json.dumps(data)
            )
            with Play([answer, answer]) as play:
                model = play.svc()
                structured = model.with_structured_output(schema, method=method)
                same(structured.invoke("x"), schema(**data))
                both = model.with_structured_output(schema, method=method, include_raw=True)
                same(both.invoke("x")["parsed"], schema(**data))
    for form in (Typed, {**Meeting.model_json_schema(), "title": "Meeting"}):
        for method in METHODS:
            name = form["title"] if isinstance(form, dict) else form.__name__
            answer = calls((name, GOOD)) if method == "function_calling" else json.dumps(GOOD)
            made = lambda m: m.with_structured_output(form, method=method)  # noqa: B023, E731
            came, _ = on_both([answer], lambda m: made(m).invoke("x"))  # noqa: B023
            same(came, GOOD)


@program("with_structured_output: a list, a wrong answer", "langchain-core")
def lists():
    """RootModel[list[int]]; an answer that does not fit is asked for again."""

    class Numbers(RootModel[list[int]]):
        """Numbers."""

    with Play(["[1, 2]"]) as play:
        same(play.svc().with_structured_output(Numbers).invoke("x"), Numbers([1, 2]))
    with Play(['{"city": "Rome"}', json.dumps(GOOD)]) as play:
        same(play.svc().with_structured_output(Meeting).invoke("x"), Meeting(**GOOD))
        same(len(play.requests), 2)
        assert "people" in play.asked[1]


@program("with_structured_output: streams", "langchain-core")
def streams():
    """Partial objects of a dict schema; the last is the whole one."""
    schema = {**Meeting.model_json_schema(), "title": "Meeting"}
    for method, answer in (
        ("json_schema", json.dumps(GOOD)),
        ("function_calling", calls(("Meeting", GOOD))),
    ):
        with Play([answer]) as play:
            pieces = list(play.svc().with_structured_output(schema, method=method).stream("x"))
            same(pieces[-1], GOOD)


@dataclass
class Point:
    """A point."""

    x: int
    y: int


@program("bind_tools: forms of tools and choices", "langchain-core")
def forms():
    """Functions, classes, dataclass, TypedDict, OpenAI's (also flat) and Anthropic's dicts; 8 choices; no tools; twice."""
    openai = {
        "name": "add",
        "description": "Add.",
        "parameters": add.args_schema.model_json_schema(),
    }
    anthropic = {"name": "add", "description": "Add.", "input_schema": openai["parameters"]}
    nested = {"type": "function", "function": openai}
    flat = {"type": "function", **openai}
    for form in (add, nested, flat, openai, anthropic, add.func):
        with Play([calls(("add", {"a": 1, "b": 2}))]) as play:
            message = play.svc().bind_tools([form]).invoke("x")
            same(message.tool_calls[0]["args"], {"a": 1, "b": 2})
    named = {"type": "function", "function": {"name": "add"}}
    for choice in (
        None,
        "auto",
        "any",
        "required",
        True,
        "add",
        named,
        {"type": "tool", "name": "add"},
    ):
        with Play([calls(("add", {"a": 1, "b": 2}))]) as play:
            message = play.svc().bind_tools([add], tool_choice=choice).invoke("x")
            same(len(message.tool_calls), 1)
    with Play(["hi", "hi"]) as play:
        same(play.svc().bind_tools([]).invoke("x").text, "hi")
        same(play.svc().bind_tools([add], tool_choice="none").invoke("x").tool_calls, [])


@program("bind_tools: a built-in tool of another provider", "langchain-core")
def built_in():
    """`{"type": "web_search_preview"}` is refused by name, as a SvcError."""
    from langchain_svc import SvcError

    with Play([]) as play:
        try:
            play.svc().bind_tools([{"type": "web_search_preview"}])
        except SvcError as error:
            assert "web_search_preview" in str(error), error
        else:
            raise AssertionError("it was taken")
