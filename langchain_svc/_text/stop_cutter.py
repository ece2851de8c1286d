"""Ends an answer at the caller's stop sequences, which the service does not know."""

from __future__ import annotations

from collections.abc import Sequence


class StopCutter:
    """Passes text on until a stop sequence has come: `pass_text(text)`, then `close()`.

    Text is held back only while it could be the beginning of a sequence, and the result is the
    same for every way of cutting the text.

    Attributes:
        buffer: The text that is held back.
        hit: Whether a stop sequence has come.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self.buffer = ""
        self.hit = False

    def pass_text(self, text: str) -> str:
        """What may be yielded."""
        if not self._stops:
            return text
        if self.hit:
            return ""
        text = self.buffer + text
        starts = [start for stop in self._stops if (start := text.find(stop)) >= 0]
        if starts:
            self.hit = True
            self.buffer = ""
            return text[: min(starts)]
        end = len(text) - max(_overlap(text, stop) for stop in self._stops)
        self.buffer = text[end:]
        return text[:end]

    def close(self) -> str:
        """What was held back and turned out not to be a stop sequence."""
        text = self.buffer
        self.buffer = ""
        return text


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` with which `stop` begins."""
    for size in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
