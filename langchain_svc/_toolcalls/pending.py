"""Text that waits for its end: what it waits for, and when it is worth another look.

Every look reads the text that is held from its beginning. To keep the cost linear however small
the pieces are, looks are paid for: what arrives earns credit, and a look costs the length of what
is held. Short texts are looked at freely. Whether a value's last bracket has come is followed
piece by piece, so the look that finds a whole call is never late.
"""

from __future__ import annotations

from .brackets import Brackets

_FREE = 1000  # characters
_EARNED = 2  # for each character that arrives


class More(Exception):  # noqa: N818 - no error, but a question
    """What stands here cannot be told yet.

    Attributes:
        need: Characters of which one must come before another look can tell more; "" for any.
        brackets: Where a bracketed value begins whose end is waited for, if one does.
    """

    def __init__(self, need: str = "", brackets: int | None = None) -> None:
        super().__init__(need)
        self.need = need
        self.brackets = brackets


class Pending:
    """Decides for each piece of text whether to look again; `begin` when something is held."""

    def __init__(self) -> None:
        self._credit = 0
        self._need = ""
        self._brackets: Brackets | None = None

    def begin(self, text: str, more: More) -> None:
        """Wait for what `more` asks about `text`."""
        self._need = more.need
        self._brackets = None
        if more.brackets is not None and len(text) - more.brackets > _FREE:
            brackets = Brackets()
            brackets.feed(text, more.brackets)
            self._brackets = None if brackets.closed else brackets

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
