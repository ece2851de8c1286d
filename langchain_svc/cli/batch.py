"""The command `langchain-svc batch`."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import dataclass, field
from typing import Any

import langchain_svc as svc

from .. import bulk
from .._wire import read_prices, v1
from ..errors import (
    SvcAuthenticationError,
    SvcError,
    SvcPermissionDeniedError,
    SvcRequestError,
)
from .terminal import add_options, emit, model_settings, read_schema, tell

_SOME_FAILED, _INTERRUPTED = 1, 130
_FILTERED = "content_filter"  # a finish_reason that no limit of tokens explains
_RETRY, _CORRECT, _MORE_TOKENS = (
    "retry",
    "correct",
    "more tokens",
)  # what helps a failed row
_OPTIONS = (
    "journal",
    "output",
    "concurrency",
    "format",
    "ordered",
    "retry_errors",
    "outage_wait",
)


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.description = (
        "Send every row of a file to the service. A journal keeps each answer: after Ctrl-C or a "
        "crash, the same command resumes. The exit code is 1 if a row has an error or a cut answer."
    )
    add = parser.add_argument
    add("input", help=".jsonl, .csv or .parquet; - for JSONL on stdin")
    add("output", help="a JSONL file, written when the run ends; - for stdout")
    add("--journal", metavar="FILE", help="where answers are kept (OUTPUT.journal)")
    add(
        "--concurrency",
        type=int,
        default=16,
        metavar="N",
        help="rows at a time (%(default)s)",
    )
    add("--plan", metavar="NAME", help="stay within this plan's limits")
    add(
        "--dry-run",
        action="store_true",
        help="show what the run would take; send nothing",
    )
    add(
        "--retry-errors",
        action="store_true",
        help="retry the rows that had an error or were cut",
    )
    add("--ordered", action="store_true", help="results in the input's order")
    add(
        "--format",
        metavar="TEXT",
        help='prompts from other columns: "Summarize: {text}"',
    )
    add_options(parser, "--schema", "--model", "--temperature", "--max-tokens")
    add(
        "--outage-wait",
        type=float,
        default=3600.0,
        metavar="SECONDS",
        help="how long to wait while the service is down or a limit is reached (%(default)s)",
    )
    add("--quiet", action="store_true", help="show no progress")


def run(args: argparse.Namespace) -> int:
    """Run the job, or estimate it."""
    if args.journal is None:
        if args.output == "-":
            raise SvcRequestError(
                "With results on stdout the journal needs a place: --journal results.journal"
            )
        args.journal = args.output + ".journal"
    # A row waits as long as the plan wants; the run itself ends after --outage-wait.
    with svc.ChatSvc(
        deadline=None, quota=_quota(args), **model_settings(args)
    ) as model:
        listing = _list_models(model, dry_run=args.dry_run)
        same = {name: getattr(args, name) for name in _OPTIONS}
        prices = listing.prices(model.model)
        options = bulk.BulkOptions(prices=prices, progress=not args.quiet, **same)
        schema = None if args.schema is None else read_schema(args.schema)
        runnable: Any = (
            model if schema is None else model.with_structured_output(schema)
        )
        job = bulk.Job(runnable, args.input, options)
        if args.dry_run:
            return _tell_estimate(job, args, model, listing)
        return _run(job, args)


def _quota(args: argparse.Namespace) -> svc.SvcQuota | None:
    # Not an option: the list of processes would show a password in it.
    storage = os.environ.get("SVC_QUOTA_STORAGE") or "memory"
    if args.plan is None and storage == "memory":
        return None
    try:
        return svc.SvcQuota(args.plan or "learn", storage=storage)
    except ValueError as error:
        raise SvcRequestError(f"--plan or SVC_QUOTA_STORAGE: {error}") from None


@dataclass
class _Listing:
    """The models of the service, or why they are unknown; `refused` if it does not take the key."""

    models: list[Any] = field(default_factory=list)
    unknown: str = ""
    refused: bool = False

    def problem(self, model: str) -> str:
        """Why a run would fail, if the listing tells."""
        if self.refused:
            return self.unknown
        if self.models and not any(listed.id == model for listed in self.models):
            return f"{model} is not listed by the service: choose one of `langchain-svc models`"
        return ""

    def prices(self, model: str) -> dict[str, Any]:
        """The prices in the currency of the model that is asked."""
        prices = read_prices(self.models)
        if model not in prices:
            return {}
        currency = prices[model].currency
        return {
            name: price for name, price in prices.items() if price.currency == currency
        }


def _list_models(model: svc.ChatSvc, *, dry_run: bool) -> _Listing:
    """The models with their prices.

    A wrong key, or none, is found here, before a row is asked.
    """
    try:
        return _Listing(list(model.list_models()))
    except (SvcAuthenticationError, SvcPermissionDeniedError) as error:
        if not dry_run:
            raise
        return _Listing(unknown=str(error), refused=True)
    except SvcRequestError as error:
        if not dry_run:
            raise
        return _Listing(unknown=str(error))
    except SvcError as error:  # the run waits for a service that is down
        return _Listing(unknown=str(error))


def _run(job: bulk.Job, args: argparse.Namespace) -> int:
    try:
        report = job.run()
    except KeyboardInterrupt:
        tell(
            f"langchain-svc: interrupted: {_counts(job.report())}. Resume with:\n  {_again(args)}"
        )
        return _INTERRUPTED
    except SvcError as error:
        report = job.report()
        if report.done or report.failed or report.asked:
            tell(
                f"langchain-svc: stopped: {_counts(report)}. Then resume with:\n  {_again(args)}"
            )
        raise error from None
    tell(
        f"{_counts(report)} in {bulk.duration(report.seconds)}; journal {report.journal}"
    )
    if not report.failed:
        return 0
    _tell_failures(report, args)
    return _SOME_FAILED


def _tell_failures(report: bulk.BulkReport, args: argparse.Namespace) -> None:
    """The first failure of each kind that has another remedy, and how to go on."""
    errors: dict[str, dict[str, str]] = {}
    for row in report.results(ordered=True):
        if row["error"] is not None:
            errors.setdefault(_remedy(row), row["error"])
    max_tokens = None
    if _RETRY in errors:
        tell(
            f"The first error is a {errors[_RETRY]['type']}: {errors[_RETRY]['message']}"
        )
    if _MORE_TOKENS in errors:
        limit = args.max_tokens or v1.MAX_TOKENS_BY_DEFAULT
        tell(f"Answers were cut at --max-tokens, {limit:,} in this run")
        max_tokens = 2 * limit
    if _CORRECT in errors:
        place = "the input" if args.input == "-" else args.input
        tell(f"{errors[_CORRECT]['message']}. Correct such rows in {place}")
    tell(
        f"Retry the failed rows with:\n  {_again(args, retry=True, max_tokens=max_tokens)}"
    )


def _remedy(row: dict[str, Any]) -> str:
    """What helps a failed row."""
    if row["error"]["type"] == bulk.BadRow.__name__:
        return _CORRECT
    if row["error"]["type"] == bulk.CUT and row["finish_reason"] != _FILTERED:
        return _MORE_TOKENS
    return _RETRY


def _counts(report: bulk.BulkReport) -> str:
    parts = [f"{report.done:,} {'row' if report.done == 1 else 'rows'} answered"]
    parts += bulk.failures(report)
    if report.unanswered:
        parts.append(f"{report.unanswered:,} unanswered")
    parts.append(f"{report.total_tokens:,} tokens")
    if report.cost is not None:
        parts.append(f"cost {bulk.money(report.cost, report.currency)}")
    return ", ".join(parts)


def _again(
    args: argparse.Namespace, *, retry: bool = False, max_tokens: int | None = None
) -> str:
    """The command to type next."""
    words = list(args.words)
    if max_tokens is not None:
        if "--max-tokens" in words:
            place = words.index("--max-tokens")
            del words[place : place + 2]
        words += ["--max-tokens", str(max_tokens)]
    if retry and "--retry-errors" not in words:
        words.append("--retry-errors")
    return shlex.join(["langchain-svc", *words])


def _tell_estimate(
    job: bulk.Job, args: argparse.Namespace, model: svc.ChatSvc, listing: _Listing
) -> int:
    """Print what the run would take; the exit code says whether all rows could be asked."""
    estimate = job.estimate()
    problems = estimate.problems
    price = (job.prices or {}).get(model.model)
    if estimate.tokens_out is None:
        most = args.max_tokens or v1.MAX_TOKENS_BY_DEFAULT
        tokens_out, how, unit = (
            most * estimate.requests,
            "at most",
            f" ({most:,} per answer)",
        )
    else:
        tokens_out, how = round(estimate.tokens_out * estimate.requests), "about"
        unit = " (as in the journal's answers)"
    time = "unknown: --plan says how fast the service may be asked"
    if isinstance(model.quota, svc.SvcQuota):
        tokens = estimate.tokens_in + tokens_out
        seconds = model.quota.eta(requests=estimate.requests, tokens=tokens)
        time = f"{how} {bulk.duration(seconds)} with the plan {args.plan}"
    if price is None:
        cost = f"unknown: {listing.unknown or f'no price of {model.model} is listed'}"
    else:
        amount = estimate.tokens_in * price.input + tokens_out * price.output
        cost = f"{how} {bulk.money(amount, price.currency)}"
    begin, end = problems.longest
    # A quote that was closed by accident makes many records one, which no reader can see.
    longest = (
        f" (the longest from line {begin:,} to {end:,})" if end > begin > 0 else ""
    )
    emit(f"rows        {problems.rows:,}{longest}")
    if estimate.answered:
        emit(f"answered    {estimate.answered:,}")
    if problems.bad:
        emit(f"bad         {problems.bad:,} ({problems})")
    emit(f"requests    {estimate.requests:,}")
    emit(f"tokens in   about {estimate.tokens_in:,}")
    emit(f"tokens out  {how} {tokens_out:,}{unit}")
    emit(f"time        {time}")
    emit(f"cost        {cost}")
    wrong = listing.problem(model.model)
    if wrong:
        emit(f"problem     {wrong}")
    return _SOME_FAILED if wrong or problems.bad else 0
