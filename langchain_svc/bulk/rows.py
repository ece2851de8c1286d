"""Rows of the input, read as a stream, each turned into the runnable's input.

No row is dropped. A row that cannot be read or asked is a row with a `problem`, not the end of the
run. A file in which the end of a record is in doubt is refused as a whole, with the line: behind a
quote that is never closed nobody knows where a row begins.

So a run reads a file twice: first all of it, before anything is sent, and then row by row.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from string import Formatter
from textwrap import shorten
from typing import IO, Any, TypeAlias

from langchain_core.messages import convert_to_messages
from pydantic_core import to_jsonable_python

from .._base.safe_errors import type_text
from ..errors import SvcRequestError
from .answers import to_json
from .options import Format

Rows: TypeAlias = str | os.PathLike[str] | Iterable[Any]
"""A path (.jsonl, .ndjson, .csv, .parquet; "-" is JSONL on stdin), or the rows themselves."""

LONGEST_ROW = 64 * 1024 * 1024  # bytes; a longer line is hardly a row
_CHUNK_ROWS = 256
_CHUNK_BYTES = 4 * 1024 * 1024
_LONGEST_NAMES = 200  # characters of the names of columns in an error
_INPUTS = ("prompt", "messages", "input")
_MOST_CAUSES = 3  # for which rows cannot be asked, in a text about them
UNKNOWN = "null"  # the id of a row that could not be read


class BadRow(Exception):  # noqa: N818  # its name is in the results
    """Why a row cannot be read or asked. Its text shows nothing of the row's values."""


@dataclass
class Row:
    """One row of the input.

    Attributes:
        number: 1 for the first.
        key: The row's id as JSON text; "null" where it is unknown.
        line: The line of the file in which the row begins; 0 where there are no lines.
        input: The runnable's input.
        arguments: What else the runnable gets: of a line of an OpenAI batch, its settings.
        model: The model that such a line names, which is not asked: that of the runnable is.
        digest: Of the input; the journal recognizes the row by it.
        problem: Why the row cannot be asked; "" where it can.
        failure: The kind of the error that it had in an earlier run; "" where it had none.
        to_ask: Whether this run asks the row.
    """

    number: int
    key: str = UNKNOWN
    line: int = 0
    input: object = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    digest: bytes = b""
    problem: str = ""
    failure: str = ""
    to_ask: bool = True

    @property
    def place(self) -> str:
        if self.line:
            return f"line {self.line:,}"
        return f"row {self.number:,}"


@dataclass
class Problems:
    """How many rows an input has, and which of them cannot be asked: the first of each cause."""

    rows: int = 0
    bad: int = 0
    models: set[str] = field(default_factory=set)
    """The models that lines of an OpenAI batch name, up to a few."""
    longest: tuple[int, int] = (0, 0)
    """The first and the last line of the row with the most lines before the next row."""
    _causes: dict[str, tuple[str, int]] = field(default_factory=dict)
    _last_line: int = 0  # in which the row before begins

    def add_row(self, row: Row) -> None:
        """Count a row."""
        self.rows += 1
        first, last = self.longest
        if row.line - self._last_line > last - first + 1:
            self.longest = (self._last_line, row.line - 1)
        self._last_line = row.line
        if row.model and len(self.models) < _MOST_CAUSES:
            self.models.add(_printable(row.model))
        if not row.problem:
            return
        self.bad += 1
        place, count = self._causes.get(row.problem, (row.place, 0))
        if count or len(self._causes) < _MOST_CAUSES:
            self._causes[row.problem] = (place, count + 1)

    def __str__(self) -> str:
        """The causes, each with the first place and the number of further ones."""
        texts = []
        for cause, (place, count) in self._causes.items():
            text = f"{place}: {cause}"
            if count > 1:
                text += f" (and {count - 1:,} more alike)"
            texts.append(text)
        return "; ".join(texts)


class Source:
    """The rows of the input, in chunks. `template` turns each into the runnable's input.

    Of a shard (k, n) come rows k, k + n, k + 2n and so on. The ids of all rows are compared.

    Raises:
        SvcRequestError: The input cannot be read at all.
    """

    def __init__(
        self,
        rows: Rows,
        template: Format,
        register: Register,
        shard: tuple[int, int] = (1, 1),
    ) -> None:
        self._rows = rows
        self._shard = shard
        self._format = template
        self._columns: frozenset[str] = frozenset()
        if isinstance(template, str):
            self._columns = _columns(template)
        self._register = register
        self._file: IO[bytes] | None = None  # None for stdin and iterables
        self._count = 0
        self._chunk_rows = 1  # of a stream, whose next row may be long in coming
        self.total: int | None = None
        """The number of all rows; None while it is unknown."""
        if isinstance(rows, str | os.PathLike):
            self._items = self._open(os.fspath(rows))
        elif isinstance(rows, Iterable) and not isinstance(rows, Mapping | bytes):
            if isinstance(rows, Sized):
                self.total = len(rows)
                self._chunk_rows = _CHUNK_ROWS
            self._items = ((0, row) for row in rows)
        else:
            raise SvcRequestError(
                f"rows must be a path or an iterable of rows, not {type_text(rows)}"
            )

    def preview(self) -> Source | None:
        """The same rows for a first reading; None where they can be read only once.

        A function that makes inputs of rows is not called.
        """
        if self._file is None:
            return None
        template = _as_read if callable(self._format) else self._format
        return Source(self._rows, template, self._register, self._shard)

    @property
    def expected(self) -> int | None:
        """The number of the rows that come; None while it is unknown."""
        if self.total is None:
            return None
        first, step = self._shard
        return len(range(first, self.total + 1, step))

    def chunk(self) -> list[Row]:
        """The next rows, at most 256 or about 4 MB; none at the end. It may block.

        Raises:
            SvcRequestError: The file is damaged, or has no rows.
        """
        first, step = self._shard
        while rows := self._next_rows():
            ours = [row for row in rows if (row.number - first) % step == 0]
            self._register.add_rows([(row.number, row.key) for row in ours])
            if ours:
                return ours
        return []

    def _next_rows(self) -> list[Row]:
        rows: list[Row] = []
        start = self._position()
        while len(rows) < self._chunk_rows and self._position() - start <= _CHUNK_BYTES:
            try:
                line, raw = next(self._items)
            except StopIteration:
                self.total = self._count
                if self._file is not None and not self._count:
                    raise SvcRequestError(
                        f"{os.fspath(self._rows)} has no rows"  # type: ignore[arg-type]
                    ) from None
                break
            except _DamageError as damage:
                raise SvcRequestError(f"{os.fspath(self._rows)}, {damage}") from None  # type: ignore[arg-type]
            self._count += 1
            rows.append(self._row(line, raw))
        self._register.add_ids([(row.number, row.key) for row in rows])
        for row in rows:
            owner = self._register.owner(row.key)
            if owner not in {None, row.number} and not row.problem:
                row.problem = f"its id is that of row {owner}"
        return rows

    def close(self) -> None:
        """Close the file, but not stdin, in which a thread may wait."""
        if self._file is not None:
            self._file.close()

    def _position(self) -> int:
        if self._file is None:
            return 0
        return self._file.tell()

    def _open(self, path: str) -> Iterator[tuple[int, object]]:
        if path == "-":
            # Not sys.stdin.buffer: the program could not end while a thread waits in that.
            return _jsonl(
                open(sys.stdin.fileno(), "rb", closefd=False),
                has_no_name=True,
            )
        suffix = Path(path).suffix.lower()
        if suffix == ".json":
            lines = Path(path).with_suffix(".jsonl")
            raise SvcRequestError(
                f"{path} is JSON, and a run reads JSONL, one object per line: jq -c '.[]' {path} > "
                f"{lines} makes that of an array"
            )
        read_rows = _READERS.get(suffix)
        if Path(path).is_dir():
            raise SvcRequestError(f"{path} is a folder: name a file in it")
        if read_rows is None:
            raise SvcRequestError(
                f"{path}: the suffix tells the format of an input, and must be one of "
                f"{', '.join(_READERS)}. Save it in one of these formats, or give JSONL on stdin, "
                "as -"
            )
        if Path(path).exists() and not Path(path).is_file():
            raise SvcRequestError(
                f"{path} is not a regular file, which a run reads twice: give JSONL on stdin, as -"
            )
        try:
            self._file = Path(path).open("rb")  # noqa: SIM115  # closed by close()
        except OSError as error:
            raise SvcRequestError(f"{path} cannot be read: {error.strerror}") from None
        self._chunk_rows = _CHUNK_ROWS
        return read_rows(self._file)

    def _row(self, line: int, raw: object) -> Row:
        row = Row(self._count, line=line)
        try:
            row.key = _key(raw, row.number)
            body = _openai_body(raw)
            if body is None or self._format is not None:
                row.input = self._input(raw)
                row.digest = _digest(row.input)
            else:
                _take_body(row, body)
        except BadRow as bad:
            row.problem = str(bad)
        return row

    def _input(self, raw: object) -> object:
        if callable(self._format):
            return self._format(raw)
        if not isinstance(raw, Mapping):
            if self._format is not None:
                raise BadRow("it has no columns to format")
            return raw
        if self._format is None:
            return _input_column(raw)
        missing = sorted(self._columns - raw.keys())
        if missing:
            hint = _separator_hint(raw)
            raise BadRow(f"it has no column {missing[0]!r}, only {_names(raw)}{hint}")
        if all(_is_empty(raw[name]) for name in self._columns):
            raise BadRow(
                f"it has nothing to ask: {', '.join(sorted(self._columns))} is empty"
            )
        filled = {name: "" if value is None else value for name, value in raw.items()}
        try:
            return self._format.format_map(filled)
        except (ValueError, TypeError):
            raise BadRow("a column's value does not suit the format") from None


def _as_read(raw: object) -> object:
    return raw


def _key(raw: object, number: int) -> str:
    """A row's id as JSON text; its number where it has none.

    Raises:
        BadRow: The row cannot be read, so its id is unknown.
    """
    if isinstance(raw, BadRow):
        raise raw
    key = None
    if isinstance(raw, Mapping):
        key = raw.get("id")
        if key is None and _openai_body(raw) is not None:
            key = raw["custom_id"]
    if key is None:
        return json.dumps(number)
    try:
        return to_json(key)
    except ValueError:
        raise BadRow("its id is not a JSON value") from None


def _openai_body(raw: object) -> Mapping[str, Any] | None:
    """The body of a line of an OpenAI batch file; None for any other row."""
    if isinstance(raw, Mapping) and "custom_id" in raw:
        body = raw.get("body")
        if isinstance(body, Mapping):
            return body
    return None


def _take_body(row: Row, body: Mapping[str, Any]) -> None:
    """Let a row ask what the body of an OpenAI batch's line asks.

    Raises:
        BadRow: It is not a chat.
    """
    if "messages" not in body:
        raise BadRow("its body has no messages: only chats are asked")
    row.input = _input_column({"messages": body["messages"]})
    others = body.keys() - {"messages", "model"}
    row.arguments = {name: body[name] for name in sorted(others)}
    row.model = str(body.get("model") or "")
    row.digest = _digest([row.input, row.arguments])


def _check_messages(messages: Sequence[Any]) -> None:
    """Raise a BadRow about the first message that LangChain cannot read."""
    for number, message in enumerate(messages, 1):
        try:
            convert_to_messages([message])
        except Exception:  # noqa: BLE001  # each kind of message has its own errors
            role: object = None
            if isinstance(message, Mapping):
                role = message.get("role", message.get("type"))
            elif isinstance(message, list) and message:
                role = message[0]
            raise BadRow(
                f"its message {number} cannot be read (its role: {_printable(str(role))}). A "
                "message has a role, one of user, assistant, system and tool, and a content"
            ) from None


def _input_column(row: Mapping[Any, Any]) -> object:
    """The row's input, in the one column that may have it."""
    names = [name for name in _INPUTS if row.get(name) is not None]
    if len(names) != 1:
        raise BadRow(
            f"it must have one of {', '.join(_INPUTS)}, and has {' and '.join(names) or 'none'}"
            f" (its columns: {_names(row)}{_separator_hint(row)}). Prompts of other columns need "
            f'a format: --format "Summarize: {{text}}"'
        )
    name = names[0]
    value = row[name]
    if name == "prompt" and not (isinstance(value, str) and value.strip()):
        raise BadRow("its prompt must be a text that is not empty")
    if name == "messages" and not (isinstance(value, list) and value):
        raise BadRow("its messages must be a list that is not empty")
    if name == "messages":
        _check_messages(value)
    return value


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _names(row: Mapping[Any, Any]) -> str:
    return _printable(", ".join(map(str, row)))


def _printable(name: str) -> str:
    """A name of the input for a terminal: short, and without control characters."""
    text = shorten(name, _LONGEST_NAMES, placeholder="...")
    return "".join(c if c.isprintable() else "?" for c in text)


def _separator_hint(row: Mapping[Any, Any]) -> str:
    """Advice for a file whose only column looks as if it were several."""
    name = str(next(iter(row), ""))
    if len(row) == 1 and any(separator in name for separator in ";\t|"):
        return "; its columns must be separated by commas"
    return ""


def _columns(template: str) -> frozenset[str]:
    """The columns that a template names."""
    try:
        fields = [
            name for _, name, _, _ in Formatter().parse(template) if name is not None
        ]
    except ValueError:
        fields = []
    if not fields or not all(name.isidentifier() for name in fields):
        raise SvcRequestError(
            'The format must name columns, each a plain name in braces: "Summarize: {text}". A '
            "literal brace is written {{ or }}"
        )
    return frozenset(fields)


def _digest(value: object) -> bytes:
    # The class stands for an object that JSON cannot hold: the same in the next run.
    plain = to_jsonable_python(
        value, fallback=lambda part: str(type(part)), inf_nan_mode="strings"
    )
    text = json.dumps(plain, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


# -- formats --------------------------------------------------------------------------------------


class _DamageError(Exception):
    """Where a file is damaged: a line, and why. Its text shows nothing of the file's values."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line:,}: {why}")


def _jsonl(
    file: IO[bytes], *, has_no_name: bool = False
) -> Iterator[tuple[int, object]]:
    """One JSON object per line, each on its own; blank lines are skipped.

    Raises:
        SvcRequestError: It is an array, or begins as no JSON where no name says what it is.
    """
    first = True
    number = 0
    while line := file.readline(LONGEST_ROW):
        number += 1
        if len(line) == LONGEST_ROW and not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST_ROW)) and not rest.endswith(b"\n"):
                pass
            yield number, BadRow(f"the line is longer than {LONGEST_ROW:,} bytes")
            continue
        line = line.removeprefix(b"\xef\xbb\xbf").strip()
        if first and line.startswith(b"["):
            raise SvcRequestError(
                "the input is one JSON array, and is read line by line: make it JSONL, one object "
                "per line (jq -c '.[]' does that)"
            )
        if first and has_no_name and line and not line.startswith(b"{"):
            raise SvcRequestError(
                "stdin is read as JSONL, and its first line is no JSON object: a CSV file is given "
                "by its name"
            )
        first = False
        if line:
            yield number, _parsed_line(line)


def _parsed_line(line: bytes) -> object:
    """The object of a line, or the problem of its row."""
    try:
        # Not json.loads(line), which takes a line with zeros for UTF-16.
        row = json.loads(line.decode(), object_pairs_hook=_object)
    except BadRow as bad:
        return bad
    except json.JSONDecodeError as error:
        return BadRow(
            f"the line is not JSON that can be read: {error.msg} at column {error.colno}"
        )
    except (ValueError, RecursionError) as error:  # neither repeats the line
        return BadRow(f"the line is not JSON that can be read: {error}")
    if not isinstance(row, dict):
        return BadRow(f"the line is JSON, but {type_text(row)} and no object")
    return row


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. A second value of a key would drop the first value in silence."""
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    names = [name for name, _ in pairs]
    twice = next(name for name in names if names.count(name) > 1)
    raise BadRow(f"the line gives {_printable(twice)!r} twice in one object")


def _csv(file: IO[bytes]) -> Iterator[tuple[int, dict[str, str]]]:
    """A header, then one record per row, as in RFC 4180: a quoted field may hold line breaks.

    Raises:
        _DamageError: A record is not as wide as the header, or nobody can say where it ends.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_ROW))
    text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
    records = _csv_records(text)
    try:
        line, header = next(records, (1, []))
        if not header:
            raise _DamageError(
                1, "the file is empty, and must begin with the names of its columns"
            )
        twice = next((name for name in header if header.count(name) > 1), None)
        if twice is not None:
            raise _DamageError(
                line,
                f"the header names a column twice ({_printable(twice)!r}): rename one",
            )
        for line, record in records:
            if len(record) != len(header):
                raise _DamageError(
                    line,
                    f"the record has {len(record)} fields, and the header {len(header)}. A text "
                    "with a comma, a quote or a line break must stand in quotes",
                )
            yield line, dict(zip(header, record, strict=True))
    finally:
        text.detach()


def _csv_records(text: io.TextIOWrapper) -> Iterator[tuple[int, list[str]]]:
    """Each record and the line in which it begins; blank lines are skipped."""
    reader = csv.reader(_csv_lines(text), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            record = next(reader, None)
        except csv.Error as error:
            raise _DamageError(
                line, _quoting_problem(str(error), line, reader.line_num)
            ) from None
        if record is None:
            return
        if record:
            yield line, record


def _quoting_problem(error: str, first_line: int, last_line: int) -> str:
    if "unexpected end" in error or "field limit" in error:
        return "a quoted field begins in this record and never ends: close or double the quote"
    where = f" in line {last_line:,}" if last_line > first_line else ""
    return (
        f"the record that begins here cannot be read{where} ({error}). A quote inside a quoted "
        'field is written twice: ""'
    )


def _csv_lines(text: io.TextIOWrapper) -> Iterator[str]:
    """Lines of text in UTF-8, none longer than `LONGEST_ROW`."""
    for number, line in enumerate(iter(partial(text.readline, LONGEST_ROW), ""), 1):
        if len(line) == LONGEST_ROW and not line.endswith(("\n", "\r")):
            raise _DamageError(
                number, f"the line is longer than {LONGEST_ROW:,} characters"
            )
        if "\0" in line or not _is_unicode(line):
            raise _DamageError(
                number,
                "it holds bytes that are no UTF-8 text (Latin-1, UTF-16 and spreadsheets are "
                "none): save the file as CSV in UTF-8",
            )
        yield line


def _is_unicode(line: str) -> bool:
    """Whether the line has no byte that UTF-8 could not decode, which stands as a surrogate."""
    if line.isascii():
        return True
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parquet(file: IO[bytes]) -> Iterator[tuple[int, object]]:
    """The rows of a Parquet file. Of a row group, memory holds only the pages being read."""
    try:
        import pyarrow.parquet  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow, which is not installed: "
            'pip install "langchain-svc[parquet]"'
        ) from error
    names: list[str] = []
    try:
        parquet = pyarrow.parquet.ParquetFile(
            file, pre_buffer=False, buffer_size=1 << 20
        )
        names = parquet.schema_arrow.names
        if len(set(names)) == len(names):
            for batch in parquet.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    yield 0, row
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError):
        raise SvcRequestError(
            "the input is not a Parquet file, or is damaged"
        ) from None
    if len(set(names)) < len(names):
        raise SvcRequestError("the input names a column twice: rename one")


_READERS: Mapping[str, Callable[[IO[bytes]], Iterator[tuple[int, object]]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".csv": _csv,
    ".parquet": _parquet,
}


# -- the rows that were read -----------------------------------------------------------------------


class Register:
    """Numbers and ids of rows, in a file without a name, which SQLite keeps in memory while small.

    Any thread may call it. It is opened by its first use, so a run that never begins leaves none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: sqlite3.Connection | None = None

    @property
    def _db(self) -> sqlite3.Connection:
        if self._opened is None:
            db = self._opened = sqlite3.connect("", check_same_thread=False)
            db.execute("PRAGMA journal_mode = OFF")
            db.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, key TEXT)")
            db.execute(
                "CREATE TABLE ids (key TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID"
            )
        return self._opened

    def close(self) -> None:
        """Delete it."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def add_rows(self, rows: Sequence[tuple[int, str]]) -> None:
        """Enter rows by number and id, "null" for an unknown id. Earlier entries stay.

        Raises:
            SvcRequestError: The disk is full.
        """
        self._insert("INSERT OR IGNORE INTO rows VALUES (?, ?)", rows)

    def add_ids(self, rows: Sequence[tuple[int, str]]) -> None:
        """Note which row has an id, also of rows that are not entered. The first one keeps it.

        Raises:
            SvcRequestError: The disk is full.
        """
        claims = [(key, number) for number, key in rows if key != "null"]
        self._insert("INSERT OR IGNORE INTO ids VALUES (?, ?)", claims)

    def _insert(self, sql: str, values: Sequence[tuple[object, object]]) -> None:
        try:
            with self._lock, self._db:
                self._db.executemany(sql, values)
        except sqlite3.Error as error:
            raise SvcRequestError(
                f"The ids of the rows cannot be noted in a temporary file: {error}. Make room "
                "where this machine keeps such files, or set TMPDIR to another folder"
            ) from error

    def owner(self, key: str) -> int | None:
        """The number of the first row with an id; None for an unknown id."""
        with self._lock:
            row = self._db.execute(
                "SELECT number FROM ids WHERE key = ?", (key,)
            ).fetchone()
        if row is None:
            return None
        number: int = row[0]
        return number

    def others(self, numbers: Iterator[int]) -> Iterator[tuple[int, str]]:
        """The rows that are not among these numbers, which are in order: number and id."""
        next_number = next(numbers, None)
        for number, key in self._db.execute(
            "SELECT number, key FROM rows ORDER BY number"
        ):
            while next_number is not None and next_number < number:
                next_number = next(numbers, None)
            if next_number != number:
                yield number, key
