"""Starts the server and the contestants, and asks them in turn."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .rows import Row

if TYPE_CHECKING:
    from typing_extensions import Self

_ROOT = Path(__file__).parents[2]
_COLD = {"package", "package_modules", "class", "class_modules", "first_call"}
_SCALE = {"us": 1e6, "ms": 1e3, "bytes": 1.0, "modules": 1.0}

Figures = dict[str, list[float]]
"""A row's figures of each contestant, one a round, in the row's unit."""
Results = list[tuple[Row, Figures]]


class Bench:
    """The processes of one run."""

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._workers: dict[str, subprocess.Popen[str]] = {}
        self._silent: set[tuple[str, str]] = set()
        # Tracing would need a network; compiled modules are what users have.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("LANGSMITH", "LANGCHAIN"))}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        self._env = {**kept, "NO_PROXY": "*"}
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
            self._run(results, rounds)
        return [(row, figures) for row, figures in results if figures]

    def _run(self, results: Results, rounds: int) -> None:
        """In rounds, in which all contestants take turns."""
        cold = [(row, figures) for row, figures in results if row.way in _COLD]
        if cold:
            self._run_cold(cold, rounds)
        for row, figures in results:
            if row.way in _COLD:
                continue
            if row.way == "memory":
                self._run_memory(row, figures)
                _tell_row(row, figures)
                continue
            for turn in range(-1, min(rounds, row.rounds)):
                for name in _turned(row.who, turn):
                    found = self._ask(name, row, row.calls if turn >= 0 else min(row.calls, 64))
                    if turn >= 0 and found is not None:
                        value = found["cpu"] / row.calls / row.per * _SCALE[row.unit]
                        figures.setdefault(name, []).append(value)
            _tell_row(row, figures)

    def _run_cold(self, rows: Results, rounds: int) -> None:
        names = dict.fromkeys(chain.from_iterable(row.who for row, _ in rows))
        names.pop("httpx", None)
        _note("imports and first calls")
        for turn in range(-1, rounds):
            for name in _turned(tuple(names), turn):
                out = subprocess.run(
                    [sys.executable, "-m", "benchmarks.speed.cold", name, self._address, "say-12"],
                    cwd=_ROOT,
                    env=self._env,
                    check=True,
                    capture_output=True,
                    text=True,
                    timeout=60,
                ).stdout
                for row, figures in rows if turn >= 0 else []:
                    if name in row.who:
                        value = json.loads(out)[row.way] * _SCALE[row.unit]
                        figures.setdefault(name, []).append(value)

    def _run_memory(self, row: Row, figures: Figures) -> None:
        """All at the same time, in new processes: time does not matter here."""
        workers = {name: self._worker(name, new=True) for name in row.who}
        warm = Row(row.name, row.way, row.answer.partition("-")[0] + "-64")
        for one in (warm, row):
            for worker in workers.values():
                _tell(worker, one, 1)
            answers = {name: _hear(worker) for name, worker in workers.items()}
        for name, answer in answers.items():
            if answer.get("bytes"):
                figures[name] = [answer["bytes"] / row.per]
            _end(workers[name])

    def _worker(self, name: str, *, new: bool = False) -> subprocess.Popen[str]:
        if new or name not in self._workers:
            started = self._start("benchmarks.speed.worker", name, self._address)
            if new:
                return started
            self._workers[name] = started
        return self._workers[name]

    def _ask(self, name: str, row: Row, calls: int) -> dict[str, Any] | None:
        if (name, row.name) in self._silent:
            return None
        worker = self._worker(name)
        _tell(worker, row, calls)
        answer = _hear(worker)
        if "error" in answer:
            _note(f"  {name}: {answer['error']}")
            self._silent.add((name, row.name))
            return None
        return answer


def _tell(worker: subprocess.Popen[str], row: Row, calls: int) -> None:
    assert worker.stdin is not None
    worker.stdin.write(json.dumps({"way": row.way, "answer": row.answer, "calls": calls}) + "\n")
    worker.stdin.flush()


def _hear(worker: subprocess.Popen[str]) -> dict[str, Any]:
    assert worker.stdout is not None
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


def _turned(names: Iterable[str], turn: int) -> list[str]:
    """The names, begun elsewhere in every round: nobody always follows the same one."""
    listed = list(names)
    at = turn % len(listed)
    return listed[at:] + listed[:at]


def _tell_row(row: Row, figures: Figures) -> None:
    shown = (f"{name} {statistics.median(values):,.4g}" for name, values in figures.items())
    _note(f"{row.name}, {row.unit}: {', '.join(shown)}")


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
