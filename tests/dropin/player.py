"""A loopback server that plays scripted answers: as the service writes them, and as OpenAI does.

    with Play([calls(("add", {"a": 1, "b": 2})), "It is 3."]) as play:
        create_agent(play.svc(), [add]).invoke(...)
        play.requests  # the bodies that arrived

`play.svc()` is a ChatSvc that gets calls as the text a model writes, `play.openai()` a ChatOpenAI
that gets the same calls natively. So a program can be compared on the two.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from langchain_svc import ChatSvc

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
INTERFACE = "DROPIN_INTERFACE"  # in the environment: the one that `play.svc()` asks
PIECE = 7  # characters of a streamed piece


@dataclass(frozen=True)
class Answer:
    """What a model says, and the tools that it calls: names and arguments, also as raw text."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()

    def written(self) -> str:
        blocks = [
            f'<tool_call>\n{{"name": "{name}", "arguments": {_json(arguments)}}}\n</tool_call>'
            for name, arguments in self.calls
        ]
        return "\n".join([self.text, *blocks] if self.text else blocks)


def calls(*these: tuple[str, Any], text: str = "") -> Answer:
    return Answer(text, these)


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


Script = Iterable["str | Answer | int"] | Callable[[str], "str | Answer"]


class Play:
    """Gives the answers in order; a number is the status of an error.

    A function makes each answer from all the text of the request.
    """

    def __init__(self, script: Script) -> None:
        self._answers = None if callable(script) else iter(list(script))
        self._script = script
        self.interface = os.environ.get(INTERFACE, "v1")
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.other: list[dict[str, Any]] = []  # what came to other addresses

    def __enter__(self) -> Self:
        play = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path.endswith(("/chat/completions", "/api/chat")):
                    status, kind, data = play._reply(body, native="/openai/" in self.path)
                else:
                    play.other.append(body)
                    status, kind, data = 200, "application/json", b"{}"
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_PATCH = do_POST  # noqa: N815

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def svc(self, **words: Any) -> ChatSvc:
        if self.interface == "general":
            where = {"interface": "general", "base_url": self.url}
        else:
            where = {"base_url_v1": f"{self.url}/v1"}
        given = {"model": "svc-pro", "api_key": "k", **where}
        return ChatSvc(**{**given, "max_retries": 0, **words})

    def openai(self, **words: Any) -> Any:
        from langchain_openai import ChatOpenAI

        given = {"model": "gpt-4o-mini", "api_key": "k", "base_url": f"{self.url}/openai/v1"}
        return ChatOpenAI(**{**given, "max_retries": 0, **words})

    @property
    def asked(self) -> list[str]:
        """All the text of each request."""
        return [_text(body) for body in self.requests]

    def _reply(self, body: dict[str, Any], *, native: bool) -> tuple[int, str, bytes]:
        with self._lock:
            self.requests.append(body)
            if self._answers is None:
                answer = self._script(_text(body))
            else:
                answer = next(self._answers, None)
        if answer is None or isinstance(answer, int):
            error = {"error": {"message": "The script has no answer", "type": "script"}}
            return answer or 400, "application/json", json.dumps(error).encode()
        answer = Answer(answer) if isinstance(answer, str) else answer
        text, tools = (answer.text, self._native(answer)) if native else (answer.written(), [])
        reason = "tool_calls" if tools else "stop"
        if "message" in body:
            return _general_reply(text, stream=body.get("stream", False))
        head = {"id": f"chatcmpl-{next(self._ids)}", "created": 0, "model": body["model"]}
        if not body.get("stream"):
            message = {"role": "assistant", "content": text}
            message |= {"tool_calls": tools} if tools else {}
            choice = {"message": message, "finish_reason": reason}
            choices = [{"index": index, **choice} for index in range(body.get("n") or 1)]
            usage = {name: count * len(choices) for name, count in USAGE.items()}
            whole = {**head, "object": "chat.completion", "choices": choices, "usage": usage}
            return 200, "application/json", json.dumps(whole).encode()
        deltas = [{"role": "assistant", "content": piece} for piece in _pieces(text)]
        for index, tool in enumerate(tools):
            function = tool["function"]
            begun = {**tool, "index": index, "function": {**function, "arguments": ""}}
            written = [{"arguments": piece} for piece in _pieces(function["arguments"])]
            later = [{"index": index, "function": piece} for piece in written]
            deltas += [{"tool_calls": [piece]} for piece in (begun, *later)]
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": reason})
        chunk = {**head, "object": "chat.completion.chunk"}
        events = [{**chunk, "choices": [choice]} for choice in choices]
        events.append({**chunk, "choices": [], "usage": USAGE})
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        return 200, "text/event-stream", lines.encode()

    def _native(self, answer: Answer) -> list[dict[str, Any]]:
        return [
            {
                "id": f"call_{next(self._ids)}",
                "type": "function",
                "function": {"name": name, "arguments": _json(arguments)},
            }
            for name, arguments in answer.calls
        ]


def _pieces(text: str) -> list[str]:
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]


def _general_reply(text: str, *, stream: bool) -> tuple[int, str, bytes]:
    """An answer of the general interface: one object, or a line for each piece."""
    if not stream:
        whole = {"success": True, "response": text, "model": "svc-pro", "tokens": 15}
        return 200, "application/json", json.dumps(whole).encode()
    lines = [{"response": piece, "done": False} for piece in _pieces(text)]
    lines.append({"response": "", "done": True, "tokens": 15})
    return 200, "application/x-ndjson", "".join(json.dumps(x) + "\n" for x in lines).encode()


def _text(body: dict[str, Any]) -> str:
    if "message" in body:
        return body["message"]
    contents = (message.get("content") or "" for message in body["messages"])
    return "\n".join(c if isinstance(c, str) else json.dumps(c) for c in contents)


def on_both(script: Script, run: Callable[[Any], Any], *, as_many: bool = True) -> tuple[Any, Play]:
    """What `run(model)` gives on ChatSvc; on ChatOpenAI it must be the same, at as many requests."""
    results = []
    for make in (Play.svc, Play.openai):
        with Play(script) as play:
            results.append((run(make(play)), play))
    (ours, our_play), (theirs, their_play) = results
    same(ours, theirs)
    if as_many:
        same(len(our_play.requests), len(their_play.requests))
    return ours, our_play


def same(got: Any, wanted: Any) -> None:
    if got != wanted:
        raise AssertionError(f"{got!r} is not {wanted!r}")
