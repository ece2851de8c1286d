"""The entry of the command `langchain-svc`, with `demo` and `sandbox`.

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

from ..errors import SvcError
from .ask import add_ask
from .batch import add_batch
from .chat import add_chat
from .doctor import add_doctor
from .explain import add_explain
from .models import add_models
from .terminal import MisuseError, emit, error_line, tell

if TYPE_CHECKING:
    from ..sandbox import Sandbox, Upstream

_FAILED, _MISUSED, _INTERRUPTED = 1, 2, 130
_HIGHEST_PORT = 65_535
_GRACE = 3.0  # seconds for an interrupted demo to clear up


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An answer may hold letters that the output's encoding has no form for.
        sys.stdout.reconfigure(errors="replace")
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could come next
        import argcomplete  # noqa: PLC0415  # an extra, which the shell's script came from

        argcomplete.autocomplete(parser)
    args = _parsed(parser, argv)
    args.words = list(sys.argv[1:] if argv is None else argv)
    try:
        code: int = args.run(args) or 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        # Our reader left (`| head`). Python would fail once more when it flushes at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except (SvcError, ValidationError, ImportError) as error:
        return _fail(error_line(error))
    except MisuseError as error:
        return _fail(str(error), _MISUSED)
    return code


def _parsed(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments; a question's words may stand on both sides of its options."""
    args, rest = parser.parse_known_args(argv)
    words: list[str] = getattr(args, "question", None) or getattr(args, "prompt", None) or []
    if rest and (not words or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    words += rest
    return args


def _fail(line: str, code: int = _FAILED) -> int:
    tell(f"langchain-svc: {line}")
    return code


# -- the commands -------------------------------------------------------------------------------


def _demo(args: argparse.Namespace) -> int:
    del args
    from .demo import run  # noqa: PLC0415  # its libraries are extras

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
        emit("\x1b[?25h")  # the cursor, which the live display hides
    os._exit(_fail("interrupted", _INTERRUPTED))


def _sandbox(args: argparse.Namespace) -> int:
    from ..sandbox import serve  # noqa: PLC0415  # its libraries are an extra
    from ..sandbox.terminal import Terminal  # noqa: PLC0415

    try:
        upstream = _upstream(args)
        sandbox = _started(args, upstream)
    except ValueError as error:
        return _fail(str(error), _MISUSED)
    except OSError as error:
        return _fail(_why_deaf(error, args), _MISUSED)
    try:
        who = f"{args.upstream_model} behind it" if args.upstream else "rules, not AI"
        tell(f"The sandbox of langchain-svc {svc.__version__}: plan {args.plan}, {who}.")
        if not args.no_inspector:
            tell(f"What it receives and sends: {sandbox.url}/ in a browser of this machine.")
        if upstream is not None and (trouble := upstream.trouble()):
            tell(f"The model behind it will not answer yet: {trouble}")
        tell("Paste these lines into another terminal. Ctrl-C here stops the sandbox.")
        for name, value in sandbox.env.items():
            emit(f"export {name}={shlex.quote(value)}")
        serve(sandbox, None if args.quiet else Terminal(colours=_coloured(sys.stderr)))
    finally:
        sandbox.stop()
    tell("Stopped.")
    return 0


def _coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR")


def _started(args: argparse.Namespace, upstream: Upstream | None) -> Sandbox:
    from ..sandbox import Sandbox  # noqa: PLC0415  # its libraries are an extra

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
        upstream=upstream,
        **given,
    ).start()


def _upstream(args: argparse.Namespace) -> Upstream | None:
    from ..sandbox import Upstream  # noqa: PLC0415  # its libraries are an extra

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


# -- the command line ---------------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """Everything that can be typed after `langchain-svc`."""
    parser = argparse.ArgumentParser(
        prog="langchain-svc",
        description="A hosted AI platform in LangChain: try it offline, or ask the service.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {svc.__version__}")
    parser.set_defaults(run=lambda _: emit(parser.format_help(), end=""))
    commands = parser.add_subparsers(metavar="COMMAND")

    demo = commands.add_parser("demo", help="a tour on the sandbox: no key, no network, no cost")
    demo.set_defaults(run=_demo)
    add_batch(commands.add_parser("batch", help="ask every row of a file, with a journal"))
    _add_sandbox(commands.add_parser("sandbox", help="serve a local stand-in for the service"))
    add_ask(commands.add_parser("ask", help="ask one question and print the answer as it comes"))
    add_chat(commands.add_parser("chat", help="talk to a model"))
    add_models(commands.add_parser("models", help="list the models of the service"))
    add_doctor(commands.add_parser("doctor", help="check what is set up, and say how to fix it"))
    add_explain(commands.add_parser("explain", help="show the request of a prompt; send nothing"))
    _add_completion(commands.add_parser("completion", help="print a script that completes words"))
    return parser


_EPILOG = """\
ask, chat and models need SVC_API_KEY and SVC_BASE_URL_V1; the others do not.

  langchain-svc demo
  langchain-svc ask why is the sky blue
  git diff | langchain-svc ask review this
  langchain-svc doctor
"""


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        'A script for your shell. bash: eval "$(langchain-svc completion bash)" in ~/.bashrc; '
        "zsh the same in ~/.zshrc; fish: langchain-svc completion fish | source."
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=_completion)


def _completion(args: argparse.Namespace) -> int:
    try:
        from argcomplete.shell_integration import shellcode  # noqa: PLC0415  # an extra
    except ImportError:
        raise ImportError(
            "Completion needs argcomplete, which is not installed. "
            'Run: pip install "langchain-svc[cli]"'
        ) from None
    emit(shellcode(["langchain-svc"], shell=args.shell))
    return 0


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
