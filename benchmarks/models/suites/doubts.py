"""What the question about a doubtful call is worth.

Small models err alike, and large ones too seldom to count. So the cases are those of `tools`, and
the first answer is planted: the right calls in a way that does not run. The second is the model's.
Right is what is right there; where no tool is needed, an answer that calls nothing.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..cases import SEEN, Case, Outcome, Suite
from ..ways import OURS, Way
from .tools import ask, boxes, tools_text

Call = tuple[str, Mapping[str, Any]]


def _twice(calls: Sequence[Call]) -> str:
    """One block for all calls, with keys that stand in it more than once."""
    name, _ = calls[0]
    pairs = [
        f"{json.dumps(key)}: {json.dumps(value)}"
        for _, arguments in calls
        for key, value in arguments.items()
    ]
    return _block(f'{{"name": "{name}", "arguments": {{{", ".join(pairs)}}}}}')


def _unfilled(calls: Sequence[Call]) -> str:
    """The form, copied."""
    name, arguments = calls[0]
    return _block(
        json.dumps({"name": name, "arguments": {key: f"<{key}>" for key in arguments}})
    )


def _loose(calls: Sequence[Call]) -> str:
    """A word that belongs to nothing, inside each call."""
    texts = [json.dumps({"name": name, "arguments": args}) for name, args in calls]
    return "\n".join(_block(f"{text[:-2]} please}}}}") for text in texts)


def _example(calls: Sequence[Call]) -> str:
    """The right calls in a fence, as an example that words explain."""
    texts = [json.dumps({"name": name, "arguments": args}) for name, args in calls]
    block = "\n".join(texts)
    return f"You could write this:\n\n```json\n{block}\n```\n\nThat is what it would look like."


def _block(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


_PLANTS: Sequence[Callable[[Sequence[Call]], str]] = (_unfilled, _loose, _example)


def _cases() -> Iterator[Case]:
    plants = itertools.cycle(_PLANTS)
    for case in boxes("tools"):
        if case.group == SEEN or case.category == "turns":
            continue
        if "accepted" not in case.data:
            yield _planted(case, "not meant", _example([_any_call(case)]))
            continue
        calls = [(name, _first(values)) for name, values in case.data["accepted"]]
        plant = _twice if case.category == "parallel" else next(plants)
        yield _planted(case, plant.__name__.lstrip("_"), plant(calls))


def _first(values: Mapping[str, Sequence[Any]]) -> Mapping[str, Any]:
    """One value for each argument that must be there."""
    return {key: accepted[0] for key, accepted in values.items() if accepted[0] != ""}


def _any_call(case: Case) -> Call:
    tool = case.data["tools"][0]
    return tool["name"], dict.fromkeys(tool["parameters"]["required"], "report")


def _planted(case: Case, kind: str, answer: str) -> Case:
    data = {**case.data, "planted": answer}
    return Case("doubts", case.group, case.name, kind, data)


def _ask(way: Way, case: Case) -> Outcome:
    way.plant(case.data["planted"])
    outcome = ask(way, case)
    if "accepted" in case.data:
        return outcome
    called = bool(outcome.delivered["calls"] or outcome.delivered.get("invalid"))
    why = "a call that nobody needs" if called else ""
    return Outcome(not called, why, outcome.delivered, empty=outcome.empty)


DOUBTS = Suite("doubts", OURS, _cases, _ask, tools_text)
