"""What goes in and out of the service: values only, no I/O."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_svc.sandbox.errors import Problem

if TYPE_CHECKING:
    from langchain_svc.sandbox.streams import Stream

JSON_TYPE = "application/json"


@dataclass(frozen=True)
class Call:
    """One complete request; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    """One answer: a whole body, or a stream when `stream` is set."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    stream: "Stream | None" = None


def json_reply(body: object, *, status: int = 200) -> Reply:
    """Return a complete JSON answer."""
    return Reply(status, {"content-type": JSON_TYPE}, encode(body))


def encode(value: object) -> bytes:
    """Return compact JSON in UTF-8, characters beyond ASCII as themselves."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def decode(call: Call) -> dict[str, object]:
    """Return the JSON object of a request, or refuse it with 400."""
    media_type = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON_TYPE:
        raise Problem(400, "Content-Type: expected application/json.")
    try:
        value = json.loads(call.body.decode(), parse_constant=_refuse_constant)
        if b"\\u" in call.body:
            encode(value)  # an escaped lone surrogate is no text: UnicodeEncodeError
    except (ValueError, RecursionError):
        raise Problem(400, "The body is not valid JSON in UTF-8.") from None
    if not isinstance(value, dict):
        raise Problem(400, "The body is not a JSON object.")
    return value


def _refuse_constant(name: str) -> object:
    # Python reads NaN and Infinity, which are not JSON.
    raise ValueError(name)
