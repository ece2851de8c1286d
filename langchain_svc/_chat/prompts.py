"""One prompt of a text model and its answer, and what one call may set differently.

Pure: it is given texts and answers and never touches the network. `SvcLLM` makes one `Prompt` for
each text, lets a driver run its call and hands it what comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.outputs import Generation, GenerationChunk
from pydantic import TypeAdapter

from .._service import Exchange, Limits, bounded_number
from .._wire import general
from .options import OVERRIDES, ModelId, read_options
from .tokens import count_tokens
from .turn import PROVIDER, StopCutter, facts_of

GeneralTemperature = Annotated[
    float, bounded_number(general.LOWEST_TEMPERATURE, general.HIGHEST_TEMPERATURE, text=True)
]
_OVERRIDES = {
    **{name: OVERRIDES[name] for name in ("stop", "timeout", "deadline", "max_retries")},
    "model": TypeAdapter(ModelId | None),
    "temperature": TypeAdapter(GeneralTemperature | None),
}


@dataclass(frozen=True)
class PromptOptions:
    """The settings of one call."""

    model: str | None
    temperature: float | None
    stop: tuple[str, ...]
    limits: Limits


class Prompt:
    """One prompt and its answer: pure, it is given what the call brings."""

    def __init__(self, exchange: Exchange[Any], prompt: str, options: PromptOptions) -> None:
        self.exchange = exchange
        self._prompt = prompt
        self._options = options
        self._cutter = StopCutter(options.stop)
        self._read: list[str] = []

    @property
    def stopped(self) -> bool:
        """Whether nothing more of this answer is wanted, so that its stream can be closed."""
        return self._cutter.hit

    def generation(self, answer: general.Answer) -> Generation:
        """A whole answer as LangChain's generation."""
        text = self._cutter.feed(answer.text) + self._cutter.finish()
        self._read.append(text)
        info = self._info(answer.model, answer.usage, timestamp=answer.timestamp)
        return Generation(text=text, generation_info=info)

    def chunks(self, text: str) -> Iterator[GenerationChunk]:
        """A piece of a stream; nothing while it may be the beginning of a stop text."""
        text = self._cutter.feed(text)
        if text:
            self._read.append(text)
            yield GenerationChunk(text=text)

    def last_chunk(self) -> GenerationChunk:
        """What was held back, and everything known about the answer.

        Once only and at the end: LangChain joins texts and adds numbers when it adds chunks up.
        """
        text = self._cutter.finish()
        self._read.append(text)
        parser: Any = self.exchange.parser  # a stream is read by a TextParser
        seen = parser.seen
        info = self._info(seen.model, seen.usage, id=seen.id, finish_reason=seen.finish_reason)
        return GenerationChunk(text=text, generation_info=info)

    def _info(
        self, model: str | None, usage: Mapping[str, int] | None, **known: Any
    ) -> dict[str, Any]:
        found = {"model_name": model or self._options.model, **known, **facts_of(self.exchange)}
        if self.stopped:
            found["finish_reason"] = "stop"
        return {
            "model_provider": PROVIDER,
            **self._tokens(usage or {}),
            **{name: value for name, value in found.items() if value},
        }

    def _tokens(self, usage: Mapping[str, int]) -> dict[str, Any]:
        """The service's own counts, or an estimate of the total."""
        names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
        counts = {ours: usage[theirs] for theirs, ours in names.items() if theirs in usage}
        total = usage.get("total_tokens")
        if total is None and len(counts) == len(names):
            total = sum(counts.values())
        if total is not None:
            return {"total_tokens": total, **counts, "usage_source": "service"}
        total = count_tokens(self._prompt) + count_tokens("".join(self._read))
        return {"total_tokens": total, "usage_source": "estimated"}


def check_prompt_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """What one call sets differently, by name.

    Raises:
        SvcRequestError: A name is unknown or a value out of its bounds.
    """
    return read_options(given, _OVERRIDES, "A call of SvcLLM")
