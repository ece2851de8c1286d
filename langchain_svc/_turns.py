"""One turn of a chat: what is asked, and how its answer becomes LangChain's messages.

Pure: it is given texts and answers and never touches the network. The four entry methods of
`ChatSvc` make one, let a driver run its call and hand it what comes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from ._http.exchange import Call
from ._http.readers import TextReader
from ._stop import StopCutter
from ._tokens import TOKENS_A_TURN, count_tokens
from ._wire.limits import read_rate_limit
from ._wire.v1 import Completion

PROVIDER = "svc"


@dataclass
class Turn:
    """One question and its answer."""

    call: Call[Any]
    model: str
    prompt: list[str]
    stops: tuple[str, ...]

    def __post_init__(self) -> None:
        self._cutter = StopCutter(self.stops)
        self._output: list[str] = []
        self._named = False

    @property
    def stopped(self) -> bool:
        """Whether a stop sequence has come, so that nothing more is wanted."""
        return self._cutter.hit

    def result(self, answer: Completion) -> ChatResult:
        """A whole answer as LangChain's result."""
        text = self._cutter.feed(answer.text) + self._cutter.finish()
        usage, source = self._usage(answer.usage, text)
        reason = "stop" if self.stopped else answer.finish_reason
        message = AIMessage(
            content=text,
            usage_metadata=usage,
            response_metadata=self._names(answer.model)
            | self._metadata(reason, answer.id, answer.created, source),
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def chunk(self, text: str) -> ChatGenerationChunk | None:
        """A piece of a stream as LangChain's chunk; None while it is held back."""
        text = self._cutter.feed(text)
        if not text:
            return None
        self._output.append(text)
        if self._named:
            return ChatGenerationChunk(message=AIMessageChunk(content=text))
        # Once only: LangChain joins the texts of metadata when it adds chunks up.
        self._named = True
        names = self._names(self._reader.decoder.seen.model)
        return ChatGenerationChunk(message=AIMessageChunk(content=text, response_metadata=names))

    def last_chunk(self) -> ChatGenerationChunk:
        """The end of a stream: what was held back, the usage and the rest of the metadata."""
        seen = self._reader.decoder.seen
        text = self._cutter.finish()
        self._output.append(text)
        usage, source = self._usage(seen.usage, "".join(self._output))
        metadata = {} if self._named else self._names(seen.model)
        reason = "stop" if self.stopped else seen.finish_reason
        metadata |= self._metadata(reason, seen.id, seen.created, source)
        return ChatGenerationChunk(
            message=AIMessageChunk(
                content=text,
                usage_metadata=usage,
                response_metadata=metadata,
                chunk_position="last",
            )
        )

    @property
    def _reader(self) -> TextReader:
        reader: Any = self.call.reader
        return reader  # type: ignore[no-any-return]  # a stream's call is read by a TextReader

    def _names(self, model: str | None) -> dict[str, Any]:
        return {"model_name": model or self.model, "model_provider": PROVIDER}

    def _metadata(
        self, reason: str | None, id_: str | None, created: int | None, usage_source: str
    ) -> dict[str, Any]:
        metadata: dict[str, Any] = {"finish_reason": reason, "usage_source": usage_source}
        headers: Mapping[str, str] = self.call.head.headers if self.call.head else {}
        known = {
            "id": id_,
            "created": created,
            "request_id": headers.get("x-request-id"),
            "rate_limit": read_rate_limit(headers, time.time()),
            "retries": self.call.retries,
            "waited": round(self.call.waited, 3),
        }
        return metadata | {name: value for name, value in known.items() if value}

    def _usage(self, counts: dict[str, int] | None, output: str) -> tuple[UsageMetadata, str]:
        """Token counts, and whether they are the service's or an estimate."""
        known = _whole_usage(counts or {})
        if known is not None:
            return known, "service"
        asked = sum(count_tokens(text) + TOKENS_A_TURN for text in self.prompt)
        answered = count_tokens(output)
        usage = UsageMetadata(
            input_tokens=asked, output_tokens=answered, total_tokens=asked + answered
        )
        return usage, "estimated"


def _whole_usage(counts: dict[str, int]) -> UsageMetadata | None:
    """The service's counts, if they tell the tokens in and out."""
    asked, answered = counts.get("prompt_tokens"), counts.get("completion_tokens")
    total = counts.get("total_tokens")
    if asked is None and None not in (answered, total):
        asked = total - answered  # type: ignore[operator]  # neither is None here
    if answered is None and None not in (asked, total):
        answered = total - asked  # type: ignore[operator]  # neither is None here
    if asked is None or answered is None or asked < 0 or answered < 0:
        return None
    total = asked + answered if total is None else total
    return UsageMetadata(input_tokens=asked, output_tokens=answered, total_tokens=total)
