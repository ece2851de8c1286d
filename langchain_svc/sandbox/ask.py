"""What an endpoint gets: the request's circumstances, and who answers a chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from langchain_svc.sandbox import answers
from langchain_svc.sandbox.answers import ChatAnswer
from langchain_svc.sandbox.limits import Meter
from langchain_svc.sandbox.log import ServedExchange
from langchain_svc.sandbox.models import MODELS
from langchain_svc.sandbox.scripted import Script
from langchain_svc.sandbox.upstream import Upstream
from langchain_svc.sandbox.wire import Problem

Messages = Sequence[Mapping[str, str]]

LARGE = 64_000  # characters that take the rules longer than a blink


@dataclass(frozen=True)
class Settings:
    """What a sandbox was asked to be."""

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
class Ask:
    """What the sandbox knows around an admitted request.

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
        moment = datetime.fromtimestamp(self.now, tz=timezone.utc)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    async def chat(
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
            why = "There is no such model; GET models lists all."
            raise Problem(404, why, code="model_not_found")
        large = sum(len(message["content"]) for message in messages) > LARGE
        given = (messages, model, max_tokens)
        answer = (
            await asyncio.to_thread(self._own, *given) if large else self._own(*given)
        )
        if answer is None:
            limit = {} if max_tokens is None else {"max_tokens": max_tokens}
            assert self.settings.upstream is not None  # noqa: S101 - else the rules have answered
            live = await self.settings.upstream.answer(
                messages,
                {**options, **limit},
                self.exchange,
                self._charge,
                streams=streams,
            )
            self.exchange.answer = live
            return live
        window = MODELS[model].max_tokens
        if answer.prompt_tokens > window:
            why = (
                f"The prompt has {answer.prompt_tokens} tokens; {model} takes {window}."
            )
            raise Problem(400, why, code="context_length_exceeded")
        self._charge(answer)
        self.exchange.answer = answer
        return answer

    def _own(
        self, messages: Messages, model: str, max_tokens: int | None
    ) -> ChatAnswer | None:
        text = self.script.rest(messages)
        if text is None:
            text = self.script.text(self.exchange.received, messages)
        if text is None and self.settings.upstream is not None:
            return None
        if text is None:
            text = answers.composed(messages, model)
        answer = answers.cut(text, messages, model, max_tokens)
        if answer.finish_reason == "length":
            self.script.remember(text)
        return answer

    def _charge(self, answer: ChatAnswer) -> None:
        self.meter.charge(answer.total_tokens)
        self.exchange.tokens = (answer.prompt_tokens, answer.completion_tokens)
