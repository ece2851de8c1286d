"""A real model behind the sandbox: any OpenAI-compatible server, in the service's own contract.

It answers the chats of both interfaces; the rules answer everything else. Its failures become the
documented statuses, in texts that hold neither its key nor its address. The terminal and the
inspector show its own error text.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx

from .log import ServedExchange
from .prompts import Messages, count_tokens
from .wire import ChatAnswer, Problem, is_loopback, require_ascii

# A model on a small machine thinks for minutes.
_TIMEOUT = httpx.Timeout(600.0, connect=5.0)
_CHECK_TIMEOUT = 3.0  # seconds
_LONGEST_NOTE = 300
# Its status -> ours; 500 for all others. A wrong key or name is a mistake of the user who started
# the sandbox, not of the client that sends requests to it.
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
        model: The model to request from it, whichever model the client names.
        api_key: Its key, if it needs one.
        allow_http: Permit plain http to other machines.

    Raises:
        ValueError: The address, the model or the key cannot be one.
    """

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    allow_http: bool = False

    def __post_init__(self) -> None:
        url = urlsplit(self.url)
        scheme = url.scheme
        if scheme not in {"http", "https"} or not url.hostname or "@" in url.netloc:
            raise ValueError(
                "upstream: expected an address such as http://127.0.0.1:11434/v1."
            )
        is_readable = scheme == "http" and not is_loopback(url.hostname)
        if is_readable and not self.allow_http:
            raise ValueError(
                f"upstream: plain http to {url.hostname} would send prompts and key in the "
                "clear. Use https, or allow it (--upstream-allow-http, allow_http=True)."
            )
        require_ascii("upstream model", self.model)
        if self.api_key is not None:
            require_ascii("upstream key", self.api_key)

    def trouble(self) -> str:
        """Why it will not answer, in one line; empty where it lists models. Sends one request."""
        try:
            with httpx.Client(
                **self._client_options(), timeout=_CHECK_TIMEOUT
            ) as client:
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
        messages: Messages,
        options: Mapping[str, object],
        exchange: ServedExchange,
        charge: Callable[[ChatAnswer], None],
        *,
        streams: bool,
    ) -> ChatAnswer:
        """Return its answer; a streamed one grows while its pieces are read.

        `charge` is called once, when the answer's tokens are known.
        """
        body = {"model": self.model, "messages": messages, **options, "stream": streams}
        prompt_tokens = sum(count_tokens(message["content"]) for message in messages)
        answer = _GrowingAnswer(f"upstream:{self.model}", prompt_tokens=prompt_tokens)
        if streams:
            body["stream_options"] = {"include_usage": True}
            pieces = self._stream(exchange, body, answer, charge)
            await anext(pieces)
            answer.pieces = pieces
            return answer
        async with self._send(exchange, body) as response:
            answer.add_chunk(_parse_json(await response.aread()), "message")
        charge(answer)
        return answer

    async def _stream(
        self,
        exchange: ServedExchange,
        body: Mapping[str, object],
        answer: _GrowingAnswer,
        charge: Callable[[ChatAnswer], None],
    ) -> AsyncIterator[str]:
        """Yield an empty text when the answer begins, then each text as it comes."""
        async with self._send(exchange, body) as response:
            yield ""
            try:
                async for line in response.aiter_lines():
                    data = line.removeprefix("data:").strip()
                    if not line.startswith("data:") or data == "[DONE]":
                        continue
                    text = answer.add_chunk(_parse_json(data), "delta")
                    if text:
                        yield text
            finally:  # when the client has left, too
                charge(answer)

    def _client_options(self) -> dict[str, Any]:
        headers = {}
        if self.api_key:
            headers["authorization"] = f"Bearer {self.api_key}"
        return {
            "headers": headers,
            # A proxy is no way to this machine, and plain http needs no certificates.
            "trust_env": not is_loopback(urlsplit(self.url).hostname or ""),
            "verify": self.url.startswith("https"),
        }

    @asynccontextmanager
    async def _send(
        self, exchange: ServedExchange, body: Mapping[str, object]
    ) -> AsyncIterator[httpx.Response]:
        exchange.upstream = self.model
        address = f"{self.url.rstrip('/')}/chat/completions"
        try:
            async with (
                httpx.AsyncClient(**self._client_options(), timeout=_TIMEOUT) as client,
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
        message = " ".join(response.text.split())[:_LONGEST_NOTE]
        if self.api_key:
            message = message.replace(self.api_key, "***")
        exchange.note = f"upstream: {response.status_code} {message}"
        status = _STATUSES.get(response.status_code, 500)
        headers = {}
        wait = response.headers.get("retry-after", "")
        if status == HTTPStatus.TOO_MANY_REQUESTS and wait.isdecimal():
            headers["retry-after"] = wait
        return Problem(status, _MESSAGES[status], headers=headers)


@dataclass
class _GrowingAnswer(ChatAnswer):
    """An answer that grows while it is read."""

    _thinking: bool = False

    def add_chunk(self, value: object, field_name: str) -> str:
        """Add a chunk or a whole answer, and return its text."""
        if not isinstance(value, dict) or value.get("error"):
            raise Problem(500, _MESSAGES[500])
        text = ""
        match value.get("choices"):
            case [{**choice}, *_]:
                message = choice.get(field_name)
                if isinstance(message, dict):
                    text = self._text_of(message)
                if choice.get("finish_reason"):
                    self.finish_reason = str(choice["finish_reason"])
            case _ if field_name == "message":
                raise Problem(500, _MESSAGES[500])
        self.text += text
        # Counted by our own rule, until the usage says how many there were.
        self.completion_tokens += count_tokens(text)
        match value.get("usage"):
            case {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}:
                self.prompt_tokens = prompt
                self.completion_tokens = completion
        return text

    def _text_of(self, message: Mapping[str, object]) -> str:
        # The contract has one text, so thoughts stand in it as most models write them themselves.
        thought = message.get("reasoning_content") or message.get("reasoning")
        content = message.get("content")
        text = ""
        if isinstance(thought, str) and thought:
            if not self._thinking:
                text += "<think>"
            text += thought
            self._thinking = True
        if isinstance(content, str) and content:
            if self._thinking:
                text += "</think>"
            text += content
            self._thinking = False
        return text


def _parse_json(text: str | bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Problem(500, _MESSAGES[500]) from None
