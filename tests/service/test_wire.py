"""Connections to servers that break off, speak out of turn or cannot prove who they are."""

from __future__ import annotations

import asyncio
import datetime as dt
import shutil
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import Future
from contextlib import suppress

import pytest
import trustme
from peers import (
    LAST_CHUNK,
    MARKED_KEY,
    RawServer,
    SecureServer,
    asked,
    full_backlog,
    http_chunk,
    read_request,
    response,
    settled,
)
from share import pairs

import langchain_svc as svc
from langchain_svc._client import ON_WAIT
from langchain_svc._http import connections, sockets
from langchain_svc.sandbox import Sandbox

SOUND = b'{"choices":[{"message":{"content":"sound"},"finish_reason":"stop"}]}'
FORGED = SOUND.replace(b"sound", b"forged")
UNSIZED = response(SOUND, content_length=None)


def chat(server, scheme="http", **given):
    settings = {"api_key": MARKED_KEY, "max_retries": 0, "timeout": 5, **given}
    address = server.url.removeprefix("http://")
    return svc.ChatSvc(base_url_v1=f"{scheme}://{address}/v1", **settings)


def in_memory(context, connection):
    """The server's side of TLS after its handshake, what it has not sent yet, and how to go on."""
    came, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(came, going, server_side=True)

    def until(step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                connection.sendall(going.read())
                data = connection.recv(65536)
                came.write(data) if data else came.write_eof()

    until(tls.do_handshake)
    return tls, going, until


WAYS = pytest.mark.parametrize("way", ["invoke", "ainvoke"])


# -- answers that are cut ------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("sized", [True, False])
def test_an_end_of_tls_that_was_not_announced_may_be_anyones(
    authority, trusted, sized, announced, way
):
    def answer(connection):
        connection.sendall(response(SOUND) if sized else UNSIZED)
        if announced:
            connection.settimeout(0.1)
            with suppress(OSError):
                connection.unwrap()
            with socket.socket(fileno=connection.detach()) as bare:
                bare.settimeout(8)
                bare.recv(99)  # the announcement is the end, and not that of the connection

    with SecureServer(answer, authority, "127.0.0.1") as server, chat(server, "https") as model:
        if announced or sized:
            assert asked(model, way) == "sound"
            return
        with pytest.raises(svc.SvcConnectionError, match="lost inside the answer"):
            asked(model, way)


@WAYS
@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", response(SOUND)[:-9]])
def test_nonsense_inside_tls_ends_the_answer(authority, trusted, sent, way):
    def answer(connection):
        connection.sendall(sent)
        with socket.socket(fileno=connection.detach()) as bare:
            bare.sendall(b"\x17\x03\x03\x00\x20" + b"?" * 32)  # a record that nobody encrypted
            bare.recv(1)

    with (
        SecureServer(answer, authority, "127.0.0.1") as server,
        chat(server, "https") as model,
        pytest.raises((svc.SvcConnectionError, svc.SvcResponseError)) as caught,
    ):
        asked(model, way)
    assert MARKED_KEY not in str(caught.value)


# -- answers out of turn -------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize(("secure", "late"), pairs([False, True], [0.0, 0.04]))
@pytest.mark.parametrize(
    "head",
    [
        {},
        {"transfer_encoding": "chunked", "content_length": "3"},
        {"transfer_encoding": "chunked", "content_length": None},
    ],
    ids=["sized", "both", "chunked"],
)
async def test_what_follows_an_answer_is_never_the_next_one(
    authority, trusted, head, late, secure, way
):
    body = http_chunk(SOUND) + LAST_CHUNK if head else SOUND
    whole = response(**{"connection": None, "content_length": str(len(SOUND)), **head}) + body

    forged = threading.Event()

    def answer(connection):
        while True:
            connection.sendall(whole if late else whole + response(FORGED, connection=None))
            if late:
                time.sleep(late)
                connection.sendall(response(FORGED, connection=None))
            forged.set()
            if not read_request(connection):
                return

    name = "127.0.0.1" if secure else None
    with (
        SecureServer(answer, authority, name) as server,
        chat(server, "https" if secure else "http") as model,
    ):
        for _ in range(3):
            ask = model.ainvoke("hi")
            assert (model.invoke("hi") if way == "invoke" else await ask).text == "sound"
            ask.close()
            assert await asyncio.to_thread(forged.wait, 10)  # later it could not be told apart
            forged.clear()
        await model.aclose()


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 68\r\n\r\n" + SOUND,
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        + http_chunk(SOUND)
        + LAST_CHUNK,
    ],
    ids=["HTTP/1.0", "a length beside chunks"],
)
def test_a_connection_is_not_used_again_after(start):
    def answer(connection):
        connection.sendall(start)
        connection.recv(1)

    with RawServer(answer) as server, chat(server) as model:
        assert [asked(model, "invoke") for _ in range(2)] == ["sound"] * 2
        assert server.accepted == 2


@WAYS
@pytest.mark.parametrize("secure", [False, True])
def test_an_answer_before_the_question_is_heard_or_refused_at_once(authority, trusted, secure, way):
    busy = response(b"{}", status="503 Busy")

    class Hasty(SecureServer):
        def _serve(self, connection):
            with connection, suppress(OSError):
                if self.context:
                    self.context.maximum_version = ssl.TLSVersion.TLSv1_2
                    tls, going, _ = in_memory(self.context, connection)
                    tls.write(busy)
                # In one packet with the end of the handshake, where there is one.
                connection.sendall(going.read() if self.context else busy)
                connection.recv(65536)
                connection.recv(65536)

    begun = time.monotonic()
    with (
        Hasty(None, authority, "127.0.0.1" if secure else None) as server,
        chat(server, "https" if secure else "http", outage_wait=0) as model,
        pytest.raises(svc.SvcServerError, match="503"),
    ):
        asked(model, way)
    assert time.monotonic() - begun < 4


@pytest.mark.slow
def test_an_answer_that_comes_before_the_request_was_taken():
    """A gateway refuses a large request by its head alone, and reads no further."""

    def refuse(connection):
        connection.sendall(response(b"{}", status="413 Content Too Large"))
        while connection.recv(65_536):
            pass

    with RawServer(refuse, reads_bodies=False) as server:
        model = svc.ChatSvc(
            interface="general", api_key="k", base_url=server.url, timeout=10, max_retries=1
        )
        with model, pytest.raises(svc.SvcBadRequestError, match="413"):
            model.invoke("word " * 2_000_000)
        assert server.accepted == 1


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
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    authority.issue_cert("127.0.0.1", not_after=past).configure_cert(context)


@WAYS
@pytest.mark.parametrize(
    ("prove", "reason", "advice"),
    [
        (of_another, "unable to get local issuer certificate", "SSL_CERT_FILE"),
        (of_itself, "self-signed certificate", "SSL_CERT_FILE"),
        (for_another_host, "not valid for '127.0.0.1'", "host in the base URL"),
        (of_yesterday, "certificate has expired", "clock"),
    ],
)
def test_a_server_that_cannot_prove_who_it_is(authority, trusted, prove, reason, advice, way):
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
def test_a_chain_to_an_authority_in_a_folder_that_the_environment_names(
    authority, trusted, way, monkeypatch, tmp_path
):
    openssl = shutil.which("openssl") or pytest.skip("there is no openssl to name the file")
    command = [openssl, "x509", "-noout", "-hash", "-in", trusted]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    trusted.rename(tmp_path / f"{name}.0")
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    connections._tls_context.cache_clear()
    middle = authority.create_child_ca()
    with (
        SecureServer(lambda c: c.sendall(response(SOUND)), middle, "127.0.0.1") as server,
        chat(server, "https") as model,
    ):
        assert asked(model, way) == "sound"


@WAYS
@pytest.mark.parametrize(("held", "said"), [(None, "No such file"), ("nothing", "none are in it")])
def test_certificates_that_cannot_be_read_are_no_failure_of_the_server(
    way, held, said, monkeypatch, tmp_path
):
    if held is not None:
        (tmp_path / "ca.pem").write_text(held)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    connections._tls_context.cache_clear()
    with (
        svc.ChatSvc(base_url_v1="https://127.0.0.1:9/v1", api_key="k") as model,
        pytest.raises(svc.SvcRequestError, match=f"SSL_CERT_FILE names cannot be read: {said}"),
    ):
        asked(model, way)


# -- addresses -----------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("fault", ["refused", "silent", "of an unknown family"])
def test_an_address_that_cannot_be_reached_leaves_the_next(monkeypatch, fault, way):
    real = socket.socket

    class Lacking(real):
        def __init__(self, family=-1, *how, **given):
            if family == socket.AF_INET6:
                raise OSError(97, "Address family not supported by protocol")
            super().__init__(family, *how, **given)

    monkeypatch.setattr(sockets, "_PATIENCE", 0.5)
    with full_backlog() as silent, RawServer(lambda c: c.sendall(response(SOUND))) as server:
        port = server.port
        first = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0))
        if fault != "of an unknown family":
            dead = int(silent["base_url_v1"].rpartition(":")[2])
            there = ("127.0.0.1", dead) if fault == "silent" else ("127.0.0.2", port)
            first = (socket.AF_INET, socket.SOCK_STREAM, 6, "", there)
        both = [first, (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
        if fault == "of an unknown family":
            monkeypatch.setattr(socket, "socket", Lacking)
        begun = time.monotonic()
        with chat(server, timeout=80) as model:
            assert asked(model, way) == "sound"
        assert time.monotonic() - begun < 20  # and not half of the time


async def test_a_socket_is_closed_after_the_event_loop_let_go_of_it(monkeypatch):
    loop, seen = asyncio.get_running_loop(), []
    connect = loop.sock_connect

    async def connect_late(sock, address):
        if address[1] != 9:
            return await connect(sock, address)
        try:
            await asyncio.sleep(60)
        finally:  # its number may be another's socket once it is closed
            seen.append((sock, sock.fileno()))

    monkeypatch.setattr(loop, "sock_connect", connect_late)
    with RawServer(lambda c: c.sendall(response(SOUND))) as server:
        port = server.port
        both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", p)) for p in (9, port)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
        async with svc.ChatSvc(api_key="k", base_url_v1=f"http://localhost:{port}/v1") as model:
            assert (await model.ainvoke("hi")).text == "sound"
    [(sock, number)] = seen
    assert number > 0
    assert sock.fileno() == -1


# -- time ----------------------------------------------------------------------------------------


async def test_what_came_while_the_event_loop_was_blocked_is_not_late():
    def answer(connection):
        time.sleep(0.2)
        connection.sendall(response(SOUND))

    with RawServer(answer) as server, chat(server, timeout=0.4) as model:
        call = asyncio.ensure_future(model.ainvoke("hi"))
        await asyncio.sleep(0.1)
        time.sleep(0.6)  # noqa: ASYNC251
        assert (await call).text == "sound"
        await model.aclose()


async def test_connections_that_are_not_needed_any_more_are_closed(monkeypatch):
    monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.3)
    with Sandbox() as box, svc.ChatSvc(**box.v1) as model:
        model.batch(["hi"] * 4)
        await model.abatch(["hi"] * 4)
        assert box.open_connections > 4
        for _ in range(5):
            model.invoke("hi")
            await model.ainvoke("hi")
            await asyncio.sleep(0.1)
        assert await asyncio.to_thread(settled, lambda: box.open_connections, 2) == 2
        await model.aclose()


# -- what stands between two answers ------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize(
    "interim",
    [
        b"199 E\r\nContent-Length: %d\r\n\r\n%b" % (len(FORGED), FORGED),
        b"150 E\r\nTransfer-Encoding: chunked\r\n\r\n" + http_chunk(FORGED) + LAST_CHUNK,
        b"103 Early Hints\r\nContent-Length: 0\r\n\r\n",
        b"099 E\r\nContent-Length: %d\r\n\r\n%b" % (len(FORGED), FORGED),
    ],
)
def test_an_announcement_with_a_body_or_a_status_below_100_is_no_answer(interim, way):
    def answer(connection):
        connection.sendall(b"HTTP/1.1 " + interim + response(SOUND))

    with (
        RawServer(answer) as server,
        chat(server) as model,
        pytest.raises(svc.SvcConnectionError),
    ):
        asked(model, way)


@WAYS
def test_half_a_record_behind_an_answer_is_no_part_of_the_next(authority, trusted, way):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    class Halved(RawServer):
        def _serve(self, connection):
            with connection, suppress(OSError):
                tls, going, until = in_memory(context, connection)
                while until(lambda: tls.read(65536)):
                    tls.write(response(SOUND, connection=None))
                    whole = going.read()
                    tls.write(response(FORGED, connection=None))
                    forged = going.read()
                    connection.sendall(whole + forged[:40])
                    time.sleep(0.3)
                    connection.sendall(forged[40:])

    async def twice(model):
        return [(await model.ainvoke("hi")).text for _ in range(2)]

    with Halved(None) as server, chat(server, "https") as model:
        by_thread = way == "invoke"
        texts = [asked(model, way) for _ in range(2)] if by_thread else asyncio.run(twice(model))
        assert texts == ["sound"] * 2
        assert server.accepted == 2


@WAYS
def test_a_name_that_is_the_common_name_only_proves_nothing(authority, trusted, way):
    with SecureServer(lambda c: c.sendall(response(SOUND)), authority, "localhost") as server:
        server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(common_name="localhost").configure_cert(server.context)
        server.url = server.url.replace("127.0.0.1", "localhost")
        with (
            chat(server, "https") as model,
            pytest.raises(svc.SvcConnectionError, match=r"valid for|Subject Alternative Name"),
        ):
            asked(model, way)


# -- long waits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tell", [None, lambda *_: False, lambda *_: True])
def test_a_long_wait_is_told_once_with_its_reason_and_its_end(caplog, monkeypatch, tell):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    told_elsewhere = ON_WAIT.set(tell)
    turns = iter([response(b"{}", status="429 Busy", retry_after="41"), response(SOUND)])
    with (
        RawServer(lambda c: c.sendall(next(turns))) as server,
        chat(server, max_retries=2) as model,
    ):
        assert asked(model, "invoke") == "sound"
    ON_WAIT.reset(told_elsewhere)
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    if tell is not None and tell():  # the progress of a bulk run says so
        assert not warnings
        return
    (told,) = warnings
    assert "waiting 4" in told.getMessage()
    assert "until" in told.getMessage()
    assert "SvcRateLimitError" in told.getMessage()


def test_an_address_that_was_silent_is_tried_last(monkeypatch):
    monkeypatch.setattr(sockets, "_SILENT", {})
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, and listens to nobody
        rows = [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", dead.getsockname())
            for dead in (closed, server)
        ]
        future = Future()
        future.set_result(rows)
        monkeypatch.setattr(sockets, "_look_up", lambda host, port: future)
        tried = []
        connect = socket.socket.connect
        recording = type("Recording", (socket.socket,), {})
        recording.connect = lambda self, address: (tried.append(address), connect(self, address))
        monkeypatch.setattr(sockets.socket, "socket", recording)
        for _ in range(2):
            sockets._connected("host", 1, sockets.Timeouts(5.0, sockets.FOREVER)).close()
    dead, good = (row[-1] for row in rows)
    assert tried == [dead, good, good]
