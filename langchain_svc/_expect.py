"""What an answer is expected to be: text, calls of tools, or JSON that fits a schema."""

from __future__ import annotations

from collections.abc import Callable

from ._parts import Expectation, TextExpected
from ._structured import ResponseFormat
from ._tools import Offer


def expectation(
    offer: Offer | None,
    form: ResponseFormat | None,
    new_id: Callable[[int], str],
    *,
    streaming: bool,
) -> Expectation:
    """A reader for one answer to a call that offers tools, asks for JSON, both or neither."""
    if offer is None and form is None:
        return TextExpected()
    # Here and not above: these 45 modules are two thirds of what importing ChatSvc takes.
    from ._answers import CallExpected, CallsExpected, JsonExpected  # noqa: PLC0415

    if offer is not None and form is not None and offer.required:
        return CallExpected(offer, new_id, form)
    answer = JsonExpected(form, streaming=streaming) if form is not None else None
    if offer is not None:
        return CallsExpected(offer, new_id, answer)
    assert answer is not None  # noqa: S101  # there is an offer or a form
    return answer
