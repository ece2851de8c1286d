"""Callers of the app that passes streams on: raw sockets, so that they never are the bottleneck.

Run as `python -m benchmarks.speed.callers PORT CALLS AT_ONCE`, which prints the seconds it took.
"""

from __future__ import annotations

import asyncio
import sys
import time

_REQUEST = b"GET / HTTP/1.1\r\nHost: app\r\n\r\n"


async def _ask(port: int, calls: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(calls):
        writer.write(_REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the app answered {head[:60]!r}")
        await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()


async def main(port: int, calls: int, at_once: int) -> None:
    """Ask so many times."""
    begin = time.perf_counter()
    shares = [len(range(at, calls, at_once)) for at in range(at_once)]
    await asyncio.gather(*(_ask(port, share) for share in shares))
    print(time.perf_counter() - begin)


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
