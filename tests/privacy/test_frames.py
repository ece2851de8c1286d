"""With privacy="phi" no frame of an error holds a prompt or an answer, by whatever way it left.

The frames are those of this package and of LangChain; a caller's own variables are his own.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
import traceback

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumps, loads
from langchain_core.runnables import RunnableBinding
from langchain_core.tools import BaseTool
from peers import RawServer, Scripted, hearing, response
from pydantic import BaseModel
from share import pairs, part

import langchain_svc as svc
from langchain_svc._settings import MAKERS, RUNS

pytestmark = pytest.mark.filterwarnings(
    "ignore:astream_events version='v1'", "ignore:astream_log is deprecated"
)
ASKED = "Zebulon-Quux takes warfarin"
ANSWERED = "Zebulon-Quux has a granuloma"
MARKS = ("Zebulon", "Quux", "warfarin", "granuloma")


def frames(error):
    """The frames behind an error with their local variables, and those of its causes."""
    told = []
    while error is not None:
        found = traceback.TracebackException.from_exception(error, capture_locals=True)
        told += [f"{frame.name}: {frame.locals}" for frame in found.stack if frame.filename != __file__]  # fmt: skip
        error = error.__cause__ or error.__context__
    return told


def tells_nothing(error):
    for frame in frames(error):
        assert not [mark for mark in MARKS if mark in frame], frame[:2000]


async def _alone(piece):
    yield piece


async def listed(pieces):  # here, where frames are not looked at
    return [piece async for piece in pieces]


def _later(use):
    async def later(runnable, given):
        return await use(runnable, given)

    return lambda runnable, given: asyncio.run(later(runnable, given))


USES = {
    "invoke": lambda r, x: r.invoke(x),
    "ainvoke": _later(lambda r, x: r.ainvoke(x)),
    "stream": lambda r, x: list(r.stream(x)),
    "astream": _later(lambda r, x: listed(r.astream(x))),
    "batch": lambda r, x: r.batch([x, x]),
    "abatch": _later(lambda r, x: r.abatch([x, x])),
    "batch_as_completed": lambda r, x: list(r.batch_as_completed([x, x])),
    "abatch_as_completed": _later(lambda r, x: listed(r.abatch_as_completed([x, x]))),
    "events v1": _later(lambda r, x: listed(r.astream_events(x, version="v1"))),
    "events v2": _later(lambda r, x: listed(r.astream_events(x, version="v2"))),
    "log": _later(lambda r, x: listed(r.astream_log(x))),
    "transform": lambda r, x: list(r.transform(iter([x]))),
    "atransform": _later(lambda r, x: listed(r.atransform(_alone(x)))),
    "map": lambda r, x: r.map().invoke([x, x]),
    "amap": _later(lambda r, x: r.map().ainvoke([x, x])),
    "listeners": _later(lambda r, x: r.with_alisteners().ainvoke(x)),
    "assign": lambda r, x: r.assign(more=lambda found: found).invoke(x),
    "pick": lambda r, x: r.pick("name").invoke(x),
    "batch, returned": lambda r, x: r.batch([x, x], return_exceptions=True),
    "abatch, returned": _later(lambda r, x: r.abatch([x, x], return_exceptions=True)),
    "batch_as_completed, returned": lambda r, x: [
        one for _, one in r.batch_as_completed([x, x], return_exceptions=True)
    ],
    "abatch_as_completed, returned": _later(
        lambda r, x: listed(r.abatch_as_completed([x, x], return_exceptions=True))
    ),
}


def errors_of(use, made, given):
    """The errors of a use, raised or returned."""
    try:
        found = use(made, given)
    except Exception as error:
        return [error]
    return [one[1] if isinstance(one, tuple) else one for one in found]


class Finding(BaseModel):
    name: str


def finding(name: str) -> str:
    """Note a finding."""
    return name


CHAT = {
    "model": lambda m: m,
    "bind": lambda m: m.bind(temperature=0.5),
    "bind_tools": lambda m: m.bind_tools([finding]),
    "with_config": lambda m: m.with_config(tags=["t"]),
    "with_retry": lambda m: m.with_retry(stop_after_attempt=2, wait_exponential_jitter=False),
    "with_fallbacks": lambda m: m.with_fallbacks([m.bind(temperature=0.1)]),
    "bind, then all others": lambda m: (
        m.bind_tools([finding])
        .bind(temperature=0)
        .with_config(tags=["t"])
        .with_retry(stop_after_attempt=1)
        .with_fallbacks([m])
    ),
    "json_schema": lambda m: m.with_structured_output(Finding),
    "function_calling": lambda m: m.with_structured_output(Finding, method="function_calling"),
    "json_mode": lambda m: m.with_structured_output(Finding, method="json_mode"),
    "include_raw": lambda m: m.with_structured_output(Finding, include_raw=True),
}


@pytest.fixture(scope="module")
def refusing():
    """A service that refuses whatever it is asked, and repeats it."""

    def refuse(connection):
        said = server.requests[-1].partition(b"\r\n\r\n")[2].decode("utf-8", "replace")
        body = json.dumps({"error": {"message": said}}).encode()
        connection.sendall(response(body, status="400 Bad Request"))

    with RawServer(refuse) as server:
        yield server


KINDS = {
    **{
        name: lambda at, make=make: (make(svc.ChatSvc(**at.v1, privacy="phi")), ASKED)
        for name, make in CHAT.items()
    },
    "general interface": lambda at: (
        svc.ChatSvc(interface="general", api_key="k", base_url=at.url, privacy="phi"),
        ASKED,
    ),
    "tool": lambda at: (
        svc.SvcMedicalConsult(api_key="k", medical_base_url=at.url, privacy="phi"),
        {"message": ASKED},
    ),
    "tool, wrong arguments": lambda at: (
        svc.SvcMedicalConsult(api_key="k", medical_base_url=at.url, privacy="phi"),
        {"massage": ASKED},
    ),
}


@pytest.mark.parametrize(("kind", "use"), pairs(KINDS, list(USES)))
def test_an_error_has_no_frame_with_the_prompt(refusing, kind, use):
    made, given = KINDS[kind](refusing)
    found = errors_of(USES[use], made, given)
    assert found
    for error in found:
        wrong = kind == "tool, wrong arguments"
        assert isinstance(error, svc.SvcRequestError if wrong else svc.SvcBadRequestError)
        tells_nothing(error)


AS_TOOLS = {
    "chat": lambda at: (
        svc.ChatSvc(**at.v1, privacy="phi")
        .bind(temperature=0)
        .with_types(input_type=str)
        .as_tool(description="ask")
    ),
    "tool": lambda at: svc.SvcMedicalConsult(
        api_key="k", medical_base_url=at.url, privacy="phi"
    ).as_tool(),
}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("make", AS_TOOLS.values(), ids=AS_TOOLS)
def test_what_became_a_tool_is_private(refusing, make, asynchronous):
    tool, heard = make(refusing), hearing()
    given, config = {next(iter(tool.args)): ASKED}, {"callbacks": [heard]}
    with pytest.raises(svc.SvcError, match="400") as caught:
        asyncio.run(tool.ainvoke(given, config)) if asynchronous else tool.invoke(given, config)
    tells_nothing(caught.value)
    assert len(heard.told) >= 3 and not [mark for mark in MARKS if mark in str(heard.told)]


@pytest.mark.parametrize("name", ["json_schema", "function_calling", "json_mode"])
def test_an_answer_that_does_not_fit_stands_in_no_frame(name):
    model = Scripted(*[ANSWERED] * 3).model(privacy="phi")
    with pytest.raises(svc.SvcOutputError) as caught:
        CHAT[name](model).invoke(ASKED)
    tells_nothing(caught.value)
    assert "granuloma" not in repr(vars(caught.value))


# LangChain raises the error where the raw answer has already been streamed.
RAW = {name: use for name, use in USES.items() if name != "pick"}


@pytest.mark.parametrize("use", part(RAW))
def test_the_error_beside_a_raw_answer_has_no_frames_either(use):
    made = CHAT["include_raw"](Scripted(*[ANSWERED] * 6).model(privacy="phi"))
    try:
        found = RAW[use](made, ASKED)
    except svc.SvcOutputError as error:
        found = {"parsing_error": error}
    results = (
        [found]
        if isinstance(found, dict)
        else [one[1] if isinstance(one, tuple) else one for one in found]
    )
    assert results
    for result in results:
        assert isinstance(result["parsing_error"], svc.SvcOutputError)
        tells_nothing(result["parsing_error"])


def test_a_private_binding_answers_and_serves_as_any_other():
    call = '<tool_call>{"name": "finding", "arguments": {"name": "x"}}</tool_call>'
    model = Scripted(*[call] * 5).model(privacy="phi")
    bound = model.bind_tools([finding]).with_config(tags=["t"])
    assert bound.kwargs["tools"] and bound.bound is model and bound.config["tags"] == ["t"]
    assert bound.invoke(ASKED).tool_calls[0]["args"] == {"name": "x"}
    assert [one.tool_calls[0]["name"] for one in bound.batch([ASKED, ASKED])] == ["finding"] * 2
    assert sum(len(piece.tool_call_chunks) > 0 for piece in bound.stream(ASKED)) > 0
    assert bound.stream_events(ASKED, version="v3").output.tool_calls[0]["name"] == "finding"


def test_a_private_binding_can_be_pickled_and_saved(refusing):
    with svc.ChatSvc(**refusing.v1, privacy="phi") as model:
        bound = model.bind(temperature=0.5)
        again = pickle.loads(pickle.dumps(bound))
        assert type(again) is type(bound) and again.kwargs == {"temperature": 0.5}
        loaded = loads(
            dumps(bound),
            allowed_objects=[RunnableBinding, svc.ChatSvc],
            valid_namespaces=["langchain_svc"],
            secrets_map={"SVC_API_KEY": "k"},
        )
        assert loaded.kwargs == {"temperature": 0.5} and loaded.bound.privacy == "phi"


def test_every_verb_of_langchain_is_known():
    """A new one is private, or it is named here: these neither take texts nor make a runnable,
    or (`pipe`, `configurable_fields`) make a chain, whose frames are its own."""
    open_ones = {
        "asdict",
        "dict",
        "pipe",
        "configurable_fields",
        "configurable_alternatives",
        "bind_tools",
        "get_num_tokens",
        "get_token_ids",
        "model_copy",
        "model_post_init",
        "save",
        "to_json",
        "to_json_not_implemented",
        "get_graph",
        "get_name",
        "get_prompts",
        "config_schema",
    }
    for base in (BaseChatModel, BaseTool):
        verbs = {
            name
            for name, value in inspect.getmembers(base, inspect.isfunction)
            if value.__module__.startswith("langchain_core") and not name.startswith("_")
        }
        schemas = {name for name in verbs if name.endswith("schema")}
        assert verbs - schemas <= {*RUNS, *MAKERS, *open_ones}


def test_frames_do_hold_the_prompt_where_nothing_is_private(refusing):
    """Else this file would prove nothing."""
    with svc.ChatSvc(**refusing.v1) as model:
        for name, make in CHAT.items():
            with pytest.raises(svc.SvcBadRequestError) as caught:
                make(model).invoke(ASKED)
            assert any("Zebulon" in frame for frame in frames(caught.value)), name
