"""A marked key and a marked patient are driven through every class into every error.

Then both are looked for wherever something may be kept: messages, attributes, reprs, pickles,
dumps, logs at DEBUG, tracers, and tracebacks that show local variables. They may stand in the
request and nowhere else. Frames of the test itself are left out: a caller's variables are his own.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gzip
import io
import json
import logging
import pickle
import socket
import traceback
from pathlib import Path

import pytest
from langchain_core.load import dumps
from langchain_core.tools import ToolException
from langchain_core.tracers.base import BaseTracer
from peers import RawServer, chunked_head, http_chunk, response
from rich.console import Console
from rich.traceback import Traceback

import langchain_svc as svc

KEY = "sk-MARKEDKEY-9aQ"
ASKED = "Zebulon-Quux takes warfarin and coughs blood"
RECORD = "granuloma of Xerxes"
PATIENT = svc.PatientContext(
    age=61, medical_history=[RECORD], lab_results={"troponin": 8.1472639}, risk_factors=[RECORD]
)
KEYS = ("MARKEDKEY",)
RECORDS = (*KEYS, "Xerxes", "granuloma", "8.1472639")
ALL = (*RECORDS, "Zebulon", "Quux", "warfarin")
HERE = Path(__file__).parent


def clean(marks, *texts):
    for text in texts:
        found = [mark for mark in marks if mark in text]
        assert not found, f"{found} in: ...{text[max(0, text.index(found[0]) - 500) :][:1000]}"


# -- what a service may answer ----------------------------------------------------------------------


def words_of(value):
    if isinstance(value, dict):
        return [word for held in value.values() for word in words_of(held)]
    if isinstance(value, list):
        return [word for held in value for word in words_of(held)]
    return [str(value)]


class Echo:
    """A service that repeats the key and all that it was sent, wherever an answer has room."""

    def __init__(self, kind):
        self.kind = kind
        self.request = b""

    def __call__(self, connection):
        body = self.server.requests[-1].partition(b"\r\n\r\n")[2]
        sent = "; ".join(words_of(json.loads(body or b"{}")))
        ANSWERS[self.kind](connection, f"Cannot do {sent} with {KEY}")

    def __enter__(self):
        self.server = RawServer(self)
        return self.server.__enter__()

    def __exit__(self, *_):
        self.server.__exit__()


def echo(told):
    error = {"message": told, "type": KEY, "code": told[10:22]}
    return json.dumps({"error": error, "id": KEY}).encode()


def headers(told):
    line = " ".join(told.split())[:2000]
    return {"content_type": "application/json", "x_request_id": KEY, "x_echo": line, "set_cookie": f"k={KEY}"}  # fmt: skip


def refusal(status, body=echo, **more):
    def answer(connection, told):
        status_line = f"{status} {' '.join(told.split())[:200]}"
        connection.sendall(response(body(told), status=status_line, **{**headers(told), **more}))

    return answer


def good(body, **more):
    return refusal(200, body, **more)


def events(*datas):
    def answer(connection, told):
        body = b"".join(b"data: " + data(told) + b"\n\n" for data in datas)
        head = headers(told) | {"content_type": "text/event-stream"}
        connection.sendall(response(content_length=None, **head) + body)

    return answer


def cut(connection, told):
    connection.sendall(response(b"", content_length="9999", x_echo=KEY) + told.encode())


def reset(connection, told):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


def hang(connection, told):
    with contextlib.suppress(OSError):
        connection.recv(1)


def hang_inside(connection, told):
    connection.sendall(chunked_head() + http_chunk(f"data: {told}\n\n".encode()))
    hang(connection, told)


def raw(text):
    return lambda connection, told: connection.sendall(text(told).encode())


def delta(told):
    return json.dumps({"choices": [{"delta": {"content": told}}]}).encode()


def wrong_types(told):
    return json.dumps(
        {"choices": told, "data": {"url": 5}, "response": 7, "status": [KEY]}
    ).encode()


ANSWERS = {
    **{str(status): refusal(status) for status in (400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503)},
    "429 later": refusal(429, retry_after="3600", x_ratelimit_reset=KEY),
    "502 page": refusal(502, lambda told: f"<html>{told}</html>".encode(), content_type="text/html"),
    "302": refusal(302, location=f"http://127.0.0.1/{KEY}"),
    "error in 200": good(echo),
    "page in 200": good(lambda told: f"<p>{told}".encode(), content_type="text/html"),
    "empty": good(lambda told: b""),
    "no JSON": good(lambda told: b'{"choices": [' + told.encode()),
    "wrong types": good(wrong_types),
    "other fields": good(lambda told: json.dumps({told: {KEY: told}}).encode()),
    "broken gzip": good(lambda told: gzip.compress(echo(told))[:-9], content_encoding="gzip"),
    "cut": cut,
    "reset": reset,
    "hang": hang,
    "hang inside": hang_inside,
    "status line": raw(lambda told: f"HTTP/1.1 {told}\r\n\r\n"),
    "header": raw(lambda told: f"HTTP/1.1 200 OK\r\n{KEY} {told}\r\n\r\n"),
    "chunk": raw(lambda told: chunked_head().decode() + f"{KEY}{told}\r\n"),
    "cut stream": events(delta),
    "error in stream": events(delta, echo),
    "no event": events(lambda told: b'{"choices": [' + told.encode()),
    "odd event": events(lambda told: json.dumps({KEY: told}).encode(), lambda _: b"[DONE]"),
}  # fmt: skip


# -- every way in -----------------------------------------------------------------------------------


async def _listed(pieces):
    return [piece async for piece in pieces]


def _tool(kind, **arguments):
    def make(words):
        names = set(kind.model_fields)
        return kind(**{name: word for name, word in words.items() if name in names})

    call = {"args": arguments, "id": "c1", "type": "tool_call"}
    return {
        f"{kind.__name__}.invoke": (make, lambda t, c: t.invoke({**call, "name": t.name}, c)),
        f"{kind.__name__}.ainvoke": (
            make,
            lambda t, c: asyncio.run(t.ainvoke({**call, "name": t.name}, c)),
        ),
    }


def _of(kind, toolkit, number, **arguments):
    def make(words):
        names = set(toolkit.model_fields)
        kit = toolkit(**{name: word for name, word in words.items() if name in names})
        return kit.get_tools()[number]

    return {f"{toolkit.__name__}.{number}": (make, lambda t, c: t.invoke(arguments, c))}


def _model(kind):
    def make(words):
        names = set(kind.model_fields) - ({"base_url"} if kind is svc.ChatSvc else set())
        return kind(**{name: word for name, word in words.items() if name in names})

    async def ask(model, config):
        async with model:
            return await model.ainvoke(ASKED, config)

    async def stream(model, config):
        async with model:
            return await _listed(model.astream(ASKED, config))

    name = kind.__name__
    return {
        f"{name}.invoke": (make, lambda m, c: m.invoke(ASKED, c)),
        f"{name}.stream": (make, lambda m, c: list(m.stream(ASKED, c))),
        f"{name}.batch": (make, lambda m, c: m.batch([ASKED], c)),
        f"{name}.ainvoke": (make, lambda m, c: asyncio.run(ask(m, c))),
        f"{name}.astream": (make, lambda m, c: asyncio.run(stream(m, c))),
        f"{name}.list_models": (make, lambda m, _: m.list_models()),
    }


DOORS = {
    **_model(svc.ChatSvc),
    **_model(svc.SvcLLM),
    **_tool(svc.SvcMedicalConsult, message=ASKED),
    **_tool(svc.SvcDecisionSupport, symptoms=[ASKED], specialty="oncology"),
    **_tool(svc.SvcCancerRisk, symptoms=ASKED),
    **_tool(svc.SvcMedicalStatus),
    **_tool(svc.SvcTranslate, text=ASKED, target="de"),
    **_tool(svc.SvcAnalyzeImage, image="https://example.com/a.png", task="ocr"),
    **_tool(svc.SvcGenerateImage, prompt=ASKED),
    **_of(svc.SvcDecisionSupport, svc.SvcMedicalToolkit, 1, symptoms=[ASKED], specialty="oncology"),
    **_of(svc.SvcTranslate, svc.SvcToolkit, 0, text=ASKED, target="de"),
}


def settings(url, **more):
    words = {"api_key": KEY, "base_url_v1": url + "/v1", "base_url": url, "medical_base_url": url}
    own = {"timeout": 0.4, "max_retries": 0, "patient": PATIENT, "default_headers": {"X-K": KEY}}
    return {**words, **own, **more}


# -- every place to look ------------------------------------------------------------------------------


class Tracer(BaseTracer):
    def __init__(self):
        super().__init__()
        self.runs = []

    def _persist_run(self, run):
        self.runs.append(run)

    def recorded(self):
        return "".join(f"{vars(run)}{run.model_dump_json()}" for run in self.runs)


def ours(error):
    """The frames of a traceback that are not the test's."""
    frames = error.__traceback__
    while frames is not None and Path(frames.tb_frame.f_code.co_filename).parent == HERE:
        frames = frames.tb_next
    return frames


def with_locals(error):
    """The traceback as Python and rich show it with local variables."""
    shown = error.with_traceback(ours(error))
    captured = traceback.TracebackException.from_exception(shown, capture_locals=True)
    screen = io.StringIO()
    rendered = Traceback.from_exception(
        type(error),
        error,
        ours(error),
        show_locals=True,
        locals_max_length=None,
        locals_max_string=None,
    )
    Console(file=screen, width=300).print(rendered)
    return "".join(captured.format()) + screen.getvalue()


def told(error):
    """What an error tells without its traceback."""
    parts = [str(error), repr(error), repr(vars(error)), repr(error.args), dumps(error)]
    parts += ["".join(traceback.format_exception(error))]
    if isinstance(error, svc.SvcError):
        again = pickle.loads(pickle.dumps(error))
        parts += [str(pickle.dumps(error)), str(again), repr(vars(again))]
    cause = error.__cause__ or error.__context__
    return "".join(parts) + (told(cause) if cause is not None else "")


def views(thing):
    """All that an object tells about itself."""
    parts = [repr(thing), str(thing), dumps(thing), str(pickle.dumps(thing))]
    copies = (copy.copy(thing), copy.deepcopy(thing), thing.model_copy(), pickle.loads(pickle.dumps(thing)))  # fmt: skip
    parts += [repr(one) + str(one) for one in copies]
    parts += [str(thing.model_dump()), thing.model_dump_json(exclude={"args_schema", "metadata"})]
    for name in ("_get_invocation_params", "_get_ls_params", "_get_llm_string", "asdict"):
        parts.append(str(getattr(thing, name, str)()))
    return "".join(parts)


def logged(caplog):
    return caplog.text + "".join(f"{vars(record)}" for record in caplog.records)


@pytest.fixture
def everything_is_logged(caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("httpcore.http11", "httpcore.connection", "httpx", "asyncio", "langchain_svc"):
        caplog.set_level(logging.DEBUG, logger=name)
    return caplog


@pytest.mark.parametrize("privacy", [None, "phi"])
@pytest.mark.parametrize("door", DOORS)
def test_no_error_leaks(everything_is_logged, door, privacy):
    make, use = DOORS[door]
    failed, rendered = [], set()
    for name in ANSWERS:
        tracer = Tracer()
        with Echo(name) as server:
            thing = make(settings(server.url, privacy=privacy))
            if not isinstance(thing, (svc.ChatSvc, svc.SvcLLM)):
                thing.handle_tool_error = len(failed) % 2 == 0
            try:
                result = use(thing, {"callbacks": [tracer]})
            except (svc.SvcError, ToolException) as error:
                failed.append(name)
                clean(ALL if privacy else RECORDS, repr(vars(error)))
                hidden = {"partial", "raw", "problems", "llm_output"} & vars(error).keys()
                if not privacy:  # the model's own words, which str and repr leave out
                    for attribute in hidden:
                        setattr(error, attribute, "")
                clean(ALL, told(error))
                # Without phi the frames of LangChain hold the prompt, and never key or record.
                if type(error) not in rendered:
                    rendered.add(type(error))
                    clean(ALL if privacy else RECORDS, with_locals(error))
            else:
                if getattr(result, "status", "") == "error":
                    failed.append(name)
                    clean(ALL, repr(result))
            thing.close()
        clean(ALL if privacy else KEYS, tracer.recorded())
    assert len(failed) >= 20
    assert any("httpcore" in record.name for record in everything_is_logged.records)
    clean(ALL, logged(everything_is_logged))
