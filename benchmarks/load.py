"""Many calls at once against a faulty service: nothing lost, nothing swapped, nothing left behind.

    python -m benchmarks load

The server runs in its own process and strikes a tenth of the requests by a seeded plan: statuses,
resets before and inside the answer, slow answers. Each prompt has an answer of its own, and the
plan tells which tries of which prompt fail. So the whole outcome is known beforehand, and every
line of the report compares: answers with prompts, requests with the server's record, and what the
process holds (descriptors, tasks, threads, memory) with what it held before.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import math
import random
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.load_server import PIECES, POISON, Server, right_answer, served
from langchain_svc import ChatSvc, SvcError

LOST = 0.05  # of a job's calls that may fail because their retries ran out
SENT = 1.5  # requests for each call, at most


@dataclass
class Outcome:
    """What a phase did, and everything that was not as it had to be."""

    name: str
    figures: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def check(self, what: str, found: object, wanted: object) -> None:
        """Note a difference."""
        if found != wanted:
            self.wrong.append(f"{what}: {found!r:.60} instead of {wanted!r:.60}")

    def show(self) -> None:
        """Print it."""
        print(f"{self.name}: " + "right" if not self.wrong else f"{self.name}: WRONG")
        for name, value in self.figures.items():
            print(f"    {name:32} {value}")
        for line in self.wrong[:20]:
            print(f"    ! {line}")
        sys.stdout.flush()


@dataclass(frozen=True)
class Held:
    """What this process holds."""

    descriptors: int
    tasks: int
    threads: int
    megabytes: float

    @classmethod
    def now(cls) -> Held:
        """Look, after everything unused was collected."""
        gc.collect()
        tasks = 0
        with suppress(RuntimeError):  # no loop runs here
            tasks = len(asyncio.all_tasks())
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        return cls(descriptors, tasks, threading.active_count(), pages * 4096 / 1e6)

    def compare(self, before: Held, outcome: Outcome) -> None:
        """Report both, and refuse whatever is more now."""
        for name in ("descriptors", "tasks", "threads"):
            was, is_ = getattr(before, name), getattr(self, name)
            outcome.figures[f"{name} before, after"] = f"{was}, {is_}"
            if is_ > was:
                outcome.wrong.append(f"{name}: {is_ - was} more than before")
        outcome.figures["megabytes before, after"] = (
            f"{before.megabytes:.1f}, {self.megabytes:.1f}"
        )


def prompts_named(letter: str, count: int) -> list[str]:
    """Prompts that all differ, and begin with a name that the server knows them by."""
    return [
        f"{letter}{n}: what are the facts of case {n * 7919 % 100_003}?"
        for n in range(count)
    ]


def judge(
    outcome: Outcome,
    server: Server,
    prompts: Sequence[str],
    answers: Sequence[Any],
    retries: int,
) -> None:
    """Compare every answer and every request with what the plan makes of them."""
    record = server.record()["tries"]
    requests = failed = 0
    for prompt, answer in zip(prompts, answers, strict=True):
        name = prompt.partition(":")[0]
        expected = server.expected(name, retries)
        outcome.check(f"requests of {name}", record.get(name), expected)
        requests += len(record.get(name, ()))
        lost = expected[-1] not in {"ok", "slow"}
        failed += lost
        if lost:
            outcome.check(
                f"failure of {name}", isinstance(answer, SvcError), wanted=True
            )
        else:
            outcome.check(
                f"answer to {name}",
                getattr(answer, "text", answer),
                right_answer(prompt),
            )
    outcome.figures["calls"] = len(prompts)
    outcome.figures["requests per call"] = f"{requests / len(prompts):.3f}"
    outcome.figures["failed, as planned"] = f"{failed} ({failed / len(prompts):.2%})"
    outcome.check("failures bearable", failed <= LOST * len(prompts), wanted=True)
    outcome.check("requests bearable", requests < SENT * len(prompts), wanted=True)


async def many_tasks(server: Server, calls: int, at_once: int) -> Outcome:
    """`abatch` on one event loop."""
    outcome = Outcome(f"abatch, {at_once} at once, {server.rate:.0%} faults")
    prompts = prompts_named("a", calls)
    async with ChatSvc(**server.v1) as model:
        config: Any = {"max_concurrency": at_once}
        await model.abatch(
            prompts_named("w", 2 * at_once), config, return_exceptions=True
        )
        before = Held.now()
        started = time.perf_counter()
        answers = await model.abatch(prompts, config, return_exceptions=True)
        seconds = time.perf_counter() - started
        judge(outcome, server, prompts, answers, model.max_retries)
        del answers
    await asyncio.sleep(0.1)
    Held.now().compare(before, outcome)
    outcome.figures["seconds"] = f"{seconds:.1f} ({calls / seconds:.0f} calls a second)"
    outcome.check("connections that the server still sees", server.record()["open"], 0)
    return outcome


def many_threads(server: Server, calls: int, at_once: int) -> Outcome:
    """`batch` on a pool of threads."""
    outcome = Outcome(f"batch, {at_once} threads, {server.rate:.0%} faults")
    prompts = prompts_named("t", calls)
    with ChatSvc(**server.v1) as model:
        config: Any = {"max_concurrency": at_once}
        model.batch(prompts_named("v", 2 * at_once), config, return_exceptions=True)
        before = Held.now()
        started = time.perf_counter()
        answers = model.batch(prompts, config, return_exceptions=True)
        seconds = time.perf_counter() - started
        judge(outcome, server, prompts, answers, model.max_retries)
        del answers
    Held.now().compare(before, outcome)
    outcome.figures["seconds"] = f"{seconds:.1f} ({calls / seconds:.0f} calls a second)"
    outcome.check("connections that the server still sees", settled_open(server), 0)
    return outcome


def settled_open(server: Server) -> int:
    """How many connections the server still sees, after at most a second."""
    until = time.monotonic() + 1
    while (count := server.record()["open"]) and time.monotonic() < until:
        time.sleep(0.02)
    return int(count)


@dataclass
class Left:
    """What became of the streams: their texts, and when the unfinished ones were left."""

    texts: dict[str, str] = field(default_factory=dict)
    at: dict[str, float] = field(default_factory=dict)


def leaving(prompts: Sequence[str], seed: int) -> dict[str, int]:
    """A quarter of the streams, each with the piece after which it is left."""
    draw = random.Random(seed)  # noqa: S311  # a plan, no secret
    chosen = draw.sample(list(prompts), len(prompts) // 4)
    return {prompt: draw.randrange(PIECES - 5) for prompt in chosen}


def judge_streams(
    outcome: Outcome,
    server: Server,
    prompts: Sequence[str],
    plan: dict[str, int],
    left: Left,
) -> None:
    """Whole streams whole, left ones closed within a second, as the server saw them."""
    time.sleep(0.2)
    record = server.record()
    waits = []
    for prompt in prompts:
        name = prompt.partition(":")[0]
        if prompt in plan:
            if name not in record["left"]:
                outcome.wrong.append(f"{name} was left and the server never saw it")
                continue
            waits.append(record["left"][name] - left.at[prompt])
        else:
            answer = right_answer(prompt)
            whole = "".join(f"{answer}{n} " for n in range(PIECES))
            outcome.check(f"text of {name}", left.texts.get(prompt), whole)
            outcome.check(f"end of {name}", name in record["left"], wanted=False)
    outcome.figures["streams, of them left early"] = f"{len(prompts)}, {len(plan)}"
    outcome.figures["closed after, at most"] = f"{1000 * max(waits, default=0):.0f} ms"
    if max(waits, default=0) > 1:
        outcome.wrong.append("a connection stayed for more than a second")


async def many_streams(server: Server, streams: int, seed: int) -> Outcome:
    """`astream`, all at once; a quarter is cancelled."""
    outcome = Outcome(f"astream, {streams} at once")
    prompts = prompts_named("s", streams)
    plan, left = leaving(prompts, seed), Left()

    async with ChatSvc(**server.v1) as model:
        await model.ainvoke("w0: hello")
        before = Held.now()

        async def read(prompt: str) -> None:
            texts = []
            async with aclosing(model.astream(prompt)) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    texts.append(chunk.text)
                    if len(texts) > plan.get(prompt, math.inf):
                        left.at[prompt] = time.monotonic()
                        task = asyncio.current_task()
                        assert task is not None  # noqa: S101  # this runs in one
                        task.cancel()
            left.texts[prompt] = "".join(texts)

        ends = await asyncio.gather(*map(read, prompts), return_exceptions=True)
        cancelled = [p for p, end in zip(prompts, ends, strict=True) if end is not None]
        outcome.check("cancelled", sorted(cancelled), sorted(plan))
    del ends
    judge_streams(outcome, server, prompts, plan, left)
    Held.now().compare(before, outcome)
    outcome.check("connections that the server still sees", server.record()["open"], 0)
    return outcome


def many_generators(server: Server, streams: int, seed: int) -> Outcome:
    """`stream` in threads; a quarter is closed early."""
    outcome = Outcome(f"stream, {streams} threads")
    prompts = prompts_named("g", streams)
    plan, left = leaving(prompts, seed), Left()

    with ChatSvc(**server.v1) as model:
        model.invoke("w1: hello")
        before = Held.now()

        def read(prompt: str) -> None:
            texts: list[str] = []
            with closing(model.stream(prompt)) as chunks:  # type: ignore[type-var]
                for chunk in chunks:
                    texts.append(chunk.text)
                    if len(texts) > plan.get(prompt, math.inf):
                        left.at[prompt] = time.monotonic()
                        return
            left.texts[prompt] = "".join(texts)

        with ThreadPoolExecutor(streams) as pool:
            list(pool.map(read, prompts))
    judge_streams(outcome, server, prompts, plan, left)
    Held.now().compare(before, outcome)
    outcome.check("connections that the server still sees", settled_open(server), 0)
    return outcome


def many_loops(server: Server, loops: int) -> Outcome:
    """One model on one event loop after the other, as scripts do with `asyncio.run`."""
    outcome = Outcome(f"{loops} event loops, one after the other")
    prompts = prompts_named("l", loops)
    with ChatSvc(**server.v1) as model:
        asyncio.run(model.ainvoke("w2: hello"))
        before = Held.now()
        answers = [asyncio.run(model.ainvoke(prompt)) for prompt in prompts]
        judge(outcome, server, prompts, answers, model.max_retries)
        Held.now().compare(before, outcome)
        outcome.check("connections that the server still sees", settled_open(server), 0)
    return outcome


async def an_outage(
    server: Server, calls: int, at_once: int, seconds: float, wait: float
) -> Outcome:
    """Calls through an outage, beside a neighbour of the same key whose prompts always fail."""
    outcome = Outcome(
        f"outage of {seconds:g} s, outage_wait={wait:g}, a poisoned neighbour"
    )
    letter = "o" if wait else "n"
    prompts = prompts_named(letter, calls)
    took: list[float] = []
    gate, over = asyncio.Semaphore(at_once), asyncio.Event()
    async with (
        ChatSvc(**server.v1, outage_wait=wait) as model,
        ChatSvc(**server.v1) as poisoned,
    ):

        async def poison(number: int) -> None:
            while not over.is_set():
                with suppress(SvcError):
                    await poisoned.ainvoke(f"{POISON}{number}: fail")

        async def ask(prompt: str) -> Any:
            async with gate:
                begun = time.perf_counter()
                try:
                    return (await model.ainvoke(prompt)).text
                except SvcError as error:
                    return error
                finally:
                    took.append(time.perf_counter() - begun)

        neighbours = [asyncio.create_task(poison(number)) for number in range(8)]
        before = server.record()["while_down"]
        server.plan_outage(calls // 3, seconds)
        started = time.perf_counter()
        answers = await asyncio.gather(*map(ask, prompts))
        outcome.figures["seconds"] = f"{time.perf_counter() - started:.1f}"
        over.set()
        await asyncio.gather(*neighbours)
    failed = sum(isinstance(answer, SvcError) for answer in answers)
    for prompt, answer in zip(prompts, answers, strict=True):
        if isinstance(answer, str):
            outcome.check(f"answer to {prompt}", answer, right_answer(prompt))
    outcome.figures["calls, failed"] = f"{calls}, {failed}"
    outcome.figures["longest call"] = f"{max(took):.1f} s"
    outcome.figures["requests in the outage"] = server.record()["while_down"] - before
    if wait:
        outcome.check("failed", failed, 0)
    return outcome


def run(
    *,
    calls: int,
    threaded: int,
    streams: int,
    pace: float,
    loops: int,
    at_once: int,
    seed: int,
    outage: float,
    outage_calls: int,
) -> Iterator[Outcome]:
    """All phases, one after the other."""
    with (
        served(0.1, seed) as tenth,
        served(0.3, seed) as third,
        served(0.0, seed, pace) as sound,
    ):
        yield asyncio.run(many_tasks(tenth, calls, at_once))
        yield many_threads(tenth, threaded, min(at_once, 32))
        yield asyncio.run(many_streams(sound, streams, seed))
        yield many_generators(sound, streams // 4, seed)
        yield many_loops(sound, loops)
        yield asyncio.run(many_tasks(third, calls // 2, at_once))
        for wait in (0.0, 4 * outage):
            held = min(at_once, 32)
            yield asyncio.run(an_outage(sound, outage_calls, held, outage, wait))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; 1 if anything was not as it had to be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=10_000, help="calls of abatch")
    parser.add_argument("--threaded", type=int, default=2_000, help="calls of batch")
    parser.add_argument("--streams", type=int, default=200, help="streams at once")
    parser.add_argument(
        "--pace", type=float, default=0.4, help="seconds between two pieces"
    )
    parser.add_argument("--loops", type=int, default=2_000, help="event loops")
    parser.add_argument("--at-once", type=int, default=128, help="calls at once")
    parser.add_argument(
        "--outage", type=float, default=30, help="seconds that the service is down"
    )
    parser.add_argument(
        "--outage-calls", type=int, default=3_000, help="calls around the outage"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the faults and the cancellations"
    )
    given = parser.parse_args(arguments)
    wrong = 0
    for outcome in run(**vars(given)):
        outcome.show()
        wrong += len(outcome.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
