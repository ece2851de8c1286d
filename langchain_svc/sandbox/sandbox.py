"""The door of the package: a sandbox that a test starts, uses, inspects and stops."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Self, TypedDict, get_args

from .answers import Answers, Script, Scripted
from .app import App
from .endpoints import ROUTES, Settings
from .faults import Fault, FaultBook
from .inspector import Inspector
from .log import Log, Received, ServedExchange
from .server import Server
from .service import Plan, Service
from .upstream import Upstream
from .wire import StreamFormat, is_loopback, require_ascii

_MOST_WAITING = 10_000  # exchanges that a terminal has yet to show


class V1Arguments(TypedDict):
    """Keyword arguments for the classes of the v1 interface."""

    api_key: str
    base_url_v1: str


class GeneralArguments(TypedDict):
    """Keyword arguments for the classes of the general interface."""

    api_key: str
    base_url: str


class MedicalArguments(TypedDict):
    """Keyword arguments for the classes of the medical interface."""

    api_key: str
    medical_base_url: str


class Sandbox:
    """A local stand-in for the service, with real HTTP on loopback.

    Args:
        answers: The answers to chats, in order, before the rules answer: a text, a `ToolCall`,
            a list of them, a `Fault`, or a function of the request (a `Received`). A function in
            the place of the list answers every chat.
        plan: Whose limits apply: "free", "starter", "pro" or "enterprise".
        faults: What goes wrong: a `Fault` or several; the first that matches a request is applied.
        stream_format: Format of all streams; by default "sse" on v1 and "text" on general.
        pace: Seconds between the pieces of a stream.
        stream_usage: Whether a stream's last chunk carries the usage.
        seed: Decides which requests get a fault with a `rate`.
        strict: Refuse undocumented fields and roles instead of ignoring or accepting them.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        api_key: The key of the v1 and general interfaces.
        medical_api_key: The key of the medical interface.
        clock: Seconds since the epoch; limits and timestamps follow it, delays do not.
        allow_remote: Permit a host that other machines can reach.
        keep: How many of the latest requests to remember; all by default.
        inspector: Whether `inspector_url` shows the latest requests in a browser of this machine.
        upstream: A real model that answers in the place of the rules.

    Raises:
        ValueError: An argument is not one of its options, the host is not loopback, or a fault can
            never happen.
        TypeError: One of the answers cannot be played, or one of the faults is something else.
    """

    def __init__(
        self,
        *,
        answers: Answers = (),
        plan: Plan = "enterprise",
        faults: Fault | Iterable[Fault] = (),
        stream_format: StreamFormat | None = None,
        pace: float = 0.0,
        stream_usage: bool = True,
        seed: int = 0,
        strict: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
        api_key: str = "sandbox-key",
        medical_api_key: str = "sandbox-medical-key",
        clock: Callable[[], float] = time.time,
        allow_remote: bool = False,
        keep: int | None = None,
        inspector: bool = True,
        upstream: Upstream | None = None,
    ) -> None:
        _require_option("plan", plan, get_args(Plan))
        if stream_format is not None:
            _require_option("stream_format", stream_format, get_args(StreamFormat))
        if not 0 <= pace < float("inf"):
            raise ValueError("pace: expected seconds, 0 or more.")
        if not 0 <= port <= 65_535:
            raise ValueError("port: expected 0 to 65535.")
        if not allow_remote and not is_loopback(host):
            raise ValueError(
                f"host {host!r} can be reached from other machines. The sandbox listens on "
                "loopback only (127.0.0.1), unless allow_remote=True."
            )
        require_ascii("api_key", api_key)
        require_ascii("medical_api_key", medical_api_key)
        self._host = "127.0.0.1" if host == "localhost" else host
        self._port = port
        self._settings = Settings(
            plan=plan,
            api_key=api_key,
            medical_api_key=medical_api_key,
            stream_format=stream_format,
            stream_usage=stream_usage,
            pace=pace,
            strict=strict,
            clock=clock,
            upstream=upstream,
        )
        self._faults = FaultBook(faults, seed, ROUTES)
        self._log = Log(keep)
        self._script = Script(answers)
        service = Service(self._settings, self._script)
        about = {"plan": plan, "upstream": upstream.model if upstream else ""}
        self._inspector = Inspector(self._log, self._faults, service.meters, about)
        self._app = App(
            self._settings,
            service,
            self._faults,
            self._script,
            self._log,
            inspector=self._inspector if inspector else None,
        )
        self._server: Server | None = None

    def __repr__(self) -> str:
        where = self.url if self.running else "not running"
        return f"<Sandbox: {where}, plan {self._settings.plan}>"

    def start(self) -> Self:
        """Listen, and return when connections are accepted.

        Raises:
            RuntimeError: It is running already.
            OSError: The port is taken.
        """
        if self._server is not None:
            raise RuntimeError("This sandbox is running already.")
        server = Server(self._app, self._host, self._port)
        server.start()
        self._server = server
        return self

    def stop(self) -> None:
        """Drop every connection and return when the thread is gone; harmless when not running."""
        server = self._server
        self._server = None
        if server is not None:
            server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)  # the caller's loop may be closing clients

    @property
    def running(self) -> bool:
        """Whether it is listening."""
        return self._server is not None and self._server.running

    @property
    def url(self) -> str:
        """The address, without a path: `http://127.0.0.1:PORT`. RuntimeError when not started."""
        if self._server is None:
            raise RuntimeError(
                "The sandbox has no address before start(); use it in a with block."
            )
        # One cannot connect to an address that means all of them.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104
        if ":" in host:
            host = f"[{host}]"
        return f"http://{host}:{self._server.port}"

    @property
    def inspector_url(self) -> str:
        """The address of the inspector, with the token that it asks for."""
        return f"{self.url}/?token={self._inspector.token}"

    @property
    def v1(self) -> V1Arguments:
        """Keyword arguments for the classes of the v1 interface."""
        return {"api_key": self._settings.api_key, "base_url_v1": f"{self.url}/v1"}

    @property
    def general(self) -> GeneralArguments:
        """Keyword arguments for the classes of the general interface."""
        return {"api_key": self._settings.api_key, "base_url": self.url}

    @property
    def medical(self) -> MedicalArguments:
        """Keyword arguments for the classes of the medical interface."""
        return {"api_key": self._settings.medical_api_key, "medical_base_url": self.url}

    @property
    def env(self) -> dict[str, str]:
        """The environment variables with the addresses and keys of all three interfaces."""
        return {
            "SVC_API_KEY": self._settings.api_key,
            "SVC_BASE_URL_V1": f"{self.url}/v1",
            "SVC_BASE_URL": self.url,
            "SVC_MEDICAL_API_KEY": self._settings.medical_api_key,
            "SVC_MEDICAL_BASE_URL": self.url,
        }

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults in force; assigning one or several replaces them, their counters at zero.

        Assigning raises a ValueError for a fault that can never happen.
        """
        return self._faults.faults

    @faults.setter
    def faults(self, faults: Fault | Iterable[Fault]) -> None:
        self._faults.replace(faults)

    @property
    def answers(self) -> tuple[Scripted, ...]:
        """The answers that were not played yet; assigning replaces them."""
        return self._script.remaining

    @answers.setter
    def answers(self, answers: Answers) -> None:
        self._script.replace(answers)

    @property
    def requests(self) -> list[Received]:
        """What arrived, in order, each as it stands now; readable after stop() too."""
        return self._log.received()

    def clear(self) -> None:
        """Forget the requests so far."""
        self._log.clear()

    @property
    def open_connections(self) -> int:
        """How many clients are connected now."""
        if self._server is None:
            return 0
        return self._server.open_connections


def serve(
    sandbox: Sandbox, tell: Callable[[ServedExchange], None] | None = None
) -> None:
    """Serve until interrupted (Ctrl-C) or stopped; starts the sandbox unless it is running.

    `tell` is called with each exchange that is over, in this thread, so that a terminal that does
    not read delays no answer.
    """
    finished: deque[ServedExchange] = deque(maxlen=_MOST_WAITING)
    if tell is not None:
        sandbox._log.listener = finished.append  # noqa: SLF001  # our own class
    started_here = not sandbox.running
    if started_here:
        sandbox.start()
    try:
        while sandbox.running:
            time.sleep(0.1)
            while tell is not None and finished:
                tell(finished.popleft())
    except KeyboardInterrupt:
        pass
    finally:
        if started_here:
            sandbox.stop()


def _require_option(name: str, value: str, options: Iterable[str]) -> None:
    if value not in options:
        raise ValueError(
            f"{name}: expected one of {', '.join(options)}, got {value!r}."
        )
