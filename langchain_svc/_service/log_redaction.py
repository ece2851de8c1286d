"""Keeps what is sent and answered out of the logs and tracebacks of the libraries below.

At DEBUG httpcore writes the headers of every answer, and at INFO httpx the reason phrase, where a
service may repeat the key or the prompt. While a call of ours runs, their records keep the name of
what happened and lose the rest. An error that ends the call from outside (a cancelled task, Ctrl-C)
loses the frames of these libraries, among whose variables are the key and the body.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar, Token

_OURS: ContextVar[bool] = ContextVar("svc_call", default=False)
_LOGGERS = tuple(
    f"{library}.{name}"
    for library in ("httpcore", "httpcore2")
    for name in ("connection", "http11", "http2", "proxy", "socks")
)


class suppress_logs:  # noqa: N801  # used as a statement
    """The block in which records are cut, and out of which no frames come."""

    __slots__ = ("_token",)
    _token: Token[bool]

    def __enter__(self) -> None:
        self._token = _OURS.set(True)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        _OURS.reset(self._token)
        if error is not None:
            error.__context__ = None
            raise error.with_traceback(None)


def _keep_name(record: logging.LogRecord) -> bool:
    """Leaves the event's name, such as receive_response_headers.complete."""
    if _OURS.get():
        record.msg = record.getMessage().partition(" ")[0]
        record.args = ()
    return True


def _drop_reason(record: logging.LogRecord) -> bool:
    """Leaves method, address, version and status."""
    arguments = record.args
    if _OURS.get() and isinstance(arguments, tuple) and len(arguments) == _REASON + 1:
        record.args = (*arguments[:_REASON], "")
    return True


_REASON = 4  # HTTP Request: METHOD URL "VERSION STATUS REASON"
for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_keep_name)
for _name in ("httpx", "httpx2"):
    logging.getLogger(_name).addFilter(_drop_reason)
