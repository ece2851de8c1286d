"""What the commands share: options, lines on the terminal, errors as one line."""

from __future__ import annotations

import argparse
import errno
import json
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pydantic_core import ValidationError

import langchain_svc as svc

from ..errors import SvcError, SvcServerError, SvcStreamError

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk

    from ..chat import ChatSvc

_LONGEST_WAIT = 5.0  # seconds; who sits at a terminal would rather be told to come back

_OPTIONS: dict[str, dict[str, Any]] = {
    "--model": {
        "metavar": "ID",
        "help": "model id, as listed by `langchain-svc models`",
    },
    "--system": {"metavar": "TEXT", "help": "instructions for the model"},
    "--temperature": {"metavar": "N", "type": float, "help": "0 to 2"},
    "--max-tokens": {
        "metavar": "N",
        "type": int,
        "help": "maximum tokens of an answer",
    },
    "--schema": {"metavar": "FILE", "help": "a JSON schema that each answer must fit"},
    "--json": {"action": "store_true", "help": "print all of it as JSON"},
}
ASKED = ("--model", "--system", "--temperature", "--max-tokens")
# The next step, for the errors whose own text names none.
_HINTS: dict[type[SvcError], str] = {
    SvcServerError: "it may pass: try again later",
    SvcStreamError: "what had arrived is printed; ask again",
}
# Where each setting comes from here. What is wrong with a URL begins with its setting's name.
_WHERE_SET = {
    "model": "--model",
    "api_key": "SVC_API_KEY",
    "base_url_v1": "SVC_BASE_URL_V1",
    "base_url": "SVC_BASE_URL",
    "medical_base_url": "SVC_MEDICAL_BASE_URL",
    "temperature": "--temperature",
    "max_tokens": "--max-tokens",
}


class MisuseError(Exception):
    """The command was understood, but what it was given cannot be used."""


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Options that several commands have."""
    for name in names:
        parser.add_argument(name, **_OPTIONS[name])


def model_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of a model that were given."""
    given = {
        name: getattr(args, name) for name in ("model", "temperature", "max_tokens")
    }
    return {name: value for name, value in given.items() if value is not None}


def new_model(**settings: Any) -> ChatSvc:
    """The model of the environment with what is given."""
    return svc.ChatSvc.from_env(max_retry_wait=_LONGEST_WAIT, **settings)


# -- lines ----------------------------------------------------------------------------------------


def emit(text: str, end: str = "\n") -> None:
    """Write to stdout at once.

    Raises:
        OSError: stdout is closed or full.
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed")
    _write(sys.stdout, text, end)


def emit_json(value: Any) -> None:
    """Write a value to stdout for programs."""
    emit(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def tell(text: str) -> None:
    """Write to stderr at once, where there is one; a terminal gets its words whole."""
    if sys.stderr is None:
        return
    if is_terminal(sys.stderr):
        # A command to paste, which stands indented, stays one line.
        lines = text.split("\n")
        text = "\n".join(
            line if line.startswith("  ") else wrapped(line) for line in lines
        )
    with suppress(OSError):
        _write(sys.stderr, text, "\n")


def _write(stream: TextIO, text: str, end: str) -> None:
    """What every word of the command goes through: a terminal gets no control character of it.

    Names of models, texts of a service and names of files may hold escape sequences, which a
    terminal would obey. A file or a pipe gets the exact text.
    """
    stream.write((harmless(text) if is_terminal(stream) else text) + end)
    stream.flush()


def harmless(text: str) -> str:
    """The text with a visible sign for each control character but newline and tab."""
    kept = "\n\t\u200d\u200c"  # the last two join letters in emoji and some scripts
    hidden = {
        c for c in text if unicodedata.category(c) in {"Cc", "Cf"} and c not in kept
    }
    return text.translate(dict.fromkeys(map(ord, hidden), "\N{REPLACEMENT CHARACTER}"))


def wrapped(text: str, indent: str = "") -> str:
    """The text in lines that break between words alone; all but the first are indented."""
    return textwrap.fill(
        text,
        text_width() - 1,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def text_width() -> int:
    """The columns that a text may take: those of the terminal, but at most 100."""
    return max(20, min(shutil.get_terminal_size().columns, 100))


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at the stream."""
    return stream is not None and stream.isatty()


def error_line(error: Exception) -> str:
    """An error as one line that ends in a next step."""
    if isinstance(error, ValidationError):
        found = error.errors(include_url=False, include_input=False)[0]
        said = found["msg"].removeprefix("Value error, ")
        setting = str(found["loc"][0]) if found["loc"] else said.partition(": ")[0]
        return (
            f"{_WHERE_SET.get(setting, setting)}: {said.removeprefix(setting + ': ')}"
        )
    hints = [hint for kind, hint in _HINTS.items() if isinstance(error, kind)]
    return " ".join("; ".join([str(error), *hints]).split())


# -- files ----------------------------------------------------------------------------------------


def read_schema(name: str) -> dict[str, Any]:
    """A JSON schema in a file; its title, which a model reads, is the file's name by default.

    Raises:
        MisuseError: There is no such file, or it holds something else.
    """
    try:
        schema = json.loads(Path(name).expanduser().read_text("utf-8"))
    except OSError as error:
        raise MisuseError(f"--schema: cannot read {name!r}: {error.strerror}") from None
    except ValueError as error:
        raise MisuseError(f"--schema: {name!r} is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise MisuseError(
            f"--schema: {name!r} holds a {type(schema).__name__}; give a JSON schema (an object)"
        )
    return {
        "title": "".join(c if c.isalnum() else "_" for c in Path(name).stem),
        **schema,
    }


# -- answers --------------------------------------------------------------------------------------


# A word ends with its blanks. Scripts without blanks may break anywhere.
_WORD_END = re.compile(r"(?<=\s)(?=\S)|(?<=[\u2e80-\ufaff\uff00-\uffef])")


def write_stream(chunks: Iterable[AIMessageChunk], kept: list[AIMessageChunk]) -> None:
    """Write an answer while it comes; an error leaves what had arrived, on lines of its own.

    On a terminal no word breaks at the edge, so the last one waits until it is whole.
    """
    width = text_width() - 1 if is_terminal(sys.stdout) else 0
    column, held = 0, ""

    def write(words: list[str]) -> None:
        nonlocal column
        for word in words:
            if width and column and column + len(word.rstrip()) > width:
                emit("")
                column = 0
            emit(word, end="")
            begun = word.rfind("\n") + 1
            column = len(word) - begun + (0 if begun else column)

    try:
        for chunk in chunks:
            kept.append(chunk)
            text = held + str(chunk.text)
            *words, held = _WORD_END.split(text) if width else [text, ""]
            write(words)
    finally:
        write([held] if held else [])
        if any(chunk.text for chunk in kept):
            emit("")
