"""Looks for inputs that break a property: `python -m fuzz --seconds 60 [TARGET ...]`.

What breaks one is made as small as it gets and kept in `fuzz/crashers/`; then the exit status is 1.
Needs the extra `fuzz`.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .targets import CRASHERS, TARGETS

_ROOT = Path(__file__).parents[1]
_SLOWEST = 60  # seconds for one input, on a machine that is busy
_LONGEST = 160  # bytes of one input
_MOST_TRIES = 2_000  # to make a crasher smaller
_DEARER = 20  # how many times as long an input takes whose steps are counted


def main() -> int:
    """Fuzz the targets one after another, and say what came of it."""
    options = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    options.add_argument(
        "targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS)
    )
    options.add_argument("--seconds", type=int, default=10, help="for each target (10)")
    options.add_argument(
        "--runs",
        type=int,
        help="for each target, instead of seconds: the same inputs each time",
    )
    options.add_argument(
        "--corpus", type=Path, help="a folder that keeps what was reached"
    )
    given = options.parse_args()
    unknown = set(given.targets) - set(TARGETS)
    if unknown:
        options.error(
            f"no such target: {', '.join(sorted(unknown))}; known are {', '.join(TARGETS)}"
        )
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.corpus or Path(temporary)
        bound = Bound(given.seconds, given.runs)
        found = sum(_fuzz(name, folder, bound) for name in given.targets or TARGETS)
    return 1 if found else 0


@dataclass(frozen=True)
class Bound:
    """How long to look in one target; with a number of runs the search repeats itself."""

    seconds: int
    runs: int | None

    def for_atheris(self) -> list[str]:
        """The options that say so."""
        if self.runs is None:
            return [f"-max_total_time={self.seconds}"]
        return [f"-runs={self.runs}", "-seed=1"]

    def inputs(self, choose: random.Random) -> Iterator[None]:
        """Once for each input of a search at random."""
        if self.runs is not None:
            choose.seed(1)
            yield from itertools.repeat(None, self.runs // _DEARER)
            return
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            yield


def _fuzz(name: str, folder: Path, bound: Bound) -> int:
    """Fuzz one target; how many crashers that found."""
    begin = time.monotonic()
    search = _guided if TARGETS[name].guided else _at_random
    runs, crashes = search(name, folder, bound)
    kept = {_keep(name, crash) for crash in crashes}
    took = time.monotonic() - begin
    print(f"{name:16} {runs:>9,} runs  {took:6.1f} s  {len(kept)} found", flush=True)
    for crasher in sorted(kept):
        print(f"  {crasher}: {_what_breaks(TARGETS[name].holds, crasher.read_bytes())}")
    return len(kept)


def _guided(name: str, folder: Path, bound: Bound) -> tuple[int, list[bytes]]:
    """Let atheris look, led by the code that is reached: how many runs, and what it found."""
    corpus, found = folder / name, folder / f"{name}-crashes"
    for made in (corpus, found):
        made.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds()):
        (corpus / f"seed-{number:03}").write_bytes(seed)
    command = [
        sys.executable,
        "-m",
        "fuzz.guided",
        name,
        str(corpus),
        *bound.for_atheris(),
    ]
    command += [
        f"-artifact_prefix={found}/",
        f"-timeout={_SLOWEST}",
        f"-max_len={_LONGEST}",
    ]
    command += ["-print_final_stats=1", f"-report_slow_units={_SLOWEST}"]
    ran = subprocess.run(  # noqa: S603 - our own module
        command,
        cwd=_ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    said = ran.stdout + ran.stderr
    runs = re.findall(
        r"(?:^#|number_of_executed_units: )(\d+)", said, re.MULTILINE
    ) or ["0"]
    crashes = [crash.read_bytes() for crash in sorted(found.iterdir())]
    if ran.returncode and not crashes:
        raise SystemExit(f"{name} could not be fuzzed:\n{said[-2_000:]}")
    return int(runs[-1]), crashes


def _at_random(name: str, _folder: Path, bound: Bound) -> tuple[int, list[bytes]]:
    """The same at random, for what counts its own steps and cannot bear to be instrumented."""
    choose = random.Random()  # noqa: S311 - nothing secret
    seeds = [*TARGETS[name].seeds()]
    runs = 0
    for _ in bound.inputs(choose):
        runs += 1
        data = bytearray(choose.choice(seeds))
        for _ in range(choose.randrange(4)):
            data[choose.randrange(len(data))] = choose.randrange(256)
        if _what_breaks(TARGETS[name].holds, bytes(data)):
            return runs, [bytes(data)]
    return runs, []


def _keep(name: str, crash: bytes) -> Path:
    """Where an input that breaks a property is kept, as small as it gets."""
    small = shrunk(TARGETS[name].holds, crash)
    kept = CRASHERS / name / hashlib.sha256(small).hexdigest()[:12]
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(small)
    return kept


def shrunk(holds: Callable[[bytes], None], data: bytes) -> bytes:
    """A part of the data that breaks the property in the same way."""
    wanted = _what_breaks(holds, data).partition(":")[0]
    size = len(data)
    tries = 0
    while wanted and size and tries < _MOST_TRIES:
        size = max(1, size // 2)
        at = 0
        while at < len(data) and tries < _MOST_TRIES:
            tries += 1
            smaller = data[:at] + data[at + size :]
            if _what_breaks(holds, smaller).partition(":")[0] == wanted:
                data = smaller
            else:
                at += size
        size = 0 if size == 1 else size
    return data


def _what_breaks(holds: Callable[[bytes], None], data: bytes) -> str:
    try:
        holds(data)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
        return f"{type(error).__name__}: {error}"[:300]
    return ""


if __name__ == "__main__":
    sys.exit(main())
