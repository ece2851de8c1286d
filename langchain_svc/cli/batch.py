"""The command `langchain-svc batch`."""

from __future__ import annotations

import argparse
import math
import os
import shlex
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import Runnable

import langchain_svc as svc

from .. import bulk
from .._base.shown import money
from .._wire import read_prices, v1
from ..errors import (
    SvcAuthenticationError,
    SvcBadRequestError,
    SvcError,
    SvcNotFoundError,
    SvcPermissionDeniedError,
    SvcRequestError,
)
from .terminal import (
    FAILED,
    INTERRUPTED,
    MISUSED,
    STORAGE_VARIABLE,
    MisuseError,
    add_options,
    emit,
    error_line,
    in_a_shell,
    model_settings,
    near_model,
    read_schema,
    tell,
)

_FILTERED = "content_filter"  # a finish_reason that no limit of tokens explains
_LEARN = "learn"  # a plan whose limits the service tells
# Every row fails with these, and the same command would fail again.
_OF_THE_COMMAND = (SvcBadRequestError, SvcNotFoundError)
# The remedies for a failed row.
_RETRY = "retry"
_CORRECT = "correct"
_MORE_TOKENS = "more tokens"
_OPTIONS = (
    "journal",
    "output",
    "concurrency",
    "format",
    "ordered",
    "retry_errors",
    "shard",
    "outage_wait",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Send every row of a file to the service. A journal keeps each answer: after Ctrl-C, "
        "SIGTERM or a crash, the same command resumes. The exit code is 1 if a row has an error, "
        "a cut answer or none yet, and 2 if the command is to be corrected."
    )
    option = parser.add_argument
    option("input", nargs="?", help=".jsonl, .csv or .parquet; - for JSONL on stdin")
    option(
        "output",
        nargs="?",
        help="a JSONL file, written when the run ends; - for stdout",
    )
    option("--journal", metavar="FILE", help="where answers are kept (OUTPUT.journal)")
    option(
        "--concurrency",
        type=int,
        default=16,
        metavar="N",
        help="rows at a time (%(default)s)",
    )
    option(
        "--plan",
        metavar="PLAN",
        help="stay within these limits: free, pro, or your own, such as 60/min,3000/h",
    )
    option(
        "--dry-run",
        action="store_true",
        help="show what the run would take; send nothing",
    )
    option(
        "--status",
        metavar="OUTPUT",
        help="show where the run of this output stands, from another terminal; nothing else",
    )
    option(
        "--shard",
        metavar="K/N",
        help="ask every Nth row, from row K on: 1/2 on one machine, 2/2 on another",
    )
    option(
        "--retry-errors",
        action="store_true",
        help="retry the rows that had an error or were cut",
    )
    option("--ordered", action="store_true", help="results in the input's order")
    option(
        "--format",
        metavar="TEXT",
        help='prompts from other columns: "Summarize: {text}"',
    )
    add_options(parser, "--schema", "--model", "--temperature", "--max-tokens")
    option(
        "--outage-wait",
        type=float,
        default=3600.0,
        metavar="SECONDS",
        help="how long to wait while the service is down or a limit is reached (%(default)s)",
    )
    option("--quiet", action="store_true", help="show no progress")


def run(args: argparse.Namespace) -> int:
    """Run the job, estimate it, or look at it."""
    if args.status is not None:
        if args.input is not None:
            raise MisuseError(
                "--status takes the output alone: batch --status results.jsonl"
            )
        return _tell_status(args.journal or args.status + ".journal")
    if args.output is None:
        raise MisuseError(
            "give an input and an output: langchain-svc batch prompts.jsonl results.jsonl"
        )
    if args.journal is None:
        if args.output == "-":
            raise MisuseError(
                "With results on stdout the journal needs a place: --journal results.journal"
            )
        args.journal = args.output + ".journal"
    # A row waits as long as the plan requires; --outage-wait bounds the wait of the whole run.
    with svc.ChatSvc(
        deadline=None, quota=_quota(args), **model_settings(args)
    ) as model:
        listing = _list_models(model, dry_run=args.dry_run)
        options = bulk.BulkOptions(
            prices=listing.prices(model.model),
            progress=not args.quiet,
            **{name: getattr(args, name) for name in _OPTIONS},
        )
        runnable: Runnable[Any, Any] = model
        if args.schema is not None:
            runnable = model.with_structured_output(read_schema(args.schema))
        job = bulk.Job(runnable, args.input, options)
        if args.dry_run:
            return _tell_estimate(job, options, args, model, listing)
        if args.output == "-" and sys.stdout is None:
            raise MisuseError("stdout is closed, and the results are to go there")
        return _run(
            job, args, near_model(model.model, [one.id for one in listing.models])
        )


def _quota(args: argparse.Namespace) -> svc.SvcQuota | None:
    # The storage's address may hold a password, which the list of processes would show.
    storage = os.environ.get(STORAGE_VARIABLE) or "memory"
    if args.plan is None and storage == "memory":
        return None
    plan = args.plan or _LEARN
    try:
        svc.SvcQuota(plan)
    except ValueError as error:
        raise MisuseError(f"--plan: {error}") from None
    try:
        return svc.SvcQuota(plan, storage=storage)
    except ValueError as error:
        raise MisuseError(f"{STORAGE_VARIABLE}: {error}") from None


@dataclass
class _Listing:
    """The models of the service, or why they are unknown; `refused` if the key is wrong."""

    models: list[svc.ListedModel] = field(default_factory=list)
    unknown: str = ""
    refused: bool = False

    def problem(self, model: str | None) -> str:
        """Why a run would fail, if the listing shows it."""
        if self.refused:
            return self.unknown
        names = [listed.id for listed in self.models]
        if names and model not in names:
            return (
                f"{model} is not listed by the service: choose one of `langchain-svc models`"
                f"{near_model(model, names)}"
            )
        return ""

    def prices(self, model: str | None) -> dict[str, Any]:
        """The prices in the currency of this model."""
        prices = read_prices(self.models)
        if model not in prices:
            return {}
        currency = prices[model].currency
        return {
            name: price for name, price in prices.items() if price.currency == currency
        }


def _list_models(model: svc.ChatSvc, *, dry_run: bool) -> _Listing:
    """The models with their prices.

    A wrong or missing key fails here, before a row is sent.
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


def _run(job: bulk.Job, args: argparse.Namespace, suggestion: str) -> int:
    """Run the job; the suggestion ends the error about a model that is not there."""
    try:
        report = job.run()
    except KeyboardInterrupt:
        tell(
            f"langchain-svc: interrupted: {_counts(job.report())}. Resume with:\n  {_again(args)}"
        )
        return INTERRUPTED
    except SvcError as error:
        report = job.report()
        if not report.asked:
            raise error from None
        # The cause first: it says what to do before the run is resumed.
        ending = suggestion if isinstance(error, SvcNotFoundError) else ""
        tell(f"langchain-svc: {error_line(error)}{ending}")
        code = FAILED
        next_step = f"Then resume with:\n  {_again(args)}"
        if isinstance(error, _OF_THE_COMMAND) and not report.done:
            code = MISUSED
            next_step = "Correct the command; it begins anew."
        tell(f"Stopped: {_counts(report)}. {next_step}")
        return code
    tell(f"{_counts(report)} in {_time(report)}; journal {report.journal}")
    if not report.failed:
        return 0
    _tell_failures(report, args)
    return FAILED


def _tell_failures(report: bulk.BulkReport, args: argparse.Namespace) -> None:
    """Tell the first failure of each remedy, and the command that retries the failed rows."""
    errors: dict[str, dict[str, str]] = {}
    for row in report.results(ordered=True):
        if row["error"] is not None:
            errors.setdefault(_remedy(row), row["error"])
    max_tokens = None
    if _RETRY in errors:
        message = in_a_shell(errors[_RETRY]["message"])
        tell(f"The first error is a {errors[_RETRY]['type']}: {message}")
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
    noun = "row" if report.done == 1 else "rows"
    parts = [f"{report.done:,} {noun} answered"]
    parts += bulk.failures(report)
    if report.unanswered:
        parts.append(f"{report.unanswered:,} unanswered")
    parts.append(f"{report.total_tokens:,} tokens")
    if report.cost is not None:
        parts.append(f"cost {money(report.cost, report.currency)}")
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
    job: bulk.Job,
    options: bulk.BulkOptions,
    args: argparse.Namespace,
    model: svc.ChatSvc,
    listing: _Listing,
) -> int:
    """Print what the run would take; the exit code says whether all rows could be sent."""
    estimate = job.estimate()
    problems = estimate.problems
    tokens_in = estimate.tokens_in
    if estimate.tokens_out is None:
        limit = args.max_tokens or v1.MAX_TOKENS_BY_DEFAULT
        tokens_out = limit * estimate.requests
        bound = "at most"
        source = f"{limit:,} per answer"
    else:
        tokens_out = round(estimate.tokens_out * estimate.requests)
        bound = "about"
        source = "as in the journal's answers"

    seconds = "unknown: --plan says how fast the service may be asked"
    if isinstance(model.quota, svc.SvcQuota):
        seconds = _time_by_plan(
            model.quota,
            args.plan or _LEARN,
            options,
            requests=estimate.requests,
            tokens=tokens_in + tokens_out,
            bound=bound,
        )
    price = (job.prices or {}).get(model.model or "")
    if price is not None:
        amount = tokens_in * price.input + tokens_out * price.output
        cost = f"{bound} {money(amount, price.currency)}"
    else:
        reason = listing.unknown or f"no price of {model.model} is listed"
        cost = f"unknown: {reason}"

    emit(f"rows        {problems.rows:,}{_longest_row(*problems.longest)}")
    if estimate.answered:
        emit(f"answered    {estimate.answered:,}")
    if problems.bad:
        emit(f"bad         {problems.bad:,} ({problems})")
    emit(f"requests    {estimate.requests:,}")
    others = problems.models - {model.model}
    if others:
        emit(
            f"model       {model.model}; not {', '.join(sorted(others))}, as the rows say"
        )
    emit(f"tokens in   about {tokens_in:,}")
    emit(f"tokens out  {bound} {tokens_out:,} ({source})")
    emit(f"time        {seconds}")
    emit(f"cost        {cost}")
    problem = listing.problem(model.model)
    if problem:
        emit(f"problem     {problem}")
    if problem or problems.bad:
        return FAILED
    return 0


def _time_by_plan(
    quota: svc.SvcQuota,
    plan: str,
    options: bulk.BulkOptions,
    *,
    requests: int,
    tokens: int,
    bound: str,
) -> str:
    """How long the plan lets the run take, and how fast answers must be for that."""
    limits = [
        limit.limit
        for limit in quota.snapshot().limits
        if limit.interface in {"v1", "all"}
    ]
    if not any(limits):
        return f"unknown: no limit of the plan {plan} is known here"
    _, shards = options.part()  # the others use the same plan
    with svc.bulk_priority():  # as the run's own calls
        seconds = quota.eta(
            requests=requests * shards, tokens=tokens * shards, interface="v1"
        )
    bounded = f"{bound} {bulk.duration(math.ceil(seconds))} with the plan {plan}"
    if requests <= options.concurrency:
        return bounded
    slowest = math.floor(seconds * options.concurrency / requests)
    if not slowest:
        return f"as fast as answers come; {bounded}"
    return f"{bounded}, if an answer takes no longer than {slowest:,} s"


def _time(job: bulk.BulkReport | bulk.Status) -> str:
    """How long the job took; of several runs, all of them together."""
    duration = bulk.duration(job.seconds)
    return duration if job.runs == 1 else f"{duration}, in {job.runs:,} runs"


def _tell_status(journal: str) -> int:
    """Print where a job stands, whether it runs now or not."""
    status = bulk.read_status(journal)
    of = "" if status.expected is None else f" of {status.expected:,}"
    emit(f"rows        {status.finished:,}{of}")
    emit(f"answered    {status.done:,}")
    if status.failed:
        kinds = sorted(status.failures.items(), key=lambda kind: -kind[1])
        causes = ", ".join(f"{count:,} {kind}" for kind, count in kinds)
        emit(f"failed      {status.failed:,} ({causes})")
    if status.process:
        age = max(0.0, time.time() - status.written)
        emit(
            f"run         process {status.process} on {status.machine}, last sign {age:,.0f} s ago"
        )
    else:
        is_over = status.finished == status.expected
        emit(
            f"run         none; {'all rows are through' if is_over else 'the same command resumes'}"
        )
    emit(f"time        {_time(status)}")
    if status.wait:
        emit(f"waiting     {bulk.wait_in_words(status.wait, status.for_limit)}")
    if status.rate:
        emit(f"rate        {status.rate * 60:,.1f} rows a minute")
        if status.expected is not None:
            left = max(0, status.expected - status.finished) / status.rate
            emit(f"left        {bulk.duration(left)}")
    emit(f"tokens      {status.total_tokens:,}")
    if status.cost is not None:
        emit(f"cost        {money(status.cost, status.currency)}")
    return 0


def _longest_row(first: int, last: int) -> str:
    # A quotation mark without its end makes one row of many, and no error shows it.
    if not 0 < first < last:
        return ""
    return f" (the longest from line {first:,} to {last:,})"
