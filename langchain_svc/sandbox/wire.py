"""What goes in and out of the service: requests, checked bodies, answers, refusals. No I/O.

A refusal names the field and what was expected, never the value: it may be patient data. v1 API,
section 7, shows an error body and one combination of `type` and `code`; the others are the
sandbox's choice. The general and medical documents show no error body.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

JSON_TYPE = "application/json"


@dataclass(frozen=True)
class HttpRequest:
    """One request; header names are lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    client_port: int
    body: bytes = b""


@dataclass(frozen=True)
class HttpReply:
    """One answer: a whole body, or a stream when `stream` is set."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    stream: Stream | None = None


def json_reply(body: object, *, status: int = 200) -> HttpReply:
    """Return a complete JSON answer."""
    return HttpReply(status, {"content-type": JSON_TYPE}, encode(body))


def encode(value: object) -> bytes:
    """Return compact JSON in UTF-8, characters beyond ASCII as themselves."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def interface_of(path: str) -> str:
    """The interface that a path belongs to: "v1", "general" or "medical"."""
    if f"{path}/".startswith("/v1/"):
        return "v1"
    if path.startswith("/api/medical"):
        return "medical"
    return "general"


def require_ascii(name: str, value: str) -> None:
    """Check what will stand in a header or name a model.

    Raises:
        ValueError: It is empty, begins or ends with blanks, or is not printable ASCII.
    """
    is_printable = value.isascii() and value.isprintable()
    if not value or not is_printable or value != value.strip():
        raise ValueError(f"{name}: expected printable ASCII that is not empty.")


# -- refusals -------------------------------------------------------------------------------------

_REQUEST = "invalid_request_error"

# By status: the type and the code on v1, and the message. Those of 401 are documented.
_PROBLEMS = {
    400: (_REQUEST, "invalid_request", "The request is invalid."),
    401: (_REQUEST, "invalid_api_key", "The API key is missing or invalid."),
    403: (
        "permission_error",
        "not_authorized",
        "The API key is valid but not authorized for this resource.",
    ),
    404: (_REQUEST, "not_found", "The requested resource was not found."),
    405: (_REQUEST, "method_not_allowed", "This path does not answer this method."),
    413: (_REQUEST, "request_too_large", "The body is larger than 32 MB."),
    429: ("rate_limit_error", "rate_limit_exceeded", "Too many requests."),
    500: ("server_error", "internal_error", "Internal server error."),
    503: (
        "server_error",
        "service_unavailable",
        "The service is temporarily unavailable.",
    ),
}


class Problem(Exception):  # noqa: N818 - it is a value that travels by raise, not a defect
    """A refusal with its status."""

    def __init__(
        self,
        status: int,
        message: str | None = None,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        like = 400 if status < HTTPStatus.INTERNAL_SERVER_ERROR else 500
        other = (*_PROBLEMS[like][:2], f"The service answered {status}.")
        kind, known_code, known_message = _PROBLEMS.get(status, other)
        self.kind: str = kind
        self.code: str = code or known_code
        self.message: str = message or known_message
        self.headers: Mapping[str, str] = headers or {}
        super().__init__(self.message)


def v1_error(problem: Problem) -> dict[str, object]:
    """Return the documented v1 error body."""
    return {
        "error": {
            "message": problem.message,
            "type": problem.kind,
            "code": problem.code,
        }
    }


# -- bodies ---------------------------------------------------------------------------------------

NotEmpty = Annotated[str, Field(min_length=1)]


class Body(BaseModel):
    """A JSON object with the fields that a document lists; null is not of any of their types."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="allow", allow_inf_nan=False
    )

    def undocumented(self, prefix: str = "") -> Iterator[str]:
        """The paths of the fields that no document lists."""
        yield from (prefix + name for name in self.model_extra or ())
        for name, info in type(self).model_fields.items():
            value = getattr(self, name)
            path = prefix + (info.alias or name)
            if isinstance(value, Body):
                yield from value.undocumented(f"{path}.")
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, Body):
                        yield from item.undocumented(f"{path}[{index}].")


AnyBody = TypeVar("AnyBody", bound=Body)


def parse_body(kind: type[AnyBody], request: HttpRequest) -> AnyBody:
    """Return the JSON object of a request, or refuse it with 400."""
    content_type = request.headers.get("content-type", "")
    media_type, _, _ = content_type.partition(";")
    if media_type.strip().lower() != JSON_TYPE:
        raise Problem(400, "Content-Type: expected application/json.")
    try:
        value = from_json(request.body, allow_inf_nan=False)
    except ValueError:
        raise Problem(400, "The body is not valid JSON in UTF-8.") from None
    if not isinstance(value, dict):
        raise Problem(400, "The body is not a JSON object.")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise Problem(400, _explain(error)) from None


def _explain(error: ValidationError) -> str:
    """Return the path of the first wrong field, and what was expected there."""
    details = error.errors(include_url=False, include_input=False)[0]
    message = f"{details['msg'].rstrip('.')}."
    path = ""
    for key in details["loc"]:
        path += f"[{key}]" if isinstance(key, int) else f".{key}"
    path = path.removeprefix(".")
    if path:
        return f"{path}: {message}"
    return message


# -- chats ----------------------------------------------------------------------------------------


@dataclass
class ChatAnswer:
    """One answer; `pieces` are its tokens as a stream delivers them, some perhaps later."""

    model: str
    text: str = ""
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    pieces: tuple[str, ...] | AsyncIterator[str] = ()

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


# -- streams --------------------------------------------------------------------------------------

_EVENTS = "text/event-stream; charset=utf-8"

# "json": one complete answer, no stream at all.
StreamFormat = Literal["sse", "sse-text", "ndjson", "text", "json"]
CONTENT_TYPES = {
    "sse": _EVENTS,
    "sse-text": _EVENTS,
    "ndjson": "application/x-ndjson",
    "text": "text/plain; charset=utf-8",
}

_DONE = b"data: [DONE]\n\n"
# The first two of the three bytes of a euro sign.
HALF_CHARACTER = "\u20ac".encode()[:2]


@dataclass(frozen=True)
class Stream:
    """A streamed answer in one format; it has at least one piece, whose chunk carries the role.

    `chunk` makes the JSON of a piece from its text and index, and `last` makes the JSON after all
    pieces; the plain-text formats use neither.
    """

    format: str
    pieces: tuple[str, ...] | AsyncIterator[str]
    chunk: Callable[[str, int], object]
    last: Callable[[], object]

    @property
    def events(self) -> bool:
        return self.format in {"sse", "sse-text"}

    @property
    def live(self) -> bool:
        return not isinstance(self.pieces, tuple)

    async def texts(self) -> AsyncGenerator[str, None]:
        if isinstance(self.pieces, tuple):
            for text in self.pieces:
                yield text
            return
        try:
            async for text in self.pieces:
                yield text
        finally:
            if isinstance(self.pieces, AsyncGenerator):
                await self.pieces.aclose()

    def frame(self, text: str, index: int) -> bytes:
        if self.format == "text":
            return text.encode()
        if self.format == "sse-text":
            return _event(text)
        return self._framed(encode(self.chunk(text, index)))

    def tail(self) -> tuple[bytes, ...]:
        if self.format == "text":
            return ()
        if self.format == "sse-text":
            return (_DONE,)
        last = self._framed(encode(self.last()))
        if self.format == "sse":
            return (last, _DONE)
        return (last,)

    def error_frame(self, error: object) -> bytes:
        return self._framed(encode(error))

    def broken_frame(self, text: str, index: int) -> bytes:
        """Return one piece whose JSON lacks its end; text formats have no JSON to break."""
        if self.format in {"text", "sse-text"}:
            return self.frame(text, index)
        chunk = encode(self.chunk(text, index))
        return self._framed(chunk[:-1] + b",")

    def half_frame(self, index: int) -> bytes:
        """Return the beginning of one more piece, cut inside a multi-byte character."""
        before, half, _ = self.frame("\u20ac", index).partition(HALF_CHARACTER)
        return before + half

    def _framed(self, line: bytes) -> bytes:
        if self.events:
            return b"data: " + line + b"\n\n"
        return line + b"\n"


def _event(text: str) -> bytes:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join(f"data: {line}\n" for line in lines).encode() + b"\n"
