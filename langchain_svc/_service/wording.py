"""What the failures of a call are called, and what is said of them."""

from __future__ import annotations

from typing import Any

from .. import errors
from .._wire import read_error_value, safe_text
from .steps import AnswerParser, Exchange, Lost, origin


def said(exchange: Exchange[Any], parser: AnswerParser[Any]) -> str:
    """What an error object inside the answer says, made safe."""
    if parser.error is None:
        return ""
    text, _, code = read_error_value(
        parser.error, secrets=exchange.request.secrets, private=exchange.request.private
    )
    return (f": {text}" if text else "") + (f" (code {code})" if code else "")


def late(exchange: Exchange[Any]) -> errors.SvcTimeoutError:
    """A call whose deadline has passed."""
    return errors.SvcTimeoutError(
        f"No answer within the deadline of {exchange.limits.deadline:g} s; a larger one waits "
        "longer"
    )


def _advice(detail: str, setting: str) -> str:
    if "certificate verify failed" in detail:
        return (
            "; check the host in the base URL and the clock of this machine, and if you trust the "
            "server's authority, name that one's file in SSL_CERT_FILE"
        )
    if detail.startswith("the proxy"):
        return "; check the proxy"
    return f"; check {setting}, and that the server is running"


def unreached(exchange: Exchange[Any], lost: Lost) -> errors.SvcError:
    """A try that was lost before an answer came."""
    if lost.kind == "timeout":
        if exchange.clock() >= exchange.until:
            return late(exchange)
        return errors.SvcTimeoutError(
            f"No answer within {_timeout(exchange)}; raise timeout to wait longer"
        )
    detail = safe_text(lost.detail, secrets=exchange.request.secrets)
    place = origin(exchange.request.url)
    what = (
        f"The service at {place} could not be reached"
        if lost.kind == "connect"
        else f"The connection to {place} was lost before an answer came"
    )
    text = f"{what}: {detail}" if detail else what
    if lost.kind == "connect":
        text += _advice(detail, exchange.request.setting)
    return errors.SvcConnectionError(text)


def how_lost(exchange: Exchange[Any], lost: Lost) -> str:
    """What is said of an answer that was lost on its way."""
    if lost.kind not in {"timeout", "silence"}:
        return "The connection was lost inside the answer"
    if exchange.clock() >= exchange.until:
        return f"The answer was not complete within the deadline of {exchange.limits.deadline:g} s"
    if lost.kind == "silence":
        return "The answer stalled: the service kept the connection alive but sent no content"
    return f"The answer stalled: nothing came for {_timeout(exchange)}"


def _timeout(exchange: Exchange[Any]) -> str:
    return (
        f"{exchange.limits.timeout:g} s"
        if exchange.limits.timeout is not None
        else "the time allowed"
    )
