"""The service of `load.py`, in a process of its own: quick, faulty by plan, with a record of all.

It speaks HTTP/1.1 on a raw asyncio protocol, so that it is never what is measured. What it does to
a try is drawn from (seed, name of the prompt, number of the try) alone, and its answer from the
prompt alone, so the client can compute both without it.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

FAILING = ("500", "502", "503", "429", "reset", "inside")
FAULTS = (*FAILING, "slow")
SLOW = 0.3  # seconds
POISON = "poison"  # a prompt of this name always fails
PIECES = 40  # of a stream
_NAME = re.compile(r"^(\w+):")
_LINGER_ZERO = struct.pack("ii", 1, 0)  # closing sends RST


def planned(seed: int, rate: float, name: str, attempt: int) -> str:
    """The fault that strikes a try, or "ok"."""
    draw = random.Random(f"{seed}/{name}/{attempt}")  # noqa: S311  # a plan, no secret
    return draw.choice(FAULTS) if draw.random() < rate else "ok"


def right_answer(prompt: str) -> str:
    """What the service answers: nobody gets it right without having been asked this prompt."""
    return hashlib.blake2b(prompt.encode(), digest_size=12).hexdigest()


class Service:
    """What all connections share: the plan and the record."""

    def __init__(self, rate: float, seed: int, pace: float) -> None:
        self.rate, self.seed, self.pace = rate, seed, pace
        self.tries: dict[str, list[str]] = {}
        self.left: dict[
            str, float
        ] = {}  # when the client of an unfinished stream had gone
        self.open = 0
        self.requests = 0
        self.outage = (0, 0.0)  # after so many requests, for so many seconds
        self.down_until = 0.0
        self.while_down = 0  # requests

    def is_down(self) -> bool:
        """Whether the planned outage goes on; every request is counted."""
        self.requests += 1
        if self.requests == self.outage[0]:
            self.down_until = time.monotonic() + self.outage[1]
        down = time.monotonic() < self.down_until
        self.while_down += down
        return down

    def next_fault(self, name: str) -> str:
        """What happens to the next try of a prompt, written down."""
        tries = self.tries.setdefault(name, [])
        fault = planned(self.seed, self.rate, name, len(tries) + 1)
        tries.append(fault)
        return fault

    def record(self) -> dict[str, Any]:
        """Everything that was seen."""
        seen = {"tries": self.tries, "left": self.left, "open": self.open}
        return seen | {"while_down": self.while_down}


class Connection(asyncio.Protocol):
    """One client, one request after the other."""

    transport: Any

    def __init__(self, service: Service) -> None:
        self.service = service
        self.data = b""
        self.streaming: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it."""
        self.transport = transport
        self.service.open += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Write down when a client left its stream."""
        del exc
        self.service.open -= 1
        if self.streaming is not None:
            self.service.left[self.streaming] = time.monotonic()

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self.data += data
        head, end, rest = self.data.partition(b"\r\n\r\n")
        if not end:
            return
        found = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        length = int(found[1]) if found else 0
        if len(rest) >= length:
            self.data = rest[length:]
            self.answer(head, rest[:length])

    def answer(self, head: bytes, body: bytes) -> None:
        """Do what the plan says for this try."""
        if planned := re.match(rb"GET /outage/(\d+)/([\d.]+)", head):
            self.service.outage = (
                self.service.requests + int(planned[1]),
                float(planned[2]),
            )
        if head.startswith(b"GET"):
            self.whole(json.dumps(self.service.record()).encode())
            return
        asked = json.loads(body)
        prompt = asked["messages"][-1]["content"]
        named = _NAME.match(prompt)
        name = named[1] if named else prompt
        if self.service.is_down():
            self.reset()
            return
        fault = "500" if name.startswith(POISON) else self.service.next_fault(name)
        if asked.get("stream"):
            self.streaming = name
            self.send(
                "200 OK",
                "transfer-encoding: chunked\r\ncontent-type: text/event-stream",
            )
            self.piece(right_answer(prompt), 0)
        elif fault.isdecimal():
            self.whole(
                b"{}",
                f"{fault} Planned",
                "retry-after: 0\r\n" if fault == "429" else "",
            )
        elif fault == "reset":
            self.reset()
        else:
            self.good(right_answer(prompt), fault)

    def good(self, text: str, fault: str) -> None:
        """The right answer, at once, late or broken off."""
        choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        body = json.dumps({"id": "x", "choices": [choice], "usage": usage}).encode()
        if fault == "inside":
            self.send("200 OK", f"content-length: {len(body)}", body[:20])
            asyncio.get_running_loop().call_later(0.01, self.reset)
        elif fault == "slow":
            asyncio.get_running_loop().call_later(SLOW, self.whole, body)
        else:
            self.whole(body)

    def piece(self, text: str, number: int) -> None:
        """One piece of a stream; the next follows by itself."""
        if self.transport.is_closing():
            return
        if number == PIECES:
            self.streaming = None
            self.transport.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
            return
        delta = {"choices": [{"index": 0, "delta": {"content": f"{text}{number} "}}]}
        event = b"data: " + json.dumps(delta).encode() + b"\n\n"
        self.transport.write(b"%x\r\n%s\r\n" % (len(event), event))
        asyncio.get_running_loop().call_later(
            self.service.pace, self.piece, text, number + 1
        )

    def whole(self, body: bytes, status: str = "200 OK", more: str = "") -> None:
        """A whole response."""
        self.send(status, f"{more}content-length: {len(body)}", body)

    def send(self, status: str, headers: str, body: bytes = b"") -> None:
        """A head, and what there is of its body."""
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}\r\n\r\n"
        )
        self.transport.write(head.encode() + body)

    def reset(self) -> None:
        """Break the connection off."""
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.transport.abort()


class Server:
    """A running server, seen from the client."""

    def __init__(self, port: int, rate: float, seed: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.rate, self.seed = rate, seed

    @property
    def v1(self) -> dict[str, str]:
        """Keyword arguments for ChatSvc."""
        return {"api_key": "load-key", "base_url_v1": f"{self.url}/v1"}

    def record(self) -> dict[str, Any]:
        """What the server has seen so far."""
        with urllib.request.urlopen(f"{self.url}/record", timeout=10) as answer:  # noqa: S310  # ours
            found: dict[str, Any] = json.load(answer)
        found["open"] -= 1  # this one
        return found

    def plan_outage(self, requests: int, seconds: float) -> None:
        """Be down for so many seconds, after so many more requests."""
        address = f"{self.url}/outage/{requests}/{seconds}"
        urllib.request.urlopen(address, timeout=10).close()  # noqa: S310  # our own

    def expected(self, name: str, max_retries: int) -> list[str]:
        """What must become of a prompt's tries: up to the first that does not fail."""
        tries: list[str] = []
        while len(tries) <= max_retries:
            tries.append(planned(self.seed, self.rate, name, len(tries) + 1))
            if tries[-1] not in FAILING:
                break
        return tries


@contextmanager
def served(rate: float, seed: int, pace: float = 0.0) -> Iterator[Server]:
    """A server in another process, which ends with the block; `pace` is seconds between pieces."""
    command = [sys.executable, __file__, str(rate), str(seed), str(pace)]
    with subprocess.Popen(  # noqa: S603  # our own file
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101  # a pipe was asked for
            yield Server(int(process.stdout.readline()), rate, seed)
        finally:
            process.kill()


async def _serve(service: Service) -> None:
    loop = asyncio.get_running_loop()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server = await loop.create_server(lambda: Connection(service), sock=listening)
    print(listening.getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(
            None, sys.stdin.read
        )  # until whoever started it is gone


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rate", type=float)
    parser.add_argument("seed", type=int)
    parser.add_argument("pace", type=float)
    given = parser.parse_args()
    asyncio.run(_serve(Service(given.rate, given.seed, given.pace)))
