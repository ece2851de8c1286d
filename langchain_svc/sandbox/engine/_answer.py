"""From the messages of a chat to the answer, its tokens and its reason to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._chat import reply, tell_results
from langchain_svc.sandbox.engine._form import fill_form, wanted_schema
from langchain_svc.sandbox.engine._offer import render_calls
from langchain_svc.sandbox.engine._plan import Planner, with_names
from langchain_svc.sandbox.engine._reading import read
from langchain_svc.sandbox.engine._tokens import count_tokens, split_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FRAME = 3  # tokens that the role and the borders of a message cost


@dataclass(frozen=True)
class Answer:
    """One answer; `pieces` are its tokens as a stream would deliver them."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    pieces: tuple[str, ...]


def compose(messages: Sequence[Mapping[str, str]], model: str) -> str:
    """Return the whole text of the answer: calls, else JSON, else words."""
    reading = with_names(read(messages))

    def words() -> str:
        return tell_results(reading) if reading.results else reply(reading, model)

    calls = Planner(reading, words).calls()
    if calls:
        return render_calls(calls, reading.wrapper)
    schema = wanted_schema(reading)
    return fill_form(schema, reading, words) if schema is not None else words()


def answer(
    messages: Sequence[Mapping[str, str]], *, model: str, max_tokens: int | None = None
) -> Answer:
    """Answer a chat by rules, cut after `max_tokens` tokens where a limit is given."""
    pieces = split_tokens(compose(messages, model))
    cut = max_tokens is not None and len(pieces) > max_tokens
    if cut:
        pieces = pieces[:max_tokens]
    return Answer(
        text="".join(pieces),
        finish_reason="length" if cut else "stop",
        prompt_tokens=sum(count_tokens(str(m.get("content") or "")) + _FRAME for m in messages),
        completion_tokens=len(pieces),
        pieces=tuple(pieces),
    )
