"""A raw socket server that says exactly what a test tells it to, for what no HTTP library would."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import operator
import pickle
import socket
import ssl
import threading
import time
from io import BytesIO
from urllib.parse import urlsplit

import httpx
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.tracers.base import BaseTracer
from PIL import Image

from langchain_svc import ChatSvc


def thawed(thing, *further):
    """What comes out of a pickle, with its key and further settings given again."""
    again = pickle.loads(pickle.dumps(thing))
    return again.model_copy(update={name: getattr(thing, name) for name in ("api_key", *further)})


MARKED_KEY = "sk-MARKED-KEY-93417"  # which is looked for where no key may be


class RunKeeper(BaseTracer):
    """A tracer that keeps its runs whole, as LangSmith would get them."""

    def __init__(self):
        super().__init__()
        self.runs = []

    def _persist_run(self, run):
        self.runs.append(run)

    @property
    def every(self):
        """The runs and all runs below them."""
        runs = list(self.runs)
        for run in runs:
            runs += run.child_runs
        return runs

    @property
    def told(self):
        """What each run shows."""
        return [f"{vars(run)}{run.model_dump_json()}" for run in self.every]

    @property
    def names(self):
        return [f"on_{run.run_type}" for run in self.every]


def hearing(show=repr, base=BaseCallbackHandler):
    """A handler that keeps the `names` of all events, and as `told` what `show` says of each."""

    def heard(name):
        def hear(self, *args, **kwargs):
            self.names.append(name)
            self.told.append(f"{name}: {show((args, kwargs))}")

        async def ahear(self, *args, **kwargs):
            hear(self, *args, **kwargs)

        return ahear if base is AsyncCallbackHandler else hear

    events = {name: heard(name) for name in dir(base) if name.startswith("on_")}
    handler = type("Hearing", (base,), events)()
    handler.names, handler.told = [], []
    return handler


def png(size=(2, 2), colour="red"):
    """The bytes of a picture."""
    file = BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


async def listed(pieces):
    return [piece async for piece in pieces]


def asked(model, way):
    """The text of an answer, blocking or on an event loop of its own, on which nothing is left."""

    async def answered():
        try:
            return (await model.ainvoke("hi")).text
        finally:
            assert len(asyncio.all_tasks()) == 1
            await model.aclose()

    return model.invoke("hi").text if way == "invoke" else asyncio.run(answered())


def tool_call(tool, arguments):
    """A call as a model makes it, to which the tool answers with a whole message."""
    return {"name": tool.name, "args": arguments, "id": "c1", "type": "tool_call"}


def summed(chunks):
    """The message that these chunks make."""
    return functools.reduce(operator.add, chunks)


def settled(read, wanted, seconds=2.0):
    """Waits until `read()` is `wanted`: the other end notices a closed socket a moment later."""
    until = time.monotonic() + seconds
    while read() != wanted and time.monotonic() < until:
        time.sleep(0.01)
    return read()


@contextlib.contextmanager
def full_backlog():
    """A port that answers no attempt to connect: its queue is full."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as server,
        contextlib.ExitStack() as stack,
    ):
        address = server.getsockname()
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        yield {"api_key": "k", "base_url_v1": f"http://127.0.0.1:{address[1]}"}


class RawServer:
    """Accepts connections on loopback and lets `handle(connection)` answer each request.

    `handle` is called after the head and body of one request were read, or only its head without
    `reads_bodies`; the connection is closed when it returns.
    """

    def __init__(self, handle, *, reads_bodies=True):
        self.handle = handle
        self.reads_bodies = reads_bodies
        self.requests = []
        self.accepted = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self._threads = []
        self._open = []
        self._stop = threading.Event()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self):
        self._start(self._accept)
        return self

    def __exit__(self, *_):
        self._stop.set()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        self._socket.close()

    @property
    def port(self):
        return urlsplit(self.url).port

    @property
    def v1(self):
        return {"api_key": "test-key", "base_url_v1": self.url + "/v1"}

    def _start(self, target, *args):
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = self._socket.accept()
                self.accepted += 1
                self._open.append(connection)
                self._start(self._serve, connection)

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            connection.settimeout(10)
            self.requests.append(read_request(connection, self.reads_bodies))
            self.handle(connection)
        self._open.remove(connection)


class SecureServer(RawServer):
    """The same over TLS, with a certificate for one name; without a name it speaks no TLS."""

    def __init__(self, handle, authority, name, **how):
        super().__init__(handle, **how)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if name else None
        if name:
            authority.issue_cert(name).configure_cert(self.context)

    def _serve(self, connection):
        if self.context is None:
            return super()._serve(connection)
        with contextlib.suppress(OSError):
            connection.settimeout(10)
            secure = self.context.wrap_socket(connection, server_side=True)
            self._open.append(secure)
            super()._serve(secure)
        self._open.remove(connection)
        return None


def read_request(connection, with_body=True):
    """The bytes of one request: its head and as much body as its Content-Length says."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while with_body and len(body) < length and (piece := connection.recv(65536)):
        body += piece
    return head + b"\r\n\r\n" + body


def response(body=b"", *, status="200 OK", **headers):
    """The bytes of a whole HTTP response."""
    named = {"content_length": str(len(body)), "connection": "close", **headers}
    lines = [
        f"{name.replace('_', '-')}: {value}" for name, value in named.items() if value is not None
    ]
    return f"HTTP/1.1 {status}\r\n".encode() + "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked_head(content_type="text/event-stream"):
    """The head of a response whose body comes in chunks."""
    return response(content_length=None, content_type=content_type, transfer_encoding="chunked")


def http_chunk(data):
    """One piece of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


LAST_CHUNK = b"0\r\n\r\n"


def answering(answer):
    """Both clients for a model or tool whose requests this function answers."""
    transport = httpx.MockTransport(answer)
    return {
        "http_client": httpx.Client(transport=transport),
        "http_async_client": httpx.AsyncClient(transport=transport),
    }


class Scripted:
    """A service that gives these answers, one after the other, and remembers what it was asked.

    `step` cuts a streamed answer into pieces of so many characters; `usage` is told beside the
    tokens that it used.
    """

    def __init__(self, *answers, step=3, finish_reason="stop", **usage):
        self.usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **usage}
        self.answers = list(answers)
        self.asked = []
        self.step = step
        self.finish_reason = finish_reason

    def __call__(self, request):
        body = json.loads(request.content)
        self.asked.append(body["messages"])
        text = self.answers.pop(0)
        if not body.get("stream"):
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
            return httpx.Response(
                200, json={"model": "m", "choices": [choice], "usage": self.usage}
            )
        pieces = [text[i : i + self.step] for i in range(0, len(text), self.step)]
        events = [
            {"choices": [{"index": 0, "delta": {"content": p}, "finish_reason": None}]}
            for p in pieces
        ]
        end = {
            "choices": [{"index": 0, "delta": {}, "finish_reason": self.finish_reason}],
            "usage": self.usage,
        }
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in [*events, end])
        return httpx.Response(
            200, text=lines + "data: [DONE]\n\n", headers={"content-type": "text/event-stream"}
        )

    def model(self, **settings):
        """A ChatSvc that asks this service, blocking and asynchronously."""
        words = {"api_key": "k", "base_url_v1": "https://svc.example/v1", "merge_events": False}
        return ChatSvc(**{**words, **answering(self), **settings})
