"""The endpoints as their documents have them: keys, bodies, bounds, answers and refusals."""

import base64
import io
import re

import httpx
import pytest
from PIL import Image
from sandbox_peer import SAY

from langchain_svc.sandbox import Sandbox

V1, GENERAL, MEDICAL = "/v1/models", "/api/models", "/api/medical/clinic-protocols"
CHAT, DRAW = "/v1/chat/completions", "/v1/images/generate"
TALK, VISION, IMAGE, TRANSLATE = (
    "/api/chat",
    "/api/vision",
    "/api/generate-image",
    "/api/translate",
)
CONSULT, SUPPORT, CANCER = "/api/medical/chat", MEDICAL, "/api/medical/cancer-diagnosis"
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
LONG = "a b c d " * 1001  # more than the 4,000 tokens of the smallest window, dune-lite's
PATIENT = {"age": 61.5, "sex": "female", "medicalHistory": ["asthma"], "currentMedications": []}
# What each endpoint asks for at least; the tables below change it.
LEAST = {
    CHAT: {"model": "svc-pro", "messages": SAY},
    DRAW: {"prompt": "a red house"},
    TALK: {"message": "hello"},
    VISION: {"image": PIXEL, "task": "describe"},
    IMAGE: {"prompt": "a red house"},
    TRANSLATE: {"text": "good morning", "to": "fr"},
    CONSULT: {"message": "headache"},
    SUPPORT: {"symptoms": ["chest pain"], "specialty": "cardiovascular"},
    CANCER: {},
}


def message(answer):
    """What an error says, in the shape of its interface."""
    body = answer.json()
    if f"{answer.request.url.path}/".startswith("/v1/"):
        assert body.keys() == {"error"}
        assert body["error"].keys() == {"message", "type", "code"}
        return body["error"]["message"]
    medical = answer.request.url.path.startswith("/api/medical")
    assert body.keys() == ({"error"} if medical else {"success", "error"})
    assert body.get("success", False) is False
    return body["error"]


# -- what is accepted ----------------------------------------------------------------------------------

ACCEPTED = {
    CHAT: [
        *({"temperature": value} for value in (0, 0.7, 2)),
        *({"max_tokens": 1}, {"stream": False}, {"model": "grove-mini"}),
        {"messages": [{"role": "assistant", "content": ""}, *SAY]},
        {"messages": [{"role": "system", "content": "x"}, *SAY]},
    ],
    DRAW: [{"prompt": "x" * 1000}],
    TALK: [{"model": "svc-pro", "temperature": 1}],
    VISION: [{"image": "data:image/png;base64," + PIXEL, "task": "ocr"}, {"task": "moderate"}],
    IMAGE: [{"prompt": "x" * 1500, "size": "1792x1024"}],
    TRANSLATE: [{"from": "en"}],
    CONSULT: [{"specialty": "oncology", "language": "de"}, {"patientContext": PATIENT}],
    SUPPORT: [{"vitalSigns": {"systolic": 180, "spO2": 93.5}}, {"labResults": {"ferritin": 12}}],
    CANCER: [{"patientAge": 50, "images": ["aGVsbG8="], "imagingType": "CT"}],
}


@pytest.mark.parametrize("path", ACCEPTED)
def test_what_the_document_allows_is_accepted(call, path):
    for change in ({}, *ACCEPTED[path]):
        answer = call(path, {**LEAST[path], **change})
        assert answer.status_code == 200, change
        if "medical" in path:
            assert answer.json()["synthetic"] is True
            assert "not medical advice" in answer.json()["disclaimer"]


# -- what is refused -----------------------------------------------------------------------------------

PICTURES = ["", "not base64!", "data:image/png,abc", "data:image/png;base64,", "\u20ac", "bm9uZQ=="]
# For each endpoint and field, values that are refused; a field with dots lies inside an object.
WRONG = {
    CHAT: {
        "temperature": [-0.1, 2.1, "1", True, None],
        "max_tokens": [0, 1.5, True],
        "stream": [1, "true"],
        "model": [7, ""],
        "messages": [[], "hello"],
        "messages[0]": [["hello"]],
        "messages[0].role": [
            [{"content": "x"}],
            *([{"role": role, "content": "x"}] for role in ("tool", ["user"])),
        ],
        "messages[0].content": [
            [{"role": "user"}],
            *(
                [{"role": "user", "content": said}]
                for said in (None, [{"type": "text", "text": "x"}])
            ),
        ],
    },
    DRAW: {
        "prompt": ["", "x" * 1001],
        "n": [0, 5, True, 1.0],
        "size": ["512x512"],
        "quality": ["best"],
    },
    TALK: {
        "message": ["", ["x"]],
        "temperature": [1.01, -1, False],
        "stream": ["yes"],
        "model": [None],
    },
    VISION: {"image": PICTURES, "task": ["read"]},
    IMAGE: {"size": ["1x1"], "quality": [3]},
    TRANSLATE: {"to": [5], "from": [None]},
    CONSULT: {
        "message": [1],
        "patientContext": [[]],
        "patientContext.age": ["Jane-Roe-1961", True],
        "patientContext.medicalHistory": ["asthma"],
    },
    SUPPORT: {
        "symptoms": [[], "pain"],
        "symptoms[1]": [["x", 2]],
        "vitalSigns.systolic": ["Jane-Roe-1961"],
        "labResults": [3],
        "labResults.bnp": [False, 10**400],
    },
    CANCER: {
        "patientAge": ["Jane-Roe-1961"],
        "images[0]": [["%%%"]],
        "riskFactors[0]": [[1]],
    },
}


@pytest.mark.parametrize(
    ("path", "field"), [(path, field) for path, fields in WRONG.items() for field in fields]
)
def test_a_refusal_names_the_field_and_never_its_value(call, path, field):
    outer, _, inner = field.partition("[")[0].partition(".")
    for value in WRONG[path][field]:
        body = {**LEAST[path], outer: {inner: value} if inner else value}
        answer = call(path, body)
        assert answer.status_code == 400, value
        assert message(answer).startswith(field + ":")
        assert "Jane" not in answer.text


@pytest.mark.parametrize("path", LEAST)
def test_what_is_required_must_be_there(call, path):
    for name in LEAST[path]:
        answer = call(path, {key: value for key, value in LEAST[path].items() if key != name})
        assert answer.status_code == 400
        assert message(answer) == f"{name}: Field required."


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [("svc-imaginary", 404, "model_not_found"), ("dune-lite", 400, "context_length_exceeded")],
)
def test_an_unknown_model_and_a_prompt_beyond_its_window(call, model, status, code):
    messages = [{"role": "user", "content": LONG}]
    v1 = call(CHAT, {"model": model, "messages": messages})
    general = call(TALK, {"model": model, "message": LONG})
    assert (v1.status_code, general.status_code) == (status, status)
    assert message(v1) == message(general)
    assert v1.json()["error"]["code"] == code


def test_undocumented_fields_are_recorded_and_refused_only_when_strict(call):
    body = {**LEAST[CHAT], "messages": [{**SAY[0], "name": "Ann"}], "tools": [], "stop": ["x"]}
    nested = {"message": "x", "patientContext": {"weight": 70}, "mood": 1}
    with Sandbox() as s:
        assert call(CHAT, body, sandbox=s).status_code == 200
        assert call(CONSULT, nested, sandbox=s).status_code == 200
        assert [each.unknown_fields for each in s.requests] == [
            ("tools", "stop", "messages[0].name"),
            ("mood", "patientContext.weight"),
        ]
    system = [{"role": "system", "content": "x"}]
    with Sandbox(strict=True) as s:
        assert call(CHAT, LEAST[CHAT], sandbox=s).status_code == 200
        field = call(CHAT, {**LEAST[CHAT], "tools": []}, sandbox=s)
        role = call(CHAT, {**LEAST[CHAT], "messages": system}, sandbox=s)
    assert message(field).startswith("tools:")
    assert message(role).startswith("messages[0].role:")


# -- what is answered ----------------------------------------------------------------------------------


def test_a_chat_completion_has_the_documented_fields(call):
    body = call(CHAT, {**LEAST[CHAT], "max_tokens": 3}).json()
    assert body.keys() == {"id", "object", "created", "model", "choices", "usage"}
    assert (body["object"], body["model"]) == ("chat.completion", "svc-pro")
    (choice,) = body["choices"]
    assert choice.keys() == {"index", "message", "finish_reason"}
    assert choice["message"].keys() == {"role", "content"}
    assert choice["finish_reason"] == "length"
    usage = body["usage"]
    assert usage["completion_tokens"] == 3
    assert usage["total_tokens"] == usage["prompt_tokens"] + 3
    with Sandbox(answers=["word " * 3000]) as s:
        whole = call(CHAT, LEAST[CHAT], sandbox=s).json()
    assert whole["usage"]["completion_tokens"] == 2000  # when max_tokens is omitted


def test_a_general_chat_has_the_documented_fields(call):
    body = call(TALK, {"message": "\U0001f600 \u20ac"}).json()
    assert "\U0001f600 \u20ac" in body["response"]
    assert body.keys() == {"success", "response", "model", "tokens", "timestamp"}
    assert body["success"] is True
    assert body["model"] == "svc-turbo"
    assert isinstance(body["tokens"], int)


def test_ids_and_times_repeat_from_run_to_run(call):
    def ids():
        with Sandbox(clock=lambda: 1_700_000_000.9) as s:
            answers = [call(CHAT, LEAST[CHAT], sandbox=s) for _ in range(2)]
            stamp = call(TALK, LEAST[TALK], sandbox=s).json()["timestamp"]
        assert answers[0].headers["date"] == "Tue, 14 Nov 2023 22:13:20 GMT"
        assert answers[0].json()["created"] == 1_700_000_000
        assert stamp == "2023-11-14T22:13:20.900Z"
        return [answer.json()["id"] for answer in answers]

    first, second = ids(), ids()
    assert first == second
    assert first[0] != first[1]
    assert first[0].startswith("chatcmpl-")


def test_models(call):
    listed = call(V1, method="GET").json()
    windows = {record["id"]: record["context_window"] for record in listed["data"]}
    named = {"svc-turbo": 128_000, "svc-pro": 200_000, "svc-vision": 128_000, "svc-code": 128_000}
    assert listed["object"] == "list"
    assert windows == named
    assert all(record["capabilities"] and record["pricing"] for record in listed["data"])
    records = call(GENERAL, method="GET").json()["models"]
    assert len({record["id"] for record in records}) == 23
    assert named.keys() <= {record["id"] for record in records}
    for record in records:
        assert record.keys() == {"id", "name", "provider", "capabilities", "max_tokens"}
        assert set(record["capabilities"]) <= {"chat", "vision", "code", "analysis"}
        assert call(TALK, {"message": "x", "model": record["id"]}).status_code == 200


def drawn(call, size="1024x1024", **extra):
    body = {"prompt": "a red circle", "size": size, **extra}
    data = call(DRAW, body).json()["data"]
    return [base64.b64decode(each["b64_json"]) for each in data]


def test_pictures_follow_from_the_request_and_are_found_again(call):
    one, two = drawn(call, n=2)
    assert drawn(call) == [one]
    assert len({one, two, *drawn(call, quality="hd")}) == 3
    other = call(IMAGE, LEAST[IMAGE]).json()["image"]
    assert other.startswith("data:image/png;base64,")
    for size in ("1024x1024", "1792x1024", "1024x1792"):
        (data,) = drawn(call, size)
        with Image.open(io.BytesIO(data)) as picture:
            assert f"{picture.width}x{picture.height}" == size
        assert len(data) < 20_000

    def seen(task):
        body = {"image": base64.b64encode(one).decode(), "task": task}
        return call(VISION, body).json()["result"]

    assert seen("describe").keys() >= {"description", "width", "height"}
    assert "a red circle" in seen("describe")["description"]
    assert seen("ocr")["text"] == "a red circle"
    assert seen("detect")["objects"]
    assert seen("moderate")["flagged"] is False


def test_what_is_no_picture_is_refused(call):
    bomb = io.BytesIO()
    Image.new("1", (14_000, 14_000)).save(bomb, "PNG")
    for data in (b"no image", b"<svg/>", drawn(call)[0][:300], bomb.getvalue()):
        answer = call(VISION, {"image": base64.b64encode(data).decode(), "task": "ocr"})
        assert answer.status_code == 400
        assert message(answer).startswith("image:")


def test_a_translation_is_labelled(call):
    told = call(TRANSLATE, {"text": "Hello {name}", "to": "fr"}).json()
    assert told["translation"] == "[fr] Hello {name}"
    assert told["target"] == "fr"
    assert "not a real translation" in told["note"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x.png", "HTTPS://example.invalid/x.png"])
def test_an_address_of_a_picture_is_never_fetched(call, url):
    result = call(VISION, {"image": url, "task": "describe"}).json()["result"]
    assert result["seen"] is False
    assert "not fetch" in result["note"]


def test_the_status_of_the_medical_interface_which_has_no_limits(call):
    with Sandbox(plan="free") as s:
        answers = [call(MEDICAL, method="GET", sandbox=s) for _ in range(20)]
    assert {answer.status_code for answer in answers} == {200}
    body = answers[0].json()
    assert (body["status"], body["uptime"]) == ("operational", "99.98%")
    assert re.fullmatch(r"\d+ms", body["latency"])
    assert set(body["capabilities"]) == {
        *("clinicCDSS", "medicalAI", "cancerDiagnosis", "multiLanguage")
    }


# -- keys, paths, methods, bodies ----------------------------------------------------------------------

BEARER_KEYS = [
    *("", "Bearer wrong-key", "Bearer", "Basic sandbox-key", "sandbox-key"),
    *("Bearer sandbox-medical-key", "Bearer sandbox-key-and-more"),
]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        *((path, {"Authorization": key}) for path in (V1, GENERAL) for key in BEARER_KEYS),
        *((path, {"X-API-Key": "sandbox-key"}) for path in (V1, GENERAL, MEDICAL)),
        (MEDICAL, {}),
        (MEDICAL, {"X-API-Key": ""}),
        (MEDICAL, {"Authorization": "Bearer sandbox-medical-key"}),
    ],
)
def test_each_interface_wants_its_own_key(sandbox, path, headers):
    answer = httpx.get(sandbox.url + path, headers=headers)
    assert answer.status_code == 401
    assert "wrong-key" not in message(answer)
    if path == V1:
        error = answer.json()["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")


def test_keys_may_be_chosen_and_forbidden():
    with Sandbox(api_key="one", medical_api_key="two") as s:
        assert s.v1 == {"api_key": "one", "base_url_v1": s.url + "/v1"}
        assert s.general == {"api_key": "one", "base_url": s.url}
        assert s.medical == {"api_key": "two", "medical_base_url": s.url}
        assert (s.env["SVC_API_KEY"], s.env["SVC_MEDICAL_API_KEY"]) == ("one", "two")
        for path, name, start, key in [
            *((path, "Authorization", "bearer ", "one") for path in (V1, GENERAL)),
            (MEDICAL, "X-API-Key", "", "two"),
        ]:
            for given, status in [(key, 200), ("forbidden-1", 403)]:
                answer = httpx.get(s.url + path, headers={name: start + given})
                assert answer.status_code == status


@pytest.mark.parametrize(
    "path", ["/v1/nothing", "/v1", "/", "/api/models/", "/v1x/models", "/api/medical/nothing"]
)
def test_unknown_paths_answer_in_the_words_of_their_interface(call, path):
    answer = call(path, {})
    assert answer.status_code == 404
    assert message(answer)
    assert ("x-ratelimit-limit" in answer.headers) == f"{path}/".startswith("/v1/")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", CHAT, "POST"),
        ("POST", GENERAL, "GET"),
        ("HEAD", V1, "GET"),
        ("DELETE", MEDICAL, "GET, POST"),
    ],
)
def test_wrong_methods(call, method, path, allowed):
    answer = call(path, method=method)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


JSON = "application/json; charset=utf-8"


@pytest.mark.parametrize(
    ("label", "body"),
    [
        *((label, b'{"message": "x"}') for label in (None, "text/plain")),
        *((JSON, body) for body in (b"", b"{", b"[]", b'"text"', b"null", b'{"message": NaN}')),
        (JSON, b'{"message": "x", "temperature": Infinity}'),
        (JSON, b'{"message": "x", "temperature": 1e999}'),
        (JSON, b'{"message": "\xff"}'),
        (JSON, b'{"message": "\\ud800"}'),
        (JSON, b'{"message": ' + b"[" * 100_000),
        (JSON, b'{"temperature": ' + b"9" * 5000 + b"}"),
    ],
)
def test_a_body_must_be_a_json_object_and_say_so(call, label, body):
    headers = {"Content-Type": label} if label else {}
    assert call(TALK, headers=headers, content=body).status_code == 400


def test_a_body_over_32_megabytes(call):
    with Sandbox() as s:
        parts = (b" " * (1 << 20) for _ in range(33))
        answer = call(TALK, headers={"Content-Type": JSON}, content=parts, sandbox=s)
        assert answer.status_code == 413
        assert s.requests[0].body == b""


def test_a_bug_is_a_500_that_says_nothing_about_the_request(call, caplog):
    def broken(request):
        raise ZeroDivisionError(request.json["message"])

    with Sandbox(answers=broken) as s:
        answer = call(TALK, {"message": "Jane Roe"}, sandbox=s)
    assert answer.status_code == 500
    assert "Jane" not in answer.text
    assert "ZeroDivisionError" in caplog.text
    assert "Jane" not in caplog.text
