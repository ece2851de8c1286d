"""Answers, where they are cut, and models that go on well or clumsily.

    python tests/chat/cut_answers.py 500

prints what becomes of 500 generated answers, cut at every 50th character: how many come out whole,
how many say that they are cut, and how many are neither.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import httpx

from langchain_svc import ChatSvc, SvcOutputError
from langchain_svc._text import ask_for_rest

STEP = 50  # characters between two places at which an answer is cut
ROOT = Path(__file__).parents[2]
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


# -- real texts -------------------------------------------------------------------------------------


def real_texts() -> list[str]:
    """Our own pages, programs and data: prose, lists, tables, code and JSON, as people write it."""
    pages = ["README.md", "docs/tools.md", "docs/settings.md", "AGENTS.md"]
    programs = ["langchain_svc/errors.py", "langchain_svc/chat/turn.py", "pyproject.toml"]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in [*pages, *programs]]
    call = {"name": "write", "arguments": {"path": "a.py", "text": texts[-2][:4_000]}}
    return [*texts, json.dumps(call), json.dumps({"rows": texts[0].splitlines()}, indent=2)]


# -- models that are told to go on ------------------------------------------------------------------


def shown(begun: str) -> str:
    """The words of a cut answer that the model is shown, with the blanks behind them."""
    request = ask_for_rest(begun)
    words = "\n".join(request.split("\n")[1:-1])
    return words + begun[len(begun.rstrip()) :]


def _last_line(begun: str) -> str:
    return begun[begun.rstrip().rfind("\n") + 1 :]


def _last_eight(begun: str) -> str:
    return "".join(re.findall(r"\S+\s*", begun)[-8:])


def _last_sentence(begun: str) -> str:
    ends = [match.end() for match in re.finditer(r"[.!?]\s+", begun.rstrip())]
    return begun[ends[-1] if ends else 0 :]


# What each model writes, by what it has begun and what is left to write.
REPEATING: dict[str, Callable[[str, str], str]] = {
    "repeats what it was shown": lambda begun, rest: shown(begun) + rest,
    "repeats its last line": lambda begun, rest: _last_line(begun) + rest,
    "repeats its last eight words": lambda begun, rest: _last_eight(begun) + rest,
    "repeats its last sentence": lambda begun, rest: _last_sentence(begun) + rest,
    "begins anew": lambda begun, rest: begun + rest,
}
TALKING: dict[str, Callable[[str, str], str]] = {
    "says something first": lambda begun, rest: (
        f"Sure, I'd be happy to go on. Here is the rest of it:\n\n{shown(begun)}{rest}"
    ),
    "begins with an ellipsis": lambda begun, rest: f"...{shown(begun)}{rest}",
    "quotes what it was shown": lambda begun, rest: f"“{shown(begun)}{rest}",
    "begins anew behind words": lambda begun, rest: (
        f"Es tut mir leid. Alles noch einmal:\n\n{begun}{rest}"
    ),
}
SILENT: dict[str, Callable[[str, str], str]] = {
    "goes on exactly": lambda begun, rest: rest,
    "goes on behind an ellipsis": lambda begun, rest: f"...{rest}",
    "goes on behind words": lambda begun, rest: (
        f"Sorry, I was cut off. Here is the rest:\n\n{rest}"
    ),
    "goes on in a fence": lambda begun, rest: f"```\n{rest}\n```",
    "says the words and nothing else": lambda begun, rest: shown(begun),
}
GOING_ON = REPEATING | TALKING | SILENT
# Whose beginning always proves that they go on; lines and sentences may be too short for that.
SURE = {"repeats what it was shown", "repeats its last eight words", "begins anew", *TALKING}


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


def read(kind: str, service: Any, way: str) -> tuple[Any, bool]:
    """What a user gets of the answer, and whether it says that it is cut."""
    model: Any = ChatSvc(
        api_key="k",
        base_url_v1="https://svc.example/v1",
        http_client=httpx.Client(transport=httpx.MockTransport(service)),
        on_cut="continue",
        max_repairs=0,
    )
    try:
        if kind == "object":
            model = model.with_structured_output(None, method="json_mode")
            return (model.invoke("?") if way == "invoke" else [*model.stream("?")][-1]), False
        if kind in ("call", "calls"):
            model = model.bind_tools(TOOLS)
        message = model.invoke("?") if way == "invoke" else reduce(add, model.stream("?"))
    except SvcOutputError:
        return None, True
    calls = [(call["name"], call["args"]) for call in message.tool_calls]
    return (message.content, calls), message.response_metadata["finish_reason"] == "length"


def wanted(kind: str, text: str) -> Any:
    """The same of the answer that nothing cut."""
    service = CutService(text, len(text), GOING_ON["goes on exactly"])
    service.reasons = ["stop"]
    return read(kind, service, "invoke")[0]


def verdict(text: str, found: Any, whole: Any, *, is_cut: bool) -> str:
    """Whether what a user got is whole, or says that it is cut and is a beginning; else wrong."""
    if found == whole and not is_cut:
        return "whole"
    if found is None and is_cut:
        return "cut"
    if not isinstance(found, tuple):
        return "wrong"
    (content, calls), (_, all_calls) = found, whole
    # Whole calls run that came before the cut, and say by themselves that they are not all.
    is_part = "".join(content.split()) in "".join(text.split())
    is_beginning = is_part and all_calls[: len(calls)] == calls
    return "cut" if is_beginning and (is_cut or calls != all_calls) else "wrong"


def measure(count: int, ways: dict[str, Callable[[str, str], str]], *, seed: int = 37) -> Any:
    """For each way of going on: how often each verdict was given, and what was wrong."""
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in ways}
    wrong: dict[str, list[Any]] = {name: [] for name in ways}
    for kind, text in answers(count, seed):
        whole = wanted(kind, text)
        for end in range(STEP, len(text), STEP):
            for name, way in ways.items():
                for how in ("invoke", "stream"):
                    found, is_cut = read(kind, CutService(text, end, way), how)
                    word = verdict(text, found, whole, is_cut=is_cut)
                    verdicts[name][word] += 1
                    if word == "wrong":
                        rest = way(text[:end], text[end:])
                        wrong[name].append((kind, how, text[:end][-60:], rest[:60], found))
    return verdicts, wrong


if __name__ == "__main__":
    how_many = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    given, not_right = measure(how_many, GOING_ON)
    for name, words in given.items():
        print(f"{name:32} {dict(words)}")
        for failure in not_right[name][:3]:
            print("   ", failure)
