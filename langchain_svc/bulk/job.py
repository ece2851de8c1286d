"""A job: what a caller of `bulk.run` gave, checked, and what came of it."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from langchain_core.runnables import Runnable, RunnableConfig

from .._safe_errors import safe_repr
from .._service import ServiceSettings
from .._usage import Price, read_prices
from ..errors import SvcRequestError
from ..quota import SvcQuota
from .driver import block_on
from .engine import Run
from .estimate import Estimate, estimate
from .fingerprint import fingerprint
from .journal import Journal, read_results
from .progress import Eta, shown
from .rows import Format, Rows, Source

Place: TypeAlias = str | os.PathLike[str]
Prices: TypeAlias = Mapping[str, Any] | Iterable[Any] | None


@dataclass(frozen=True)
class BulkReport:
    """What a run came to.

    Attributes:
        done: Rows with an answer, of this and earlier runs.
        failed: Rows with an error.
        asked: Rows that this run asked.
        input_tokens: Tokens in, counted or estimated, of all rows.
        output_tokens: Tokens out.
        total_tokens: All tokens.
        cost: In the currency of the prices; None where no price is known.
        seconds: How long this run took.
        journal: Where the answers are.
    """

    done: int
    failed: int
    asked: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cost: float | None
    seconds: float
    journal: str

    def results(self, *, ordered: bool = True) -> Iterator[dict[str, Any]]:
        """Every row as `{"id", "content", "usage", "error"}`, read from the journal as a stream.

        Args:
            ordered: In the order of the input, else as they finished.
        """
        return read_results(self.journal, ordered=ordered)


class Job:
    """A run with everything around it."""

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        rows: Rows,
        *,
        journal: Place,
        output: Place | None,
        concurrency: int,
        format: Format,  # noqa: A002  # the name in the documents
        ordered: bool,
        retry_errors: bool,
        settings: Mapping[str, Any] | None,
        outage_wait: float,
        eta: Eta | None,
        prices: Prices,
        config: RunnableConfig | None,
        progress: bool | None,
    ) -> None:
        _check_number("concurrency", concurrency, 1)
        _check_number("outage_wait", outage_wait, 0)
        _check_places(rows, journal, output)
        self._output = None if output is None else os.fspath(output)
        self._ordered, self._concurrency = ordered, concurrency
        self._retry_errors = retry_errors
        self._journal = os.fspath(journal)
        self._told = fingerprint(runnable, settings)
        if isinstance(format, str):
            self._told["format"] = format
        self._prices = None if prices is None else read_prices(prices)
        self._source = Source(rows, format)  # the last to fail: it opens a file
        self._run = Run(
            runnable,
            self._source,
            lambda: Journal(journal, self._told),
            concurrency=concurrency,
            retry_errors=retry_errors,
            outage_wait=outage_wait,
            prices=self._prices,
            config=config,
        )
        self._progress = progress
        self._eta = eta

    def run(self) -> BulkReport:
        """Do it, and wait for its end."""
        block_on(self._run, self.go, self._concurrency)
        return self.report()

    async def go(self) -> None:
        """Do it on the running event loop."""
        try:
            async with shown(self._run.standing, wanted=self._progress, eta=self._eta):
                await self._run.go(self._finish)
        finally:
            self._source.close()

    def report(self) -> BulkReport:
        """What has come of it so far."""
        standing = self._run.standing
        return BulkReport(
            **vars(standing.totals),
            asked=standing.asked,
            seconds=time.monotonic() - standing.begun,
            journal=self._journal,
        )

    def estimate(self) -> Estimate:
        """What it would take. Nothing is asked, and no journal made."""
        journal = Journal(self._journal, self._told) if os.path.exists(self._journal) else None  # noqa: PTH110
        try:
            return estimate(self._source, journal, retry_errors=self._retry_errors)
        finally:
            self._source.close()
            if journal is not None:
                journal.close()

    def price(self, model: str) -> Price | None:
        """What a model's tokens cost."""
        return (self._prices or {}).get(model)

    def eta(self, requests: int, tokens: int) -> float | None:
        """Seconds that so much takes by the plan."""
        return None if self._eta is None else self._eta(requests=requests, tokens=tokens)

    def _finish(self, journal: Journal) -> None:
        if self._output == "-":
            for line in journal.results(ordered=self._ordered):
                sys.stdout.write(line + "\n")
        elif self._output is not None:
            journal.write(self._output, ordered=self._ordered)


def _check_number(name: str, value: Any, least: float) -> None:
    number = isinstance(value, int if least else (int, float)) and not isinstance(value, bool)
    if not number or not least <= value < math.inf:
        kind = "a whole number" if least else "seconds"
        raise SvcRequestError(f"{name} must be {kind} from {least} on, not {safe_repr(value)}")


def _check_places(rows: Rows, journal: Place, output: Place | None) -> None:
    """No file may be written over another."""
    places = [rows] if isinstance(rows, str | os.PathLike) else []
    files = [place for place in (*places, journal, output) if place not in {None, "-"}]
    named = [os.path.realpath(place) for place in files]
    if len(set(named)) < len(named):
        raise SvcRequestError(
            "The input, the journal and the output must be three files, and two of them are "
            f"{max(named, key=named.count)}"
        )


def with_quota(
    runnable: Runnable[Any, Any], quota: SvcQuota | None
) -> tuple[Runnable[Any, Any], Eta | None]:
    """The runnable, which waits for the quota, and what tells the time that it takes."""
    if quota is None:
        found: SvcQuota | None = getattr(runnable, "quota", None)
        return runnable, found.eta if isinstance(found, SvcQuota) else None
    if not isinstance(runnable, ServiceSettings):
        raise SvcRequestError(
            "quota= is for a model or a tool of this package. In a chain or an agent the model "
            "has it: ChatSvc(quota=...)"
        )
    return cast("Runnable[Any, Any]", runnable.model_copy(update={"quota": quota})), quota.eta
