"""What bulk runs promise, at full size.

    python -m benchmarks.bulk kill     # 5,000 rows, killed at ten random moments: 2 minutes
    python -m benchmarks.bulk cut      # 500 journals cut off at random bytes: half a minute
    python -m benchmarks.bulk pairs    # 200 pairs of runs that begin together: 4 minutes
    python -m benchmarks.bulk rows     # 100,000 rows through the sandbox: 10 minutes
    python -m benchmarks.bulk memory   # memory after 2,000 and after 20,000 rows: 2 minutes
    python -m benchmarks.bulk read     # 500 MB of input in each format: 2 minutes
    python -m benchmarks.bulk journal  # rows a second that a journal takes: half a minute

The sandbox runs in this process and the run in another, which is killed and measured.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableLambda

from langchain_svc import SvcRequestError, bulk
from langchain_svc.bulk.journal import Journal
from langchain_svc.sandbox import Sandbox

_BATCH = [
    sys.executable,
    "-c",
    "import sys; from langchain_svc.cli import main; sys.exit(main())",
]
_SECONDS = 1_200


def write_prompts(path: Path, count: int) -> None:
    """An input of so many sums."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(
                json.dumps({"id": f"r{number}", "prompt": f"What is {number} * 2?"})
                + "\n"
            )


def start(sandbox: Sandbox, folder: Path, concurrency: int) -> subprocess.Popen[bytes]:
    """A run in a process of its own, over in.jsonl of a folder."""
    words = [
        "batch",
        "in.jsonl",
        "out.jsonl",
        "--concurrency",
        str(concurrency),
        "--quiet",
    ]
    return subprocess.Popen(
        [*_BATCH, *words],
        cwd=folder,
        env={**os.environ, **sandbox.env},
        stderr=subprocess.DEVNULL,
    )


def _asked(sandbox: Sandbox) -> list[Any]:
    return [one for one in sandbox.requests if one.path.endswith("/chat/completions")]


def _run_until(requests: int, sandbox: Sandbox, folder: Path, concurrency: int) -> bool:
    """Kills a run when the sandbox has seen so many requests; False where it had ended before."""
    with start(sandbox, folder, concurrency) as process:
        while len(sandbox.requests) < requests and process.poll() is None:
            time.sleep(0.005)
        process.kill()
    return process.returncode != 0


@dataclass
class Killed:
    """What a run came to that was killed on the way.

    Attributes:
        rows: Of the input.
        results: Rows of the output.
        right: Rows with exactly one result, which is the right one.
        requests: That the sandbox saw.
        kills: How often it was killed.
        most: Requests that it may have seen.
    """

    rows: int
    results: int
    right: int
    requests: int
    kills: int
    most: int


def kill(rows: int, kills: int, concurrency: int, seed: int = 0) -> Killed:
    """A run that is killed at random moments and started again, until it ends."""
    moments = sorted(random.Random(seed).sample(range(1, rows), kills))  # noqa: S311  # no secret
    with tempfile.TemporaryDirectory() as name, Sandbox() as sandbox:
        folder = Path(name)
        write_prompts(folder / "in.jsonl", rows)
        killed = 0
        for moment in moments:
            killed += _run_until(
                max(moment, len(sandbox.requests) + 1), sandbox, folder, concurrency
            )
        with start(sandbox, folder, concurrency) as process:
            process.wait(_SECONDS)
        found = [
            json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()
        ]
        requests = len(_asked(sandbox))
    times = Counter(row["id"] for row in found)
    right = sum(
        times[row["id"]] == 1 and row["content"].endswith(f"= {int(row['id'][1:]) * 2}")
        for row in found
    )
    return Killed(
        rows, len(found), right, requests, killed, rows + killed * concurrency
    )


@dataclass
class Cut:
    """What became of journals that were cut off at random bytes.

    Attributes:
        refused: Those that a clear error refused.
        whole: Those with all that was answered, but for what was in flight.
        lost: Those of which more is gone, without a word.
    """

    refused: int = 0
    whole: int = 0
    lost: int = 0


def cut(rows: int, cuts: int, concurrency: int, seed: int = 0) -> Cut:
    """The journal of a killed run, cut off at random bytes: the file or the log beside it."""
    chance, found = random.Random(seed), Cut()  # noqa: S311  # no secret
    with tempfile.TemporaryDirectory() as name, Sandbox() as sandbox:
        folder = Path(name)
        write_prompts(folder / "in.jsonl", rows)
        _run_until(rows // 2, sandbox, folder, concurrency)
        files = {
            one.name: one.read_bytes()
            for one in folder.glob("out.jsonl.journal*")
            if one.suffix != ".status"
        }
        answered = len(list(bulk.results(folder / "out.jsonl.journal")))
        for number in range(cuts):
            place = folder / str(number)
            place.mkdir()
            victim = chance.choice(sorted(files))
            for file, content in files.items():
                end = chance.randrange(len(content)) if file == victim else len(content)
                (place / file).write_bytes(content[:end])
            try:
                left = len(list(bulk.results(place / "out.jsonl.journal")))
            except SvcRequestError:
                found.refused += 1
            else:
                found.whole += left >= answered - concurrency
                found.lost += left < answered - concurrency
    return found


def pairs(count: int) -> Counter[tuple[str, ...]]:
    """What two processes get that open a journal together, and how often: "" for a journal."""
    context = multiprocessing.get_context("spawn")
    outcomes: Any = context.Queue()
    barrier = context.Barrier(2)
    with tempfile.TemporaryDirectory() as name:
        processes = [
            context.Process(
                target=_open_together, args=(name, count, barrier, outcomes)
            )
            for _ in range(2)
        ]
        for process in processes:
            process.start()
        both: list[list[str]] = [[] for _ in range(count)]
        for _ in range(2 * count):
            number, outcome = outcomes.get(timeout=_SECONDS)
            both[number].append(outcome)
        for process in processes:
            process.join()
    return Counter(tuple(sorted(outcome)) for outcome in both)


def _open_together(folder: str, count: int, barrier: Any, outcomes: Any) -> None:
    """Opens journals at the same moment as another process, and closes them when both have."""
    for number in range(count):
        path = Path(folder) / str(number)
        barrier.wait(_SECONDS)
        try:
            opened = Journal(path, {"name": "value"})
        except SvcRequestError as error:
            outcomes.put((number, str(error).replace(str(path), "NAME")))
            barrier.wait(_SECONDS)
        else:
            outcomes.put((number, ""))
            barrier.wait(_SECONDS)
            opened.close()


def rows(count: int, concurrency: int) -> tuple[float, list[float]]:
    """Seconds of a run, and the megabytes that its process held at each tenth of them."""
    import psutil  # an extra

    with tempfile.TemporaryDirectory() as name, Sandbox(keep=0) as sandbox:
        folder = Path(name)
        write_prompts(folder / "in.jsonl", count)
        begun, held = time.monotonic(), []
        with start(sandbox, folder, concurrency) as process:
            watched = psutil.Process(process.pid)
            while process.poll() is None:
                with suppress(psutil.Error):
                    held.append(watched.memory_info().rss / 1e6)
                time.sleep(0.5)
        seconds = time.monotonic() - begun
        with (folder / "out.jsonl").open() as file:
            found = {row["id"] for row in map(json.loads, file) if row["error"] is None}
        assert len(found) == count, f"{len(found)} of {count} rows have a result"
        size = (folder / "out.jsonl.journal").stat().st_size / count
        print(f"a row takes {size:,.0f} bytes of the journal")
    return seconds, [held[len(held) * tenth // 11] for tenth in range(1, 11)]


def read(suffix: str, megabytes: int) -> tuple[float, float]:
    """Seconds in which an input of this size is read, and the megabytes that it took."""
    with tempfile.TemporaryDirectory() as name:
        path = str(Path(name) / f"in{suffix}")
        _write_large(path, suffix, megabytes)
        done = subprocess.run(
            [sys.executable, "-c", _READ, path],
            check=True,
            capture_output=True,
            text=True,
        )
    seconds, before, after = map(float, done.stdout.split())
    return seconds, after - before


_READ = """
import pathlib, re, sys, time
from langchain_svc.bulk.rows import Register
from langchain_svc.bulk.rows import Source
import pyarrow.parquet
status = pathlib.Path("/proc/self/status")  # the kernel's peak, which no sample misses
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) / 1e3
source, before, begun = Source(sys.argv[1], "{text}", Register()), peak(), time.monotonic()
while source.chunk():
    pass
print(time.monotonic() - begun, before, peak())
"""


def _write_large(path: str, suffix: str, megabytes: int) -> None:
    text = "All work and no play makes for a dull text. " * 22  # about 1 kB
    count = megabytes * 1_000
    if suffix == ".parquet":
        import pyarrow as pa  # an extra
        import pyarrow.parquet as pq

        schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
        with pq.ParquetWriter(
            path, schema, compression="none", use_dictionary=False
        ) as writer:
            for start_ in range(0, count, 50_000):
                ids = list(range(start_, min(count, start_ + 50_000)))
                texts = [f"{number} {text}" for number in ids]
                writer.write_table(pa.table({"id": ids, "text": texts}, schema=schema))
        return
    with Path(path).open("w", encoding="utf-8") as file:
        if suffix == ".csv":
            file.write("id,text\n")
        for number in range(count):
            row = json.dumps({"id": number, "text": text})
            file.write((row if suffix == ".jsonl" else f"{number},{text}") + "\n")


def journal(concurrency: int, count: int) -> float:
    """Rows a second where answers cost nothing."""

    async def answer(prompt: str) -> str:
        return prompt

    with tempfile.TemporaryDirectory() as name:
        begun = time.monotonic()
        bulk.run(
            RunnableLambda(answer),
            [str(number) for number in range(count)],
            journal=Path(name) / "journal",
            concurrency=concurrency,
        )
        return count / (time.monotonic() - begun)


def main() -> None:
    """Print what was measured; fails where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = ("kill", "cut", "pairs", "rows", "memory", "read", "journal")
    parser.add_argument("what", choices=names)
    what = parser.parse_args().what
    if what == "kill":
        killed = kill(rows=5_000, kills=10, concurrency=32)
        print(killed)
        assert killed.right == killed.results == killed.rows
        assert killed.requests <= killed.most
    elif what == "cut":
        found = cut(rows=500, cuts=500, concurrency=16)
        print(found)
        assert not found.lost
    elif what == "pairs":
        outcomes = pairs(200)
        print(outcomes)
        assert all(outcome[0] == "" != outcome[1] for outcome in outcomes)
    elif what == "rows":
        seconds, held = rows(100_000, 64)
        print(f"{100_000 / seconds:,.0f} rows a second, {seconds:,.0f} s")
        print("MB at each tenth:", " ".join(f"{one:.0f}" for one in held))
        assert held[-1] < 1.2 * held[1]
    elif what == "memory":
        small, large = (max(rows(count, 32)[1]) for count in (2_000, 20_000))
        print(f"{small:.0f} MB after 2,000 rows, {large:.0f} MB after 20,000")
        assert large < 1.2 * small
    elif what == "read":
        for suffix in (".jsonl", ".csv", ".parquet"):
            seconds, grown = read(suffix, 500)
            print(
                f"{suffix}: {500 / seconds:,.0f} MB a second, memory grew by {grown:.0f} MB"
            )
            assert grown < 100
    else:
        for concurrency in (1, 4, 16, 64, 256):
            print(
                f"{concurrency} at a time: {journal(concurrency, 2_000):,.0f} rows a second"
            )


if __name__ == "__main__":
    main()
