"""A real model behind the sandbox: any OpenAI-compatible server, in the service's own contract.

It answers the chats of both interfaces; all else stays with the rules. Its failures become the
documented statuses, in words that hold neither its key nor its address; what it said itself shows
in terminal and inspector.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx

from langchain_svc.sandbox.answers import ChatAnswer
from langchain_svc.sandbox.log import ServedExchange
from langchain_svc.sandbox.prompts import count_tokens
from langchain_svc.sandbox.wire import Problem, is_loopback

_TIMEOUT = httpx.Timeout(
    600.0, connect=5.0
)  # a model on a small machine thinks for minutes
_CHECK_TIMEOUT = 3.0  # seconds
_LONGEST_NOTE = 300
# Its status -> ours. A wrong key or name is a mistake of whoever started the sandbox, not of the
# client that asks it.
_STATUSES = {400: 400, 413: 400, 422: 400, 429: 429, 502: 503, 503: 503, 504: 503}
_MESSAGES = {
    400: "The model behind the sandbox refused the request.",
    429: "The model behind the sandbox has too many requests.",
    500: "The model behind the sandbox failed.",
    503: "The model behind the sandbox cannot be reached.",
}


@dataclass(frozen=True)
class Upstream:
    """An OpenAI-compatible server that answers in the place of the sandbox's rules.

    Attributes:
        url: Its base address, such as `http://127.0.0.1:11434/v1`.
        model: The model that it is asked for, whichever the client names.
        api_key: Its key, if it wants one.
        allow_http: Permit plain http to other machines.

    Raises:
        ValueError: The address, the model or the key cannot be one.
    """

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    allow_http: bool = False

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if (
            parts.scheme not in {"http", "https"}
            or not parts.hostname
            or "@" in parts.netloc
        ):
            raise ValueError(
                "upstream: expected an address such as http://127.0.0.1:11434/v1."
            )
        if (
            parts.scheme == "http"
            and not self.allow_http
            and not is_loopback(parts.hostname)
        ):
            raise ValueError(
                f"upstream: plain http to {parts.hostname} would send prompts and key in the "
                "clear. Use https, or allow it (--upstream-allow-http, allow_http=True)."
            )
        for name, value in (("model", self.model), ("key", self.api_key)):
            if value is not None and (
                not value or not value.isascii() or not value.isprintable()
            ):
                raise ValueError(
                    f"upstream {name}: expected printable ASCII that is not empty."
                )

    def trouble(self) -> str:
        """Why it will not answer, in one line; empty where it lists models. It is asked once."""
        try:
            with httpx.Client(**self._reached(), timeout=_CHECK_TIMEOUT) as client:
                response = client.get(f"{self.url.rstrip('/')}/models")
        except httpx.HTTPError as error:
            return f"{self.url} does not answer ({error or type(error).__name__}): is it running?"
        match response.status_code:
            case 401 | 403 as status:
                return f"{self.url} answers {status}: --upstream-key-env names the key's variable"
            case status if status != httpx.codes.OK:
                return f"{self.url} answers {status} to GET /models: is that its base address?"
        return ""

    async def answer(
        self,
        messages: Sequence[Mapping[str, str]],
        options: Mapping[str, object],
        exchange: ServedExchange,
        charge: Callable[[ChatAnswer], None],
        *,
        streams: bool,
    ) -> ChatAnswer:
        """Its answer; one that streams has begun and goes on while its pieces are taken.

        `charge` is called once, when the answer's tokens are known.
        """
        body = {"model": self.model, "messages": messages, **options, "stream": streams}
        asked = sum(count_tokens(message["content"]) for message in messages)
        answer = _GrowingAnswer(model=f"upstream:{self.model}", prompt_tokens=asked)
        if streams:
            body["stream_options"] = {"include_usage": True}
            pieces = self._pieces(exchange, body, answer, charge)
            await anext(pieces)
            answer.pieces = pieces
            return answer
        async with self._asked(exchange, body) as response:
            answer.take(_parsed(await response.aread()), "message")
        charge(answer)
        return answer

    async def _pieces(
        self,
        exchange: ServedExchange,
        body: Mapping[str, object],
        answer: _GrowingAnswer,
        charge: Callable[[ChatAnswer], None],
    ) -> AsyncIterator[str]:
        """An empty text when it has begun, then each text as it comes."""
        async with self._asked(exchange, body) as response:
            yield ""
            try:
                async for line in response.aiter_lines():
                    data = line.removeprefix("data:").strip()
                    if not line.startswith("data:") or data == "[DONE]":
                        continue
                    if text := answer.take(_parsed(data), "delta"):
                        yield text
            finally:  # when the client has left, too
                charge(answer)

    def _reached(self) -> dict[str, Any]:
        # Proxies are for what is elsewhere, and plain http needs no certificates.
        return {
            "headers": {"authorization": f"Bearer {self.api_key}"}
            if self.api_key
            else {},
            "trust_env": not is_loopback(urlsplit(self.url).hostname or ""),
            "verify": self.url.startswith("https"),
        }

    @asynccontextmanager
    async def _asked(
        self, exchange: ServedExchange, body: Mapping[str, object]
    ) -> AsyncIterator[httpx.Response]:
        exchange.upstream = self.model
        address = f"{self.url.rstrip('/')}/chat/completions"
        try:
            async with (
                httpx.AsyncClient(**self._reached(), timeout=_TIMEOUT) as client,
                client.stream("POST", address, json=body) as response,
            ):
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise self._refusal(exchange, response)
                yield response
        except httpx.HTTPError as error:
            exchange.note = f"upstream: {type(error).__name__}"
            raise Problem(503, _MESSAGES[503]) from None

    def _refusal(self, exchange: ServedExchange, response: httpx.Response) -> Problem:
        said = " ".join(response.text.split())[:_LONGEST_NOTE]
        said = said.replace(self.api_key, "***") if self.api_key else said
        exchange.note = f"upstream: {response.status_code} {said}"
        status = _STATUSES.get(response.status_code, 500)
        wait = response.headers.get("retry-after", "")
        told = status == HTTPStatus.TOO_MANY_REQUESTS and wait.isdecimal()
        headers = {"retry-after": wait} if told else {}
        return Problem(status, _MESSAGES[status], headers=headers)


@dataclass
class _GrowingAnswer(ChatAnswer):
    """An answer that grows while it is read."""

    _thinking: bool = False

    def take(self, value: object, where: str) -> str:
        """Take a chunk or a whole answer in, and return its text."""
        if not isinstance(value, dict) or value.get("error"):
            raise Problem(500, _MESSAGES[500])
        text = ""
        match value.get("choices"):
            case [{**choice}, *_]:
                said = choice.get(where)
                text = self._said(said) if isinstance(said, dict) else ""
                self.finish_reason = str(
                    choice.get("finish_reason") or self.finish_reason
                )
            case _ if where == "message":
                raise Problem(500, _MESSAGES[500])
        self.text += text
        self.completion_tokens += count_tokens(
            text
        )  # until it says how many there were
        match value.get("usage"):
            case {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}:
                self.prompt_tokens, self.completion_tokens = prompt, completion
        return text

    def _said(self, said: Mapping[str, object]) -> str:
        # The contract has one text: thoughts stand in it as most models write them themselves.
        thought = said.get("reasoning_content") or said.get("reasoning")
        content, text = said.get("content"), ""
        if isinstance(thought, str) and thought:
            text = thought if self._thinking else f"<think>{thought}"
            self._thinking = True
        if isinstance(content, str) and content:
            text += f"</think>{content}" if self._thinking else content
            self._thinking = False
        return text


def _parsed(text: str | bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Problem(500, _MESSAGES[500]) from None
