"""What is on record of a call: its receipt, from before its first bytes to its last try's end."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from .._client import Exchange, TryEnd
from ..errors import SvcError
from ..tools.base import request_id, utc_now
from .delivery import Audit, acall_program, call_program
from .result import ClinicalReceipt, SentTry

logger: logging.Logger = logging.getLogger("langchain_svc")


class CallLog:
    """Keeps the receipt of one call, and shows it to the program before anything is sent.

    It is the `TryLog` of the call's exchange.

    Args:
        receipt: The receipt, without any try.
        audit: The program's function that puts receipts on record.
    """

    def __init__(
        self, exchange: Exchange[Any], receipt: ClinicalReceipt, audit: Audit
    ) -> None:
        self._exchange = exchange
        self._receipt = receipt
        self._audit = audit

    @property
    def receipt(self) -> ClinicalReceipt | None:
        """The receipt as of now; None while nothing was tried."""
        if not self._receipt.tries:
            return None
        return self._receipt

    def record(self, end: TryEnd | None) -> SvcError | None:
        self._note(end)
        return self._refusal(end, call_program("audit", self._audit, self._receipt))

    async def arecord(self, end: TryEnd | None) -> SvcError | None:
        self._note(end)
        failure = await acall_program("audit", self._audit, self._receipt)
        return self._refusal(end, failure)

    def _note(self, end: TryEnd | None) -> None:
        now = utc_now(self._exchange)
        tries = self._receipt.tries
        if end is None:
            tries = (*tries, SentTry(time=now))
        else:
            ended = replace(
                tries[-1],
                ended=now,
                outcome=end.outcome,
                left=end.left,
                request_id=request_id(self._exchange),
            )
            tries = (*tries[:-1], ended)
        self._receipt = replace(self._receipt, tries=tries)

    def _refusal(self, end: TryEnd | None, failure: str) -> SvcError | None:
        """Why a try is not to be sent: it could not be put on record."""
        if not failure:
            return None
        if end is not None:
            # That it was sent is on record, and an answer is not lost for this.
            logger.warning("%s, so the end of a try is not on record", failure)
            return None
        self._note(TryEnd("not sent: it could not be put on record", left=False))
        return SvcError(
            f"{self._receipt.tool}: nothing was sent by this try, because it could not be put on "
            f"record ({failure}). Nothing is known from this call."
        )
