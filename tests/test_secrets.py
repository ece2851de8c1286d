"""A marked key and a marked prompt are driven into every error, and looked for everywhere."""

from __future__ import annotations

import asyncio
import io
import logging
import pickle
import traceback

import pytest
from langchain_core.load import dumps
from langchain_core.tracers.base import BaseTracer
from rich.console import Console
from rich.traceback import Traceback

import langchain_svc as svc
from langchain_svc.sandbox import Fault, Sandbox

KEY = "sk-MARKED-KEY-93417"
PROMPT = "Patient Zebulon-Quux has syndrome-88231"
MARKS = ("MARKED-KEY", "Zebulon", "Quux", "88231")


class Recorder(BaseTracer):
    def __init__(self):
        super().__init__()
        self.runs = []

    def _persist_run(self, run):
        self.runs.append(run)


ECHO = {"error": {"message": f"Cannot do '{PROMPT}' with {KEY}", "type": KEY, "code": PROMPT[:20]}}
FAULTS = [
    Fault(status=400, body=ECHO), Fault(status=401, body=ECHO), Fault(status=403, body=ECHO), Fault(status=404, body=ECHO),
    Fault(status=429, body=ECHO, headers={"Retry-After": "3600", "X-Request-Id": KEY}), Fault(status=500, body=ECHO),
    Fault(status=502, body=f"<html>{PROMPT} {KEY}</html>", content_type="text/html"), Fault(status=302, headers={"Location": f"http://127.0.0.1/{KEY}"}),
    Fault(status=200, body=ECHO), Fault(status=200, body=f"<p>{KEY} {PROMPT}", content_type="text/html"), Fault(status=200, body=""), Fault(hang=True),
    Fault(reset="before"), Fault(cut=True), Fault(stall=True), Fault(raw=f"HTTP/1.1 {KEY}\r\n\r\n".encode()),
    Fault(status=200, body=f'data: {{"error": {{"message": "{PROMPT} {KEY}"}}}}\n\n', content_type="text/event-stream"),
]  # fmt: skip


@pytest.fixture(scope="module")
def box():
    with Sandbox(api_key=KEY) as sandbox:
        yield sandbox


def calls(model, recorder):
    config = {"callbacks": [recorder]}

    async def ainvoke():
        async with model:
            await model.ainvoke(PROMPT, config)

    async def astream():
        async with model:
            async for _ in model.astream(PROMPT, config):
                pass

    yield lambda: model.invoke(PROMPT, config)
    yield lambda: list(model.stream(PROMPT, config))
    yield lambda: asyncio.run(ainvoke())
    yield lambda: asyncio.run(astream())


def clean(text):
    found = [mark for mark in MARKS if mark in text]
    assert not found, f"{found} in: {text[:2000]}"


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_no_error_tells_a_key_or_a_prompt(box, caplog, number):
    caplog.set_level(logging.DEBUG, logger="langchain_svc")
    box.faults = [FAULTS[number]]
    model = svc.ChatSvc(**box.v1, timeout=0.3, max_retries=0)
    recorder = Recorder()
    failures = 0
    for call in calls(model, recorder):
        try:
            call()
        except svc.SvcError as error:
            failures += 1
            clean(
                str(error)
                + repr(error)
                + repr({k: v for k, v in vars(error).items() if k != "partial"})
            )
            clean("".join(traceback.format_exception_only(error)))
            again = pickle.loads(pickle.dumps(error))
            clean(str(again))
            screen = io.StringIO()
            Console(file=screen, width=200).print(
                Traceback.from_exception(type(error), error, error.__traceback__, show_locals=True)
            )
            assert KEY not in screen.getvalue()
    assert failures == 4
    clean(caplog.text)
    model.close()
    for run in recorder.runs:
        assert KEY not in run.model_dump_json()
        clean(run.error.splitlines()[0] if run.error else "")


def test_no_view_of_a_model_tells_its_key(box):
    model = svc.ChatSvc(
        **box.v1, default_headers={"X-Extra": KEY}, proxy=f"http://u:{KEY}@127.0.0.1:1"
    )
    views = [
        repr(model),
        str(model),
        dumps(model),
        str(model.asdict()),
        repr(model._get_invocation_params()),
        repr(model._identifying_params),
    ]
    for view in [*views, repr(model._get_ls_params()), model._get_llm_string()]:
        assert KEY not in view


def test_a_good_run_leaves_no_key_in_a_trace(box, caplog):
    caplog.set_level(logging.DEBUG)
    box.faults = []
    recorder = Recorder()
    with svc.ChatSvc(**box.v1) as model:
        model.invoke("hi", {"callbacks": [recorder]})
        list(model.stream("hi", {"callbacks": [recorder]}))
    assert recorder.runs
    assert all(KEY not in run.model_dump_json() for run in recorder.runs)
    assert KEY not in "".join(
        r.getMessage() for r in caplog.records if r.name.startswith("langchain_svc")
    )


def test_validation_errors_hide_their_input():
    with pytest.raises(ValueError, match="API key") as raised:
        svc.ChatSvc(api_key=KEY + "\n\x00")
    clean(str(raised.value))
    with pytest.raises(ValueError, match="user name") as raised:
        svc.ChatSvc(base_url_v1=f"https://user:{KEY}@svc.example/v1")
    clean(str(raised.value))
