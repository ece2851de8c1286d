"""How many tokens a call will take, before it is sent.

The prompt: its bytes, by a ratio that follows what the service reports. The answer: the mean of
what answers took, and never more than `max_tokens`. Nothing is counted by a tokenizer: the ratio
learns more from ten answers than a tokenizer of other models knows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

_BYTES_A_TOKEN = 4.0
_FIRST_ANSWER = 100.0  # tokens, before any answer has come
_WEIGHT = 0.1  # of the newest call, in the means


class Estimates:
    """The means of one account. Two threads at once may lose a sample, which harms nobody."""

    def __init__(self) -> None:
        self._ratio = 1.0
        self._answer: float | None = None
        self.samples = 0
        self.looked_at = 0.0  # when an answer's headers were read last
        self.error = 0.0
        """The mean of how far estimates were off, as a share of what was used."""

    def prompt(self, size: int) -> int:
        """Tokens of a request's body of so many bytes."""
        return math.ceil(self._ratio * size / _BYTES_A_TOKEN)

    def answer(self, most: int | None) -> int:
        """Tokens of an answer of at most so many."""
        mean = _FIRST_ANSWER if self._answer is None else self._answer
        return math.ceil(mean if most is None else min(mean, most))

    def learn(self, size: int, estimate: int, usage: tuple[int | None, int | None, int]) -> None:
        """Take in what a call of `size` bytes, estimated so, used: in, out and together."""
        asked, answered, total = usage
        weight = max(_WEIGHT, 1 / (self.samples + 1))
        if asked is not None and size:
            self._ratio += weight * (asked * _BYTES_A_TOKEN / size - self._ratio)
        if answered is None:
            answered = max(0, total - self.prompt(size))
        known = answered if self._answer is None else self._answer
        self._answer = known + weight * (answered - known)
        if total:
            self.error += weight * (abs(estimate - total) / total - self.error)
        self.samples += 1


def read_usage(usage: Mapping[str, int] | None) -> tuple[int | None, int | None, int] | None:
    """The tokens in, out and together, or None where the sum is not known."""
    if not usage:
        return None
    asked, answered = usage.get("prompt_tokens"), usage.get("completion_tokens")
    total = usage.get("total_tokens")
    if total is None and asked is not None and answered is not None:
        total = asked + answered
    if total is None or total <= 0:  # no prompt takes none: it was not counted
        return None
    if asked is None and answered is not None:
        asked = max(0, total - answered)
    if answered is None and asked is not None:
        answered = max(0, total - asked)
    return asked, answered, total
