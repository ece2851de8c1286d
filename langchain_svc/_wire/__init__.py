"""What goes over the wire, as pure functions of bytes and values: no I/O, no LangChain."""

from __future__ import annotations

from . import general, medical, v1
from .body import ACCEPT_ENCODING, BodyError, BodyReader, TooLargeError
from .failures import (
    TRANSIENT,
    TROUBLE,
    failure,
    own_label,
    read_failure,
    read_safely,
    safe_label,
    safe_text,
)
from .formats import Seen
from .general import read_success
from .limits import read_rate_limit
from .medical import Answer, inline, names_sent, opened, plain, told_of, values_sent
from .redact import Redactor, secrets_of
from .stream import StreamDecoder
from .v1 import WINDOWS, Completion, ModelRecord, UnreadableError, dump, is_cut
