"""The answers of the sandbox: deterministic rules, and they say so. No model runs here.

A prompt is read from its text alone (`read`), as a model would. What is due is a call (`plan`),
JSON (`fill`), or words (`words`); `services` and `pictures` answer the other endpoints.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_svc.sandbox.answers.fill import fill, fill_keys
from langchain_svc.sandbox.answers.pictures import analyze, draw
from langchain_svc.sandbox.answers.plan import plan, rendered
from langchain_svc.sandbox.answers.read import Call, read
from langchain_svc.sandbox.answers.services import (
    cancer_risk,
    consult,
    decision_support,
    translate,
)
from langchain_svc.sandbox.answers.text import count_tokens, split_tokens
from langchain_svc.sandbox.answers.words import answer_in_words

__all__ = [
    "Answer",
    "analyze",
    "answer",
    "calls_in_form",
    "cancer_risk",
    "consult",
    "count_tokens",
    "cut",
    "decision_support",
    "draw",
    "split_tokens",
    "translate",
]

_FRAME = 3  # tokens that the role and the borders of a message cost


@dataclass
class Answer:
    """One answer; `pieces` are its tokens as a stream delivers them, some perhaps later."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    pieces: tuple[str, ...] | AsyncIterator[str]

    @property
    def total_tokens(self) -> int:
        """The tokens of the prompt and of the answer."""
        return self.prompt_tokens + self.completion_tokens


def answer(
    messages: Sequence[Mapping[str, str]], *, model: str, max_tokens: int | None = None
) -> Answer:
    """Answer a chat by rules, cut after `max_tokens` tokens where a limit is given."""
    return cut(_composed(messages, model), messages, max_tokens)


def cut(text: str, messages: Sequence[Mapping[str, str]], max_tokens: int | None) -> Answer:
    """A text as the answer to a chat, counted, and cut after `max_tokens` tokens."""
    pieces = split_tokens(text)
    kept = pieces[:max_tokens]
    return Answer(
        text="".join(kept),
        finish_reason="length" if len(kept) < len(pieces) else "stop",
        prompt_tokens=sum(count_tokens(str(m.get("content") or "")) + _FRAME for m in messages),
        completion_tokens=len(kept),
        pieces=tuple(kept),
    )


def calls_in_form(
    calls: Sequence[tuple[str, dict[str, Any]]], messages: Sequence[Mapping[str, str]]
) -> str:
    """Calls, each a name and arguments, in the form that the messages ask for."""
    return rendered([Call(*call) for call in calls], read(messages))


def _composed(messages: Sequence[Mapping[str, str]], model: str) -> str:
    prompt = read(messages)
    if calls := plan(prompt):
        return rendered(calls, prompt)
    reply = partial(answer_in_words, prompt, model)
    text = "\n".join([prompt.question, *(result.text for result in prompt.results)])
    if prompt.schema is not None:
        return json.dumps(fill(prompt.schema, text, reply=reply), ensure_ascii=False)
    if prompt.keys or prompt.wants_json:
        return json.dumps(fill_keys(prompt.keys, text, reply=reply), ensure_ascii=False)
    return reply()
