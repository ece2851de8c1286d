"""Answers that a test wrote: they are played in order, before the rules answer."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import answers
from .faults import Fault
from .prompts import Messages

if TYPE_CHECKING:
    from .log import Received

_EXPECTED = (
    "a text, a ToolCall, a list of ToolCalls, a Fault, or a function of the request"
)
_CHATS = ("/v1/chat/completions", "/api/chat")
_GO_ON = re.compile(
    r"Your answer was cut off behind these words:\n(.*)\nWrite these words again,",
    re.DOTALL,
)
_MOST_CUT = 100  # answers that were cut and are remembered


@dataclass(frozen=True)
class ToolCall:
    """A call that the answer makes, in the form that the request's prompt asks for.

    It is written whether or not the request offers such a tool and the arguments fit, as a model
    might do.

    Raises:
        TypeError: The arguments are no mapping.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.arguments, Mapping):
            raise TypeError(
                f"arguments: expected a mapping, such as {{'city': 'Paris'}}, "
                f"got {type(self.arguments).__name__}."
            )


PlayedAnswer = str | ToolCall | Sequence[ToolCall]
Scripted = PlayedAnswer | Fault | Callable[["Received"], PlayedAnswer]
Answers = Iterable[Scripted] | Callable[["Received"], PlayedAnswer]


class Script:
    """The answers that chat requests have yet to get; safe from any thread."""

    def __init__(self, answers: Answers) -> None:
        self._lock = threading.Lock()
        self._cut_texts: deque[str] = deque(maxlen=_MOST_CUT)
        self.replace(answers)

    def replace(self, answers: Answers) -> None:
        """Play these from now on; a function alone answers every chat.

        Raises:
            TypeError: One of them cannot be played.
            ValueError: A fault says which requests it is for: here, its place in the list does.
        """
        if isinstance(answers, (str, ToolCall, Fault)) or callable(answers):
            queue: deque[Scripted] = deque([answers])
        else:
            queue = deque(answers)
        for answer in queue:
            if isinstance(answer, Fault):
                _require_unconditional(answer)
            elif not callable(answer):
                _require_playable(answer)
        with self._lock:
            self._queue = queue
            self._endless = callable(answers)

    @property
    def remaining(self) -> tuple[Scripted, ...]:
        with self._lock:
            return tuple(self._queue)

    def next_fault(self, path: str) -> Fault | None:
        """Take the fault that is next in the queue, if the path is one of a chat."""
        if path not in _CHATS:
            return None
        with self._lock:
            if self._queue and isinstance(self._queue[0], Fault):
                fault = self._queue[0]
                self._queue.popleft()
                return fault
            return None

    def remember_cut(self, text: str) -> None:
        """Keep an answer that `max_tokens` cut, in case a request asks for its rest."""
        with self._lock:
            self._cut_texts.append(text)

    def rest_of_cut(self, messages: Messages) -> str | None:
        """The rest of an answer that was cut off, where the messages ask to go on with it.

        It begins with the words that the request wants to see again; where the answer is itself the
        last turn, it has none. None where a function answers every chat: it answers this one, too.
        """
        if self._endless or len(messages) < 2:
            return None
        *_, turn, last = messages
        request = _GO_ON.match(last["content"])
        if last["role"] == "assistant":
            turn = last
        elif not request:
            return None
        beginning = turn["content"]
        end = len(beginning)
        if request:
            end = max(beginning.rfind(request[1]), 0)
        with self._lock:
            for text in reversed(self._cut_texts):
                if text.startswith(beginning):
                    return text[end:]
        return None

    def next_text(self, request: Received, messages: Messages) -> str | None:
        """Take the next answer, as text; None where the rules are to answer."""
        with self._lock:
            if not self._queue:
                return None
            answer = self._queue[0]
            if isinstance(answer, Fault):
                return None
            if not self._endless:
                self._queue.popleft()
        if callable(answer):
            answer = answer(request)
        _require_playable(answer)
        if isinstance(answer, str):
            return answer
        calls = [answer] if isinstance(answer, ToolCall) else answer
        pairs = [(call.name, dict(call.arguments)) for call in calls]
        return answers.render_calls(pairs, messages)


def _require_unconditional(fault: Fault) -> None:
    if fault.path is None and fault.rate == 1 and fault.times is None:
        return
    raise ValueError(
        f"answers: {fault} happens once, to the next chat, so path, rate and times do nothing "
        "here. Leave them out and write the Fault as often as it is to happen, or pass it as "
        "faults=."
    )


def _require_playable(answer: object) -> None:
    if isinstance(answer, (str, ToolCall)):
        return
    calls = answer if isinstance(answer, Sequence) else ()
    if not calls or not all(isinstance(call, ToolCall) for call in calls):
        raise TypeError(f"answers: expected {_EXPECTED}, got {type(answer).__name__}.")
