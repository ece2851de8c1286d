"""The command `langchain-svc batch`."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING, Any

from .._wire import v1
from ..errors import (
    SvcAuthenticationError,
    SvcError,
    SvcPermissionDeniedError,
    SvcRequestError,
)
from .terminal import read_schema

if TYPE_CHECKING:
    from ..bulk import BulkReport, Job
    from ..chat_models import ChatSvc, ListedModel
    from ..quota import SvcQuota

_SOME_FAILED, _INTERRUPTED = 1, 130


def add_batch(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.description = (
        "Ask the service every row of a file. A journal keeps each answer: the same command after "
        "Ctrl-C or a crash goes on."
    )
    parser.add_argument("input", help=".jsonl, .csv, .tsv or .parquet; - for JSONL on stdin")
    parser.add_argument("output", help="a JSONL file, written when the run ends; - for stdout")
    parser.add_argument("--journal", metavar="FILE", help="(OUTPUT.journal)")
    parser.add_argument(
        "--concurrency", type=int, default=16, metavar="N", help="rows at a time (%(default)s)"
    )
    parser.add_argument("--plan", metavar="NAME", help="keeps to the limits of this plan")
    parser.add_argument(
        "--storage",
        default="memory",
        metavar="URL",
        help="redis://host:port/0: the plan is shared with other processes and machines",
    )
    parser.add_argument("--dry-run", action="store_true", help="tell what it takes, ask nothing")
    parser.add_argument(
        "--retry-errors", action="store_true", help="ask again the rows that had an error"
    )
    parser.add_argument("--ordered", action="store_true", help="results in the input's order")
    parser.add_argument("--format", metavar="TEXT", help='prompts of columns: "Summarize: {text}"')
    parser.add_argument("--schema", metavar="FILE", help="JSON schema of objects to answer with")
    parser.add_argument("--model", metavar="ID", help="as `langchain-svc models` lists it")
    parser.add_argument("--temperature", type=float, metavar="T", help="0 to 2")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="the most of one answer")
    parser.add_argument(
        "--outage-wait",
        type=float,
        default=3600.0,
        metavar="SECONDS",
        help="how long to wait for a service that is down or a limit that is used up (%(default)s)",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=_batch)


def _batch(args: argparse.Namespace) -> int:
    from ..bulk import Job  # noqa: PLC0415  # the other commands need none of it

    if args.journal is None:
        if args.output == "-":
            raise SvcRequestError(
                "With results on stdout the journal needs a place: --journal results.journal"
            )
        args.journal = args.output + ".journal"
    with _model(args) as model:
        listed, unlisted = _listed(model, args)
        job = Job(
            _runnable(model, args.schema),
            args.input,
            journal=args.journal,
            output=args.output,
            concurrency=args.concurrency,
            format=args.format,
            ordered=args.ordered,
            retry_errors=args.retry_errors,
            settings=None,
            outage_wait=args.outage_wait,
            eta=getattr(model.quota, "eta", None),
            prices=listed,
            config=None,
            progress=not args.quiet,
        )
        if args.dry_run:
            _tell_estimate(job, args, model.model, unlisted)
            return 0
        return _run(job, args)


def _listed(model: ChatSvc, args: argparse.Namespace) -> tuple[list[ListedModel], str]:
    """The models with their prices, or why there are none.

    A wrong key, or none, is found here, before a row is asked.
    """
    try:
        return model.list_models(), ""
    except (SvcAuthenticationError, SvcPermissionDeniedError, SvcRequestError) as error:
        if not args.dry_run:
            raise
        return [], str(error)
    except SvcError as error:  # the run waits for a service that is down
        return [], str(error)


def _run(job: Job, args: argparse.Namespace) -> int:
    try:
        report = job.run()
    except KeyboardInterrupt:
        _tell(f"langchain-svc: interrupted: {_counts(job.report())}. Go on with:\n  {_again(args)}")
        return _INTERRUPTED
    except SvcError as error:
        report = job.report()
        if report.done or report.failed:
            _tell(f"langchain-svc: stopped: {_counts(report)}. Then go on with:\n  {_again(args)}")
        raise error from None
    from ..bulk import duration  # noqa: PLC0415  # the other commands need none of it

    _tell(f"{_counts(report)} in {duration(report.seconds)}; journal {report.journal}")
    if report.failed:
        _tell(f"To ask those with an error again:\n  {_again(args, '--retry-errors')}")
    return _SOME_FAILED if report.failed else 0


def _counts(report: BulkReport) -> str:
    from ..bulk import money  # noqa: PLC0415  # the other commands need none of it

    parts = [f"{report.done:,} rows answered"]
    if report.failed:
        parts.append(f"{report.failed:,} with an error")
    parts.append(f"{report.total_tokens:,} tokens")
    if report.cost is not None:
        parts.append(f"cost {money(report.cost)}")
    return ", ".join(parts)


def _again(args: argparse.Namespace, *more: str) -> str:
    words = [word for word in args.words if word not in more]
    return shlex.join(["langchain-svc", *words, *more])


def _model(args: argparse.Namespace) -> ChatSvc:
    from ..chat_models import ChatSvc  # noqa: PLC0415  # the other commands need none of it

    given = {name: getattr(args, name) for name in ("model", "temperature", "max_tokens")}
    named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if args.plan is not None or args.storage != "memory":
        named["quota"] = _quota(args)
    # A row waits as long as the plan wants; the run itself ends after --outage-wait.
    return ChatSvc(deadline=None, **named)


def _quota(args: argparse.Namespace) -> SvcQuota:
    from ..quota import SvcQuota  # noqa: PLC0415  # the other commands need none of it

    try:
        return SvcQuota(args.plan or "learn", storage=args.storage)
    except ValueError as error:
        raise SvcRequestError(f"--plan or --storage: {error}") from None


def _runnable(model: ChatSvc, schema: str | None) -> Any:
    return model if schema is None else model.with_structured_output(read_schema(schema))


def _tell_estimate(job: Job, args: argparse.Namespace, model: str, unlisted: str) -> None:
    from ..bulk import duration, money  # noqa: PLC0415  # the other commands need none of it

    found = job.estimate()
    if found.tokens_out is None:
        most = args.max_tokens or v1.MAX_TOKENS_BY_DEFAULT
        tokens_out, how, unit = most * found.requests, "at most", f" ({most:,} an answer)"
    else:
        tokens_out, how = round(found.tokens_out * found.requests), "about"
        unit = " (as the journal's answers have)"
    price = job.price(model)
    seconds = job.eta(found.requests, found.tokens_in + tokens_out)
    lines = [f"rows        {found.rows:,}"]
    if found.answered:
        lines.append(f"answered    {found.answered:,}")
    if found.bad:
        lines.append(f"bad         {found.bad:,} ({'; '.join(found.problems)})")
    lines += [
        f"requests    {found.requests:,}",
        f"tokens in   about {found.tokens_in:,}",
        f"tokens out  {how} {tokens_out:,}{unit}",
    ]
    if seconds is None:
        lines.append("time        not known: --plan says how fast the service may be asked")
    else:
        lines.append(f"time        {how} {duration(seconds)} by the plan {args.plan}")
    if price is None:
        lines.append(f"cost        not known: {unlisted or f'no price of {model} is listed'}")
    else:
        cost = found.tokens_in * price.input + tokens_out * price.output
        lines.append(f"cost        {how} {money(cost)} {price.currency}".rstrip())
    for line in lines:
        sys.stdout.write(line + "\n")


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
