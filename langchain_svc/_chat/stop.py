"""Stop sequences on our side, since the service knows none (v1 API, section 2)."""

from __future__ import annotations

from collections.abc import Sequence


class StopCutter:
    """Passes text on until one of the sequences has come: `feed(text)`, then `finish()`.

    Text is held back only while it could be the beginning of a sequence, and the result is the
    same for every way of cutting the text.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.hit = False

    def feed(self, text: str) -> str:
        """What may be yielded."""
        if not self._stops:
            return text
        if self.hit:
            return ""
        text = self._held + text
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.hit = True
            self._held = ""
            return text[: min(found)]
        keep = max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What was held back and turned out not to be a stop sequence."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` with which `stop` begins."""
    for size in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
