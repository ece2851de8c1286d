"""Keys inside pickles: sealed, so that only this process and its children can open them.

A pickled model is often sent to a worker process, which must be able to call the service, and
sometimes kept in a file, where a key must not lie open. `multiprocessing` has a secret that tells
the two apart: the `authkey`, random bytes that a process hands to every process it starts, by fork
and by spawn, and to nobody else. A key is sealed with it: hidden under a keystream and bound by a
tag, both of BLAKE2b with the authkey as their key and a nonce of their own.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from hashlib import blake2b

_NONCE = 16
_BLOCK = 64


@dataclass(frozen=True)
class Sealed:
    """A text that only this process and those it starts can read."""

    nonce: bytes = field(repr=False)
    hidden: bytes = field(repr=False)
    tag: bytes = field(repr=False)


def seal(text: str) -> Sealed:
    """The text, unreadable without this process's authkey."""
    nonce = secrets.token_bytes(_NONCE)
    hidden = _mixed(text.encode(), nonce)
    return Sealed(nonce, hidden, _keyed(b"tag", nonce, hidden))


def unseal(sealed: Sealed) -> str | None:
    """The text, or None where it was sealed by a process that has nothing to do with this one."""
    if not hmac.compare_digest(_keyed(b"tag", sealed.nonce, sealed.hidden), sealed.tag):
        return None
    return _mixed(sealed.hidden, sealed.nonce).decode()


def _mixed(data: bytes, nonce: bytes) -> bytes:
    blocks = (_keyed(b"stream", nonce, bytes([n])) for n in range(-(-len(data) // _BLOCK)))
    return bytes(one ^ other for one, other in zip(data, b"".join(blocks), strict=False))


def _keyed(purpose: bytes, *parts: bytes) -> bytes:
    from multiprocessing import current_process  # noqa: PLC0415  # only who pickles pays for it

    key = bytes(current_process().authkey)[:_BLOCK]
    return blake2b(b"".join(parts), key=key, person=purpose).digest()
