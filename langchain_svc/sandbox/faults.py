"""Faults on request: what goes wrong, for which requests, and how often.

A fault is a value, and `FaultBook` decides which one a request gets. `response.py` applies a fault
to an answer, and `app.py` to the connection.
"""

import json
import random
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

Reset = Literal["before", "inside"]
Mangle = Literal["json", "utf8", "content-type"]

# At most one of these: each says how the exchange ends.
_ENDINGS = ("hang", "reset", "cut", "end", "stall", "error_event", "raw")
_MOST_NEXT = 20
_Seconds = Annotated[float, Field(ge=0)]
_HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
_HeaderText = Annotated[str, Field(pattern=r"^[\x01-\x09\x0b\x0c\x0e-\xff]*$")]
_CONFIG = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, config=_CONFIG)
class Fault:
    """Something that goes wrong; every field is optional, times are in seconds.

    Attributes:
        status: Answer with this status instead of doing the work.
        body: Body to answer with: str, bytes, or anything JSON can hold.
        headers: Headers to add or replace, such as Retry-After in any form.
        content_type: Content-Type to claim.
        delay: Wait this long before the headers.
        hang: Never answer.
        reset: TCP reset "before" any byte, or "inside" the answer after `after` pieces.
        cut: Close the connection after `after` pieces, the body unfinished.
        end: End the body properly after `after` pieces, with no end mark.
        stall: Fall silent after `after` pieces, the connection open.
        heartbeats: While stalled, send a comment this often (event streams only).
        error_event: After `after` pieces, send an error object and end.
        mangle: "json" breaks the JSON of the body or of piece number `after`; "utf8" ends the
            body inside a character; "content-type" labels a right body wrongly.
        raw: Write exactly these bytes instead of an HTTP answer, then close.
        after: Pieces to deliver first. A body that does not stream is cut in `after` + 1.
        path: Only requests whose path ends with this.
        rate: Share of the matching requests, drawn by the sandbox's seed.
        times: Only the first N matching requests.

    Raises:
        ValueError: A field is out of its bounds, or two fields contradict each other.
    """

    status: Annotated[int, Field(ge=200, le=599)] | None = None
    body: object = None
    headers: Mapping[_HeaderName, _HeaderText | int | float] = field(
        default_factory=dict
    )
    content_type: _HeaderText | None = None
    delay: _Seconds = 0.0
    hang: bool = False
    reset: Reset | None = None
    cut: bool = False
    end: bool = False
    stall: bool = False
    heartbeats: Annotated[float, Field(gt=0)] | None = None
    error_event: bool = False
    mangle: Mangle | None = None
    raw: bytes | None = None
    after: Annotated[int, Field(ge=0)] = 1
    path: str | None = None
    rate: Annotated[float, Field(ge=0, le=1)] = 1.0
    times: Annotated[int, Field(ge=1)] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.body, bytes):
            try:
                json.dumps(self.body)
            except (TypeError, ValueError):
                raise ValueError("body: expected str, bytes or a JSON value") from None
        endings = [
            name for name in _ENDINGS if getattr(self, name) not in (None, False)
        ]
        if len(endings) > 1:
            raise ValueError(
                f"{' and '.join(endings)} contradict each other; choose one"
            )
        if self.heartbeats is not None and not self.stall:
            raise ValueError("heartbeats: expected stall=True beside it")

    @property
    def interrupts(self) -> bool:
        """Whether the answer is not delivered to its end."""
        stops = self.cut or self.end or self.stall or self.error_event
        return stops or self.reset == "inside"


class FaultBook:
    """The faults of one sandbox and how many requests each has matched; safe from any thread."""

    def __init__(self, faults: Iterable[Fault], seed: int) -> None:
        self._lock = threading.Lock()
        self._seed = seed
        self._next: deque[Fault] = deque(maxlen=_MOST_NEXT)
        self.replace(faults)

    def replace(self, faults: Iterable[Fault]) -> None:
        """Use these faults from now on, their counters at zero."""
        new_faults = tuple(faults)
        for fault in new_faults:
            if not isinstance(fault, Fault):
                raise TypeError(
                    f"faults: expected Fault objects, got {type(fault).__name__}."
                )
        with self._lock:
            self._faults = new_faults
            self._counts = [0] * len(new_faults)

    @property
    def faults(self) -> tuple[Fault, ...]:
        with self._lock:
            return self._faults

    def put_next(self, fault: Fault) -> None:
        """Queue a fault: the next requests get one of the queued faults each."""
        with self._lock:
            self._next.append(fault)

    def drop_next(self) -> None:
        with self._lock:
            self._next.clear()

    @property
    def next(self) -> tuple[Fault, ...]:
        with self._lock:
            return tuple(self._next)

    def pick(self, path: str) -> Fault | None:
        """Return the fault that this request gets, and count the request for each that matched."""
        with self._lock:
            if self._next:
                return self._next.popleft()
            for index, fault in enumerate(self._faults):
                if fault.path is not None and not path.endswith(fault.path):
                    continue
                self._counts[index] += 1
                count = self._counts[index]
                if fault.times is not None and count > fault.times:
                    continue
                # A number per (seed, fault, request): one fault's draws never move another's.
                seed = f"{self._seed}/{index}/{count}"
                if random.Random(seed).random() < fault.rate:  # noqa: S311  # no secret
                    return fault
        return None
