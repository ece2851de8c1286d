"""The journal, and the output that is written from it.

The journal is a SQLite file with one row for each row of the input that has been answered.

- A row is in it when its answer is on the disk (WAL, `synchronous=FULL`), or not at all. Rows that
  are being asked are not in it, so a killed run loses only the rows that were in flight.
- Every commit is also checkpointed: the file itself, not the log beside it, holds all but the last
  commit. A log that is cut off, or left behind when the file is copied, costs that commit at most.
- A run holds the file alone (`locking_mode=EXCLUSIVE`). SQLite then needs no shared memory, so the
  file may be on a network disk.
- A new journal is written whole under another name, and gets its own name only if no other file has
  that. So a file of that name is never half a journal, and an empty file of that name was damaged.
  Two runs that begin together open the same file, and one of them gets its lock.
- A locked file that no longer has the journal's name belongs to nobody: so a run compares the name
  once it has the lock.
- A file from elsewhere is not trusted: its tables must be exactly these, SQLite checks each value
  by the constraints of the schema, and JSON is parsed before it is written out.

All methods must be called on one thread. The output has a line for each row of the input, also
where the run ended early.
"""

from __future__ import annotations

import errno
import heapq
import json
import os
import random
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, field
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SvcRequestError
from .answers import CUT, RowResult, error_kind, json_line
from .options import Place
from .rows import Register, Row

_APPLICATION = 0x53564342  # "SVCB", which tells a journal from other SQLite files
_FORMAT = 5  # a journal of another format is refused, not misread
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
        cut INTEGER NOT NULL CHECK (cut IN (0, 1) AND cut <= failed),
        content TEXT NOT NULL CHECK (typeof(content) = 'text'),
        error TEXT NOT NULL CHECK (typeof(error) = 'text'),
        finish_reason TEXT CHECK (typeof(finish_reason) IN ('text', 'null')),
        tokens_in INTEGER {_COUNT.format("tokens_in")},
        tokens_out INTEGER {_COUNT.format("tokens_out")},
        tokens INTEGER {_COUNT.format("tokens")},
        cost REAL CHECK (typeof(cost) IN ('real', 'null')),
        currency TEXT CHECK (typeof(currency) IN ('text', 'null'))
    );
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        seconds REAL NOT NULL CHECK (typeof(seconds) = 'real'),
        expected INTEGER CHECK (typeof(expected) IN ('integer', 'null'))
    );
"""
_SHAPE = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
# Usage adds up over the tries of a row, so that a row that is retried loses no token.
_COUNTS = ("tokens_in", "tokens_out", "tokens", "cost")
_SAVE = f"""
    INSERT INTO rows (number, key, digest, failed, cut, content, error, finish_reason, tokens_in,
        tokens_out, tokens, cost, currency)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (number) DO UPDATE SET
        finished = (SELECT max(finished) + 1 FROM rows),
        key = excluded.key, digest = excluded.digest,
        failed = excluded.failed, cut = excluded.cut,
        content = excluded.content, error = excluded.error,
        finish_reason = excluded.finish_reason,
        currency = coalesce(excluded.currency, currency),
        {", ".join(f"{n} = coalesce({n} + excluded.{n}, {n}, excluded.{n})" for n in _COUNTS)}
"""  # noqa: S608  # of our own names
_LONGEST_NAMES = 400  # characters of the names of settings in an error
_RESULTS = (
    "SELECT number, key, content, error, finish_reason, tokens_in, tokens_out, tokens "
    "FROM rows ORDER BY "
)
# Rows with an answer, or with a failure that was paid for: only the settings and the input of the
# run explain them.
_BINDS = "failed = 0 OR content <> 'null' OR tokens > 0"
_PRAGMAS = (
    "locking_mode = EXCLUSIVE",
    "journal_mode = WAL",
    "synchronous = FULL",
    "wal_autocheckpoint = 1",
)
_LOCK_WAIT = 1.0  # seconds for a lock that another run is just giving back
# The journals that this process has open. SQLite's locks belong to the process, which loses them
# when it closes any descriptor of the file. So a file is never opened a second time.
_OPEN_HERE: set[tuple[int, ...]] = set()
_OPEN_LOCK = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Totals:
    """All that a journal holds, in numbers."""

    done: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost: float | None = None
    currency: str = ""

    @property
    def failed(self) -> int:
        """Rows with an error, those with a cut answer among them."""
        return sum(self.failures.values())

    @property
    def cut(self) -> int:
        """Rows whose answer was cut off."""
        return self.failures.get(CUT, 0)

    def plus(self, result: RowResult, row: Row) -> Totals:
        """The totals with a result added, in place of a failure of the same row."""
        kinds = Counter(self.failures)
        if row.failure:
            kinds[row.failure] -= 1
        if result.failed:
            kinds[error_kind(result.error)] += 1
        cost = self.cost
        if result.cost is not None:
            cost = (cost or 0.0) + result.cost
        return Totals(
            done=self.done + (not result.failed),
            failures=dict(+kinds),
            input_tokens=self.input_tokens + (result.tokens_in or 0),
            output_tokens=self.output_tokens + (result.tokens_out or 0),
            total_tokens=self.total_tokens + (result.tokens or 0),
            cost=cost,
            currency=result.currency or self.currency,
        )


class Runs(NamedTuple):
    """The runs that a journal has seen."""

    number: int = 0
    seconds: float = 0.0  # of all of them together
    expected: int | None = None  # rows of the input, as the last one knew


class Journal:
    """An open journal, made where there is none; `settings` of None are not compared.

    Raises:
        SvcRequestError: It is damaged, in use, no journal, or was written with other settings.
    """

    def __init__(self, path: Place, settings: Mapping[str, str] | None) -> None:
        self.path: Path = Path(path)
        self.expected: int | None = None
        """The number of rows in the input, as soon as the run knows it."""
        self._began = time.monotonic()
        if settings is not None and not self.path.exists():
            self._make(settings)
        self._check_place()
        self._identity = self._file_of_the_name()
        with _OPEN_LOCK:
            if self._identity in _OPEN_HERE:
                raise self._in_use()
            _OPEN_HERE.add(self._identity)
        try:
            self._check_head()
            self._db = self._locked()
        except BaseException:
            _OPEN_HERE.discard(self._identity)
            raise
        try:
            if settings is not None:
                self._compare(settings)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        self._db.close()
        _OPEN_HERE.discard(self._identity)

    # -- the run ----------------------------------------------------------------------------------

    def mark(self, rows: Sequence[Row], *, retry_errors: bool) -> None:
        """Tell rows that are still to be asked from those with an answer.

        Raises:
            SvcRequestError: A row is not the one that was answered under its number.
        """
        stored = {
            number: (key, digest, failed, error)
            for number, key, digest, failed, error in self._db.execute(
                "SELECT number, key, digest, failed, error FROM rows WHERE number BETWEEN ? AND ?",
                (rows[0].number, rows[-1].number),
            )
        }
        for row in rows:
            if row.number not in stored:
                continue
            key, digest, failed, error = stored[row.number]
            if failed:
                row.failure = error_kind(error)
            row.to_ask = bool(failed) and retry_errors
            if not failed and (key, digest) != (row.key, row.digest):
                raise SvcRequestError(
                    f"Row {row.number} of the input is not the one that {self.path} has an answer "
                    "for. A journal belongs to one input, which may only grow at its end: give "
                    "that input, or another journal"
                )

    def save(self, results: Iterable[tuple[Row, RowResult]]) -> None:
        """Write results; they are on the disk when it returns."""
        values = (
            (row.number, row.key, row.digest, result.failed, *astuple(result))
            for row, result in results
        )
        with self._db:
            self._db.executemany(_SAVE, values)
            self._note_run()

    def begin_run(self, began: float) -> Runs:
        """Note a run that began then, by `time.monotonic`; the runs before it."""
        before = self.runs()
        self._began = began
        with self._db:
            self._db.execute("INSERT INTO runs (seconds) VALUES (0.0)")
        return before

    def end_run(self) -> float:
        """Note how long the run took; the seconds."""
        with self._db:
            return self._note_run()

    def _note_run(self) -> float:
        seconds = time.monotonic() - self._began
        self._db.execute(
            "UPDATE runs SET seconds = ?, expected = ? "
            "WHERE number = (SELECT max(number) FROM runs)",
            (seconds, self.expected),
        )
        return seconds

    def runs(self) -> Runs:
        """The runs that it has seen; the time of one that was killed is that of its last answer."""
        count, seconds = self._db.execute(
            "SELECT count(*), total(seconds) FROM runs"
        ).fetchone()
        last = self._db.execute(
            "SELECT expected FROM runs WHERE expected IS NOT NULL ORDER BY number DESC"
        ).fetchone()
        return Runs(count, seconds, last and last[0])

    def totals(self) -> Totals:
        """All that it holds, in numbers."""
        *counts, cost, currency = self._db.execute(
            "SELECT count(*) - total(failed), total(tokens_in), total(tokens_out), total(tokens), "
            "sum(cost), max(currency) FROM rows"
        ).fetchone()
        done, tokens_in, tokens_out, tokens = map(int, counts)
        kinds = Counter(
            error_kind(error)
            for (error,) in self._db.execute("SELECT error FROM rows WHERE failed")
        )
        return Totals(
            done=done,
            failures=dict(kinds),
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            total_tokens=tokens,
            cost=cost,
            currency=currency or "",
        )

    def end_input(self, count: int) -> None:
        """Note that the input ends after `count` rows: failures behind its end are forgotten.

        Raises:
            SvcRequestError: There is an answer to a row behind its end.
        """
        query = f"SELECT max(number) FROM rows WHERE {_BINDS}"  # noqa: S608  # our own words
        (last,) = self._db.execute(query).fetchone()
        if last is not None and last > count:
            raise SvcRequestError(
                f"The journal {self.path} holds answers up to row {last}, and the input ends at "
                f"row {count}: give the input that it belongs to, or another journal"
            )
        with self._db:
            self._db.execute("DELETE FROM rows WHERE number > ?", (count,))

    # -- the results ------------------------------------------------------------------------------

    def numbers(self) -> Iterator[int]:
        """The numbers of the rows that it holds, in order."""
        for (number,) in self._db.execute("SELECT number FROM rows ORDER BY number"):
            yield number

    def lines(self, *, ordered: bool) -> Iterator[tuple[int, str]]:
        """Every row of the output by its number, as JSON text: as they finished, or in order."""
        names = ("input_tokens", "output_tokens", "total_tokens")
        order = "number" if ordered else "finished"
        for number, key, content, error, reason, *counts in self._db.execute(
            _RESULTS + order
        ):
            usage = {
                name: n for name, n in zip(names, counts, strict=True) if n is not None
            }
            try:
                line = _output_line(
                    number,
                    json.loads(key),
                    content=json.loads(content),
                    usage=usage or None,
                    finish_reason=reason,
                    error=json.loads(error),
                )
            except (ValueError, RecursionError):
                raise self._damaged("it holds an answer that is no JSON") from None
            yield number, line

    # -- the file ---------------------------------------------------------------------------------

    def _make(self, settings: Mapping[str, str]) -> None:
        """Make a whole journal, unless another run is quicker: then the lock decides."""
        advice = "Make room, or give another place"
        with (
            temporary(self.path, "Give another place") as draft,
            in_words(self.path, advice),
        ):
            with closing(sqlite3.connect(draft)) as db:
                db.executescript(_SCHEMA)
                with db:
                    db.executemany(
                        "INSERT INTO settings VALUES (?, ?)", settings.items()
                    )
                db.execute("PRAGMA journal_mode = WAL")
            with suppress(FileExistsError):
                _name_new_file(draft, self.path)

    def _check_place(self) -> None:
        if not self.path.exists():
            raise SvcRequestError(f"There is no journal {self.path}")
        if self.path.is_dir():
            raise SvcRequestError(
                f"The journal {self.path} is a folder: name a file, such as "
                f"{self.path / 'results.journal'}"
            )
        real = self.path.resolve()
        beside = [
            real.with_name(real.name + end) for end in ("-wal", "-journal", "-shm")
        ]
        if not real.is_file() or any(path.is_symlink() for path in beside):
            raise self._damaged(
                "it is not a regular file, or a link to another lies beside it"
            )

    def _check_head(self) -> None:
        """SQLite would change another program's file by opening it: so its head is read first."""
        try:
            with self.path.open("rb") as file:
                head = file.read(100)
        except OSError as error:
            raise SvcRequestError(
                f"The journal {self.path} cannot be read: {error.strerror}"
            ) from None
        if (head[:16], head[68:72]) != (
            b"SQLite format 3\0",
            _APPLICATION.to_bytes(4, "big"),
        ):
            raise SvcRequestError(
                f"{self.path} is not a whole journal: give another file"
            )
        if head[60:64] != _FORMAT.to_bytes(4, "big"):
            raise SvcRequestError(
                f"The journal {self.path} was written by another version of langchain-svc. Finish "
                "the job with that version, or begin anew with another journal"
            )

    def _file_of_the_name(self) -> tuple[int, ...]:
        """The file that has the journal's name now, with the process: a fork owns no lock."""
        try:
            status = self.path.stat()
        except OSError:
            return ()
        return os.getpid(), status.st_dev, status.st_ino

    def _locked(self) -> sqlite3.Connection:
        """The open file, locked by this run.

        A run that finds it locked closes it before the next try: two runs that each wait for the
        other's half of a lock would both be refused.
        """
        deadline = time.monotonic() + _LOCK_WAIT
        while True:
            db = sqlite3.connect(self.path, timeout=0.0, check_same_thread=False)
            try:
                self._prepare(db)
                self._check_name()
            except sqlite3.DatabaseError as error:
                db.close()
                if not _is_locked(error):
                    raise _journal_error(self.path, error) from None
                if time.monotonic() > deadline:
                    raise self._in_use() from None
            except BaseException:
                db.close()
                raise
            else:
                return db
            time.sleep(random.uniform(0.01, 0.05))  # noqa: S311  # no secret

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Lock the file and check it.

        Raises:
            sqlite3.DatabaseError: It is locked, or damaged.
            SvcRequestError: It is damaged.
        """
        with closing(sqlite3.connect(":memory:")) as template:
            template.executescript(_SCHEMA)
            db.execute(f"PRAGMA {_PRAGMAS[0]}")
            # Before anything else is read: a view or a trigger would run.
            if db.execute(_SHAPE).fetchall() != template.execute(_SHAPE).fetchall():
                raise self._damaged("its tables are not those of a journal")
        for pragma in _PRAGMAS[1:]:
            db.execute(f"PRAGMA {pragma}")
        db.execute("BEGIN EXCLUSIVE")  # fails where another run holds the file
        db.execute("COMMIT")
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise self._damaged(
                "its pages do not fit together, or hold what no run writes"
            )

    def _check_name(self) -> None:
        """The locked file must still have the name, for the next run will open what has it."""
        if self._file_of_the_name() != self._identity:
            raise self._in_use()

    def _in_use(self) -> SvcRequestError:
        return SvcRequestError(
            f"The journal {self.path} is in use by another run. Wait until it ends, or give this "
            "one another journal"
        )

    def _damaged(self, why: str) -> SvcRequestError:
        return _damage(self.path, why)

    def _compare(self, settings: Mapping[str, str]) -> None:
        """Check that the answers are of these settings; a journal without answers takes them.

        Raises:
            SvcRequestError: There are answers, and they are of others.
        """
        stored = dict(self._db.execute("SELECT name, value FROM settings"))
        if stored == settings:
            return
        query = f"SELECT EXISTS (SELECT 1 FROM rows WHERE {_BINDS})"  # noqa: S608  # our own words
        (binds,) = self._db.execute(query).fetchone()
        if not binds:
            with self._db:
                self._db.execute("DELETE FROM rows")
                self._db.execute("DELETE FROM settings")
                self._db.execute("DELETE FROM runs")
                self._db.executemany(
                    "INSERT INTO settings VALUES (?, ?)", settings.items()
                )
            return
        other = sorted(
            name
            for name in stored.keys() | settings.keys()
            if stored.get(name) != settings.get(name)
        )
        names = "".join(c if c.isprintable() else "?" for c in ", ".join(other))
        raise SvcRequestError(
            f"The journal {self.path} was written with other settings: {names[:_LONGEST_NAMES]}. "
            "Use the same ones, or another journal (--journal)"
        )


def _damage(path: Path, why: str) -> SvcRequestError:
    return SvcRequestError(
        f"The journal {path} is damaged or not a journal: {why}. Restore a copy of it, or "
        f"delete it to begin anew; `sqlite3 {path} .recover` shows what can be saved"
    )


def _journal_error(
    path: Path, error: sqlite3.Error, advice: str = ""
) -> SvcRequestError:
    """What SQLite says: of the disk, or of what is in the file."""
    if not isinstance(error, sqlite3.OperationalError):
        return _damage(path, str(error))
    advice = advice or ("What it holds is safe: make room, then run the same again")
    return SvcRequestError(f"The journal {path} cannot be written: {error}. {advice}")


@contextmanager
def in_words(path: Path, advice: str = "") -> Iterator[None]:
    """A block in which whatever SQLite says of a journal is an error of this package.

    Raises:
        SvcRequestError: The disk is full or cannot be written, or the file is damaged.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _journal_error(path, error, advice) from error


def _is_locked(error: sqlite3.DatabaseError) -> bool:
    return "locked" in str(error)


def _name_new_file(draft: Path, path: Path) -> None:
    """Give a file a name that no other file has.

    Raises:
        FileExistsError: Another file has it.
    """
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A disk without links: an empty file takes the name, and the draft replaces it. A run that
        # opens the empty file meanwhile is refused, as it is no journal.
        path.open("xb").close()
        draft.replace(path)


_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}


@contextmanager
def temporary(path: Path, advice: str) -> Iterator[Path]:
    """A file that can take the place or the name of another; what remains of it is deleted.

    It is readable by its owner only.

    Raises:
        SvcRequestError: It cannot be written; the text ends with the advice.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
        os.close(descriptor)
        draft = Path(name)
        try:
            yield draft
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise SvcRequestError(
            f"{path} cannot be written: {error.strerror}. {advice}"
        ) from None


def results(journal: Place, *, ordered: bool = True) -> Iterator[dict[str, Any]]:
    """The rows of a journal that no run is using, read as a stream.

    Args:
        journal: The file.
        ordered: In the order of the input; otherwise as they finished.

    Raises:
        SvcRequestError: It is missing, in use, damaged or no journal.
    """
    with in_words(Path(journal)), closing(Journal(journal, None)) as opened:
        for _, line in opened.lines(ordered=ordered):
            yield json.loads(line)


# -- the output ------------------------------------------------------------------------------------

_UNANSWERED = "unanswered"


def output_lines(
    journal: Journal, register: Register, *, ordered: bool, reason: str
) -> Iterator[str]:
    """The results of a journal, and a line for each row that the run has left unanswered.

    Args:
        journal: Of the run.
        register: The rows that the run has read.
        ordered: In the order of the input; otherwise as they finished.
        reason: Why rows are unanswered.
    """
    results = journal.lines(ordered=ordered)
    message = (
        f"The run ended before this row had an answer: {reason}. The next run asks it"
    )
    unanswered = (
        (number, _unanswered_line(number, key, message))
        for number, key in register.others(journal.numbers())
    )
    if ordered:
        merged: Iterable[tuple[int, str]] = heapq.merge(
            results, unanswered, key=itemgetter(0)
        )
    else:
        merged = chain(results, unanswered)
    for _, line in merged:
        yield line


def _unanswered_line(number: int, key: str, message: str) -> str:
    return _output_line(
        number,
        json.loads(key),
        content=None,
        usage=None,
        finish_reason=None,
        error={"type": _UNANSWERED, "message": message},
    )


def _output_line(
    number: int,
    key: object,
    *,
    content: object,
    usage: Mapping[str, int] | None,
    finish_reason: str | None,
    error: object,
) -> str:
    """A row of the output as JSON text.

    Raises:
        ValueError: It holds what JSON has no form for.
    """
    return json_line(
        {
            "row": number,
            "id": key,
            "content": content,
            "usage": usage,
            "finish_reason": finish_reason,
            "error": error,
        }
    )


def write_output(place: str, lines: Iterator[str], journal: Path) -> None:
    """Write all lines to a file, whole or not at all. An existing one keeps its mode.

    Raises:
        SvcRequestError: It cannot be written.
    """
    path = Path(place).resolve()  # a link stays one
    advice = f"All results are in {journal}: give another place, and run the same again"
    with temporary(path, advice) as draft:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(line + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            draft.chmod(path.stat().st_mode & 0o777)
        draft.replace(path)
