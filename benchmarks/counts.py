"""Counts the calls of this package's functions: a check of speed that does not depend on time.

    python -m benchmarks counts              # the counts
    python -m benchmarks counts --check      # compares them with counts.json; part of .ci/run
    python -m benchmarks counts --update     # writes counts.json anew

Only functions of the package are counted, so that a new version of a dependency changes nothing.
Answers come from a script, cut where the script says, so that every run counts the same. Python
3.12 and later call fewer functions for the same code (comprehensions are no functions any more);
the committed counts are those of the oldest Python, and a count may be less.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from langchain_core.messages import AIMessage, HumanMessage

import langchain_svc
from langchain_svc import ChatSvc

_PACKAGE = str(Path(langchain_svc.__file__).parent) + os.sep
_COMMITTED = Path(__file__).with_name("counts.json")
# A call or two more is no regression, and nor is a twentieth.
_ALLOWED_MORE, _ALLOWED_SHARE = 2, 1.05
_QUESTION = "What is the weather in Oslo?"

Counts = dict[str, dict[str, float]]
"""Calls of each module, of each thing that was counted."""


# -- answers that are there before they are asked for --------------------------------------------


def _event(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    chunk = {
        "id": "1",
        "object": "chat.completion.chunk",
        "model": "svc-pro",
        "choices": [choice],
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _events(texts: list[str], a_read: int) -> list[bytes]:
    events = [_event({"content": text}) for text in texts]
    reads = [b"".join(events[at : at + a_read]) for at in range(0, len(events), a_read)]
    return [*reads, _event({}, "stop") + b"data: [DONE]\n\n"]


def _words(count: int) -> list[str]:
    return [f" word{at % 1000}" for at in range(count)]


def _call_of(size: int) -> str:
    rows = json.dumps({"rows": ['He said "no" to 17 dogs. '] * (size // 30)})
    return f'<tool_call>\n{{"name": "save", "arguments": {rows}}}\n</tool_call>'


def _pieces(text: str) -> list[str]:
    return [text[at : at + 12] for at in range(0, len(text), 12)]


_USAGE = {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}
_MESSAGE = {"role": "assistant", "content": "It rains."}
_CHOICE = {"index": 0, "message": _MESSAGE, "finish_reason": "stop"}
_WHOLE = [
    json.dumps(
        {"id": "1", "model": "svc-pro", "choices": [_CHOICE], "usage": _USAGE}
    ).encode()
]


class _Reads(httpx.SyncByteStream, httpx.AsyncByteStream):
    def __init__(self, reads: list[bytes]) -> None:
        self._reads = reads

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._reads)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for data in self._reads:
            yield data


def _model(reads: list[bytes], **words: Any) -> ChatSvc:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=_Reads(reads))

    transport = httpx.MockTransport(answer)
    return ChatSvc(
        api_key="counted-key-0123456789",
        base_url_v1="http://127.0.0.1:9/v1",
        http_client=httpx.Client(transport=transport),
        http_async_client=httpx.AsyncClient(transport=transport),
        **words,
    )


# -- counting ------------------------------------------------------------------------------------


@contextmanager
def _counting(counts: Counter[str]) -> Iterator[None]:
    def count(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            counts[frame.f_code.co_filename[len(_PACKAGE) :].replace(os.sep, "/")] += 1

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)


def _count(work: Callable[[], Any], per: int = 1) -> dict[str, float]:
    """Calls of one run of `work`, by module, after a run that fills the caches."""
    work()
    counts: Counter[str] = Counter()
    with _counting(counts):
        work()
    return {module: round(calls / per, 2) for module, calls in sorted(counts.items())}


def _streaming(model: Any) -> Callable[[], None]:
    def work() -> None:
        for _ in model.stream(_QUESTION):
            pass

    return work


def _astreaming(model: Any) -> Callable[[], None]:
    async def read() -> None:
        async for _ in model.astream(_QUESTION):
            pass

    return lambda: asyncio.run(read())


def _tool(at: int) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"rows": {"type": "array"}}}
    function = {"name": "save" if at == 0 else f"tool{at}", "parameters": parameters}
    return {"type": "function", "function": {**function, "description": "Saves rows."}}


def _conversation(turns: int) -> list[Any]:
    return [HumanMessage("Why?"), AIMessage("Because.")] * (turns // 2) + [
        HumanMessage("And?")
    ]


def _count_stream(events: int, a_read: int) -> dict[str, float]:
    return _count(_streaming(_model(_events(_words(events), a_read))), events)


def _count_tool_call(size: int) -> dict[str, float]:
    reads = _events(_pieces(_call_of(size)), 64)
    return _count(_streaming(_model(reads).bind_tools([_tool(0)])), size // 1000)


def _count_conversation(turns: int) -> dict[str, float]:
    model, messages = _model(_WHOLE), _conversation(turns)
    return _count(lambda: model.invoke(messages), turns)


def _count_tools(count: int) -> dict[str, float]:
    bound = _model(_WHOLE).bind_tools([_tool(at) for at in range(count)])
    return _count(lambda: bound.invoke(_QUESTION))


def _count_batch(calls: int) -> dict[str, float]:
    model = _model(_WHOLE)
    return _count(lambda: asyncio.run(model.abatch([_QUESTION] * calls)), calls)


def _count_hops() -> dict[str, float]:
    """What a long stream gives to threads: its end, and each costs half as much as an event."""
    hops = 0

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal hops
        hops += event == "call" and frame.f_code.co_name == "submit"

    work = _astreaming(_model(_events(_words(2000), 1)))
    work()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return {"hops": float(hops)}


def _count_modules(what: str) -> dict[str, float]:
    code = (
        "import sys, langchain_core.language_models.chat_models, langchain_core.tools\n"
        "import langchain_core.output_parsers, langchain_core.outputs, httpx\n"
        f"known = set(sys.modules)\n{what}\n"
        "print(len(sys.modules.keys() - known))"
    )
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, check=True, capture_output=True, timeout=60)  # noqa: S603
    return {"modules": float(out.stdout)}


def measure() -> Counts:
    """Everything that is counted."""
    plain = _model(_WHOLE)
    words = {
        "api_key": "counted-key-0123456789",
        "base_url_v1": "http://127.0.0.1:9/v1",
    }
    return {
        "import langchain_svc": _count_modules("import langchain_svc"),
        "from langchain_svc import ChatSvc": _count_modules(
            "from langchain_svc import ChatSvc"
        ),
        "construct the next object": _count(lambda: ChatSvc(**words)),
        "invoke": _count(lambda: plain.invoke(_QUESTION)),
        "ainvoke": _count(lambda: asyncio.run(plain.ainvoke(_QUESTION))),
        "first chunk": _count(
            lambda: next(_model(_events(_words(2), 1)).stream(_QUESTION))
        ),
        "stream, 64 events a read, per event": _count_stream(6400, 64),
        "stream, one event a read, per event": _count_stream(1000, 1),
        "astream, one event a read, per event": _count(
            _astreaming(_model(_events(_words(1000), 1))), 1000
        ),
        "astream of 2,000 events, one a read: hops into threads": _count_hops(),
        "streamed tool call, per KB": _count_tool_call(100_000),
        "invoke in a conversation of 100, per message": _count_conversation(100),
        "invoke with 200 tools, bound before": _count_tools(200),
        "abatch, per call": _count_batch(100),
    }


@dataclass(frozen=True)
class Growth:
    """What must not grow with size: calls for one unit, of few and of many."""

    name: str
    few: Callable[[], dict[str, float]] = field(repr=False)
    many: Callable[[], dict[str, float]] = field(repr=False)


GROWTHS = (
    Growth("per event, 64 a read: 6,400 to 64,000 events", lambda: _count_stream(6400, 64),
           lambda: _count_stream(64_000, 64)),
    Growth("per event, one a read: 500 to 5,000 events", lambda: _count_stream(500, 1),
           lambda: _count_stream(5000, 1)),
    Growth("per KB of a streamed tool call: 10 to 100 KB", lambda: _count_tool_call(10_000),
           lambda: _count_tool_call(100_000)),
    Growth("per message of a conversation: 100 to 1,000", lambda: _count_conversation(100),
           lambda: _count_conversation(1000)),
    Growth("per call with bound tools: 2 to 200 tools", lambda: _count_tools(2),
           lambda: _count_tools(200)),
    Growth("per call of abatch: 10 to 1,000 calls", lambda: _count_batch(10),
           lambda: _count_batch(1000)),
)  # fmt: skip


# -- reporting -----------------------------------------------------------------------------------


def _total(counts: dict[str, float]) -> float:
    return sum(counts.values())


def check(counts: Counts, committed: Counts) -> list[str]:
    """What grew beyond what is allowed, one text for each."""
    problems = [
        f"{name}: counted, but not in {_COMMITTED.name}"
        for name in counts.keys() - committed
    ]
    problems += [
        f"{name}: in {_COMMITTED.name}, but not counted"
        for name in committed.keys() - counts
    ]
    for name in counts.keys() & committed.keys():
        now, before = _total(counts[name]), _total(committed[name])
        # Of what is counted per event a whole call more would be far too much.
        more = _ALLOWED_MORE if before >= 20 else 0
        if now > before * _ALLOWED_SHARE + more:
            grown = {
                module: change
                for module in counts[name]
                if (change := counts[name][module] - committed[name].get(module, 0)) > 0
            }
            told = ", ".join(
                f"{module} +{change:g}"
                for module, change in sorted(grown.items(), key=lambda item: -item[1])
            )
            problems.append(f"{name}: {now:g} calls, and {before:g} before: {told}")
    return sorted(problems)


def check_growth() -> list[str]:
    """What grows faster than its size."""
    problems = []
    for growth in GROWTHS:
        few, many = _total(growth.few()), _total(growth.many())
        if many > few * _ALLOWED_SHARE:
            problems.append(f"{growth.name}: {few:g} calls grew to {many:g}")
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    """Count; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks counts", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "--check", action="store_true", help="compare with what is committed"
    )
    parser.add_argument(
        "--update", action="store_true", help="commit what is counted now"
    )
    options = parser.parse_args(arguments)
    counts = measure()
    for name, found in counts.items():
        print(f"{_total(found):>8.2f}  {name}")
    if options.update:
        _COMMITTED.write_text(json.dumps(counts, indent=1) + "\n", "utf-8")
    if not options.check:
        return 0
    problems = check(counts, json.loads(_COMMITTED.read_text("utf-8"))) + check_growth()
    for problem in problems:
        print(f"GREW  {problem}")
    if problems:
        print("Make it cheaper, or say why it must cost more and run it with --update.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
