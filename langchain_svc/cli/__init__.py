"""The command `langchain-svc`.

Every failure is one line on stderr with a next step, never a traceback.
"""

from __future__ import annotations

import argparse
import difflib
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NoReturn

from pydantic_core import ValidationError

import langchain_svc as svc

from ..errors import SvcError, SvcRequestError
from .terminal import (
    FAILED,
    INTERRUPTED,
    MISUSED,
    MisuseError,
    emit,
    error_line,
    option_name,
    tell,
)

__all__ = ["build_parser", "main"]

# Each command is a module of this package, which is loaded when the command is typed.
_COMMANDS = {
    "demo": "a tour on the sandbox: no key, no network, no cost",
    "batch": "send every row of a file to the service, with a journal",
    "sandbox": "run a local stand-in for the service",
    "ask": "ask one question and stream the answer",
    "models": "list the models of the service",
    "doctor": "check your configuration, and say how to fix it",
}
# Parsed arguments that are not options of the command.
_NO_OPTIONS = {"--run", "--question", "--input", "--output"}
# What argparse says, and what we say.
_OF_ARGPARSE = {
    r"^argument (\S+): invalid int value: ": r"\1 must be a whole number, not ",
    r"^argument (\S+): invalid float value: ": r"\1 must be a number, not ",
    r"^argument (\S+): expected one argument": r"\1 needs a value",
    r"^argument (\S+): invalid choice: (.*) \(choose from (.*)\)": r"\1 must be one of \3, not \2",
}
_EPILOG = """\
ask, batch and models need SVC_API_KEY and SVC_BASE_URL_V1; the others do not.

  langchain-svc demo
  langchain-svc ask why is the sky blue
  git diff | langchain-svc ask review this
  langchain-svc doctor
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An answer may hold letters that the output's encoding has no form for.
        sys.stdout.reconfigure(errors="replace")
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with _ends_are_ctrl_c():
            code = _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has ended (`| head`)
        _silence_stdout()
        return FAILED
    except OSError as error:
        _silence_stdout()
        return _fail(f"the output cannot be written: {error.strerror or error}")
    except (SvcRequestError, ValidationError, ImportError) as error:
        return _fail(error_line(error), MISUSED)
    except SvcError as error:
        return _fail(error_line(error))
    except MisuseError as error:
        return _fail(str(error), MISUSED)
    except UnicodeDecodeError as error:
        return _fail(f"what is piped in is not text in {error.encoding}", MISUSED)
    return code


@contextmanager
def _ends_are_ctrl_c() -> Iterator[None]:
    """A block in which a request to end is Ctrl-C: of `docker stop`, systemd, a closed terminal.

    What the caller ignores stays ignored, as SIGHUP below nohup.
    """
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.SIG_DFL

    def interrupt(*_: object) -> NoReturn:
        # A shell that closes sends the second one itself, and nobody is impatient.
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(words: list[str]) -> int:
    command = words[0] if words else ""
    args, unknown = build_parser(command).parse_known_args(words)
    if unknown:
        raise MisuseError(_about_unknown(command, unknown[0], args))
    args.words = words
    return args.run(args) or 0


def _about_unknown(command: str, word: str, args: argparse.Namespace) -> str:
    """What to write in the place of a word that the parser does not know."""
    if not word.startswith("-"):
        return f"{word!r} is one word too many (`langchain-svc {command} --help` says more)"
    options = ["--help", *map(option_name, vars(args))]
    others = _NO_OPTIONS | {"--version"} if command in _COMMANDS else _NO_OPTIONS
    options = [option for option in options if option not in others]
    name = word.partition("=")[0]
    near = difflib.get_close_matches(name.replace("_", "-"), options, 1, 0.7)
    if near:
        return f"there is no option {name}; did you mean {near[0]}?"
    return f"there is no option {name}; there are {', '.join(options)}"


def _fail(line: str, code: int = FAILED) -> int:
    tell(f"langchain-svc: {line}")
    return code


def _silence_stdout() -> None:
    """Let Python flush into nothing at its exit, instead of failing once more."""
    with suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """A parser that fails as the rest does, and suggests a command for a misspelt one."""

    def print_help(self, file: object = None) -> None:
        emit(self.format_help(), end="")

    def error(self, message: str) -> NoReturn:
        typed = message.partition("invalid choice: ")[2].partition(" ")[0].strip("'")
        if "argument COMMAND" in message:
            near = difflib.get_close_matches(typed, _COMMANDS, 1)
            message = f"there is no command {typed!r}; there are {', '.join(_COMMANDS)}"
            if near:
                message = f"there is no command {typed!r}; did you mean {near[0]!r}?"
        for argparse_s, ours in _OF_ARGPARSE.items():
            message = re.sub(argparse_s, ours, message)
        raise MisuseError(f"{message} (`{self.prog} --help` says more)")


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser of everything that can be typed after `langchain-svc`.

    With a command, the other commands have names and no options, so that their modules need not be
    loaded.
    """
    parser = _Parser(
        prog="langchain-svc",
        description="A hosted AI platform in LangChain: try it offline, or ask the service.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="show the version")

    def run(args: argparse.Namespace) -> None:
        if args.version:
            emit(f"langchain-svc {svc.__version__}")
        else:
            parser.print_help()

    parser.set_defaults(run=run)
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, about in _COMMANDS.items():
        subparser = commands.add_parser(name, help=about)
        if command in (None, name):
            module = import_module(f".{name}", __package__)
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser
