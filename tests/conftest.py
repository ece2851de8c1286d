"""What every test gets: a clean environment, loopback only, one sandbox, and cassettes.

A cassette is recorded HTTP. In ordinary runs it is all there is: a test marked `vcr` gets a base
URL that no machine has, and may not even connect to loopback. To record again:

    pytest -m vcr --record-mode=rewrite

That asks a sandbox; with SVC_RECORD=service, SVC_API_KEY and SVC_BASE_URL_V1 it asks the service,
and for the general and medical interfaces SVC_BASE_URL, SVC_MEDICAL_API_KEY and
SVC_MEDICAL_BASE_URL say where. What a sandbox answered is synthetic and stays readable. Of what is
sent to the service's medical interface, and of what that answers, a cassette keeps the form and no
value.
"""

import contextlib
import ipaddress
import json
import os
import re
import signal
import socket
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import hypothesis
import pytest
import share
import yaml
from langchain_core.runnables.config import set_config_context
from langchain_tests.conftest import base_vcr_config
from peers import MARKED_KEY
from vcr.cassette import Cassette

from langchain_svc import ChatSvc, __version__
from langchain_svc.images import store
from langchain_svc.sandbox import Sandbox

# -- how much of the suite -------------------------------------------------------------------------


def pytest_addoption(parser):
    group = parser.getgroup("langchain-svc")
    group.addoption(
        "--whole", action="store_true", help="run slow tests and all generated rows, not a share"
    )
    group.addoption(
        "--turn", type=int, default=share.today(), help="which share: the day's number, or this"
    )


def pytest_configure(config):
    names_a_file = any(".py" in argument for argument in config.args)
    share.Run.whole = config.option.whole or names_a_file
    share.Run.turn = config.option.turn
    # No test depends on a quiet machine.
    examples = 100 if share.Run.whole else 25
    hypothesis.settings.register_profile("svc", deadline=None, max_examples=examples)
    hypothesis.settings.load_profile("svc")
    if config.getoption("--record-mode"):
        # LangChain's test_stream_time measures only what it replays.
        config.addinivalue_line("filterwarnings", "ignore:Benchmark fixture was not used")


def pytest_report_header(config):
    if not share.Run.whole:
        return (
            f"a share of the generated rows: --turn {share.Run.turn} repeats it, --whole runs all"
        )
    return None


def pytest_collection_modifyitems(config, items):
    """Slow tests are of whole runs."""
    if share.Run.whole or config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


# -- the environment ------------------------------------------------------------------------------

_MEDDLING = re.compile(r"SVC_\w+|LANG(CHAIN|SMITH)_\w+|(https?|all|no)_proxy", re.IGNORECASE)

# A shell starts background jobs with Ctrl-C ignored, and what the tests start would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    """No setting of the person who runs the tests reaches them."""
    for name in list(os.environ):
        if _MEDDLING.fullmatch(name):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True, scope="session")
def plain_handles():
    """The handles of images are img_1, img_2, so that tests can name them and cassettes match."""
    random_letters, store._random_letters = store._random_letters, str
    yield random_letters
    store._random_letters = random_letters


@pytest.fixture
def random_handles(monkeypatch, plain_handles):
    """The handles are those that users get."""
    monkeypatch.setattr(store, "_random_letters", plain_handles)


@pytest.fixture(autouse=True)
def guarded_network(monkeypatch, vcr, replaying):
    """A test may talk to loopback only, and to nothing at all while a cassette is played."""
    if SERVICE.recorded and not replaying:
        return
    nothing = replaying and isinstance(vcr, Cassette)
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(sock, address):
        if sock.family in {socket.AF_INET, socket.AF_INET6}:
            assert not nothing, "a cassette is played, and the test reached for the network"
            assert _is_loopback(address[0]), f"the test reached for {address[0]}"
        return connect(sock, address)

    def guarded_look_up(host, *args, **kwargs):
        reads_only = kwargs.get("flags", 0) & socket.AI_NUMERICHOST  # no name is looked up then
        assert host is None or reads_only or _is_loopback(host), f"the test asked where {host} is"
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)


def _is_loopback(host):
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


# -- a sandbox, live --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def one_sandbox():
    with Sandbox() as s:
        yield s


@pytest.fixture
def sandbox(one_sandbox):
    """The session's sandbox with an empty request log and no faults."""
    one_sandbox.clear()
    one_sandbox.faults, one_sandbox.answers = (), ()
    return one_sandbox


@pytest.fixture(scope="session")
def one_strict_sandbox():
    with Sandbox(strict=True, api_key=MARKED_KEY) as s:
        yield s


@pytest.fixture
def box(one_strict_sandbox):
    """Such a sandbox that refuses what no document lists, with a marked key."""
    one_strict_sandbox.clear()
    one_strict_sandbox.faults, one_strict_sandbox.answers = (), ()
    return one_strict_sandbox


@pytest.fixture
def chat(sandbox):
    """A model on that sandbox; `chat.model_copy(update=...)` or ChatSvc(**sandbox.v1) for others."""
    with ChatSvc(**sandbox.v1) as model:
        yield model


# -- cassettes --------------------------------------------------------------------------------------

CASSETTES = Path(__file__).parents[1] / "cassettes"
# Cassettes hold this address whatever they were recorded from: .invalid never resolves (RFC 2606).
REPLAYED = {
    "SVC_API_KEY": "replayed-key",
    "SVC_BASE_URL_V1": "https://svc.invalid/v1",
    "SVC_BASE_URL": "https://svc.invalid",
    "SVC_MEDICAL_API_KEY": "replayed-medical-key",
    "SVC_MEDICAL_BASE_URL": "https://svc.invalid",
}
SANDBOX_CLOCK = 1_760_000_000.0  # stands still, so that recording again changes nothing
_KEPT_REQUEST_HEADERS = {"accept", "authorization", "x-api-key", "content-type"}
_KEPT_RESPONSE_HEADER = re.compile(
    r"content-type|retry-after|x-request-id|x-ratelimit-[a-z]+", re.IGNORECASE
)
_MARK = re.compile(rb'(<tool_response mark=\\"|carry the mark )[0-9a-f]{10}')
_SANDBOX_URL = r"http://127\.0\.0\.1:\d+"


class Service:
    """The real service, where the environment asks to record from it."""

    def __init__(self, environment):
        wanted = environment.get("SVC_RECORD", "sandbox")
        given = {name: environment.get(name, "").rstrip("/") for name in REPLAYED}
        self.env = {name: value for name, value in given.items() if value}
        self.recorded = wanted == "service"
        missing = {"SVC_API_KEY", "SVC_BASE_URL_V1"} - set(self.env)
        if wanted not in {"sandbox", "service"} or (self.recorded and missing):
            raise pytest.UsageError(
                "SVC_RECORD is 'sandbox' or 'service'; the latter needs SVC_API_KEY and "
                "SVC_BASE_URL_V1 too"
            )

    def hide(self, text):
        """The text without the service's keys and addresses, nor the sandbox's port."""
        text = re.sub(_SANDBOX_URL, REPLAYED["SVC_BASE_URL"], text)
        if self.recorded:
            for name, value in sorted(self.env.items(), key=lambda item: -len(item[1])):
                text = text.replace(value, REPLAYED[name] if "URL" in name else "PLACEHOLDER")
            for name in filter(lambda name: "URL" in name, self.env):
                host = urlsplit(self.env[name]).hostname
                text = text.replace(host, urlsplit(REPLAYED[name]).hostname)
        return text


SERVICE = Service(os.environ)


@pytest.fixture(scope="session")
def real_service():
    """The service to record from; its type makes the one that an environment describes."""
    return SERVICE


@pytest.fixture(scope="session")
def replaying(record_mode, disable_recording):
    """Whether cassettes are played and not recorded."""
    return record_mode == "none" and not disable_recording


@pytest.fixture
def recorded_service(request, replaying, clean_environment, monkeypatch):
    """Keyword arguments for ChatSvc in a cassette test; the environment has those of all classes.

    Parametrized indirectly, it takes the settings of the sandbox to record from: what those
    bring about cannot be asked of the service.
    """
    settings = getattr(request, "param", {})
    with contextlib.ExitStack() as stack:
        env = REPLAYED
        if not replaying:
            # One request after the other, so that recording again gives the same order.
            stack.enter_context(set_config_context({"max_concurrency": 1}))
            if SERVICE.recorded and not settings:
                env = SERVICE.env
                ReadableYaml.recorded_from = f"service on {datetime.now(UTC):%Y-%m-%d}"
            else:
                env = stack.enter_context(Sandbox(clock=lambda: SANDBOX_CLOCK, **settings)).env
                ReadableYaml.recorded_from = f"sandbox {__version__}"
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        yield {"api_key": env["SVC_API_KEY"], "base_url_v1": env["SVC_BASE_URL_V1"]}


def _shown_request(request):
    request.uri = SERVICE.hide(request.uri)
    request.headers = {
        name: value
        for name, value in sorted(request.headers.items())
        if name.lower() in _KEPT_REQUEST_HEADERS
    }
    if ReadableYaml.from_service() and is_clinical(request.method, request.uri):
        request.body = without_values(request.body)
    elif request.body:  # the mark of a conversation follows from the key, which differs
        request.body = _MARK.sub(rb"\g<1>0000000000", request.body)
    return request


def _shown_response(response):
    body = response["body"]["string"]
    with contextlib.suppress(UnicodeDecodeError):
        body = SERVICE.hide(body.decode()).encode()
    headers = {
        name.lower(): values
        for name, values in sorted(response["headers"].items())
        if _KEPT_RESPONSE_HEADER.fullmatch(name)
    }
    return {**response, "headers": headers, "body": {"string": body}}


def is_clinical(method, uri):
    """Whether a request sends something of a patient, which its answer may repeat."""
    return method == "POST" and "/api/medical/" in uri


def without_values(body):
    """A JSON body with its form and no value; of any other body nothing."""
    try:
        return json.dumps(_formed(json.loads(body)))
    except ValueError:
        return json.dumps(MASK)


MASK = "[...]"
_FIELD = re.compile(r"[A-Za-z_]{1,40}")  # as opposed to a text that stands where a name does


def _formed(value):
    if isinstance(value, dict):
        return {k if _FIELD.fullmatch(k) else MASK: _formed(held) for k, held in value.items()}
    if isinstance(value, list):
        return [_formed(held) for held in value]
    if isinstance(value, str):
        return MASK
    return value if value is None or isinstance(value, bool) else 0


@pytest.fixture(scope="session")
def vcr_config():
    config = base_vcr_config()
    # These would outrank --record-mode and vcr_cassette_dir.
    del config["record_mode"], config["cassette_library_dir"]
    return {
        **config,
        "match_on": ["method", "path", "same_body"],
        "before_record_request": _shown_request,
        "before_record_response": _shown_response,
    }


@pytest.fixture(scope="module")
def vcr_cassette_dir(request):
    return str(CASSETTES / request.node.path.stem)


def pytest_recording_configure(config, vcr):
    vcr.register_serializer("yaml", ReadableYaml)
    vcr.register_matcher("same_body", same_body)


def same_body(played, asked):
    """Whether two bodies differ in nothing but indentation, and values that were not recorded.

    Functions that become tools pass their docstrings on, which Python 3.13 unindents.
    """
    bodies = [re.sub(rb"(\\n) +", rb"\1", request.body or b"") for request in (played, asked)]
    if is_clinical(asked.method, asked.uri) and MASK.encode() in bodies[0]:
        bodies[1] = without_values(asked.body).encode()
    assert bodies[0] == bodies[1]


class ReadableYaml:
    """Cassettes for people: long texts as blocks, and first of all where they come from."""

    recorded_from = f"sandbox {__version__}"

    class _Dumper(yaml.SafeDumper):
        pass

    @classmethod
    def from_service(cls):
        return cls.recorded_from.startswith("service")

    @classmethod
    def serialize(cls, cassette):
        for interaction in cassette["interactions"]:
            request, body = interaction["request"], interaction["response"]["body"]
            if cls.from_service() and is_clinical(request["method"], request["uri"]):
                body["string"] = without_values(body["string"])
        return yaml.dump(
            {"recorded_from": cls.recorded_from, **cassette},
            Dumper=cls._Dumper,
            sort_keys=False,
            width=float("inf"),
        )

    @staticmethod
    def deserialize(text):
        return yaml.safe_load(text)


def _as_block(dumper, text):
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


@pytest.fixture
def from_service(monkeypatch):
    """Whatever is recorded counts as the service's."""
    monkeypatch.setattr(ReadableYaml, "recorded_from", "service on 2026-01-31")


ReadableYaml._Dumper.add_representer(str, _as_block)
