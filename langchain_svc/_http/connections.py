"""Owns connections: a pool for threads, and one for each event loop.

Objects that use one key at one origin by one proxy share their pools. The last of them to be closed
or collected closes the pools. What a pool belongs to may end without telling us:

- An event loop. Each loop's pools are held by an asynchronous generator that was started on it.
  When `asyncio.run` ends it closes such generators, and when the owner is collected the loop's own
  hook does; either way the generator's `finally` closes the pools on the right loop. A loop that is
  closed by hand without that courtesy is noticed at the next use.
- The process. A forked child puts aside what it shares with the parent, unclosed, and begins anew.
- The owners. Connections that nobody refers to any more are closed by a finalizer.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import threading
import weakref
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
from pydantic import SecretStr

from .._forks import new_lock
from ..config import check_proxy, is_loopback
from ..errors import SvcRequestError
from .base import Origin
from .pools import AsyncPool, Pool

# What a forked child inherited. Collecting it would close sockets that the parent still uses.
_INHERITED: list[Any] = []


class Transport(httpx.HTTPTransport):
    """httpx's transport on our connections, or through a proxy on httpx's own."""

    def __init__(self, key: PoolKey) -> None:
        if key.proxy is not None:
            super().__init__(**_proxied(key, key.proxy))
        else:
            self._pool = Pool(_origin(key.url), _most(key))  # type: ignore[assignment]  # all that httpx asks of one


class AsyncTransport(httpx.AsyncHTTPTransport):
    """The async version of `Transport`, for one event loop."""

    def __init__(self, key: PoolKey) -> None:
        if key.proxy is not None:
            super().__init__(**_proxied(key, key.proxy))
        else:
            self._pool = AsyncPool(_origin(key.url), _most(key))  # type: ignore[assignment]  # all that httpx asks of one

    def close_sockets(self) -> None:
        """Where the event loop is gone, and can run nothing any more."""
        pool: object = self._pool  # what was put there is not httpcore's
        if isinstance(pool, AsyncPool):
            pool.close_sockets()


def _proxied(key: PoolKey, proxy: str) -> dict[str, Any]:
    """What httpx's transports are given.

    Raises:
        SvcRequestError: The host is an address of IPv6, whose brackets httpx leaves out in CONNECT.
    """
    if "[" in key.url and proxy.startswith("http"):
        raise SvcRequestError(
            f"No proxy over HTTP can lead to {key.url}, an address of IPv6: give the host's name, "
            "or go without the proxy (NO_PROXY)"
        )
    # Without a context httpx checks a proxy against certificates of its own choice.
    context = _verifying() if proxy.startswith("https:") else None
    limits = httpx.Limits(max_connections=_most(key))
    way = httpx.Proxy(proxy, ssl_context=context)
    return {"verify": _verifying(), "proxy": way, "limits": limits}


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
    return Origin(parts.raw_host.decode("ascii"), port, _verifying() if secure else None)


@lru_cache(maxsize=1)
def _verifying() -> ssl.SSLContext:
    """One context for the process: loading the certificates takes 40 ms."""
    context = httpx.create_ssl_context()
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
        self.by_proxy = False  # known from the first call on
        self._lock = new_lock()
        self._pools: _Pools | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        _SHARES.add(self)

    def _here(self) -> _Pools:
        pools = self._pools
        if pools is None:
            with self._lock:
                pools = self._pools
                if pools is None:
                    pools = self._pools = _joined(self.key)
                    self._finalizer = weakref.finalize(self, _Pools.leave, pools)
                    self.by_proxy = pools.key.proxy is not None
        return pools

    def forget(self) -> None:
        """Neither use nor close what a forked child shares with its parent."""
        if self._finalizer is not None:
            self._finalizer.detach()
        self._finalizer = self._pools = None

    def transport(self) -> httpx.BaseTransport:
        """The pool for blocking calls."""
        return self._here().blocking()

    async def async_transport(self) -> AsyncTransport:
        """The pool of the running event loop."""
        return await self._here().on_loop()

    def close(self) -> None:
        """Give up this share. The next call takes a new one."""
        with self._lock:
            finalizer, self._finalizer, self._pools = self._finalizer, None, None
        if finalizer is not None:
            finalizer()

    async def aclose(self) -> None:
        """The same, and wait until the connections of the running event loop are closed."""
        pools = self._pools
        if pools is not None and pools.users == 1:
            await pools.aclose()
        self.close()


# Reentrant: the collector may close one object's connections while another takes its share.
_joining = threading.RLock()
_SHARED: dict[PoolKey, _Pools] = {}
_SHARES: weakref.WeakSet[Connections] = weakref.WeakSet()


def _joined(key: PoolKey) -> _Pools:
    """The pools of a key, with one user more."""
    key = replace(key, proxy=proxy_for(key.url, key.proxy))
    with _joining:
        found = _SHARED.get(key)
        if found is None:
            found = _SHARED[key] = _Pools(key)
        found.users += 1
        return found


def _renew() -> None:
    global _joining  # noqa: PLW0603  # another thread may have held it at the fork
    _joining = threading.RLock()
    for share in list(_SHARES):
        _INHERITED.append(share._pools)  # noqa: SLF001  # our own class
        share.forget()
    _INHERITED.extend(_SHARED.values())
    _SHARED.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_renew)

Held = tuple[AsyncTransport, "AsyncGenerator[None, None]"]


class _Pools:
    """The pools of one process. Apart from their owners, so that a finalizer can close them."""

    def __init__(self, key: PoolKey) -> None:
        self.users = 0
        self.key = key
        self._lock = new_lock()
        self._transport: Transport | None = None
        self.loops: dict[asyncio.AbstractEventLoop, Held] = {}

    def leave(self) -> None:
        """One object less; the last one closes the pools."""
        with _joining:
            self.users -= 1
            last = self.users <= 0
            if last and _SHARED.get(self.key) is self:
                del _SHARED[self.key]
        if last:
            self._close()

    def blocking(self) -> Transport:
        """The pool for blocking calls."""
        if self._transport is None:
            with self._lock:
                if self._transport is None:
                    self._transport = Transport(self.key)
        return self._transport

    async def on_loop(self) -> AsyncTransport:
        """The pool of the running event loop."""
        loop = asyncio.get_running_loop()
        held = self.loops.get(loop)
        if held is None:
            transport = AsyncTransport(self.key)
            keeper = _keep(transport, weakref.ref(loop), weakref.ref(self))
            held = self.loops[loop] = (transport, keeper)
            await keeper.__anext__()  # from here on the loop knows the generator
            with self._lock:
                self.drop_closed_loops()
        return held[0]

    def _close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
        while self.loops:
            loop, (_, keeper) = self.loops.popitem()
            if not loop.is_closed():
                try:
                    loop.call_soon_threadsafe(_close_keeper, keeper)
                except RuntimeError:  # it was closed in this moment, and closed the keeper
                    continue

    async def aclose(self) -> None:
        """Close those of the running event loop, and wait for it."""
        held = self.loops.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[1].aclose()

    def drop_closed_loops(self) -> None:
        for loop in [loop for loop in list(self.loops) if loop.is_closed()]:
            transport, _ = self.loops.pop(loop)
            transport.close_sockets()


def _close_keeper(keeper: AsyncGenerator[None, None]) -> None:
    task: asyncio.Future[None] = asyncio.ensure_future(keeper.aclose())
    _CLOSING.add(task)  # the loop itself holds tasks only weakly
    task.add_done_callback(_CLOSING.discard)


_CLOSING: set[asyncio.Future[None]] = set()


async def _keep(
    transport: AsyncTransport,
    loop: weakref.ref[asyncio.AbstractEventLoop],
    pools: weakref.ref[_Pools],
) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        owner, home = pools(), loop()
        if owner is not None and home is not None:
            owner.loops.pop(home, None)
        await transport.aclose()
