"""What it costs to ask a model whether it means a doubtful call: requests for each answer.

    python -m benchmarks.questions CORPUS.jsonl ...        # of files with a model's answer a line
    python -m benchmarks.questions -v CORPUS.jsonl ...     # and the rows that are wrong
    python -m benchmarks.questions --families CORPUS.jsonl ...    # and what each reader is worth

A row has `id`, `tools`, `text` (a model's first answer) and `expect`, whose `calls` are those that
it makes, none of them in an answer that only speaks of calls. Each text is the first answer of a
sandbox to a `ChatSvc` that is bound to the row's tools. If the model is asked again, it answers as
it means it: with these calls in the form asked for, or in plain text. Calls that no tool could run
(an unknown name, a required argument missing) are for the tool to refuse and do not count here.

The readers of other families' forms save requests, and nothing else: about what they do not read,
the model is asked. `--families` leaves each of them out in turn. One whose row has no figure is not
worth its code.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from unittest import mock

from langchain_svc import ChatSvc
from langchain_svc._calls import parse
from langchain_svc._calls.cursor import Families
from langchain_svc._calls.families import FAMILIES
from langchain_svc.sandbox import Sandbox, ToolCall

_MOST = 2  # requests
_DENIAL = "I only spoke of it, and call nothing."

Row = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What became of one answer."""

    row: Row
    calls: list[dict[str, Any]]
    requests: int

    @property
    def wanted(self) -> list[dict[str, Any]]:
        """The calls that the model means."""
        return list(self.row["expect"]["calls"])

    @property
    def is_right(self) -> bool:
        """Whether these calls came, and no others, within two requests."""
        return self.requests <= _MOST and _as_json(self.calls) == _as_json(self.wanted)


def main(words: Sequence[str] | None = None) -> int:
    """Print the figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "corpora", nargs="+", type=Path, help="files with a JSON object a line"
    )
    parser.add_argument("-v", action="store_true", help="list the rows that are wrong")
    parser.add_argument(
        "--families", action="store_true", help="leave out each reader in turn"
    )
    options = parser.parse_args(words)
    rows = [
        json.loads(line)
        for corpus in options.corpora
        for line in corpus.read_text("utf-8").split("\n")
        if line.strip()
    ]
    found = outcomes(rows)
    for kind, some in (
        ("calls", [one for one in found if one.wanted]),
        ("negatives", [one for one in found if not one.wanted]),
    ):
        print(_line(kind, some))
    for one in found:
        if options.v and not one.is_right:
            print(f"  {one.row['id']}: {one.requests} requests, {_as_json(one.calls)}")
    if options.families:
        print_shares(rows, found)
    return 0


def print_shares(rows: Sequence[Row], found: Sequence[Outcome]) -> None:
    """Print what becomes of the rows without each of the readers."""
    print(f"{'without':<24}{'asked':>8}{'wrong':>8}{'right':>8}")
    for name, families in _without_each().items():
        with mock.patch.object(parse, "FAMILIES", families):
            others = outcomes(rows)
        both = [*zip(found, others, strict=True)]
        asked = sum(other.requests > one.requests for one, other in both)
        wrong = sum(one.is_right > other.is_right for one, other in both)
        right = sum(one.is_right < other.is_right for one, other in both)
        print(f"{name:<24}{asked:>8}{wrong:>8}{right:>8}")


def _without_each() -> dict[str, Families]:
    """The readers of all families without one of them, by its name."""
    none = Families()
    variants = {
        field.name: replace(FAMILIES, **{field.name: getattr(none, field.name)})
        for field in fields(Families)
        if field.name not in ("readers", "loose")
    }
    for mark in FAMILIES.readers:
        others = {
            other: reader for other, reader in FAMILIES.readers.items() if other != mark
        }
        variants[mark] = replace(FAMILIES, readers=others)
    return variants


def outcomes(rows: Iterable[Row]) -> list[Outcome]:
    """What becomes of each row's answer."""
    with Sandbox(keep=0) as box, ChatSvc(**box.v1, on_cut="mark") as model:
        return [_outcome(row, box, model) for row in rows]


def _outcome(row: Row, box: Sandbox, model: ChatSvc) -> Outcome:
    meant = [ToolCall(call["name"], call["args"]) for call in row["expect"]["calls"]]
    second: list[Any] = [meant or _DENIAL] * model.max_repairs
    box.answers = [row["text"], *second]
    tools = [{"type": "function", "function": tool} for tool in row["tools"]]
    message = model.bind_tools(tools).invoke("Go on.")
    requests = 1 + len(second) - len(box.answers)
    required = {
        tool["name"]: tool["parameters"].get("required", []) for tool in row["tools"]
    }
    calls = [
        {"name": call["name"], "args": call["args"]}
        for call in message.tool_calls
        if call["name"] in required
        and call["args"].keys() >= set(required[call["name"]])
    ]
    return Outcome(row, calls, requests)


def _as_json(calls: list[dict[str, Any]]) -> str:
    return json.dumps(
        [_plain(call) for call in calls], sort_keys=True, ensure_ascii=False
    )


def _plain(value: Any) -> Any:
    """Numbers are compared by their value: 1 is 1.0."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _line(kind: str, found: list[Outcome]) -> str:
    right = sum(one.is_right for one in found)
    asked = sum(one.requests for one in found)
    count = max(len(found), 1)
    return (
        f"{kind}: {right} of {len(found)} right within {_MOST} requests ({right / count:.1%}), "
        f"{asked / count:.3f} requests each"
    )


if __name__ == "__main__":
    sys.exit(main())
