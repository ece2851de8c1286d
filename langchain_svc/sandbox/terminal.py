"""One line for each request, for the terminal in which the sandbox runs."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from langchain_svc.sandbox.exchanges import Exchange

_LONGEST_PATH = 60
_LONGEST_NOTE = 200
_GREEN, _YELLOW, _RED, _DIM = 32, 33, 31, 2


class Terminal:
    """Prints exchanges; in colours where somebody looks and has not asked for none."""

    def __init__(self, to: TextIO | None = None, *, colours: bool) -> None:
        self._to = to or sys.stderr
        self._colours = colours

    def __call__(self, exchange: Exchange) -> None:
        """Print one exchange that is over."""
        seen = exchange.received
        at = time.strftime("%H:%M:%S", time.localtime(seen.at))
        status = "---" if seen.status is None else str(seen.status)
        millis = f"{1000 * (exchange.seconds or 0):,.0f} ms"
        words = [
            self._in(_DIM, at),
            f"{seen.method:<4} {_plain(seen.path, _LONGEST_PATH):<24}",
            self._in(_colour(seen.status), status),
            f"{millis:>9}",
            *_remarks(exchange),
        ]
        self._to.write("  ".join(words).rstrip() + "\n")
        self._to.flush()

    def _in(self, colour: int, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours else text


def _colour(status: int | None) -> int:
    if status is None or status >= 500:  # noqa: PLR2004
        return _RED
    return _YELLOW if status >= 400 else _GREEN  # noqa: PLR2004


def _remarks(exchange: Exchange) -> list[str]:
    said = []
    if exchange.tokens is not None:
        said.append("{:,} + {:,} tokens".format(*exchange.tokens))
    if exchange.upstream:
        said.append(f"by {exchange.upstream}")
    if exchange.fault is not None:
        said.append("a fault was asked for")
    if exchange.received.disconnected:
        said.append("the client left")
    if exchange.note:
        said.append(_plain(exchange.note, _LONGEST_NOTE))
    return said


def _plain(text: str, longest: int) -> str:
    """Text with nothing in it that a terminal would obey."""
    shown = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
