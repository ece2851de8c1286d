"""The formats in which an answer can stream, as bytes that are each sent on their own.

Both documents leave the format of the pieces and of the end mark open, so the sandbox offers all
plausible ones. A stream here is a description: `pieces` of text, and how each becomes bytes.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass

from langchain_svc.sandbox.wire import encode

_EVENTS = "text/event-stream; charset=utf-8"

CONTENT_TYPES = {
    "sse": _EVENTS,
    "sse-text": _EVENTS,
    "ndjson": "application/x-ndjson",
    "text": "text/plain; charset=utf-8",
}
FORMATS = (*CONTENT_TYPES, "json")  # "json": one complete answer, no stream at all

_DONE = b"data: [DONE]\n\n"
# The first two of the three bytes of a euro sign.
HALF_CHARACTER = "\u20ac".encode()[:2]


@dataclass(frozen=True)
class Stream:
    """A streamed answer in one format; never empty, so that the role has a chunk to ride on.

    `chunk` gives the JSON of a piece from its text and index, `last` that after all pieces;
    the plain-text formats use neither.
    """

    format: str
    pieces: tuple[str, ...] | AsyncIterator[str]
    chunk: Callable[[str, int], object]
    last: Callable[[], object]

    @property
    def events(self) -> bool:
        """Whether the body is a text/event-stream."""
        return self.format in {"sse", "sse-text"}

    @property
    def live(self) -> bool:
        """Whether its pieces come as somebody else sends them."""
        return not isinstance(self.pieces, tuple)

    async def texts(self) -> AsyncGenerator[str, None]:
        """Each piece, when it is there."""
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
        """Return the bytes of one piece."""
        if self.format == "text":
            return text.encode()
        if self.format == "sse-text":
            return _event(text)
        return self._framed(encode(self.chunk(text, index)))

    def tail(self) -> tuple[bytes, ...]:
        """Return what follows the last piece: the closing chunk and the end mark, as there are."""
        if self.format == "text":
            return ()
        if self.format == "sse-text":
            return (_DONE,)
        last = self._framed(encode(self.last()))
        return (last, _DONE) if self.format == "sse" else (last,)

    def error_frame(self, error: object) -> bytes:
        """Return an error object as a piece of this stream."""
        return self._framed(encode(error))

    def broken_frame(self, text: str, index: int) -> bytes:
        """Return one piece whose JSON lost its end; text formats have no JSON to break."""
        if self.format in {"text", "sse-text"}:
            return self.frame(text, index)
        return self._framed(encode(self.chunk(text, index))[:-1] + b",")

    def half_frame(self, index: int) -> bytes:
        """Return the beginning of one more piece, cut inside a multi-byte character."""
        if self.format == "text":
            return HALF_CHARACTER
        if self.format == "sse-text":
            return b"data: " + HALF_CHARACTER
        whole = encode(self.chunk("\u20ac", index))
        start = b"data: " if self.format == "sse" else b""
        return start + whole[: whole.index(HALF_CHARACTER) + len(HALF_CHARACTER)]

    def _framed(self, line: bytes) -> bytes:
        return b"data: " + line + b"\n\n" if self.events else line + b"\n"


def _event(text: str) -> bytes:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join(f"data: {line}\n" for line in lines).encode() + b"\n"
