"""Good answers, where they are cut, and models that go on well or clumsily.

    python tests/chat/cut_answers.py 500

prints how often 500 answers, cut at every 50th character, come out as if nothing had been cut, and
the same of a tenth of them for models that go on in other ways. No answer says a line of code twice
in a row: a model that repeats its last line cannot be told from one.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from typing import Any

import httpx

from langchain_svc import ChatSvc

STEP = 50  # characters between two places at which an answer is cut
_TEXT = (
    "the quick brown fox jumps over lazy dogs while seven silent engineers measure answers and "
    "write careful reports about patients rivers bridges numbers tables music weather trains"
)
WORDS = _TEXT.split()


# -- good answers -----------------------------------------------------------------------------------


class Writer:
    """Writes answers of all kinds, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def word(self) -> str:
        return self.random.choice(WORDS)

    def sentence(self) -> str:
        words = [self.word() for _ in range(self.random.randint(4, 14))]
        return " ".join(words).capitalize() + self.random.choice("...!?")

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self.random.randint(2, 5)))

    def table(self) -> str:
        width = self.random.randint(2, 4)
        cells = [self.word, lambda: str(self.random.randint(0, 999)), lambda: "yes", lambda: "no"]
        rows = [[self.random.choice(cells)() for _ in range(width)] for _ in range(5)]
        rows.insert(1, ["---"] * width)
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def code(self) -> str:
        body = [
            f"    {self.word()} = {self.random.randint(0, 99)}",
            f"    if {self.word()} > {self.random.randint(0, 9)}:\n        return {self.word()}",
            f"    print({self.word()!r}, {self.word()})",
            f"    for {self.word()} in range({self.random.randint(1, 9)}):\n        pass",
            "    ...",
            "",
            f"    # {self.sentence()}",
        ]
        lines = [f"def {self.word()}_{self.word()}({self.word()}):", f'    """{self.sentence()}"""']
        lines += self.random.sample(body, k=6)
        return "\n".join(["```python", *lines, "```"])

    def items(self) -> str:
        mark = self.random.choice(["-", "*", "1."])
        return "\n".join(f"{mark} {self.sentence()}" for _ in range(self.random.randint(2, 6)))

    def text(self) -> str:
        parts = [self.paragraph, self.table, self.code, self.items]
        return "\n\n".join(self.random.choice(parts)() for _ in range(self.random.randint(3, 5)))

    def value(self, depth: int = 0) -> Any:
        kinds = [
            self.sentence,
            self.word,
            lambda: self.random.randint(-999, 9999),
            lambda: self.random.choice([True, False, None]),
        ]
        if depth < 3:
            kinds += [
                lambda: [self.value(depth + 1) for _ in range(self.random.randint(1, 4))],
                lambda: {self.word(): self.value(depth + 1) for _ in range(3)},
            ]
        return self.random.choice(kinds)()

    def object(self) -> str:
        fields = {word: self.value() for word in self.random.sample(WORDS, 5)}
        return json.dumps(fields, indent=self.random.choice([None, 2]))

    def call(self) -> str:
        arguments = {"query": self.paragraph(), "path": self.word()}
        name = self.random.choice(["search", "write"])
        body = json.dumps({"name": name, "arguments": arguments})
        return f"<tool_call>\n{body}\n</tool_call>"

    def calls(self) -> str:
        announcement = [self.sentence()] * self.random.randint(0, 1)
        calls = [self.call() for _ in range(self.random.randint(2, 4))]
        return "\n".join([*announcement, *calls])


KINDS = ("text", "object", "call", "calls")


def answers(count: int, seed: int = 37) -> Iterator[tuple[str, str]]:
    """Kinds and texts of good answers."""
    writer = Writer(seed)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        yield kind, getattr(writer, kind)()


# -- models that are told to go on ------------------------------------------------------------------


def _from_last_line(begun: str) -> str:
    """The end of the answer from the beginning of a line on, with a few words at least."""
    at = len(begun)
    while at > 0:
        at = begun.rfind("\n", 0, at - 1) + 1
        if len("".join(begun[at:].split())) >= 12 and any(map(str.isalpha, begun[at:])):
            return begun[at:]
    return begun


def _in_fence(begun: str, rest: str) -> str:
    closing = "" if begun.count("```") % 2 else "\n```"
    return f"```\n{rest}{closing}"


# What each model writes, by what it has begun and what is left to write.
GOING_ON: dict[str, Callable[[str, str], str]] = {
    "exactly": lambda begun, rest: rest,
    "repeats its last line": lambda begun, rest: _from_last_line(begun) + rest,
    "begins with an ellipsis": lambda begun, rest: f"...{rest}",
    "opens a new fence": _in_fence,
    "apologizes": lambda begun, rest: f"Sorry, my answer was cut off. Here is the rest:\n\n{rest}",
    "begins anew": lambda begun, rest: begun + rest,
}
OTHERS = {
    "repeats the half line only": lambda begun, rest: begun.rpartition("\n")[2] + rest,
    "begins anew with an apology": lambda begun, rest: (
        f"I apologize for that. Here is the whole answer:\n\n{begun}{rest}"
    ),
    "apologizes on one line": lambda begun, rest: f"Continuing where I stopped:\n{rest}",
}


class CutService:
    """A service whose first answer is cut, and whose second goes on in one of these ways."""

    def __init__(self, text: str, end: int, way: Callable[[str, str], str], step: int = 7) -> None:
        self.parts = [text[:end], way(text[:end], text[end:])]
        self.reasons = ["length", "stop"]
        self.step = step

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        text, reason = self.parts.pop(0), self.reasons.pop(0)
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        if not body.get("stream"):
            choice = {"message": {"role": "assistant", "content": text}, "finish_reason": reason}
            return httpx.Response(200, json={"choices": [choice], "usage": usage})
        pieces = [text[at : at + self.step] for at in range(0, len(text), self.step)]
        events: list[Any] = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
        events.append({"choices": [{"delta": {}, "finish_reason": reason}], "usage": usage})
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        return httpx.Response(
            200, text=f"{lines}data: [DONE]\n\n", headers={"content-type": "text/event-stream"}
        )


PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "path": {"type": "string"}},
    "required": ["query", "path"],
}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": PARAMETERS}}
    for name in ("search", "write")
]


def read(kind: str, service: Any, way: str) -> Any:
    """What a user gets of the answer: its text, its object, or its words and calls."""
    model: Any = ChatSvc(
        api_key="k",
        base_url_v1="https://svc.example/v1",
        http_client=httpx.Client(transport=httpx.MockTransport(service)),
        on_cut="continue",
        max_repairs=0,
    )
    if kind == "object":
        model = model.with_structured_output(None, method="json_mode")
        return model.invoke("?") if way == "invoke" else [*model.stream("?")][-1]
    if kind in ("call", "calls"):
        model = model.bind_tools(TOOLS)
    message = model.invoke("?") if way == "invoke" else reduce(add, model.stream("?"))
    calls = [(call["name"], call["args"]) for call in message.tool_calls]
    return message.content, calls, len(message.invalid_tool_calls)


def wanted(kind: str, text: str) -> Any:
    """The same of the answer that nothing cut."""
    service = CutService(text, len(text), GOING_ON["exactly"])
    service.reasons = ["stop"]
    return read(kind, service, "invoke")


def measure(
    count: int, ways: dict[str, Callable[[str, str], str]], *, seed: int = 37
) -> dict[str, tuple[int, int, list[Any]]]:
    """For each way of going on: how many came out right, of how many, and what did not.

    An answer counts as right if `invoke` and `stream` both give what the uncut one does.
    """
    right: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    wrong: dict[str, list[Any]] = {name: [] for name in ways}
    for kind, text in answers(count, seed):
        whole = wanted(kind, text)
        for end in range(STEP, len(text), STEP):
            for name, way in ways.items():
                found = [
                    read(kind, CutService(text, end, way), how) for how in ("invoke", "stream")
                ]
                tried[name] += 1
                if found == [whole, whole]:
                    right[name] += 1
                else:
                    wrong[name].append((kind, text[:end][-40:], way(text[:end], text[end:])[:60]))
    return {name: (right[name], tried[name], wrong[name]) for name in ways}


if __name__ == "__main__":
    how_many = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    figures = measure(how_many, GOING_ON) | measure(how_many // 10, OTHERS)
    for name, (good, all_, failed) in figures.items():
        print(f"{name:30} {good} of {all_} ({100 * good / all_:.2f} %)")
        for failure in failed[:3]:
            print("   ", failure)
