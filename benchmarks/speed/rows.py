"""What is measured, and what is to be reached: one `Row` a line of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .contestants import CORE, HTTPX, OURS, PEERS

FLOOR = (HTTPX, CORE)
ALL = (OURS, *PEERS, *FLOOR)


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        name: What the table calls it.
        way: The worker's way of measuring, or a key of what `cold` measures.
        answer: The server's answer.
        calls: Calls of one round.
        per: What the CPU time is divided by: the events of one call, or 1.
        unit: Of the figures: us, ms, bytes or modules.
        of_peer: The ratio to the best peer that is to be reached.
        of_floor: The ratio to the floor that is to be reached.
        rounds: At most so many rounds, where one takes long.
        floor: Which figures added up make the floor.
    """

    name: str
    way: str
    answer: str = "say-12"
    calls: int = 1
    per: int = 1
    unit: str = "us"
    who: Sequence[str] = ALL
    of_peer: float | None = None
    of_floor: float | None = None
    rounds: int = 99
    floor: tuple[str, ...] = FLOOR
    quick: bool = True


# The targets rest on what was measured before any of this was written: see docs/performance.md.
ROWS = (
    Row("`import langchain_svc`", "package", unit="ms", who=(OURS, *PEERS), of_peer=0.4, floor=()),
    Row("its modules", "package_modules", unit="modules", who=(OURS, *PEERS), floor=()),
    Row("import of the class", "class", unit="ms", who=(OURS, *PEERS), floor=()),
    Row("its modules", "class_modules", unit="modules", who=(OURS, *PEERS), floor=()),
    Row(
        "import, construct, first call", "first_call", unit="ms", of_peer=0.95, of_floor=1.03,
        floor=(CORE,),
    ),
    Row(
        "construct the next object", "construct", calls=40, of_peer=0.10, of_floor=2.5,
        floor=(CORE,),
    ),
    Row("`invoke`", "invoke", calls=150, of_peer=0.60, of_floor=0.90),
    Row("`ainvoke`", "ainvoke", calls=100, of_peer=0.65, of_floor=1.0),
    Row(
        "`stream`, 64 events a read, per event", "stream", "many-2048", per=2048, of_peer=0.15,
        of_floor=0.25,
    ),
    Row(
        "`stream`, an HTTP chunk an event, sent together, per event", "stream", "each-1024",
        per=1024, of_peer=0.45, of_floor=0.85,
    ),
    Row(
        "`stream`, one event a read (paced), per event", "stream", "paced-300", per=300,
        of_peer=0.72, of_floor=1.0,
    ),
    Row(
        "`astream`, one event a read (paced), per event", "astream", "paced-300", per=300,
        of_peer=0.88, of_floor=1.0,
    ),
    Row("first chunk", "first_chunk", "first-8", calls=40, of_peer=0.60, of_floor=1.1),
    Row(
        "first chunk, async", "afirst_chunk", "first-8", calls=40, of_peer=0.50,
        of_floor=1.1,
    ),
    Row("`batch`, 16 threads, per call", "batch", calls=128, of_peer=0.70, of_floor=1.0),
    Row(
        "`abatch`, 64 at once, per call", "abatch", "slow-12", calls=64, of_peer=0.35,
        of_floor=0.35,
    ),
    Row("`abatch`, 512 at once, per call", "abatch", "slow-12", calls=512, rounds=2,
        quick=False),
    Row(
        "memory held per event, 64 events a read", "memory", "many-50000", per=50_000,
        unit="bytes", of_peer=0.02, rounds=1, floor=(), quick=False,
    ),
    Row(
        "memory held per event, paced", "memory", "paced-50000", per=50_000, unit="bytes",
        of_peer=0.75, rounds=1, floor=(), quick=False,
    ),
    Row("`invoke` with a tool call of 1 KB", "call_tool", "called-1000", calls=60),
    Row("streamed tool call of 10 KB", "stream_tool", "called_stream-10000", unit="ms"),
    Row("streamed tool call of 50 KB", "stream_tool", "called_stream-50000", unit="ms", rounds=3,
        quick=False),
    Row(
        "streamed tool call of 100 KB", "stream_tool", "called_stream-100000", unit="ms",
        of_peer=0.13, of_floor=0.45, rounds=3, quick=False,
    ),
)  # fmt: skip
