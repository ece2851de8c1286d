"""Owns connections: a pool for threads, and one for each event loop.

Objects that use one key at one origin by one proxy share their pools, which close when the last
of them is closed or collected. What a pool belongs to may end without telling us:

- An event loop. Each loop's pools are held by an asynchronous generator that was started on it.
  When `asyncio.run` ends it closes such generators, and when the owner is collected the loop's own
  hook does; either way the generator's `finally` closes the pools on the right loop. A loop that is
  closed by hand without that courtesy is noticed at the next use.
- The process. A forked child puts aside what it shares with the parent, unclosed, and begins anew.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import weakref
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
from pydantic import SecretStr

from .._base.threads import new_lock
from ..config import check_proxy, is_loopback
from ..errors import SvcRequestError
from .base import Origin
from .pools import AsyncPool, Pool

# What a forked child inherited. Collecting it would close sockets that the parent still uses.
_INHERITED: list[Any] = []
_T = TypeVar("_T", httpx.HTTPTransport, httpx.AsyncHTTPTransport)


def new_transport(kind: type[_T], pool: type[Pool | AsyncPool], key: PoolKey) -> _T:
    """A transport of httpx's on our connections, or through a proxy on httpx's own."""
    if key.proxy is None:
        made = kind.__new__(kind)
        made._pool = pool(_origin(key.url), _most(key))  # type: ignore[assignment]  # all that httpx asks of one  # noqa: SLF001
        return made
    # Without a context httpx checks a proxy against certificates of its own choice.
    context = _verifying() if key.proxy.startswith("https:") else None
    limits = httpx.Limits(max_connections=_most(key))
    way = httpx.Proxy(key.proxy, ssl_context=context)
    return kind(verify=_verifying(), proxy=way, limits=limits)


def _most(key: PoolKey) -> int:
    """How many connections: half of the files that the process may open are for others."""
    if sys.platform == "win32":
        return key.most
    import resource  # noqa: PLC0415  # Windows has none

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(key.most, files // 2)) if files > 0 else key.most


def _origin(url: str) -> Origin:
    parts = httpx.URL(url)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    return Origin(
        parts.raw_host.decode("ascii"), port, _verifying() if secure else None
    )


@lru_cache(maxsize=1)
def _verifying() -> ssl.SSLContext:
    """One context for the process: loading the certificates takes 40 ms."""
    try:
        context = httpx.create_ssl_context()
    except OSError as error:  # an ssl.SSLError is one
        named = (
            name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)
        )
        reason = (
            error.strerror if isinstance(error, FileNotFoundError) else "none are in it"
        )
        raise SvcRequestError(
            f"The certificates that {next(named, 'certifi')} names cannot be read: {reason}. "
            "Nothing was sent"
        ) from None
    context.set_alpn_protocols(["http/1.1"])
    context.hostname_checks_common_name = False  # RFC 9110, section 4.3.4
    return context


def proxy_for(url: str, proxy: str | None = None) -> str | None:
    """The proxy to use: the given one, else the environment's, and none for loopback."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if proxy is not None or is_loopback(host):
        return proxy
    if proxy_bypass(parts.netloc):
        return None
    known = getproxies()
    found = known.get(parts.scheme) or known.get("all")
    if not found:
        return None
    try:
        return check_proxy(found if "://" in found else f"http://{found}")
    except ValueError as error:
        raise SvcRequestError(
            f"The environment's proxy cannot be used: {error}. Fix {parts.scheme.upper()}_PROXY "
            f"or ALL_PROXY, or name the host in NO_PROXY to go without"
        ) from None


@dataclass(frozen=True)
class PoolKey:
    """What a pool is made for: where it leads, by which proxy, and for whom."""

    url: str
    proxy: str | None = field(default=None, repr=False)
    api_key: SecretStr | str | None = field(default=None, repr=False)
    most: int = 1024  # requests at one time, for threads and for each event loop


class Connections:
    """One object's share in the pools of its key; for any thread, event loop or process."""

    def __init__(self, key: PoolKey) -> None:
        self.key = key
        self._pools: _Pools | None = None

    def _here(self) -> _Pools:
        process, pools = os.getpid(), self._pools
        if pools is None or pools.process != process:
            key = replace(self.key, proxy=proxy_for(self.key.url, self.key.proxy))
            with _joining:
                pools = _SHARED.get((process, key)) or _Pools(process, key)
                self._pools = _SHARED[process, key] = pools
        return pools

    @property
    def by_proxy(self) -> bool:
        """Whether the last call went through one."""
        return self._pools is not None and self._pools.key.proxy is not None

    def transport(self) -> httpx.BaseTransport:
        """The pool for blocking calls."""
        return self._here().blocking

    async def async_transport(self) -> httpx.AsyncHTTPTransport:
        """The pool of the running event loop."""
        return await self._here().on_loop()

    def close(self) -> None:
        """Give up this share. The next call takes a new one."""
        self._pools = None

    async def aclose(self) -> None:
        """The same, and wait until the connections of the running event loop are closed."""
        self.close()
        await asyncio.sleep(0)  # in which the event loop begins to close them
        loop = asyncio.get_running_loop()
        if closing := [task for task in list(_CLOSING) if task.get_loop() is loop]:
            await asyncio.wait(closing)


class _Pools:
    """The pools of a key in one process. They are closed when no object refers to them any more."""

    def __init__(self, process: int, key: PoolKey) -> None:
        self.process, self.key = process, key
        self.blocking = new_transport(httpx.HTTPTransport, Pool, key)
        self.loops: _Loops = {}
        weakref.finalize(self, _close, process, self.blocking, self.loops)

    async def on_loop(self) -> httpx.AsyncHTTPTransport:
        """The pool of the running event loop."""
        loop = asyncio.get_running_loop()
        held = self.loops.get(loop)
        if held is None:
            transport = new_transport(httpx.AsyncHTTPTransport, AsyncPool, self.key)
            held = self.loops[loop] = (transport, _keep(transport, self.loops))
            await held[1].__anext__()  # from here on the loop knows the generator
            for other in [other for other in list(self.loops) if other.is_closed()]:
                (gone, _) = self.loops.pop(other)
                pool: object = gone._pool  # noqa: SLF001  # what was put there is not httpcore's
                if isinstance(pool, AsyncPool):
                    pool.close()
        return held[0]


_joining = new_lock()
_SHARED: weakref.WeakValueDictionary[tuple[int, PoolKey], _Pools] = (
    weakref.WeakValueDictionary()
)
_Loops = dict[
    asyncio.AbstractEventLoop,
    tuple[httpx.AsyncHTTPTransport, "AsyncGenerator[None, None]"],
]


def _close(process: int, blocking: httpx.HTTPTransport, loops: _Loops) -> None:
    if process != os.getpid():
        _INHERITED.append((blocking, loops))
        return
    blocking.close()
    while loops:
        loop, (_, keeper) = loops.popitem()
        with suppress(RuntimeError):  # the loop was closed, and closed the keeper
            loop.call_soon_threadsafe(_close_keeper, keeper)


def _close_keeper(keeper: AsyncGenerator[None, None]) -> None:
    task: asyncio.Future[None] = asyncio.ensure_future(keeper.aclose())
    _CLOSING.add(task)  # the loop itself holds tasks only weakly
    task.add_done_callback(_CLOSING.discard)


_CLOSING: set[asyncio.Future[None]] = set()


async def _keep(
    transport: httpx.AsyncHTTPTransport, loops: _Loops
) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        loops.pop(asyncio.get_running_loop(), None)
        await transport.aclose()
