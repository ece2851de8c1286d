"""Whether the cost of one stays the same among many: `python -m benchmarks.growth`.

CPU of the client for an event of ever longer streams, and for a call of ever larger batches,
against the server of `benchmarks.speed`. Takes about half a minute.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from langchain_svc import ChatSvc

_ROOT = Path(__file__).parents[1]
EVENTS = (10_000, 100_000, 1_000_000)
CALLS = (1_000, 10_000)
_AT_ONCE = 64


def main() -> None:
    """Print microseconds for each."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.speed.server"],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        address = f"http://127.0.0.1:{int(server.stdout.readline())}"
        for count in EVENTS:
            print(f"stream of {count:,} events: {_stream(address, count):.2f} us an event")
        for count in CALLS:
            print(
                f"abatch of {count:,} calls: {asyncio.run(_abatch(address, count)):,.0f} us a call"
            )
        server.stdin.close()


def _model(address: str, answer: str) -> ChatSvc:
    return ChatSvc(
        model="svc-pro",
        api_key="bench-key-0123456789",
        base_url_v1=f"{address}/{answer}/v1",
        max_response_bytes=1 << 30,
    )


def _stream(address: str, count: int) -> float:
    with _model(address, f"many-{count}") as model:
        begin = time.process_time()
        for _ in model.stream("hi"):
            pass
        return (time.process_time() - begin) / count * 1e6


async def _abatch(address: str, count: int) -> float:
    async with _model(address, "say-12") as model:
        begin = time.process_time()
        answers = await model.abatch(["hi"] * count, {"max_concurrency": _AT_ONCE})
        assert len(answers) == count
        return (time.process_time() - begin) / count * 1e6


if __name__ == "__main__":
    main()
