"""When text that waits for its end is worth another look.

Every look reads the text that is held from its beginning. To keep the cost linear however small
the pieces are, looks are paid for: what arrives earns credit, and a look costs the length of what
is held. Short texts are looked at freely. That a value's last bracket has come is followed piece
by piece, so the look that finds a whole call is never late.
"""

from __future__ import annotations

from .brackets import Brackets
from .cursor import More

_FREE = 1000  # characters
_EARNED = 2  # for each character that arrives


class Hold:
    """Decides for each piece of text whether to look again; `begin` when something is held."""

    def __init__(self) -> None:
        self._credit = 0
        self._need = ""
        self._brackets: Brackets | None = None

    def begin(self, held: str, more: More) -> None:
        """Wait for what `more` asks; `held` is the text from where its brackets begin."""
        self._need = more.need
        self._brackets = None
        if more.brackets is not None and len(held) > _FREE:
            self._brackets = Brackets()
            self._brackets.feed(held)
            if self._brackets.closed:
                self._brackets = None  # that was in this look already

    def due(self, piece: str, size: int) -> bool:
        """Whether, with this piece, the text of now `size` characters should be looked at."""
        self._credit += _EARNED * len(piece)
        if self._brackets is not None and self._brackets.feed(piece) is not None:
            self._brackets = None
            return True
        if self._need and not any(char in piece for char in self._need):
            return False
        if size <= _FREE:
            return True
        if self._credit < size:
            return False
        self._credit -= size
        return True
