"""Values out of bytes, so that one set of properties serves every source of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

_T = TypeVar("_T")
_LONGEST_PART = 9


class Draw:
    """Hands out choices from the beginning of some bytes; where they have ended, the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes have not been used."""
        return max(0, len(self._data) - self._at)

    def byte(self) -> int:
        """The next byte; 0 at the end."""
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def below(self, limit: int) -> int:
        """A number from 0 on, below a limit of at most 256."""
        return self.byte() % limit

    def one_of(self, options: Sequence[_T]) -> _T:
        """One of at most 256 options."""
        return options[self.below(len(options))]

    def rest(self) -> bytes:
        """All bytes that are left."""
        rest = self._data[self._at :]
        self._at = len(self._data)
        return rest

    def text(self, pieces: Sequence[str], most: int = 400) -> str:
        """A text of all that is left: as UTF-8, or each byte for one of the pieces."""
        return self.body(pieces, most).decode("utf-8", "replace")

    def body(self, pieces: Sequence[str], most: int = 400) -> bytes:
        """The same as bytes, which may be no UTF-8."""
        as_it_is = self.byte() % 2
        rest = self.rest()[:most]
        return (
            rest
            if as_it_is
            else "".join(_piece(byte, pieces) for byte in rest).encode()
        )

    def short(self, pieces: Sequence[str], most: int = 6) -> str:
        """A text of at most so many pieces."""
        return "".join(_piece(self.byte(), pieces) for _ in range(self.below(most + 1)))


def _piece(byte: int, pieces: Sequence[str]) -> str:
    return (
        pieces[byte]
        if byte < len(pieces)
        else chr(byte if byte < 0x7F else byte + 0x40)
    )


def cut(whole: str, how: int) -> list[str]:
    """A text in parts: whole for 0, letter by letter for 1, else as this number has it."""
    return [whole[begin:end] for begin, end in _edges(len(whole), how)]


def cut_bytes(whole: bytes, how: int) -> list[bytes]:
    """Bytes in parts, like `cut`."""
    return [whole[begin:end] for begin, end in _edges(len(whole), how)]


def _edges(size: int, how: int) -> list[tuple[int, int]]:
    edges, at, state = [], 0, how
    while at < size:
        state = (state * 73 + 41) % 65_521
        step = size if how == 0 else 1 if how == 1 else state % _LONGEST_PART
        edges.append((at, min(size, at + step)))
        at += step
    return edges
