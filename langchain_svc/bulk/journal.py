"""The journal: a SQLite file with one row for each row of the input that has been answered.

- A row is in it when its answer is on the disk (WAL, `synchronous=FULL`), or not at all. Rows that
  are being asked are not in it, so what a killed run has lost is what was in flight.
- Every commit is also checkpointed: the file itself, not the log beside it, holds all but the last
  commit. A log that is cut off or left behind when the file is copied costs that commit at most.
- A run holds the file alone (`locking_mode=EXCLUSIVE`). SQLite then needs no shared memory, so the
  file may be on a network disk.
- It is made under another name: a file of that name is never half a journal, and one that is empty
  was damaged.

All methods are to be called on one thread.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SvcRequestError
from .rows import Row

_APPLICATION = 0x53564342  # "SVCB", by which a journal is told from other SQLite files
_SCHEMA = f"""
    PRAGMA application_id = {_APPLICATION};
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE rows (
        finished INTEGER PRIMARY KEY,
        number INTEGER NOT NULL UNIQUE,
        key TEXT NOT NULL,
        digest BLOB NOT NULL,
        failed INTEGER NOT NULL,
        content TEXT NOT NULL,
        error TEXT NOT NULL,
        tokens_in INTEGER,
        tokens_out INTEGER,
        tokens INTEGER,
        cost REAL
    );
    CREATE INDEX rows_by_key ON rows (key);
"""
_COLUMNS = "number, key, digest, failed, content, error, tokens_in, tokens_out, tokens, cost"
_SAVE = f"INSERT OR REPLACE INTO rows ({_COLUMNS}) VALUES ({', '.join('?' * 10)})"  # noqa: S608
_PRAGMAS = (
    "locking_mode = EXCLUSIVE",
    "journal_mode = WAL",
    "synchronous = FULL",
    "wal_autocheckpoint = 1",
)
# Settings whose values an error may show: neither long nor anybody's text.
_SHOWN = frozenset({"model", "temperature", "max_tokens"})


@dataclass
class Answer:
    """What became of a row.

    Attributes:
        content: The answer as JSON text, "null" where there is none.
        error: What went wrong as JSON text, "null" where nothing did.
        usage: Tokens in, out and in all, each None where it is not known.
        cost: In the currency of the prices; None where no price is known.
    """

    content: str = "null"
    error: str = "null"
    usage: tuple[int | None, int | None, int | None] = (None, None, None)
    cost: float | None = None

    @property
    def failed(self) -> bool:
        """Whether it is an error."""
        return self.error != "null"


@dataclass
class Totals:
    """All that a journal holds, in numbers."""

    done: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost: float | None = None

    def add(self, answer: Answer) -> None:
        """Count one more row."""
        self.failed += answer.failed
        self.done += not answer.failed
        tokens_in, tokens_out, tokens = answer.usage
        self.input_tokens += tokens_in or 0
        self.output_tokens += tokens_out or 0
        self.total_tokens += tokens or 0
        if answer.cost is not None:
            self.cost = (self.cost or 0.0) + answer.cost


class Journal:
    """An open journal, made where there is none.

    Args:
        path: Of the file; its folder must exist.
        settings: What the answers depend on besides the rows, by name. None reads it whatever they
            are.

    Raises:
        SvcRequestError: It is damaged, in use, no journal, or was written with other settings.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, str] | None) -> None:
        self.path = Path(path)
        if settings is not None and not self.path.exists():
            self._make(settings)
        self._db = self._opened()
        try:
            if settings is not None:
                self._compare(settings)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # -- the run ----------------------------------------------------------------------------------

    def mark(self, rows: Sequence[Row], *, retry_errors: bool) -> None:
        """Tell the rows of a chunk that are still to be asked from those with an answer.

        A row whose id an earlier row has gets a problem.

        Raises:
            SvcRequestError: A row is another than the one that was answered under its number.
        """
        found = self._db.execute(
            "SELECT number, key, digest, failed FROM rows WHERE number BETWEEN ? AND ?",
            (rows[0].number, rows[-1].number),
        )
        known = {number: (key, digest, failed) for number, key, digest, failed in found}
        for row in rows:
            key, digest, failed = known.get(row.number, (row.key, row.digest, None))
            row.to_ask = failed is None or bool(failed and retry_errors)
            row.failed_before = bool(failed)
            if row.to_ask and not row.problem:
                owner = self._owner(row)
                row.problem = "" if owner is None else same_id(owner)
            elif not failed and (key, digest) != (row.key, row.digest):
                raise SvcRequestError(
                    f"Row {row.number} of the input is not the one that {self.path} has the answer "
                    "of. A journal belongs to one input, which may only grow at its end: give "
                    "that input, or another journal"
                )

    def _owner(self, row: Row) -> int | None:
        """The number of an earlier row with the same id."""
        found = self._db.execute(
            "SELECT min(number) FROM rows WHERE key = ? AND number < ?", (row.key, row.number)
        ).fetchone()
        number: int | None = found[0]
        return number

    def save(self, answers: Iterable[tuple[Row, Answer]]) -> None:
        """Write answers; they are on the disk when it returns.

        Raises:
            SvcRequestError: The disk is full, or cannot be written.
        """
        try:
            self._write(answers)
        except sqlite3.Error as error:
            raise SvcRequestError(
                f"The journal {self.path} cannot be written: {error}. What it holds is safe: make "
                "room, then run the same again"
            ) from error

    def _write(self, answers: Iterable[tuple[Row, Answer]]) -> None:
        with self._db:
            self._db.executemany(
                _SAVE,
                (
                    (
                        row.number,
                        row.key,
                        row.digest,
                        a.failed,
                        a.content,
                        a.error,
                        *a.usage,
                        a.cost,
                    )
                    for row, a in answers
                ),
            )

    def totals(self) -> Totals:
        """The sums over all rows."""
        row = self._db.execute(
            "SELECT count(*) - total(failed), total(failed), total(tokens_in), total(tokens_out), "
            "total(tokens), sum(cost) FROM rows"
        ).fetchone()
        done, failed, tokens_in, tokens_out, tokens = map(int, row[:5])
        return Totals(done, failed, tokens_in, tokens_out, tokens, row[5])

    def last_number(self) -> int:
        """The highest number of a row that it holds, 0 where it holds none."""
        (number,) = self._db.execute("SELECT max(number) FROM rows").fetchone()
        return number or 0

    # -- the results ------------------------------------------------------------------------------

    def results(self, *, ordered: bool) -> Iterator[str]:
        """Every row of the output as JSON text: as they finished, or in the input's order."""
        order = "number" if ordered else "finished"
        found = self._db.execute(
            "SELECT key, content, error, tokens_in, tokens_out, tokens FROM rows "  # noqa: S608
            f"ORDER BY {order}"
        )
        for key, content, error, *usage in found:
            yield (
                f'{{"id": {key}, "content": {content}, "usage": {_usage(usage)}, "error": {error}}}'
            )

    def write(self, path: str, *, ordered: bool) -> None:
        """Write all results to a file, whole or not at all. An existing one keeps its mode.

        Raises:
            SvcRequestError: It cannot be written.
        """
        place = Path(path)
        try:
            descriptor, name = tempfile.mkstemp(prefix=place.name + ".", dir=place.parent)
            try:
                with open(descriptor, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
                    file.writelines(line + "\n" for line in self.results(ordered=ordered))
                    file.flush()
                    os.fsync(descriptor)
                if place.exists():
                    Path(name).chmod(place.stat().st_mode & 0o777)
                Path(name).replace(place)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise SvcRequestError(
                f"{path} cannot be written: {error.strerror}. All results are in {self.path}: give "
                "another place, and run the same again"
            ) from None

    # -- the file ---------------------------------------------------------------------------------

    def _make(self, settings: Mapping[str, str]) -> None:
        try:
            # Readable by its owner only: it holds what was answered.
            descriptor, name = tempfile.mkstemp(prefix=self.path.name + ".", dir=self.path.parent)
        except OSError as error:
            raise SvcRequestError(
                f"The journal {self.path} cannot be made: {error.strerror}; give another place"
            ) from None
        os.close(descriptor)
        try:
            with closing(sqlite3.connect(name)) as db, db:
                db.executescript(_SCHEMA)
                db.executemany("INSERT INTO settings VALUES (?, ?)", settings.items())
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _opened(self) -> sqlite3.Connection:
        if not self.path.exists():
            raise SvcRequestError(f"There is no journal {self.path}")
        # Opening a file that is another's would change it.
        with self.path.open("rb") as file:
            head = file.read(100)
        if not head.startswith(b"SQLite format 3\0"):
            raise self._damaged("it does not begin as one")
        if head[68:72] != _APPLICATION.to_bytes(4, "big"):
            raise SvcRequestError(f"{self.path} is a database, but no journal: give another file")
        db = sqlite3.connect(self.path, timeout=1.0, check_same_thread=False)
        try:
            self._prepare(db)
        except sqlite3.DatabaseError as error:
            db.close()
            raise self._refused(error) from None
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        for pragma in _PRAGMAS:
            db.execute(f"PRAGMA {pragma}")
        db.execute("BEGIN EXCLUSIVE")  # fails where another run holds the file
        db.execute("COMMIT")
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise self._damaged("its pages do not fit together")

    def _refused(self, error: sqlite3.DatabaseError) -> SvcRequestError:
        text = str(error)
        if "locked" in text:
            return SvcRequestError(
                f"The journal {self.path} is in use by another run. Wait for its end, or give "
                "this one another journal"
            )
        if "not a database" in text or "malformed" in text or "disk I/O" in text:
            return self._damaged(text)
        return SvcRequestError(f"The journal {self.path} cannot be opened: {text}")

    def _damaged(self, why: str) -> SvcRequestError:
        return SvcRequestError(
            f"The journal {self.path} is damaged or no journal: {why}. Put back a copy of it, or "
            f"delete it to begin anew; `sqlite3 {self.path} .recover` shows what can be saved"
        )

    def _compare(self, settings: Mapping[str, str]) -> None:
        found = dict(self._db.execute("SELECT name, value FROM settings"))
        other = sorted(
            name for name in found.keys() | settings.keys() if found.get(name) != settings.get(name)
        )
        if other:
            told = ", ".join(_difference(name, found, settings) for name in other)
            raise SvcRequestError(
                f"The journal {self.path} was written with other settings: {told}. Give the same "
                "ones, or another journal"
            )


def same_id(owner: int) -> str:
    """The problem of a row whose id an earlier row has."""
    return f"its id is that of row {owner}"


def _difference(name: str, there: Mapping[str, str], here: Mapping[str, str]) -> str:
    if name.rpartition(".")[2] not in _SHOWN:
        return name
    return f"{name} ({there.get(name, 'not set')} there, {here.get(name, 'not set')} here)"


def _usage(tokens: Sequence[int | None]) -> str:
    names = ("input_tokens", "output_tokens", "total_tokens")
    known = {n: count for n, count in zip(names, tokens, strict=True) if count is not None}
    return json.dumps(known) if known else "null"


def read_results(path: str | os.PathLike[str], *, ordered: bool = True) -> Iterator[dict[str, Any]]:
    """The rows of the output that a journal holds."""
    journal = Journal(path, None)
    with closing(journal):
        yield from map(json.loads, journal.results(ordered=ordered))
