"""Which web addresses of images are passed on to the service.

We never fetch one. But an address inside somebody's network, passed on because a model wrote it,
would make the service the model's hand there, so only public ones go. A public name that leads
to a private address is not seen here, as names are not looked up.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

_LONGEST = 2048
_UNUSUAL = frozenset(' "<>\\')
# The last part begins with a letter, or some resolvers would read the name as a number.
_NAME = re.compile(r"(?!-)(?:[a-z0-9_-]{1,63}\.)+[a-z][a-z0-9-]{1,62}", re.ASCII)
_PRIVATE_ENDS = frozenset(
    """
    arpa consul corp default home internal intra intranet invalid lan local localdomain localhost
    onion private svc test
    """.split()  # noqa: SIM905  # a list of so many quoted words reads worse
)
# Names inside somebody's private network, below a public end.
_PRIVATE_PARTS = (".ts.net",)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # all that IPv6 has given away so far
# What some releases of Python take for public: clouds' own services and documentation.
_CLOUDS = ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "3fff::/20")
_RESERVED = tuple(map(ipaddress.ip_network, _CLOUDS))
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressError(ValueError):
    """An address that is not passed on; its text says why."""


def is_address(text: str) -> bool:
    """Whether a text begins as a web address does."""
    return text[:8].lower().startswith(("http://", "https://"))


def check_address(url: str) -> str:
    """The address, unchanged.

    Raises:
        AddressError: It is none, or not one of a public host over http or https.
    """
    if not is_address(url):
        raise AddressError(
            "the address must look like https://host/path. A path is not read from here: add the "
            "file to an ImageStore by images.add(path), or give its base64"
        )
    if len(url) > _LONGEST or not url.isascii() or not url.isprintable() or set(url) & _UNUSUAL:
        raise AddressError(
            f"the address must have at most {_LONGEST} printable ASCII characters, no spaces"
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise AddressError("the address has no valid host and port") from None
    if not host or port == 0:
        raise AddressError("the address must look like https://host/path")
    if "@" in parts.netloc:
        raise AddressError("the address must hold no user name and no password")
    if not _is_public(host.rstrip(".")):
        raise AddressError("the address must be of a public host, not of a private network")
    return url


def _is_public(host: str) -> bool:
    try:
        # A zone after a "%" is one of the machine's own links.
        return "%" not in host and _is_public_address(ipaddress.ip_address(host))
    except ValueError:
        # Nor any of the old forms `127.1`, `0x7f000001` and `010.0.0.1`, which are read in
        # several ways: no name ends in a part that begins with a digit.
        if not _NAME.fullmatch(host) or host.endswith(_PRIVATE_PARTS):
            return False
        return host.rpartition(".")[2] not in _PRIVATE_ENDS


def _is_public_address(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return _is_public_address(inner)
        if address.teredo is not None or address not in _GLOBAL_UNICAST:
            return False
    if any(address in network for network in _RESERVED):
        return False
    return address.is_global and not address.is_multicast
