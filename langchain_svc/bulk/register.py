"""The rows of the input that were read: which row has an id, and which rows have no result."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence

from ..errors import SvcRequestError


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
