"""What the commands share: lines on the terminal, words that stay whole, errors as one line."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pydantic_core import ValidationError

import langchain_svc as svc

from ..errors import SvcError, SvcServerError, SvcStreamError

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk

    from ..chat_models import ChatSvc

_LONGEST_WAIT = 5.0  # seconds; who sits at a terminal would rather be told to come back
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "1;36"}

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


def emit(text: str, style: str = "", end: str = "\n") -> None:
    """Write to stdout at once.

    Raises:
        OSError: stdout is closed or full.
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed")
    _write(sys.stdout, text, style, end)


def tell(text: str, style: str = "") -> None:
    """Write to stderr at once, where there is one; a terminal gets its words whole."""
    if sys.stderr is None:
        return
    if is_terminal(sys.stderr):
        # A command to paste, which stands indented, stays one line.
        lines = text.split("\n")
        text = "\n".join(line if line.startswith("  ") else wrapped(line) for line in lines)
    with suppress(OSError):
        _write(sys.stderr, text, style, "\n")


def _write(stream: TextIO, text: str, style: str, end: str) -> None:
    """What every word of the command goes through: a terminal gets no control character of it.

    Names of models, texts of a service and names of files may hold escape sequences, which a
    terminal would obey. A file or a pipe gets the exact text.
    """
    if is_terminal(stream):
        text = harmless(text)
    if style and is_coloured(stream):
        text = f"\x1b[{_STYLES[style]}m{text}\x1b[0m"
    stream.write(text + end)
    stream.flush()


def harmless(text: str) -> str:
    """The text with a visible sign for each control character but newline and tab."""
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_control(c) else c for c in text)


def wrapped(text: str, width: int | None = None, first: str = "", indent: str = "") -> str:
    """The text in lines that break between words alone, indented; `first` indents the first."""
    return textwrap.fill(
        text,
        (width or columns()) - 1,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def error_line(error: Exception) -> str:
    """An error as one line that ends in a next step."""
    if isinstance(error, ValidationError):
        found = error.errors(include_url=False, include_input=False)[0]
        said = found["msg"].removeprefix("Value error, ")
        setting = str(found["loc"][0]) if found["loc"] else said.partition(": ")[0]
        return f"{_WHERE_SET.get(setting, setting)}: {said.removeprefix(setting + ': ')}"
    hints = [hint for kind, hint in _HINTS.items() if isinstance(error, kind)]
    return " ".join("; ".join([str(error), *hints]).split())


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at the stream."""
    return stream is not None and stream.isatty()


def is_coloured(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal that wants colours."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in {"dumb", "unknown"}
    return is_terminal(stream) and not plain


def columns() -> int:
    """The width of the terminal."""
    return max(20, shutil.get_terminal_size().columns)


def new_model(**settings: Any) -> ChatSvc:
    """The model of the environment with what is given; None stands for a default."""
    given = {name: value for name, value in settings.items() if value is not None}
    return svc.ChatSvc.from_env(max_retry_wait=_LONGEST_WAIT, **given)


def read_json(name: str, option: str, wanted: type, form: str) -> Any:
    """The JSON value in a file that an option names.

    Raises:
        MisuseError: There is no such file, or it holds something else.
    """
    try:
        found = json.loads(Path(name).expanduser().read_text("utf-8"))
    except OSError as error:
        raise MisuseError(f"{option}: cannot read {name!r}: {error.strerror}") from None
    except ValueError as error:
        raise MisuseError(f"{option}: {name!r} is not JSON: {error}; give {form}") from None
    if not isinstance(found, wanted):
        raise MisuseError(f"{option}: {name!r} holds a {type(found).__name__}; give {form}")
    return found


def read_schema(name: str) -> dict[str, Any]:
    """A JSON schema in a file; its title, which a model reads, is the file's name by default."""
    schema = read_json(name, "--schema", dict, "a JSON schema (an object)")
    return {"title": "".join(c if c.isalnum() else "_" for c in Path(name).stem), **schema}


class WordWriter:
    """Writes a growing text to stdout: on a terminal without breaking words at its edge.

    A word is written when it is whole.
    """

    def __init__(self) -> None:
        self._wrap = is_terminal(sys.stdout)
        self._width = columns() - 1  # some terminals wrap when the last column is filled
        self._column = 0
        self._word, self._blanks = "", ""
        self.wrote = False

    def write(self, text: str) -> None:
        """Write the next part of the text."""
        self.wrote = self.wrote or bool(text)
        if self._wrap:
            text = "".join(map(self._placed, harmless(text)))
        if text:
            emit(text, end="")

    def end(self) -> None:
        """Write what is left, and end the line."""
        if self.wrote:
            emit(self._whole_word())

    def _placed(self, letter: str) -> str:
        """What can be written now that this letter has come."""
        if letter == "\n":
            written = self._whole_word() + letter
            self._column, self._blanks = 0, ""
            return written
        if letter.isspace():
            written = self._whole_word()
            self._blanks += "    " if letter == "\t" else " "
            return written
        self._word += letter
        # Scripts without blanks, and words longer than a line, may break anywhere.
        loose = _cells(letter) > 1 or _width(self._word) >= self._width
        return self._whole_word() if loose else ""

    def _whole_word(self) -> str:
        """The word that is there, with the blanks before it or on a line of its own."""
        if not self._word:
            return ""
        word, self._word = self._word, ""
        blanks, self._blanks = self._blanks, ""
        if self._column and self._column + len(blanks) + _width(word) > self._width:
            blanks, self._column = "\n", -1
        self._column += len(blanks) + _width(word)
        return blanks + word


def _is_control(letter: str) -> bool:
    joiners = "\u200d\u200c"  # which emoji and some scripts need
    return unicodedata.category(letter) in {"Cc", "Cf"} and letter not in "\n\t" + joiners


def _cells(letter: str) -> int:
    """How many columns a letter takes."""
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _width(text: str) -> int:
    return sum(map(_cells, text))


def write_stream(chunks: Iterable[AIMessageChunk], keep: Callable[[AIMessageChunk], None]) -> None:
    """Write an answer while it comes; an error leaves what had arrived, on lines of its own."""
    writer = WordWriter()
    try:
        for chunk in chunks:
            keep(chunk)
            writer.write(chunk.text)
    finally:
        writer.end()
