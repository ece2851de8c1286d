"""Those who are compared: ChatSvc, three peers, and what the floor is made of.

Each is made of the server's address and the name of the answer it will get, and has LangChain's
methods. Imports are inside: a process imports only the contestant that it runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

OURS = "ChatSvc"
BEFORE = "ChatSvc before"  # of another checkout
PEERS = ("ChatOpenAI", "ChatMistralAI", "ChatGroq")
HTTPX, CORE = "httpx", "core"

IMPORTS: Mapping[str, str] = {
    OURS: "langchain_svc.ChatSvc",
    BEFORE: "langchain_svc.ChatSvc",
    "ChatOpenAI": "langchain_openai.ChatOpenAI",
    "ChatMistralAI": "langchain_mistralai.ChatMistralAI",
    "ChatGroq": "langchain_groq.ChatGroq",
}


def prompted(name: str) -> bool:
    """Whether a contestant's calls of tools are text."""
    return name in {OURS, BEFORE}


def prepare(name: str) -> None:
    """Before anything of a contestant is imported: where it is."""
    if name == BEFORE:
        sys.path.insert(0, os.environ["BENCH_BEFORE"])


def make(name: str, address: str, answer: str) -> Any:
    """A contestant whose every call gets the answer of that name."""
    return _MAKERS[name](f"{address}/{answer}")


def _svc(url: str) -> Any:
    from langchain_svc import ChatSvc

    return ChatSvc(
        model="svc-pro", api_key="bench-key-0123456789", base_url_v1=f"{url}/v1"
    )


def _openai(url: str) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model="svc-pro", api_key="bench-key-0123456789", base_url=f"{url}/v1"
    )


def _mistral(url: str) -> Any:
    from langchain_mistralai import ChatMistralAI

    return ChatMistralAI(
        model="svc-pro", api_key="bench-key-0123456789", base_url=f"{url}/v1"
    )


def _groq(url: str) -> Any:
    from langchain_groq import ChatGroq

    return ChatGroq(model="svc-pro", api_key="bench-key-0123456789", base_url=url)


class _Httpx:
    """The least that a client on httpx can do: the answer's text, and no more care than that."""

    def __init__(self, url: str) -> None:
        import httpx

        self._url = f"{url}/v1/chat/completions"
        self._sync = httpx.Client(timeout=60)
        limits = httpx.Limits(max_connections=1024, max_keepalive_connections=1024)
        self._async = httpx.AsyncClient(timeout=60, limits=limits)

    def bind_tools(self, tools: list[Any]) -> _Httpx:
        del tools
        return self

    @staticmethod
    def _body(question: str, *, stream: bool = False) -> dict[str, Any]:
        turn = {"role": "user", "content": question}
        return {"model": "svc-pro", "messages": [turn], "stream": stream}

    def invoke(self, question: str) -> Any:
        response = self._sync.post(self._url, json=self._body(question))
        return response.raise_for_status().json()["choices"][0]["message"]["content"]

    async def ainvoke(self, question: str) -> Any:
        response = await self._async.post(self._url, json=self._body(question))
        return response.raise_for_status().json()["choices"][0]["message"]["content"]

    def stream(self, question: str) -> Iterator[Any]:
        held = b""
        body = self._body(question, stream=True)
        with self._sync.stream("POST", self._url, json=body) as response:
            for data in response.iter_raw():
                *lines, held = (held + data).split(b"\n")
                yield from _deltas(lines)

    async def astream(self, question: str) -> AsyncIterator[Any]:
        held = b""
        body = self._body(question, stream=True)
        async with self._async.stream("POST", self._url, json=body) as response:
            async for data in response.aiter_raw():
                *lines, held = (held + data).split(b"\n")
                for delta in _deltas(lines):
                    yield delta

    def batch(self, questions: list[str], config: dict[str, Any]) -> list[Any]:
        with ThreadPoolExecutor(config["max_concurrency"]) as pool:
            return list(pool.map(self.invoke, questions))

    async def abatch(self, questions: list[str]) -> list[Any]:
        return await asyncio.gather(*map(self.ainvoke, questions))


def _deltas(lines: list[bytes]) -> Iterator[Any]:
    for line in lines:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])["choices"][0]["delta"]


def _core(url: str) -> Any:
    from .least import Least

    kind, _, size = url.rpartition("/")[2].partition("-")
    return Least(kind=kind, size=int(size))


_MAKERS: dict[str, Callable[[str], Any]] = {
    OURS: _svc,
    BEFORE: _svc,
    "ChatOpenAI": _openai,
    "ChatMistralAI": _mistral,
    "ChatGroq": _groq,
    HTTPX: _Httpx,
    CORE: _core,
}
