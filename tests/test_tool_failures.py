"""A failed tool raises, and only the call of a model is answered with the failure's text."""

from __future__ import annotations

import asyncio
import pickle
import traceback

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import ToolException
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from share import part
from test_langchain_tools import CASES

import langchain_svc as svc
from langchain_svc import bulk
from langchain_svc.sandbox import Fault, Sandbox

WRONG = "Xanadu"
VALUES = ("asthma", "salbutamol", "smoking")
RECORD = (*VALUES, "troponin")  # a name, which a receipt may say
FAULTS = {
    "key refused": (Fault(status=401), svc.SvcAuthenticationError),
    "refused": (Fault(status=400), svc.SvcBadRequestError),
    "down": (Fault(status=503), svc.SvcServerError),
    "cut": (Fault(cut=True), svc.SvcConnectionError),
    "a page": (Fault(body="<html>"), svc.SvcResponseError),
    "wrong arguments": (None, svc.SvcRequestError),
}


@pytest.fixture(scope="module")
def box():
    with Sandbox() as sandbox:
        yield sandbox


def made(case, box, **words):
    """The tool of a case, which sends each request once."""
    place = case.env[1].removeprefix("SVC_").lower()
    settings = {"base_url": box.general, "base_url_v1": box.v1, "medical_base_url": box.medical}
    return case.kind(**settings[place], **case.words, max_retries=0, **words)


def call_of(tool, arguments):
    return {"name": tool.name, "args": arguments, "id": "call_1", "type": "tool_call"}


PLAIN = {
    "invoke": lambda t, x: t.invoke(x),
    "ainvoke": lambda t, x: asyncio.run(t.ainvoke(x)),
    "run": lambda t, x: t.run(x),
    "arun": lambda t, x: asyncio.run(t.arun(x)),
    "batch": lambda t, x: t.batch([x]),
    "abatch": lambda t, x: asyncio.run(t.abatch([x])),
    "stream": lambda t, x: list(t.stream(x)),
    "chain": lambda t, x: (RunnableLambda(lambda _: x) | t).invoke(None),
    "achain": lambda t, x: asyncio.run((RunnableLambda(lambda _: x) | t).ainvoke(None)),
    "lambda": lambda t, x: RunnableLambda(lambda _: t.invoke(x)).invoke(None),
}
CALLS = {
    "invoke": lambda t, x: t.invoke(call_of(t, x)),
    "ainvoke": lambda t, x: asyncio.run(t.ainvoke(call_of(t, x))),
    "batch": lambda t, x: t.batch([call_of(t, x)])[0],
    "abatch": lambda t, x: asyncio.run(t.abatch([call_of(t, x)]))[0],
}
PAIRS = [
    pytest.param(at, case, fault, id=f"{name}, {fault}")
    for at, (name, case) in enumerate(CASES.items())
    for fault in FAULTS
    if case.asked or fault != "wrong arguments"  # a tool without arguments takes no wrong ones
]


def prepared(case, box, fault):
    """The arguments of a call that will fail, and the error that it raises."""
    answer, kind = FAULTS[fault]
    box.faults = [] if answer is None else [answer]
    wrong = {"patient_age": WRONG}
    return (wrong if answer is None else case.asked), kind


@pytest.mark.parametrize(("at", "case", "fault"), PAIRS)
def test_a_failure_is_raised_and_a_call_is_answered(box, at, case, fault):
    with made(case, box) as tool:
        for name, use in part(PLAIN.items(), at):
            arguments, kind = prepared(case, box, fault)
            with pytest.raises(svc.SvcError) as caught:
                use(tool, arguments)
            assert type(caught.value) is kind, name
            assert caught.value.__cause__ is caught.value.__context__ is None, name
            tells_nothing(caught.value, bound="patient" in case.words)
        for name, use in part(CALLS.items(), at):
            arguments, _ = prepared(case, box, fault)
            message = use(tool, arguments)
            assert (message.status, message.tool_call_id) == ("error", "call_1"), name
            assert message.content.startswith(("Nothing was sent", f"{tool.name} gave no answer"))


def tells_nothing(error, *, bound):
    """Nothing of the record is in an error or its pickle, nor in a frame if it is bound.

    Frames of LangChain hold what the caller passes, unless `privacy="phi"` (privacy/test_frames.py).
    """
    kept = f"{error.receipt} {pickle.dumps(error)}"
    for word in VALUES:
        assert word not in kept, kept[:2000]
    error.receipt = None
    text = f"{error} {vars(error)} {pickle.dumps(error)}"
    if bound:
        captured = traceback.TracebackException.from_exception(error, capture_locals=True)
        text += "".join(str(frame.locals) for frame in captured.stack if frame.filename != __file__)
    for word in RECORD:
        assert word not in text, text[:2000]
    assert WRONG not in f"{error} {vars(error)} {pickle.dumps(error)}"


@pytest.mark.parametrize("fault", part(FAULTS))
def test_a_bulk_run_counts_the_failures(box, fault, tmp_path):
    """An answer that is an error's text would be a row that is done."""
    case = CASES["MedicalConsultBound"]
    answer, kind = FAULTS[fault]
    rows = [{"id": n, "prompt": f"question {n}"} for n in range(3)]
    with made(case, box) as tool:
        arguments, _ = prepared(case, box, fault)
        box.faults = [] if answer is None else answer
        asking = RunnableLambda(lambda _: tool.invoke(arguments))
        words = {"journal": tmp_path / "journal", "outage_wait": 0.1, "progress": False}
        if fault in {"refused", "a page", "wrong arguments"}:
            report = bulk.run(asking, rows, **words)
            assert (report.done, report.failed) == (0, 3)
        else:
            with pytest.raises(kind):
                bulk.run(asking, rows, **words)
            assert not list(bulk.results(tmp_path / "journal"))
        box.faults = []


def test_a_node_of_tools_answers_the_model(box):
    box.faults = [Fault(status=401)]
    with made(CASES["Translate"], box) as tool:
        graph = StateGraph(MessagesState).add_node("tools", ToolNode([tool]))
        graph = graph.set_entry_point("tools").compile()
        call = call_of(tool, CASES["Translate"].asked)
        told = graph.invoke({"messages": [AIMessage("", tool_calls=[call])]})["messages"][-1]
    assert isinstance(told, ToolMessage)
    assert told.status == "error"
    assert "Nothing is known from this call" in told.content


def test_what_the_user_sets_decides(box):
    case = CASES["Translate"]
    for words, text in (
        ({"handle_tool_error": True}, "svc_translate gave no answer"),
        ({"handle_tool_error": "ask later"}, "ask later"),
        ({"handle_tool_error": lambda error: type(error).__name__}, ToolException.__name__),
    ):
        with made(case, box, **words) as tool:
            for use in (PLAIN["invoke"], PLAIN["ainvoke"]):
                arguments, _ = prepared(case, box, "key refused")
                assert text in use(tool, arguments)
    with made(case, box, handle_tool_error=False) as tool:
        arguments, kind = prepared(case, box, "key refused")
        with pytest.raises(kind):
            CALLS["invoke"](tool, arguments)
    with made(case, box, handle_validation_error="write it anew") as tool:
        assert tool.invoke({"text": "x"}) == "write it anew"


@pytest.mark.parametrize(
    "changed", [lambda t: pickle.loads(pickle.dumps(t)), lambda t: t.model_copy()]
)
def test_a_copy_raises_and_answers_as_the_tool_does(changed, monkeypatch, box):
    monkeypatch.setenv("SVC_API_KEY", "k" * 20)
    case = CASES["Translate"]
    with made(case, box) as first, changed(first) as tool:
        arguments, kind = prepared(case, box, "key refused")
        with pytest.raises(kind):
            tool.invoke(arguments)
        prepared(case, box, "key refused")
        assert CALLS["invoke"](tool, arguments).status == "error"


def test_handlers_hear_the_end_of_a_run_that_raises(box):
    class Heard(BaseCallbackHandler):
        def __init__(self):
            self.ends = []

        def on_tool_error(self, error, **kwargs):
            self.ends.append(type(error))

    case, heard = CASES["Translate"], Heard()
    with made(case, box) as tool:
        for fault in ("key refused", "wrong arguments"):
            arguments, kind = prepared(case, box, fault)
            with pytest.raises(kind):
                tool.invoke(arguments, {"callbacks": [heard]})
    assert heard.ends == [svc.SvcAuthenticationError, svc.SvcRequestError]
