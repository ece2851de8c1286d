"""One turn of a chat: what is asked, and how its answer becomes LangChain's messages.

Pure: it is given texts and answers and never touches the network. When an answer will not do (no
call where one must be, JSON that does not fit), `exchange` is the next one to run, in which the
model is told why; otherwise it is None and the turn is over.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    InvalidToolCall,
    ToolCall,
    ToolCallChunk,
)
from langchain_core.messages.ai import (
    InputTokenDetails,
    OutputTokenDetails,
    UsageMetadata,
    add_usage,
)
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic_core import from_json

from .._base.threads import LONG
from .._base.tokens import TOKENS_A_TURN, count_tokens
from .._calls import defuse
from .._service import Exchange
from .._wire import (
    Completion,
    Seen,
    is_cut,
    is_out_of_room,
    read_rate_limit,
    safe_label,
)
from ..errors import SvcOutputError
from .continuation import Joint
from .messages import THINKS_AHEAD, WireMessages
from .parts import CHECKED, ContentPart
from .readers import AnswerReader

PROVIDER = "svc"
CALL_ERRORS = "invalid_tool_call_errors"
"""In `additional_kwargs`: why calls are invalid, by their ids."""
logger = logging.getLogger("langchain_svc")
_CLOSERS = ">`"
_GO_ON = (
    "That answer was cut off: go on exactly where it stopped, and repeat nothing of it."
)


class ChatTurn:
    """One question and its answer.

    `ask` makes the call that asks a conversation, and `turns` is the conversation as the wire has
    it; `written` makes harmless what goes back to the model of its own answer, and `reasks` is how
    often it may be told why an answer will not do. `on_cut` decides what becomes of an answer
    that was cut off: the model may be told to go on `continuations` times, and what it writes then
    is read as if it had never stopped.
    """

    def __init__(
        self,
        ask: Callable[[WireMessages], Exchange[Any]],
        turns: WireMessages,
        *,
        model: str | None,
        stops: Sequence[str],
        reader: AnswerReader,
        written: Callable[[str], str] = defuse,
        reasks: int = 0,
        on_cut: str | None = "mark",
        continuations: int = 0,
    ) -> None:
        self._ask = ask
        self._turns = turns
        self._model = model
        self._stops = stops
        self._reader = reader
        self._written = written
        self._reasks = reasks
        self._on_cut = on_cut
        self._most_continuations = continuations
        self._continuations = 0  # of all answers of this turn
        self._streaming = False
        self._usage: UsageMetadata | None = None
        self._estimated = False
        self._retries = 0
        self._waited = 0.0
        self._named = False
        self._parts: list[ContentPart] = []
        self.long = reader.long
        self._begin()

    def _begin(self) -> None:
        """Ask for another answer."""
        self._begin_answer()
        self._left = self._most_continuations
        self._joint: Joint | None = (
            None  # where the answer goes on, once it was cut off
        )
        self._kept = len(self._parts)  # of the answers before this one
        self._run(self._turns)

    def _run(self, turns: WireMessages) -> None:
        self._sent = turns
        self.exchange: Exchange[Any] | None = self._ask(turns)
        self._running = self.exchange
        self._part: list[str] = []  # what this exchange has brought

    def _begin_answer(self) -> None:
        self._cutter = StopCutter(self._stops)
        self._read: list[str] = []
        self._held = 0  # characters that nothing was yielded for yet
        self._is_lost = (
            False  # the model has begun anew, and what was yielded cannot be taken back
        )

    @property
    def stopped(self) -> bool:
        """Whether nothing more of this answer is wanted, so that its stream can be closed."""
        return self._cutter.hit or self._reader.ended

    # -- whole answers --------------------------------------------------------------------------

    def take(self, answer: Completion) -> None:
        """Read a whole answer; afterwards `exchange` is None, or the next call to run."""
        kept = self._kept
        self._parts += self._texts(answer.text)
        self._parts += self._finish(answer)
        self._parts[kept:] = _settled(self._parts[kept:])
        self._answer = answer

    def result(self) -> Any:
        """The answer that was taken as LangChain's result."""
        metadata = self._names(self._answer) | self._metadata(self._answer)
        message = AIMessage(
            content="".join(part.content for part in self._parts),
            tool_calls=_tool_calls(self._parts),
            invalid_tool_calls=_invalid_calls(self._parts),
            additional_kwargs=_beside(self._parts),
            usage_metadata=self._usage,
            response_metadata=metadata,
        )
        # Older handlers look for these here and nowhere else.
        info = {"finish_reason": metadata["finish_reason"]}
        output = {
            "token_usage": token_usage(self._usage or {}),
            "model_name": metadata["model_name"],
        }
        generation = ChatGeneration(message=message, generation_info=info)
        return ChatResult(generations=[generation], llm_output=output)

    # -- streams --------------------------------------------------------------------------------

    def is_quick(self, text: str | None = None) -> bool:
        """Whether the piece at hand, or the end of the stream, is read in a moment.

        A short piece takes long where it completes what was held back, a call with all it carries,
        and then it holds a part of a tag or of a fence.
        """
        if text is None:
            return sum(map(len, self._read)) <= self.long
        if len(text) > self.long:
            return False
        return self._held <= LONG or not any(mark in text for mark in _CLOSERS)

    def chunks(self, text: str) -> Iterable[Any]:
        """A piece of a stream as LangChain's chunks; none while it is held back."""
        self._streaming = True
        parts = list(self._texts(text))
        self._held = 0 if parts else self._held + len(text)
        if len(parts) == 1 and self._named and parts[0].is_content:
            return (text_chunk(parts[0].content),)
        return self._chunks(parts) if parts else ()

    def end(self) -> Iterator[Any]:
        """The end of a stream; afterwards `exchange` is None, or the next call to run."""
        self._streaming = True
        seen = self._seen
        parts = self._finish(seen)
        if parts:
            yield from self._chunks(parts)
        if self.exchange is None:
            yield self._last_chunk(seen)

    def _chunks(self, parts: list[ContentPart]) -> Iterable[Any]:
        """What one read brought: the text as one chunk, and each piece of a call as its own.

        LangChain's cost grows with the number of chunks; but front ends take a chunk for one call,
        and its name for a beginning.
        """
        groups: list[list[ContentPart]] = []
        for part in parts:
            if part.call or not groups or groups[-1][-1].call:
                groups.append([])
            groups[-1].append(part)
        return [self._chunk(group) for group in groups]

    def _chunk(self, parts: list[ContentPart]) -> ChatGenerationChunk:
        # All in one go: to set a field afterwards costs as much as half of a message.
        fields: dict[str, Any] = {}
        calls = [part.call for part in parts if part.call is not None]
        if calls:
            fields["tool_call_chunks"] = calls
        beside = _beside(parts)
        if beside:
            fields["additional_kwargs"] = beside
        if not self._named:
            # Once only: LangChain joins the texts of metadata when it adds chunks up.
            self._named = True
            fields["response_metadata"] = self._names(self._seen)
        content = "".join([part.content for part in parts])
        if calls and len(fields) == 1 and all(map(is_middle, calls)):
            return text_chunk(content, calls)
        return ChatGenerationChunk(message=AIMessageChunk(content=content, **fields))

    def _last_chunk(self, seen: Completion | Seen) -> Any:
        metadata = self._metadata(seen)
        info = {"finish_reason": metadata["finish_reason"]}
        message = AIMessageChunk(
            content="",
            usage_metadata=self._usage,
            response_metadata=metadata if self._named else self._names(seen) | metadata,
            chunk_position="last",
        )
        return ChatGenerationChunk(message=message, generation_info=info)

    @property
    def _seen(self) -> Seen:
        parser: Any = self._running.parser  # a stream is read by a TextParser
        return parser.decoder.seen  # type: ignore[no-any-return]  # see above

    # -- both -----------------------------------------------------------------------------------

    def _texts(self, text: str) -> Iterable[ContentPart]:
        self._part.append(text)
        if self._joint is not None:
            text = self._joint.feed(text)
            self._take_new_answer(self._joint)
        return self._feed(text)

    def _take_new_answer(self, joint: Joint) -> None:
        """Let a new answer replace the one that was cut off, once the joint has noticed it."""
        if not joint.anew or self._is_lost:
            return
        joint.anew = False
        if not self._reader.restart(streaming=self._streaming):
            self._is_lost = True
            return
        self._begin_answer()
        del self._parts[self._kept :]

    def _feed(self, text: str) -> Iterable[ContentPart]:
        if self._is_lost:
            return ()
        text = self._cutter.feed(text)
        if not text:
            return ()
        self._read.append(text)
        return self._reader.read_chunk(text)

    def _finish(self, seen: Completion | Seen) -> list[ContentPart]:
        """The last parts of an answer; whether the model is asked once more is decided here."""
        parts: list[ContentPart] = []
        self._retries += self._running.retries
        self._waited += self._running.waited
        self._account(seen.usage or {})
        if self._joint is not None:
            rest = self._joint.finish(cut=is_cut(seen.finish_reason))
            self._take_new_answer(self._joint)
            parts += self._feed(rest)
        if self._goes_on(seen.finish_reason):
            self._go_on()
            return parts
        if rest := self._cutter.finish():
            self._read.append(rest)
            parts += self._reader.read_chunk(rest)
        cut = self._is_cut(seen.finish_reason)
        if cut and self._on_cut == "error":
            raise SvcOutputError(
                f"The answer was cut off (finish_reason {seen.finish_reason!r}; max_tokens sets "
                "its length, and on_cut='continue' lets it go on): .raw has what came",
                raw="".join(self._read),
                usage=self._usage,
                finish_reason=seen.finish_reason,
            )
        parts += self._reader.end_answer(cut=cut, last=not self._reasks)
        self._next(seen.finish_reason)
        return parts

    def _is_cut(self, reason: str | None) -> bool:
        """Whether the answer is not whole, for whatever reason."""
        return is_cut(reason) or self._is_lost

    def _goes_on(self, reason: str | None) -> bool:
        """Whether the model is told to go on where this answer was cut off."""
        may = self._left > 0 and self._on_cut in (None, "continue")
        if not may or self.stopped or self._is_lost or not "".join(self._part).strip():
            return False
        out_of_room = is_out_of_room(reason)
        if is_cut(reason) and not out_of_room:
            return False
        wanted = self._reader.wants_rest(self._text_so_far, out_of_room=out_of_room)
        return wanted or (out_of_room and self._on_cut == "continue")

    @property
    def _text_so_far(self) -> str:
        return "".join(self._read) + self._cutter.held

    def _go_on(self) -> None:
        """Tell the model to go on; the reader stays where it is."""
        logger.info("the answer was cut off: the model is told to go on")
        self._left -= 1
        self._continuations += 1
        text = self._text_so_far
        self._joint = Joint(text, inside=self._reader.is_inside)
        turns = [
            {"role": "assistant", "content": self._written(text)},
            {"role": "user", "content": _GO_ON},
        ]
        self._run([*self._turns, *turns])

    def _account(self, counts: dict[str, int]) -> None:
        """Add the tokens of this try to those of the turn."""
        usage = _whole_usage(counts)
        if usage is None:
            self._estimated = True
            asked = sum(
                count_tokens(turn["content"]) + TOKENS_A_TURN for turn in self._sent
            )
            answered = count_tokens("".join(self._part))
            usage = UsageMetadata(
                input_tokens=asked,
                output_tokens=answered,
                total_tokens=asked + answered,
            )
        self._usage = usage if self._usage is None else add_usage(self._usage, usage)

    def _next(self, reason: str | None) -> None:
        """Ask once more, if the answer will not do and the model may be told; else it is over.

        Raises:
            SvcOutputError: Something had to come that did not.
        """
        repair_prompt = self._reader.repair_prompt
        self.exchange = None
        if repair_prompt is None or not self._reasks or self._is_cut(reason):
            if self._reader.failure is not None:
                raise SvcOutputError(
                    self._reader.failure,
                    raw="".join(self._read),
                    usage=self._usage,
                    finish_reason=reason if self._is_cut(reason) else None,
                )
            return
        self._reasks -= 1
        logger.info("the answer will not do: the model is asked once more")
        text = "".join(self._read)
        if text:
            self._turns = [
                *self._turns,
                {"role": "assistant", "content": self._written(text)},
            ]
        self._turns = [
            *self._turns,
            {"role": "user", "content": self._written(repair_prompt)},
        ]
        self._reader.start_answer()
        self._begin()

    def _names(self, seen: Completion | Seen) -> dict[str, Any]:
        return {"model_name": seen.model or self._model, "model_provider": PROVIDER}

    def _metadata(self, seen: Completion | Seen) -> dict[str, Any]:
        request = self._running.request
        head = self._running.head
        headers = head.headers if head is not None else {}
        known = {
            "id": seen.id,
            "created": seen.created,
            "request_id": safe_label(
                headers.get("x-request-id"), secrets=request.secrets
            ),
            "rate_limit": read_rate_limit(headers, time.time(), request.secrets),
            "retries": self._retries,
            "waited": round(self._waited, 3),
            "continuations": self._continuations,
        }
        return {
            "finish_reason": self._reason(seen.finish_reason),
            "usage_source": "estimated" if self._estimated else "service",
        } | {name: value for name, value in known.items() if value}

    def _reason(self, said: str | None) -> str | None:
        """Why the answer ended, as a model that knows tools names it."""
        if self._reader.called:
            return "tool_calls"
        if is_cut(said):
            return said
        if self._is_lost:
            return "length"
        if self._reader.malformed:
            return "malformed_tool_call"
        return "stop" if self.stopped else said


def _settled(parts: list[ContentPart]) -> list[ContentPart]:
    """The parts of a whole answer, where what looked like an answer may turn out to be thought."""
    ends = [at for at, part in enumerate(parts) if part.all_was_reasoning]
    if not ends:
        return parts
    thought = "".join(part.content + part.reasoning for part in parts[: ends[-1]])
    return [ContentPart(reasoning=thought), *parts[ends[-1] + 1 :]]


def _beside(parts: list[ContentPart]) -> dict[str, Any]:
    """What a message carries beside its content, where LangChain looks for it.

    What was thought (LangChain makes a content block of it), an answer that was checked, and why a
    call is invalid: chunks have no other place for that.
    """
    beside: dict[str, Any] = {}
    if thought := "".join([part.reasoning for part in parts]):
        beside["reasoning_content"] = thought
    for part in parts:
        if part.checked is not None:
            beside[CHECKED] = part.checked
        if part.parsed is not None:
            beside["parsed"] = part.parsed  # where ChatOpenAI has it
        if part.failed is not None:
            beside.setdefault(CALL_ERRORS, {})[part.failed[0]] = part.failed[1]
        if part.all_was_reasoning:
            beside[THINKS_AHEAD] = True
    return beside


def _tool_calls(parts: list[ContentPart]) -> list[ToolCall]:
    pieces = [part.call for part in parts if part.call and not part.failed]
    return [  # of each its name, and then all its arguments
        tool_call(
            name=begun["name"] or "", args=from_json(rest["args"] or ""), id=begun["id"]
        )
        for begun, rest in zip(pieces[::2], pieces[1::2], strict=True)
    ]


def _invalid_calls(parts: list[ContentPart]) -> list[InvalidToolCall]:
    return [
        invalid_tool_call(
            name=call["name"], args=call["args"], id=call["id"], error=failed[1]
        )
        for call, failed in ((part.call, part.failed) for part in parts)
        if call and failed
    ]


# LangChain's constructors check what is known to be right here: they take half of what a streamed
# token costs. Of a piece of arguments they try each beginning as JSON, which costs 17 ms a kB. So
# a chunk is copied from one that they made. Where the copy would differ from theirs in anything,
# since pydantic or LangChain has changed, theirs is used.


def constructed(text: str, calls: Sequence[ToolCallChunk] = ()) -> ChatGenerationChunk:
    """A chunk by LangChain's constructors."""
    fields: dict[str, Any] = {"tool_call_chunks": list(calls)} if calls else {}
    return ChatGenerationChunk(message=AIMessageChunk(content=text, **fields))


_GENERATION = constructed("")
_MESSAGE = _GENERATION.message
# What no two chunks may share.
_OWN = {
    name: type(value) for name, value in vars(_MESSAGE).items() if value in ([], {})
}


def is_middle(call: ToolCallChunk) -> bool:
    """Whether it is arguments that are not the beginning of an object, and so none."""
    return (call["args"] or "").lstrip()[:1] not in ("", "{")


def copied(text: str, calls: Sequence[ToolCallChunk] = ()) -> ChatGenerationChunk:
    """The same by copying one; the calls are pieces of arguments (`is_middle`)."""
    fields = {**vars(_MESSAGE), "content": text}
    for name, empty in _OWN.items():
        fields[name] = empty()
    message = _like(_MESSAGE, fields, {})
    if calls:
        fields["tool_call_chunks"] = list(calls)
        fields["invalid_tool_calls"] = [
            invalid_tool_call(name=call["name"], args=call["args"], id=call["id"])
            for call in calls
        ]
        set_: set[str] = message.__pydantic_fields_set__
        set_.update(("tool_call_chunks", "tool_calls", "invalid_tool_calls"))
    made: ChatGenerationChunk = _like(
        _GENERATION, {**vars(_GENERATION), "text": text, "message": message}, None
    )
    return made


def _like(made: Any, fields: dict[str, Any], extra: dict[str, Any] | None) -> Any:
    one = object.__new__(type(made))
    set_ = object.__setattr__
    set_(one, "__dict__", fields)
    set_(one, "__pydantic_fields_set__", set(made.__pydantic_fields_set__))
    set_(one, "__pydantic_extra__", extra)
    set_(one, "__pydantic_private__", None)
    return one


def _state(chunk: ChatGenerationChunk) -> list[Any]:
    return [one.__getstate__() for one in (chunk, chunk.message)]


def _is_exact() -> bool:
    calls = [tool_call_chunk(args='": 1', index=0)]
    try:
        one, other = copied("a").message, copied("a").message
        shared = any(getattr(one, name) is getattr(other, name) for name in _OWN)
        return not shared and all(
            _state(copied(*given)) == _state(constructed(*given))
            for given in (("a",), ("", calls))
        )
    except Exception:  # noqa: BLE001  # whatever has changed
        return False


text_chunk = copied if _is_exact() else constructed


def summed_outputs(
    outputs: Iterable[Mapping[str, Any] | None], model: str | None
) -> dict[str, Any]:
    """The `llm_output` of several answers."""
    counts: Counter[str] = Counter()
    for output in filter(None, outputs):
        counts.update(output["token_usage"])
        model = output["model_name"]
    return {"token_usage": dict(counts), "model_name": model}


COUNTS = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
}
"""What LangChain and what the service calls the counts of tokens."""


def token_usage(known: Mapping[str, Any]) -> dict[str, int]:
    """The counts by the service's names."""
    return {theirs: known[ours] for ours, theirs in COUNTS.items() if ours in known}


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
    usage = UsageMetadata(
        input_tokens=asked, output_tokens=answered, total_tokens=total
    )
    if "cached_tokens" in counts:
        usage["input_token_details"] = InputTokenDetails(
            cache_read=counts["cached_tokens"]
        )
    if "reasoning_tokens" in counts:
        usage["output_token_details"] = OutputTokenDetails(
            reasoning=counts["reasoning_tokens"]
        )
    return usage


class StopCutter:
    """Passes text on until one of the sequences has come: `feed(text)`, then `finish()`.

    Text is held back only while it could be the beginning of a sequence, and the result is the
    same for every way of cutting the text.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self.held = ""
        self.hit = False

    def feed(self, text: str) -> str:
        """What may be yielded."""
        if not self._stops:
            return text
        if self.hit:
            return ""
        text = self.held + text
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        self.hit = bool(found)
        keep = 0 if found else max(_overlap(text, stop) for stop in self._stops)
        end = min(found, default=len(text) - keep)
        self.held = text[len(text) - keep :]
        return text[:end]

    def finish(self) -> str:
        """What was held back and turned out not to be a stop sequence."""
        held = self.held
        self.held = ""
        return held


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` with which `stop` begins."""
    sizes = range(min(len(stop) - 1, len(text)), 0, -1)
    return next((size for size in sizes if text.endswith(stop[:size])), 0)
