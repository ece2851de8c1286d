"""Accounts that processes and machines share through Redis or Valkey.

The script of `quota.lua` is ours. Of the libraries that were read, `limits` asks for one limit at a
time and cannot give back what an estimate took too much; `pyrate-limiter` keeps one entry for every
token and trusts the clients' clocks. Neither queues.

What became of calls travels with the next question of the process, so that a call costs one round
trip. It goes at once only where others would wait for nothing, or send too much.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from .._forks import new_lock
from .._safe_errors import safe_repr
from ..errors import SvcConnectionError
from .ledger import Outcome, Ticket, Wait
from .memory import MemoryAccount
from .plans import Limit

_SCHEMES = ("redis", "rediss", "unix")
_TIMEOUT = 2.0  # seconds for an answer of Redis
_REST = 2.0  # seconds before Redis is asked again after a failure
_FOREVER = 1e9  # JSON has no infinity
_NEWS = 0.02  # of a limit: a wrong estimate that others should hear of at once
_KEYS = ("state", "queue", "seen", "tokens")


class RedisStore:
    """One Redis, by its URL.

    Args:
        url: "redis://host:port/0", "rediss://..." over TLS, or "unix://path".
        local: Whether calls go on with a share of the plan while it does not answer.

    Raises:
        ValueError: The URL is none of these.
        ImportError: The extra `redis` is not installed.
    """

    def __init__(self, url: str, *, local: bool) -> None:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in _SCHEMES or not (parts.hostname or parts.path):
            # Not the value: it may hold a password.
            raise ValueError(
                'storage must be "memory", "redis://host:port/0", "rediss://host:port/0" or '
                f'"unix://path", not {"a URL of another form" if parts else safe_repr(url)}'
            )
        try:
            from redis import Redis  # noqa: PLC0415  # an extra
            from redis.backoff import NoBackoff  # noqa: PLC0415
            from redis.retry import Retry  # noqa: PLC0415
        except ImportError:
            raise ImportError(
                'A quota in Redis needs the extra: pip install "langchain-svc[redis]"'
            ) from None
        self.place = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
        self._local = local
        self._client = Redis.from_url(
            url,
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
            retry=Retry(NoBackoff(), 0),
        )
        self._script = self._client.register_script(_source())
        self._rests_until, self._why = 0.0, ""

    def account(self, limits: tuple[Limit, ...], *, learns: bool, name: str) -> RedisAccount:
        """The account of this name."""
        return RedisAccount(self, limits, learns=learns, name=name, local=self._local)

    def run(self, name: str, question: dict[str, Any]) -> dict[str, Any]:
        """What the script answers about an account.

        Raises:
            SvcConnectionError: Redis did not answer.
        """
        from redis import RedisError  # noqa: PLC0415  # an extra

        why = self._why
        if time.monotonic() >= self._rests_until:
            keys = [f"svc-quota:{{{name}}}:{key}" for key in _KEYS]
            try:
                answer = self._script(keys=keys, args=[json.dumps(question)])
                return json.loads(answer)  # type: ignore[no-any-return]
            except (RedisError, OSError) as error:
                self._why = why = type(error).__name__
                self._rests_until = time.monotonic() + _REST
        raise SvcConnectionError(
            f"The quota's storage {self.place} did not answer ({why}); nothing was sent. Start it "
            "or correct its address. A quota that came out of a pickle has no password: make it "
            'here. SvcQuota(on_storage_failure="local") goes on with a share of the plan'
        )


@lru_cache(maxsize=1)
def _source() -> str:
    return Path(__file__).with_name("quota.lua").read_text(encoding="utf-8")


class _Process:
    """Which process this is; a forked child is another."""

    def __init__(self) -> None:
        self._pid, self._id = 0, ""

    def __call__(self) -> str:
        if self._pid != os.getpid():
            self._pid, self._id = os.getpid(), uuid4().hex
        return self._id


_process = _Process()


class RedisAccount:
    """An account in Redis, with what this process counted itself beside it."""

    def __init__(
        self,
        store: RedisStore,
        limits: tuple[Limit, ...],
        *,
        learns: bool,
        name: str,
        local: bool,
    ) -> None:
        self.local = False
        self.counts_tokens = any(limit.unit == "tokens" for limit in limits)
        self._tokens_limit = min((n.amount for n in limits if n.unit == "tokens"), default=0)
        self._store, self._name, self._is_local = store, name, local
        self._fixed: dict[str, Any] = {
            "limits": [(limit.unit, limit.seconds, limit.amount) for limit in limits],
            "learns": learns,
        }
        self._own = MemoryAccount(limits, learns=learns)
        self._settled: deque[dict[str, Any]] = deque()
        self._left: deque[str] = deque()
        self._sent_here: deque[tuple[float, int]] = deque()  # and not told yet
        self._seen: tuple[int, list[float]] | None = None  # processes, and the use of each limit
        self._born = "never"  # when the state in Redis began
        self._pid = os.getpid()
        self._lock = new_lock()

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, ticket: Ticket) -> Wait | None:
        """None where the call may be sent now; else it stands in the queue."""
        try:
            return self._ask(ticket)
        except SvcConnectionError:
            return self._ask_here(ticket)

    async def aask(self, ticket: Ticket) -> Wait | None:
        """The async version of `ask`, in a thread: a slow Redis holds up no event loop."""
        try:
            return await asyncio.to_thread(self._ask, ticket)
        except asyncio.CancelledError:
            ticket.gone = True
            self._give_back(ticket)
            raise
        except SvcConnectionError:
            return self._ask_here(ticket)

    def _ask_here(self, ticket: Ticket) -> Wait | None:
        """Within this process's share, where the user wants that while Redis is away."""
        if not self._is_local:
            raise  # noqa: PLE0704  # it is called where an error is handled
        with self._lock:
            seen, self._seen = self._seen, None
        if seen is not None:
            self._own.share(*seen)
        wait = self._own.ask(ticket)
        if wait is None:
            self._sent_here.append((time.monotonic(), ticket.tokens))
        return wait

    def _ask(self, ticket: Ticket) -> Wait | None:
        ticket.id = ticket.id or uuid4().hex
        call = {
            "id": ticket.id,
            "priority": ticket.priority,
            "party": ticket.party or _process(),
            "tokens": ticket.tokens,
            "turn": ticket.turn,
            "patience": min(ticket.patience, _FOREVER),
        }
        answer = self._run(call=call)
        ticket.turn = answer["key"]
        if "turn" in answer:
            return Wait(answer["turn"], answer["again"], answer["seconds"])
        ticket.stored_at = answer["now"]
        self._own.note(ticket)
        if ticket.gone:  # its task was cancelled meanwhile
            self._give_back(ticket)
        return None

    def _give_back(self, ticket: Ticket) -> None:
        if ticket.stored_at is not None:
            self.settle(ticket, Outcome(sent=False, tokens=0))

    def _run(self, **question: Any) -> dict[str, Any]:
        if self._pid != os.getpid():  # the parent tells what it did before the fork
            self._pid = os.getpid()
            self._settled.clear()
            self._left.clear()
        settled, left = _drained(self._settled), _drained(self._left)
        here = _drained(self._sent_here)
        asked = {
            **self._fixed,
            "process": _process(),
            "born": self._born,
            "settle": settled,
            "leave": left,
            **question,
        }
        if here:
            asked["counted"] = self._counted_here(here)
        try:
            answer = self._store.run(self._name, asked)
            if answer["lost"]:
                # Redis is new, or has forgotten everything. What this process knows is told again.
                with self._lock:
                    new = self._born != answer["born"]
                    self._born = answer["born"]
                counted = self._own.counted() if new else []
                asked |= {"settle": [], "leave": [], "born": self._born, "counted": counted}
                answer = self._store.run(self._name, asked)
        except SvcConnectionError:
            # What is older than a window means nothing any more.
            self._settled.extend(settled[-1000:])
            self._left.extend(left[-1000:])
            self._sent_here.extend(here)
            raise
        self._born = answer["born"]
        self._seen = answer["parties"], answer["used"]
        return answer

    def _counted_here(self, here: list[tuple[float, int]]) -> list[tuple[str, float, float, int]]:
        """What was let through while Redis was away: the window, its age and the amount."""
        now = time.monotonic()
        return [
            (unit, seconds, now - at, 1 if unit == "requests" else tokens)
            for at, tokens in here
            for unit, seconds, _ in self._fixed["limits"]
            if now - at < seconds
        ]

    # -- what became of it ----------------------------------------------------------------------

    def settle(self, ticket: Ticket, outcome: Outcome) -> bool:
        """Count what became of a call that was let through.

        Returns:
            Whether others should be told before this process asks again.
        """
        self._own.settle(ticket, outcome)
        if ticket.stored_at is None:  # it was let through here
            return False
        tokens = -1 if outcome.tokens is None else outcome.tokens
        told: dict[str, Any] = {
            "at": ticket.stored_at,
            "held": ticket.tokens,
            "sent": outcome.sent,
            "tokens": tokens,
            "status": outcome.status or 0,
            "retry_after": -1 if outcome.retry_after is None else outcome.retry_after,
        }
        if outcome.limits is not None:
            told["limits"] = outcome.limits
        self._settled.append(told)
        ticket.stored_at = None
        off = 0 if outcome.tokens is None else abs(outcome.tokens - ticket.tokens)
        return outcome.status == 429 or off > _NEWS * self._tokens_limit > 0  # noqa: PLR2004

    def report(self) -> None:
        """Tell Redis what became of calls."""
        if self._settled or self._left:
            with suppress(SvcConnectionError):  # it is told later
                self._run()

    async def areport(self) -> None:
        """The async version of `report`."""
        await asyncio.to_thread(self.report)

    def leave(self, ticket: Ticket) -> None:
        """The call does not wait any more."""
        self._own.leave(ticket)
        if ticket.id and ticket.stored_at is None:
            self._left.append(ticket.id)

    # -- looking --------------------------------------------------------------------------------

    def eta(self, requests: int, tokens: int) -> float:
        """Seconds until so much more has fitted."""
        return float(self._run(eta=[requests, tokens])["eta"])

    def look(self) -> dict[str, Any]:
        """What a snapshot tells."""
        answer = self._run(look=True)
        windows = [
            (unit, float("inf") if limit < 0 else limit, seconds, max(0, round(used)), empty_in)
            for unit, limit, seconds, used, empty_in in answer["windows"]
        ]
        interactive = answer["interactive"]
        waiting = (interactive, answer["waiting"] - interactive)
        return {"windows": sorted(windows), "waiting": waiting, "hold": answer["hold"]}


def _drained(queue: deque[Any]) -> list[Any]:
    parts: list[Any] = []
    with suppress(IndexError):  # it is empty
        while True:
            parts.append(queue.popleft())
    return parts
