"""What bulk runs promise, at full size.

    python -m benchmarks.bulk kill     # 5,000 rows, killed ten times: 2 minutes
    python -m benchmarks.bulk cut      # 200 journals cut at random bytes: 1 minute
    python -m benchmarks.bulk rows     # 100,000 rows through the sandbox: 15 minutes
    python -m benchmarks.bulk memory   # memory at 2,000 and at 20,000 rows: 3 minutes
    python -m benchmarks.bulk read     # 500 MB of input read, in each format: 2 minutes
    python -m benchmarks.bulk journal  # commits and rows a second, by concurrency: 1 minute

The sandbox runs in this process and the run in another, which is killed and measured.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_svc import SvcRequestError, bulk
from langchain_svc.sandbox import Sandbox

_BATCH = [sys.executable, "-c", "import sys; from langchain_svc.cli import main; sys.exit(main())"]
_SECONDS = 600


def write_prompts(path: Path, count: int) -> None:
    """An input of so many sums."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(json.dumps({"id": f"r{number}", "prompt": f"What is {number} * 2?"}) + "\n")


def start(sandbox: Sandbox, folder: Path, concurrency: int) -> subprocess.Popen[bytes]:
    """A run in a process of its own, over in.jsonl of a folder."""
    words = ["batch", "in.jsonl", "out.jsonl", "--concurrency", str(concurrency), "--quiet"]
    return subprocess.Popen(
        [*_BATCH, *words], cwd=folder, env={**os.environ, **sandbox.env}, stderr=subprocess.DEVNULL
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
        found = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
        requests = len(_asked(sandbox))
    times = Counter(row["id"] for row in found)
    right = sum(
        times[row["id"]] == 1 and row["content"].endswith(f"= {int(row['id'][1:]) * 2}")
        for row in found
    )
    return Killed(rows, len(found), right, requests, killed, rows + killed * concurrency)


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
        files = {one.name: one.read_bytes() for one in folder.glob("out.jsonl.journal*")}
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
