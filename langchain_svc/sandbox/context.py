"""What an endpoint gets: the request's circumstances, and who answers a chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from . import answers
from .answers import ChatAnswer
from .limits import Meter
from .log import ServedExchange
from .models import MODELS
from .prompts import Messages
from .scripted import Script
from .upstream import Upstream
from .wire import Problem

LARGE = 64_000  # characters; above that the rules run in a thread


@dataclass(frozen=True)
class Settings:
    """The arguments of a sandbox that its parts need."""

    plan: str
    api_key: str
    medical_api_key: str
    stream_format: str | None
    stream_usage: bool
    pace: float
    strict: bool
    clock: Callable[[], float]
    upstream: Upstream | None


@dataclass(frozen=True)
class RequestContext:
    """What the sandbox knows about an admitted request beside its body.

    The `id` is the same for the same requests in the same order, and unique within a sandbox.
    """

    id: str
    now: float
    settings: Settings
    stream_format: str
    meter: Meter
    exchange: ServedExchange
    script: Script

    @property
    def timestamp(self) -> str:
        """The time as ISO 8601 in UTC, to the millisecond."""
        moment = datetime.fromtimestamp(self.now, tz=UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    async def answer_chat(
        self,
        messages: Messages,
        model: str,
        options: Mapping[str, object],
        *,
        max_tokens: int | None = None,
        streams: bool,
    ) -> ChatAnswer:
        """Answer a chat: by the test's script, else by the upstream, else by the rules."""
        if model not in MODELS:
            reason = "There is no such model; GET models lists all."
            raise Problem(404, reason, code="model_not_found")
        if sum(len(message["content"]) for message in messages) > LARGE:
            answer = await asyncio.to_thread(
                self._answer_here, messages, model, max_tokens
            )
        else:
            answer = self._answer_here(messages, model, max_tokens)
        if answer is None:
            if max_tokens is not None:
                options = {**options, "max_tokens": max_tokens}
            return await self._answer_upstream(messages, options, streams=streams)
        window = MODELS[model].max_tokens
        if answer.prompt_tokens > window:
            reason = (
                f"The prompt has {answer.prompt_tokens} tokens; {model} takes {window}."
            )
            raise Problem(400, reason, code="context_length_exceeded")
        self._charge(answer)
        self.exchange.answer = answer
        return answer

    def _answer_here(
        self, messages: Messages, model: str, max_tokens: int | None
    ) -> ChatAnswer | None:
        """The answer of the script or of the rules; None where the upstream is to answer."""
        text = self.script.rest_of_cut(messages)
        if text is None:
            text = self.script.next_text(self.exchange.received, messages)
        if text is None and self.settings.upstream is not None:
            return None
        if text is None:
            text = answers.compose(messages, model)
        answer = answers.cut_answer(text, messages, model, max_tokens)
        if answer.finish_reason == "length":
            self.script.remember_cut(text)
        return answer

    async def _answer_upstream(
        self, messages: Messages, options: Mapping[str, object], *, streams: bool
    ) -> ChatAnswer:
        assert self.settings.upstream is not None  # noqa: S101 - else the rules have answered
        answer = await self.settings.upstream.answer(
            messages, options, self.exchange, self._charge, streams=streams
        )
        self.exchange.answer = answer
        return answer

    def _charge(self, answer: ChatAnswer) -> None:
        self.meter.charge(answer.total_tokens)
        self.exchange.tokens = (answer.prompt_tokens, answer.completion_tokens)
