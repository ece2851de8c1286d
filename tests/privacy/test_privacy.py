"""With privacy="phi" whoever records runs is told lengths and hashes; the caller gets the answer."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import re
import subprocess
import sys
import traceback
from typing import ClassVar

import pytest
from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.globals import set_debug, set_llm_cache
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompt_values import StringPromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import collect_runs, tracing_v2_enabled
from langsmith import Client
from peers import RawServer, RunKeeper, Scripted, hearing, response
from privacy.test_leaks import DOORS, KEY, clean, is_run, settings, with_locals
from pydantic import BaseModel, ValidationError
from share import pairs

import langchain_svc as svc
from langchain_svc import PrivateCallbacks
from langchain_svc.privacy import mask, masked, masks
from langchain_svc.sandbox import Sandbox

ASKED = "Zebulon-Quux, 61, takes warfarin and coughs blood"
ANSWER = "Zebulon-Quux should see a pulmonologist at once"
# No mark can stand in a hash, an id or a time.
MARKS = ("Zebulon", "Quux", "warfarin", "pulmonologist", "Xerxes", "8.1472639", "VX93417", "granuloma")  # fmt: skip
PATIENT = svc.PatientContext(
    age=61,
    sex="female",
    medical_history=["granuloma of Xerxes", "code VX93417"],
    lab_results={"troponin": 8.1472639},
)
CALL = json.dumps(
    {
        "name": "svc_decision_support",
        "arguments": {"symptoms": ["Zebulon-Quux coughs"], "specialty": "pneumology"},
    }
)
ANSWERS = (f"<tool_call>{CALL}</tool_call>", ANSWER)


class Tracer(RunKeeper):
    @property
    def told(self):
        return [
            text + str(pickled(run)) for text, run in zip(super().told, self.every, strict=True)
        ]


def pickled(thing):
    try:
        return pickle.dumps(thing)
    except Exception:
        return b""


def seen(event):
    """All that an event's arguments tell, by any way of looking at them."""
    args, kwargs = event
    found = [repr(event), str(pickled(args)), str(pickled(kwargs))]
    for value in (*args, *kwargs.values()):
        found += [str(value), dumps(value), repr(getattr(value, "__dict__", ""))]
        if isinstance(value, BaseException):
            found += ["".join(traceback.format_exception(value)), with_locals(value)]
    return "\n".join(found)


RECORDERS = {
    "tracer": Tracer,
    "handler": lambda: hearing(seen),
    "async handler": lambda: hearing(seen, AsyncCallbackHandler),
}


def kinds(recorder):
    return {name.split("_")[1] for name in recorder.names}


@pytest.fixture(scope="module")
def box():
    with Sandbox() as sandbox:
        yield sandbox


TO_PROGRAM = {"answer_to": "program", "deliver": str}  # whoever gets them does nothing with them


def make_agent(box, *answers, privacy="phi", medical=None, **words):
    scripted = Scripted(*(answers or ANSWERS))
    toolkit = svc.SvcMedicalToolkit(
        **box.medical, patient=PATIENT, privacy=privacy, **(medical or {})
    )
    agent = create_agent(scripted.model(privacy=privacy, **words), toolkit.get_tools())
    return agent, scripted


def question():
    return {"messages": [HumanMessage(ASKED)]}


def invoked(agent, config):
    return agent.invoke(question(), config)["messages"][-1].text


def ainvoked(agent, config):
    return asyncio.run(agent.ainvoke(question(), config))["messages"][-1].text


def streamed_messages(agent, config):
    parts = agent.stream(question(), config, stream_mode="messages")
    return "".join(part.text for part, about in parts if about["langgraph_node"] == "model")[
        -len(ANSWER) :
    ]


async def _events(agent, config):
    texts = []
    async for event in agent.astream_events(question(), config, version="v2"):
        if event["event"] == "on_chat_model_stream":
            texts.append(event["data"]["chunk"].text)
    return "".join(texts)[-len(ANSWER) :]


def evented(agent, config):
    return asyncio.run(_events(agent, config))


def batched(agent, config):
    return agent.batch([question()], config)[0]["messages"][-1].text


WAYS = [invoked, ainvoked, streamed_messages, evented, batched]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", RECORDERS.values(), ids=RECORDERS)
def test_an_agent_under_private_callbacks_is_recorded_without_a_text(box, make, way):
    recorder = make()
    agent, scripted = make_agent(box)
    answer = way(agent.with_config(callbacks=PrivateCallbacks()), {"callbacks": [recorder]})
    assert answer == ANSWER  # the caller's is real
    assert ASKED in str(scripted.asked)  # and so is what is sent
    assert "granuloma" in str(box.requests[-1].body)
    assert {"chain", "tool"} < kinds(recorder)
    clean(MARKS, *recorder.told)


@pytest.mark.parametrize("way", WAYS)
def test_without_private_callbacks_the_runs_of_model_and_tools_are_masked_all_the_same(box, way):
    tracer, handler = Tracer(), hearing(seen)
    agent, _ = make_agent(box, medical=TO_PROGRAM)
    answer = way(agent, {"callbacks": [tracer, handler]})
    assert answer == ANSWER
    runs = tracer.every
    own = [run for run in runs if run.run_type in {"llm", "tool"}]
    assert len(own) == 3
    clean(MARKS, *(f"{vars(run)}{run.model_dump_json()}" for run in own))
    clean(
        MARKS, *(told for told in handler.told if told.startswith(("on_llm", "on_chat", "on_tool")))
    )
    # A graph's own runs hold its state: without PrivateCallbacks they do, and the docs say so.
    assert any("Zebulon" in run.model_dump_json() for run in runs if run.run_type == "chain")
    # With answer_to="program" the patient's own record never enters the graph, masked or not.
    assert not any("granuloma" in run.model_dump_json() for run in runs if run.run_type != "tool")


def test_handlers_that_the_surroundings_add_are_masked_too(box, capsys):
    agent, _ = make_agent(box, *ANSWERS, *ANSWERS)
    agent = agent.with_config(callbacks=PrivateCallbacks())
    set_debug(True)
    try:
        with RawServer(lambda connection: connection.sendall(response(b"{}"))) as langsmith:
            client = Client(langsmith.url, api_key="k", auto_batch_tracing=False, info={})
            with tracing_v2_enabled(client=client), collect_runs() as collected:
                assert invoked(agent, {}) == ANSWER
                assert ainvoked(agent, {}) == ANSWER
    finally:
        set_debug(False)
    printed = capsys.readouterr().out
    assert "[llm/start]" in printed and langsmith.requests and collected.traced_runs
    clean(MARKS, printed, str(langsmith.requests))
    clean(MARKS, *(run.model_dump_json() for run in collected.traced_runs))


def test_a_private_chain_inside_a_recorded_one_is_masked(box):
    tracer = Tracer()
    prompt = ChatPromptTemplate.from_messages([("user", ASKED)])
    inner = prompt | Scripted(ANSWER).model() | StrOutputParser()
    inner = inner.with_config(callbacks=PrivateCallbacks())
    outer = RunnableLambda(lambda _, config: len(inner.invoke({}, config)))
    assert outer.invoke({}, {"callbacks": [tracer]}) == len(ANSWER)
    assert len(tracer.told) == 5
    clean(MARKS, *tracer.told)


ASKING = [door for door in DOORS if is_run(door)]


@pytest.mark.parametrize(("door", "kind"), pairs(ASKING, list(RECORDERS)))
def test_no_way_in_tells_recorders_a_text(kind, door):
    recorder = RECORDERS[kind]()
    make_one, use = DOORS[door]
    with Sandbox(api_key=KEY, medical_api_key=KEY) as box:
        used = make_one(settings(box.url, privacy="phi", timeout=20))
        answer = use(used, {"callbacks": [recorder]})
        assert answer and getattr(answer, "status", "success") == "success"
        used.close()
    assert recorder.told
    clean(MARKS, *recorder.told)


@pytest.mark.parametrize("make", [Tracer, hearing])
def test_the_newer_stream_of_events_is_the_callers_and_its_record_is_not(box, make):
    recorder = make()
    with svc.ChatSvc(**box.v1, privacy="phi") as model:
        stream = model.stream_events(ASKED, {"callbacks": [recorder]}, version="v3")
        assert "Zebulon" in str(stream.text)
    clean(MARKS, *recorder.told)

    async def ask():
        async with svc.ChatSvc(**box.v1, privacy="phi") as model:
            stream = await model.astream_events(ASKED, {"callbacks": [recorder]}, version="v3")
            return await stream.text

    assert "Zebulon" in asyncio.run(ask())
    assert recorder.told
    clean(MARKS, *recorder.told)


def test_a_chain_with_an_object_for_an_answer_is_private_as_a_whole(box):
    class Finding(BaseModel):
        name: str

    tracer = Tracer()
    text = json.dumps({"name": "Zebulon-Quux"})
    model = Scripted(text, text).model(privacy="phi")
    chain = model.with_structured_output(Finding)
    assert chain.invoke(ASKED, {"callbacks": [tracer]}) == Finding(name="Zebulon-Quux")
    raw = model.with_structured_output(Finding, include_raw=True)
    assert raw.invoke(ASKED, {"callbacks": [tracer]})["parsed"] == Finding(name="Zebulon-Quux")
    clean(MARKS, *tracer.told)


def test_what_is_counted_is_counted_all_the_same(box):
    with svc.SvcUsageCallbackHandler() as usage, svc.ChatSvc(**box.v1, privacy="phi") as model:
        answer = model.invoke(ASKED)
        list(model.stream(ASKED))
    counted = usage.models["svc-turbo"]
    assert counted.calls == 2
    assert counted.total_tokens == 2 * answer.usage_metadata["total_tokens"]


WAYS_TO_COPY = [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))]


class Shared(BaseCallbackHandler):
    """A handler whose copies record to one place, as some do."""

    heard: ClassVar = []

    def on_chain_start(self, *args, **kwargs):
        self.heard.append(seen((args, kwargs)))

    on_chain_end = on_chain_start


@pytest.mark.parametrize("again", WAYS_TO_COPY)
def test_a_copy_of_private_callbacks_is_private(again):
    Shared.heard.clear()
    callbacks = again(PrivateCallbacks([Shared()]))
    callbacks.set_handlers([*callbacks.handlers, Shared()])
    prompt = ChatPromptTemplate.from_messages([("user", ASKED)])
    prompt.invoke({}, {"callbacks": callbacks})
    prompt.invoke({}, {"callbacks": again(callbacks.handlers[0:1])})
    assert isinstance(callbacks.handlers[0], Shared)
    assert len(Shared.heard) == 6
    clean(MARKS, *Shared.heard)


# -- masks --------------------------------------------------------------------------------------------


def test_a_mask_tells_length_and_a_hash_of_this_process_only():
    assert mask("61") == mask("61") != mask("62")
    assert re.fullmatch(r"\[2 characters, hash [0-9a-f]{12}\]", mask("61"))
    assert mask("x" * 1234).startswith("[1,234 characters, ")
    assert mask("") == ""
    assert mask(mask("61")) == mask("61")
    code = "from langchain_svc.privacy import mask; print(mask('61'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[2 characters, hash ")
    assert done.stdout.strip() != mask("61")


class Odd:
    def __repr__(self):
        return ASKED


VALUES = [
    {"messages": [HumanMessage(ASKED, name="Zebulon Quux")], ASKED: {"name": ASKED}},
    {"age": 8.1472639, "input_tokens": ASKED, "model": ASKED, "usage": {"Zebulon": 3}},
    [ToolMessage(ASKED, tool_call_id="c1", artifact={"Zebulon": Odd()}), (ASKED,), {ASKED}],
    ChatMessage(ASKED, role="Zebulon Quux"),
    AIMessage(
        [{"type": "text", "text": ASKED}, {"type": "image", "base64": "Zebulon"}],
        tool_calls=[{"name": "f", "args": {"Zebulon": ASKED}, "id": "1"}],
        invalid_tool_calls=[{"name": ASKED, "args": ASKED, "id": "2", "error": ASKED}],
        additional_kwargs={"Zebulon": ASKED, "reasoning_content": ASKED},
        response_metadata={"model_name": ASKED, "id": "Zebulon", "Zebulon": 3},
    ),
    Document(ASKED, metadata={"source": ASKED}),
    [Odd(), PATIENT, ValueError(ASKED), svc.SvcStreamError("broken", partial=ASKED)],
    ChatPromptTemplate.from_messages([("user", ASKED)]).invoke({}),
    StringPromptValue(text=ASKED),
]


def test_a_value_that_holds_itself_or_very_much_ends():
    endless = {}
    endless["input"] = endless
    assert "[...]" in repr(masked(endless))
    assert len(masked(list(range(100_000)))) == 200


def test_what_tells_how_a_run_went_stays(box):
    with svc.ChatSvc(**box.v1, privacy="phi") as model:
        recorder = Handled()
        answer = model.invoke(ASKED, {"callbacks": [recorder]}, temperature=0.25)
    told = recorder.message
    assert told.usage_metadata == answer.usage_metadata
    kept = {"model_name", "finish_reason", "model_provider", "usage_source", "created", "token_usage"}  # fmt: skip
    real = answer.response_metadata
    assert {name: told.response_metadata[name] for name in kept} == {name: real[name] for name in kept}  # fmt: skip
    limits = {name: real["rate_limit"][name] for name in ("limit", "remaining", "reset_after")}
    assert told.response_metadata["rate_limit"] == limits
    assert recorder.params["temperature"] == 0.25 and recorder.params["model"] == model.model
    assert real["id"] not in repr(told) and answer.id not in repr(told)


class Handled(BaseCallbackHandler):
    """Keeps what begins a run of a model, and the message that ends it."""

    def on_chat_model_start(self, *_, invocation_params, **__):
        self.params = invocation_params

    def on_llm_end(self, response, **_):
        self.message = response.generations[0][0].message


# A record of a patient has names that LangChain and this package use for other things.
LOOKALIKES = {
    "status": "AIDS", "type": "HIV-positive", "role": "widow", "model": "Quixote", "_type": "Quixote",
    "model_name": "Quixote", "finish_reason": "deceased", "usage_source": "Quixote", "lc": "AIDS",
    "name": "Quixote", "temperature": 39.4242, "n": 39.4242, "limit": 39.4242, "created": 39.4242,
    "audio": 39.4242, "reasoning": 39.4242, "input_tokens": 39.4242, "usage": {"audio": 39.4242},
    "rate_limit": {"limit": 39.4242}, "token_usage": {"total_tokens": 39.4242}, "smoker": True,
    "usage_metadata": {"input_tokens": 39.4242}, "id": "01a2027e-53d4-7178-ab3e-de08eb20c6d2",
}  # fmt: skip
TOLD_BY_THEM = ("AIDS", "HIV", "widow", "Quixote", "deceased", "39.4242", "True", "01a2027e")


INVENTED = {"name": "Quixote", "args": {"smoker": True}, "id": "AIDS-1"}
TURNS = [
    HumanMessage("x", name="Quixote", id="AIDS-0"),
    AIMessage("", tool_calls=[INVENTED], name="Quixote", id="HIV", response_metadata=LOOKALIKES),
    ToolMessage("x", tool_call_id="AIDS-1", name="Quixote"),
    ChatMessage("x", role="widow"),
]


@pytest.mark.parametrize(
    "value",
    [
        LOOKALIKES,
        {"response_metadata": LOOKALIKES},
        {"messages": LOOKALIKES, "usage_metadata": LOOKALIKES},
        TURNS,
        *VALUES,
    ],
)
def test_no_value_of_a_chain_is_readable_whatever_its_name(value):
    tracer = Tracer()
    chain = RunnableLambda(lambda found: found) | RunnableLambda(lambda found: [found])
    chain.with_config(callbacks=PrivateCallbacks()).invoke(value, {"callbacks": [tracer]})
    assert len(tracer.every) == 3
    told = [f"{run.inputs}{run.outputs}{run.serialized}{pickled(run)}" for run in tracer.every]
    clean((*MARKS, *TOLD_BY_THEM), *told)


def test_no_name_of_a_reading_makes_it_readable_in_a_tools_run(box):
    tracer = Tracer()
    tool = svc.SvcDecisionSupport(**box.medical, privacy="phi")
    readings = {"systolic": 39.4242, "temperature": 39.4242}
    tool.invoke(
        {"symptoms": ["AIDS"], "specialty": "oncology", "vital_signs": readings},
        {"callbacks": [tracer]},
    )
    (run,) = tracer.runs
    clean(TOLD_BY_THEM, f"{run.inputs}{run.outputs}{run.serialized}{run.extra}")
    assert b'"temperature":39.4242' in box.requests[-1].body


def test_only_tools_that_were_offered_are_named(box):
    tracer = Tracer()
    calls = [
        f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'
        for name in ("svc_medical_status", "Quixote")
    ]
    model = Scripted("\n".join(calls)).model(privacy="phi")
    bound = model.bind_tools([svc.SvcMedicalStatus(**box.medical)])
    answer = bound.invoke("x", {"callbacks": [tracer]})
    assert {call["name"] for call in answer.tool_calls} >= {"Quixote"}
    (run,) = tracer.runs
    assert "svc_medical_status" in f"{run.outputs}"
    clean(TOLD_BY_THEM, f"{run.inputs}{run.outputs}")


def test_what_a_service_says_beside_its_answer_is_told_only_if_known():
    tracer = Tracer()
    model = Scripted("fine", finish_reason="deceased").model(privacy="phi", model="m2")
    model.invoke("x", {"callbacks": [tracer]})
    (run,) = tracer.runs
    clean(TOLD_BY_THEM, f"{run.inputs}{run.outputs}{run.extra}")
    assert "'m'" not in f"{run.outputs}" and "'m2'" in f"{run.extra}"


def test_a_word_of_a_call_that_nobody_knows_is_masked():
    tracer = Tracer()
    with pytest.raises(svc.SvcRequestError, match="does not take"):
        Scripted().model(privacy="phi").invoke("x", {"callbacks": [tracer]}, type="Quixote")
    (run,) = tracer.runs
    clean(TOLD_BY_THEM, f"{run.inputs}{run.extra}")


# -- caches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make_model",
    [
        lambda box, **words: svc.ChatSvc(**box.v1, **words),
        lambda box, **words: svc.ChatSvc(interface="general", **box.general, **words),
    ],
)
def test_nothing_private_is_cached(box, make_model):
    cache = InMemoryCache()
    set_llm_cache(cache)
    try:
        with make_model(box, privacy="phi") as model:
            for _ in range(2):
                model.invoke(ASKED)
                asyncio.run(model.ainvoke(ASKED))
        assert not cache._cache
        for given in (True, cache):
            with pytest.raises(ValidationError, match="cache=False"):
                make_model(box, privacy="phi", cache=given)
        open_model = make_model(box)
        with pytest.raises(svc.SvcRequestError, match="cache=False"):
            open_model.model_copy(update={"privacy": "phi"}).invoke(ASKED)
        copied = open_model.model_copy(update={"privacy": "phi", "cache": False})
        assert "Zebulon" in str(copied.invoke(ASKED))
        assert not cache._cache
        open_model.close()
    finally:
        set_llm_cache(None)


# -- errors -------------------------------------------------------------------------------------------


def test_an_error_of_a_chain_tells_its_kind_only(box):
    tracer = Tracer()

    def fail(_):
        raise KeyError(ASKED)

    chain = RunnableLambda(fail).with_config(callbacks=PrivateCallbacks())
    with pytest.raises(KeyError, match="Zebulon"):
        chain.invoke({"question": ASKED}, {"callbacks": [tracer]})
    assert "KeyError" in tracer.runs[0].error
    clean(MARKS, *tracer.told)


def test_many_other_names_do_not_hide_the_documented_models(monkeypatch):
    monkeypatch.setattr(masks, "_OFFERED", {})
    for number in range(3_000):
        params = {"invocation_params": {"model": f"model-{number}"}}
        masks.remember_offered("on_llm_start", None, params)
    message = masked(AIMessage("", response_metadata={"model_name": "svc-turbo"}))
    assert message.response_metadata == {"model_name": "svc-turbo"}
