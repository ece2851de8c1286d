"""Secrets inside pickles: sealed, so that only this process and its children can open them.

A pickled model or tool is often sent to a worker process, which must be able to call the service,
and sometimes kept in a file, where neither a key nor a patient's record may lie open.
`multiprocessing` has a secret that tells the two apart: the `authkey`, random bytes that a process
hands to every process it starts, by fork and by spawn, and to nobody else. A value is sealed with
it: hidden under a keystream and bound by a tag, both of BLAKE2b with the authkey as their key and
a nonce for each value.
"""

from __future__ import annotations

import hmac
import pickle
import secrets
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

_NONCE = 16
_BLOCK = 64


@dataclass(frozen=True)
class Sealed:
    """A value that only this process and those it starts can read."""

    nonce: bytes = field(repr=False)
    hidden: bytes = field(repr=False)
    tag: bytes = field(repr=False)


def seal(value: Any) -> Sealed:
    """The value, unreadable without this process's authkey."""
    nonce = secrets.token_bytes(_NONCE)
    hidden = _mixed(pickle.dumps(value), nonce)
    return Sealed(nonce, hidden, _keyed(b"tag", nonce, hidden))


def unseal(sealed: Sealed) -> Any:
    """The value.

    Raises:
        SealedError: It was sealed by a process that has nothing to do with this one.
    """
    if not hmac.compare_digest(_keyed(b"tag", sealed.nonce, sealed.hidden), sealed.tag):
        raise SealedError
    # The tag shows that this process or its parent wrote it.
    return pickle.loads(_mixed(sealed.hidden, sealed.nonce))  # noqa: S301


class SealedError(Exception):
    """This process may not open what is sealed."""


def _mixed(data: bytes, nonce: bytes) -> bytes:
    count = -(-len(data) // _BLOCK)
    blocks = (_keyed(b"stream", nonce, number.to_bytes(8, "big")) for number in range(count))
    stream = b"".join(blocks)[: len(data)]
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(data), "big")


def _keyed(purpose: bytes, *parts: bytes) -> bytes:
    from multiprocessing import current_process  # noqa: PLC0415  # only who pickles pays for it

    key = bytes(current_process().authkey)[:_BLOCK]
    return blake2b(b"".join(parts), key=key, person=purpose).digest()
