"""The formats of input files, each read as a stream of rows.

A row is a dict. Where it cannot be read there is a `BadRow` in its place, and reading goes on.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeAlias

from ..errors import SvcRequestError

LONGEST_ROW = 64 * 1024 * 1024  # bytes; what is longer is hardly a row
_SPACE = b" \t\r\n"


class BadRow(str):
    """Why a row cannot be read or asked. It holds nothing of the row's values."""

    __slots__ = ()


Reader: TypeAlias = Callable[[IO[bytes]], Iterator[Any]]


def jsonl(file: IO[bytes]) -> Iterator[Any]:
    """One JSON object a line; blank lines are no rows."""
    first = True
    while line := file.readline(LONGEST_ROW):
        whole = line.endswith(b"\n") or len(line) < LONGEST_ROW
        while not whole:  # the rest of a line that is too long
            more = file.readline(LONGEST_ROW)
            whole = more.endswith(b"\n") or len(more) < LONGEST_ROW
            line = b""
        if not line:
            yield BadRow(f"the line is longer than {LONGEST_ROW:,} bytes")
            continue
        line = line.removeprefix(b"\xef\xbb\xbf").strip(_SPACE) if first else line.strip(_SPACE)
        if first and line in {b"[", b"[{"}:
            raise SvcRequestError(
                "the input is one JSON array, and is read line by line: make it JSONL, one object "
                "a line (jq -c '.[]' does that)"
            )
        first = False
        if line:
            yield _parsed(line)


def _parsed(line: bytes) -> Any:
    try:
        row = json.loads(line)
    except UnicodeDecodeError:
        return BadRow("the line is not UTF-8")
    except json.JSONDecodeError as error:
        return BadRow(f"the line is not JSON: {error.msg} at character {error.pos + 1}")
    except (ValueError, RecursionError):
        return BadRow("the line is JSON with a number too long or nested too deeply to be read")
    if not isinstance(row, dict):
        return BadRow(f"the line is JSON, but a {type(row).__name__} and no object")
    return row


def delimited(delimiter: str) -> Reader:
    """A header, then one record a row, as of RFC 4180: a quoted field may hold line breaks."""

    def read(file: IO[bytes]) -> Iterator[Any]:
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_ROW))
        text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
        records = csv.reader(text, delimiter=delimiter)
        names = next(records, [])
        if len(set(names)) < len(names):
            raise SvcRequestError("the header of the input names a column twice: rename one")
        while True:
            try:
                values = next(records)
            except StopIteration:
                text.detach()
                return
            except csv.Error as error:
                yield BadRow(f"the record cannot be read: {error}")
                continue
            if values:
                yield _record(names, values)

    return read


def _record(names: list[str], values: list[str]) -> Any:
    if len(values) != len(names):
        return BadRow(f"the record has {len(values)} fields, and the header {len(names)}")
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return BadRow("the record is not UTF-8")
    return dict(zip(names, values, strict=True))


def parquet(file: IO[bytes]) -> Iterator[Any]:
    """The rows of a Parquet file; of a row group no more is in memory than its pages need."""
    try:
        from pyarrow import ArrowInvalid  # noqa: PLC0415  # an extra
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            "Parquet is read by pyarrow, which is not installed: "
            'pip install "langchain-svc[parquet]"'
        ) from error
    try:
        opened = ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
    except ArrowInvalid:
        raise SvcRequestError("the input is not a Parquet file, or is cut off") from None
    for batch in opened.iter_batches(batch_size=256):
        yield from batch.to_pylist()


READERS: dict[str, Reader] = {
    ".jsonl": jsonl,
    ".ndjson": jsonl,
    ".csv": delimited(","),
    ".tsv": delimited("\t"),
    ".parquet": parquet,
}
