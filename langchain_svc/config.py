"""The service's addresses and keys: the settings' names, their checks, and the errors without them.

A base URL and a key are checked once, when an object is made. No message repeats a key, nor a URL
that could hold one.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit, urlunsplit

from pydantic import SecretStr

from .errors import SvcRequestError

ENV_API_KEY = "SVC_API_KEY"
ENV_BASE_URL_V1 = "SVC_BASE_URL_V1"
ENV_BASE_URL = "SVC_BASE_URL"
ENV_MEDICAL_API_KEY = "SVC_MEDICAL_API_KEY"
ENV_MEDICAL_BASE_URL = "SVC_MEDICAL_BASE_URL"

# We set them from `api_key`; a second copy under another name would escape its masking.
KEY_HEADERS = frozenset({"authorization", "x-api-key", "proxy-authorization", "cookie"})
# They frame the request and the answer; another value would make us misread the answer.
_OWN_HEADERS = frozenset(
    """
    accept-encoding connection content-encoding content-length content-type expect host keep-alive
    proxy-connection range te trailer transfer-encoding upgrade
    """.split()
)
_HEADER_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*", re.ASCII | re.IGNORECASE)
_NO_URL = frozenset('<>{}|\\^`"')
_PART = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,254}}\Z)(?:{_PART}\.)*{_PART}\.?", re.ASCII)


@dataclass(frozen=True)
class Interface:
    """One of the service's three HTTP interfaces, with the parameters that configure it."""

    name: str
    url_word: str
    url_env: str
    key_env: str
    key_header: str
    key_prefix: str
    always_json: bool = True
    """Whether a request without a body says Content-Type too: v1 API (section 4, rule 4) and
    medical API (section 5) want it in every request, general API (section 1) does not."""

    @cached_property
    def setting(self) -> str:
        """What errors call the setting of its base URL."""
        return f"{self.url_word} ({self.url_env})"

    def key_headers(self, key: str) -> tuple[tuple[str, str], ...]:
        """The header that carries the key (section 5 of each document)."""
        return ((self.key_header, self.key_prefix + key),)


V1 = Interface(
    "v1", "base_url_v1", ENV_BASE_URL_V1, ENV_API_KEY, "Authorization", "Bearer "
)
GENERAL = Interface(
    "general",
    "base_url",
    ENV_BASE_URL,
    ENV_API_KEY,
    "Authorization",
    "Bearer ",
    always_json=False,
)
MEDICAL = Interface(
    "medical",
    "medical_base_url",
    ENV_MEDICAL_BASE_URL,
    ENV_MEDICAL_API_KEY,
    "X-API-Key",
    "",
)


class Endpoint(NamedTuple):
    """Where a request goes.

    Attributes:
        interface: The interface that it is on.
        method: The HTTP method.
        path: What stands behind the interface's address.
        closed: The fields of a request in which there is nothing to hide: their values are of a
            closed set, which was checked, or were hidden before.
        images: The fields that hold images: base64 stays as it is.
    """

    interface: Interface
    method: str
    path: str
    closed: tuple[str, ...] = ()
    images: tuple[str, ...] = ()


def reveal_secret(secret: SecretStr | str | None) -> str | None:
    """A secret as text."""
    if isinstance(secret, SecretStr):
        return secret.get_secret_value()
    return secret


def require_url(interface: Interface, url: str | None) -> str:
    """The base URL, or an error that says how to set it."""
    if url:
        return url
    raise SvcRequestError(
        f"No base URL for the {interface.name} interface: pass {interface.url_word}=... or set "
        f"{interface.url_env}.{_similar_variable(interface.url_env)} The service has no public "
        "default host. To try without one, run `langchain-svc sandbox` and paste the lines it "
        "prints."
    )


def require_key(interface: Interface, key: str | None) -> str:
    """The key, or an error that says how to set it."""
    if key:
        return key
    raise SvcRequestError(
        f"No API key for the {interface.name} interface: pass api_key=... or set "
        f"{interface.key_env}.{_similar_variable(interface.key_env)} To try without one, run "
        "`langchain-svc sandbox` and paste the lines it prints."
    )


def _similar_variable(expected: str) -> str:
    """A sentence about a variable whose name is nearly that of the missing one, if there is one."""
    import difflib  # noqa: PLC0415  # 13 ms, which only a missing setting costs

    others = os.environ.keys() - {expected}
    matches = difflib.get_close_matches(expected, others, 1, 0.8)
    if not matches:
        return ""
    return f" {matches[0]} is set, but this interface reads {expected}."


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine; names below localhost ask the network."""
    name = host.rstrip(".").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def check_url(url: str, insecure_hosts: Collection[str] = ()) -> str:
    """A base URL without trailing slash, or a ValueError that says what is wrong with it.

    Its host is in small letters, and in the form that goes on the wire.

    Plain http is accepted for loopback, and for hosts that `insecure_hosts` names: over any
    other network it would show keys and prompts to whoever listens.
    """
    return _checked_url(url, frozenset(name.lower() for name in insecure_hosts))


# Objects are made for the same few URLs, and this check is a third of making one.
@lru_cache(maxsize=64)
def _checked_url(url: str, insecure_hosts: frozenset[str]) -> str:
    _check_characters(url)
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        place = _place(parts)
    except ValueError:
        raise ValueError("the base URL has no valid host and port") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "the base URL holds a user name or password: give the key as api_key"
        )
    if parts.scheme not in {"http", "https"} or not place:
        raise ValueError(  # without the value, which may be a key in the wrong place
            "the base URL must look like https://host/path, with http:// on this machine and "
            "https:// to others"
        )
    if parts.query or parts.fragment:
        raise ValueError("the base URL must have no query and no fragment")
    is_private = is_loopback(host) or host in insecure_hosts
    if parts.scheme == "http" and not is_private:
        raise ValueError(
            f"plain http to {host!r} would send the key readably: use https, or name the host "
            "in insecure_hosts if its network is yours"
        )
    return urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))


def _check_characters(url: str) -> None:
    """A ValueError for characters that no URL may hold."""
    if any(c.isspace() or not c.isprintable() for c in url):
        raise ValueError("the base URL holds white space or a control character")
    if _NO_URL & set(url):
        raise ValueError(
            "the base URL holds a character that no URL may hold, such as { or <: put your host "
            "in place of a placeholder"
        )


def _place(parts: SplitResult) -> str:
    """Host and port as they go on the wire, "" where there are none; ValueError for bad ones."""
    host = parts.hostname or ""
    port = parts.port
    if not host:
        return ""
    if "[" in parts.netloc:
        host = f"[{ipaddress.IPv6Address(host)}]"
        is_host = "%" not in host  # a zone, which means something on this machine only
    else:
        if not host.isascii():
            host = _ascii(host)
        is_host = _HOST.fullmatch(host) is not None
    if not is_host or port == 0:
        raise ValueError("no valid host and port")
    if port is None:
        return host
    return f"{host}:{port}"


def _ascii(host: str) -> str:
    """An international name in its ASCII form."""
    import httpx  # noqa: PLC0415  # nearly every host is ASCII, and the import takes time

    try:
        return httpx.URL(f"https://{host}").raw_host.decode("ascii")
    except httpx.InvalidURL:
        raise ValueError("no valid host") from None


def check_proxy(url: str) -> str:
    """A proxy's URL, or a ValueError that says what is wrong without repeating it."""
    try:
        parts = urlsplit(url)
        place = _place(parts)
    except ValueError:
        place = ""
    if not place or parts.scheme not in {"http", "https", "socks5", "socks5h"}:
        raise ValueError(
            "the proxy must look like http://host:port, https://... or socks5://..."
        )
    if parts.scheme.startswith("socks") and find_spec("socksio") is None:
        raise ValueError(
            'the proxy speaks SOCKS, for which run: pip install "httpx[socks]"'
        )
    return url


def check_key(key: str) -> str:
    """The key without surrounding white space, or a ValueError that does not repeat it."""
    bare = key.strip()
    if not bare.isascii() or not bare.isprintable() or " " in bare:
        raise ValueError(
            "the API key holds a character that no HTTP header can carry (white space, a line "
            "break, a control or non-ASCII character): copy it again"
        )
    return bare


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Extra headers, or a ValueError that names the header but not its value."""
    checked: dict[str, str] = {}
    for name, value in headers.items():
        # Many a server reads an underscore as a hyphen.
        normalized = name.lower().replace("_", "-")
        if normalized in KEY_HEADERS:
            raise ValueError(
                f"default_headers must not hold {name!r}: give the key as api_key"
            )
        if normalized in _OWN_HEADERS:
            raise ValueError(
                f"default_headers must not hold {name!r}: it is set for each request"
            )
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"default_headers: {name!r} is not a header name")
        if not value.isascii() or not value.replace("\t", " ").isprintable():
            raise ValueError(
                f"default_headers: the value of {name!r} cannot stand in a header"
            )
        if normalized in {other.lower().replace("_", "-") for other in checked}:
            raise ValueError(f"default_headers holds {name!r} twice")
        checked[name] = value.strip()
    return checked


# -- clients of the user --------------------------------------------------------------------------

LIBRARIES = ("httpx", "httpx2")
_KINDS = ("Client", "AsyncClient")


def client_kind(client: object) -> tuple[str, str] | None:
    """The library and the class of a client, such as `("httpx2", "AsyncClient")`; None: no client.

    The SDKs' own clients inherit from these classes.
    """
    for base in type(client).__mro__:
        library = base.__module__.partition(".")[0]
        if library in LIBRARIES and base.__name__ in _KINDS:
            return library, base.__name__
    return None
