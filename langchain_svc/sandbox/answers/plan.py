"""Calls: which function for which step of the question, and with which arguments."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence

from langchain_svc.sandbox.answers.fill import Filler
from langchain_svc.sandbox.answers.read import Call, Prompt, Tool
from langchain_svc.sandbox.answers.text import stems, sums

_STEPS = re.compile(
    r"(?<=[.?!])\s+(?=[A-Z\"'])|;\s|\n+|,?\s(?:and\s)?then\s"
    r"|,?\sand\s(?=(?:also|what|which|how|who|where|when|translate|describe|add|multiply)\b)"
    r"|,?\sand\s(?=\d[\d.]*\s?[-+*/x])"
)
_REFERS = re.compile(
    r"(?i)\b(?:it|that|this|these|those|the (?:image|picture|description|result|answer|text))\b"
)
_USE = re.compile(r"(?i)\b(?:use|using|call) (?:the|a|your) (?:tools?|functions?)\b")
_MOST_STEPS = 50
_MOST_CALLS = 8  # of one step
_ENOUGH = 1.0  # what the shared words must be worth for a call
_SIGNS = {"+": "add|sum|plus", "-": "subtract|minus", "*": "multipl|product", "/": "divi|quotient"}
_ANY_SUM = "calculat|arithmetic|expression|math"


def plan(prompt: Prompt) -> list[Call]:
    """The calls that are due now; none where words are."""
    if not prompt.tools or (prompt.results and prompt.results[-1].failed and not prompt.required):
        return []
    tools = [tool for tool in prompt.tools if tool.name == prompt.named] or prompt.tools
    fresh = _fresh(_planned(prompt, tools), prompt.calls)
    made = {call.name for call in prompt.calls}
    left = [tool for tool in tools if tool.name not in made]
    asked = prompt.required or _USE.search(prompt.question)
    if not fresh and asked and left:
        fresh = [_forced(prompt, left)]
    return fresh[:1] if prompt.single else fresh


def _planned(prompt: Prompt, tools: Sequence[Tool]) -> list[Call]:
    """A call or more for each step of the question, up to one that needs a result not there yet."""
    previous = [result.text for result in prompt.results if not result.failed]
    planned: list[Call] = []
    steps = [step.strip() for step in _STEPS.split(prompt.question) if step and step.strip()]
    for step in steps[:_MOST_STEPS]:
        refers = bool(planned and _REFERS.search(step))
        used = {call.name for call in planned} if refers else set()
        tool, score = best_tool([t for t in tools if t.name not in used] or tools, step)
        if score < _ENOUGH:
            continue
        if refers and len(previous) < len(planned):
            break
        planned += _calls(tool, step, previous[: len(planned)] if refers else ())
    return planned


def _fresh(planned: Sequence[Call], made: Sequence[Call]) -> list[Call]:
    """What was not called yet: neither so, nor as often as it is planned."""
    done, wanted = Counter(c.name for c in made), Counter(c.name for c in planned)
    fresh: list[Call] = []
    for call in planned:
        if call not in made and call not in fresh and done[call.name] < wanted[call.name]:
            fresh.append(call)
    return fresh


def _forced(prompt: Prompt, tools: Sequence[Tool]) -> Call:
    """A call because there must be one."""
    text = "\n".join([prompt.question, *(result.text for result in prompt.results)])
    tool, _ = best_tool(tools, text)
    told = prompt.results[-1].text if prompt.results else prompt.question
    filler = Filler(tool.parameters, text, reply=lambda: told)
    return Call(tool.name, filler.fill(tool.parameters))


def _calls(tool: Tool, step: str, previous: Sequence[str]) -> list[Call]:
    """The calls of one step: one for each of several values of a single scalar parameter."""
    schema = tool.parameters
    filler = Filler(schema, step, previous)
    calls = [Call(tool.name, filler.fill(schema))]
    names = schema.get("required") or list(schema["properties"])
    if len(names) != 1 or previous:
        return calls
    single = schema["properties"].get(names[0], {})
    filler.only = filler.kinds[0] if filler.kinds else ""
    while len(calls) < _MOST_CALLS:
        before = len(filler.used)
        value = filler.fill(single, names[0], required=False)
        if value is None or len(filler.used) == before:
            break
        calls.append(Call(tool.name, {**calls[0].arguments, names[0]: value}))
    return calls


def best_tool(tools: Sequence[Tool], text: str) -> tuple[Tool, float]:
    """The tool with the most words of a text, rare ones counting more, and what they are worth."""
    counts = Counter(word for tool in tools for word in set(stems(tool.about)))
    said = set(stems(text))
    signs = {sign for expression, _ in sums(text) for sign in _SIGNS if sign in expression}

    def score(tool: Tool) -> float:
        if re.search(rf"(?<!\w){re.escape(tool.name)}(?!\w)", text):
            return math.inf
        named = set(stems(tool.name))
        shared = set(stems(tool.about)) & said
        worth = sum((2.0 if w in named else 0.7) / (1 + math.log(counts[w])) for w in shared)
        about = tool.about.lower()
        fits = "|".join([_ANY_SUM, *(_SIGNS[sign] for sign in signs)])
        return worth + (3 if signs and re.search(fits, about) else 0)

    best = max(tools, key=score)
    return best, score(best)


def rendered(calls: Sequence[Call], prompt: Prompt) -> str:
    """Calls in the form that the prompt shows."""
    bodies = [{"name": call.name, "arguments": call.arguments} for call in calls]
    return "\n".join(
        f"{prompt.opening}{json.dumps(body, ensure_ascii=False)}{prompt.closing}" for body in bodies
    )
