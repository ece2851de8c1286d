"""Rows of the input, read as a stream, each made into what the runnable is asked.

A row that cannot be read or asked is a row with a `problem`, not the end of the run.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from textwrap import shorten
from typing import IO, Any, TypeAlias

from pydantic_core import to_jsonable_python

from ..errors import SvcRequestError
from .answers import to_json
from .options import Format

Rows: TypeAlias = str | os.PathLike[str] | Iterable[Any]
"""A path (.jsonl, .ndjson, .csv, .parquet; "-" is JSONL on stdin), or the rows themselves."""

LONGEST_ROW = 64 * 1024 * 1024  # bytes; what is longer is hardly a row
_CHUNK_ROWS, _CHUNK_BYTES = 256, 4 * 1024 * 1024
_LONGEST_NAMES = 200  # characters of the names of columns in an error
_INPUTS = ("prompt", "messages", "input")


class BadRow(Exception):  # noqa: N818  # its name is in the results
    """Why a row cannot be read or asked. It holds nothing of the row's values."""


@dataclass
class Row:
    """One row of the input.

    `number` is 1 for the first, `key` its id as JSON text, `input` what the runnable is asked, and
    `digest` is what the journal recognizes that by.
    """

    number: int
    key: str
    input: Any = None
    digest: bytes = b""
    problem: str = ""
    failed_before: bool = False
    to_ask: bool = True


class Source:
    """The rows of the input, in chunks. `template` says what becomes of each.

    Raises:
        SvcRequestError: The input cannot be read at all.
    """

    def __init__(self, rows: Rows, template: Format = None) -> None:
        self._format = template
        self._columns = _columns(template) if isinstance(template, str) else frozenset[str]()
        self._file: IO[bytes] | None = None  # one that has an end
        self._size = self._read = 0
        self._total: int | None = None
        self._chunk_rows = 1  # the next one may be long in coming
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
        """The next rows, at most 256 or about 4 MB; none at the end. It may block."""
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
        """The number of all rows, None if nothing tells, and whether that is exact."""
        if self._total is not None or self._file is None:
            return self._total, self._total is not None
        return round(self._read * self._size / max(1, self._position())), False

    def close(self) -> None:
        """Close the file, but not stdin, in which a thread may wait."""
        if self._file is not None:
            self._file.close()

    def _position(self) -> int:
        return 0 if self._file is None else self._file.tell()

    def _opened(self, path: str) -> Iterator[Any]:
        if path == "-":
            # Not sys.stdin.buffer: the program could not end while a thread waits in that.
            return _jsonl(open(sys.stdin.fileno(), "rb", closefd=False))
        read = _READERS.get(Path(path).suffix.lower())
        if read is None:
            raise SvcRequestError(
                f"{path}: the suffix tells the format of an input, and must be one of "
                f"{', '.join(_READERS)}. Rename the file, or give JSONL on stdin, as -"
            )
        try:
            self._file = Path(path).open("rb")  # noqa: SIM115  # closed by close()
            self._size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise SvcRequestError(f"{path} cannot be read: {error.strerror}") from None
        self._chunk_rows = _CHUNK_ROWS
        return read(self._file)

    def _row(self, raw: Any) -> Row:
        row = Row(self._read, json.dumps(self._read))
        try:
            row.key = _key(raw) or row.key
            row.input = self._input(raw)
            row.digest = _digest(row.input)
        except BadRow as bad:
            row.problem = str(bad)
        return row

    def _input(self, raw: Any) -> Any:
        if isinstance(raw, BadRow):
            raise raw
        if callable(self._format):
            return self._format(raw)
        if not isinstance(raw, Mapping):
            if self._format is not None:
                raise BadRow("it has no columns to format")
            return raw
        if self._format is None:
            return _asked(raw)
        missing = sorted(self._columns - raw.keys())
        if missing:
            raise BadRow(f"it has no column {missing[0]!r}, only {_names(raw)}")
        filled = {name: "" if value is None else value for name, value in raw.items()}
        try:
            return self._format.format_map(filled)
        except (ValueError, TypeError):
            raise BadRow("a column's value does not suit the format") from None


def _key(raw: Any) -> str:
    given = raw.get("id") if isinstance(raw, Mapping) else None
    try:
        return "" if given is None else to_json(given)
    except ValueError:
        raise BadRow("its id is not a JSON value") from None


def _asked(row: Mapping[Any, Any]) -> Any:
    found = [name for name in _INPUTS if row.get(name) is not None]
    if len(found) != 1:
        raise BadRow(
            f"it must have one of {', '.join(_INPUTS)}, and has {' and '.join(found) or 'none'}"
            f" (its columns: {_names(row)}); a format makes prompts of other columns"
        )
    name, value = found[0], row[found[0]]
    if name == "prompt" and not (isinstance(value, str) and value.strip()):
        raise BadRow("its prompt must be a text that is not empty")
    if name == "messages" and not (isinstance(value, list) and value):
        raise BadRow("its messages must be a list that is not empty")
    return value


def _names(row: Mapping[Any, Any]) -> str:
    return shorten(", ".join(map(str, row)), _LONGEST_NAMES, placeholder="...")


def _columns(template: str) -> frozenset[str]:
    """The columns that a template names."""
    try:
        fields = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError:
        fields = []
    if not fields or not all(name.isidentifier() for name in fields):
        raise SvcRequestError(
            'The format must name columns, each a plain name in braces: "Summarize: {text}". A '
            "literal brace is written {{ or }}"
        )
    return frozenset(fields)


def _digest(value: Any) -> bytes:
    # What JSON cannot hold is told by its class: the same in the next run.
    plain = to_jsonable_python(value, fallback=lambda one: str(type(one)), inf_nan_mode="strings")
    return hashlib.blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=16).digest()


# -- formats --------------------------------------------------------------------------------------


def _jsonl(file: IO[bytes]) -> Iterator[Any]:
    """One JSON object per line; blank lines are skipped."""
    first = True
    while line := file.readline(LONGEST_ROW):
        if len(line) == LONGEST_ROW and not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST_ROW)) and not rest.endswith(b"\n"):
                pass
            yield BadRow(f"the line is longer than {LONGEST_ROW:,} bytes")
            continue
        line = line.removeprefix(b"\xef\xbb\xbf").strip()
        if first and line.startswith(b"["):
            raise SvcRequestError(
                "the input is one JSON array, and is read line by line: make it JSONL, one object "
                "per line (jq -c '.[]' does that)"
            )
        first = False
        if line:
            yield _parsed(line)


def _parsed(line: bytes) -> Any:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:  # none of which repeats the line
        return BadRow(f"the line is not JSON that can be read: {error}")
    if not isinstance(row, dict):
        return BadRow(f"the line is JSON, but a {type(row).__name__} and no object")
    return row


def _csv(file: IO[bytes]) -> Iterator[Any]:
    """A header, then one record per row, as in RFC 4180: a quoted field may hold line breaks."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_ROW))
    text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
    records = csv.DictReader(text)
    names = records.fieldnames or []
    if len(set(names)) < len(names):
        raise SvcRequestError("the header of the input names a column twice: rename one")
    while True:
        try:
            row: dict[Any, Any] = next(records)
            if None in row or None in row.values():
                yield BadRow("the record has more or fewer fields than the header")
                continue
            "".join(row.values()).encode()
        except StopIteration:
            text.detach()
            return
        except csv.Error as error:
            yield BadRow(f"the record cannot be read: {error}")
        except UnicodeEncodeError:
            yield BadRow("the record is not UTF-8")
        else:
            yield row


def _parquet(file: IO[bytes]) -> Iterator[Any]:
    """The rows of a Parquet file; no more of a row group is in memory than its pages need."""
    try:
        import pyarrow.parquet  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow, which is not installed: "
            'pip install "langchain-svc[parquet]"'
        ) from error
    try:
        opened = pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
        for batch in opened.iter_batches(batch_size=256):
            yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError):
        raise SvcRequestError("the input is not a Parquet file, or is damaged") from None


_READERS = {".jsonl": _jsonl, ".ndjson": _jsonl, ".csv": _csv, ".parquet": _parquet}
