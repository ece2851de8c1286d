"""Answers that a test has written itself: played in order, before the rules answer."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_svc.sandbox import answers
from langchain_svc.sandbox.faults import Fault

if TYPE_CHECKING:
    from langchain_svc.sandbox.log import Received

_EXPECTED = (
    "a text, a ToolCall, a list of ToolCalls, a Fault, or a function of the request"
)
_CHATS = ("/v1/chat/completions", "/api/chat")
_GO_ON = re.compile(r"That answer was cut off: go on\b")
_MOST_CUT = 100  # answers whose rest is kept


@dataclass(frozen=True)
class ToolCall:
    """A call that the answer makes, in the form that the request's prompt asks for.

    It is written whether or not such a tool is offered and its arguments fit: that is what a model
    may do as well.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Said = str | ToolCall | Sequence[ToolCall]
Scripted = Said | Fault | Callable[["Received"], Said]
Answers = Iterable[Scripted] | Callable[["Received"], Said]


class Script:
    """What chat requests are still answered with; safe from any thread."""

    def __init__(self, answers: Answers) -> None:
        self._lock = threading.Lock()
        self._cut: deque[str] = deque(maxlen=_MOST_CUT)
        self.replace(answers)

    def replace(self, answers: Answers) -> None:
        """Play these from now on; a function alone answers everything.

        Raises:
            TypeError: One of them is none of what can be played.
        """
        if isinstance(answers, (str, ToolCall, Fault)) or callable(answers):
            chosen: list[Scripted] = [answers]
        else:
            chosen = list(answers)
        for each in chosen:
            if not isinstance(each, Fault) and not callable(each):
                _require_said(each)
        with self._lock:
            self._left = deque(chosen)
            self._endless = callable(answers)

    @property
    def left(self) -> tuple[Scripted, ...]:
        with self._lock:
            return tuple(self._left)

    def fault(self, path: str) -> Fault | None:
        """Play a fault, where one is next and the request is one for a chat."""
        with self._lock:
            due = self._left[0] if self._left and path in _CHATS else None
            if not isinstance(due, Fault):
                return None
            self._left.popleft()
            return due

    def remember(self, text: str) -> None:
        """Keep an answer that `max_tokens` cut, in case its rest is asked for."""
        with self._lock:
            self._cut.append(text)

    def rest(self, messages: Sequence[Mapping[str, str]]) -> str | None:
        """The rest of an answer that was cut off, where the messages ask to go on with it.

        A function that answers everything answers this, too.
        """
        if (
            self._endless
            or len(messages) < 2
            or not _GO_ON.match(messages[-1]["content"])
        ):
            return None
        begun = messages[-2]["content"]
        with self._lock:
            texts = [text for text in self._cut if text.startswith(begun)]
        return texts[-1].removeprefix(begun) if texts else None

    def text(
        self, request: Received, messages: Sequence[Mapping[str, str]]
    ) -> str | None:
        """Play an answer; None where the rules are to answer."""
        with self._lock:
            if not self._left or isinstance(due := self._left[0], Fault):
                return None
            if not self._endless:
                self._left.popleft()
        said = due(request) if callable(due) else due
        _require_said(said)
        if isinstance(said, str):
            return said
        calls = [said] if isinstance(said, ToolCall) else said
        return answers.calls_in_form(
            [(c.name, dict(c.arguments)) for c in calls], messages
        )


def _require_said(said: object) -> None:
    calls = said if isinstance(said, Sequence) else [said]
    if not isinstance(said, str) and not (
        calls and all(isinstance(c, ToolCall) for c in calls)
    ):
        raise TypeError(f"answers: expected {_EXPECTED}, got {type(said).__name__}.")
