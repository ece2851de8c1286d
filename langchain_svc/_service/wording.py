"""What the failures of a call are called, and what is said of them."""

from __future__ import annotations

from typing import Any

from .. import errors
from .._wire import read_safely, safe_text
from .call import Call, Lost, Reader, origin


def said(call: Call[Any], reader: Reader[Any]) -> str:
    """What an error object inside the answer says, made safe."""
    if reader.error is None:
        return ""
    text, _, code = read_safely(
        reader.error, secrets=call.request.secrets, private=call.request.private
    )
    return (f": {text}" if text else "") + (f" (code {code})" if code else "")


def late(call: Call[Any]) -> errors.SvcTimeoutError:
    """A call whose deadline has passed."""
    return errors.SvcTimeoutError(
        f"No answer within the deadline of {call.limits.deadline:g} s; a larger one waits longer"
    )


def unreached(call: Call[Any], lost: Lost) -> errors.SvcError:
    """A try that was lost before an answer came."""
    if lost.kind == "timeout":
        if call.clock() >= call.until:
            return late(call)
        return errors.SvcTimeoutError(
            f"No answer within {_timeout(call)}; raise timeout to wait longer"
        )
    detail = safe_text(lost.detail, secrets=call.request.secrets)
    place = origin(call.request.url)
    what = (
        f"The service at {place} could not be reached"
        if lost.kind == "connect"
        else f"The connection to {place} was lost before an answer came"
    )
    return errors.SvcConnectionError(f"{what}: {detail}" if detail else what)


def how_lost(call: Call[Any], lost: Lost) -> str:
    """What is said of an answer that was lost on its way."""
    if lost.kind not in {"timeout", "silence"}:
        return "The connection was lost inside the answer"
    if call.clock() >= call.until:
        return f"The answer was not complete within the deadline of {call.limits.deadline:g} s"
    if lost.kind == "silence":
        return "The answer stalled: the service kept the connection alive but sent no content"
    return f"The answer stalled: nothing came for {_timeout(call)}"


def _timeout(call: Call[Any]) -> str:
    return f"{call.limits.timeout:g} s" if call.limits.timeout is not None else "the time allowed"
