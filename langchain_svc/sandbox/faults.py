"""Faults on request: what goes wrong, for which requests, how often, and what is sent then.

A fault is a value, `FaultBook` decides which one a request gets, and `apply_fault` makes of an
answer what exactly will be sent, without I/O. `app.py` does what leaves no answer at all.
"""

from __future__ import annotations

import difflib
import json
import random
import reprlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import wraps
from typing import Annotated, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError
from pydantic import dataclasses as checked
from pydantic_core import ErrorDetails

from .wire import (
    HALF_CHARACTER,
    JSON_TYPE,
    HttpReply,
    Problem,
    Stream,
    encode,
    v1_error,
)

Reset = Literal["before", "inside"]
Mangle = Literal["json", "utf8", "content-type"]

# At most one of these: each says how the exchange ends.
_ENDINGS = ("hang", "reset", "cut", "end", "stall", "error_event", "raw")
_MOST_NEXT = 20
_Seconds = Annotated[float, Field(ge=0)]
_HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
_HeaderText = Annotated[str, Field(pattern=r"^[\x01-\x09\x0b\x0c\x0e-\xff]*$")]
_CONFIG = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
_Checked = TypeVar("_Checked")


def _with_plain_errors(kind: type[_Checked]) -> type[_Checked]:
    """Make a class raise ValueErrors of one line, where pydantic's have four and a link."""
    check = kind.__init__

    @wraps(check)
    def init(self: _Checked, *args: object, **values: object) -> None:
        try:
            check(self, *args, **values)
        except ValidationError as error:
            # The first is enough: a wrong header is a problem for each type that it may have.
            raise ValueError(_explain(error.errors()[0])) from None

    kind.__init__ = init  # type: ignore[assignment,method-assign]
    return kind


def _explain(problem: ErrorDetails) -> str:
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    place = problem["loc"][0]
    name = str(_NAMES_BY_PLACE.get(place, place))
    if problem["type"] == "unexpected_keyword_argument":
        names = _NAMES_BY_PLACE.values()
        hint = _did_you_mean(name, names) or f"known are: {', '.join(names)}"
        return f"Fault has no field {name!r}; {hint}"
    value = reprlib.repr(problem["input"])
    if name == "headers":
        value = f"a {type(problem['input']).__name__}"  # it may hold a key
    return f"{name}: {problem['msg']}, got {value}"


def _did_you_mean(text: str, options: Iterable[str]) -> str:
    matches = difflib.get_close_matches(text, list(options), 1, 0.75)
    return f"did you mean {matches[0]!r}?" if matches else ""


@checked.dataclass(frozen=True, config=_CONFIG)
class Effect:
    """What goes wrong with a request; without a field, nothing does. `Fault` tells the fields."""

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

    @property
    def interrupts(self) -> bool:
        """Whether the answer is not delivered to its end."""
        stops = self.cut or self.end or self.stall or self.error_event
        return stops or self.reset == "inside"

    @property
    def sends_no_answer(self) -> bool:
        """Whether there is no HTTP answer at all."""
        return self.hang or self.raw is not None or self.reset == "before"


NO_EFFECT = Effect()
_OF_ANSWERS = ("status", "body", "headers", "content_type", "mangle")
_EFFECTS = [name for name in vars(NO_EFFECT) if name not in {"heartbeats", "after"}]


@_with_plain_errors
@checked.dataclass(frozen=True, config=_CONFIG, repr=False)
class Fault(Effect):
    """Something that goes wrong: at least one field up to `raw`; times are in seconds.

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
        ValueError: A field is out of its bounds or unknown, two fields contradict each other, or
            nothing would go wrong.
    """

    path: str | None = None
    rate: Annotated[float, Field(gt=0, le=1)] = 1.0
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
        self._refuse_idle(endings)
        if self.heartbeats is not None and not self.stall:
            raise ValueError("heartbeats: expected stall=True beside it")
        neutral = vars(NO_EFFECT)
        if all(getattr(self, name) == neutral[name] for name in _EFFECTS):
            raise ValueError(
                f"{self} does nothing; say what goes wrong, such as Fault(status=503). "
                f"Choose from {', '.join(_EFFECTS)}"
            )
        if self.after != 1 and not self.interrupts and self.mangle != "json":
            raise ValueError(
                "after: expected reset='inside', cut, end, stall, error_event or mangle='json' "
                "beside it. It counts pieces of one answer; for the first N requests there is times"
            )

    def _refuse_idle(self, endings: list[str]) -> None:
        """Refuse what says how an answer is to be, where the ending sends none of it."""
        idle: tuple[str, ...] = ()
        if self.sends_no_answer:
            idle = _OF_ANSWERS
        elif self.error_event:
            idle = ("body",)  # which is an error object
        for name in idle:
            if getattr(self, name) != getattr(NO_EFFECT, name):
                raise ValueError(
                    f"{name} does nothing beside {endings[0]}, which decides what is sent; "
                    "leave one of them out"
                )

    def __repr__(self) -> str:
        defaults = {**vars(NO_EFFECT), "path": None, "rate": 1.0, "times": None}
        changed = [
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if value != defaults[name]
        ]
        return f"Fault({', '.join(changed)})"

    def matches(self, path: str) -> bool:
        """Whether a request to this path may get the fault."""
        return self.path is None or path.endswith(self.path)


_NAMES_BY_PLACE: dict[int | str, str] = dict(
    enumerate(member.name for member in fields(Fault))
)


class FaultBook:
    """The faults of one sandbox and how many requests each has matched; safe from any thread."""

    def __init__(
        self, faults: Fault | Iterable[Fault], seed: int, paths: Collection[str]
    ) -> None:
        self._lock = threading.Lock()
        self._seed = seed
        self._paths = paths
        self._next: deque[Fault] = deque(maxlen=_MOST_NEXT)
        self.replace(faults)

    def replace(self, faults: Fault | Iterable[Fault]) -> None:
        """Use these faults from now on, their counters at zero.

        Raises:
            TypeError: One of them is not a fault.
            ValueError: One of them can never happen.
        """
        new_faults = self._require_reachable(faults)
        with self._lock:
            self._faults = new_faults
            self._counts = [0] * len(new_faults)

    def _require_reachable(self, faults: Fault | Iterable[Fault]) -> tuple[Fault, ...]:
        if isinstance(faults, Fault):
            return self._require_reachable([faults])
        if not isinstance(faults, Iterable):
            raise TypeError(_not_a_fault("faults", faults))
        new_faults = tuple(faults)
        taken: set[str] = set()  # paths whose requests all get a fault before this one
        for index, fault in enumerate(new_faults):
            name = f"faults[{index}]"
            if not isinstance(fault, Fault):
                raise TypeError(_not_a_fault(name, fault))
            matches = {path for path in self._paths if fault.matches(path)}
            if not matches:
                raise ValueError(f"{name}: {self._unknown_path(str(fault.path))}")
            if matches <= taken:
                raise ValueError(
                    f"{name} never happens: faults before it take all its requests. Give them "
                    "times=, rate= or another path=, or put this one first."
                )
            if fault.times is None and fault.rate == 1:
                taken |= matches
        return new_faults

    def _unknown_path(self, path: str) -> str:
        # A path is often written without its beginning, so the ends are options, too.
        ends = {
            valid[position:]
            for valid in self._paths
            for position, character in enumerate(valid)
            if character == "/"
        }
        hint = _did_you_mean(path, sorted(ends))
        if not hint:
            hint = f"the paths are {', '.join(self._paths)}."
        return f"no endpoint's path ends with {path!r}; {hint}"

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
                if not fault.matches(path):
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


def _not_a_fault(name: str, value: object) -> str:
    return f"{name}: expected a Fault, such as Fault(status=503), got {reprlib.repr(value)}."


# -- what is sent ---------------------------------------------------------------------------------

_BODILESS = frozenset({204, 304})  # HTTP forbids these a body

_STREAM_ERROR = v1_error(Problem(500, "The service failed while it was answering."))


class Ending(Enum):
    """What happens after the last chunk."""

    COMPLETE = "the body ends as HTTP wants it"
    CUT = "the connection is closed"
    RESET = "the connection is reset"
    STALL = "nothing, and the connection stays open"


@dataclass(frozen=True)
class Response:
    """A response: each chunk is flushed on its own, then the ending happens.

    Without a content-length header the body is chunked. `heartbeat` is sent while stalled.
    """

    status: int
    headers: dict[str, str]
    chunks: AsyncGenerator[bytes, None]
    ending: Ending = Ending.COMPLETE
    paced: bool = False
    live: bool = False
    heartbeat: bytes = b""


def apply_fault(reply: HttpReply, fault: Effect = NO_EFFECT) -> Response:
    """Apply a fault to an answer."""
    reply = _with_body_and_headers(reply, fault)
    if reply.stream:
        return _streamed(reply, reply.stream, fault)
    return _whole(reply, fault)


def _with_body_and_headers(reply: HttpReply, fault: Effect) -> HttpReply:
    """The answer with the body and the headers that the fault has."""
    headers = dict(reply.headers)
    if fault.body is not None:
        body, headers["content-type"] = _payload(fault.body)
        reply = replace(reply, body=body, stream=None)
    if fault.mangle == "content-type":
        is_json = headers.get("content-type", "").startswith(JSON_TYPE)
        headers["content-type"] = "text/html" if is_json else JSON_TYPE
    if fault.content_type is not None:
        headers["content-type"] = fault.content_type
    for name, value in fault.headers.items():
        headers[name.lower()] = str(value)
    return replace(reply, headers=headers)


def _payload(body: object) -> tuple[bytes, str]:
    """The bytes of a fault's body, and its content type."""
    if isinstance(body, bytes):
        return body, "application/octet-stream"
    if isinstance(body, str):
        media_type = "text/html" if body.lstrip().startswith("<") else "text/plain"
        return body.encode(), f"{media_type}; charset=utf-8"
    return encode(body), JSON_TYPE


def _ending(fault: Effect) -> Ending:
    if fault.cut:
        return Ending.CUT
    if fault.reset == "inside":
        return Ending.RESET
    if fault.stall:
        return Ending.STALL
    return Ending.COMPLETE


def _streamed(reply: HttpReply, stream: Stream, fault: Effect) -> Response:
    return Response(
        reply.status,
        dict(reply.headers),
        _frames(stream, fault),
        _ending(fault),
        paced=not stream.live,
        live=stream.live,
        heartbeat=b": ping\n\n" if stream.events else b"",
    )


def _broken_index(stream: Stream, fault: Effect) -> int | None:
    """The index of the piece whose JSON the fault breaks: the last one, where there are fewer."""
    if fault.mangle != "json":
        return None
    if isinstance(stream.pieces, tuple):
        return min(fault.after, len(stream.pieces) - 1)
    return fault.after


async def _frames(stream: Stream, fault: Effect) -> AsyncGenerator[bytes, None]:
    broken_index = _broken_index(stream, fault)
    index = 0
    failed = fault.error_event
    try:
        async with aclosing(stream.texts()) as texts:
            async for text in texts:
                if fault.interrupts and index >= fault.after:
                    break
                if index == broken_index:
                    yield stream.broken_frame(text, index)
                else:
                    yield stream.frame(text, index)
                index += 1
    except Problem:
        failed = True  # the head was already sent: the status stays
    if failed:
        yield stream.error_frame(_STREAM_ERROR)
    elif fault.mangle == "utf8":
        yield stream.half_frame(index)
    elif not fault.interrupts:
        for frame in stream.tail():
            yield frame


def _whole(reply: HttpReply, fault: Effect) -> Response:
    body = _mangled(reply.body, fault)
    if fault.error_event:
        body = encode(_STREAM_ERROR)
    headers = dict(reply.headers)
    ending = _ending(fault)
    if reply.status in _BODILESS:
        return Response(reply.status, headers, _slices(b"", NO_EFFECT), ending)
    if not fault.end:
        # A cut body still announces its full length: that is how a client notices.
        headers.setdefault("content-length", str(len(body)))
    return Response(reply.status, headers, _slices(body, fault), ending)


def _mangled(body: bytes, fault: Effect) -> bytes:
    if fault.mangle == "json":
        return body[:-1] + b","
    if fault.mangle == "utf8":
        return body + HALF_CHARACTER
    return body


async def _slices(body: bytes, fault: Effect) -> AsyncGenerator[bytes, None]:
    if fault.error_event or not fault.interrupts:
        yield body
        return
    count = fault.after + 1
    for index in range(fault.after):
        start = index * len(body) // count
        end = (index + 1) * len(body) // count
        yield body[start:end]
