"""What an answer is expected to be: text, calls of tools, or JSON that fits a schema."""

from __future__ import annotations

from .parts import Expectation, TextExpected, Wanted


def expectation(wanted: Wanted) -> Expectation:
    """A reader of the answers of one turn."""
    offer, form = wanted.offer, wanted.form
    if offer is None and form is None and not wanted.calls_before:
        return TextExpected(split=wanted.split)
    # Here and not above: these modules are two thirds of what importing ChatSvc takes.
    from .answers import CallExpected, CallsExpected, JsonExpected  # noqa: PLC0415
    from .tools import ToolRequest  # noqa: PLC0415

    if offer is not None and form is not None and form.as_call:
        return CallExpected(offer, form)
    answer = None
    if form is not None and not (offer is not None and offer.required):
        answer = JsonExpected(form, streaming=wanted.streaming)
    if offer is not None or answer is None:
        return CallsExpected(offer or ToolRequest([]), wanted, answer)
    return answer
