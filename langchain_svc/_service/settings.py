"""The settings that every class of this package shares, and the exchanges that they make.

What may be set stands in `fields.py`, and what other integrations call it in `names.py`.
"""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Generator,
    Mapping,
)
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from .._base.lazy import IMPORTING
from .._base.safe_errors import safe_constructor
from .._text import Pseudonymizer
from .._version import __version__
from .._wire import ACCEPT_ENCODING, Price, secrets_of
from ..config import MEDICAL, Interface, is_loopback, require_key, require_url
from ..errors import SvcRequestError
from .fields import SettingsFields, reveal_secret
from .pseudonyms import hidden_body
from .runs import refuse_trio
from .steps import (
    BLOCK_LIMITS,
    AnswerParser,
    CallSize,
    Exchange,
    Limits,
    RateLimiter,
    Request,
    origin,
)

if TYPE_CHECKING:
    import httpx

    from .._http.connections import Connections


# -- copies ----------------------------------------------------------------------------------------
# Copies and pickles of an object's settings: what they share, and what they leave out.

# A pickle may be kept in a file or sent to another machine.
_UNPICKLABLE_FIELDS = (
    "api_key",
    "proxy",
    "default_headers",
    "patient",
    "deliver",
    "audit",
    "audit_key",
    "pseudonyms",
)


class CopyableSettings(SettingsFields):
    """Settings whose copies share clients, and whose pickles hold no key and no patient."""

    def __copy__(self) -> Self:
        copied = super().__copy__()
        copied._connections = {}  # a copy may be given another route  # noqa: SLF001  # our own class
        return copied

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # A client that was handed in is shared by the copies: it is its owner's to close.
        memo = {} if memo is None else memo
        for client in (self.http_client, self.http_async_client):
            memo[id(client)] = client
        memo[id(self._connections)] = {}
        return super().__deepcopy__(memo)

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Self:
        """A copy with other settings. Keys, headers and proxies are checked and kept as secrets.

        Raises:
            ValueError: One of these is not valid.
        """
        settings = dict(update or {})
        for name in ("api_key", "proxy", "default_headers"):
            value = settings.get(name)
            if isinstance(value, str):
                value = SecretStr(value)
            if value is not None:
                settings[name] = getattr(self, f"_check_{name}")(value)
        return super().model_copy(update=settings, deep=deep)

    def __getstate__(self) -> dict[Any, Any]:
        if self.http_client is not None or self.http_async_client is not None:
            raise SvcRequestError(
                f"This {type(self).__name__} cannot be pickled: it uses an http_client of yours. "
                "Make it without one, or make it anew in the other process"
            )
        bare = super().__copy__()
        bare._connections = {}  # noqa: SLF001  # our own class
        fields = vars(bare)
        dropped = []
        for name in _UNPICKLABLE_FIELDS:
            value = fields.get(name)
            # "per_run" says that each run names its patient, and names none itself.
            if not value or value == "per_run":
                continue
            dropped.append(name)
            fields[name] = {} if name == "default_headers" else None
        bare._unpicklable_fields = tuple(dropped)  # noqa: SLF001  # our own class
        if self.privacy and "images" in fields:
            fields["images"] = fields["images"].emptied()
        return super(CopyableSettings, bare).__getstate__()

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        key = self._key_of_environment()
        checked = None
        if key is not None:
            checked = self._check_api_key(SecretStr(key))
        self.__dict__["api_key"] = checked

    def _refuse_incomplete_pickle(self) -> None:
        """Raises where a field that a pickle left out was not given again.

        Raises:
            SvcRequestError: It names the fields.
        """
        names = [name for name in self._unpicklable_fields if not getattr(self, name)]
        if names:
            raise SvcRequestError(
                f"This {type(self).__name__} comes from a pickle, which carries no "
                f"{' and no '.join(names)}. Set the key's environment variable here, or give what "
                f"is missing again: model_copy(update={{{names[0]!r}: ...}})"
            )


# -- price lists -----------------------------------------------------------------------------------
# The prices that the service listed, apart for each address and key.
#
# What another tenant of this process pays says nothing about what this one pays. No key is
# kept, only a digest that tells two of them apart in this process.

# Beyond them the oldest go: a call without a list is refused, and says what to do.
_MOST_LISTS = 1_000
_SECRET = os.urandom(32)
_LISTS: dict[bytes, Mapping[str, Price]] = {}


def keep_prices(url: str, key: str, prices: Mapping[str, Price]) -> None:
    """Keep the newest list of an interface's address and a key."""
    owner = _owner(url, key)
    _LISTS.pop(owner, None)
    _LISTS[owner] = prices
    for oldest in list(_LISTS)[:-_MOST_LISTS]:
        _LISTS.pop(oldest, None)


def listed_prices(url: str, key: str) -> Mapping[str, Price]:
    """The prices by model id; none where this address and key have listed none."""
    return _LISTS.get(_owner(url, key), {})


def _owner(url: str, key: str) -> bytes:
    return hmac.digest(_SECRET, f"{url}\n{key}".encode(), "sha256")


# -- settings --------------------------------------------------------------------------------------

T = TypeVar("T")

_PROXY_VARIABLES = (
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
)
_FIXED_HEADERS = (
    ("Accept", "*/*"),
    ("Accept-Encoding", ACCEPT_ENCODING),
    ("User-Agent", f"langchain-svc/{__version__}"),
)
_JSON_HEADER = ("Content-Type", "application/json")


def _with_pseudonyms(
    new_parser: Callable[[], AnswerParser[T]], pseudonyms: Pseudonymizer
) -> AnswerParser[T]:
    """A parser that restores what the request hid."""
    parser = new_parser()
    parser.pseudonyms = pseudonyms
    return parser


@safe_constructor
class ServiceSettings(CopyableSettings):
    """How to reach the service, how long to wait and how often to try.

    It stands first among the bases of a class, so that its constructor is the one that is called.
    """

    # -- the exchange of a request and its answer -----------------------------------------------

    def _limits(self) -> Limits:
        """How long one use may take from now on, with all its calls, and how often each may try."""
        return Limits(
            timeout=self.timeout,
            deadline=self.deadline,
            max_retries=self.max_retries,
            max_retry_wait=self.max_retry_wait,
            outage_wait=self.outage_wait,
            max_bytes=self.max_response_bytes,
            begun=time.monotonic(),
        )

    def _new_exchange(
        self,
        interface: Interface,
        method: str,
        path: str,
        parser: Callable[[], AnswerParser[T]],
        limits: Limits,
        *,
        body: bytes | None = None,
        closed: Collection[str] = (),
        images: Collection[str] = (),
        headers: Mapping[str, str] | None = None,
        chat: tuple[str | None, int | None] | None = None,
    ) -> Exchange[T]:
        """An exchange with an interface: a key goes only to the interface it was given for.

        `closed` and `images` are fields of the body that are no text (`hidden_body`). `chat` is the
        model and the most tokens of an answer, of those that take tokens.
        """
        if interface not in self.interfaces:
            raise SvcRequestError(
                f"{type(self).__name__} has no key for the {interface.name} interface"
            )
        if self._unpicklable_fields:
            self._refuse_incomplete_pickle()
        if self.api_key is None:
            require_key(interface, None)
        base_url = require_url(interface, getattr(self, interface.url_word))
        # Only now, so that no frame of an error has it among its variables.
        key = require_key(interface, reveal_secret(self.api_key))
        if self.pseudonyms is not None:
            parser = partial(_with_pseudonyms, parser, self.pseudonyms)
            if body is not None:
                body = hidden_body(body, self.pseudonyms, closed=closed, images=images)
        is_json = body is not None or interface.always_json
        request = Request(
            method=method,
            url=base_url + path,
            headers=(
                *interface.key_headers(key),
                *self._headers(headers, is_json=is_json),
            ),
            body=body,
            private=self._is_private(interface),
            secrets=self._secrets(key, headers, base_url),
            setting=interface.setting,
        )
        limiter = None
        if self.quota is not None or self.budget is not None or BLOCK_LIMITS.get():
            model, max_tokens = chat or (None, None)
            size = CallSize(
                len(body or b""),
                model,
                max_tokens,
                metered=chat is not None,
                free=body is None,
                prices=listed_prices(base_url, key),
            )
            limiter = self._limiter(interface, key, size)
        return Exchange(request, limits, parser, self._retry_budget, limiter)

    def _is_private(self, interface: Interface) -> bool:
        """Whether what is sent may be a patient's."""
        is_clinical = interface is MEDICAL or self.privacy is not None
        return is_clinical or self.pseudonyms is not None

    def _limiter(self, interface: Interface, key: str, size: CallSize) -> RateLimiter:
        """What holds a call to the limits of the block that it runs in and of this object."""
        own = (limit for limit in (self.budget, self.quota) if limit is not None)
        limits = (*BLOCK_LIMITS.get(), *own)
        return limits[0].limiter(interface.name, key, size, limits)

    def _headers(
        self, more: Mapping[str, str] | None, *, is_json: bool
    ) -> tuple[tuple[str, str], ...]:
        """Every header of a request but the key's; those of the caller replace ours."""
        headers: tuple[tuple[str, str], ...] = _FIXED_HEADERS
        own = self.default_headers
        if more:
            own = {**own, **more}
        if own:
            names = {name.lower() for name in own}
            fixed = (
                header for header in _FIXED_HEADERS if header[0].lower() not in names
            )
            headers = (*fixed, *own.items())
        if is_json:
            return (_JSON_HEADER, *headers)
        return headers

    def _secrets(
        self, key: str, more: Mapping[str, str] | None, url: str
    ) -> tuple[str, ...]:
        """What no error may repeat of what goes out with a call."""
        headers = (*self.default_headers.items(), *(more or {}).items())
        proxies: tuple[str, ...] = ()
        proxy = reveal_secret(self.proxy)
        if proxy is not None:
            proxies = (proxy,)
        elif not is_loopback(urlsplit(url).hostname or ""):
            proxies = tuple(filter(None, map(os.environ.get, _PROXY_VARIABLES)))
        return secrets_of(key, headers, proxies)

    def _keep_prices(self, interface: Interface, prices: Mapping[str, Price]) -> None:
        """Keep what the service listed for this address and key."""
        base_url = require_url(interface, getattr(self, interface.url_word))
        key = require_key(interface, reveal_secret(self.api_key))
        keep_prices(base_url, key, prices)

    # -- running an exchange --------------------------------------------------------------------

    def _pieces(self, exchange: Exchange[T]) -> Generator[T, None, None]:
        """The pieces of the answer, blocking."""
        connections = self._connections_to(exchange.request.url)
        from .client import run  # noqa: PLC0415  # it came with the connections

        client = cast(
            "httpx.Client | None", self.http_client
        )  # httpx2's has the same methods
        return run(exchange, connections, client)

    def _apieces(self, exchange: Exchange[T]) -> AsyncGenerator[T, None]:
        """The pieces of the answer, on the running event loop."""
        refuse_trio()
        connections = self._connections_to(exchange.request.url)
        from .client import arun  # noqa: PLC0415  # it came with the connections

        client = cast("httpx.AsyncClient | None", self.http_async_client)  # as above
        return arun(exchange, connections, client)

    def _connections_to(self, url: str) -> Connections:
        """This object's connections to the origin of a URL, made at the first call."""
        place = origin(url)
        connections = self._connections.get(place)
        if connections is None:
            with IMPORTING:  # httpx is imported at the first call
                from .._http.connections import Connections, PoolKey  # noqa: PLC0415
                from .client import run  # noqa: F401, PLC0415  # what reads from them

            proxy = reveal_secret(self.proxy)
            pool_key = PoolKey(place, proxy, self.api_key, self.max_connections)
            connections = self._connections.setdefault(place, Connections(pool_key))
        return connections

    def close(self) -> None:
        """Close all connections. The object stays usable: the next call opens new ones."""
        for connections in list(self._connections.values()):
            connections.close()

    async def aclose(self) -> None:
        """Close all connections, and wait until those of the running event loop are closed."""
        for connections in list(self._connections.values()):
            await connections.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
