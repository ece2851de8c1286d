"""What the failures of a call are called, and how their errors describe them."""

from __future__ import annotations

from typing import Any

from .. import errors
from .._wire import read_error_value, safe_text
from .steps import AnswerParser, Exchange, Loss, origin


def describe_error(exchange: Exchange[Any], parser: AnswerParser[Any]) -> str:
    """What an error object inside the answer says, made safe; "" where there is none."""
    if parser.error is None:
        return ""
    request = exchange.request
    text, _, code = read_error_value(
        parser.error,
        secrets=request.secrets,
        sent=request.body,
        private=request.private,
    )
    description = ""
    if text:
        description += f": {text}"
    if code:
        description += f" (code {code})"
    return description


def deadline_error(exchange: Exchange[Any]) -> errors.SvcTimeoutError:
    """A call whose deadline has passed."""
    return errors.SvcTimeoutError(
        f"No answer within the deadline of {exchange.limits.deadline:g} s; a larger one waits "
        "longer"
    )


def connection_error(exchange: Exchange[Any], loss: Loss) -> errors.SvcError:
    """A try that was lost before an answer came."""
    if loss.kind == "timeout":
        if exchange.clock() >= exchange.until:
            return deadline_error(exchange)
        return errors.SvcTimeoutError(
            f"No answer within {_timeout(exchange)}; raise timeout to wait longer"
        )
    detail = safe_text(loss.detail, secrets=exchange.request.secrets)
    place = origin(exchange.request.url)
    if loss.kind == "connect":
        text = f"The service at {place} could not be reached"
    else:
        text = f"The connection to {place} was lost before an answer came"
    if detail:
        text += f": {detail}"
    if loss.kind == "connect":
        text += _advice(detail, exchange.request.setting)
    return errors.SvcConnectionError(text)


def _advice(detail: str, setting: str) -> str:
    if "certificate verify failed" in detail:
        return (
            "; check the host in the base URL and the clock of this machine, and if you trust the "
            "server's authority, name that one's file in SSL_CERT_FILE"
        )
    if detail.startswith("the proxy"):
        return "; check the proxy"
    return f"; check {setting}, and that the server is running"


def describe_loss(exchange: Exchange[Any], loss: Loss) -> str:
    """How an answer was lost on its way."""
    if loss.kind not in {"timeout", "silence"}:
        return "The connection was lost inside the answer"
    if exchange.clock() >= exchange.until:
        return f"The answer was not complete within the deadline of {exchange.limits.deadline:g} s"
    if loss.kind == "silence":
        return "The answer stalled: the service kept the connection alive but sent no content"
    return f"The answer stalled: nothing came for {_timeout(exchange)}"


def outcome_of_loss(loss: Loss) -> str:
    """A try that was lost before an answer came, in the words of a record."""
    if loss.kind == "timeout":
        return "timed out" if loss.sent else "not sent: timed out before that"
    if loss.kind == "connect":
        return "not sent: the service could not be reached"
    return "connection lost"


def outcome_of_broken_answer(loss: Loss) -> str:
    """A try whose answer was lost on its way, in the same words."""
    if loss.kind in {"timeout", "silence"}:
        return "timed out within the answer"
    return "connection lost within the answer"


def _timeout(exchange: Exchange[Any]) -> str:
    if exchange.limits.timeout is None:
        return "the time allowed"
    return f"{exchange.limits.timeout:g} s"
