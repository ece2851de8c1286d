"""What cassettes may hold, and that playing one is as good as calling."""

import asyncio
import json
import os
import re
import socket
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from langchain_core.messages import BaseMessage
from peers import summed
from test_endpoints import ROWS as DOCUMENTED
from vcr import VCR
from vcr.errors import CannotOverwriteExistingCassetteException

from langchain_svc import ChatSvc, PatientContext, SvcAPIError, SvcCancerRisk
from langchain_svc.sandbox import Fault, Sandbox

ROOT = Path(__file__).parents[1]
CASSETTES = ROOT / "cassettes"

# -- what a cassette may hold -----------------------------------------------------------------------

SOURCE = re.compile(r"sandbox \d+\.\d+\.\d+\w*|service on \d{4}-\d\d-\d\d")
HEADERS = re.compile(
    r"accept|authorization|x-api-key|content-type|retry-after|x-request-id|x-ratelimit-\w+"
)
SHAPES = {
    "a bearer key": re.compile(r"Bearer "),
    "a key": re.compile(r"\b(sk|pk|rk|gh[pousr]|hf|glpat|xox[abp]|AKIA)[-_]?[\w-]{12,}"),
    "a signed token": re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}"),
    "a key of the sandbox": re.compile(r"sandbox-(medical-)?key"),
    "a path of a machine": re.compile(r"(?<![\w.])/(root|home|Users|tmp|var|private)/|\b[A-Z]:\\"),
    "an address of a machine": re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b|localhost|://[^/\s]+:\d+"),
}
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
# As they were before conftest's fixtures hid them.
SECRETS = {name: value for name, value in os.environ.items() if SECRET_NAME.search(name)}
LEAST = 6  # letters; a shorter value is found in any text


def findings(path, secrets=None):
    """Everything in one cassette that must not be there, or is missing."""
    text = path.read_text(encoding="utf-8")
    cassette = yaml.safe_load(text)
    if not isinstance(cassette, dict) or "interactions" not in cassette:
        return [f"{path.name}: no cassette"]
    # A key could be folded over two lines of the file, or lie in it as base64.
    texts = [text, *_texts_in(cassette)]
    found = [
        what
        for what, is_there in _forbidden(SECRETS if secrets is None else secrets).items()
        if any(map(is_there, texts))
    ]
    if not SOURCE.fullmatch(str(cassette.get("recorded_from"))):
        found.append("no source")
    real = str(cassette.get("recorded_from")).startswith("service")
    for interaction in cassette["interactions"]:
        found += _out_of_form(interaction["request"], interaction["response"], real=real)
    return [f"{path.name}: {what}" for what in found]


def _forbidden(secrets):
    machine = {socket.gethostname(), str(Path.home()), str(ROOT)}
    values = {f"the value of {name}": value for name, value in secrets.items()}
    values |= {f"a name of this machine, {n}": name for n, name in enumerate(machine)}
    return {what: shape.search for what, shape in SHAPES.items()} | {
        what: (lambda text, value=value: value in text)
        for what, value in values.items()
        if len(value) >= LEAST
    }


def _texts_in(value):
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, bytes):
        yield value.decode("latin-1")
    elif isinstance(value, str):
        yield value


def _out_of_form(request, response, *, real):
    for name, values in {**request["headers"], **response["headers"]}.items():
        if not HEADERS.fullmatch(name):
            yield f"the header {name}"
        if name in {"authorization", "x-api-key"} and values != ["PLACEHOLDER"]:
            yield "a header with a key"
    if not request["uri"].startswith(("https://svc.invalid/v1/", "https://svc.invalid/api/")):
        yield "an address"
    # What a sandbox answers is synthetic, and so are the patients of the tests.
    if real and request["method"] == "POST" and "/api/medical/" in request["uri"]:
        for body in (request["body"], response["body"]["string"]):
            if any(_values_in(_loaded(body))):
                yield "a value of a patient's record"


def _loaded(body):
    try:
        return json.loads(body)
    except ValueError:
        return str(body)


def _values_in(value):
    """Every number and text of a JSON value that is not masked, and the texts used as names."""
    if isinstance(value, dict):
        yield from (name for name in value if not re.fullmatch(r"[A-Za-z_]+|\[\.\.\.\]", name))
        value = list(value.values())
    if isinstance(value, list):
        for held in value:
            yield from _values_in(held)
    elif value is not None and not isinstance(value, bool) and value not in ("[...]", 0):
        yield str(value)


def test_no_cassette_holds_what_it_must_not():
    paths = [path for path in sorted(CASSETTES.rglob("*")) if path.is_file()]
    assert len(paths) > 20
    assert [found for path in paths for found in findings(path)] == []


def test_cassettes_lie_in_one_place_and_belong_to_a_test_module():
    assert [path for path in ROOT.joinpath("tests").rglob("*") if path.name == "cassettes"] == []
    for folder in CASSETTES.iterdir():
        assert (ROOT / "tests" / f"{folder.name}.py").is_file(), f"{folder} is left over"


def record(path, ask, configure=None, **config):
    vcr = VCR(record_mode="all")
    if configure is not None:
        configure(vcr=vcr)
    with vcr.use_cassette(str(path), **config):
        ask()


@pytest.fixture
def ours(pytestconfig, vcr_config):
    """Our settings of the recorder, for `record`, which plays nothing."""
    configure = partial(pytestconfig.hook.pytest_recording_configure, config=pytestconfig)
    return {**vcr_config, "match_on": ["method"], "configure": configure}


def test_a_recording_without_our_settings_is_found_out(tmp_path, chat):
    record(tmp_path / "bare.yaml", partial(chat.invoke, "Hello"))
    found = " ".join(findings(tmp_path / "bare.yaml"))
    for what in (
        "a bearer key",
        "a key of the sandbox",
        "an address of a machine",
        "no source",
        "the header user-agent",
        "the header date",
        "a header with a key",
    ):
        assert what in found


def test_a_recording_with_our_settings_is_clean(tmp_path, ours):
    key = "sk-live-0123456789abcdef"
    with Sandbox(api_key=key) as s, ChatSvc(**s.v1) as model:
        s.faults = [Fault(headers={"Set-Cookie": key, "Server": s.url})]
        record(tmp_path / "clean.yaml", partial(model.invoke, "Hello"), **ours)
    assert findings(tmp_path / "clean.yaml", {"SOME_KEY": key}) == []


ECHOES = {
    "as documented": {},
    "echo": {"body": {"risk": {"of zebulonic": ["quuxitis", 61.25, True]}}},
    "text": {"body": "quuxitis at 61.25"},
    "refusal": {"body": {"error": {"message": "quuxitis at 61.25"}}, "status": 400},
}


@pytest.mark.parametrize("echo", ECHOES)
def test_a_recording_of_the_service_keeps_no_value_of_a_patient(tmp_path, ours, from_service, echo):
    patient = PatientContext(age=61.25, sex="zebulonic", risk_factors=["quuxitis"])
    with Sandbox() as s, SvcCancerRisk(**s.medical, patient=patient) as tool:
        s.faults = [Fault(content_type="application/json", **ECHOES[echo])] if ECHOES[echo] else []
        call = {"name": tool.name, "args": {"symptoms": "a cough"}, "id": "1", "type": "tool_call"}
        ask = partial(tool.invoke, call)  # a model's call is answered with text, whatever came
        record(tmp_path / "bare.yaml", ask)
        record(tmp_path / "masked.yaml", ask, **ours)
        assert len(s.requests) == 2
        assert s.requests[0].json["patientAge"] == 61.25
    bare = (tmp_path / "bare.yaml").read_text(encoding="utf-8")
    labelled = tmp_path / "labelled.yaml"
    labelled.write_text(f"recorded_from: service on 2026-01-31\n{bare}", encoding="utf-8")
    assert "labelled.yaml: a value of a patient's record" in findings(labelled)
    assert findings(tmp_path / "masked.yaml") == []
    kept = (tmp_path / "masked.yaml").read_text(encoding="utf-8")
    assert '"patientAge": 0' in kept
    for word in ("61.25", "zebulonic", "quuxitis", "cough"):
        assert word not in kept


def test_every_row_of_the_documents_has_a_cassette():
    rows = {tuple(row.endpoint.split()) for row in DOCUMENTED.values()}
    played, streamed = set(), set()
    for path in CASSETTES.rglob("*.yaml"):
        for each in yaml.safe_load(path.read_text(encoding="utf-8"))["interactions"]:
            if each["response"]["status"]["code"] == 200:
                row = each["request"]["method"], urlsplit(each["request"]["uri"]).path
                played.add(row)
                asked = _loaded(each["request"]["body"] or "null")
                if isinstance(asked, dict) and asked.get("stream"):
                    streamed.add(row)
    missing = rows - played
    assert not missing, f"{missing}: record it by `pytest -m vcr --record-mode=rewrite`"
    assert streamed == {("POST", "/v1/chat/completions"), ("POST", "/api/chat")}


def test_what_the_service_repeats_is_hidden(real_service):
    key, url = "sk-live-0123456789abcdef", "https://gateway.example/team/v1"
    gateway = type(real_service)(
        {"SVC_RECORD": "service", "SVC_API_KEY": key, "SVC_BASE_URL_V1": f"{url}/"}
    )
    said = f"POST {url}/chat/completions: {key} is unknown to gateway.example"
    assert gateway.hide(said) == (
        "POST https://svc.invalid/v1/chat/completions: PLACEHOLDER is unknown to svc.invalid"
    )
    assert type(real_service)({}).hide("http://127.0.0.1:41234/v1/models") == (
        "https://svc.invalid/v1/models"
    )


@pytest.mark.parametrize(
    "planted",
    [
        "Authorization: Bearer abc",
        "my key is sk-proj-AbCdEfGhIjKlMnOp",
        "sandbox-medical-key",
        "open /home/ada/.netrc",
        "http://127.0.0.1:41234/v1",
        "https://gateway.example:8443/v1",
        "the-value-of-a-secret",
        "built on ada-workstation",
    ],
)
@pytest.mark.parametrize("way", ["plain", "folded", "binary"])
def test_a_planted_leak_is_found(tmp_path, monkeypatch, planted, way):
    monkeypatch.setattr(socket, "gethostname", lambda: "ada-workstation")
    path = tmp_path / "planted.yaml"
    cassette = yaml.safe_load(next(CASSETTES.rglob("*.yaml")).read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(cassette), encoding="utf-8")
    secrets = {"SOME_TOKEN": "the-value-of-a-secret"}
    assert findings(path, secrets) == []
    body = cassette["interactions"][0]["response"]["body"]
    text = f"One word more: {planted}"
    body["string"] = text.encode() + b"\xff" if way == "binary" else text
    width = 4 if way == "folded" else 1000
    path.write_text(yaml.safe_dump(cassette, width=width), encoding="utf-8")
    assert findings(path, secrets) != []


# -- playing one is as good as calling --------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Something a model is asked, and the settings of the sandbox that bring its outcome about."""

    ask: object
    settings: dict = field(default_factory=dict)
    interface: str = "v1"


def streamed(model):
    return summed(model.stream("Tell me of the sea"))


async def astreamed(model):
    return summed([chunk async for chunk in model.astream("Tell me of the sea")])


def wrong_key(model):
    return ChatSvc(api_key="wrong", base_url_v1=model.base_url_v1).invoke("Good morning")


def one_too_many(model):
    for question in ("one", "two", "three", "four"):
        answer = model.invoke(question, max_retries=0)
    return answer


BUSY = Fault(status=429, headers={"Retry-After": "0"}, times=1)
CASES = {
    "invoke": Case(lambda model: model.invoke("Good morning")),
    "ainvoke": Case(lambda model: model.ainvoke("Good morning")),
    "stream": Case(streamed),
    "astream": Case(astreamed),
    "list_models": Case(lambda model: model.list_models()),
    "401": Case(wrong_key),
    "429": Case(one_too_many, {"plan": "free"}),
    "429-then-answer": Case(lambda model: model.invoke("Good morning"), {"faults": [BUSY]}),
    "general chat": Case(lambda model: model.invoke("Good morning"), interface="general"),
    "general stream": Case(streamed, interface="general"),
    "general list_models": Case(lambda model: model.list_models(), interface="general"),
}


async def outcome(case, where):
    """What came of it, in a form that can be compared."""
    async with ChatSvc(interface=case.interface, **where) as model:
        try:
            came = case.ask(model)
            came = await came if hasattr(came, "__await__") else came
        except SvcAPIError as error:
            return type(error), str(error), vars(error)
    if isinstance(came, BaseMessage):
        return came.model_dump(exclude={"id"})
    return [vars(listed) for listed in came]


@pytest.fixture(scope="module")
def live():
    outcomes = {}
    for name, case in CASES.items():
        with Sandbox(clock=lambda: 1_760_000_000.0, **case.settings) as s:
            where = s.v1 if case.interface == "v1" else s.general
            outcomes[name] = asyncio.run(outcome(case, where))
    return outcomes


@pytest.fixture
def comparable(vcr, real_service):
    """Whether a sandbox's answers are those of the cassette."""
    path = Path(vcr._path)
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return not real_service.recorded and "recorded_from: service" not in text


@pytest.mark.vcr(allow_playback_repeats=False)
@pytest.mark.parametrize(
    ("name", "recorded_service"),
    [(name, case.settings) for name, case in CASES.items()],
    indirect=["recorded_service"],
    ids=CASES,
)
async def test_played_is_as_live(name, recorded_service, live, comparable):
    case = CASES[name]
    where = recorded_service if case.interface == "v1" else {}  # the environment has it
    played = await outcome(case, where)
    assert type(played) is type(live[name])
    if comparable:
        assert played == live[name], "record again if the sandbox has new answers (see conftest.py)"


@pytest.fixture
def only_replayed(replaying):
    if not replaying:
        pytest.skip("says what holds while cassettes are played")


def connect(host, port):
    with socket.socket() as client:
        client.connect((host, port))


@pytest.mark.vcr
async def test_playing_touches_no_network_and_no_sandbox(only_replayed, recorded_service, sandbox):
    assert recorded_service["base_url_v1"] == "https://svc.invalid/v1"
    port = int(sandbox.url.rpartition(":")[2])
    with pytest.raises(AssertionError, match="reached for the network"):
        connect("127.0.0.1", port)
    with pytest.raises(AssertionError, match=r"asked where svc\.invalid is"):
        socket.getaddrinfo("svc.invalid", 443)
    async with ChatSvc(**sandbox.v1) as model:
        with pytest.raises(CannotOverwriteExistingCassetteException):
            await model.ainvoke("This was never recorded")
    assert sandbox.requests == []


def test_live_tests_reach_loopback_only(only_replayed, chat):
    chat.invoke("Hello")
    with pytest.raises(AssertionError, match=r"reached for 192\.0\.2\.1"):
        connect("192.0.2.1", 443)
    with pytest.raises(AssertionError, match=r"asked where svc\.invalid is"):
        socket.getaddrinfo("svc.invalid", 443)
