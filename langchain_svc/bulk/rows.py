"""Rows of the input, each made into what the runnable is asked.

A row that cannot be asked is a row with a `problem`, not the end of the run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import IO, Any, TypeAlias

from pydantic_core import to_jsonable_python

from ..errors import SvcRequestError
from .readers import READERS, BadRow, jsonl

Rows: TypeAlias = str | os.PathLike[str] | Iterable[Any]
"""A path (.jsonl, .ndjson, .csv, .tsv, .parquet; "-" is JSONL on stdin), or the rows themselves."""

Format: TypeAlias = str | Callable[[Any], Any] | None
"""A template of a row's columns, or a function from a row to what the runnable is asked."""

_CHUNK_ROWS, _CHUNK_BYTES = 256, 4 * 1024 * 1024
_INPUTS = ("prompt", "messages", "input")


@dataclass
class Row:
    """One row of the input.

    Attributes:
        number: 1 for the first.
        key: Its id, as JSON text.
        input: What the runnable is asked.
        digest: Of the input, by which the journal knows the row again.
        problem: Why it cannot be asked, "" where it can.
        failed_before: Whether an earlier run had an error for it.
        to_ask: Whether it has no answer yet.
    """

    number: int
    key: str
    input: Any = None
    digest: bytes = b""
    problem: str = ""
    failed_before: bool = False
    to_ask: bool = True


class Source:
    """The rows of the input, in chunks.

    Args:
        rows: Where they are.
        template: What becomes of a row.

    Raises:
        SvcRequestError: The input cannot be read at all.
    """

    def __init__(self, rows: Rows, template: Format = None) -> None:
        self._format = template
        self._columns = _columns(template) if isinstance(template, str) else frozenset[str]()
        self._file: IO[bytes] | None = None
        self._size = self._read = 0
        self._total: int | None = None
        self._chunk_rows = 1  # the next one may be long in coming
        self._stdin = False
        if isinstance(rows, str | os.PathLike):
            self._items = self._opened(os.fspath(rows))
        elif isinstance(rows, Iterable) and not isinstance(rows, Mapping | bytes):
            if isinstance(rows, Sized):
                self._total, self._chunk_rows = len(rows), _CHUNK_ROWS
            self._items = iter(rows)
        else:
            raise SvcRequestError(
                f"rows must be a path or an iterable of rows, not a {type(rows).__name__}"
            )

    def chunk(self) -> list[Row]:
        """The next rows, at most 256 or about 4 MB of them; none at the end. It may block.

        Raises:
            SvcRequestError: The file is not of the format that its name says.
        """
        begun, rows = self._position(), list[Row]()
        while len(rows) < self._chunk_rows and self._position() - begun <= _CHUNK_BYTES:
            try:
                raw = next(self._items)
            except StopIteration:
                self._total = self._read
                break
            self._read += 1
            rows.append(self._row(raw))
        return rows

    def expected(self) -> tuple[int | None, bool]:
        """How many rows there are in all, None where nothing tells, and whether that is exact."""
        if self._total is not None or not self._size:
            return self._total, self._total is not None
        return round(self._read * self._size / max(1, self._position())), False

    def close(self) -> None:
        """Close the file, but not stdin, in which a thread may wait."""
        if self._file is not None and not self._stdin:
            self._file.close()

    def _position(self) -> int:
        return self._file.tell() if self._file is not None and self._size else 0

    def _opened(self, path: str) -> Iterator[Any]:
        if path == "-":
            # Not sys.stdin.buffer: the program could not end while a thread waits in that.
            self._file = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115
            self._stdin = True
            return jsonl(self._file)
        read = READERS.get(Path(path).suffix.lower())
        if read is None:
            raise SvcRequestError(
                f"{path}: the end of its name tells the format of an input, and is none of "
                f"{', '.join(READERS)}. Rename it, or give JSONL on stdin, as -"
            )
        try:
            self._file = Path(path).open("rb")  # noqa: SIM115  # closed by close()
            self._size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise SvcRequestError(f"{path} cannot be read: {error.strerror}") from None
        self._chunk_rows = _CHUNK_ROWS
        return read(self._file)

    # -- one row ----------------------------------------------------------------------------------

    def _row(self, raw: Any) -> Row:
        if isinstance(raw, BadRow):
            return Row(self._read, json.dumps(self._read), problem=str(raw))
        given = raw.get("id") if isinstance(raw, Mapping) else None
        try:
            key = to_json(self._read if given is None else given)
        except ValueError:
            return Row(self._read, json.dumps(self._read), problem="its id is no JSON value")
        asked = self._input(raw)
        if isinstance(asked, BadRow):
            return Row(self._read, key, problem=str(asked))
        return Row(self._read, key, asked, _digest(asked))

    def _input(self, raw: Any) -> Any:
        if callable(self._format):
            return self._format(raw)
        if not isinstance(raw, Mapping):
            return raw if self._format is None else BadRow("it has no columns to format")
        if self._format is not None:
            missing = sorted(self._columns - raw.keys())
            if missing:
                return BadRow(f"it has no column {missing[0]!r}, only {_names(raw)}")
            filled = {name: "" if value is None else value for name, value in raw.items()}
            try:
                return self._format.format_map(filled)
            except (ValueError, TypeError):
                return BadRow("a column's value does not suit the format")
        found = [name for name in _INPUTS if raw.get(name) is not None]
        if len(found) != 1:
            return BadRow(
                f"it must have one of {', '.join(_INPUTS)}, and has {' and '.join(found) or 'none'}"
                f" (its columns: {_names(raw)}); a format makes prompts of other columns"
            )
        return _checked(found[0], raw[found[0]])


def _checked(name: str, value: Any) -> Any:
    if name == "prompt" and not (isinstance(value, str) and value.strip()):
        return BadRow("its prompt must be a text that is not empty")
    if name == "messages" and not (isinstance(value, list) and value):
        return BadRow("its messages must be a list that is not empty")
    return value


def _names(row: Mapping[Any, Any]) -> str:
    names = ", ".join(map(str, row))
    return names if len(names) < 200 else names[:200] + "..."  # noqa: PLR2004  # an error is short


def _columns(template: str) -> frozenset[str]:
    """The columns that a template names."""
    try:
        fields = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise SvcRequestError(
            f"The format cannot be read: {error}. Write a column as {{text}}, and a brace that is "
            "none as {{ or }}"
        ) from None
    if not fields or not all(name.isidentifier() for name in fields):
        raise SvcRequestError(
            'The format must name columns, each a plain name in braces: "Summarize: {text}". A '
            "brace that is none is written {{ or }}"
        )
    return frozenset(fields)


def to_json(value: Any) -> str:
    """A value as JSON text that UTF-8 can hold, with its letters readable.

    Raises:
        ValueError: It holds NaN or an infinity, or refers to itself.
    """
    plain = to_jsonable_python(value, fallback=str)
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, as models write now and then
        return json.dumps(plain)
    return text


def _digest(value: Any) -> bytes:
    plain = to_jsonable_python(value, fallback=_kind, inf_nan_mode="strings")
    text = json.dumps(plain, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _kind(value: Any) -> str:
    """What stands for a value that JSON cannot hold: the same in the next run."""
    return f"{type(value).__module__}.{type(value).__qualname__}"
