"""The columns of the fault matrix: the classes, how each is called, and what it is answered.

A column knows the bodies that its endpoint may send: the good one, and those in which something is
missing, empty, null, of another type, or odd. They are written from the service documents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import langchain_svc as svc

TEXT = "Grüße, Welt."
FIRST, SECOND = "Grüße, ", "Welt."
LARGE = 5_000_000  # of one event
PADDING = 1_000_000  # of an answer in one piece


def dumped(value):
    return json.dumps(value, ensure_ascii=False).encode()


# One black pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


@dataclass(frozen=True)
class Column:
    """One class and method, of which `call` and `acall` give the answer as a text."""

    name: str
    kind: str  # "whole" or "stream": whether an answer is read as one body or piece by piece
    make: Callable
    call: Callable
    acall: Callable
    bodies: Mapping[str, bytes] = field(repr=False)
    answer: str = TEXT  # what the good body means
    label: str = "application/json"
    reads_all: bool = True  # whether a call gives the whole answer and not what stands for it

    @property
    def good(self):
        return self.bodies["good"]


# -- bodies ---------------------------------------------------------------------------------------


def completion(message):
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def whole_bodies(good, missing, empty, null, wrong):
    """The bodies of an answer in one piece."""
    odd = {"usage": ODD_COUNTS, "tokens": "many"}
    values = {"good": good, "missing": missing, "empty": empty, "null": null, "wrong": wrong}
    values |= {"odd usage": {**good, **odd}, "large": {**good, "padding": "x" * PADDING}}
    return {name: dumped(value) for name, value in values.items()}


ODD_COUNTS = {"prompt_tokens": "many", "completion_tokens": -1, "total_tokens": None}
DONE = {"success": True}
# the good one              a field is missing        nothing               null                       another type
CHAT = whole_bodies(
    completion({"content": TEXT}),
    {"id": "x", "object": "chat.completion", "model": "m"},
    {"choices": []},
    completion({"content": None}),
    completion({"content": 5}),
)
GENERAL = whole_bodies(
    {**DONE, "response": TEXT, "tokens": 5},
    {**DONE, "model": "m"},
    {},
    {**DONE, "response": None, "tokens": 5},
    {**DONE, "response": 5, "tokens": 5},
)
MODELS = whole_bodies(
    {"data": [{"id": TEXT}]}, {"object": "list"}, {}, {"data": None}, {"data": [5, None, {"id": 7}]}
)
TRANSLATION = whole_bodies(
    {**DONE, "translation": TEXT},
    DONE,
    {"translation": ""},
    {"translation": None},
    {"translation": 5},
)
ANALYSIS = whole_bodies(
    {**DONE, "description": TEXT},
    DONE,
    {"result": {}},
    {"description": None},
    {"description": {"of": None}},
)
IMAGES = whole_bodies(
    {"data": [{"b64_json": PNG}]},
    {"created": 1},
    {"data": []},
    {"data": [{"url": None}]},
    {"data": [{"url": 5}]},
)
MEDICAL = whole_bodies(
    {"response": TEXT}, DONE, {"response": ""}, {"response": None}, {"response": {"of": None}}
)
STATUS = whole_bodies(
    {"status": TEXT, "uptime": None},
    DONE,
    {},
    {"status": None, "uptime": None},
    {"status": {"of": None}},
)


def stream_bodies(event, first, second, end, *, bad, others):
    """The bodies of an answer in pieces.

    Args:
        event: Makes an event's bytes of a JSON value.
        first: The event that holds FIRST.
        second: The event that holds SECOND.
        end: The bytes of the end.
        bad: An event whose JSON is malformed.
        others: Further events by name, as JSON values; the end follows each.
    """
    named = {name: event(value) + end for name, value in others.items()}
    error = event({"error": {"message": "the engine broke", "code": "engine_failed"}})
    return named | {
        "good": first + second + end,
        "no end": first + second,
        "error": first + error,
        "malformed": first + bad + second + end,
        "half event": first + second.rstrip()[:-4],
        "half letter": first + first[: first.index("ü".encode()) + 1],
        "odd usage": first
        + second
        + event({**json.loads(_json(second)), "usage": ODD_COUNTS, **_NO_TEXT})
        + end,
    }


_NO_TEXT = {"choices": [], "response": ""}


def _json(event):
    return event.strip().removeprefix(b"data: ")


def _delta(text, reason=None):
    delta = {} if text is None else {"content": text}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _sse(value):
    return b"data: " + dumped(value) + b"\n\n"


def _line(value):
    return dumped(value) + b"\n"


CHAT_STREAM = stream_bodies(
    _sse,
    _sse(_delta(FIRST)),
    _sse(_delta(SECOND)),
    _sse(_delta(None, "stop")) + b"data: [DONE]\n\n",
    bad=b'data: {"choices": [}\n\n',
    others={
        "missing": {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"},
        "empty": {"choices": []},
        "null": _delta(None) | {"choices": [{"index": 0, "delta": {"content": None}}]},
        "wrong": {"choices": [{"index": 0, "delta": {"content": 5}, "finish_reason": None}]},
        "large": _delta(TEXT + "x" * LARGE),
    },
)
GENERAL_STREAM = stream_bodies(
    _line,
    _line({"response": FIRST, "done": False}),
    _line({"response": SECOND, "done": False}),
    _line({"response": "", "done": True}),
    bad=b'{"response": }\n',
    others={
        "missing": {"model": "m", "done": False},
        "empty": {"done": False},
        "null": {"response": None, "done": False},
        "wrong": {"response": 5, "done": False},
        "large": {"response": TEXT + "x" * LARGE, "done": False},
    },
)


# -- calls ----------------------------------------------------------------------------------------


def _chat(url, **settings):
    return svc.ChatSvc(base_url_v1=url + "/v1", **settings)


def _general_chat(url, **settings):
    return svc.ChatSvc(interface="general", base_url=url, **settings)


def _invoke(model):
    return model.invoke("Say hello").content


async def _ainvoke(model):
    return (await model.ainvoke("Say hello")).content


def _stream(model):
    return "".join(piece.content for piece in model.stream("Say hello"))


async def _astream(model):
    return "".join([piece.content async for piece in model.astream("Say hello")])


def _models(model):
    return ", ".join(listed.id for listed in model.list_models())


async def _amodels(model):
    return ", ".join(listed.id for listed in await model.alist_models())


def _tool(name, kind, arguments, bodies, *, read=str, url_word="base_url", path="", **words):
    """A column of a tool."""

    def make(url, **settings):
        return kind(**{url_word: url + path}, **words, **settings)

    def call(tool):
        return read(tool.invoke(arguments))

    async def acall(tool):
        return read(await tool.ainvoke(arguments))

    return Column(name, "whole", make, call, acall, bodies, reads_all=read is str)


def _made(text):
    """A made image's line, whose handle counts up."""
    return TEXT if text.startswith("Made:\nimg_") and text.endswith("PNG, 1x1 pixels") else text


def _clinical(text):
    """A medical answer without what every one of them says, and without fields we added."""
    return TEXT if TEXT in text.partition("\n")[0] else text


def _medical(name, kind, arguments, bodies):
    words = {"url_word": "medical_base_url", "max_result_chars": 10**7}  # none is told in part
    return _tool(name, kind, arguments, bodies, read=_clinical, **words)


COLUMNS = (
    Column("ChatSvc.invoke", "whole", _chat, _invoke, _ainvoke, CHAT),
    Column(
        "ChatSvc.stream", "stream", _chat, _stream, _astream, CHAT_STREAM, label="text/event-stream"
    ),
    Column("ChatSvc.list_models", "whole", _chat, _models, _amodels, MODELS),
    Column("ChatSvc, general, invoke", "whole", _general_chat, _invoke, _ainvoke, GENERAL),
    Column(
        "ChatSvc, general, stream",
        "stream",
        _general_chat,
        _stream,
        _astream,
        GENERAL_STREAM,
        label="application/x-ndjson",
    ),
    Column("ChatSvc, general, list_models", "whole", _general_chat, _models, _amodels, MODELS),
    _tool("SvcTranslate", svc.SvcTranslate, {"text": "Hello, world.", "target": "de"}, TRANSLATION),
    _tool("SvcAnalyzeImage", svc.SvcAnalyzeImage, {"image": PNG, "task": "describe"}, ANALYSIS),
    _tool(
        "SvcGenerateImage, v1",
        svc.SvcGenerateImage,
        {"prompt": "A dot"},
        IMAGES,
        read=_made,
        url_word="base_url_v1",
        path="/v1",
        retry_lost=True,
    ),
    _tool(
        "SvcGenerateImage, general",
        svc.SvcGenerateImage,
        {"prompt": "A dot"},
        IMAGES,
        read=_made,
        api="general",
        retry_lost=True,
    ),
    _medical("SvcMedicalConsult", svc.SvcMedicalConsult, {"message": "A dry cough"}, MEDICAL),
    _medical(
        "SvcDecisionSupport",
        svc.SvcDecisionSupport,
        {"symptoms": ["cough"], "specialty": "pneumology"},
        MEDICAL,
    ),
    _medical("SvcCancerRisk", svc.SvcCancerRisk, {"symptoms": "A dry cough"}, MEDICAL),
    _medical("SvcMedicalStatus", svc.SvcMedicalStatus, {}, STATUS),
)
