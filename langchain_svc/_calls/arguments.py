"""The arguments of a call while the model writes them, before the whole call is there.

Only a call in the form asked for is followed: the name stands before the arguments there, and the
stream yields their JSON as the model writes it. The parser still decides about the whole call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from .._json import Brackets
from .._text import Restorer
from .calls import BadCall, Call

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
    """The call is whole; `rest` has to follow the pieces of its arguments.

    For a bad call, the rest ends with a bracket that closes nothing, so that nobody completes it.
    """

    call: Call | BadCall
    rest: str


class ArgumentStream:
    """Follows the arguments of one call.

    `holds` says whether the text so far must wait; `restorer` puts names in the place of marks.
    """

    def __init__(
        self, holds: Callable[[str], bool], restorer: Restorer | None = None
    ) -> None:
        self._holds = holds
        self._restorer = restorer
        self._brackets = Brackets()
        self._pieces: list[str] = []
        self._size = 0
        self.has_started = False
        self.is_over = False  # this is not a call that can be followed

    def start(self, text: str) -> list[CallStart | ArgumentsDelta]:
        """The first events, if the text begins a call and shows its arguments."""
        head = _HEAD.match(text)
        if head is None:
            self.is_over = len(text) > _LONGEST_HEAD
            return []
        if self._holds(text):
            return []
        self.has_started = True
        return [CallStart(head["name"]), *self.parse_chunk(text[head.end() :])]

    def parse_chunk(self, text: str) -> list[ArgumentsDelta]:
        """The next piece of the arguments."""
        if self._brackets.closed:
            return []
        size = self._brackets.follow(text)
        piece = text if size is None else text[: size - self._size]
        self._size += len(piece)
        if self._restorer is not None:
            piece = self._restorer.parse_chunk(piece)
        self._pieces.append(piece)
        return [ArgumentsDelta(piece)] if piece else []

    def end_call(self, call: Call | BadCall) -> CallEnd:
        """The event for the call that the parser has read."""
        quote, closers = self._brackets.rest
        held = "" if self._restorer is None else self._restorer.close(cut=True)
        self._pieces.append(held)
        if isinstance(call, Call):
            try:
                arguments = json.loads("".join(self._pieces) + closers)
            except ValueError:
                reason = "the arguments are not JSON as they were written"
                call = BadCall(call.name, reason, source=call.source, asked=True)
            else:
                return CallEnd(
                    replace(call, arguments=arguments, asked=True), held + closers
                )
        wrong = "}" if closers.startswith("]") else "]"
        return CallEnd(call, held + quote + wrong)
