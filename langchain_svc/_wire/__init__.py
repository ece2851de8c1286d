"""What goes over the wire, as pure functions of bytes and values: no I/O, no LangChain."""

from . import v1
from .body import ACCEPT_ENCODING, BodyDecoder, BodyError, TooLargeError
from .chunks import About, End, Event, Metadata, Text, Usage
from .failures import (
    OF_SERVICE,
    TRANSIENT,
    TROUBLE,
    failure,
    rate_limit_of,
    read_error_value,
    read_failure,
    read_rate_limit,
    safe_label,
    safe_text,
    secrets_of,
)
from .stream import StreamDecoder, is_event_stream
from .v1 import (
    WINDOWS,
    ModelRecord,
    Price,
    UnreadableError,
    dump_json,
    is_cut,
    is_out_of_room,
    read_prices,
)
