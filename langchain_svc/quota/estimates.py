"""How many tokens a call will take, before it is sent.

The prompt: its bytes, by a ratio that follows the service's reports. The answer: the mean of the
answers before, and never more than `max_tokens`. No tokenizer counts anything: the ratio learns
more from ten answers than a tokenizer of other models knows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

BYTES_A_TOKEN = 4
# In a shorter body the fields around the texts weigh too much to say anything of a text.
_LEAST_BODY = 1_000
_WEIGHT = 0.1  # of the newest call, in the means


class Used(NamedTuple):
    """Tokens that the service reported; `prompt` is None where it reported only the sum."""

    prompt: int | None
    total: int


class Estimates:
    """The means of one quota. Two threads at once may lose a sample, which does no harm."""

    def __init__(self) -> None:
        # Both hold until the first answer comes.
        self._ratio = 1.0
        self._answer = 100.0
        self._text_ratio: float | None = None  # the ratio of long prompts alone
        self.samples: int = 0
        # How far estimates were off on average, as a share of the report.
        self.error: float = 0.0
        self.headers_read_at: float = 0.0  # when an answer's headers were read last

    def prompt(self, size: int) -> int:
        """Tokens of a request's body of so many bytes."""
        return math.ceil(self._ratio * size / BYTES_A_TOKEN)

    def text(self, size: int) -> int | None:
        """Tokens of a text of so many bytes; None before the service reported a long prompt."""
        if self._text_ratio is None:
            return None
        return math.ceil(self._text_ratio * size / BYTES_A_TOKEN)

    def answer(self, most: int | None) -> int:
        """Tokens of an answer of at most so many."""
        tokens = self._answer
        if most is not None:
            tokens = min(tokens, most)
        return math.ceil(tokens)

    def learn(self, size: int, estimate: int, used: Used) -> None:
        """Learn from the report about a call of `size` bytes, whose tokens were estimated so."""
        # The first answer replaces the values of the start.
        weight = max(_WEIGHT, 1 / (self.samples + 1))
        prompt = used.prompt
        if prompt is not None and size:
            ratio = prompt * BYTES_A_TOKEN / size
            self._ratio += weight * (ratio - self._ratio)
            if size >= _LEAST_BODY:
                if self._text_ratio is None:
                    self._text_ratio = ratio
                self._text_ratio += _WEIGHT * (ratio - self._text_ratio)
        if prompt is None:
            prompt = self.prompt(size)
        self._answer += weight * (max(0, used.total - prompt) - self._answer)
        self.error += weight * (abs(estimate - used.total) / used.total - self.error)
        self.samples += 1


def read_usage(usage: Mapping[str, int] | None) -> Used | None:
    """The tokens of a report, or None where their sum is not known."""
    usage = usage or {}
    prompt = usage.get("prompt_tokens")
    answer = usage.get("completion_tokens")
    total = usage.get("total_tokens")
    if total is None and prompt is not None and answer is not None:
        total = prompt + answer
    if total is None or total <= 0:  # every prompt takes tokens: these were not counted
        return None
    if prompt is None and answer is not None:
        prompt = max(0, total - answer)
    return Used(prompt, total)
