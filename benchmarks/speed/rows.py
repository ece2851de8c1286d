"""What is measured, and what is to be reached: one `Row` a line of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .contestants import CORE, HTTPX, OURS, PEERS

FLOOR = (HTTPX, CORE)
ALL = (OURS, *PEERS, *FLOOR)


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        name: What the table calls it.
        way: The worker's way of measuring, `cold` or `cold_uncompiled`.
        answer: The server's answer.
        calls: Calls of one round.
        per: What a call's CPU time or memory is divided by: its events, or 1.
        unit: Of the figures: us, ms, s, KB, bytes, modules, 1/s or x.
        key: Which of the figures that were measured together.
        who: Who is measured.
        of_peer: The ratio to the best peer that is to be reached.
        of_floor: The ratio to the floor that is to be reached.
        why: Why a target is missed, where it is.
        rounds: At most so many rounds, where one takes long.
        floor: Which figures added up make the floor.
        warm: The answer of the round that is not counted, where the other takes long.
        fresh: Whether each measurement has a process of its own.
        quick: Whether a quick run has it.
        short: The name in the plot, of the rows that are in it.
    """

    name: str
    way: str
    answer: str = "say-12"
    calls: int = 1
    per: int = 1
    unit: str = "us"
    key: str = "cpu"
    who: Sequence[str] = ALL
    of_peer: float | None = None
    of_floor: float | None = None
    why: str = ""
    rounds: int = 99
    floor: tuple[str, ...] = FLOOR
    warm: str = ""
    fresh: bool = False
    quick: bool = True
    short: str = ""

    @property
    def measurement(self) -> tuple[object, ...]:
        """Rows that have the same are measured once."""
        return self.way, self.answer, self.calls, self.who, self.fresh


_BEGUN = (
    "the median stream waits for about 200 first chunks, one after another on one core."
)
_APP = "FastAPI and uvicorn send each event by itself, and cost the same for all."
_COUNTED = "in instructions, without the system's part, it takes {} of the best peer"
_IMPORTS = _COUNTED.format("0.98") + "; langchain-core alone takes 0.84."
_WAKING = _COUNTED.format("0.43 (`astream`) and 0.48 (`stream`)") + "."
_MACHINE = (
    "it is met on one machine and missed on another, with the same calls of functions."
)
_COLD_CALL = (
    "a call after a pause is cold; in instructions (927e63e), {} of the best peer."
)


def _live(
    streams: int, rounds: int, *, tokens: int = 100, quick: bool = False, **cpu: Any
) -> tuple[Row, ...]:
    """So many streams at once, begun together; each has 50 tokens a second."""
    name = (
        f"{streams} streams at once"
        if tokens == 100
        else f"{streams} streams of {tokens} tokens"
    )
    first = 0.10 if streams == 400 else None
    same: Any = {
        "way": "live", "answer": f"live-{tokens}", "warm": "live-8", "calls": streams,
        "rounds": rounds, "quick": quick,
    }  # fmt: skip
    return (
        Row(f"{name}, CPU of a token", per=tokens, **same, **cpu),
        Row(f"{name}, time to the first token", unit="ms",
            key="first", of_peer=first, floor=(HTTPX,), why=_BEGUN if first else "", **same),
        Row(f"{name}, length by the ideal", unit="x", key="length", floor=(HTTPX,), **same),
    )  # fmt: skip


def _app(name: str, answer: str, calls: int, **cpu: Any) -> tuple[Row, ...]:
    same: Any = {
        "way": "app", "answer": answer, "warm": "each-20", "calls": calls, "rounds": 3,
        "who": (OURS, *PEERS, HTTPX), "floor": (HTTPX,),
    }  # fmt: skip
    return (
        Row(f"app that passes on {name}, CPU of a request", **same, **cpu),
        Row(
            f"app that passes on {name}, requests a second",
            unit="1/s",
            key="rate",
            **same,
        ),
    )


_COLD: tuple[str, ...] = (OURS, *PEERS, CORE)

# The targets of the second round rest on prototypes that were measured before it was written.
ROWS = (
    *_live(100, 2),
    *_live(200, 3, quick=True, of_peer=0.55, short="a token,\n200 streams at once"),
    *_live(400, 2),
    *_live(800, 1),
    *_live(100, 2, tokens=700, of_peer=0.40, why=_WAKING),
    *_app("a burst of 200 events", "each-200", 128, of_peer=0.15,
          short="a request,\nFastAPI app, burst"),
    *_app("100 events at 100 a second", "hundred-100", 64, of_peer=0.55, why=_APP),
    Row("process start to first token", "cold", "first-8", unit="ms", who=_COLD, of_peer=0.97,
        floor=(CORE,), short="a process,\nstart to first token", why=_IMPORTS),
    Row("import of the class", "cold", "first-8", unit="ms", key="class", who=_COLD, floor=()),
    Row("modules of the class", "cold", "first-8", unit="modules", key="class_modules", who=_COLD,
        floor=()),
    Row("process start to first token, without compiled files", "cold_uncompiled", "first-8",
        unit="ms", who=_COLD, of_peer=0.97, floor=(CORE,), rounds=3, fresh=True, quick=False,
        why=_IMPORTS),
    Row("memory of a stream of 100 tokens, 200 at once", "live", "live-100", warm="live-8",
        calls=200, unit="KB", key="bytes", rounds=1, fresh=True, who=(OURS, *PEERS), floor=(),
        quick=False),
    Row("`invoke`", "invoke", calls=150, of_peer=0.55, of_floor=0.80, short="invoke",
        why=_COUNTED.format("0.53") + "."),
    Row("`ainvoke`", "ainvoke", calls=100, of_peer=0.45, of_floor=0.62,
        why="in instructions (927e63e), without the system's part, it takes 0.59 of the floor."),
    Row("`stream`, one event a read (paced), per event", "stream", "paced-300", per=300,
        of_peer=0.62, of_floor=1.0, why=_WAKING),
    Row("`astream`, one event a read (paced), per event", "astream", "paced-300", per=300,
        of_peer=0.50, of_floor=0.65, why=_WAKING, short="an event,\nastream, paced"),
    Row("`stream`, an HTTP chunk an event, sent together, per event", "stream", "each-1024",
        per=1024, of_peer=0.30, of_floor=0.45),
    Row("`stream`, 64 events a read, per event", "stream", "many-2048", per=2048, of_peer=0.15,
        of_floor=0.25, why=_MACHINE),
    Row("first chunk", "first_chunk", "first-8", calls=40, of_peer=0.48, of_floor=0.85,
        why=_COLD_CALL.format("a stream takes 0.46")),
    Row("first chunk, async", "afirst_chunk", "first-8", calls=40, of_peer=0.28, of_floor=0.62,
        why=_COLD_CALL.format("a stream takes 0.33")),
    Row("`batch`, 16 threads, per call", "batch", calls=128, of_peer=0.55, of_floor=0.80,
        why=_MACHINE),
    Row("`abatch`, 64 at once, per call", "abatch", "slow-12", calls=64, of_peer=0.20,
        of_floor=0.20, why=_MACHINE),
    Row("`abatch`, 512 at once, per call", "abatch", "slow-12", calls=512, rounds=2, quick=False),
    Row("construct the next object", "construct", calls=20, of_floor=2.5, who=_COLD, floor=(CORE,),
        why="pydantic checks each setting, so that an error can name it; once for an object."),
    Row("memory held per event, 64 events a read", "memory", "many-50000", warm="many-64",
        per=50_000, unit="bytes", key="bytes", of_peer=0.02, rounds=1, fresh=True,
        who=(OURS, *PEERS), floor=(), quick=False),
    Row("memory held per event, paced", "memory", "paced-5000", warm="paced-64", per=5000,
        unit="bytes", key="bytes", of_peer=0.75, rounds=1, fresh=True, who=(OURS, *PEERS),
        floor=(), quick=False),
    Row("`invoke` with a tool call of 1 KB", "call_tool", "called-1000", calls=60),
    Row("streamed tool call of 10 KB", "stream_tool", "called_stream-10000", unit="ms", rounds=3),
    Row("streamed tool call of 100 KB", "stream_tool", "called_stream-100000", unit="ms",
        of_peer=0.13, of_floor=0.45, rounds=2, quick=False),
    Row("the same with `stream_tool_args=True`", "stream_tool_args", "called_stream-100000",
        unit="ms", of_peer=0.1, rounds=2, quick=False),
    *(Row(f"growth: a stream of {events:,} events, 64 a read, per event", "stream",
          f"many-{events}", warm="many-64", per=events, rounds=2, who=(OURS,), quick=False)
      for events in (10_000, 100_000)),
    *(Row(f"growth: `abatch` of {calls:,}, 64 at a time, per call", "abatch_bounded", calls=calls,
          rounds=2, who=(OURS,), quick=False)
      for calls in (1000, 10_000)),
)  # fmt: skip
