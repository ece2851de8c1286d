"""`langchain-svc sandbox`: the local stand-in for the service, until Ctrl-C."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import get_args

import langchain_svc as svc

from ..sandbox import Sandbox, Upstream, serve
from ..sandbox.log import ServedExchange, log_line
from ..sandbox.service import Plan
from ..sandbox.wire import StreamFormat
from .terminal import MisuseError, emit, option_name, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = (
        "A local stand-in for the service: real HTTP, rules instead of AI."
    )
    option = parser.add_argument
    option("--host", default="127.0.0.1", help="loopback address (%(default)s)")
    option("--port", type=int, default=8765, help="0 for any free one (%(default)s)")
    option(
        "--plan",
        choices=get_args(Plan),
        default="enterprise",
        help="rate limits to apply; enterprise has none (%(default)s)",
    )
    option(
        "--stream-format",
        choices=get_args(StreamFormat),
        help="format of all streams (sse on v1, text on general)",
    )
    option(
        "--pace",
        type=float,
        default=0.02,
        metavar="SECONDS",
        help="between the pieces of a stream (%(default)s)",
    )
    option(
        "--api-key",
        default="sandbox-key",
        metavar="KEY",
        help="of v1, general (%(default)s)",
    )
    option(
        "--medical-api-key",
        default="sandbox-medical-key",
        metavar="KEY",
        help="(%(default)s)",
    )
    option(
        "--upstream",
        metavar="URL",
        help="an OpenAI-compatible server that answers instead",
    )
    option("--upstream-model", metavar="NAME", help="model to request from it")
    option(
        "--upstream-key-env", metavar="VAR", help="environment variable with its key"
    )
    option(
        "--upstream-allow-http",
        action="store_true",
        help="allow plain http to other machines",
    )
    option(
        "--no-inspector", action="store_true", help="do not serve the inspector at /"
    )
    option("--quiet", action="store_true", help="do not log requests")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    upstream = _upstream(args)
    sandbox = _start(args, upstream)
    try:
        _tell_start(args, sandbox, upstream)
        serve(sandbox, None if args.quiet else _tell_exchange)
    finally:
        sandbox.stop()
    tell("Stopped.")
    return 0


def _tell_start(
    args: argparse.Namespace, sandbox: Sandbox, upstream: Upstream | None
) -> None:
    limits = "no rate limit"
    if args.plan != "enterprise":
        limits = f"limits of the plan {args.plan}"
    source = "answers by rules, not by AI"
    if args.upstream:
        source = f"{args.upstream_model} behind it"
    tell(f"The sandbox of langchain-svc {svc.__version__}: {limits}, {source}.")
    if not args.no_inspector:
        tell(
            f"Inspect its requests in a browser on this machine: {sandbox.inspector_url}"
        )
    trouble = upstream.trouble() if upstream else ""
    if trouble:
        tell(f"The model behind it will not answer yet: {trouble}")
    tell("Paste these lines into another terminal. Ctrl-C here stops the sandbox.")
    for name, value in sandbox.env.items():
        emit(f"export {name}={shlex.quote(value)}")


def _tell_exchange(exchange: ServedExchange) -> None:
    tell(log_line(exchange))


def _upstream(args: argparse.Namespace) -> Upstream | None:
    if args.upstream is None:
        for name in ("upstream_model", "upstream_key_env", "upstream_allow_http"):
            if getattr(args, name):
                raise MisuseError(
                    f"{option_name(name)} says nothing without --upstream URL"
                )
        return None
    if not args.upstream_model:
        raise MisuseError("--upstream: name its model too: --upstream-model NAME")
    key = os.environ.get(args.upstream_key_env or "")
    if args.upstream_key_env and not key:
        raise MisuseError(
            f"--upstream-key-env: the variable {args.upstream_key_env} is not set"
        )
    try:
        return Upstream(
            args.upstream,
            args.upstream_model,
            api_key=key,
            allow_http=args.upstream_allow_http,
        )
    except ValueError as error:
        raise MisuseError(_named_as_typed(error)) from None


def _named_as_typed(error: ValueError) -> str:
    """An error of the sandbox, which begins with the name of an argument."""
    name, blank, rest = str(error).replace(":", " :", 1).partition(" ")
    return f"{option_name(name)}{blank}{rest}".replace(" :", ":", 1)


def _start(args: argparse.Namespace, upstream: Upstream | None) -> Sandbox:
    try:
        return Sandbox(
            host=args.host,
            port=args.port,
            plan=args.plan,
            stream_format=args.stream_format,
            pace=args.pace,
            keep=0,
            inspector=not args.no_inspector,
            upstream=upstream,
            api_key=args.api_key,
            medical_api_key=args.medical_api_key,
        ).start()
    except ValueError as error:
        message = _named_as_typed(error).replace(", unless allow_remote=True", "")
        raise MisuseError(message) from None
    except OSError as error:
        reason = str(error.strerror or error).partition(" (")[0]
        raise MisuseError(
            f"cannot listen on {args.host}:{args.port}: {reason}; choose another --host or --port, "
            "or --port 0 for any free one"
        ) from None
