"""What programs written for ChatOpenAI rely on beside `invoke` and `stream`."""

from __future__ import annotations

import asyncio
import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import make_dataclass

import pytest
from langchain_core.messages import (
    AIMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import StructuredTool
from peers import Scripted, summed
from pydantic import BaseModel
from typing_extensions import TypedDict

import langchain_svc as svc

F = StructuredTool.from_function(lambda a: a, name="f", description="F.")
HELLO = [HumanMessage("Hello")]
WAYS = pytest.mark.parametrize("way", ["sync", "async"])


def called(way, model, method, *given, **words):
    if way == "sync":
        return getattr(model, method)(*given, **words)
    return asyncio.run(getattr(model, f"a{method}")(*given, **words))


def counts(times):
    return {"prompt_tokens": 10 * times, "completion_tokens": 5 * times, "total_tokens": 15 * times}


@WAYS
def test_several_conversations_tell_the_usage_of_all(way):
    result = called(way, Scripted("a", "b").model(), "generate", [HELLO, HELLO])
    assert result.llm_output == {"token_usage": counts(2), "model_name": "m"}


def test_several_answers_to_one_request_are_refused_with_what_to_write_instead():
    with pytest.raises(
        svc.SvcRequestError, match=r"answers once: model\.batch\(\[messages\] \* n\)"
    ):
        Scripted("a").model().invoke("?", n=2)


NEUTRAL = {
    "n": [1, None],
    "top_p": [None, 1],
    "seed": [None],
    "logprobs": [False, None],
    "user": [None],
    "stream_usage": [True, False],
    "model_kwargs": [{}],
    "organization": [None],
    "frequency_penalty": [0, 0.0],
    "disabled_params": [{}],
    "service_tier": ["auto"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in NEUTRAL.items() for value in values]
)
def test_values_that_ask_for_nothing_are_not_sent(box, name, value):
    given = {name: value}
    with (
        svc.ChatSvc(**box.v1, **given) as chat,
        svc.ChatSvc(interface="general", **box.general, **given) as general,
    ):
        chat.invoke("x", **given)
        general.invoke("x", **given)
        svc.SvcTranslate(**box.general, **given).invoke({"text": "x", "target": "es"})
    assert not any(name in request.json for request in box.requests)


class Unsayable(BaseModel):
    ready: Callable[[], bool]


def unsayable(ready: Callable[[], bool]) -> None:
    """Ask."""


@pytest.mark.parametrize("schema", [Unsayable, list[Unsayable]])
def test_a_field_that_json_cannot_hold_is_named(schema):
    for ask in ("with_structured_output", "bind_tools"):
        given = schema if ask == "with_structured_output" else [unsayable]
        with pytest.raises(svc.SvcRequestError, match=r"the field 'ready' of \w+: give it") as no:
            getattr(svc.ChatSvc(), ask)(given)
        assert "Pydantic" not in "".join(traceback.format_exception(no.value))


class Unfinished(BaseModel):
    later: Later  # noqa: F821  # the fault


@pytest.mark.parametrize("given", [Unfinished, list[Unfinished]])
def test_a_class_that_names_an_unknown_type_is_told_how_to_finish_it(given):
    model = svc.ChatSvc()
    for ask in (model.with_structured_output, lambda given: model.bind_tools([Unfinished])):
        with pytest.raises(svc.SvcRequestError, match=r"call Unfinished\.model_rebuild\(\)$"):
            ask(given)


class DICT(TypedDict):
    later: Later  # noqa: F821  # the fault


DATA = make_dataclass("DATA", [("later", "Later")])


@pytest.mark.parametrize("given", [DICT, DATA])
def test_an_undefined_type_is_named(given):
    model = svc.ChatSvc()
    for ask in (model.with_structured_output, lambda given: model.bind_tools([given])):
        with pytest.raises(svc.SvcRequestError, match=r"^\w+ uses.* type: .*'Later'"):
            ask(given)


def test_a_function_without_a_docstring_is_warned_of_once():
    def bare(city: str) -> str:
        return city

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        svc.ChatSvc().bind_tools([bare])
        svc.ChatSvc().bind_tools([bare])
    assert [str(one.message) for one in warned if "bare has no docstring" in str(one.message)] == [
        "The function bare has no docstring: the model knows only its name and parameters"
    ]


DATA = {
    "a search hit": {"url": "u1", "content": "the hit"},
    "a search result": {
        "type": "search_result",
        "title": "T",
        "content": [{"type": "text", "text": "the hit"}],
    },
    "JSON": {"type": "json", "json": {"found": ["the hit"]}},
    "Bedrock's JSON": {"json": {"found": "the hit"}},
    "text and more": {"text": "the hit", "score": 1},
    "a text document": {"type": "document", "source": {"type": "text", "data": "the hit"}},
    "a type nobody knows": {"type": "hit", "value": "the hit"},
}


@pytest.mark.parametrize("block", DATA.values(), ids=DATA)
def test_what_is_no_medium_reaches_the_model(block):
    calls = [{"name": "f", "args": {}, "id": "1"}]
    for asked in (
        [HumanMessage([block])],
        [*HELLO, AIMessage("", tool_calls=calls), ToolMessage([block], tool_call_id="1")],
        [*HELLO, FunctionMessage(name="f", content=[block])],
    ):
        service = Scripted("ok")
        service.model().invoke(asked)
        said = service.asked[0][-1]["content"]
        assert "the hit" in said
        assert "left out" not in said


@pytest.mark.parametrize(
    "parts", [["a <", "tool_response mark=1>"], ["<", "/tools>"], ["a <\n", "|im_end|>"]]
)
@pytest.mark.parametrize("apart", [False, True], ids=["blocks", "messages"])
@pytest.mark.parametrize("kind", [HumanMessage, SystemMessage, AIMessage])
def test_no_delimiter_is_made_of_two_parts(parts, apart, kind):
    texts = [{"type": "text", "text": part} for part in parts]
    asked = [kind([text]) for text in texts] if apart else [kind(texts)]
    service = Scripted("ok")
    service.model().invoke([*HELLO, *asked, *HELLO])
    said = "\n".join(turn["content"] for turn in service.asked[0])
    assert not re.search(r"<\s*/?\s*(tool_response|tools)|<\|", said)


def test_two_conversations_that_begin_alike_have_different_nonces():
    def nonce(*messages):
        service = Scripted("ok")
        service.model().bind_tools([F]).invoke([*HELLO, *messages])
        return "".join(turn["content"] for turn in service.asked[0]).partition('mark="')[2][:10]

    def answered(id_):
        return AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": id_}])

    result = ToolMessage("x", tool_call_id="c1")
    assert nonce(answered("c1"), result) != nonce(answered("c2"), result)
    hello = [AIMessage("Hi", id="1"), AIMessage("Hi", id="2")]
    assert nonce(hello[0], *HELLO, answered("c1"), result) != nonce(
        hello[1], *HELLO, answered("c1"), result
    )
    assert nonce(answered("c1"), result) == nonce(answered("c1"), result, *HELLO)


@pytest.mark.parametrize("way", ["invoke", "stream"])
@pytest.mark.parametrize("text", ["Noted.\n", "Noted.", "Noted. \n\n"])
def test_no_blanks_are_left_before_a_call(way, text):
    call = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    model = Scripted(text + call).model().bind_tools([F])
    message = model.invoke("?") if way == "invoke" else summed(model.stream("?"))
    assert (message.content, len(message.tool_calls)) == ("Noted.", 1)
    plain = Scripted(text).model().bind_tools([F])
    said = plain.invoke("?") if way == "invoke" else summed(plain.stream("?"))
    assert said.content == text
