"""What a quota keeps, and what it costs, with a real Redis and the sandbox's limits.

    python -m benchmarks.quota demand     # eight processes at full demand, three minutes
    python -m benchmarks.quota shares     # two bulk jobs and an interactive call between them
    python -m benchmarks.quota storage    # Redis stopped, started empty and frozen meanwhile
    python -m benchmarks.quota cost       # the price of a call, in memory and in Redis
    python -m benchmarks.quota crowd      # an admission in Redis at 1,000 processes and at one

It needs `redis-server` (or `valkey-server`) on PATH and the extra `redis`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

from benchmarks.redis_server import COMMAND, RedisServer
from langchain_svc import ChatSvc, SvcError, SvcQuota, bulk_priority
from langchain_svc.quota.ledger import Ticket
from langchain_svc.sandbox import Sandbox

V1_PRO = 60  # requests a minute, which is what binds within minutes


# -- one process, which is told what to do in JSON -----------------------------------------------


def work(order: dict[str, Any]) -> None:
    """Make calls until the time is up, and print what became of them."""
    quota = SvcQuota(
        order["plan"], storage=order["storage"], on_storage_failure=order["on_failure"]
    )
    model = ChatSvc(quota=quota, **order["model"])
    errors: Counter[str] = Counter()
    waits: list[float] = []

    async def caller() -> None:
        while True:
            began = time.monotonic()
            try:
                await model.ainvoke("Good morning", deadline=None)
            except SvcError as error:
                errors[type(error).__name__] += 1
            else:
                waits.append(time.monotonic() - began)
            await asyncio.sleep(order["pause"])

    async def run() -> None:
        callers = [asyncio.create_task(caller()) for _ in range(order["at_once"])]
        await asyncio.wait(callers, timeout=order["until"] - time.time())
        for task in callers:
            task.cancel()
        await asyncio.gather(*callers, return_exceptions=True)

    with bulk_priority() if order["bulk"] else nullcontext():
        asyncio.run(run())
    print(json.dumps({"done": len(waits), "waits": waits, "errors": errors}))


def processes(
    orders: list[dict[str, Any]], meanwhile: Callable[[float], None] = lambda _: None
) -> tuple[float, list[dict[str, Any]]]:
    """When the processes with these orders stopped, all at once, and what they report."""
    base = {
        "plan": "pro",
        "on_failure": "closed",
        "bulk": False,
        "at_once": 8,
        "pause": 0.0,
    }
    ready = (
        time.time() + 3
    )  # imports take a while where two cores serve eight processes
    running = []
    for order in orders:
        full = {**base, **order, "until": ready + order["seconds"]}
        command = [sys.executable, "-m", "benchmarks.quota", "work", json.dumps(full)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE))  # noqa: S603
    meanwhile(ready)
    return full["until"], [json.loads(process.communicate()[0]) for process in running]


def served(sandbox: Sandbox, end: float) -> dict[str, Any]:
    """What the sandbox answered and refused, and which share of its plan that is."""
    requests = sandbox.requests
    counts = Counter(request.status for request in requests)
    minutes = (end - requests[0].at) / 60
    share = counts[200] / (V1_PRO * minutes)
    return {"answered": counts[200], "refused": counts[429], "of the plan": share}


# -- what is shown ------------------------------------------------------------------------------


def demand(seconds: float = 180.0, workers: int = 8) -> dict[str, Any]:
    """Full demand of many processes: how much of the plan is used, and what is refused."""
    with Sandbox(plan="pro") as sandbox, RedisServer() as redis:
        order = {"storage": redis.url, "model": sandbox.v1, "seconds": seconds}
        end, reports = processes([order] * workers)
        return {
            **served(sandbox, end),
            "each process": [report["done"] for report in reports],
        }


def shares(seconds: float = 120.0) -> dict[str, Any]:
    """Two bulk jobs, one with eight times the calls, and an interactive caller."""
    with Sandbox(plan="pro") as sandbox, RedisServer() as redis:
        order = {"storage": redis.url, "model": sandbox.v1, "seconds": seconds}
        bulk = [{**order, "bulk": True, "at_once": at_once} for at_once in (64, 8)]
        end, (*jobs, person) = processes([*bulk, {**order, "at_once": 1, "pause": 7.0}])
        found = served(sandbox, end)
    done = [job["done"] for job in jobs]
    return {
        **found,
        "share of the larger job": done[0] / sum(done),
        "interactive calls": person["done"],
        # The first one imports and connects, beside nine processes on few cores.
        "longest interactive call, s": max(person["waits"][1:]),
    }


def storage(on_failure: str, seconds: float = 150.0) -> dict[str, Any]:
    """Redis is killed, started empty and frozen while four processes call."""
    with Sandbox(plan="pro") as sandbox, RedisServer() as redis:

        def trouble(ready: float) -> None:
            for at, act in (
                (0.25, redis.stop),
                (0.45, redis.start),
                (0.65, redis.freeze),
                (0.8, redis.thaw),
            ):
                time.sleep(max(0.0, ready + at * seconds - time.time()))
                act()

        order = {
            "storage": redis.url,
            "model": sandbox.v1,
            "seconds": seconds,
            "on_failure": on_failure,
            "pause": 0.5,
        }
        end, reports = processes([order] * 4, trouble)
        found = served(sandbox, end)
    errors = sum((Counter(report["errors"]) for report in reports), Counter[str]())
    return {**found, "errors": dict(errors)}


async def _a_call(call: Callable[[], Awaitable[Any]], calls: int) -> float:
    # Of this thread alone: the sandbox works in another, and other programs beside both.
    began = time.thread_time()
    for _ in range(calls):
        await call()
    return (time.thread_time() - began) / calls


def cost(rounds: int = 40, calls: int = 25) -> dict[str, Any]:
    """The CPU time of a call with a quota, as a ratio to one without; rounds take turns."""

    async def run() -> dict[str, Any]:
        with Sandbox() as sandbox, RedisServer() as redis:
            from redis import Redis  # noqa: PLC0415  # an extra

            plain = ChatSvc(**sandbox.v1)
            quotas = {
                "memory": SvcQuota("v1:enterprise"),
                "Redis": SvcQuota("v1:enterprise", storage=redis.url),
            }
            models = {"none": plain} | {
                name: ChatSvc(quota=quota, **sandbox.v1)
                for name, quota in quotas.items()
            }
            times: dict[str, list[float]] = {name: [] for name in models}
            crowds: dict[str, list[float]] = {name: [] for name in models}
            for model in models.values():
                await _a_call(lambda model=model: model.ainvoke("Hi"), 30)
            asked = _scripts(Redis.from_url(redis.url))
            for _ in range(rounds):
                for name, model in models.items():
                    times[name].append(
                        await _a_call(lambda model=model: model.ainvoke("Hi"), calls)
                    )
            asked = _scripts(Redis.from_url(redis.url)) - asked
            for _ in range(rounds // 4):
                for name, model in models.items():
                    crowd = await _a_call(
                        lambda model=model: model.abatch(["Hi"] * 64), 2
                    )
                    crowds[name].append(crowd)
            for model in models.values():
                await model.aclose()
        # The quickest quarter: what other programs on the machine disturbed is left out.
        found, crowded = (
            {
                name: statistics.mean(sorted(took)[: len(took) // 4])
                for name, took in each.items()
            }
            for each in (times, crowds)
        )
        return {
            "a call, µs": found["none"] * 1e6,
            **{f"{name}, ratio": found[name] / found["none"] for name in quotas},
            **{
                f"{name}, 64 at once, ratio": crowded[name] / crowded["none"]
                for name in quotas
            },
            "round trips a call": asked / (rounds * calls),
        }

    return asyncio.run(run())


def crowd(count: int = 1_000, calls: int = 2_000) -> dict[str, Any]:
    """What an admission costs where so many processes use a key, as ratios to one process."""
    from redis import Redis  # noqa: PLC0415  # an extra

    from langchain_svc.quota import redis_accounts  # noqa: PLC0415  # the same

    with RedisServer() as server, Redis.from_url(server.url) as client:
        account = SvcQuota("v1:enterprise", storage=server.url).account("v1", "a key")

        def asked(begun: float, _: Any) -> float:
            return time.perf_counter() - begun

        async def later() -> list[float]:
            return [
                asked(time.perf_counter(), await account.aacquire(Ticket()))
                for _ in range(calls)
            ]

        def took() -> list[float]:
            client.config_resetstat()
            now = [
                asked(time.perf_counter(), account.acquire(Ticket()))
                for _ in range(calls)
            ]
            script = client.info("commandstats")["cmdstat_evalsha"]["usec_per_call"]
            # The quickest quarter: what other programs on the machine disturbed is left out.
            quick = (sorted(each)[: calls // 4] for each in (now, asyncio.run(later())))
            return [script, *map(statistics.mean, quick)]

        took()
        alone, own = took(), redis_accounts._STARTED  # noqa: SLF001  # who this process says it is
        for number in range(count):
            redis_accounts._STARTED = f"{number:032x}"  # noqa: SLF001  # the same
            account.acquire(Ticket())
        redis_accounts._STARTED = own  # noqa: SLF001  # the same
        names = ("the script", "ask, sync", "ask, async")
        return {
            n: many / one for n, many, one in zip(names, took(), alone, strict=True)
        }


def _scripts(client: Any) -> int:
    with client:
        stats = client.info("commandstats")
        return sum(
            stats.get(f"cmdstat_{name}", {"calls": 0})["calls"]
            for name in ("evalsha", "eval")
        )


def main() -> None:
    """Show one of them, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    shown: dict[str, Callable[[], dict[str, Any]]] = {
        "demand": demand,
        "shares": shares,
        "storage, closed": lambda: storage("closed"),
        "storage, local": lambda: storage("local"),
        "cost": cost,
        "crowd": crowd,
    }
    names = ["demand", "shares", "storage", "cost", "crowd", "all", "work"]
    parser.add_argument("what", choices=names)
    parser.add_argument("order", nargs="?")
    given = parser.parse_args()
    if given.what == "work":
        work(json.loads(given.order))
        return
    if COMMAND is None:
        sys.exit("There is no redis-server on PATH: apt-get install redis-server")
    for name, show in shown.items():
        if given.what in {name.partition(",")[0], "all"}:
            print(name)
            for what, figure in show().items():
                text = f"{figure:.3f}" if isinstance(figure, float) else figure
                print(f"    {what:32} {text}", flush=True)


if __name__ == "__main__":
    main()
