"""The lab: real language models before the package.

    python -m benchmarks.models --model qwen0.5b          # all suites, all contestants
    python -m benchmarks.models --short                   # two minutes, with the smallest model
    python -m benchmarks.models --model FILE.gguf --ways svc --suite tools,results
    python -m benchmarks.models --upstream http://127.0.0.1:11434/v1 --upstream-model qwen3
    python -m benchmarks.models --compare BEFORE.jsonl AFTER.jsonl

A run that was broken off goes on where it was. See docs/lab.md.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from .cases import SEEN, Case, Suite, sample
from .results import Results, comparison, reading, table
from .run import Step, package_version, run, steps
from .server import LocalServer
from .suites import SUITES, bfcl
from .tap import Tap, UnreachableError
from .ways import OURS, WAYS, new_way
from .weights import PACKAGES, MissingError, find_weights, require

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "langchain-svc-lab"
_SHORT_CASES, _SHORT_SECONDS = 3, 120.0
_BFCL_CASES = 60


def main(words: Sequence[str] | None = None) -> int:
    """Run the lab; returns the exit code."""
    options = _options(words)
    if options.compare:
        print(comparison(*options.compare))
        return 0
    if options.show:
        print(reading(options.show))
        return 0
    chosen = [(suite, _cases(suite, options)) for suite in _suites(options)]
    results = {way: Results(_file(way, options)) for way in options.ways}
    left = [
        (suite, way, case)
        for suite, way, case in steps(chosen, options.ways)
        if not results[way].has(case)
    ]
    code = 0
    try:
        if left:
            _run(left, results, options)
    except (MissingError, UnreachableError, RuntimeError) as error:
        print(error, file=sys.stderr)
        code = 2
    cases = [case for _, some in chosen for case in some]
    print(f"{options.name}, package {options.package}, answers in {options.out}\n")
    print(table(cases, results))
    return code


def _run(
    left: list[Step], results: dict[str, Results], options: argparse.Namespace
) -> None:
    """Start what is asked, and ask it."""
    asked = {way for _, way, _ in left}
    if "native" in asked:
        require("langchain_openai", "langchain-openai")
    if "plain" in asked:
        require("json_repair", "json-repair")
    with ExitStack() as stack:
        url, key = options.upstream, os.environ.get(options.upstream_key_env or "")
        if url is None:
            require("xllamacpp", "xllamacpp")
            weights = find_weights(options.model, options.cache)
            server = LocalServer(
                weights,
                options.name,
                threads=options.threads,
                log=options.cache / f"{options.name}.log",
            )
            url = stack.enter_context(server).url
        tap = stack.enter_context(Tap(url, key))
        model = options.upstream_model or options.name
        ways = {way: new_way(way, tap, model, stack) for way in asked}
        with suppress(KeyboardInterrupt):  # the table shows what there is
            run(left, ways, results, tap, options.seconds)


def _suites(options: argparse.Namespace) -> list[Suite]:
    suites = [SUITES[name] for name in options.suite]
    return [*suites, bfcl(options.bfcl)] if options.bfcl else suites


def _cases(suite: Suite, options: argparse.Namespace) -> list[Case]:
    """So many of the new cases, and so many of the seen ones."""
    cases = list(suite.cases())
    most = options.cases or (_BFCL_CASES if suite.name == "bfcl" else None)
    new = sample((case for case in cases if case.group != SEEN), most)
    seen = sample((case for case in cases if case.group == SEEN), most)
    return [*new, *seen] if options.seen else new


def _file(way: str, options: argparse.Namespace) -> Path:
    """The results of a way; those of others do not depend on the package's commit."""
    package = [options.package] if way in OURS else []
    return Path(options.out, f"{'.'.join([options.name, way, *package])}.jsonl")


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--model", help=f"a GGUF file, or one of {', '.join(PACKAGES)} (qwen0.5b)"
    )
    which.add_argument("--upstream", metavar="URL", help="an OpenAI-compatible server")
    parser.add_argument("--upstream-model", metavar="ID", help="its model")
    parser.add_argument(
        "--upstream-key-env", metavar="VAR", help="the variable with its key"
    )
    parser.add_argument(
        "--suite", type=_names(SUITES), default=list(SUITES), help=",".join(SUITES)
    )
    parser.add_argument(
        "--ways", type=_names(WAYS), default=list(WAYS), help=",".join(WAYS)
    )
    parser.add_argument(
        "--cases", type=int, metavar="N", help="of each suite, of all kinds in turn"
    )
    parser.add_argument(
        "--seen",
        action="store_true",
        help="also the cases that wordings of the package were written on",
    )
    parser.add_argument(
        "--bfcl", type=Path, metavar="FILE", help="also cases as of tool_calling.py"
    )
    parser.add_argument(
        "--seconds", type=float, help="a bound; each suite gets its share"
    )
    parser.add_argument(
        "--short",
        action="store_true",
        help=f"smollm2, {_SHORT_CASES} cases of each suite, {_SHORT_SECONDS:.0f} seconds",
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cache", type=Path, default=_CACHE, help="joined weights")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="the answers, a file for each way"
    )
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="two of them"
    )
    parser.add_argument(
        "--show", type=Path, metavar="FILE", help="one of them, to be read by a person"
    )
    options = parser.parse_args(words)
    if options.upstream and not options.upstream_model:
        parser.error("--upstream: name its model too: --upstream-model ID")
    if options.short:
        options.cases = options.cases or _SHORT_CASES
        options.seconds = options.seconds or _SHORT_SECONDS
    if not options.upstream:
        options.model = options.model or ("smollm2" if options.short else "qwen0.5b")
    name = options.upstream_model or Path(options.model).name.removesuffix(".gguf")
    options.name = re.sub(r"[^\w.-]", "-", name)
    options.package = package_version()
    options.cache = options.cache.expanduser()
    options.out = (options.out or options.cache / "results").expanduser()
    return options


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Reads some of these names, with commas between them."""

    def read(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := set(chosen) - set(known):
            listed = ", ".join(known)
            raise argparse.ArgumentTypeError(f"{unknown.pop()}: none of {listed}")
        return [name for name in known if name in chosen]

    return read


if __name__ == "__main__":
    sys.exit(main())
