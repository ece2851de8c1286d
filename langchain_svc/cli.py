"""The command `langchain-svc`: the demo, the sandbox, the service's models, one question.

Every failure is one line on stderr with a next step, never a traceback. Exit codes: 0 done, 1 it
failed, 2 the command was not understood or its port is taken, 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from pydantic_core import ValidationError

import langchain_svc as svc

from ._bulk import add_batch
from .errors import SvcConnectionError, SvcError, SvcServerError, SvcStreamError

if TYPE_CHECKING:
    from .chat_models import ChatSvc, ListedModel
    from .sandbox import Sandbox, Upstream

_FAILED, _MISUSED, _INTERRUPTED = 1, 2, 130
_HIGHEST_PORT = 65_535
_GRACE = 3.0  # seconds for an interrupted demo to clear up
_LONGEST_WAIT = 5.0  # seconds; who sits at a terminal would rather be told to come back

# The next step, for the errors whose own text names none.
_HINTS: dict[type[SvcError], str] = {
    SvcConnectionError: "check SVC_BASE_URL_V1, and that the service (or the sandbox) is running",
    SvcServerError: "it may pass: try again later",
    SvcStreamError: "what had arrived is printed; ask again",
}
# Where each setting comes from here. The URL is checked last, under no name of its own.
_WHERE_SET = {
    "model": "--model",
    "api_key": "SVC_API_KEY",
    "temperature": "--temperature",
    "max_tokens": "--max-tokens",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An answer may hold letters that the output's encoding has no form for.
        sys.stdout.reconfigure(errors="replace")
    args = _parser().parse_args(argv)
    args.words = list(sys.argv[1:] if argv is None else argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        # Our reader left (`| head`). Python would fail once more when it flushes at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except (SvcError, ValidationError, ImportError) as error:
        return _fail(_said(error))
    return code


def _fail(line: str, code: int = _FAILED) -> int:
    _tell(f"langchain-svc: {line}")
    return code


def _said(error: Exception) -> str:
    """An error as one line that ends in a next step."""
    if isinstance(error, ValidationError):
        found = error.errors(include_url=False, include_input=False)[0]
        setting = str(found["loc"][0]) if found["loc"] else ""
        said = found["msg"].removeprefix("Value error, ")
        return f"{_WHERE_SET.get(setting, 'SVC_BASE_URL_V1')}: {said}"
    hints = [hint for kind, hint in _HINTS.items() if isinstance(error, kind)]
    return " ".join("; ".join([str(error), *hints]).split())


def _print(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


# -- the commands -------------------------------------------------------------------------------


def _demo(args: argparse.Namespace) -> int:
    del args
    from ._demo import run  # noqa: PLC0415  # its libraries are extras

    with _ended_by_ctrl_c():
        run()
    return 0


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """A block that Ctrl-C ends at whatever moment it comes.

    `concurrent.futures` takes and gives back its locks in Python code. An interruption between the
    two leaves one taken, and LangChain's pool of threads then waits for itself for ever.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # somebody else's program, or a background job that is not to be interrupted
        return
    leave = threading.Timer(_GRACE, _leave)
    leave.daemon = True

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        leave.start()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        leave.cancel()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave() -> None:
    if sys.stdout.isatty():
        _print("\x1b[?25h")  # the cursor, which the live display hides
    os._exit(_fail("interrupted", _INTERRUPTED))


def _sandbox(args: argparse.Namespace) -> int:
    from .sandbox import serve  # noqa: PLC0415  # its libraries are an extra
    from .sandbox.terminal import Terminal  # noqa: PLC0415

    try:
        sandbox = _started(args)
    except ValueError as error:
        return _fail(str(error), _MISUSED)
    except OSError as error:
        return _fail(_why_deaf(error, args), _MISUSED)
    try:
        who = f"{args.upstream_model} behind it" if args.upstream else "rules, not AI"
        _tell(f"The sandbox of langchain-svc {svc.__version__}: plan {args.plan}, {who}.")
        if not args.no_inspector:
            _tell(f"What it receives and sends: {sandbox.url}/ in a browser of this machine.")
        _tell("Paste these lines into another terminal. Ctrl-C here stops the sandbox.")
        for name, value in sandbox.env.items():
            _print(f"export {name}={shlex.quote(value)}")
        serve(sandbox, None if args.quiet else Terminal(colours=_coloured(sys.stderr)))
    finally:
        sandbox.stop()
    _tell("Stopped.")
    return 0


def _coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR")


def _started(args: argparse.Namespace) -> Sandbox:
    from .sandbox import Sandbox  # noqa: PLC0415  # its libraries are an extra

    keys = {"api_key": args.api_key, "medical_api_key": args.medical_api_key}
    given: dict[str, Any] = {name: key for name, key in keys.items() if key is not None}
    return Sandbox(
        host=args.host,
        port=args.port,
        plan=args.plan,
        stream_format=args.stream_format,
        pace=args.pace,
        keep=0,
        inspector=not args.no_inspector,
        upstream=_upstream(args),
        **given,
    ).start()


def _upstream(args: argparse.Namespace) -> Upstream | None:
    from .sandbox import Upstream  # noqa: PLC0415  # its libraries are an extra

    if args.upstream is None:
        return None
    if not args.upstream_model:
        raise ValueError("--upstream: name its model too: --upstream-model NAME")
    key = os.environ.get(args.upstream_key_env or "")
    if args.upstream_key_env and not key:
        raise ValueError(f"--upstream-key-env: the variable {args.upstream_key_env} is not set")
    allowed = args.upstream_allow_http
    return Upstream(args.upstream, args.upstream_model, api_key=key, allow_http=allowed)


def _why_deaf(error: OSError, args: argparse.Namespace) -> str:
    where = f"{args.host}:{args.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use; choose another --port, or --port 0 for any free one"
    return f"cannot listen on {where}: {error.strerror or error}; choose another --host or --port"


def _new_model(name: str | None = None) -> ChatSvc:
    """The model of that name, or the default one, on the service of the environment."""
    named: dict[str, Any] = {} if name is None else {"model": name}
    return svc.ChatSvc(max_retry_wait=_LONGEST_WAIT, **named)


def _models(args: argparse.Namespace) -> int:
    del args
    with _new_model() as model:
        models = model.list_models()
    rows = [("MODEL", "CONTEXT", "CAPABILITIES", "PRICING"), *map(_row, models)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        _print("  ".join(cells).rstrip())
    return 0


def _row(model: ListedModel) -> tuple[str, ...]:
    return (
        model.id,
        f"{model.context_window:,}" if model.context_window else "-",
        ", ".join(model.capabilities) or "-",
        ", ".join(f"{name} {value}" for name, value in model.pricing.items()) or "-",
    )


def _ask(args: argparse.Namespace) -> int:
    with _new_model(args.model) as model:
        if args.no_stream:
            _print(model.invoke(args.question).text)
        else:
            _stream(model, args.question)
    return 0


def _stream(model: ChatSvc, question: str) -> None:
    begun = False
    try:
        for chunk in model.stream(question):
            _print(chunk.text, end="")
            begun = True
    finally:
        if begun:
            _print("")  # what follows, an error too, begins on a line of its own


# -- the command line ---------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="langchain-svc",
        description="A hosted AI platform in LangChain: try it offline, or ask the service.",
        epilog="models and ask need SVC_API_KEY and SVC_BASE_URL_V1; demo and sandbox do not.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {svc.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="a tour on the sandbox: no key, no network, no cost")
    demo.set_defaults(run=_demo)

    models = commands.add_parser("models", help="list the models of the service")
    models.set_defaults(run=_models)

    ask = commands.add_parser("ask", help="ask one question and print the answer as it comes")
    ask.add_argument("question")
    ask.add_argument("--model", metavar="ID", help="a model id, as `langchain-svc models` lists it")
    ask.add_argument("--no-stream", action="store_true", help="print the answer when it is whole")
    ask.set_defaults(run=_ask)

    add_batch(commands.add_parser("batch", help="ask every row of a file, with a journal"))
    _add_sandbox(commands.add_parser("sandbox", help="serve a local stand-in for the service"))
    return parser


def _add_sandbox(parser: argparse.ArgumentParser) -> None:
    parser.description = "A local stand-in for the service: real HTTP, rules instead of AI."
    parser.add_argument("--host", default="127.0.0.1", help="loopback address (%(default)s)")
    parser.add_argument("--port", type=_port, default=8765, help="0 for any free one (%(default)s)")
    parser.add_argument(
        "--plan",
        choices=("free", "starter", "pro", "enterprise"),
        default="pro",
        help="whose rate limits apply (%(default)s)",
    )
    parser.add_argument(
        "--stream-format",
        choices=("sse", "sse-text", "ndjson", "text", "json"),
        help="format of all streams (sse on v1, text on general)",
    )
    parser.add_argument(
        "--pace",
        type=float,
        default=0.02,
        metavar="SECONDS",
        help="between the pieces of a stream (%(default)s)",
    )
    parser.add_argument("--api-key", metavar="KEY", help="the key to accept on v1 and general")
    parser.add_argument("--medical-api-key", metavar="KEY", help="the key to accept on medical")
    parser.add_argument(
        "--upstream", metavar="URL", help="an OpenAI-compatible server that answers instead"
    )
    parser.add_argument("--upstream-model", metavar="NAME", help="the model to ask it for")
    parser.add_argument("--upstream-key-env", metavar="VAR", help="the variable with its key")
    parser.add_argument(
        "--upstream-allow-http", action="store_true", help="plain http to other machines, too"
    )
    parser.add_argument("--no-inspector", action="store_true", help="serve no page at /")
    parser.add_argument("--quiet", action="store_true", help="print no line for each request")
    parser.set_defaults(run=_sandbox)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _HIGHEST_PORT):
        raise argparse.ArgumentTypeError(f"expected 0 to {_HIGHEST_PORT}, not {text!r}")
    return int(text)
