"""Run the drop-in programs: python tests/dropin/run.py [--quick] [--write] [--interface NAME] [NAME ...]

Programs that need no more than the extra `dropin` run in this Python; each other set of packages
gets an environment of its own, kept in the cache directory and made with this Python. `--quick`
leaves those out. `--interface general` has ChatSvc ask that interface. `--write` writes
docs/dropin.md. The exit status is 1 if a program fails.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from player import INTERFACE
from registry import HERE, Program, programs

ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "langchain-svc-dropin"
ALWAYS = (f"-e{ROOT}", "langchain>=1.4,<2", "langchain-openai>=1,<2", "pytest>=8")
NEWLINE = "\n"
USUAL = ("langchain-core", "langchain", "langgraph")  # whose version the table tells once
SECONDS = 180  # for one program
# No program reports anywhere, and no interpreter is downloaded.
QUIET = {
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_SYSTEM_CERTS": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "RAGAS_DO_NOT_TRACK": "true",
    "MEM0_TELEMETRY": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "ANONYMIZED_TELEMETRY": "false",
    "LANGSMITH_TRACING": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "OPIK_SENTRY_ENABLE": "false",
    "OPIK_ANALYTICS_ENABLE": "false",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--interface", choices=("v1", "general"), default="v1")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    known = programs()
    unknown = set(args.names) - set(known)
    if unknown:
        parser.error(f"no program {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    chosen = [known[name] for name in args.names or known]
    if args.here:
        for one in chosen:
            print(json.dumps(outcome(one)), flush=True)
        return 0
    os.environ[INTERFACE] = args.interface
    results = run([one for one in chosen if not (args.quick and one.needs)])
    if args.write:
        table(known, results)
    failed = [name for name, result in results.items() if result["error"]]
    print(f"{len(results) - len(failed)} of {len(results)} programs: as they should be")
    return bool(failed)


def outcome(one: Program) -> dict[str, str]:
    """Run a program in this process."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(SECONDS)
    error, found, began = "", "", time.monotonic()
    try:
        found = version(one.of)
        one.check()
    except BaseException:  # a program may exit, too
        error = traceback.format_exc()
    finally:
        signal.alarm(0)
    seconds = f"{time.monotonic() - began:.1f} s"
    return {"name": one.name, "version": found, "error": error, "seconds": seconds}


def run(chosen: list[Program]) -> dict[str, dict[str, str]]:
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for one in chosen:
        groups[one.needs].append(one.name)
    results = {}
    for needs, names in groups.items():
        try:
            python = environment(needs) if needs else sys.executable
            came = in_process(python, names)
        except subprocess.CalledProcessError as error:
            came = {}
            print(error.stderr)
        for name in names:
            lost = {"name": name, "version": "", "error": "it did not run\n", "seconds": ""}
            one = results[name] = came.get(name, lost)
            verdict = "FAILS" if one["error"] else "works"
            print(f"{verdict} {one['seconds']:>7}  {name}\n{one['error']}", end="", flush=True)
    return results


def environment(needs: tuple[str, ...]) -> str:
    """The Python of the environment that has these packages."""
    from uv import find_uv_bin

    key = hashlib.sha256(f"{ALWAYS}{needs}{sys.version}".encode()).hexdigest()[:12]
    place = CACHE / key
    python = str(place / "bin" / "python")
    if not (place / "done").exists():
        uv = find_uv_bin()
        env = {**os.environ, **QUIET}
        install = [uv, "pip", "install", "--quiet", "--python", python]
        alone = needs[0] == "--no-deps"  # what it needs cannot be had beside LangChain 1
        for command in (
            [uv, "venv", "--clear", "--quiet", "--python", sys.executable, str(place)],
            [*install, *ALWAYS] if alone else [*install, *ALWAYS, *needs],
            *([[*install, *needs]] if alone else []),
        ):
            subprocess.run(command, check=True, capture_output=True, text=True, env=env)
        (place / "done").touch()
    return python


def in_process(python: str, names: list[str]) -> dict[str, dict[str, str]]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SVC_", "LANGSMITH_"))}
    command = [python, "-W", "ignore", str(HERE / "run.py"), "--here", *names]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**env, **QUIET}, cwd=CACHE.parent, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"name"')]
    if len(lines) < len(names):
        print(done.stderr[-4000:])
    return {result["name"]: result for result in map(json.loads, lines)}


def table(known: dict[str, Program], results: dict[str, dict[str, str]]) -> None:
    """Write docs/dropin.md."""
    works = []
    rows = []
    for name, one in known.items():
        result = results.get(name, {"version": "", "error": "not run"})
        said = f"{one.note} **Fails.**".strip() if result["error"] else one.note
        found = "" if one.of in USUAL else f"{one.of} {result['version']}"
        if said:
            rows.append(f"| {name} | {said} | {found} |")
        else:
            works.append(f"- {name} ({found})".removesuffix(" ()"))
    head = (HERE / "table.md").read_text(encoding="utf-8")
    facts = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "python": platform.python_version(),
        "usual": ", ".join(f"{name} {version(name)}" for name in USUAL),
        "count": str(len(known)),
        "works": str(len(works)),
    }
    (ROOT / "docs" / "dropin.md").write_text(
        f"{head.format(**facts)}These work as they are:\n\n{NEWLINE.join(works)}\n\n"
        "These do, but for what stands beside them:\n\n| program | | version |\n|---|---|---|\n"
        f"{NEWLINE.join(rows)}\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    sys.exit(main())
