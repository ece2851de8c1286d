"""TypedDicts as schemas and as tools: what may be left out is never asked for."""

from __future__ import annotations

import itertools
import json
import typing
from typing import Annotated, Any, NotRequired, Required

import pytest
import typing_extensions
from langchain_core.messages import HumanMessage
from peers import Scripted
from pydantic import ConfigDict, Field

# The key `size` may be left out, in every way to say so; `name` may not.
MAKERS = {"typing": typing.TypedDict, "typing_extensions": typing_extensions.TypedDict}
OPTIONAL: dict[str, tuple[dict[str, Any], bool]] = {
    "not required": ({"name": str, "size": NotRequired[int]}, True),
    "required": ({"name": Required[str], "size": int}, False),
    "described": ({"name": str, "size": NotRequired[Annotated[int, ..., "how many"]]}, True),
    "within": ({"name": str, "size": Annotated[NotRequired[int], "x"]}, True),
    "default": ({"name": Annotated[str, ..., "its name"], "size": Annotated[int, 3, "how many"]}, True),
    "none": ({"name": str, "size": Annotated[typing.Optional[int], None]}, True),  # noqa: UP045
    "pydantic": ({"name": str, "size": NotRequired[Annotated[int, Field(ge=1)]]}, True),
}  # fmt: skip
METHODS = ["json_schema", "function_calling", "json_mode"]


def made(maker, way):
    fields, total = OPTIONAL[way]
    kind = MAKERS[maker]("Part", fields, total=total)
    kind.__doc__ = "A part."
    return kind


# What holds the part: the type, and the JSON of an answer.
AROUND: dict[str, Any] = {
    "alone": lambda kind, maker: (kind, lambda part: part, lambda part: part),
    "list": lambda kind, maker: (list[kind], lambda part: {"answer": [part]}, lambda part: [part]),
    "map": lambda kind, maker: (
        dict[str, kind], lambda part: {"a": part}, lambda part: {"a": part},
    ),
    "optional": lambda kind, maker: (
        kind | None, lambda part: {"answer": part}, lambda part: part,
    ),
    "within": lambda kind, maker: (
        MAKERS[maker]("Kit", {"parts": list[kind]}),
        lambda part: {"parts": [part]}, lambda part: {"parts": [part]},
    ),
}  # fmt: skip
ROWS = list(itertools.product(MAKERS, OPTIONAL, AROUND))


@pytest.mark.parametrize(("maker", "way", "around"), ROWS)
def test_a_key_that_may_be_left_out_is_not_asked_for_and_another_is(maker, way, around):
    schema, written, read = AROUND[around](made(maker, way), maker)
    texts = [
        json.dumps(written(part))
        for part in ({"name": "bolt"}, {"size": 2}, {"name": "nut", "size": 2})
    ]
    service = Scripted(*texts)
    chain = service.model().with_structured_output(schema)
    assert chain.invoke("?") == read({"name": "bolt"})
    assert chain.invoke("?") == read({"name": "nut", "size": 2})
    assert len(service.asked) == 3
    assert "name: required, but missing" in service.asked[2][-1]["content"]


@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("way", OPTIONAL)
def test_so_it_is_by_every_method(way, method):
    text = '{"name": "bolt"}'
    if method == "function_calling":
        text = f'<tool_call>{{"name": "Part", "arguments": {text}}}</tool_call>'
    service = Scripted(text, text)
    chain = service.model().with_structured_output(made("typing", way), method=method)
    assert chain.invoke("?") == [*chain.stream("?")][-1] == {"name": "bolt"}
    assert len(service.asked) == 2


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("way", OPTIONAL)
def test_so_it_is_in_a_tool(way, maker):
    service = Scripted('<tool_call>{"name": "Part", "arguments": {"name": "bolt"}}</tool_call>')
    model = service.model().bind_tools([made(maker, way)], tool_choice="any")
    (call,) = model.invoke("?").tool_calls
    assert call["args"] == {"name": "bolt"}
    said = service.asked[0][0]["content"]
    assert '"required": ["name"]' in said and "A part." in said
    assert (
        '{"name": "Part", "arguments": {"name":' in said
        and '"arguments": {"name": "...", "size"' not in said
    )
    assert (
        model.bound.get_num_tokens_from_messages([HumanMessage("?")], tools=[made(maker, way)]) > 20
    )


class Tree(typing.TypedDict, total=False):
    """A tree."""

    label: Required[Annotated[str, ..., "what it is called"]]
    kids: list[Tree]


class Leaf(Tree):
    """The end of a tree."""

    colour: Annotated[str, "green", "its colour"]
    weight: float


def test_a_typed_dict_may_hold_itself_and_inherit():
    tree = {"label": "a", "kids": [{"label": "b", "kids": [{"label": "c"}]}]}
    wrong = {"label": "a", "kids": [{"label": "b", "kids": [{}]}]}
    service = Scripted(
        json.dumps(wrong), json.dumps(tree), '{"label": "x"}', '{"label": "x", "weight": 2}'
    )
    assert service.model().with_structured_output(Tree).invoke("?") == tree
    assert "kids[0].kids[0].label: required" in service.asked[1][-1]["content"]
    assert service.model().with_structured_output(Leaf).invoke("?") == {"label": "x", "weight": 2}
    shown = service.asked[2][-1]["content"]
    assert all(
        word in shown for word in ("its colour", "green", "what it is called", "The end of a tree")
    )


class Open(typing_extensions.TypedDict):
    """What may have more keys."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]  # Pydantic's way
    name: str


def test_what_pydantic_itself_knows_of_a_typed_dict_holds():
    text = '[{"name": "x", "more": 1}]'
    service = Scripted(text)
    assert service.model().with_structured_output(list[Open]).invoke("?") == json.loads(text)
