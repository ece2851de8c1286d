"""The journal: a SQLite file with one row for each row of the input that has been answered.

- A row is in it when its answer is on the disk (WAL, `synchronous=FULL`), or not at all. Rows that
  are being asked are not in it, so what a killed run has lost is what was in flight.
- Every commit is also checkpointed: the file itself, not the log beside it, holds all but the last
  commit. A log that is cut off or left behind when the file is copied costs that commit at most.
- A run holds the file alone (`locking_mode=EXCLUSIVE`). SQLite then needs no shared memory, so the
  file may be on a network disk.
- It is made under another name: a file of that name is never half a journal, and an empty one was
  damaged.
- A file from elsewhere is not trusted: its tables must be exactly these, SQLite checks each value
  by the constraints of the schema, and JSON is read before it is written out.

All methods are to be called on one thread.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from ..errors import SvcRequestError
from .answers import RowResult, json_line
from .options import Place
from .rows import Row

_APPLICATION = 0x53564342  # "SVCB", by which a journal is told from other SQLite files
_FORMAT = 3  # a journal of another format is refused, not misread
_COUNT = "CHECK (typeof({0}) IN ('integer', 'null'))"
_SCHEMA = f"""
    PRAGMA application_id = {_APPLICATION};
    PRAGMA user_version = {_FORMAT};
    CREATE TABLE settings (
        name TEXT PRIMARY KEY CHECK (typeof(name) = 'text'),
        value TEXT NOT NULL CHECK (typeof(value) = 'text')
    ) WITHOUT ROWID;
    CREATE TABLE rows (
        finished INTEGER PRIMARY KEY,
        number INTEGER NOT NULL UNIQUE CHECK (typeof(number) = 'integer' AND number > 0),
        key TEXT NOT NULL CHECK (typeof(key) = 'text'),
        digest BLOB NOT NULL CHECK (typeof(digest) = 'blob'),
        failed INTEGER NOT NULL CHECK (failed IN (0, 1)),
        content TEXT NOT NULL CHECK (typeof(content) = 'text'),
        error TEXT NOT NULL CHECK (typeof(error) = 'text'),
        tokens_in INTEGER {_COUNT.format("tokens_in")},
        tokens_out INTEGER {_COUNT.format("tokens_out")},
        tokens INTEGER {_COUNT.format("tokens")},
        cost REAL CHECK (typeof(cost) IN ('real', 'null'))
    );
"""
_SHAPE = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
_SAVE = (
    "INSERT OR REPLACE INTO rows (number, key, digest, failed, content, error, tokens_in, "
    "tokens_out, tokens, cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# The ids of this run's rows, on disk where they are many: a second row with one is an error.
_IDS = "CREATE TEMP TABLE ids (key TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID"
_LONGEST_NAMES = 400  # characters of the names of settings in an error
_RESULTS = "SELECT key, content, error, tokens_in, tokens_out, tokens FROM rows ORDER BY "
_PRAGMAS = (
    "locking_mode = EXCLUSIVE",
    "journal_mode = WAL",
    "synchronous = FULL",
    "wal_autocheckpoint = 1",
)


@dataclass(frozen=True)
class Totals:
    """All that a journal holds, in numbers."""

    done: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost: float | None = None

    def plus(self, one: RowResult, *, failed_before: bool) -> Totals:
        """The same with one more row, which counted as failed where it failed before."""
        return Totals(
            done=self.done + (not one.failed),
            failed=self.failed + one.failed - failed_before,
            input_tokens=self.input_tokens + (one.tokens_in or 0),
            output_tokens=self.output_tokens + (one.tokens_out or 0),
            total_tokens=self.total_tokens + (one.tokens or 0),
            cost=self.cost if one.cost is None else (self.cost or 0.0) + one.cost,
        )


class Journal:
    """An open journal, made where there is none; without `settings` it is read whatever they are.

    Raises:
        SvcRequestError: It is damaged, in use, no journal, or was written with other settings.
    """

    def __init__(self, path: Place, settings: Mapping[str, str] | None) -> None:
        self.path = Path(path)
        if settings is not None and not self.path.exists():
            self._make(settings)
        self._db = self._opened()
        self._db.execute(_IDS)
        try:
            if settings is not None:
                self._compare(settings)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    # -- the run ----------------------------------------------------------------------------------

    def mark(self, rows: Sequence[Row], *, retry_errors: bool) -> None:
        """Tell rows that are still to be asked from those with an answer, and find ids twice.

        Raises:
            SvcRequestError: A row is another than the one that was answered under its number.
        """
        found = self._db.execute(
            "SELECT number, key, digest, failed FROM rows WHERE number BETWEEN ? AND ?",
            (rows[0].number, rows[-1].number),
        )
        known = {number: (key, digest, failed) for number, key, digest, failed in found}
        with self._db:
            keys = [(row.key, row.number) for row in rows]
            self._db.executemany("INSERT OR IGNORE INTO temp.ids VALUES (?, ?)", keys)
        for row in rows:
            key, digest, failed = known.get(row.number, (row.key, row.digest, None))
            row.to_ask = failed is None or bool(failed and retry_errors)
            row.failed_before = bool(failed)
            if not row.to_ask and not failed and (key, digest) != (row.key, row.digest):
                raise SvcRequestError(
                    f"Row {row.number} of the input is not the one that {self.path} has an answer "
                    "for. A journal belongs to one input, which may only grow at its end: give "
                    "that input, or another journal"
                )
            wanted = "SELECT number FROM temp.ids WHERE key = ?"
            (owner,) = self._db.execute(wanted, (row.key,)).fetchone()
            if owner != row.number and not row.problem:
                row.problem = f"its id is that of row {owner}"

    def save(self, results: Iterable[tuple[Row, RowResult]]) -> None:
        """Write results; they are on the disk when it returns."""
        try:
            self._write(results)
        except sqlite3.Error as error:
            raise SvcRequestError(
                f"The journal {self.path} cannot be written: {error}. What it holds is safe: make "
                "room, then run the same again"
            ) from error

    def _write(self, results: Iterable[tuple[Row, RowResult]]) -> None:
        values = (
            (row.number, row.key, row.digest, one.failed, *astuple(one)) for row, one in results
        )
        with self._db:
            self._db.executemany(_SAVE, values)

    def totals(self) -> Totals:
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

    def lines(self, *, ordered: bool) -> Iterator[str]:
        """Every row of the output as JSON text: as they finished, or in the input's order."""
        names = ("input_tokens", "output_tokens", "total_tokens")
        for key, content, error, *counts in self._db.execute(
            _RESULTS + ("number" if ordered else "finished")
        ):
            known = {n: count for n, count in zip(names, counts, strict=True) if count is not None}
            found = {"id": key, "content": content, "error": error}
            try:
                row = {name: json.loads(text) for name, text in found.items()}
                yield json_line({**row, "usage": known or None})
            except (ValueError, RecursionError):
                raise self._damaged("it holds an answer that is no JSON") from None

    def write(self, path: str, *, ordered: bool) -> None:
        """Write all results to a file, whole or not at all. An existing one keeps its mode."""
        advice = f"All results are in {self.path}: give another place, and run the same again"
        with (
            _replaced(Path(path).resolve(), advice) as made,  # a link stays one
            made.open("w", encoding="utf-8", newline="\n") as file,
        ):
            file.writelines(line + "\n" for line in self.lines(ordered=ordered))
            file.flush()
            os.fsync(file.fileno())

    # -- the file ---------------------------------------------------------------------------------

    def _make(self, settings: Mapping[str, str]) -> None:
        with (
            _replaced(self.path, "Give another place") as name,
            closing(sqlite3.connect(name)) as db,
        ):
            db.executescript(_SCHEMA)
            with db:
                db.executemany("INSERT INTO settings VALUES (?, ?)", settings.items())

    def _opened(self) -> sqlite3.Connection:
        self._look()
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

    def _look(self) -> None:
        """Opening a file that is another's would change it; so its head is read first."""
        if not self.path.exists():
            raise SvcRequestError(f"There is no journal {self.path}")
        real = self.path.resolve()
        beside = [real.with_name(real.name + end) for end in ("-wal", "-journal", "-shm")]
        if not real.is_file() or any(one.is_symlink() for one in beside):
            raise self._damaged("it is not a regular file, or a link to another lies beside it")
        try:
            with self.path.open("rb") as file:
                head = file.read(100)
        except OSError as error:
            raise SvcRequestError(
                f"The journal {self.path} cannot be read: {error.strerror}"
            ) from None
        if (head[:16], head[68:72]) != (b"SQLite format 3\0", _APPLICATION.to_bytes(4, "big")):
            raise SvcRequestError(f"{self.path} is not a whole journal: give another file")
        if head[60:64] != _FORMAT.to_bytes(4, "big"):
            raise SvcRequestError(
                f"The journal {self.path} was written by another version of langchain-svc. Finish "
                "the job with that version, or begin anew with another journal"
            )

    def _prepare(self, db: sqlite3.Connection) -> None:
        with closing(sqlite3.connect(":memory:")) as wanted:
            wanted.executescript(_SCHEMA)
            # Before anything else is read: a view or a trigger would run.
            if db.execute(_SHAPE).fetchall() != wanted.execute(_SHAPE).fetchall():
                raise self._damaged("its tables are not those of a journal")
        for pragma in _PRAGMAS:
            db.execute(f"PRAGMA {pragma}")
        db.execute("BEGIN EXCLUSIVE")  # fails where another run holds the file
        db.execute("COMMIT")
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise self._damaged("its pages do not fit together, or hold what no run writes")

    def _refused(self, error: sqlite3.DatabaseError) -> SvcRequestError:
        text = str(error)
        if "locked" in text:
            return SvcRequestError(
                f"The journal {self.path} is in use by another run. Wait until it ends, or give "
                "this one another journal"
            )
        return self._damaged(text)

    def _damaged(self, why: str) -> SvcRequestError:
        return SvcRequestError(
            f"The journal {self.path} is damaged or not a journal: {why}. Restore a copy of it, or "
            f"delete it to begin anew; `sqlite3 {self.path} .recover` shows what can be saved"
        )

    def _compare(self, settings: Mapping[str, str]) -> None:
        found = dict(self._db.execute("SELECT name, value FROM settings"))
        other = sorted(
            name for name in found.keys() | settings.keys() if found.get(name) != settings.get(name)
        )
        if other:
            names = "".join(c if c.isprintable() else "?" for c in ", ".join(other))
            raise SvcRequestError(
                f"The journal {self.path} was written with other settings: "
                f"{names[:_LONGEST_NAMES]}. Use the same ones, or another journal"
            )


@contextmanager
def _replaced(path: Path, advice: str) -> Iterator[Path]:
    """A file that takes the place of another, whole or not at all.

    It is readable by its owner only; where it replaces a file it has that one's mode.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
        os.close(descriptor)
        made = Path(name)
        try:
            yield made
            if path.exists():
                made.chmod(path.stat().st_mode & 0o777)
            made.replace(path)
        except BaseException:
            made.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise SvcRequestError(f"{path} cannot be written: {error.strerror}. {advice}") from None


def results(journal: Place, *, ordered: bool = True) -> Iterator[dict[str, Any]]:
    """The rows of a journal that no run is using, read as a stream.

    Args:
        journal: The file.
        ordered: In the order of the input; otherwise as they finished.

    Raises:
        SvcRequestError: It is missing, in use, damaged or no journal.
    """
    with closing(Journal(journal, None)) as opened:
        yield from map(json.loads, opened.lines(ordered=ordered))
