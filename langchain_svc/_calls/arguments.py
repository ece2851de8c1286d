"""The arguments of a call while they are written, for those who want them before the call is known.

Only a call in our own form is followed: the name stands before the arguments there, and their JSON
is yielded as the model writes it. What the whole call turns out to be is still the parser's to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from .calls import BadCall, Call
from .cursor import Brackets

_HEAD = re.compile(
    r'<tool_call>\s*\{\s*"name"\s*:\s*"(?P<name>[^"\\]{1,100})"\s*,\s*'
    r'"(?:arguments|parameters)"\s*:\s*(?=\{)'
)
_LONGEST_HEAD = 300


@dataclass(frozen=True)
class CallStart:
    """A call begins."""

    name: str


@dataclass(frozen=True)
class ArgumentsDelta:
    """A piece of the JSON of its arguments."""

    text: str


@dataclass(frozen=True)
class CallEnd:
    """The call is whole, and known; `rest` has to follow what was written of its arguments.

    Where the call is bad, that is a bracket that closes nothing, so that nobody completes them.
    """

    call: Call | BadCall
    rest: str


class ArgumentStream:
    """Follows the arguments of one call; `holds` says whether what is written must be held back."""

    def __init__(self, holds: Callable[[str], bool]) -> None:
        self._holds = holds
        self._brackets = Brackets()
        self._written: list[str] = []
        self._size = 0
        self.begun = False
        self.over = False  # this is not a call that can be followed

    def begin(self, held: str) -> list[CallStart | ArgumentsDelta]:
        """See whether the text that is held back begins a call, and shows its arguments."""
        head = _HEAD.match(held)
        if head is None:
            self.over = len(held) > _LONGEST_HEAD
        elif not self._holds(held):
            self.begun = True
            return [CallStart(head["name"]), *self.feed(held[head.end() :])]
        return []

    def feed(self, text: str) -> list[CallStart | ArgumentsDelta]:
        """The next piece of the text."""
        if self._brackets.closed:
            return []
        size = self._brackets.follow(text)
        piece = text if size is None else text[: size - self._size]
        self._size += len(piece)
        self._written.append(piece)
        return [ArgumentsDelta(piece)] if piece else []

    def end(self, call: Call | BadCall) -> CallEnd:
        """The parser has read the call."""
        quote, closers = self._brackets.rest
        if isinstance(call, Call):
            try:
                arguments = json.loads("".join(self._written) + closers)
            except ValueError:
                reason = "the arguments are not JSON as they were written"
                call = BadCall(call.name, reason, source=call.source, asked=True)
            else:
                return CallEnd(replace(call, arguments=arguments, asked=True), closers)
        wrong = "}" if closers.startswith("]") else "]"
        return CallEnd(call, quote + wrong)
