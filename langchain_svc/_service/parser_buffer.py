"""What has come from the network and was not yielded yet, by a look into httpcore's parser.

httpcore shows none of it, so this follows private names and finds nothing where they change: then
each HTTP chunk is yielded by itself, a connection is used again whatever it still holds, and the
log says so once.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import Any

import httpx

# The end of one HTTP chunk, the head of another one that is not the last, and a byte of it.
_NEXT_CHUNK = re.compile(rb"\r\n0{0,9}[1-9A-Fa-f][0-9A-Fa-f]{0,9}[ \t]*(?:;[^\r\n]*)?\r\n[\s\S]")
_STEPS = ("_httpcore_stream", "_stream", "_connection", "_h11_state")


class Received:
    """The bytes of one answer that its parser holds."""

    def __init__(self, response: httpx.Response, *, on_own_connection: bool = False) -> None:
        part: Any = response.stream
        for name in _STEPS:
            part = getattr(part, name, None)
        self._parser = part
        if part is None and on_own_connection:
            _warn_once()

    def has_chunk(self) -> bool:
        """Whether more of the body can be had without waiting for the network.

        A server that writes an HTTP chunk for each event is read many at a time all the same,
        and an event then takes 0.35 of the time.
        """
        return self._parser is not None and bool(_NEXT_CHUNK.match(self._parser.trailing_data[0]))

    def has_surplus(self) -> bool:
        """Whether there are bytes at all; after an answer's end they belong to no answer."""
        return self._parser is not None and bool(self._parser.trailing_data[0])


@cache
def _warn_once() -> None:
    logging.getLogger("langchain_svc").warning(
        "The parser of this version of httpcore is not where it used to be: streams are slower, "
        "and a connection with bytes left over is used again. Please report it, and until then "
        "use the httpcore of our constraints.txt"
    )
