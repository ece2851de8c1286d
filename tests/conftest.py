"""What every test gets: a clean environment, loopback only, one sandbox, and cassettes.

A cassette is recorded HTTP. In ordinary runs it is all there is: a test marked `vcr` gets a base
URL that no machine has, and may not even connect to loopback. To record again:

    pytest tests/test_langchain_suite.py tests/test_cassettes.py --record-mode=rewrite

That asks a sandbox; with SVC_RECORD=service, SVC_API_KEY and SVC_BASE_URL_V1 it asks the service.
"""

import contextlib
import ipaddress
import os
import re
import socket
from datetime import date
from pathlib import Path

import pytest
import yaml
from langchain_core.runnables.config import set_config_context
from langchain_tests.conftest import base_vcr_config
from vcr.cassette import Cassette

from langchain_svc import ChatSvc, __version__
from langchain_svc.sandbox import Sandbox

# -- the environment ------------------------------------------------------------------------------

_MEDDLING = re.compile(r"SVC_\w+|LANG(CHAIN|SMITH)_\w+|(https?|all|no)_proxy", re.IGNORECASE)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    """No setting of the person who runs the tests reaches them."""
    for name in list(os.environ):
        if _MEDDLING.fullmatch(name):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def guarded_network(monkeypatch, vcr, replaying, recorded_from):
    """A test may talk to loopback only, and to nothing at all while a cassette is played."""
    if recorded_from.service is not None:
        return
    nothing = replaying and isinstance(vcr, Cassette)
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(sock, address):
        if sock.family in {socket.AF_INET, socket.AF_INET6}:
            assert not nothing, "a cassette is played, and the test reached for the network"
            assert _is_loopback(address[0]), f"the test reached for {address[0]}"
        return connect(sock, address)

    def guarded_look_up(host, *args, **kwargs):
        assert host is None or _is_loopback(host), f"the test asked where {host} is"
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
    one_sandbox.faults = ()
    return one_sandbox


@pytest.fixture
def chat(sandbox):
    """A model on that sandbox; `chat.model_copy(update=...)` or ChatSvc(**sandbox.v1) for others."""
    with ChatSvc(**sandbox.v1) as model:
        yield model


# -- cassettes --------------------------------------------------------------------------------------

CASSETTES = Path(__file__).parents[1] / "cassettes"
# Cassettes hold this address whatever they were recorded from: .invalid never resolves (RFC 2606).
REPLAYED = {"api_key": "replayed-key", "base_url_v1": "https://svc.invalid/v1"}
SANDBOX_CLOCK = 1_760_000_000.0  # stands still, so that recording again changes nothing
_KEPT_REQUEST_HEADERS = {"accept", "authorization", "content-type"}
_KEPT_RESPONSE_HEADER = re.compile(
    r"content-type|retry-after|x-request-id|x-ratelimit-[a-z]+", re.IGNORECASE
)
_SANDBOX_URL = r"http://127\.0\.0\.1:\d+/v1"


class Origin:
    """What cassettes are recorded from: the service where the environment says so."""

    def __init__(self, environment):
        self.service = None
        self.name = f"sandbox {__version__}"
        wanted = environment.get("SVC_RECORD", "sandbox")
        if wanted == "service":
            self.name = f"service on {date.today().isoformat()}"  # noqa: DTZ011  # a note to people
            self.service = {
                "api_key": environment.get("SVC_API_KEY", ""),
                "base_url_v1": environment.get("SVC_BASE_URL_V1", "").rstrip("/"),
            }
        if wanted not in {"sandbox", "service"} or not all((self.service or {"": "-"}).values()):
            raise pytest.UsageError(
                "SVC_RECORD is 'sandbox' or 'service'; the latter needs SVC_API_KEY and "
                "SVC_BASE_URL_V1 too"
            )

    def hide(self, text):
        """The text without the service's key and address, nor the sandbox's port."""
        if self.service is not None:
            text = text.replace(self.service["base_url_v1"], REPLAYED["base_url_v1"])
            text = text.replace(self.service["api_key"], "PLACEHOLDER")
        return re.sub(_SANDBOX_URL, REPLAYED["base_url_v1"], text)


ORIGIN = Origin(os.environ)


@pytest.fixture(scope="session")
def recorded_from():
    return ORIGIN


@pytest.fixture(scope="session")
def replaying(record_mode, disable_recording):
    """Whether cassettes are played and not recorded."""
    return record_mode == "none" and not disable_recording


@pytest.fixture
def recorded_service(request, replaying, recorded_from, clean_environment, monkeypatch):
    """Keyword arguments for ChatSvc in a cassette test, which are in the environment as well.

    Parametrized indirectly, it takes the settings of the sandbox that is recorded.
    """
    with contextlib.ExitStack() as stack:
        v1 = REPLAYED
        if not replaying:
            # One request after the other, so that recording again gives the same order.
            stack.enter_context(set_config_context({"max_concurrency": 1}))
            v1 = recorded_from.service
        if v1 is None:
            options = getattr(request, "param", {})
            v1 = stack.enter_context(Sandbox(clock=lambda: SANDBOX_CLOCK, **options)).v1
        monkeypatch.setenv("SVC_API_KEY", v1["api_key"])
        monkeypatch.setenv("SVC_BASE_URL_V1", v1["base_url_v1"])
        yield v1


def _shown_request(request):
    request.uri = ORIGIN.hide(request.uri)
    request.headers = {
        name: value
        for name, value in sorted(request.headers.items())
        if name.lower() in _KEPT_REQUEST_HEADERS
    }
    return request


def _shown_response(response):
    body = response["body"]["string"]
    with contextlib.suppress(UnicodeDecodeError):
        body = ORIGIN.hide(body.decode()).encode()
    headers = {
        name.lower(): values
        for name, values in sorted(response["headers"].items())
        if _KEPT_RESPONSE_HEADER.fullmatch(name)
    }
    return {**response, "headers": headers, "body": {"string": body}}


@pytest.fixture(scope="session")
def vcr_config():
    config = base_vcr_config()
    # These would outrank --record-mode and vcr_cassette_dir.
    del config["record_mode"], config["cassette_library_dir"]
    return {
        **config,
        "match_on": ["method", "path", "body"],
        "before_record_request": _shown_request,
        "before_record_response": _shown_response,
    }


@pytest.fixture(scope="module")
def vcr_cassette_dir(request):
    return str(CASSETTES / request.node.path.stem)


def pytest_recording_configure(config, vcr):
    vcr.register_serializer("yaml", ReadableYaml)


class ReadableYaml:
    """Cassettes for people: long texts as blocks, and first of all where they come from."""

    class _Dumper(yaml.SafeDumper):
        pass

    @classmethod
    def serialize(cls, cassette):
        return yaml.dump(
            {"recorded_from": ORIGIN.name, **cassette},
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


ReadableYaml._Dumper.add_representer(str, _as_block)
