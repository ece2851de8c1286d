"""One turn of a chat: what is asked, and how its answer becomes LangChain's messages.

Pure: it is given texts and answers and never touches the network. The four entry methods of
`ChatSvc` make one, let a driver run its call and hand it what comes. When an answer will not do
(no call where one must be, JSON that does not fit), `call` is the next call to run, in which the
model is told why; otherwise it is None and the turn is over.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    InvalidToolCall,
    ToolCall,
    ToolCallChunk,
)
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic_core import from_json

from ._http.call import Call
from ._http.readers import TextReader
from ._messages import Turns
from ._parts import Expectation, Part
from ._stop import StopCutter
from ._structured import CHECKED
from ._tokens import TOKENS_A_TURN, count_tokens
from ._wire.failures import own_label
from ._wire.limits import read_rate_limit
from ._wire.v1 import Completion
from .errors import SvcOutputError

PROVIDER = "svc"
logger = logging.getLogger("langchain_svc")


class Turn:
    """One question and its answer.

    Args:
        ask: Makes the call that asks a conversation.
        turns: The conversation, as the wire has it.
        model: The model's id.
        stops: Texts at which an answer ends.
        expect: Makes a reader of one answer, given the maker of call ids.
        reasks: How often the model may be told why its answer will not do.
    """

    def __init__(
        self,
        ask: Callable[[Turns], Call[Any]],
        turns: Turns,
        *,
        model: str,
        stops: tuple[str, ...],
        expect: Callable[[Callable[[int], str]], Expectation],
        reasks: int = 0,
    ) -> None:
        self._ask = ask
        self._turns = turns
        self._model = model
        self._stops = stops
        self._expect = expect
        self._reasks = reasks
        self._usage: UsageMetadata | None = None
        self._estimated = False
        self._retries, self._waited = 0, 0.0
        self._named = False
        self._seed = _digest(turns)
        self._parts: list[Part] = []
        self.why: dict[str, str] = {}  # what the model is told, where it is asked once more
        self._begin()

    def _begin(self) -> None:
        self.call: Call[Any] | None = self._ask(self._turns)
        self._running = self.call
        self._cutter = StopCutter(self._stops)
        self._expected = self._expect(self._new_id)
        self._read: list[str] = []

    def _new_id(self, index: int) -> str:
        """The same for the same conversation, and different in every other."""
        return f"call_{_digest([{'seed': self._seed, 'index': str(index)}])}"

    def refuse_missing_call(self) -> None:
        """Raise where a function had to be called, and asking again did not help."""
        if self._expected.complaint is not None and self._expected.once:
            raise SvcOutputError(
                "The model called no function although one had to be called, also when it was "
                "asked again (.raw has its answer)",
                raw="".join(self._read),
                usage=self._usage,
            )

    @property
    def stopped(self) -> bool:
        """Whether nothing more of this answer is wanted, so that its stream can be closed."""
        return self._cutter.hit or self._expected.ended

    # -- whole answers --------------------------------------------------------------------------

    def take(self, answer: Completion) -> None:
        """Read a whole answer; afterwards `call` is None, or the next call to run."""
        self._parts = [*self._texts(answer.text), *self._finish(answer.finish_reason)]
        self._account(answer.usage)
        self._answer = answer
        self._next(answer.finish_reason)

    def result(self) -> ChatResult:
        """The answer that was taken as LangChain's result."""
        self.refuse_missing_call()
        answer = self._answer
        message = AIMessage(
            content=_content(self._parts),
            tool_calls=_tool_calls(self._parts),
            invalid_tool_calls=[part.invalid for part in self._parts if part.invalid],
            additional_kwargs=_reasoning(self._parts),
            usage_metadata=self._usage,
            response_metadata=self._names(answer.model)
            | self._metadata(answer.finish_reason, answer.id, answer.created),
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    # -- streams --------------------------------------------------------------------------------

    def chunks(self, text: str) -> Iterator[ChatGenerationChunk]:
        """A piece of a stream as LangChain's chunks; none while it is held back."""
        parts = list(self._texts(text))
        if parts:
            yield self._chunk(parts)

    def end(self) -> Iterator[ChatGenerationChunk]:
        """The end of a stream; afterwards `call` is None, or the next call to run."""
        seen = self._reader.decoder.seen
        parts = list(self._finish(seen.finish_reason))
        self._account(seen.usage)
        self._next(seen.finish_reason)
        if self.call is None:
            self.refuse_missing_call()
            if parts:
                yield self._chunk(parts)
            yield self._last_chunk(seen.finish_reason, seen.id, seen.created)

    def _chunk(self, parts: list[Part]) -> ChatGenerationChunk:
        """What one read brought, as one chunk: LangChain's cost grows with their number."""
        # All in one go: to set a field afterwards costs as much as half of a message.
        words: dict[str, Any] = {}
        if calls := _call_chunks(parts):
            words["tool_call_chunks"] = calls
        if beside := _beside(parts):
            words["additional_kwargs"] = beside
        if not self._named:
            # Once only: LangChain joins the texts of metadata when it adds chunks up.
            self._named = True
            words["response_metadata"] = self._names(self._reader.decoder.seen.model)
        content = "".join([part.content for part in parts])
        return ChatGenerationChunk(message=AIMessageChunk(content=content, **words))

    def _last_chunk(
        self, reason: str | None, id_: str | None, created: int | None
    ) -> ChatGenerationChunk:
        names = {} if self._named else self._names(self._reader.decoder.seen.model)
        return ChatGenerationChunk(
            message=AIMessageChunk(
                content="",
                usage_metadata=self._usage,
                response_metadata=names | self._metadata(reason, id_, created),
                chunk_position="last",
            )
        )

    @property
    def _reader(self) -> TextReader:
        reader: Any = self._running.reader
        return reader  # type: ignore[no-any-return]  # a stream's call is read by a TextReader

    # -- both -----------------------------------------------------------------------------------

    def _texts(self, text: str) -> Iterator[Part]:
        text = self._cutter.feed(text)
        if text:
            self._read.append(text)
            yield from self._expected.feed(text)

    def _finish(self, reason: str | None) -> Iterator[Part]:
        rest = self._cutter.finish()
        if rest:
            self._read.append(rest)
            yield from self._expected.feed(rest)
        yield from self._expected.finish(cut=reason == "length")

    def _account(self, counts: dict[str, int] | None) -> None:
        """Add what this try took to what the turn took."""
        self._retries += self._running.retries
        self._waited += self._running.waited
        usage = _whole_usage(counts or {})
        if usage is None:
            self._estimated = True
            asked = sum(count_tokens(turn["content"]) + TOKENS_A_TURN for turn in self._turns)
            answered = count_tokens("".join(self._read))
            usage = UsageMetadata(
                input_tokens=asked, output_tokens=answered, total_tokens=asked + answered
            )
        self._usage = usage if self._usage is None else add_usage(self._usage, usage)

    def _next(self, reason: str | None) -> None:
        """Ask once more, if the answer will not do and the model may be told."""
        complaint = self._expected.complaint
        self.call = None
        if complaint is None or not self._reasks or reason == "length":
            return
        self._reasks = 0 if self._expected.once else self._reasks - 1
        logger.info("the answer will not do: the model is asked once more")
        said = "".join(self._read)
        self.why = {"reason": complaint}
        self._turns = [
            *self._turns,
            *([{"role": "assistant", "content": said}] if said else []),
            {"role": "user", "content": complaint},
        ]
        self._begin()

    def _names(self, model: str | None) -> dict[str, Any]:
        return {"model_name": model or self._model, "model_provider": PROVIDER}

    def _metadata(self, reason: str | None, id_: str | None, created: int | None) -> dict[str, Any]:
        head = self._running.head
        headers: Mapping[str, str] = head.headers if head is not None else {}
        known = {
            "id": id_,
            "created": created,
            "request_id": own_label(headers.get("x-request-id"), self._running.request.secrets),
            "rate_limit": read_rate_limit(headers, time.time()),
            "retries": self._retries,
            "waited": round(self._waited, 3),
        }
        return {
            "finish_reason": "stop" if self.stopped else reason,
            "usage_source": "estimated" if self._estimated else "service",
        } | {name: value for name, value in known.items() if value}


def _digest(turns: Turns) -> str:
    state = hashlib.blake2b(digest_size=9)
    for turn in turns:
        for text in turn.values():
            state.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return state.hexdigest()


def _content(parts: list[Part]) -> str:
    checked = [part.checked for part in parts if part.checked is not None]
    return checked[-1] if checked else "".join(part.content for part in parts)


def _reasoning(parts: list[Part]) -> dict[str, Any]:
    """What the model thought, where LangChain looks for it: it makes a content block of it."""
    text = "".join([part.reasoning for part in parts])
    return {"reasoning_content": text} if text else {}


def _beside(parts: list[Part]) -> dict[str, Any]:
    """What a chunk carries beside its content: what was thought, and an answer that was checked."""
    beside = _reasoning(parts)
    for part in parts:
        if part.checked is not None:
            beside[CHECKED] = part.checked
    return beside


def _tool_calls(parts: list[Part]) -> list[ToolCall]:
    names: dict[int, tuple[str, str]] = {}
    arguments: dict[int, list[str]] = {}
    for call in (part.call for part in parts if part.call is not None):
        index = call["index"] or 0
        if call["name"] is not None:
            names[index] = (call["name"], call["id"] or "")
        arguments.setdefault(index, []).append(call["args"] or "")
    return [
        tool_call(name=name, args=from_json("".join(arguments[index])), id=id_)
        for index, (name, id_) in names.items()
    ]


def _call_chunks(parts: list[Part]) -> list[ToolCallChunk]:
    """The calls of one chunk: pieces of one call that came together are one piece."""
    chunks: list[ToolCallChunk] = []
    for part in parts:
        if part.invalid is not None:
            chunks.append(_unreadable(part.invalid))
        elif part.call is not None:
            last = chunks[-1] if chunks else None
            if last is not None and last["index"] == part.call["index"] and not part.call["name"]:
                last["args"] = (last["args"] or "") + (part.call["args"] or "")
            else:
                chunks.append(part.call.copy())
    return chunks


def _unreadable(bad: InvalidToolCall) -> ToolCallChunk:
    """A bad call as a chunk: LangChain reads chunks leniently and would complete what was cut.

    The reason stands before the text, which also keeps it from being read as JSON.
    """
    args = f"{bad['error']}: {bad['args']}"
    return tool_call_chunk(name=bad["name"], args=args, id=bad["id"], index=None)


def _whole_usage(counts: dict[str, int]) -> UsageMetadata | None:
    """The service's counts, if they tell the tokens in and out."""
    asked, answered = counts.get("prompt_tokens"), counts.get("completion_tokens")
    total = counts.get("total_tokens")
    if asked is None and answered is not None and total is not None:
        asked = total - answered
    if answered is None and asked is not None and total is not None:
        answered = total - asked
    if asked is None or answered is None or asked < 0 or answered < 0:
        return None
    total = asked + answered if total is None else total
    return UsageMetadata(input_tokens=asked, output_tokens=answered, total_tokens=total)
