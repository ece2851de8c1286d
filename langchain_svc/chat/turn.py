"""One turn of a chat: what is asked, and how its answer becomes LangChain's messages.

Pure: it is given the events of answers and never touches the network. When an answer will not do
(no call where one must be, JSON that does not fit), `exchange` is the next one to run, in which the
model is told why; otherwise it is None and the turn is over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    InvalidToolCall,
    ToolCall,
)
from langchain_core.messages.ai import (
    InputTokenDetails,
    OutputTokenDetails,
    UsageMetadata,
    add_usage,
)
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic_core import from_json

from .._base.tokens import TOKENS_A_TURN, count_tokens
from .._client import Exchange
from .._text import (
    Joint,
    Pseudonymizer,
    StopCutter,
    TurnTags,
    ask_for_rest,
    defuse,
    defuse_own,
    has_turn_tags,
    restored_text,
)
from .._wire import (
    About,
    Event,
    Text,
    is_cut,
    is_out_of_room,
    read_rate_limit,
    safe_label,
)
from ..errors import SvcOutputError
from .messages import THINKS_AHEAD, WireMessages
from .readers import FINAL, AnswerReader, ContentPart, is_middle, text_chunk

# -- token usage -----------------------------------------------------------------------------------
# Counts of tokens: what the service reports, as LangChain wants it.

_COUNTS = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
}
"""What LangChain and what the service calls the counts of tokens."""


def token_usage(usage: Mapping[str, Any]) -> dict[str, int]:
    """LangChain's counts by the service's names."""
    return {
        service_name: usage[name]
        for name, service_name in _COUNTS.items()
        if name in usage
    }


def usage_metadata(counts: Mapping[str, int]) -> UsageMetadata | None:
    """The service's counts as LangChain's, if they tell the tokens in and out."""
    tokens_in = counts.get("prompt_tokens")
    tokens_out = counts.get("completion_tokens")
    total = counts.get("total_tokens")
    if total is not None:
        if tokens_in is None and tokens_out is not None:
            tokens_in = total - tokens_out
        if tokens_out is None and tokens_in is not None:
            tokens_out = total - tokens_in
    if tokens_in is None or tokens_out is None:
        return None
    if tokens_in < 0 or tokens_out < 0:
        return None
    if total is None:
        total = tokens_in + tokens_out
    usage = UsageMetadata(
        input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=total
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


def summed_outputs(
    outputs: Iterable[Mapping[str, Any] | None], model: str | None
) -> dict[str, Any]:
    """The `llm_output` of several answers."""
    counts: dict[str, int] = {}
    for output in outputs:
        if output:
            for name, count in output["token_usage"].items():
                counts[name] = counts.get(name, 0) + count
            model = output["model_name"]
    return {"token_usage": counts, "model_name": model}


# -- turn ------------------------------------------------------------------------------------------

PROVIDER = "svc"
"""What LangChain calls us, in metadata and in `init_chat_model`."""
CALL_ERRORS = "invalid_tool_call_errors"
"""In `additional_kwargs`: why calls are invalid, by their ids."""
logger: logging.Logger = logging.getLogger("langchain_svc")
NewExchange: TypeAlias = Callable[[WireMessages], Exchange[list[Event]]]
_NOTHING = ContentPart()


class Turn:
    """One question and its answer, as a chat model's result or chunks.

    A whole answer: `read_answer`, then `result`. A stream: `read_events` for what each network read
    brought, then `end_stream`.

    Args:
        new_exchange: Makes the exchange that sends a conversation.
        messages: The conversation as the wire has it, with marks in the place of names.
        model: The model's name, where the service does not say it.
        stops: Texts at which an answer ends.
        reader: Reads the text of the answers.
        as_one_text: Whether a conversation goes as one text, whose tags the model may copy.
        pseudonyms: What hides what the model is told of an answer, and restores its text when it is
            given out. What goes back of the model's own text has its own marks.
        defuse_text: Makes harmless what goes back to the model of its own answer.
        max_reasks: How often the model may be told why an answer will not do.
        on_cut: What becomes of an answer that was cut off; see `ChatSvc`.
        max_continuations: How often the model may be told to go on where an answer was cut off.
            What it writes then is read as if it had never stopped.
        continue_by: How it is told: "ask" or "prefill"; see `ChatSvc`.
    """

    def __init__(
        self,
        new_exchange: NewExchange,
        messages: WireMessages,
        *,
        model: str | None,
        stops: Sequence[str],
        reader: AnswerReader,
        as_one_text: bool = False,
        pseudonyms: Pseudonymizer | None = None,
        defuse_text: Callable[[str], str] = defuse,
        max_reasks: int = 0,
        on_cut: str | None = "mark",
        max_continuations: int = 0,
        continue_by: str = "ask",
    ) -> None:
        self._new_exchange = new_exchange
        self._messages = messages
        self._model = model
        self._stops = stops
        self._reader = reader
        self._as_one_text = as_one_text
        self._pseudonyms = pseudonyms
        self._defuse = defuse_text
        self._reasks_left = max_reasks
        self._on_cut = on_cut
        self._max_continuations = max_continuations
        # A conversation that goes as one text has no last turn to go on from.
        self._is_prefilled = continue_by == "prefill" and not as_one_text
        self._continuations = 0  # of all answers of this turn
        self._is_streaming = False
        self._usage: UsageMetadata | None = None
        self._is_estimated = False
        self._retries = 0
        self._waited = 0.0
        self._is_named = False  # whether a chunk has said which model answers
        self._parts: list[ContentPart] = []
        self._start_answer()

    def _start_answer(self) -> None:
        """Ask for another answer."""
        self._reset_answer()
        self._continuations_left = self._max_continuations
        # Where the answer goes on, once it was cut off; what the service said of that, how long the
        # answer was there, and whether the model has begun anew instead.
        self._joint: Joint | None = None
        self._cut_reason: str | None = None
        self._size_before = 0
        self._began_anew = False
        self._earlier_parts = len(self._parts)  # those of the answers before this one
        self._start_exchange(self._messages)

    def _start_exchange(self, messages: WireMessages) -> None:
        self._sent_messages = messages
        self._tags: TurnTags | None = None
        if self._as_one_text and has_turn_tags(
            [message["role"] for message in messages]
        ):
            self._tags = TurnTags()
        self._running = self._new_exchange(messages)
        self.exchange: Exchange[list[Event]] | None = self._running
        self._about = About()
        self._exchange_texts: list[str] = []

    def _reset_answer(self) -> None:
        self._cutter = StopCutter(self._stops)
        self._answer_texts: list[str] = []
        if self._pseudonyms is not None:
            self._content_restorer = self._pseudonyms.restorer()
            self._reasoning_restorer = self._pseudonyms.restorer()
        # Whether what comes now is no part of the answer, which so stays cut: nothing proves where
        # it joins, or the model has begun anew and what was yielded cannot be taken back.
        self._is_abandoned = False
        # Whether it ended without being whole, for whatever reason.
        self._is_cut = False

    @property
    def stopped(self) -> bool:
        """Whether nothing more of this answer is wanted, so that its stream can be closed."""
        if self._tags is not None and self._tags.hit:
            return True
        return self._cutter.hit or self._reader.ended

    # -- whole answers --------------------------------------------------------------------------

    def read_answer(self, events: Iterable[Event]) -> None:
        """Read a whole answer; afterwards `exchange` is None, or the next one to run."""
        start = self._earlier_parts
        for event in events:
            if isinstance(event, Text):
                self._parts += self._read_text(event.text)
            else:
                self._about.note(event)
        self._parts += self._end_answer()
        self._parts[start:] = _settle_reasoning(self._parts[start:])

    # -- streams --------------------------------------------------------------------------------

    def size_with(self, events: list[Event]) -> int:
        """How many characters there are to read when these events have come."""
        size = self._reader.held
        for event in events:
            if isinstance(event, Text):
                size += len(event.text)
        return size

    @property
    def size(self) -> int:
        """How many characters the answer has, which is read as a whole when it ends."""
        return sum(map(len, self._answer_texts))

    def read_events(self, events: list[Event]) -> list[ChatGenerationChunk]:
        """What a network read brought, as LangChain's chunks; none while it is held back."""
        self._is_streaming = True
        chunks: list[ChatGenerationChunk] = []
        for event in events:
            if not isinstance(event, Text):
                self._about.note(event)
                continue
            parts = list(self._read_text(event.text))
            if parts:
                chunks += self._chunks(parts)
        return chunks

    def end_stream(self) -> list[ChatGenerationChunk]:
        """The last chunks; afterwards `exchange` is None, or the next one to run."""
        self._is_streaming = True
        chunks: list[ChatGenerationChunk] = []
        parts = self._end_answer()
        if parts:
            chunks += self._chunks(parts)
        if self.exchange is None:
            chunks.append(self._last_chunk())
        return chunks

    # -- both -----------------------------------------------------------------------------------

    def _read_text(self, text: str) -> Iterable[ContentPart]:
        self._exchange_texts.append(text)
        if self._tags is not None:
            text = self._tags.pass_text(text)
        if self._joint is not None:
            text = self._joint.join_chunk(text)
            self._heed_joint(self._joint)
        return self._read_new_text(text)

    def _heed_joint(self, joint: Joint) -> None:
        """Let a new answer replace the one that was cut off, and drop what proves nothing."""
        if joint.refused:
            self._is_abandoned = True
        if not joint.anew or self._is_abandoned:
            return
        joint.anew = False
        self._began_anew = True
        if not self._reader.restart(streaming=self._is_streaming):
            self._is_abandoned = True
            return
        self._reset_answer()
        del self._parts[self._earlier_parts :]

    def _read_new_text(self, text: str) -> Iterable[ContentPart]:
        if self._is_abandoned:
            return ()
        text = self._cutter.pass_text(text)
        if not text:
            return ()
        self._answer_texts.append(text)
        parts = self._reader.read_chunk(text)
        if self._pseudonyms is None:
            return parts
        return self._given_out(parts)

    def _given_out(self, parts: Iterable[ContentPart]) -> Iterable[ContentPart]:
        """The parts with names in the place of marks; a text may be held that ends in half a mark.

        This is the one place where the text of an answer is restored: what goes back to the
        provider, as a question or to go on, is the provider's own text.
        """
        shown = [
            part._replace(
                content=self._content_restorer.parse_chunk(part.content),
                reasoning=self._reasoning_restorer.parse_chunk(part.reasoning),
            )
            for part in parts
        ]
        return [part for part in shown if part != _NOTHING]

    def _rest_given_out(self, *, cut: bool) -> Iterable[ContentPart]:
        """The last of an answer's text; a mark in which a cut text ends stays one."""
        rest = ContentPart(
            content=self._content_restorer.close(cut=cut),
            reasoning=self._reasoning_restorer.close(cut=cut),
        )
        return () if rest == _NOTHING else (rest,)

    def _end_answer(self) -> list[ContentPart]:
        """The last parts of an answer; whether the model is asked once more is decided here."""
        reason = self._about.finish_reason
        parts: list[ContentPart] = []
        self._retries += self._running.retries
        self._waited += self._running.waited
        self._record_usage(self._about.usage or {})
        rest = ""
        if self._tags is not None:
            rest = self._tags.close()
        if self._joint is not None:
            rest = self._joint.join_chunk(rest)
            rest += self._joint.end_part()
            self._heed_joint(self._joint)
        if rest:
            parts += self._read_new_text(rest)
        is_over = self._joint is None or self._began_anew or self.stopped
        if not is_over and self._stands_still:
            self._is_abandoned = True
        if self._goes_on(reason):
            self._go_on(reason)
            return parts
        rest = self._cutter.close()
        if rest:
            self._answer_texts.append(rest)
            last_parts = self._reader.read_chunk(rest)
            if self._pseudonyms is not None:
                last_parts = self._given_out(last_parts)
            parts += last_parts
        self._is_cut = self._ends_cut(reason)
        if self._is_cut and self._on_cut == "error":
            raise SvcOutputError(
                f"The answer was cut off (finish_reason {reason!r}; max_tokens sets "
                "its length, and on_cut='continue' lets it go on): .raw has what came",
                raw=restored_text(
                    "".join(self._answer_texts), self._pseudonyms, cut=True
                ),
                usage=self._usage,
                finish_reason=reason,
            )
        may_ask = self._may_ask(reason)
        last_parts = self._reader.end_answer(cut=self._is_cut, last=not may_ask)
        if self._pseudonyms is None:
            parts += last_parts
        else:
            parts += self._given_out(last_parts)
            parts += self._rest_given_out(cut=self._is_cut)
        self._ask_again_or_end(reason, may_ask=may_ask)
        return parts

    def _ends_cut(self, reason: str | None) -> bool:
        """Whether the answer is not whole, for whatever reason."""
        return is_cut(reason) or (self._is_abandoned and is_cut(self._cut_reason))

    def _may_ask(self, reason: str | None) -> bool:
        """Whether the model may be told that its answer will not do."""
        if self._reasks_left <= 0:
            return False
        return not is_cut(reason) or is_out_of_room(reason)

    def _goes_on(self, reason: str | None) -> bool:
        """Whether the model is told to go on where this answer was cut off."""
        if self._continuations_left <= 0 or self._on_cut not in (None, "continue"):
            return False
        if self.stopped or self._is_abandoned:
            return False
        if not "".join(self._exchange_texts).strip():
            return False
        out_of_room = is_out_of_room(reason)
        if is_cut(reason) and not out_of_room:
            return False  # it may not go on, as after a content filter
        if self._began_anew:
            return False  # it was told to go on and did not: it would not once more
        text = self._text_so_far
        wants_rest = self._reader.wants_rest(text, out_of_room=out_of_room)
        if out_of_room and self._on_cut == "continue" and not self._reader.is_copy:
            wants_rest = True
        return wants_rest and self._can_go_on

    @property
    def _can_go_on(self) -> bool:
        """Whether what the model writes then could prove that it goes on."""
        return self._is_prefilled or bool(ask_for_rest(self._text_so_far))

    @property
    def _stands_still(self) -> bool:
        """Whether the model was told to go on and added nothing."""
        return len(self._text_so_far.rstrip()) <= self._size_before

    @property
    def _text_so_far(self) -> str:
        return "".join(self._answer_texts) + self._cutter.buffer

    def _go_on(self, reason: str | None) -> None:
        """Tell the model to go on; the reader stays where it is."""
        logger.info("the answer was cut off: the model is told to go on")
        self._continuations_left -= 1
        self._continuations += 1
        text = self._text_so_far
        self._joint = Joint(
            text, inside=self._reader.is_inside, exact=self._is_prefilled
        )
        self._cut_reason = reason
        self._began_anew = False
        self._size_before = len(text.rstrip())
        own_text = self._defuse(text) if self._as_one_text else defuse_own(text)
        turns = [{"role": "assistant", "content": own_text}]
        if not self._is_prefilled:
            request = self._defuse(ask_for_rest(text))
            turns.append({"role": "user", "content": request})
        self._start_exchange([*self._messages, *turns])

    def _record_usage(self, counts: dict[str, int]) -> None:
        """Add the tokens of this exchange to those of the turn."""
        usage = usage_metadata(counts)
        if usage is None:
            self._is_estimated = True
            total = counts.get("total_tokens")
            tokens_in = sum(
                count_tokens(message["content"]) + TOKENS_A_TURN
                for message in self._sent_messages
            )
            tokens_out = count_tokens("".join(self._exchange_texts))
            if total is not None and total > 0:
                # The sum is the service's, and only its two parts are estimated.
                tokens_out = min(tokens_out, total)
                tokens_in = total - tokens_out
            usage = UsageMetadata(
                input_tokens=tokens_in,
                output_tokens=tokens_out,
                total_tokens=tokens_in + tokens_out,
            )
        if self._usage is not None:
            usage = add_usage(self._usage, usage)
        self._usage = usage

    def _ask_again_or_end(self, reason: str | None, *, may_ask: bool) -> None:
        """Ask once more, if the answer will not do and the model may be told; else it is over.

        Raises:
            SvcOutputError: Something had to come that did not.
        """
        self.exchange = None
        repair_prompt = self._reader.repair_prompt
        if repair_prompt is None or not may_ask:
            if self._reader.failure is not None:
                text = "".join(self._answer_texts)
                raise SvcOutputError(
                    self._reader.failure,
                    raw=restored_text(text, self._pseudonyms, cut=self._is_cut),
                    usage=self._usage,
                    finish_reason=reason if self._is_cut else None,
                )
            return
        self._reasks_left -= 1
        logger.info("the answer will not do: the model is asked once more")
        *messages, last = self._messages
        if self._pseudonyms is not None:
            repair_prompt = self._pseudonyms.hide(repair_prompt)
        content = self._defuse(repair_prompt)
        if last["role"] == "user":
            content = f"{last['content']}\n\n{content}"
        else:
            messages.append(last)
        self._messages = [*messages, {"role": "user", "content": content}]
        self._reader.start_answer()
        self._start_answer()

    # -- what is said of the answer -------------------------------------------------------------

    def _names(self) -> dict[str, Any]:
        model = self._about.metadata.model or self._model
        return {"model_name": model, "model_provider": PROVIDER}

    def _response_metadata(self) -> dict[str, Any]:
        request = self._running.request
        head = self._running.head
        headers = head.headers if head is not None else {}
        request_id = safe_label(headers.get("x-request-id"), secrets=request.secrets)
        optional = {
            "id": self._about.metadata.id,
            "created": self._about.metadata.created,
            "timestamp": self._about.metadata.timestamp,
            "request_id": request_id,
            "rate_limit": read_rate_limit(headers, time.time(), request.secrets),
            "retries": self._retries,
            "waited": round(self._waited, 3),
            "continuations": self._continuations,
        }
        metadata: dict[str, Any] = {
            "finish_reason": self._finish_reason(self._about.finish_reason),
            "usage_source": "estimated" if self._is_estimated else "service",
        }
        return metadata | {name: value for name, value in optional.items() if value}

    def _finish_reason(self, reason: str | None) -> str | None:
        """Why the answer ended, as a model that knows tools names it."""
        if self._reader.called:
            return "tool_calls"
        if self._is_cut:
            return reason if is_cut(reason) else "length"
        if self._reader.malformed:
            return "malformed_tool_call"
        if self.stopped:
            return "stop"
        return reason

    # -- LangChain's result and chunks -----------------------------------------------------------

    def result(self) -> ChatResult:
        """The answer that was read."""
        metadata = self._names() | self._response_metadata()
        fields: dict[str, Any] = {}
        calls = [part for part in self._parts if part.call]
        if calls:
            fields["tool_calls"] = _tool_calls(calls)
            fields["invalid_tool_calls"] = _invalid_calls(calls)
        message = AIMessage(
            content="".join([part.content + part.json for part in self._parts]),
            additional_kwargs=_additional_kwargs(self._parts),
            usage_metadata=self._usage,
            response_metadata=metadata,
            **fields,
        )
        # Older handlers look for these here and nowhere else.
        info = {"finish_reason": metadata["finish_reason"]}
        output = {
            "token_usage": token_usage(self._usage or {}),
            "model_name": metadata["model_name"],
        }
        generation = ChatGeneration(message=message, generation_info=info)
        return ChatResult(generations=[generation], llm_output=output)

    def _chunks(self, parts: list[ContentPart]) -> list[ChatGenerationChunk]:
        """The text as one chunk, and each piece of a call as its own.

        LangChain's cost grows with the number of chunks; but front ends take a chunk for one call,
        and its name for a beginning.
        """
        if len(parts) == 1 and self._is_named and parts[0].is_content:
            return [text_chunk(parts[0].content)]
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
        additional = _additional_kwargs(parts)
        if additional:
            fields["additional_kwargs"] = additional
        if not self._is_named:
            # Once only: LangChain joins the texts of metadata when it adds chunks up.
            self._is_named = True
            fields["response_metadata"] = self._names()
        content = "".join([part.content + part.json for part in parts])
        if calls and len(fields) == 1 and all(map(is_middle, calls)):
            return text_chunk(content, calls)
        return ChatGenerationChunk(message=AIMessageChunk(content=content, **fields))

    def _last_chunk(self) -> ChatGenerationChunk:
        metadata = self._response_metadata()
        info = {"finish_reason": metadata["finish_reason"]}
        if not self._is_named:
            metadata = self._names() | metadata
        message = AIMessageChunk(
            content="",
            usage_metadata=self._usage,
            response_metadata=metadata,
            chunk_position="last",
        )
        return ChatGenerationChunk(message=message, generation_info=info)


def _settle_reasoning(parts: list[ContentPart]) -> list[ContentPart]:
    """The parts of a whole answer, where what looked like an answer may turn out to be thought."""
    ends = [index for index, part in enumerate(parts) if part.all_was_reasoning]
    if not ends:
        return parts
    end = ends[-1]
    reasoning = "".join(part.content + part.reasoning for part in parts[:end])
    return [ContentPart(reasoning=reasoning), *parts[end + 1 :]]


def _additional_kwargs(parts: list[ContentPart]) -> dict[str, Any]:
    """What a message carries beside its content, where LangChain looks for it.

    What was thought (LangChain makes a content block of it), an answer that replaces the content,
    and why a call is invalid: chunks have no other place for that.
    """
    additional: dict[str, Any] = {}
    reasoning = "".join([part.reasoning for part in parts])
    if reasoning:
        additional["reasoning_content"] = reasoning
    for part in parts:
        if part.final is not None:
            additional[FINAL] = part.final
        if part.parsed is not None:
            additional["parsed"] = part.parsed  # where ChatOpenAI has it
        if part.failed is not None:
            call_id, problem = part.failed
            additional.setdefault(CALL_ERRORS, {})[call_id] = problem
        if part.all_was_reasoning:
            additional[THINKS_AHEAD] = True
    return additional


def _tool_calls(parts: list[ContentPart]) -> list[ToolCall]:
    """The calls that can run: of each came a piece with its name, then one with its arguments."""
    pieces = [part.call for part in parts if part.call and not part.failed]
    calls = []
    for start, rest in zip(pieces[::2], pieces[1::2], strict=True):
        arguments = from_json(rest["args"] or "")
        calls.append(
            tool_call(name=start["name"] or "", args=arguments, id=start["id"])
        )
    return calls


def _invalid_calls(parts: list[ContentPart]) -> list[InvalidToolCall]:
    calls = []
    for part in parts:
        if part.call and part.failed:
            _, problem = part.failed
            calls.append(
                invalid_tool_call(
                    name=part.call["name"],
                    args=part.call["args"],
                    id=part.call["id"],
                    error=problem,
                )
            )
    return calls
