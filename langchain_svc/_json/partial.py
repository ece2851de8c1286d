"""An object as far as it has come, while its text still streams in.

Open strings are shown as far as they are, numbers once they are complete. What is shown is for
looking at: JSON that is broken shows no further, and the answer itself is `answer.read_answer` of
the whole text.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import from_json

# An object that begins, and not a brace of prose such as {name}.
_BEGINS = re.compile(r"\{\s*(?:(?P<json>\"|\}|\Z)|'?\w+'?\s*[:=])")
_MAY_GO_ON = re.compile(r"(?<=[:,\[\s])-?\d[-+.\deE]*\Z")  # a number that ends with the text
_SHARE = 64


class PartialObject:
    """The first object of a text that is fed piece by piece; None before it begins.

    The text is parsed again when it has grown by a 64th, which keeps the cost linear.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = self._due = 0
        self._value: dict[str, Any] | None = None

    def feed(self, text: str) -> dict[str, Any] | None:
        """Read a piece; the object so far. Values returned before stay as they were."""
        self._parts.append(text)
        self._size += len(text)
        if self._size >= self._due:
            self._due = self._size + self._size // _SHARE
            self._parts = ["".join(self._parts)]
            self._value = _begun(self._parts[0]) or self._value
        return self._value


def _begun(text: str) -> dict[str, Any] | None:
    found = _BEGINS.search(text)
    if found is None or found["json"] is None:
        return None
    try:
        data = _MAY_GO_ON.sub("", text[found.start() :]).encode(errors="replace")
        value: dict[str, Any] = from_json(
            data, allow_inf_nan=False, allow_partial="trailing-strings"
        )
    except ValueError:
        return None
    return value
