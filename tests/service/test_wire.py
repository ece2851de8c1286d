"""Connections to servers that break off, speak out of turn or cannot prove who they are."""

from __future__ import annotations

import asyncio
import datetime
import gc
import shutil
import socket
import ssl
import struct
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
import trustme
from peers import (
    LAST_CHUNK,
    MARKED_KEY,
    RawServer,
    SecureServer,
    chunked_head,
    http_chunk,
    read_request,
    response,
)

import langchain_svc as svc
from langchain_svc._service import connections

SOUND = b'{"choices":[{"message":{"content":"sound"},"finish_reason":"stop"}]}'
FORGED = SOUND.replace(b"sound", b"forged")
UNSIZED = response(SOUND, content_length=None)


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def trusted(monkeypatch, tmp_path):
    """Makes a certificate of an authority trusted, in the way that users do."""

    def trust(authority):
        path = tmp_path / "authority.pem"
        authority.cert_pem.write_to_path(path)
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        connections._verifying.cache_clear()

    yield trust
    connections._verifying.cache_clear()


def chat(server, scheme="http", **given):
    settings = {"api_key": MARKED_KEY, "max_retries": 0, "timeout": 5, **given}
    address = server.url.removeprefix("http://")
    return svc.ChatSvc(base_url_v1=f"{scheme}://{address}/v1", **settings)


def asked(model, way):
    if way == "invoke":
        return model.invoke("hi").text
    return asyncio.run(answered(model))


async def answered(model):
    try:
        return (await model.ainvoke("hi")).text
    finally:
        assert len(asyncio.all_tasks()) == 1
        await model.aclose()


WAYS = pytest.mark.parametrize("way", ["invoke", "ainvoke"])


def close_hard(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


# -- answers that are cut ------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("end", ["closed", "reset"])
@pytest.mark.parametrize("form", ["sized", "chunked"])
def test_an_answer_that_is_cut_anywhere_is_no_answer(form, end, way):
    whole = response(SOUND, connection=None)
    if form == "chunked":
        whole = chunked_head("application/json") + http_chunk(SOUND) + LAST_CHUNK
    at = 0

    def cut(connection):
        connection.sendall(whole[:at])
        if end == "reset":
            close_hard(connection)

    with RawServer(cut) as server, chat(server) as model:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for at in range(len(whole)):
            with pytest.raises((svc.SvcConnectionError, svc.SvcResponseError)):
                asked(model, way)
        gc.collect()
        assert server.accepted == len(whole)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


@WAYS
@pytest.mark.parametrize("announced", [True, False])
def test_an_end_of_tls_that_was_not_announced_may_be_anyones(authority, trusted, announced, way):
    def answer(connection):
        connection.sendall(UNSIZED)
        if announced:
            connection.settimeout(0.2)
            with suppress(OSError):
                connection.unwrap()
            time.sleep(0.5 if way == "invoke" else 0)  # the announcement is the end

    trusted(authority)
    with SecureServer(answer, authority, "127.0.0.1") as server, chat(server, "https") as model:
        if announced:
            assert asked(model, way) == "sound"
            return
        with pytest.raises(svc.SvcConnectionError, match="lost inside the answer"):
            asked(model, way)


@WAYS
def test_an_answer_with_a_length_needs_no_announcement(authority, trusted, way):
    trusted(authority)
    with (
        SecureServer(lambda c: c.sendall(response(SOUND)), authority, "127.0.0.1") as server,
        chat(server, "https") as model,
    ):
        assert asked(model, way) == "sound"


@WAYS
@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", response(SOUND)[:-9]])
def test_nonsense_inside_tls_ends_the_answer(authority, trusted, sent, way):
    def answer(connection):
        connection.sendall(sent)
        with socket.socket(fileno=connection.detach()) as bare:
            bare.sendall(b"\x17\x03\x03\x00\x20" + b"?" * 32)  # a record that nobody encrypted
            bare.recv(1)

    trusted(authority)
    with (
        SecureServer(answer, authority, "127.0.0.1") as server,
        chat(server, "https") as model,
        pytest.raises((svc.SvcConnectionError, svc.SvcResponseError)) as caught,
    ):
        asked(model, way)
    assert MARKED_KEY not in str(caught.value)


# -- answers out of turn -------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("late", [0.0, 0.1])
@pytest.mark.parametrize(
    "head",
    [
        {},
        {"transfer_encoding": "chunked", "content_length": "3"},
        {"transfer_encoding": "chunked", "content_length": None},
    ],
    ids=["sized", "both", "chunked"],
)
async def test_what_follows_an_answer_is_never_the_next_one(  # noqa: PLR0913
    authority, trusted, head, late, secure, way
):
    body = http_chunk(SOUND) + LAST_CHUNK if head else SOUND
    whole = response(**{"connection": None, "content_length": str(len(SOUND)), **head}) + body

    def answer(connection):
        while True:
            connection.sendall(whole if late else whole + response(FORGED, connection=None))
            if late:
                time.sleep(late)
                connection.sendall(response(FORGED, connection=None))
            if not read_request(connection):
                return

    trusted(authority)
    name = "127.0.0.1" if secure else None
    with (
        SecureServer(answer, authority, name) as server,
        chat(server, "https" if secure else "http") as model,
    ):
        for _ in range(3):
            ask = model.ainvoke("hi")
            assert (model.invoke("hi") if way == "invoke" else await ask).text == "sound"
            ask.close()
            await asyncio.sleep(2 * late)
        await model.aclose()


@WAYS
@pytest.mark.parametrize("secure", [False, True])
def test_an_answer_before_the_question_is_heard_or_refused_at_once(authority, trusted, secure, way):
    def busy(connection):
        connection.sendall(response(b"{}", status="503 Busy"))
        connection.recv(65536)

    class Hasty(SecureServer):
        def _serve(self, connection):
            if self.context is not None:
                with suppress(OSError):
                    connection = self.context.wrap_socket(connection, server_side=True)
            with connection, suppress(OSError):
                busy(connection)

    trusted(authority)
    begun = time.monotonic()
    with (
        Hasty(None, authority, "127.0.0.1" if secure else None) as server,
        chat(server, "https" if secure else "http", outage_wait=0) as model,
        pytest.raises(svc.SvcServerError, match="503"),
    ):
        asked(model, way)
    assert time.monotonic() - begun < 4


# -- certificates --------------------------------------------------------------------------------


def of_another(authority, context):
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)


def of_itself(authority, context):
    other = trustme.CA()
    with (
        other.cert_pem.tempfile() as certificate,
        other.private_key_pem.tempfile() as key,
    ):
        context.load_cert_chain(certificate, key)


def for_another_host(authority, context):
    authority.issue_cert("other.example").configure_cert(context)


def of_yesterday(authority, context):
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
    authority.issue_cert("127.0.0.1", not_after=past).configure_cert(context)


def without_the_middle(authority, context):
    leaf = authority.create_child_ca().issue_cert("127.0.0.1")
    with (
        leaf.cert_chain_pems[0].tempfile() as certificate,
        leaf.private_key_pem.tempfile() as key,
    ):
        context.load_cert_chain(certificate, key)


@WAYS
@pytest.mark.parametrize(
    ("prove", "reason", "advice"),
    [
        (of_another, "unable to get local issuer certificate", "SSL_CERT_FILE"),
        (of_itself, "self-signed certificate", "SSL_CERT_FILE"),
        (without_the_middle, "unable to get local issuer certificate", "SSL_CERT_FILE"),
        (for_another_host, "not valid for '127.0.0.1'", "host in the base URL"),
        (of_yesterday, "certificate has expired", "clock"),
    ],
)
def test_a_server_that_cannot_prove_who_it_is(authority, trusted, prove, reason, advice, way):  # noqa: PLR0913
    trusted(authority)
    with (
        SecureServer(lambda c: c.sendall(response(SOUND)), authority, "unused.example") as server,
        chat(server, "https") as model,
    ):
        server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        prove(authority, server.context)
        with pytest.raises(svc.SvcConnectionError) as caught:
            asked(model, way)
    said = str(caught.value)
    assert reason in said
    assert advice in said
    assert server.url.removeprefix("http") in said
    assert MARKED_KEY not in said
    assert not any(server.requests)


@WAYS
@pytest.mark.parametrize("setting", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_a_chain_to_an_authority_that_the_environment_names(  # noqa: PLR0913
    authority, trusted, setting, way, monkeypatch, tmp_path
):
    trusted(authority)
    if setting == "SSL_CERT_DIR":
        openssl = shutil.which("openssl") or pytest.skip("there is no openssl to name the file")
        command = [openssl, "x509", "-noout", "-hash", "-in", tmp_path / "authority.pem"]
        name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        (tmp_path / "authority.pem").rename(tmp_path / f"{name}.0")
        monkeypatch.delenv("SSL_CERT_FILE")
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
        connections._verifying.cache_clear()
    middle = authority.create_child_ca()
    with (
        SecureServer(lambda c: c.sendall(response(SOUND)), middle, "127.0.0.1") as server,
        chat(server, "https") as model,
    ):
        assert asked(model, way) == "sound"


# -- addresses -----------------------------------------------------------------------------------


@WAYS
def test_a_system_without_a_family_of_addresses_takes_the_other(monkeypatch, way):
    real = socket.socket

    class Lacking(real):
        def __init__(self, family=-1, *how, **given):
            if family == socket.AF_INET6:
                raise OSError(97, "Address family not supported by protocol")
            super().__init__(family, *how, **given)

    with RawServer(lambda c: c.sendall(response(SOUND))) as server:
        port = int(server.url.rpartition(":")[2])
        both = [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
        monkeypatch.setattr(socket, "socket", Lacking)
        with svc.ChatSvc(api_key="k", base_url_v1=f"http://localhost:{port}/v1") as model:
            assert asked(model, way) == "sound"
