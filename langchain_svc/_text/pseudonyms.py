"""What puts marks in the place of names, and names in the place of marks.

The core knows only these protocols; `langchain_svc.privacy.Pseudonyms` implements them.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol, TypeVar

T = TypeVar("T")


class Restorer(Protocol):
    """Restores one text that comes in pieces: a `PseudonymRestorer`."""

    def parse_chunk(self, text: str) -> str:
        """The next piece, as far as it is certain."""

    def close(self, *, cut: bool = False) -> str:
        """What was held back; `cut`: the text was cut off, so that its last mark may be half."""


class Pseudonymizer(Protocol):
    """Hides identifiers in texts, and restores them."""

    def hide(self, text: str) -> str:
        """A text with marks in the place of identifiers."""

    def restore(self, text: str) -> str:
        """A text with identifiers in the place of marks."""

    def restorer(self) -> Restorer:
        """Restores a text that comes in pieces."""


def restored_text(
    text: str, pseudonyms: Pseudonymizer | None, *, cut: bool = False
) -> str:
    """A text with what was hidden; `cut`: it was cut off, so that its last mark may be half."""
    if pseudonyms is None:
        return text
    restorer = pseudonyms.restorer()
    return restorer.parse_chunk(text) + restorer.close(cut=cut)


def restored(value: T, pseudonyms: Pseudonymizer | None) -> T:
    """An answer with what was hidden, in each text of its lists, objects and dataclasses.

    Without pseudonyms it is the answer itself.
    """
    if pseudonyms is None:
        return value
    return _restored(value, pseudonyms)  # type: ignore[return-value]  # of the same type


def _restored(value: object, pseudonyms: Pseudonymizer) -> object:
    if isinstance(value, str):
        return pseudonyms.restore(value)
    if isinstance(value, (list, tuple)):
        return type(value)([_restored(item, pseudonyms) for item in value])
    if isinstance(value, dict):
        return {
            _restored(key, pseudonyms): _restored(item, pseudonyms)
            for key, item in value.items()
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: _restored(getattr(value, field.name), pseudonyms)
            for field in dataclasses.fields(value)
        }
        return dataclasses.replace(value, **fields)
    return value
