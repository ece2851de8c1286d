"""A marked key and a marked patient are driven through every class into every error.

Then both are looked for wherever something may be kept: messages, attributes, reprs, pickles,
dumps, logs at DEBUG, tracers, and tracebacks that show local variables. They may stand in the
request and nowhere else. Frames of the test itself are left out: a caller's variables are his own.

With phi no frame has a text either: `keeps_runs` sees to it where LangChain has the method, and for
others CONTRIBUTING.md says how ("Add a public class that is no tool").
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gzip
import inspect
import json
import logging
import pickle
import socket
import traceback
from pathlib import Path

import httpx
import pytest
from langchain_core.load import dumps
from langchain_core.tools import BaseTool
from peers import (
    RawServer,
    RunKeeper,
    chunked_head,
    hearing,
    http_chunk,
    listed,
    response,
    settled,
    tool_call,
)
from pydantic import ValidationError
from share import fewer, pairs, part

import langchain_svc as svc
from langchain_svc.sandbox import Sandbox

KEY = "sk-MARKEDKEY-9aQ"
ASKED = "Zebulon-Quux takes warfarin and coughs blood"
RECORD = "granuloma of Xerxes"
PATIENT = svc.PatientContext(
    age=61, medical_history=[RECORD], lab_results={"troponin": 8.1472639}, risk_factors=[RECORD]
)
KEYS = ("MARKEDKEY",)
RECORDS = (*KEYS, "Xerxes", "granuloma", "8.1472639")
ALL = (*RECORDS, "Zebulon", "Quux", "warfarin")
HERE = Path(__file__).parents[1]


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


class Echo(RawServer):
    """A service that repeats the key and all that it was sent, wherever an answer has room."""

    def __init__(self):
        super().__init__(self.answer)
        self.kind = "400"

    def answer(self, connection):
        body = self.requests[-1].partition(b"\r\n\r\n")[2]
        sent = "; ".join(words_of(json.loads(body or b"{}")))
        ANSWERS[self.kind](connection, f"Cannot do {sent} with {KEY}")


def echo(told):
    error = {"message": told, "type": KEY, "code": told[10:22]}
    return json.dumps({"error": error, "id": KEY}).encode()


def headers(told):
    line = " ".join(told.split())[:2000]
    return {
        "content_type": "application/json",
        "x_request_id": KEY,
        "x_echo": line,
        "set_cookie": f"k={KEY}",
    }


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


def answered(told):
    """What stands where an answer's text does: there, and there alone, a key is passed on."""
    return told.replace(KEY, "a key")


def cut(connection, told):
    connection.sendall(response(b"", content_length="9999", x_echo=KEY) + answered(told).encode())


def reset(connection, told):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


def hang(connection, told):
    with contextlib.suppress(OSError):
        connection.recv(1)


def hang_inside(connection, told):
    connection.sendall(chunked_head() + http_chunk(f"data: {answered(told)}\n\n".encode()))
    hang(connection, told)


def raw(text):
    return lambda connection, told: connection.sendall(text(told).encode())


def delta(told):
    return json.dumps({"choices": [{"delta": {"content": answered(told)}}]}).encode()


def wrong_types(told):
    return json.dumps({"choices": answered(told), "data": {"url": 5}, "response": 7}).encode()


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
    "other fields": good(lambda told: json.dumps({answered(told): {"of": answered(told)}}).encode()),
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
# By class and method, "SvcTranslate.invoke", behind a comma what else tells two ways apart.


def _made(kind, *not_for):
    names = set(kind.model_fields) - set(not_for)
    return lambda words: kind(**{name: word for name, word in words.items() if name in names})


def _tool(kind, **arguments):
    name, make = kind.__name__, _made(kind)

    async def ask(tool, config):
        return await tool.ainvoke(tool_call(tool, arguments), config)

    return {
        f"{name}.invoke": (make, lambda t, c: t.invoke(tool_call(t, arguments), c)),
        f"{name}.ainvoke": (make, ask),
        f"{name}.invoke, plain": (make, lambda t, c: t.invoke(arguments, c)),
    }


def _of(toolkit, number, **arguments):
    name, make = f"{toolkit.__name__}.get_tools", _made(toolkit)

    def call(kit, config):
        tool = kit.get_tools()[number]
        return tool.invoke(tool_call(tool, arguments), config)

    return {
        name: (make, call),
        f"{name}, plain": (make, lambda kit, c: kit.get_tools()[number].invoke(arguments, c)),
    }


def _general_chat(words):
    return _made(svc.ChatSvc, "base_url_v1")(words | {"interface": "general"})


def _model(make, also=""):
    def closing(ask):
        async def asked(model, config):
            async with model:
                return await ask(model, config)

        return asked

    doors = {
        "invoke": lambda m, c: m.invoke(ASKED, c),
        "stream": lambda m, c: list(m.stream(ASKED, c)),
        "batch": lambda m, c: m.batch([ASKED], c),
        "list_models": lambda m, _: m.list_models(),
        "check": lambda m, _: m.check(),
        "ainvoke": closing(lambda m, c: m.ainvoke(ASKED, c)),
        "astream": closing(lambda m, c: listed(m.astream(ASKED, c))),
        "alist_models": closing(lambda m, _: m.alist_models()),
        "acheck": closing(lambda m, _: m.acheck()),
    }
    return {f"ChatSvc.{name}{also}": (make, use) for name, use in doors.items()}


DOORS = {
    **_model(_made(svc.ChatSvc, "base_url")),
    **_model(_general_chat, ", general"),
    **_tool(svc.SvcMedicalConsult, message=ASKED),
    **_tool(svc.SvcDecisionSupport, symptoms=[ASKED], specialty="oncology"),
    **_tool(svc.SvcCancerRisk, symptoms=ASKED),
    **_tool(svc.SvcMedicalStatus),
    **_tool(svc.SvcTranslate, text=ASKED, target="de"),
    **_tool(svc.SvcAnalyzeImage, image="https://example.com/a.png", task="ocr"),
    **_tool(svc.SvcGenerateImage, prompt=ASKED),
    **_of(svc.SvcMedicalToolkit, 1, symptoms=[ASKED], specialty="oncology"),
    **_of(svc.SvcToolkit, 0, text=ASKED, target="de"),
}
AWAITED = {door: way for door, way in DOORS.items() if inspect.iscoroutinefunction(way[1])}


def _blocking(use):
    return lambda thing, config: asyncio.run(use(thing, config))


DOORS |= {door: (make, _blocking(use)) for door, (make, use) in AWAITED.items()}


def is_run(door):
    """Whether callbacks hear of it: the method takes their config, or makes tools that do."""
    kind, _, name = door.partition(",")[0].partition(".")
    taken = inspect.signature(getattr(getattr(svc, kind), name)).parameters
    return name == "get_tools" or "config" in taken


def settings(url, **more):
    words = {"api_key": KEY, "base_url_v1": url + "/v1", "base_url": url, "medical_base_url": url}
    own = {"timeout": 0.1, "max_retries": 0, "patient": PATIENT, "default_headers": {"X-K": KEY}}
    return {**words, **own, **more}


# -- every place to look ------------------------------------------------------------------------------


def with_locals(error):
    """The traceback as Python shows it with local variables."""
    captured = traceback.TracebackException.from_exception(error, capture_locals=True)
    captured.stack[:] = [
        frame for frame in captured.stack if HERE not in Path(frame.filename).parents
    ]
    return "".join(captured.format())


WORDS_OF_THE_MODEL = ("partial", "raw", "problems", "llm_output")


def told(error, without=()):
    """What an error tells without its traceback."""
    error = copy.copy(error)
    for name in without:
        vars(error).pop(name, None)
    parts = [str(error), repr(error), repr(vars(error)), repr(error.args), dumps(error)]
    parts += ["".join(traceback.format_exception(error))]
    if isinstance(error, svc.SvcError):
        parts += [str(pickle.dumps(error)), repr(vars(pickle.loads(pickle.dumps(error))))]
    cause = error.__cause__ or error.__context__
    return "".join(parts) + (told(cause, without) if cause is not None else "")


def views(thing):
    """All that an object tells about itself."""
    parts = [repr(thing), str(thing), dumps(thing), str(pickle.dumps(thing))]
    copies = (
        copy.copy(thing),
        copy.deepcopy(thing),
        thing.model_copy(),
        pickle.loads(pickle.dumps(thing)),
    )
    parts += [repr(one) + str(one) for one in copies]
    parts += [str(thing.model_dump()), str(thing.model_dump(mode="json", fallback=str))]
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


def attempt(use, thing, *handlers):
    """The error of a use, and what it gave back where it failed without one."""
    try:
        result = use(thing, {"callbacks": list(handlers)})
    except svc.SvcError as error:
        return error, None
    return None, result if getattr(result, "status", "") == "error" else None


@pytest.mark.parametrize(("door", "privacy"), pairs(DOORS, [None, "phi"]))
def test_no_error_leaks(everything_is_logged, door, privacy):
    make, use = DOORS[door]
    failed, answers = 0, part(enumerate(ANSWERS), list(DOORS).index(door))
    with Echo() as server:
        for number, server.kind in answers:
            tracer, handler = RunKeeper(), hearing()
            thing = make(settings(server.url, privacy=privacy))
            if isinstance(thing, BaseTool) and number % 2:
                thing.handle_tool_error = False
            error, result = attempt(use, thing, tracer, handler)
            if error is not None:
                # Without phi an error has the model's words as `partial` and `raw`, and the
                # frames of LangChain have the prompt; nothing has the key or the record.
                shown = ALL if privacy else RECORDS
                clean(shown, with_locals(error))
                clean(ALL, told(error, without=() if privacy else WORDS_OF_THE_MODEL))
            clean(ALL, repr(result))
            failed += bool(error or result)
            thing.close()
            clean(ALL if privacy else KEYS, *tracer.told, *handler.told)
    assert failed >= fewer(20)
    clean(ALL, logged(everything_is_logged))


# -- what is refused before anything is sent ------------------------------------------------------------

URL = "https://svc.example"
BAD = {
    "key with a line break": (svc.ChatSvc, {"api_key": KEY + "\n\x00"}),
    "key that is no text": (svc.ChatSvc, {"api_key": [KEY]}),
    "key in the address": (svc.ChatSvc, {"base_url_v1": f"https://u:{KEY}@svc.example/v1"}),
    "key in a query": (svc.ChatSvc, {"base_url_v1": f"{URL}/v1?key={KEY}"}),
    "key as a header": (svc.SvcTranslate, {"default_headers": {"Authorization": KEY}}),
    "header with a line break": (svc.ChatSvc, {"default_headers": {"X-Key": KEY + "\r\n"}}),
    "unknown setting": (svc.SvcMedicalConsult, {"key": KEY, "patient": PATIENT}),
    "wrong number": (svc.ChatSvc, {"api_key": KEY, "temperature": 7}),
    "wrong type": (svc.SvcMedicalToolkit, {"api_key": KEY, "patient": {"name": ASKED}}),
    "wrong selection": (svc.SvcToolkit, {"api_key": KEY, "selected": 5}),
    "proxy of no kind": (svc.ChatSvc, {"proxy": f"gopher://u:{KEY}@proxy.example"}),
    "proxy without a host": (svc.ChatSvc, {"proxy": f"{KEY}:{KEY}"}),
    "patient in another unit": (svc.PatientContext, {"age": 300, "medical_history": [ASKED, KEY]}),
    "patient with a further field": (svc.PatientContext, {"name": ASKED, "key": KEY}),
    "cached": (svc.ChatSvc, {"api_key": KEY, "privacy": "phi", "cache": True}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_refused_setting_leaks_nothing(name):
    kind, words = BAD[name]
    with pytest.raises(ValidationError) as caught:
        kind(**words)
    error = caught.value
    clean(ALL, with_locals(error), str(error), repr(error), repr(error.errors()), error.json())


MISSED = {
    "No base URL": {"base_url_v1": None, "base_url": None, "medical_base_url": None},
    "No API key": {"api_key": None},
}


@pytest.mark.parametrize(("door", "privacy"), pairs(DOORS, [None, "phi"]))
@pytest.mark.parametrize("said", MISSED)
def test_a_setting_that_is_missed_at_the_call_leaks_nothing(
    everything_is_logged, door, privacy, said
):
    make, use = DOORS[door]
    tracer, handler = RunKeeper(), hearing()
    thing = make(settings(URL, privacy=privacy, **MISSED[said]))
    error, result = attempt(use, thing, tracer, handler)
    assert said in f"{error}{result}"
    if isinstance(thing, BaseTool):
        thing.handle_tool_error = False
        error, _ = attempt(use, thing, tracer, handler)
    if error is not None:
        clean(ALL if privacy else RECORDS, with_locals(error))
        clean(ALL, told(error))
    clean(ALL, repr(result), logged(everything_is_logged))
    clean(ALL if privacy else KEYS, *tracer.told, *handler.told)


@pytest.mark.parametrize(("door", "privacy"), pairs(AWAITED, [None, "phi"]))
def test_a_call_that_is_cancelled_leaks_nothing(everything_is_logged, door, privacy):
    make, use = AWAITED[door]

    async def cancelled():
        with Echo() as server:
            server.kind = "hang"
            async with make(settings(server.url, privacy=privacy, timeout=20)) as thing:
                task = asyncio.ensure_future(use(thing, {}))
                await asyncio.to_thread(settled, lambda: bool(server.requests), True)
                task.cancel()
                with pytest.raises(asyncio.CancelledError) as caught:
                    await task
                return caught.value

    clean(ALL if privacy else RECORDS, with_locals(asyncio.run(cancelled())))
    clean(ALL, logged(everything_is_logged))


# -- objects at rest ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("door", "privacy"), pairs(DOORS, [None, "phi"]))
def test_no_view_of_an_object_tells_its_key_its_patient_or_with_phi_a_prompt(door, privacy):
    proxy = f"http://user:{KEY}@127.0.0.1:1"
    make, call = DOORS[door]
    thing = make(settings("http://127.0.0.1:1", proxy=proxy, privacy=privacy))
    with contextlib.suppress(svc.SvcError):
        call(thing, {})  # so that there are connections to leave behind
    shown = ALL if privacy else RECORDS
    clean(shown, views(thing))
    again = pickle.loads(pickle.dumps(thing))
    clean(shown, f"{vars(again)}{again.__pydantic_private__}")
    assert (again.api_key, again.proxy, again.default_headers) == (None, None, {})


def test_a_pickle_reads_the_key_from_the_environment_and_says_what_it_lacks(monkeypatch):
    with Sandbox() as box:
        pickled = pickle.dumps(svc.ChatSvc(**box.v1, default_headers={"X-Team": KEY}))
        with pytest.raises(svc.SvcRequestError, match="no api_key and no default_headers"):
            pickle.loads(pickled).invoke("Hello")
        monkeypatch.setenv("SVC_API_KEY", box.v1["api_key"])
        again = pickle.loads(pickled)
        with pytest.raises(svc.SvcRequestError, match="pickle, which carries no default_headers"):
            again.invoke("Hello")
        again = again.model_copy(update={"default_headers": {"X-Team": "x"}})
        assert "This is the sandbox" in again.invoke("Hello").text
        again.close()


def test_a_toolkit_out_of_a_pickle_does_not_go_on_without_its_patient(monkeypatch):
    monkeypatch.setenv("SVC_MEDICAL_API_KEY", KEY)
    kit = pickle.loads(pickle.dumps(svc.SvcMedicalToolkit(patient=PATIENT, medical_base_url=URL)))
    with pytest.raises(svc.SvcRequestError, match="carries no patient"):
        kit.get_tools()
    assert kit.model_copy(update={"patient": PATIENT}).get_tools()
    per_run = svc.SvcMedicalToolkit(patient="per_run", medical_base_url=URL)
    assert pickle.loads(pickle.dumps(per_run)).get_tools()


def test_a_copy_with_another_key_keeps_it_as_a_secret():
    model = svc.ChatSvc(api_key="k", base_url_v1=URL)
    proxy = f"http://u:{KEY}@127.0.0.1:1"
    for update in ({"api_key": KEY}, {"proxy": proxy}, {"default_headers": {"X-Team": KEY}}):
        copied = model.model_copy(update=update)
        clean(KEYS, views(copied))
        clean(KEYS, str({name: held for name, held in vars(copied).items() if name != "default_headers"}))  # fmt: skip
    assert model.model_copy(update={"api_key": f" {KEY} "}).api_key.get_secret_value() == KEY
    with pytest.raises(ValueError, match="no HTTP header can carry") as caught:
        model.model_copy(update={"api_key": KEY + "\n\x00"})
    clean(KEYS, str(caught.value))


@pytest.mark.parametrize("word", ["api_key", "openai_api_key", "extra_headers", "default_headers"])
def test_a_key_among_the_words_of_a_call_reaches_no_callback(word):
    given = {word: {"X-Team": KEY} if "headers" in word else KEY}
    handler = hearing()
    config = {"callbacks": [handler]}
    closed = {"api_key": "k", "max_retries": 0}
    model = svc.ChatSvc(**closed, base_url_v1="http://127.0.0.1:1/v1")
    general = svc.ChatSvc(interface="general", **closed, base_url="http://127.0.0.1:1")
    for one in (model, general, model.bind(temperature=0)):
        with pytest.raises(svc.SvcError):
            one.invoke("x", config, **given)
    tool = svc.SvcTranslate(**closed, base_url="http://127.0.0.1:1")
    if word in {"api_key", "default_headers"}:
        with pytest.raises(svc.SvcRequestError, match="set where the tool is made"):
            tool.invoke({"text": "x", "target": "de"}, config, **given)
    assert len(handler.told) >= 6
    clean(KEYS, *handler.told)


# -- the logs of others -------------------------------------------------------------------------------


def test_the_logs_of_other_calls_keep_what_they_say(everything_is_logged):
    with Echo() as server:
        server.kind = "error in 200"
        with httpx.Client(trust_env=False) as client:
            client.post(server.url, json={"a": "b"})
    assert "x-request-id" in everything_is_logged.text


@pytest.mark.parametrize("proxied", [False, True])
def test_a_client_or_proxy_of_the_callers_logs_nothing_of_an_answer(everything_is_logged, proxied):
    with Echo() as server, httpx.Client(trust_env=False) as client:
        server.kind = "error in 200"
        words = settings(server.url)
        if proxied:
            words |= {
                "proxy": server.url.replace("//", f"//u:{KEY}@"),
                "base_url_v1": "http://svc.example/v1",
                "insecure_hosts": ["svc.example"],
            }
        else:
            words["http_client"] = client
        model = DOORS["ChatSvc.invoke"][0](words)
        with pytest.raises(svc.SvcError):
            model.invoke(ASKED)
        model.close()
    heard = any(record.name.startswith("httpcore") for record in everything_is_logged.records)
    assert heard  # what httpx's own connections do, and no more
    clean(ALL, logged(everything_is_logged))
