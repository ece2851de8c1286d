"""The command `langchain-svc batch`."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import Any

import langchain_svc as svc

from .. import bulk
from .._wire import v1
from ..errors import SvcAuthenticationError, SvcError, SvcPermissionDeniedError, SvcRequestError
from .terminal import add_options, emit, model_settings, read_schema, tell

_SOME_FAILED, _INTERRUPTED = 1, 130
_OPTIONS = ("journal", "output", "concurrency", "format", "ordered", "retry_errors", "outage_wait")


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.description = (
        "Send every row of a file to the service. A journal keeps each answer: after Ctrl-C or a "
        "crash, the same command resumes."
    )
    add = parser.add_argument
    add("input", help=".jsonl, .csv or .parquet; - for JSONL on stdin")
    add("output", help="a JSONL file, written when the run ends; - for stdout")
    add("--journal", metavar="FILE", help="where answers are kept (OUTPUT.journal)")
    add("--concurrency", type=int, default=16, metavar="N", help="rows at a time (%(default)s)")
    add("--plan", metavar="NAME", help="stay within this plan's limits")
    add("--dry-run", action="store_true", help="show what the run would take; send nothing")
    add("--retry-errors", action="store_true", help="retry the rows that had an error")
    add("--ordered", action="store_true", help="results in the input's order")
    add("--format", metavar="TEXT", help='prompts from other columns: "Summarize: {text}"')
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
    with svc.ChatSvc(deadline=None, quota=_quota(args), **model_settings(args)) as model:
        listed, unlisted = _listed(model, dry_run=args.dry_run)
        same = {name: getattr(args, name) for name in _OPTIONS}
        options = bulk.BulkOptions(prices=listed, progress=not args.quiet, **same)
        schema = None if args.schema is None else read_schema(args.schema)
        runnable: Any = model if schema is None else model.with_structured_output(schema)
        job = bulk.Job(runnable, args.input, options)
        if args.dry_run:
            _tell_estimate(job, args, model, unlisted)
            return 0
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


def _listed(model: svc.ChatSvc, *, dry_run: bool) -> tuple[list[Any], str]:
    """The models with their prices, or why there are none.

    A wrong key, or none, is found here, before a row is asked.
    """
    try:
        return list(model.list_models()), ""
    except (SvcAuthenticationError, SvcPermissionDeniedError, SvcRequestError) as error:
        if not dry_run:
            raise
        return [], str(error)
    except SvcError as error:  # the run waits for a service that is down
        return [], str(error)


def _run(job: bulk.Job, args: argparse.Namespace) -> int:
    try:
        report = job.run()
    except KeyboardInterrupt:
        tell(f"langchain-svc: interrupted: {_counts(job.report())}. Resume with:\n  {_again(args)}")
        return _INTERRUPTED
    except SvcError as error:
        report = job.report()
        if report.done or report.failed:
            tell(f"langchain-svc: stopped: {_counts(report)}. Then resume with:\n  {_again(args)}")
        raise error from None
    tell(f"{_counts(report)} in {bulk.duration(report.seconds)}; journal {report.journal}")
    if report.failed:
        first = next(row["error"] for row in report.results() if row["error"])
        tell(f"The first error is a {first['type']}: {first['message']}")
        tell(f"Retry the failed rows with:\n  {_again(args, '--retry-errors')}")
    return _SOME_FAILED if report.failed else 0


def _counts(report: bulk.BulkReport) -> str:
    parts = [f"{report.done:,} {'row' if report.done == 1 else 'rows'} answered"]
    if report.failed:
        parts.append(f"{report.failed:,} with an error")
    parts.append(f"{report.total_tokens:,} tokens")
    if report.cost is not None:
        parts.append(f"cost {bulk.money(report.cost)}")
    return ", ".join(parts)


def _again(args: argparse.Namespace, *more: str) -> str:
    words = [word for word in args.words if word not in more]
    return shlex.join(["langchain-svc", *words, *more])


def _tell_estimate(
    job: bulk.Job, args: argparse.Namespace, model: svc.ChatSvc, unlisted: str
) -> None:
    found, price = job.estimate(), (job.prices or {}).get(model.model)
    if found.tokens_out is None:
        most = args.max_tokens or v1.MAX_TOKENS_BY_DEFAULT
        tokens_out, how, unit = most * found.requests, "at most", f" ({most:,} per answer)"
    else:
        tokens_out, how = round(found.tokens_out * found.requests), "about"
        unit = " (as in the journal's answers)"
    time = "unknown: --plan says how fast the service may be asked"
    if isinstance(model.quota, svc.SvcQuota):
        seconds = model.quota.eta(requests=found.requests, tokens=found.tokens_in + tokens_out)
        time = f"{how} {bulk.duration(seconds)} with the plan {args.plan}"
    if price is None:
        cost = f"unknown: {unlisted or f'no price of {model.model} is listed'}"
    else:
        amount = found.tokens_in * price.input + tokens_out * price.output
        cost = f"{how} {bulk.money(amount)} {price.currency}".rstrip()
    emit(f"rows        {found.rows:,}")
    if found.answered:
        emit(f"answered    {found.answered:,}")
    if found.bad:
        emit(f"bad         {found.bad:,} ({'; '.join(found.problems)})")
    emit(f"requests    {found.requests:,}")
    emit(f"tokens in   about {found.tokens_in:,}")
    emit(f"tokens out  {how} {tokens_out:,}{unit}")
    emit(f"time        {time}")
    emit(f"cost        {cost}")
