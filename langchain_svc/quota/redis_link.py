"""The connection of a process to Redis or Valkey, for the accounts that processes share.

A process has one connection to a Redis and one thread that uses it. Requests that come while the
thread waits for a reply go out together. A caller waits no longer than its call may take, however
long the thread waits.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha1
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from .._base.safe_errors import safe_repr
from .._base.threads import new_lock
from ..errors import SvcConnectionError

try:
    from redis import ConnectionPool, RedisError, ResponseError
    from redis.backoff import NoBackoff
    from redis.exceptions import NoScriptError
    from redis.retry import Retry
except ImportError:
    raise ImportError(
        'A quota or a budget in Redis needs the extra: pip install "langchain-svc[redis]"'
    ) from None

REST = 2.0  # seconds after a failure in which Redis gets no request
_TIMEOUT = 2.0  # seconds for a reply of Redis
_LARGEST = 1e18
_MOST_AT_ONCE = 100  # requests in one round trip
_SCHEMES = ("redis", "rediss", "unix")
# What parsing a reply raises if it is not the script's.
NO_REPLY = (
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)
_URL = (
    'storage must be "memory", "redis://host:port/0", "rediss://host:port/0" or "unix://path", '
    "with / ? # @ in names and passwords written as %2F %3F %23 %40"
)


_Reply = TypeVar("_Reply")


# -- requests -------------------------------------------------------------------------------------


class Account(Protocol[_Reply]):
    """An account in Redis, as the connection uses it."""

    link: RedisLink
    source: str  # the script
    what: str  # "quota" or "budget", as errors name it
    advice: str  # what else a user can do while Redis is away

    def pack(self, request: RedisRequest[_Reply]) -> bytes:
        """The bytes of a request."""
        ...

    def parse_reply(self, data: bytes) -> _Reply:
        """The checked reply; raises one of `NO_REPLY` for anything else."""
        ...

    def note_reply(
        self, request: RedisRequest[_Reply], reply: _Reply | SvcConnectionError
    ) -> None:
        """Remember what a reply says, or that none came."""
        ...

    def give_back(
        self, request: RedisRequest[_Reply], reply: _Reply | SvcConnectionError
    ) -> None:
        """Undo what the reply granted: it came after its caller had stopped waiting."""
        ...


class RedisRequest(Future["_Reply | SvcConnectionError"], Generic[_Reply]):
    """One run of an account's script. Its result is the reply or a `SvcConnectionError`.

    The thread sets the result, or the waiting caller cancels it: a future never has both.
    """

    def __init__(self, account: Account[_Reply], **body: Any) -> None:
        super().__init__()
        self.account = account
        self.body = body

    def reply_within(self, seconds: float) -> _Reply:
        """The reply; SvcConnectionError if it does not come within so many seconds."""
        with self._put(), suppress(TimeoutError, FutureTimeout):
            self.result(max(0.0, min(_TIMEOUT, seconds)))
        return self._reply()

    async def areply_within(self, seconds: float) -> _Reply:
        """The async version of `reply_within`."""
        with self._put():
            timeout = max(0.0, min(_TIMEOUT, seconds))
            await asyncio.wait([asyncio.wrap_future(self)], timeout=timeout)
        return self._reply()

    @contextmanager
    def _put(self) -> Iterator[None]:
        self.account.link.put(self)
        try:
            yield
        except BaseException:
            if not self.cancel():
                self.account.give_back(self, self.result())
            raise

    def _reply(self) -> _Reply:
        if self.cancel():
            raise self.account.link.failure(self.account)
        reply = self.result()
        if isinstance(reply, SvcConnectionError):
            raise reply.with_traceback(None)
        return reply

    def resolve(self, reply: _Reply | SvcConnectionError) -> None:
        """Hand the reply to the waiting caller, or give back what it granted if none waits."""
        self.account.note_reply(self, reply)
        try:
            self.set_result(reply)
        except InvalidStateError:
            self.account.give_back(self, reply)


# -- one connection ------------------------------------------------------------------------------


class RedisLink:
    """The connection of this process to one Redis; ValueError for a URL that is not Redis'."""

    def __init__(self, url: str) -> None:
        self.place: str = place_of(url)
        self._url = url
        self._requests: SimpleQueue[RedisRequest[Any]] = SimpleQueue()
        self._rests_until = 0.0
        self._reason = ""
        self._used_at = 0.0
        self._pid = 0
        self._lock = new_lock()
        # This checks the URL; the connection opens with its first use.
        self._connection = self._new_connection()

    def _new_connection(self) -> Any:
        timeouts = {"socket_timeout": _TIMEOUT, "socket_connect_timeout": _TIMEOUT}
        no_retry = Retry(NoBackoff(), 0)
        try:
            pool = ConnectionPool.from_url(self._url, **timeouts, retry=no_retry)
            return pool.make_connection()
        except (ValueError, TypeError, RedisError):
            # The text of such an error may repeat the password: it may not be in ours.
            raise ValueError(_URL) from None

    def command(self, source: str, keys: list[str], fixed: str) -> bytes:
        """The bytes that run a script, without its last argument."""
        digest = sha1(source.encode(), usedforsecurity=False).hexdigest()
        parts = ("EVALSHA", digest, len(keys), *keys, fixed, "")
        packed: bytes = b"".join(self._connection.pack_command(*parts))
        return packed.removesuffix(b"$0\r\n\r\n")

    def put(self, request: RedisRequest[Any]) -> None:
        """Let the thread send a request; SvcConnectionError while Redis rests after a failure."""
        if time.monotonic() < self._rests_until:
            raise self.failure(request.account)
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    self._start()
        self._requests.put(request)

    def _start(self) -> None:
        """Begin in this process: a forked child has a copy of the connection, and no thread."""
        self._requests = SimpleQueue()
        self._connection = self._new_connection()
        threading.Thread(target=self._serve, name="svc quota", daemon=True).start()
        self._pid = os.getpid()

    def failure(self, account: Account[Any]) -> SvcConnectionError:
        """The error of a call that Redis did not let through."""
        what = account.what
        reason = self._reason or "not in time"
        error = SvcConnectionError(
            f"The {what}'s storage {self.place} did not answer ({reason}); nothing was sent. Start "
            f"it or correct its address. A {what} that came out of a pickle has no password: make "
            f"it here. {account.advice}".rstrip()
        )
        rest = self._rests_until - time.monotonic()
        if rest > 0:  # until then no request goes out
            error.retry_after = rest
        return error

    def _serve(self) -> None:
        queue = self._requests
        while True:
            requests = [queue.get()]
            with suppress(Empty):
                while len(requests) < _MOST_AT_ONCE:
                    requests.append(queue.get_nowait())
            responses = self._exchange(requests)
            for request, response in zip(requests, responses, strict=True):
                request.resolve(self._parse(request, response))

    def _exchange(self, requests: list[RedisRequest[Any]]) -> list[bytes | Exception]:
        """The response to each request, or the error that came instead."""
        responses: list[bytes | Exception] = []
        connection = self._connection
        try:
            packed = [request.account.pack(request) for request in requests]
            now = time.monotonic()
            if now - self._used_at > 1 and connection.can_read():
                connection.disconnect()  # closed by Redis, or out of step with it
            self._used_at = now
            connection.send_packed_command([b"".join(packed)])
            # One at a time: after a failure the responses before it still count.
            responses.extend(self._read_response() for _ in requests)
            for index, request in enumerate(requests):
                if isinstance(responses[index], NoScriptError):
                    connection.send_command("SCRIPT", "LOAD", request.account.source)
                    connection.read_response()
                    connection.send_packed_command([packed[index]])
                    responses[index] = self._read_response()
        except Exception as error:  # noqa: BLE001  # anything may listen in the place of Redis
            responses += [error] * (len(requests) - len(responses))
        return responses

    def _read_response(self) -> bytes | Exception:
        try:
            response: bytes = self._connection.read_response()
        except ResponseError as error:
            return error
        return response

    def _parse(
        self, request: RedisRequest[_Reply], response: bytes | Exception
    ) -> _Reply | SvcConnectionError:
        error = response
        if not isinstance(response, Exception):
            try:
                return request.account.parse_reply(response)
            except NO_REPLY as unreadable:
                error = unreadable
        # Only the name of the error: its text may be a stranger's, or hold the password.
        self._reason = type(error).__name__
        self._rests_until = time.monotonic() + REST
        with suppress(Exception):
            self._connection.disconnect()
        return self.failure(request.account)


def place_of(url: str) -> str:
    """The address of a Redis without names and passwords; ValueError where that is not clear.

    Errors, reprs and pickles show the address. So this may not happen: that a part of a password
    counts as a part of the address, or that an error repeats a URL which may hold a password.
    """
    if not isinstance(url, str):
        raise ValueError(f"{_URL}, not {safe_repr(url)}")  # noqa: TRY004  # as all wrong arguments
    scheme, _, rest = url.partition("://")
    is_socket = scheme == "unix" and rest.startswith("/")
    credentials = ""
    if not is_socket:
        credentials, _, _ = rest.rpartition("@")
    # urlsplit ends the host at the first / ? or #. If that stands in a password, the rest of the
    # password would count as the path, which the address shows.
    if "#" in url or "/" in credentials or "?" in credentials:
        raise ValueError(_URL)
    if scheme in _SCHEMES:
        try:
            parts = urlsplit(url)
        except ValueError:  # its text may repeat the password
            raise ValueError(_URL) from None
        if parts.hostname or is_socket:
            # A name or a password stands before the last @.
            _, _, host = parts.netloc.rpartition("@")
            return f"{scheme}://{host}{parts.path}"
    # A value without :// is no URL, so it may be shown.
    value = "a URL of another form"
    if not rest:
        value = safe_repr(url)
    raise ValueError(f"{_URL}, not {value}")


link_to = cache(RedisLink)


def read_script(name: str) -> str:
    """The text of a script that lies beside this module."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_STARTED = uuid4().hex


def process_name() -> str:
    """The name of this process; a forked child has another."""
    return f"{_STARTED}-{os.getpid()}"


def pack_command(command: bytes, body: dict[str, Any]) -> bytes:
    """The bytes of a script's call, with its last argument."""
    text = json.dumps(body).encode()
    return b"%b$%d\r\n%b\r\n" % (command, len(text), text)


def as_numbers(*values: object) -> tuple[float, ...]:
    """The values, if all are numbers that an account may hold; else ValueError."""
    numbers: list[float] = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError("not a number")  # noqa: TRY004  # one of `NO_REPLY`, as the next
        if not abs(value) < _LARGEST:  # a NaN is not, either
            raise ValueError("not a number")
        numbers.append(value)
    return tuple(numbers)
