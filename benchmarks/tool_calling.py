r"""Which tool format suits a model: asks it questions that need tools, and scores the calls.

    python benchmarks/tool_calling.py --upstream http://127.0.0.1:11434/v1 \
        --upstream-model qwen3 --plot qwen3.png                   # a model of your own
    python benchmarks/tool_calling.py --model svc-pro              # the service, by environment
    python benchmarks/tool_calling.py --sandbox                    # the sandbox, to try it out
    python benchmarks/tool_calling.py --cases bfcl.jsonl --limit 50 ...   # cases of others

The cases are those of tool_cases.jsonl beside this file, or of any file with a case a line: `id`,
`category`, `tools`, `question`, `calls`, and `accepted`, which lists for each call the values that
each argument may have ("" among them: it may be absent). Texts are compared by their letters and
digits, or to the character with `"exact": true`. Every answer is kept in the file of --results at
once, so that a run that was broken off goes on where it was.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib.util
import json
import operator
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableLambda
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from langchain_svc import ChatSvc, SvcError
from langchain_svc.sandbox import Sandbox, Upstream

FORMATS = ("tags", "fenced")
CASES = Path(__file__).with_name("tool_cases.jsonl")
Case = dict[str, Any]


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code."""
    options = _options(words)
    cases = [
        json.loads(line)
        for line in options.cases.read_text("utf-8").split("\n")
        if line
    ]
    cases = _sample(cases, options.limit)
    done = _read_results(options.results)
    with contextlib.ExitStack() as stack:
        where: Mapping[str, Any] = {}
        if options.sandbox or options.upstream:
            upstream = options.upstream and _upstream(options)
            where = stack.enter_context(Sandbox(upstream=upstream, keep=0)).v1
        for tool_format in options.formats:
            model = ChatSvc(
                model=options.model, tool_format=tool_format, temperature=0, **where
            )
            stack.callback(model.close)
            _run(model, cases, done, options)
    scores, failures = _scores(cases, done, options)
    _report(scores, options)
    if options.plot:
        _plot(scores, options)
    return 1 if failures else 0


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--cases", type=Path, default=CASES, help="one JSON object a line"
    )
    parser.add_argument("--model", default="svc-pro")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument(
        "--results", type=Path, default=Path("tool_calling_results.jsonl")
    )
    parser.add_argument(
        "--limit", type=int, help="cases of each category, from its beginning"
    )
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument(
        "--sandbox",
        action="store_true",
        help="ask the sandbox's rules, to try the script out",
    )
    parser.add_argument(
        "--upstream", metavar="URL", help="an OpenAI-compatible server, by sandbox"
    )
    parser.add_argument(
        "--upstream-model", metavar="NAME", help="the model that it is asked for"
    )
    parser.add_argument(
        "--upstream-key-env", metavar="VAR", help="the variable with its key"
    )
    parser.add_argument(
        "--plot", type=Path, metavar="PNG", help="draw the table (needs [bench])"
    )
    options = parser.parse_args(words)
    if options.upstream and not options.upstream_model:
        parser.error("--upstream: name its model too: --upstream-model NAME")
    if not options.cases.is_file():
        parser.error(f"--cases: there is no file {options.cases}")
    if options.plot and importlib.util.find_spec("matplotlib") is None:
        parser.error('--plot: it needs matplotlib: pip install ".[bench]"')
    rules = options.sandbox and "the sandbox's rules, no model"
    options.name = options.upstream_model or rules or options.model
    return options


def _upstream(options: argparse.Namespace) -> Upstream:
    key = os.environ.get(options.upstream_key_env or "")
    return Upstream(options.upstream, options.upstream_model, api_key=key)


def _sample(cases: list[Case], limit: int | None) -> list[Case]:
    if limit is None:
        return cases
    seen: collections.Counter[str] = collections.Counter()
    kept = []
    for case in cases:
        seen[case["category"]] += 1
        if seen[case["category"]] <= limit:
            kept.append(case)
    return kept


Key = tuple[str, str, str]


def _read_results(path: Path) -> dict[Key, dict[str, Any]]:
    if not path.exists():
        return {}
    if not path.read_bytes().endswith(
        b"\n"
    ):  # the last line of a run that was broken off
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")
    rows = []
    for line in path.read_text("utf-8").splitlines():
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return {(row["model"], row["format"], row["id"]): row for row in rows}


def _run(
    model: ChatSvc,
    cases: list[Case],
    done: dict[Key, dict[str, Any]],
    options: argparse.Namespace,
) -> None:
    left = [c for c in cases if (options.name, model.tool_format, c["id"]) not in done]
    failed = False
    ask = RunnableLambda(lambda case: _ask(model, case))
    with options.results.open("a", encoding="utf-8") as file, _progress() as progress:
        task = progress.add_task(
            f"{options.name}, {model.tool_format}", total=len(cases)
        )
        progress.advance(task, len(cases) - len(left))
        for row in _answers(ask, left, options.concurrency):
            row |= {"model": options.name, "format": model.tool_format}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()
            if "error" not in row:  # what failed is asked again by the next run
                done[options.name, row["format"], row["id"]] = row
            elif not failed:
                failed = True
                progress.console.print(
                    f"{row['id']} failed: {row['error']}", markup=False
                )
            progress.advance(task)


def _answers(
    ask: RunnableLambda, cases: list[Case], at_once: int
) -> Iterator[dict[str, Any]]:
    for _, row in ask.batch_as_completed(cases, {"max_concurrency": at_once}):
        yield row


def _ask(model: ChatSvc, case: Case) -> dict[str, Any]:
    try:
        message = model.bind_tools(_tools(case)).invoke(case["question"])
    except SvcError as error:
        return {"id": case["id"], "error": str(error)}
    calls = [
        {"name": call["name"], "args": call["args"]} for call in message.tool_calls
    ]
    return {
        "id": case["id"],
        "calls": calls,
        "invalid": len(message.invalid_tool_calls),
    }


def _tools(case: Case) -> list[dict[str, Any]]:
    return [{"type": "function", "function": tool} for tool in case["tools"]]


def right(case: Case, calls: list[dict[str, Any]]) -> bool:
    """Whether the calls are the expected ones, in any order."""
    left = list(calls)
    accepted = case.get("accepted") or [{} for _ in case["calls"]]
    for expected, values in zip(case["calls"], accepted, strict=True):
        same = operator.eq if case.get("exact") else _same
        found = next(
            (call for call in left if _matches(call, expected, values, same)), None
        )
        if found is None:
            return False
        left.remove(found)
    return not left


def _matches(
    call: dict[str, Any],
    expected: dict[str, Any],
    values: dict[str, list[Any]],
    same: Callable[[Any, Any], bool],
) -> bool:
    if call["name"] != expected["name"] or set(call["args"]) - set(values):
        return False
    return all(
        any(same(call["args"][name], value) for value in allowed)
        if name in call["args"]
        else "" in allowed
        for name, allowed in values.items()
    )


def _same(given: Any, value: Any) -> bool:
    if isinstance(given, str) and isinstance(value, str):
        return _plain(given) == _plain(value)
    if isinstance(given, list) and isinstance(value, list):
        return len(given) == len(value) and all(map(_same, given, value))
    if isinstance(given, dict) and isinstance(value, dict):
        return given.keys() == value.keys() and all(
            _same(given[key], value[key]) for key in value
        )
    if isinstance(given, bool) or isinstance(value, bool):
        return given is value
    return bool(given == value)


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


Scores = dict[str, list[tuple[float | None, int]]]


def _scores(
    cases: list[Case], done: dict[Key, dict[str, Any]], options: argparse.Namespace
) -> tuple[Scores, int]:
    """For each category and format the per cent of right answers, and how many are missing."""
    scores: Scores = {}
    failures = 0
    for category in [*dict.fromkeys(case["category"] for case in cases), "all"]:
        chosen = [case for case in cases if category in {case["category"], "all"}]
        cells = scores[f"{category} ({len(chosen)})"] = []
        for tool_format in options.formats:
            rows = [
                (case, done.get((options.name, tool_format, case["id"])))
                for case in chosen
            ]
            answered = [
                right(case, row["calls"]) for case, row in rows if row is not None
            ]
            missing = len(rows) - len(answered)
            failures += missing if category == "all" else 0
            cells.append(
                (100 * sum(answered) / len(answered) if answered else None, missing)
            )
    return scores, failures


def _report(scores: Scores, options: argparse.Namespace) -> None:
    table = Table(
        title=f"{options.name}: calls that were right, per cent", title_justify="left"
    )
    table.add_column("category")
    for tool_format in options.formats:
        table.add_column(tool_format, justify="right")
    for category, cells in scores.items():
        shown = [
            ("-" if score is None else f"{score:.1f}")
            + (f" ({missing} failed)" if missing else "")
            for score, missing in cells
        ]
        table.add_row(category, *shown)
    Console().print(table)


def _plot(scores: Scores, options: argparse.Namespace) -> None:
    """Draw the table as bars."""
    import matplotlib as mpl  # noqa: PLC0415  # an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(
        figsize=(8, 1 + 0.5 * len(scores)), layout="constrained"
    )
    height = 0.8 / len(options.formats)
    for at, tool_format in enumerate(options.formats):
        places = [row + at * height for row in range(len(scores))]
        bars = axes.barh(
            places,
            [cells[at][0] or 0 for cells in scores.values()],
            height,
            label=tool_format,
        )
        axes.bar_label(bars, fmt="%.0f", padding=3)
    axes.set_yticks(
        [row + height * (len(options.formats) - 1) / 2 for row in range(len(scores))],
        scores,
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 110)
    axes.set_xlabel("calls that were right, per cent")
    axes.set_title(options.name)
    axes.legend(loc="lower right")
    figure.savefig(options.plot, dpi=120)


def _progress() -> Progress:
    return Progress(console=Console(stderr=True))


if __name__ == "__main__":
    sys.exit(main())
