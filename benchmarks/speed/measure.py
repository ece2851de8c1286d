"""Starts the server and the contestants, and asks them in turn."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .contestants import BEFORE, OURS
from .rows import Row

if TYPE_CHECKING:
    from typing import Self

_ROOT = Path(__file__).parents[2]
_SCALE = {"us": 1e6, "ms": 1e3, "KB": 1e-3}

Figures = dict[str, list[float]]
"""A row's figures of each contestant, one a round, in the row's unit."""
Results = list[tuple[Row, Figures]]


class Bench:
    """The processes of one run; `before` is the other checkout that is measured."""

    def __init__(self, before: Path | None = None) -> None:
        self._before = before

    def __enter__(self) -> Self:
        self._begun = time.monotonic()
        self._stack = ExitStack()
        self._workers: dict[str, subprocess.Popen[str]] = {}
        self._silent: set[tuple[str, str]] = set()
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        # Tracing would need a network; compiled modules are what users have.
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("LANGSMITH", "LANGCHAIN"))
        }
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        self._env = {**kept, "NO_PROXY": "*"}
        if self._before:
            self._env["BENCH_BEFORE"] = str(self._before.resolve())
        server = self._start("benchmarks.speed.server")
        assert server.stdout is not None
        self._address = f"http://127.0.0.1:{int(server.stdout.readline())}"
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=_ROOT,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(_end, process)
        return process

    def run(self, rows: Sequence[Row], rounds: int) -> Results:
        """Measure every row; what is there when somebody presses Ctrl-C counts."""
        results: Results = [(row, {}) for row in rows]
        with suppress(KeyboardInterrupt):
            for _, group in groupby(results, key=lambda result: result[0].measurement):
                self._run(list(group), rounds)
        return [(row, figures) for row, figures in results if figures]

    def _run(self, together: Results, rounds: int) -> None:
        """In rounds, in which all contestants take turns. The first one is not counted."""
        row = together[0][0]
        names = [*row.who]
        if self._before and OURS in names:
            names.insert(1, BEFORE)
        for turn in range(0 if row.fresh else -1, min(rounds, row.rounds)):
            at = turn % len(names)  # nobody always follows the same one
            for name in names[at:] + names[:at]:
                found = self._ask(name, row, warming=turn < 0)
                for each, figures in together if turn >= 0 else []:
                    if each.key in found:
                        share = (
                            each.calls * each.per if each.key in {"cpu", "bytes"} else 1
                        )
                        value = found[each.key] / share * _SCALE.get(each.unit, 1.0)
                        figures.setdefault(name, []).append(value)
        for each, figures in together:
            shown = (
                f"{name} {statistics.median(them):,.4g}"
                for name, them in figures.items()
            )
            passed = time.monotonic() - self._begun
            _note(f"{passed:4.0f} s  {each.name}, {each.unit}: {', '.join(shown)}")

    def _ask(self, name: str, row: Row, *, warming: bool) -> dict[str, float]:
        if (name, row.name) in self._silent:
            return {}
        if row.way.startswith("cold"):
            answer = self._ask_cold(name, row)
        else:
            worker = self._worker(name, fresh=row.fresh)
            warm = replace(row, answer=row.warm or row.answer, calls=min(row.calls, 64))
            answer = _asked(worker, warm) if warming or row.fresh else {}
            if not warming and "error" not in answer:
                answer = _asked(worker, row)
            if row.fresh:
                _end(worker)
        if "error" in answer:
            _note(f"  {name}: {answer['error']}")
            self._silent.add((name, row.name))
            return {}
        return answer

    def _worker(self, name: str, *, fresh: bool) -> subprocess.Popen[str]:
        if fresh:
            return self._start("benchmarks.speed.worker", name, self._address)
        if name not in self._workers:
            self._workers[name] = self._worker(name, fresh=True)
        return self._workers[name]

    def _ask_cold(self, name: str, row: Row) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as empty:
            uncompiled = {"PYTHONPYCACHEPREFIX": empty, "PYTHONDONTWRITEBYTECODE": "1"}
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.speed.cold",
                    name,
                    self._address,
                    row.answer,
                ],
                cwd=_ROOT,
                env=self._env | (uncompiled if row.way == "cold_uncompiled" else {}),
                check=False,
                capture_output=True,
                text=True,
                timeout=60,
            )
        return dict(
            json.loads(done.stdout or json.dumps({"error": done.stderr[-300:]}))
        )


def _asked(worker: subprocess.Popen[str], row: Row) -> dict[str, Any]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(
        json.dumps({"way": row.way, "answer": row.answer, "calls": row.calls}) + "\n"
    )
    worker.stdin.flush()
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError("a contestant's process ended; its message is above")
    return dict(json.loads(line))


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None and not process.stdin.closed:
        process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
