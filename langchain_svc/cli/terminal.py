"""What the commands share: options, lines on the terminal, errors as one line."""

from __future__ import annotations

import argparse
import difflib
import errno
import json
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pydantic_core import ValidationError

import langchain_svc as svc

from .._base.safe_errors import type_text
from ..config import GENERAL, MEDICAL, V1
from ..errors import SvcError, SvcNotFoundError, SvcServerError, SvcStreamError

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk

# The exit codes beside 0.
FAILED = 1  # the same command may succeed; a batch resumes
MISUSED = 2  # nothing was asked, and the command is to be corrected
CUT = 3  # the answer was cut off
INTERRUPTED = 130

_LONGEST_WAIT = 5.0  # seconds; a person at a terminal would rather try again later

_OPTIONS: dict[str, dict[str, Any]] = {
    "--interface": {
        "choices": ("v1", "general"),
        "help": "which of the service's interfaces answers (v1)",
    },
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
CHAT_OPTIONS = ("--model", "--system", "--temperature", "--max-tokens")
# The next step, for the errors whose own text names none.
_HINTS: dict[type[SvcError], str] = {
    SvcServerError: "it may pass: try again later",
    SvcStreamError: "what had arrived is printed; ask again",
}
STORAGE_VARIABLE = "SVC_QUOTA_STORAGE"
_MODEL_SETTINGS = ("interface", "model", "temperature", "max_tokens")
_SETTINGS = (*_MODEL_SETTINGS, "concurrency", "outage_wait", "shard")


def option_name(setting: str) -> str:
    """The option that sets a setting: "--max-tokens" of "max_tokens"."""
    return f"--{setting.replace('_', '-')}"


# Where each setting comes from here. The text of a wrong URL begins with its setting's name.
_WHERE_SET = {
    "api_key": V1.key_env,
    **{part.url_word: part.url_env for part in (V1, GENERAL, MEDICAL)},
    "storage": STORAGE_VARIABLE,
    **{name: option_name(name) for name in _SETTINGS},
}
# What errors of the package say to a program, and what a person at a shell can do instead. A text
# that is none of these is the same in both.
_IN_A_SHELL: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"(ChatSvc\.|model\.)?list_models\(\)", "`langchain-svc models`"),
    (r"pass \w+=\.\.\. or set ", "set "),
    (r"(base_url\w*) \((SVC_\w+)\)", r"\2"),
    (r",? or name the host in insecure_hosts if its network is yours", ""),
    (r"extra_body=\{\S+ \.\.\.\} sends it all the same", "leave it out of the rows"),
    (
        r'SvcQuota\(on_storage_failure="local"\) goes on with a share of the plan',
        f"start it, or unset {STORAGE_VARIABLE}",
    ),
    (
        r"\[SSL: WRONG_VERSION_NUMBER\][^;]*",
        "what listens there speaks no TLS, so its address begins with http://",
    ),
    (
        rf"\b({'|'.join(_WHERE_SET)})=(\"(\w+)\")?",
        lambda match: f"{_WHERE_SET[match[1]]} {match[3] or ''}".strip(),
    ),
    (rf"^({'|'.join(_WHERE_SET)})(?= must)", lambda match: _WHERE_SET[match[1]]),
    (r"^The format must", "--format must"),
]


class MisuseError(Exception):
    """The command was understood, but its arguments or its input cannot be used."""


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options that several commands have."""
    for name in names:
        parser.add_argument(name, **_OPTIONS[name])


def model_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of a model that the options set."""
    settings = {}
    for name in _MODEL_SETTINGS:
        value = getattr(args, name, None)
        if value is not None:
            settings[name] = value
    return settings


def new_model(**settings: Any) -> svc.ChatSvc:
    """A model with the environment's key and address, and these settings."""
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


def emit_json(value: object) -> None:
    """Write a value to stdout for programs."""
    emit(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def tell(text: str) -> None:
    """Write to stderr at once, where there is one; on a terminal no word is broken."""
    if sys.stderr is None:
        return
    if is_terminal(sys.stderr):
        lines = text.split("\n")
        for index, line in enumerate(lines):
            if not line.startswith("  "):  # a command to paste is indented: one line
                lines[index] = wrapped(line)
        text = "\n".join(lines)
    with suppress(OSError):
        _write(sys.stderr, text, "\n")


def _write(stream: TextIO, text: str, end: str) -> None:
    """Write every text of the command; a terminal gets none of its control characters.

    Names of models, texts of a service and names of files may hold escape sequences, which a
    terminal would obey. A file or a pipe gets the exact text.
    """
    if is_terminal(stream):
        text = harmless(text)
    stream.write(text + end)
    stream.flush()


def harmless(text: str) -> str:
    """The text with a visible sign for each control character but newline and tab."""
    allowed = "\n\t\u200d\u200c"  # the last two join letters in emoji and some scripts
    table = {}
    for character in set(text).difference(allowed):
        if unicodedata.category(character) in {"Cc", "Cf"}:
            table[ord(character)] = "\N{REPLACEMENT CHARACTER}"
    return text.translate(table)


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
        return _invalid_setting(error)
    parts = [in_a_shell(str(error))]
    parts += [hint for kind, hint in _HINTS.items() if isinstance(error, kind)]
    return " ".join("; ".join(parts).split())


def _invalid_setting(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=False)[0]
    message = details["msg"].removeprefix("Value error, ")
    if details["loc"]:
        setting = str(details["loc"][0])
    else:
        setting = message.partition(": ")[0]
    place = _WHERE_SET.get(setting, setting)
    return f"{place}: {in_a_shell(message.removeprefix(setting + ': '))}"


def in_a_shell(text: str) -> str:
    """A text of the package in the words of a shell: options, variables and commands."""
    for python, shell in _IN_A_SHELL:
        text = re.sub(python, shell, text)
    return text


@contextmanager
def suggests_model(model: svc.ChatSvc) -> Iterator[None]:
    """A block in which an error about a model that is not there names the nearest one."""
    try:
        yield
    except SvcNotFoundError as error:
        with suppress(SvcError):
            names = [listed.id for listed in model.list_models()]
            error.args = (str(error) + near_model(model.model, names),)
        raise


def near_model(model: str | None, names: Iterable[str]) -> str:
    """The end of a sentence that suggests a model; "" where none is near or it is there."""
    names = list(names)
    near = difflib.get_close_matches(str(model).lower(), names, 1)
    if not near or model in names:
        return ""
    return f"; did you mean {near[0]!r}?"


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
            f"--schema: {name!r} holds {type_text(schema)}; give a JSON schema (an object)"
        )
    title = re.sub(r"[\W_]", "_", Path(name).stem)
    return {"title": title, **schema}


# -- answers --------------------------------------------------------------------------------------


# A word ends with its blanks. Scripts without blanks may break anywhere.
_WORD_END = re.compile(r"(?<=\s)(?=\S)|(?<=[\u2e80-\ufaff\uff00-\uffef])")


def write_stream(
    chunks: Iterable[AIMessageChunk], received: list[AIMessageChunk]
) -> None:
    """Write an answer while it comes, and add its chunks to `received`.

    An error leaves what had arrived, on lines of its own. On a terminal no word breaks at the
    edge, so the last word waits until it is whole.
    """
    width = text_width() - 1 if is_terminal(sys.stdout) else 0
    writer = _WordWriter(width)
    try:
        for chunk in chunks:
            received.append(chunk)
            writer.write_text(str(chunk.text))
    finally:
        writer.write_rest()
        if any(chunk.text for chunk in received):
            emit("")


class _WordWriter:
    """Writes text in lines of at most `width` columns, broken between words; 0 is any width."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._last_word = ""

    def write_text(self, text: str) -> None:
        if not self._width:
            emit(text, end="")
            return
        *words, self._last_word = _WORD_END.split(self._last_word + text)
        for word in words:
            self._write_word(word)

    def write_rest(self) -> None:
        if self._last_word:
            self._write_word(self._last_word)

    def _write_word(self, word: str) -> None:
        if self._column and self._column + len(word.rstrip()) > self._width:
            emit("")
            self._column = 0
        emit(word, end="")
        _, newline, last_line = word.rpartition("\n")
        if newline:
            self._column = 0
        self._column += len(last_line)
