"""`langchain-svc chat`: a conversation at the terminal, kept in memory alone."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import langchain_svc as svc

from ..errors import SvcError
from .ask import usage_line
from .terminal import (
    ASKED,
    MisuseError,
    add_options,
    emit,
    error_line,
    is_terminal,
    model_settings,
    new_model,
    tell,
    write_stream,
)

_COMMANDS = "/save FILE keeps the conversation, /reset forgets it, /exit or Ctrl-D leaves"


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Talk to a model. Nothing is kept when you leave, unless you save it. In the chat, "
        f"{_COMMANDS}."
    )
    add_options(parser, *ASKED)


def run(args: argparse.Namespace) -> int:
    """Talk until the end of the input; whether a piped conversation failed is the exit code."""
    typed, failed = is_terminal(sys.stdin), False
    turns = [{"role": "system", "content": args.system}] if args.system else []
    instructions = len(turns)
    with new_model(**model_settings(args)) as model:
        if typed:
            with suppress(ImportError):
                import readline  # noqa: F401, PLC0415  # lines can be edited, and recalled by ↑
            tell(f"langchain-svc {svc.__version__} with {model.model}. {_COMMANDS}.")
        while (line := _read(typed=typed)) != "/exit":
            if line == "/reset":
                del turns[instructions:]
            elif line and not _take(model, turns, line):
                failed = True
    return int(failed and not typed)


def _read(*, typed: bool) -> str:
    try:
        return input("> " if typed else "").rstrip()
    except EOFError:
        if typed:
            emit("")
        return "/exit"
    except KeyboardInterrupt:
        if not typed:
            raise
        tell("\nNothing was sent. Ctrl-D or /exit leaves.")
        return ""


def _take(model: svc.ChatSvc, turns: list[dict[str, str]], line: str) -> bool:
    """Save the conversation, or ask the model; False where that failed, which is told."""
    command, _, rest = line.partition(" ")
    if command.startswith("/") and command != "/save":
        tell(
            f"There is no command {command!r}, and nothing was sent. {_COMMANDS}. A text that "
            "begins with / needs a space before it"
        )
        return False
    try:
        if command == "/save":
            _save(turns, rest)
        else:
            _ask(model, turns, line.strip())
    except (MisuseError, SvcError) as error:
        tell(error_line(error))
        return False
    return True


def _ask(model: svc.ChatSvc, turns: list[dict[str, str]], text: str) -> None:
    asked = {"role": "user", "content": text}
    chunks: list[Any] = []
    begun = time.monotonic()
    try:
        write_stream(model.stream([*turns, asked]), chunks)
    except KeyboardInterrupt:
        tell("stopped")
    else:
        if is_terminal(sys.stderr):
            tell(usage_line(chunks[0] + chunks[1:], time.monotonic() - begun))
    if answer := "".join(chunk.text for chunk in chunks):
        turns += [asked, {"role": "assistant", "content": answer}]


def _save(turns: list[dict[str, str]], name: str) -> None:
    """Write the conversation to a new file, for nobody else to read."""
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(Path(name).expanduser(), new, 0o600)
        # Half a character becomes the escape that JSON has for it.
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(turns, file, indent=2, ensure_ascii=False)
    except OSError as error:
        raise MisuseError(f"/save: {name!r}: {error.strerror}; name a new file") from None
    tell(f"{len(turns)} messages are in {name}.")
