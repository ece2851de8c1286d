"""Every endpoint of the three documents: the exact method, path, headers and body on the wire.

The rows are written from the documents alone. The server keeps the bytes as they came, so nothing
is lost or changed on the way.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from langchain_core.messages import ToolMessage
from peers import RawServer, listed, png, response, tool_call
from share import pairs

import langchain_svc as svc

KEY = "sk-of-this-interface"
JSON_TYPE = {"content-type": "application/json"}
BEARER = {"authorization": f"Bearer {KEY}"}
API_KEY = {"x-api-key": KEY}
# What HTTP itself and every polite client says, which no document forbids.
TRANSPORT = {
    "host": r"127\.0\.0\.1:\d+",
    "accept": r"\*/\*",
    "accept-encoding": "gzip",
    "user-agent": re.escape(f"langchain-svc/{svc.__version__}"),
}

B64 = base64.b64encode(png()).decode()
PAGE = "https://example.com/cat.png"


# -- ways to ask -----------------------------------------------------------------------------------


INVOKE = (lambda made, given: made.invoke(given), lambda made, given: made.ainvoke(given))
STREAM = (
    lambda made, given: list(made.stream(given)),
    lambda made, given: listed(made.astream(given)),
)
LIST = (lambda made, _: made.list_models(), lambda made, _: made.alist_models())
USE = (
    lambda made, given: made.invoke(tool_call(made, given)),
    lambda made, given: made.ainvoke(tool_call(made, given)),
)


# -- the documents ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One endpoint in one of its modes.

    `cases` holds, by name: the constructor's words, the input, and the body that must arrive
    (None: no body). `fields` are the documented fields of the request that this mode may send.
    """

    endpoint: str
    kind: Callable
    ask: tuple
    cases: dict
    answer: object
    fields: str = ""
    headers: dict = field(default_factory=lambda: BEARER | JSON_TYPE)

    @property
    def urls(self):
        if self.headers.get("x-api-key"):
            return {"medical_base_url": ""}
        return {"base_url_v1": "/v1"} if "/v1/" in self.endpoint else {"base_url": ""}

    @property
    def built(self):
        path = self.endpoint.split()[1]
        places = [place for start, place in BUILT.items() if path.startswith(start)]
        return places[0] if places else "a module of langchain_svc/_wire"


BUILT = {
    "/v1/chat": "langchain_svc/_wire/v1.py, from its CHAT_SETTINGS",
    "/api/chat": "langchain_svc/_wire/general.py, from its CHAT_SETTINGS",
    "/api/translate": "langchain_svc/_wire/general.py",
    "/api/medical": "langchain_svc/medical/wire.py",
    "/v1/images": "langchain_svc/_wire/image_endpoints.py",
    "/api/generate-image": "langchain_svc/_wire/image_endpoints.py",
    "/api/vision": "langchain_svc/_wire/image_endpoints.py",
}
"""Where the body of a request is built, by the beginning of its path."""

EVENTS = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n\n'
COMPLETION = {
    "id": "c1", "object": "chat.completion", "created": 1_760_000_000, "model": "svc-pro",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}  # fmt: skip
CHAT_ANSWER = {
    "success": True,
    "response": "Hi",
    "model": "svc-pro",
    "tokens": 2,
    "timestamp": "2026-01-01T00:00:00Z",
}
STATUS = {
    "status": "operational",
    "uptime": "99.9%",
    "latency": "20ms",
    "capabilities": {
        "clinicCDSS": True,
        "medicalAI": True,
        "cancerDiagnosis": True,
        "multiLanguage": True,
    },
}

TALK = [("user", "Hello"), ("assistant", "Grüße 你好"), ("user", '"Who" are\nyou?')]
MESSAGES = [{"role": role, "content": text} for role, text in TALK]
ONE_TEXT = """\
Hello

The conversation went on, each turn between turn tags. Write the assistant's next turn, without the tags.
<turn role="assistant">
Grüße 你好
</turn>
<turn role="user">
"Who" are
you?
</turn>"""
ONE_MESSAGE = [{"role": "user", "content": "Hello"}]
HOT = {"model": "svc-pro", "temperature": 2, "max_tokens": 1}
COOL = {"model": "svc-pro", "temperature": 1}
GENERAL_IMAGE = {"api": "general"}
VITALS = {
    "systolic": 150,
    "diastolic": 95.5,
    "heartRate": 90,
    "temperature": 37.2,
    "respiratoryRate": 18,
}
RESULTS = {"troponin": 0.02, "bnp": 80, "creatinine": 1}
CONTEXT = {
    "age": 61,
    "sex": "female",
    "medicalHistory": ["asthma"],
    "currentMedications": ["salbutamol"],
}


def general_chat(**settings):
    """A chat model on the general interface."""
    return svc.ChatSvc(interface="general", **settings)


ROWS = {
    # v1 API, sections 2, 4 and 5. Rule 4: "Requests carry Content-Type: application/json".
    "v1 chat": Row(
        "POST /v1/chat/completions", svc.ChatSvc, INVOKE, answer=COMPLETION,
        fields="model messages temperature max_tokens",
        cases={
            "minimal": ({"model": "svc-code"}, "Hello", {"model": "svc-code", "messages": ONE_MESSAGE}),
            "full": (HOT, TALK, {**HOT, "messages": MESSAGES}),
            "not given": ({"model": "svc-code", "temperature": None, "max_tokens": None, "streaming": False}, "Hello",
                {"model": "svc-code", "messages": ONE_MESSAGE}),
        },
    ),
    "v1 chat, streaming": Row(
        "POST /v1/chat/completions", svc.ChatSvc, STREAM, answer=EVENTS,
        fields="model messages temperature max_tokens stream",
        cases={
            "minimal": ({"model": "svc-code"}, "Hello", {"model": "svc-code", "messages": ONE_MESSAGE, "stream": True}),
            "full": (HOT, TALK, {**HOT, "messages": MESSAGES, "stream": True}),
        },
    ),
    "v1 images": Row(
        "POST /v1/images/generate", svc.SvcGenerateImage, USE, answer={"data": [{"b64_json": B64}]},
        fields="prompt size n quality",
        cases={
            "minimal": ({}, {"prompt": "a cat"}, {"prompt": "a cat"}),
            "full": ({}, {"prompt": "x" * 1000, "size": "1792x1024", "n": 4, "quality": "hd"},
                {"prompt": "x" * 1000, "size": "1792x1024", "n": 4, "quality": "hd"}),
            "not given": ({}, {"prompt": "a cat", "size": None, "n": None, "quality": None}, {"prompt": "a cat"}),
        },
    ),
    "v1 models": Row("GET /v1/models", svc.ChatSvc, LIST, {"minimal": ({}, None, None)}, {"data": [{"id": "svc-pro"}]}),
    # general API. Section 1: "Requests that carry a body send Content-Type: application/json".
    "general chat": Row(
        "POST /api/chat", general_chat, INVOKE, answer=CHAT_ANSWER, fields="message model temperature",
        cases={
            "minimal": ({}, "Hello", {"message": "Hello"}),
            "full": (COOL, TALK, {"message": ONE_TEXT, **COOL}),
            "not given": ({"model": None, "temperature": None, "max_tokens": None}, "Hello", {"message": "Hello"}),
        },
    ),
    "general chat, streaming": Row(
        "POST /api/chat", general_chat, STREAM, answer=EVENTS, fields="message model temperature stream",
        cases={
            "minimal": ({}, "Hello", {"message": "Hello", "stream": True}),
            "full": (COOL, TALK, {"message": ONE_TEXT, **COOL, "stream": True}),
        },
    ),
    "general models": Row("GET /api/models", general_chat, LIST, {"minimal": ({}, None, None)},
        {"models": [{"id": "svc-pro"}]}, headers=BEARER),
    "vision": Row(
        "POST /api/vision", svc.SvcAnalyzeImage, USE, answer={"description": "a cat"}, fields="image task",
        cases={
            "an address": ({}, {"image": PAGE, "task": "describe"}, {"image": PAGE, "task": "describe"}),
            "base64": ({}, {"image": B64, "task": "ocr"}, {"image": B64, "task": "ocr"}),
            "a data URI": ({}, {"image": f"data:image/png;base64,{B64}", "task": "detect"},
                {"image": B64, "task": "detect"}),
            "moderate": ({}, {"image": B64, "task": "moderate"}, {"image": B64, "task": "moderate"}),
        },
    ),
    "general images": Row(
        "POST /api/generate-image", svc.SvcGenerateImage, USE, answer={"image": B64}, fields="prompt size quality",
        cases={
            "minimal": (GENERAL_IMAGE, {"prompt": "a cat"}, {"prompt": "a cat"}),
            "full": (GENERAL_IMAGE, {"prompt": "a cat", "size": "1024x1792", "quality": "standard"},
                {"prompt": "a cat", "size": "1024x1792", "quality": "standard"}),
            "not given": (GENERAL_IMAGE, {"prompt": "a cat", "size": None, "quality": None}, {"prompt": "a cat"}),
        },
    ),
    "translate": Row(
        "POST /api/translate", svc.SvcTranslate, USE, answer={"translation": "hola"}, fields="text from to",
        cases={
            "minimal": ({}, {"text": "hello", "target": "es"}, {"text": "hello", "to": "es"}),
            "full": ({}, {"text": "hello", "target": "es", "source": "en"},
                {"text": "hello", "from": "en", "to": "es"}),
            "not given": ({}, {"text": "hello", "target": "es", "source": None}, {"text": "hello", "to": "es"}),
        },
    ),
    # medical API. Section 5: "Every request carries the header X-API-Key, together with
    # Content-Type: application/json".
    "medical chat": Row(
        "POST /api/medical/chat", svc.SvcMedicalConsult, USE, answer={"response": "Rest."}, headers=API_KEY | JSON_TYPE,
        fields="message specialty language patientContext",
        cases={
            "minimal": ({}, {"message": "a cough"}, {"message": "a cough"}),
            "full": (
                {},
                {"message": "a cough", "specialty": "oncology", "language": "de",
                "patient_context": {"age": 61, "sex": "female", "medical_history": ["asthma"],
                "current_medications": ["salbutamol"]}},
                {"message": "a cough", "specialty": "oncology", "language": "de", "patientContext": CONTEXT},
            ),
            "not given": ({},
                {"message": "a cough", "specialty": None, "language": None,
                "patient_context": {"age": None, "sex": None, "medical_history": [], "current_medications": []}},
                {"message": "a cough"}),
        },
    ),
    "decision support": Row(
        "POST /api/medical/clinic-protocols", svc.SvcDecisionSupport, USE, answer={"recommendations": ["rest"]},
        headers=API_KEY | JSON_TYPE,
        fields="symptoms vitalSigns labResults medicalHistory specialty",
        cases={
            "minimal": ({}, {"symptoms": ["pain"], "specialty": "neurology"},
                {"symptoms": ["pain"], "specialty": "neurology"}),
            "full": (
                {},
                {"symptoms": ["pain", "fever"], "specialty": "oncology",
                "vital_signs": {"systolic": 150, "diastolic": 95.5, "heart_rate": 90, "temperature": 37.2,
                "respiratory_rate": 18}, "lab_results": RESULTS, "medical_history": ["asthma"]},
                {"symptoms": ["pain", "fever"], "specialty": "oncology", "vitalSigns": VITALS, "labResults": RESULTS,
                    "medicalHistory": ["asthma"]},
            ),
            "further readings": (
                {},
                {"symptoms": ["pain"], "specialty": "neurology", "vital_signs": {"oxygenSaturation": 97},
                "lab_results": {"glucose": 99}},
                {"symptoms": ["pain"], "specialty": "neurology", "vitalSigns": {"oxygenSaturation": 97},
                    "labResults": {"glucose": 99}},
            ),
            "not given": ({},
                {"symptoms": ["pain"], "specialty": "neurology", "vital_signs": {"systolic": None}, "lab_results": None,
                "medical_history": []}, {"symptoms": ["pain"], "specialty": "neurology"}),
        },
    ),
    "cancer diagnosis": Row(
        "POST /api/medical/cancer-diagnosis", svc.SvcCancerRisk, USE, answer={"riskLevel": "low"},
        headers=API_KEY | JSON_TYPE,
        fields="patientAge patientSex symptoms riskFactors images imagingType",
        cases={
            "minimal": ({}, {"symptoms": "a cough"}, {"symptoms": "a cough"}),
            "full": (
                {},
                {"symptoms": "a cough", "patient_age": 61, "patient_sex": "female", "risk_factors": ["smoking"],
                "images": [B64], "imaging_type": "chest CT"},
                {"patientAge": 61, "patientSex": "female", "symptoms": "a cough", "riskFactors": ["smoking"],
                    "images": [B64], "imagingType": "chest CT"},
            ),
            "not given": ({},
                {"symptoms": "a cough", "patient_age": None, "patient_sex": None, "risk_factors": [], "images": [],
                "imaging_type": None}, {"symptoms": "a cough"}),
        },
    ),
    "medical status": Row("GET /api/medical/clinic-protocols", svc.SvcMedicalStatus, USE, {"minimal": ({}, {}, None)},
        STATUS, headers=API_KEY | JSON_TYPE),
}  # fmt: skip


def test_the_rows_are_those_of_the_documents():
    listed = {
        "POST /v1/chat/completions", "POST /v1/images/generate", "GET /v1/models",
        "POST /api/chat", "GET /api/models", "POST /api/vision", "POST /api/generate-image", "POST /api/translate",
        "POST /api/medical/chat", "POST /api/medical/clinic-protocols", "GET /api/medical/clinic-protocols",
        "POST /api/medical/cancer-diagnosis",
    }  # fmt: skip
    rows = {row.endpoint for row in ROWS.values()}
    assert rows == listed, "ROWS and this list of the documents' endpoints differ"
    for row in ROWS.values():
        bodies = [set(body or ()) for *_, body in row.cases.values()]
        sent, fields = set().union(*bodies), set(row.fields.split())
        assert sent == fields, (
            f"{row.endpoint} in ROWS: fields= lacks {sorted(sent - fields)}, and no case has "
            f"{sorted(fields - sent)}"
        )


# -- what arrives ----------------------------------------------------------------------------------


@pytest.fixture
def server():
    def answer(connection):
        kind = "text/event-stream" if server.body is EVENTS else "application/json"
        connection.sendall(response(server.body, content_type=kind))

    with RawServer(answer) as server:
        yield server


def parsed(request):
    """Request line, headers and body of the bytes of one request."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *lines = head.decode("ascii").split("\r\n")
    headers = [one.split(": ", 1) for one in lines]
    assert len({name.lower() for name, _ in headers}) == len(headers), "a header came twice"
    return line, {name.lower(): value for name, value in headers}, body


def asked(row, way, server, words, given):
    """Asks once, blocking or asynchronously, and gives back what the server saw."""
    answer = row.answer
    server.body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    urls = {word: server.url + path for word, path in row.urls.items()}
    made = row.kind(api_key=KEY, max_retries=0, **urls, **words)

    async def asynchronously():
        async with made:
            return await row.ask[1](made, given)

    with made:
        got = row.ask[0](made, given) if way == "sync" else asyncio.run(asynchronously())
    assert got
    assert not isinstance(got, ToolMessage) or got.status == "success", got
    (request,) = server.requests
    return parsed(request)


REQUESTS = [(name, case) for name, row in ROWS.items() for case in row.cases]


@pytest.mark.parametrize(("request_", "way"), pairs(REQUESTS, ["sync", "async"]))
def test_the_request_is_the_documented_one(server, request_, way):
    name, case = request_
    row = ROWS[name]
    words, given, expected = row.cases[case]
    line, headers, body = asked(row, way, server, words, given)
    assert line == f"{row.endpoint} HTTP/1.1"
    length = {"content-length": str(len(body))} if expected is not None else {}
    assert headers.keys() == row.headers.keys() | TRANSPORT.keys() | length.keys()
    assert {name: headers[name] for name in row.headers | length} == row.headers | length
    for header, form in TRANSPORT.items():
        assert re.fullmatch(form, headers[header]), header
    if expected is None:
        assert body == b""
        return
    seen = json.loads(body)
    names = seen.keys() | expected.keys()
    wrong = sorted(one for one in names if seen.get(one, row) != expected.get(one, row))
    assert not wrong, (
        f"{row.endpoint}, {case}: {wrong} arrived otherwise than ROWS has it. The body is built in "
        f"{row.built}, and arrived as {seen}"
    )
    assert body == json.dumps(seen, ensure_ascii=False, separators=(",", ":")).encode()
    assert b"null" not in body
    assert KEY.encode() not in body
