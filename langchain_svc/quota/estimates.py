"""How many tokens a call will take, before it is sent.

The prompt: its bytes, by a ratio that follows what the service reports. The answer: the mean of
what answers took, and never more than `max_tokens`. Nothing is counted by a tokenizer: the ratio
learns more from ten answers than a tokenizer of other models knows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

BYTES_A_TOKEN = 4
# In a shorter body what stands around the texts weighs too much to say anything of a text.
_LEAST_BODY = 1_000
_WEIGHT = 0.1  # of the newest call, in the means


class Used(NamedTuple):
    """Tokens that the service reported; of the prompt None, where it told only the sum."""

    prompt: int | None
    total: int


class Estimates:
    """The means of one quota. Two threads at once may lose a sample, which harms nobody."""

    def __init__(self) -> None:
        self._ratio, self._answer = 1.0, 100.0  # before any answer has come
        self._of_texts: float | None = None  # the ratio, of long prompts alone
        self.samples = 0
        self.error = (
            0.0  # how far estimates were off on average, as a share of what was used
        )
        self.looked_at = 0.0  # when an answer's headers were read last

    def prompt(self, size: int) -> int:
        """Tokens of a request's body of so many bytes."""
        return math.ceil(self._ratio * size / BYTES_A_TOKEN)

    def text(self, size: int) -> int | None:
        """Tokens of a text of so many bytes; None before the service reported a long prompt."""
        if self._of_texts is None:
            return None
        return math.ceil(self._of_texts * size / BYTES_A_TOKEN)

    def answer(self, most: int | None) -> int:
        """Tokens of an answer of at most so many."""
        return math.ceil(self._answer if most is None else min(self._answer, most))

    def learn(self, size: int, estimate: int, used: Used) -> None:
        """Take in what a call of `size` bytes, estimated so, used."""
        weight = max(
            _WEIGHT, 1 / (self.samples + 1)
        )  # so the first answer replaces the start
        if used.prompt is not None and size:
            ratio = used.prompt * BYTES_A_TOKEN / size
            self._ratio += weight * (ratio - self._ratio)
            if size >= _LEAST_BODY:
                before = ratio if self._of_texts is None else self._of_texts
                self._of_texts = before + _WEIGHT * (ratio - before)
        prompt = self.prompt(size) if used.prompt is None else used.prompt
        self._answer += weight * (max(0, used.total - prompt) - self._answer)
        self.error += weight * (abs(estimate - used.total) / used.total - self.error)
        self.samples += 1


def read_usage(usage: Mapping[str, int] | None) -> Used | None:
    """What a report says, or None where the sum is not known."""
    usage = usage or {}
    prompt, answer = usage.get("prompt_tokens"), usage.get("completion_tokens")
    total = usage.get("total_tokens")
    if total is None and prompt is not None and answer is not None:
        total = prompt + answer
    if total is None or total <= 0:  # no prompt takes none: it was not counted
        return None
    if prompt is None and answer is not None:
        prompt = max(0, total - answer)
    return Used(prompt, total)
