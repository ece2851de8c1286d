"""What goes over the wire, as pure functions of bytes and values: no I/O, no LangChain."""

from . import v1
from .body import ACCEPT_ENCODING, BodyDecoder, BodyError, TooLargeError
from .events import About, End, Event, Metadata, Text, Usage
from .failures import (
    TRANSIENT,
    TROUBLE,
    failure,
    read_error_value,
    read_failure,
    safe_label,
    safe_text,
)
from .limits import rate_limit_of, read_rate_limit
from .prices import Price, read_prices
from .redact import secrets_of
from .stream import StreamDecoder, is_event_stream
from .v1 import (
    WINDOWS,
    ModelRecord,
    UnreadableError,
    drop_none,
    dump_json,
    is_cut,
    is_out_of_room,
)
