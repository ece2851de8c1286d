"""What is fuzzed, by name, and the inputs that a search begins with."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import calls, cost, http1, json_text, service, wire

CRASHERS = Path(__file__).parent / "crashers"
_SEEDS = 120


@dataclass(frozen=True)
class Target:
    """One property.

    Attributes:
        holds: Raises where the property does not hold for some bytes.
        pieces: What the texts that it makes of bytes are made of.
        head: How many bytes it uses before those of its text.
        guided: Whether atheris may lead the search.
    """

    holds: Callable[[bytes], None]
    pieces: Sequence[str] = ()
    head: int = 0
    guided: bool = True

    def seeds(self) -> Iterator[bytes]:
        """Texts of a few pieces each, as bytes that stand for the pieces and as they are."""
        choose = random.Random(0)  # noqa: S311 - the same seeds each time are what is wanted
        for number in range(_SEEDS):
            head = bytes(choose.randrange(256) for _ in range(self.head))
            if not self.pieces:
                yield bytes(
                    choose.randrange(64) for _ in range(choose.randrange(2, 60))
                )
                continue
            some = [
                choose.randrange(len(self.pieces))
                for _ in range(choose.randrange(1, 9))
            ]
            if number % 2:
                text = "".join(self.pieces[one] for one in some)
                yield head + b"\x01" + text.encode("utf-8", "replace")[:400]
            else:
                yield head + b"\x00" + bytes(some)


TARGETS: dict[str, Target] = {
    "stream": Target(wire.stream, wire.STREAM_PIECES, head=3),
    "headers": Target(wire.headers, wire.HEADER_PIECES, head=2),
    "failure": Target(wire.failure, wire.FAILURE_PIECES, head=4),
    "body": Target(wire.body),
    "answers": Target(wire.answers, wire.ANSWER_PIECES),
    "shaped_answers": Target(wire.shaped_answers),
    "pictures": Target(wire.pictures),
    "addresses": Target(wire.addresses, wire.ADDRESS_PIECES, head=1),
    "http1": Target(http1.http1, http1.HTTP1_PIECES, head=3),
    "tls_records": Target(http1.records, http1.HTTP1_PIECES, head=5),
    "json_lenient": Target(json_text.lenient, json_text.JSON_PIECES),
    "json_cut_off": Target(json_text.cut_off),
    "json_partial": Target(json_text.partial, json_text.JSON_PIECES, head=1),
    "json_answer": Target(json_text.answer, json_text.JSON_PIECES, head=1),
    "json_fitting": Target(json_text.fitting),
    "calls_any_text": Target(calls.any_text, calls.CALL_PIECES, head=1),
    "calls_rendered": Target(calls.rendered),
    "calls_planted": Target(calls.planted),
    "cost_http1": Target(cost.of_http1, guided=False),
    "cost_json": Target(cost.of_json, guided=False),
    "cost_calls": Target(cost.of_calls, guided=False),
    "cost_stream": Target(cost.of_streams, guided=False),
    "service": Target(service.service, service.SERVICE_PIECES, head=4, guided=False),
}


def crashers() -> list[tuple[str, Path]]:
    """Every input that once broke a property, with the property's name."""
    return [(folder.parent.name, folder) for folder in sorted(CRASHERS.glob("*/*"))]
