"""`langchain-svc chat`: a conversation at the terminal, kept in memory alone."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import langchain_svc as svc

from ..errors import SvcContextOverflowError, SvcError
from .ask import usage_line
from .terminal import (
    ASKED,
    add_options,
    emit,
    error_line,
    is_terminal,
    model_settings,
    new_model,
    tell,
    write_stream,
)

_HELP = """\
/system TEXT   instructions for the model; without a text there are none
/model ID      go on with another model; without an id the models are listed
/save FILE     write the conversation as JSON, for nobody else to read
/clear         forget the conversation; instructions and model stay
/help          this list
/quit          leave; so does Ctrl-D

Ctrl-C stops an answer. A line that ends in \\ goes on in the next one.
// at the beginning sends a text that begins with /."""


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Talk to a model. Nothing is kept when you leave, unless you /save it. /help lists the "
        "commands."
    )
    add_options(parser, *ASKED)


def run(args: argparse.Namespace) -> int:
    """Talk until the end of the input; whether a piped conversation failed is the exit code."""
    return _Session(args).run()


class _Session:
    """One conversation: what was said, and with which model it goes on."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._settings = model_settings(args)
        self._model = new_model(**self._settings)
        self._system: str | None = args.system
        self._said: list[dict[str, str]] = []
        self._failed = False
        self._typed = is_terminal(sys.stdin)
        self._commands: dict[str, Callable[[str], None]] = {
            "/system": self._set_system,
            "/model": self._set_model,
            "/save": self._save,
            "/clear": self._clear,
            "/help": lambda _: tell(_HELP),
        }

    def run(self) -> int:
        if self._typed:
            with suppress(ImportError):
                import readline  # noqa: F401, PLC0415  # lines can be edited, and recalled by ↑
            tell(
                f"langchain-svc {svc.__version__} with {self._model.model}. "
                "/help for commands, Ctrl-D to leave."
            )
        with suppress(EOFError):
            while (line := self._read()) != "/quit":
                self._take(line)
        self._model.close()
        return int(self._failed and not self._typed)

    def _read(self) -> str:
        """What was typed, in one line or several."""
        lines = [""]
        while True:
            prompt = "... " if len(lines) > 1 else "> "
            try:
                part = input(prompt if self._typed else "")
            except KeyboardInterrupt:
                if not self._typed:
                    raise
                emit("")
                tell("Nothing was sent. Ctrl-D or /quit leaves.")
                return ""
            except EOFError:
                if self._typed:
                    emit("")
                raise
            if not part.endswith("\\"):
                return "\n".join([*lines, part]).strip()
            lines.append(part[:-1])

    def _take(self, line: str) -> None:
        """Run a command, or ask the model."""
        name, _, rest = line.partition(" ")
        if not line.startswith("/") or line.startswith("//"):
            if line:
                self._ask(line.removeprefix("/"))
        elif name in self._commands:
            try:
                self._commands[name](rest.strip())
            except (SvcError, ValueError, OSError) as error:
                self._fail(error_line(error))
            except KeyboardInterrupt:
                tell("stopped")
        else:
            known = ", ".join([*self._commands, "/quit"])
            self._fail(f"There is no command {name!r}; nothing was sent. Commands: {known}")

    def _ask(self, text: str) -> None:
        asked = [*self._conversation(), {"role": "user", "content": text}]
        chunks: list[Any] = []
        begun = time.monotonic()
        try:
            write_stream(self._model.stream(asked), chunks.append)
        except KeyboardInterrupt:
            tell("stopped")
        except SvcError as error:
            hint = "; /clear begins anew" if isinstance(error, SvcContextOverflowError) else ""
            self._fail(error_line(error) + hint)
            return  # so that the same can be asked again
        else:
            if is_terminal(sys.stderr):
                tell(usage_line(chunks[0] + chunks[1:], time.monotonic() - begun))
        answer = "".join(chunk.text for chunk in chunks)
        if answer:
            self._said = [*asked[bool(self._system) :], {"role": "assistant", "content": answer}]

    def _conversation(self) -> list[dict[str, str]]:
        system = [{"role": "system", "content": self._system}] if self._system else []
        return [*system, *self._said]

    def _fail(self, text: str) -> None:
        self._failed = True
        tell(text)

    # -- commands ---------------------------------------------------------------------------------

    def _set_system(self, text: str) -> None:
        self._system = text or None
        tell("The model has these instructions from now on." if text else "No instructions.")

    def _set_model(self, name: str) -> None:
        if not name:
            for known in self._model.list_models():
                emit(f"{'*' if known.id == self._model.model else ' '} {known.id}")
            return
        model = new_model(**self._settings | {"model": name})
        try:
            model.check()
        except SvcError:
            model.close()
            raise
        self._model.close()
        self._model = model
        tell(f"{name} answers from now on.")

    def _save(self, name: str) -> None:
        if not name:
            self._fail("/save FILE: name a file, such as /save talk.json")
            return
        path = Path(name).expanduser()
        if path.exists() and not self._may_replace(path):
            self._fail(f"{name} is there already, and was left as it is; name another file")
            return
        # A file of its own, so that nobody else could open it before, and none is half written.
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(self._conversation(), file, indent=2, ensure_ascii=False)
                file.write("\n")
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink()
            raise
        tell(f"{len(self._conversation())} messages are in {name}.")

    def _may_replace(self, path: Path) -> bool:
        if not self._typed or not path.is_file():
            return False
        tell(f"{path} exists.")
        try:
            return input("Replace it? [y/N] ").strip().lower() == "y"
        except EOFError:
            emit("")
            return False

    def _clear(self, _: str) -> None:
        self._said = []
        tell("The conversation is forgotten.")
