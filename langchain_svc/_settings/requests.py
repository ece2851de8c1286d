"""The requests that settings make: where they go, with whose key, what they hide.

All that an object sends passes `new_exchange`. An answer stays as the service wrote it, with marks,
until it is given out: a chat's by its turn, any other by its parser.
"""

from __future__ import annotations

import hmac
import json
import os
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from .._client import (
    BLOCK_LIMITS,
    AnswerParser,
    CallSize,
    Exchange,
    Limits,
    RateLimiter,
    Request,
    Route,
    WholeParser,
)
from .._text import Pseudonymizer
from .._version import __version__
from .._wire import ACCEPT_ENCODING, Price, dump_json, secrets_of
from ..config import (
    MEDICAL,
    Endpoint,
    Interface,
    is_loopback,
    require_key,
    require_url,
    reveal_secret,
)
from ..errors import SvcRequestError
from ..images import is_address
from .settings import ServiceSettings

if TYPE_CHECKING:
    from .._wire import image_endpoints

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


class LimitSettings(Protocol):
    """The settings that limit a call."""

    @property
    def timeout(self) -> float | None: ...
    @property
    def deadline(self) -> float | None: ...
    @property
    def max_retries(self) -> int: ...
    @property
    def max_retry_wait(self) -> float: ...
    @property
    def outage_wait(self) -> float: ...
    @property
    def max_response_bytes(self) -> int: ...


def limits_of(settings: LimitSettings) -> Limits:
    """How long one use may take from now on, with all its calls, and how often each may try."""
    return Limits(
        timeout=settings.timeout,
        deadline=settings.deadline,
        max_retries=settings.max_retries,
        max_retry_wait=settings.max_retry_wait,
        outage_wait=settings.outage_wait,
        max_bytes=settings.max_response_bytes,
        begun=time.monotonic(),
    )


def new_exchange(
    settings: ServiceSettings,
    endpoint: Endpoint,
    parser: Callable[[], AnswerParser[T]],
    limits: Limits,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    chat: tuple[str | None, int | None] | None = None,
) -> Exchange[T]:
    """An exchange with an endpoint: a key goes only to the interface it was given for.

    `chat` is the model and the most tokens of an answer, of those that take tokens.

    Raises:
        SvcRequestError: The settings have no key or no address for the endpoint, or what is to be
            sent would name somebody of the pseudonyms.
    """
    interface = endpoint.interface
    if interface not in settings.interfaces:
        raise SvcRequestError(
            f"{type(settings).__name__} has no key for the {interface.name} interface"
        )
    refuse_incomplete_pickle(settings)
    if settings.api_key is None:
        require_key(interface, None)
    base_url = require_url(interface, getattr(settings, interface.url_word))
    # Only now, so that no frame of an error has it among its variables.
    key = require_key(interface, reveal_secret(settings.api_key))
    pseudonyms = settings.pseudonyms
    if pseudonyms is not None:
        parser = partial(_with_pseudonyms, parser, pseudonyms)
        if body is not None:
            body = hidden_body(
                body, pseudonyms, closed=endpoint.closed, images=endpoint.images
            )
    is_clinical = interface is MEDICAL or settings.privacy is not None
    own_headers = settings.default_headers
    if headers:
        own_headers = {**own_headers, **headers}
    is_json = body is not None or interface.always_json
    request = Request(
        method=endpoint.method,
        url=base_url + endpoint.path,
        headers=(
            *interface.key_headers(key),
            *_headers(own_headers, is_json=is_json),
        ),
        body=body,
        private=is_clinical or pseudonyms is not None,
        secrets=_secrets(settings, key, own_headers, base_url),
        setting=interface.setting,
    )
    limiter = None
    if settings.quota is not None or settings.budget is not None or BLOCK_LIMITS.get():
        model, max_tokens = chat or (None, None)
        size = CallSize(
            len(body or b""),
            model,
            max_tokens,
            metered=chat is not None,
            free=body is None,
            prices=listed_prices(base_url, key),
        )
        limiter = _limiter(settings, interface, key, size)
    route = Route(
        settings.proxy,
        settings.api_key,
        settings.max_connections,
        settings.http_client,
        settings.http_async_client,
    )
    budget = settings._client.retry_budget  # noqa: SLF001  # our own class
    return Exchange(request, limits, parser, budget, route, limiter)


def vision_exchange(
    settings: ServiceSettings,
    limits: Limits,
    task: image_endpoints.Task,
    image: str,
) -> Exchange[image_endpoints.ImageAnalysis]:
    """The call that asks about an image, which is an address or base64."""
    from .._wire import image_endpoints  # noqa: PLC0415  # few look at pictures

    return new_exchange(
        settings,
        image_endpoints.VISION,
        partial(WholeParser, partial(image_endpoints.read_analysis, task=task)),
        limits,
        body=image_endpoints.vision_body(image, task),
    )


def refuse_incomplete_pickle(settings: ServiceSettings) -> None:
    """Raises where a field that a pickle left out was not given again.

    Raises:
        SvcRequestError: It names the fields.
    """
    dropped = settings._unpicklable_fields  # noqa: SLF001  # our own class
    if not dropped:
        return
    names = [name for name in dropped if not getattr(settings, name)]
    if names:
        raise SvcRequestError(
            f"This {type(settings).__name__} comes from a pickle, which carries no "
            f"{' and no '.join(names)}. Set the key's environment variable here, or give what "
            f"is missing again: model_copy(update={{{names[0]!r}: ...}})"
        )


def _limiter(
    settings: ServiceSettings, interface: Interface, key: str, size: CallSize
) -> RateLimiter:
    """What holds a call to the limits of the block that it runs in and of its object."""
    own = (limit for limit in (settings.budget, settings.quota) if limit is not None)
    limits = (*BLOCK_LIMITS.get(), *own)
    return limits[0].limiter(interface.name, key, size, limits)


def _headers(own: Mapping[str, str], *, is_json: bool) -> tuple[tuple[str, str], ...]:
    """Every header of a request but the key's; those of the caller replace ours."""
    headers: tuple[tuple[str, str], ...] = _FIXED_HEADERS
    if own:
        names = {name.lower() for name in own}
        fixed = (header for header in _FIXED_HEADERS if header[0].lower() not in names)
        headers = (*fixed, *own.items())
    if is_json:
        return (_JSON_HEADER, *headers)
    return headers


def _secrets(
    settings: ServiceSettings, key: str, headers: Mapping[str, str], url: str
) -> tuple[str, ...]:
    """What no error may repeat of what goes out with a call."""
    proxies: tuple[str, ...] = ()
    proxy = reveal_secret(settings.proxy)
    if proxy is not None:
        proxies = (proxy,)
    elif not is_loopback(urlsplit(url).hostname or ""):
        proxies = tuple(filter(None, map(os.environ.get, _PROXY_VARIABLES)))
    return secrets_of(key, tuple(headers.items()), proxies)


# -- pseudonyms ------------------------------------------------------------------------------------


def hidden_body(
    body: bytes,
    pseudonyms: Pseudonymizer,
    *,
    closed: Collection[str] = (),
    images: Collection[str] = (),
) -> bytes:
    """A request's body with marks in all of its texts, whatever their fields are called.

    Args:
        body: The body, a JSON object.
        pseudonyms: What hides.
        closed: The fields in which nothing is left to hide: their values are of a closed set, which
            was checked, or were hidden before.
        images: The fields that hold images: base64 stays as it is.

    Raises:
        SvcRequestError: The address of an image names somebody: a mark would make it another
            address, and without one the name would leave.
    """
    fields: dict[str, object] = {}
    for name, value in json.loads(body).items():
        if name in images:
            _check_addresses(value, pseudonyms)
        elif name not in closed:
            fields[pseudonyms.hide(name)] = _hidden(value, pseudonyms)
            continue
        fields[name] = value
    return dump_json(fields)


def _hidden(value: object, pseudonyms: Pseudonymizer) -> object:
    if isinstance(value, str):
        return pseudonyms.hide(value)
    if isinstance(value, list):
        return [_hidden(item, pseudonyms) for item in value]
    if isinstance(value, dict):
        return {
            pseudonyms.hide(key): _hidden(item, pseudonyms)
            for key, item in value.items()
        }
    return value


def _check_addresses(images: Any, pseudonyms: Pseudonymizer) -> None:
    for image in images if isinstance(images, list) else [images]:
        if is_address(image) and pseudonyms.hide(image) != image:
            break
    else:
        return
    del images, image  # a traceback would show them
    raise SvcRequestError(
        "The address of an image has a name or a number of the pseudonyms in it, so it was not "
        "sent: whoever is behind the address would read it. Give the image itself, as a handle or "
        "as base64"
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


def keep_prices(
    settings: ServiceSettings, interface: Interface, prices: Mapping[str, Price]
) -> None:
    """Keep the newest list of an interface's address and a key, those of the settings."""
    owner = _owner(
        require_url(interface, getattr(settings, interface.url_word)),
        require_key(interface, reveal_secret(settings.api_key)),
    )
    _LISTS.pop(owner, None)
    _LISTS[owner] = prices
    for oldest in list(_LISTS)[:-_MOST_LISTS]:
        _LISTS.pop(oldest, None)


def listed_prices(url: str, key: str) -> Mapping[str, Price]:
    """The prices by model id; none where this address and key have listed none."""
    return _LISTS.get(_owner(url, key), {})


def _owner(url: str, key: str) -> bytes:
    return hmac.digest(_SECRET, f"{url}\n{key}".encode(), "sha256")
