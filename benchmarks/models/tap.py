"""Everything that a model is asked and answers, as it was: a recorder between its server and us."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import httpx

_TIMEOUT = 580.0  # seconds; less than the sandbox waits, so that it is known who failed
_NOT_THE_MODELS = (401, 403, 429, 502, 503, 504)


class UnreachableError(Exception):
    """The server does not answer, or refuses whoever asks: no answer of the model."""


@dataclass(frozen=True)
class Exchange:
    """One request as the model's server got it, and its answer.

    Attributes:
        sent: The body, without the name of the model.
        status: Of the answer.
        answer: The model's message, or what the server said in its place.
        finish: The finish reason.
        prompt_tokens: Of the request, as the server counted.
        cached_tokens: Those of them that it had read before.
        answer_tokens: Of the answer.
    """

    sent: dict[str, Any]
    status: int
    answer: Any
    finish: str | None
    prompt_tokens: int | None
    cached_tokens: int | None
    answer_tokens: int | None

    @property
    def text(self) -> str:
        """The text of the answer."""
        content = self.answer.get("content") if isinstance(self.answer, dict) else None
        return content if isinstance(content, str) else ""

    def as_json(self) -> dict[str, Any]:
        """It, as it is kept."""
        return asdict(self)


class Tap:
    """A server on loopback that hands each chat on to another, and remembers it.

    Args:
        upstream: Address of an OpenAI-compatible server, with its `/v1`.
        key: The key that it needs, if any.
    """

    def __init__(self, upstream: str, key: str | None = None) -> None:
        self._upstream = upstream.rstrip("/")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        local = httpx.URL(upstream).host in {"127.0.0.1", "localhost", "::1"}
        self._client = httpx.Client(
            headers=headers, timeout=_TIMEOUT, trust_env=not local
        )
        self._exchanges: list[Exchange] = []
        self._broken = ""
        self._planted: list[str] = []
        self._counts: dict[str, int | None] = {}
        tap = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status, answer = tap.forward(body)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._client.close()

    def forward(self, body: bytes) -> tuple[int, bytes]:
        """Ask the model's server, and remember both."""
        sent = {k: v for k, v in json.loads(body).items() if k != "model"}
        if self._planted:
            return 200, self._answer_planted(sent)
        try:
            response = self._client.post(
                f"{self._upstream}/chat/completions",
                content=body,
                headers={"content-type": "application/json"},
            )
        except httpx.HTTPError as error:
            self._broken = f"{type(error).__name__}: {error}"
            return 502, b'{"error": {"message": "the server does not answer"}}'
        if response.status_code in _NOT_THE_MODELS:
            self._broken = f"status {response.status_code}"
        self._exchanges.append(_exchange(sent, response))
        return response.status_code, response.content

    def plant(self, answer: str) -> None:
        """Answer the next chat so, without the model."""
        self._planted = [answer]

    def _answer_planted(self, sent: dict[str, Any]) -> bytes:
        answer = {"role": "assistant", "content": self._planted.pop()}
        self._exchanges.append(Exchange(sent, 200, answer, "stop", None, None, None))
        choice = {"index": 0, "message": answer, "finish_reason": "stop"}
        return json.dumps({"choices": [choice]}).encode()

    def exchanges(self) -> list[Exchange]:
        """Those that nobody has taken yet."""
        return list(self._exchanges)

    def take(self) -> list[Exchange]:
        """The exchanges since the last time.

        Raises:
            UnreachableError: One of them failed for a reason that is not the model's.
        """
        broken, self._broken = self._broken, ""
        taken, self._exchanges = self._exchanges, []
        self._planted = []
        if broken:
            raise UnreachableError(f"{self._upstream} gave no answer: {broken}")
        return taken

    def count_tokens(self, text: str) -> int | None:
        """How many tokens a text has, if the server has llama.cpp's /tokenize."""
        if text not in self._counts:
            address = self._upstream.removesuffix("/v1") + "/tokenize"
            try:
                answer = self._client.post(address, json={"content": text}).json()
                self._counts[text] = len(answer["tokens"])
            except (httpx.HTTPError, ValueError, KeyError, TypeError):
                self._counts[text] = None
        return self._counts[text]


def _exchange(sent: dict[str, Any], response: httpx.Response) -> Exchange:
    try:
        body = response.json()
    except ValueError:
        body = {}
    choices = body.get("choices") or [{}]
    usage = body.get("usage") or {}
    return Exchange(
        sent,
        response.status_code,
        choices[0].get("message", response.text),
        choices[0].get("finish_reason"),
        usage.get("prompt_tokens"),
        (usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
        usage.get("completion_tokens"),
    )
