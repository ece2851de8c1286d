"""What callers may do wrong is told as an error of this package, with what to do instead."""

from __future__ import annotations

import pytest
import trio
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import ConfigurableField

import langchain_svc as svc


def endless():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [10**5_000, [{"x": -(10**6_000)}], endless()],
    ids=["integer", "integer inside", "list in itself"],
)
def test_arguments_of_a_past_call_that_no_json_can_hold(chat, sandbox, value):
    call = {"name": "f", "args": {"a": value}, "id": "1"}
    asked = [
        HumanMessage("x"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("y", tool_call_id="1"),
    ]
    with pytest.raises(svc.SvcRequestError, match="cannot be written as JSON"):
        chat.invoke(asked)
    assert not sandbox.requests


def test_two_tools_of_one_name_are_refused(chat, sandbox):
    twins = [{"name": "account", "description": what} for what in ("Look it up.", "Delete it.")]
    other = {"name": "search", "description": "Search."}
    bound = chat.bind_tools([twins[0], other, twins[1]])
    with pytest.raises(ValueError, match="two tools are called 'account'"):
        bound.invoke("?")
    with pytest.raises(svc.SvcRequestError, match="'account'"):
        chat.invoke("?", tools=twins)
    assert not sandbox.requests


def test_an_interface_that_a_run_chooses(sandbox, monkeypatch):
    """A field cannot be configured alone that others depend on; the error says what can."""
    field = ConfigurableField(id="interface")
    with pytest.raises(svc.SvcRequestError, match=r"init_chat_model\('svc:svc-pro', "):
        svc.ChatSvc(**sandbox.v1).configurable_fields(interface=field)
    svc.register()
    monkeypatch.setenv("SVC_BASE_URL_V1", sandbox.v1["base_url_v1"])
    monkeypatch.setenv("SVC_BASE_URL", sandbox.general["base_url"])
    monkeypatch.setenv("SVC_API_KEY", sandbox.v1["api_key"])
    model = init_chat_model("svc:svc-pro", configurable_fields=("model", "interface"))
    for bound in (model, model.bind_tools([{"name": "look"}]), model.with_structured_output(bool)):
        for interface, path in {"v1": "/v1/chat/completions", "general": "/api/chat"}.items():
            bound.invoke("Is it?", {"configurable": {"interface": interface}})
            assert sandbox.requests[-1].path == path


async def _read(pieces):
    return [piece async for piece in pieces]


WAYS = {
    "ainvoke": lambda one, x: one.ainvoke(x),
    "astream": lambda one, x: _read(one.astream(x)),
    "abatch": lambda one, x: one.abatch([x, x]),
    "events": lambda one, x: _read(one.astream_events(x, version="v2")),
    "alist_models": lambda one, _: one.alist_models(),
}


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        (kind, way)
        for kind in ("chat", "tool")
        for way in WAYS
        if (kind, way) != ("tool", "alist_models")
    ],
)
def test_on_trio_asynchronous_calls_say_what_to_do(sandbox, kind, way):
    one = {
        "chat": lambda: svc.ChatSvc(**sandbox.v1),
        "tool": lambda: svc.SvcTranslate(**sandbox.general),
    }[kind]()
    given = {"text": "x", "target": "de"} if kind == "tool" else "x"
    with one, pytest.raises(svc.SvcRequestError, match="to_thread"):
        trio.run(WAYS[way], one, given)


def test_what_it_says_to_do_on_trio_works(chat):
    async def ask():
        return await trio.to_thread.run_sync(chat.invoke, "Say exactly: trio")

    assert "trio" in trio.run(ask).text
