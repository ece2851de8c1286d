"""The journal: what is in it is safe, and what is wrong with it is said."""

import errno
import json
import os
import sqlite3
import stat
import subprocess
import sys

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

from benchmarks.bulk import cut, kill, pairs
from langchain_svc import ChatSvc, SvcRequestError, bulk
from langchain_svc.bulk.journal import Journal

ECHO = RunnableLambda(lambda text: text)
SQLITE = b"SQLite format 3\0" + b"\0" * 2_000
DEEP = "[" * 100_000 + "]" * 100_000
UNCHECKED = "PRAGMA ignore_check_constraints = 1; UPDATE rows SET "
ENDLESS = """DROP TABLE rows; CREATE VIEW rows AS WITH RECURSIVE more(finished) AS
    (SELECT 1 UNION ALL SELECT finished + 1 FROM more) SELECT finished FROM more"""


@pytest.mark.slow
def test_kill_9_loses_no_row_and_asks_none_twice_but_those_in_flight():
    found = kill(rows=500, kills=3, concurrency=16)
    assert found.kills == 3
    assert found.results == found.right == 500
    assert 500 <= found.requests <= found.most == 500 + 3 * 16


@pytest.mark.slow
def test_a_journal_that_is_cut_off_is_refused_or_has_all_that_was_answered():
    found = cut(rows=100, cuts=60, concurrency=8)
    assert found.lost == 0
    assert found.refused > 5, "cut off deep inside"
    assert found.whole > 5, "cut off in the log beside it"


@pytest.mark.slow
def test_of_two_runs_that_begin_together_one_goes_on_and_the_other_is_refused_by_name():
    (outcome,) = pairs(20)
    assert outcome[0] == ""
    assert outcome[1].startswith("The journal NAME is in use by another run")


OPEN = """
import sys
from langchain_svc import SvcRequestError
from langchain_svc.bulk import journal
journal._LOCK_WAIT = 0.1
try:
    journal.Journal("j", None)
except SvcRequestError as error:
    sys.exit("in use" not in str(error))
sys.exit(2)
"""


def test_reading_a_journal_in_use_does_not_free_it(folder):
    """SQLite's locks are those of the process, which loses them with any descriptor it closes."""
    bulk.run(ECHO, ["1"], journal="j")
    journal = Journal("j", None)
    with pytest.raises(SvcRequestError, match="j is in use by another run"):
        list(bulk.results("j"))
    assert subprocess.run([sys.executable, "-c", OPEN], check=False).returncode == 0
    journal.close()
    assert len(list(bulk.results("j"))) == 1


def test_a_journal_that_loses_its_name_while_it_is_opened_is_not_opened(folder, monkeypatch):
    bulk.run(ECHO, ["1"], journal="j")
    bulk.run(ECHO, ["2"], journal="other")
    prepare = Journal._prepare

    def replaced(self, db):
        prepare(self, db)
        (folder / "other").replace(folder / "j")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_prepare", replaced)
        with pytest.raises(SvcRequestError, match="j is in use by another run"):
            list(bulk.results("j"))
    assert [row["content"] for row in bulk.results("j")] == ["2"]


@pytest.mark.parametrize("reason", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_disk_without_links_has_journals_too(reason, folder, monkeypatch):
    def refuse(*_):
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(os, "link", refuse)
    assert bulk.run(ECHO, ["1"], journal="j").done == 1
    assert [file.name for file in folder.iterdir()] == ["j"]


def fail(text):
    raise ValueError(text)


def test_a_journal_without_answers_binds_nothing(folder):
    bulk.run(RunnableLambda(fail), ["1", "2", "3"], journal="j", settings={"version": 1})
    report = bulk.run(ECHO, ["4"], journal="j", settings={"version": 2})
    assert (report.done, report.failed) == (1, 0)
    with pytest.raises(SvcRequestError, match=r"other settings: settings.version"):
        bulk.run(ECHO, ["4"], journal="j", settings={"version": 1})


def test_failures_behind_the_end_of_the_input_are_forgotten(folder):
    ask = RunnableLambda(lambda text: fail(text) if text > "1" else text)
    assert bulk.run(ask, ["1", "2", "3"], journal="j").failed == 2
    report = bulk.run(ask, ["1", "2"], journal="j")
    assert (report.done, report.failed, len(list(report.results()))) == (1, 1, 2)


def test_what_was_answered_is_its_owners_only(folder):
    bulk.run(ECHO, ["1"], journal="j", output="out.jsonl")
    assert {one.name for one in folder.iterdir()} == {"j", "out.jsonl"}, "and nothing beside"
    for name in ("j", "out.jsonl"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    (folder / "out.jsonl").chmod(0o644)
    bulk.run(ECHO, ["1"], journal="j", output="out.jsonl")
    assert stat.S_IMODE((folder / "out.jsonl").stat().st_mode) == 0o644, "as its owner has set it"


def test_no_secret_is_in_a_journal_or_in_its_errors(box, folder):
    secrets = ["zxq-98765", "Quixote has scurvy", "END-OF-FILE", "mine alone", box.v1["api_key"]]

    def ask(temperature, note):
        with ChatSvc(**box.v1, temperature=temperature) as model:
            prompt = ChatPromptTemplate.from_template("Quixote has scurvy: {input}")
            headers = {"X-Auth": f"zxq-98765-{note}"}
            bound = model.bind(extra_headers=headers, stop=["END-OF-FILE"])
            chain = prompt | bound | (lambda _: "fine")
            bulk.run(chain, [{"input": {"input": "Hello"}}], journal="j", settings={"note": note})

    ask(0.1, "mine alone")
    assert not [one for one in secrets if one.encode() in (folder / "j").read_bytes()]
    with pytest.raises(SvcRequestError, match=r"other settings: .*temperature") as caught:
        ask(0.2, "mine alone too")
    assert "extra_headers.X-Auth" in str(caught.value)
    assert "settings.note" in str(caught.value)
    assert not [one for one in secrets if one in str(caught.value)]


def test_a_journal_in_use_is_refused(folder):
    bulk.run(ECHO, ["1"], journal="j")
    journal = Journal("j", None)
    with pytest.raises(SvcRequestError, match="j is in use by another run"):
        bulk.run(ECHO, ["1"], journal="j")
    journal.close()
    assert bulk.run(ECHO, ["1"], journal="j").done == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a whole journal"),
        (b"notes of mine", "is not a whole journal"),
        (SQLITE, "is not a whole journal"),
        (SQLITE[:60] + b"\0\0\0\5" + SQLITE[64:68] + b"SVCB" + SQLITE[72:], "damaged"),
        (SQLITE[:68] + b"SVCB" + SQLITE[72:], "written by another version of langchain-svc"),
    ],
)
def test_what_is_no_journal_is_left_alone(content, said, folder):
    (folder / "j").write_bytes(content)
    with pytest.raises(SvcRequestError, match=said):
        bulk.run(ECHO, ["1"], journal="j")
    assert (folder / "j").read_bytes() == content


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE rows SET content = 'null' || char(10) || '{}'", "no JSON"),
        (f"UPDATE rows SET content = '{DEEP}'", "no JSON"),
        (f"UPDATE rows SET error = '{'9' * 10_000}'", "no JSON"),
        ("UPDATE rows SET content = 'NaN'", "no JSON"),
        ("UPDATE rows SET key = ''", "no JSON"),
        (ENDLESS, "its tables"),
        ("CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END", "its tables"),
        ("ALTER TABLE rows ADD COLUMN more AS (zeroblob(1000000000))", "its tables"),
        (UNCHECKED + "number = 'one'", "no run writes"),
        (UNCHECKED + "number = -1", "no run writes"),
        (UNCHECKED + "failed = 'perhaps'", "no run writes"),
        (UNCHECKED + "content = x'00'", "no run writes"),
        (UNCHECKED + "tokens = 'many'", "no run writes"),
        (UNCHECKED + "cost = 'free'", "no run writes"),
        ("PRAGMA user_version = 1", "written by another version"),
    ],
)
def test_a_crafted_journal_is_one_clear_error(sql, said, folder):
    bulk.run(ECHO, ["1"], journal="j")
    crafted = sqlite3.connect("j")
    crafted.executescript(sql)
    crafted.close()
    with pytest.raises(SvcRequestError, match=said):
        bulk.run(ECHO, ["1"], journal="j", output="out.jsonl")
    with pytest.raises(SvcRequestError, match=said):
        list(bulk.results("j"))
    assert not (folder / "out.jsonl").exists()


def test_a_crafted_journal_forges_no_line_and_no_text_on_the_terminal(folder, written):
    bulk.run(ECHO, ["1"], journal="j")
    crafted = sqlite3.connect("j")
    crafted.execute("UPDATE rows SET content = '{\"a\":' || char(10) || '1}', cost = 5")
    crafted.execute("INSERT INTO settings VALUES ('model' || char(27), char(7))")
    crafted.commit()
    crafted.close()
    with pytest.raises(SvcRequestError, match="other settings") as caught:
        bulk.run(ECHO, ["1"], journal="j")
    assert str(caught.value).isprintable()
    (folder / "out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bulk.results("j")))
    assert [row["content"] for row in written()] == [{"a": 1}]


def test_a_link_beside_a_journal_is_not_followed(folder):
    bulk.run(ECHO, ["1"], journal="j")
    (folder / "victim").write_text("not for SQLite")
    (folder / "j-wal").symlink_to("victim")
    with pytest.raises(SvcRequestError, match="a link to another"):
        bulk.run(ECHO, ["1"], journal="j")
    assert (folder / "victim").read_text() == "not for SQLite"


@pytest.mark.parametrize(
    ("make", "said"), [(os.mkdir, "j is a folder: name a file"), (os.mkfifo, "not a regular file")]
)
def test_what_is_no_file_is_no_journal(make, said, folder):
    make("j")
    with pytest.raises(SvcRequestError, match=said):
        bulk.run(ECHO, ["1"], journal="j")


def test_a_journal_that_is_not_there_is_no_empty_one(folder):
    with pytest.raises(SvcRequestError, match="There is no journal j"):
        list(bulk.results("j"))
    assert not list(folder.iterdir())


def test_a_disk_that_is_full_ends_the_run_and_keeps_what_was_saved(folder, monkeypatch):
    bulk.run(ECHO, ["1"], journal="j")

    def full(self, answers):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Journal, "save", full)
    with pytest.raises(SvcRequestError, match="cannot be written: database or disk is full"):
        bulk.run(ECHO, ["1", "2", "3"], journal="j", output="out.jsonl")
    assert len(list(bulk.results("j"))) == 1
    assert len((folder / "out.jsonl").read_text().splitlines()) == 3, "a line for each row"


CALLS = [
    "executescript",  # the journal is made
    "INSERT INTO settings",
    "PRAGMA journal_mode",  # it is opened
    "SELECT number, key, digest",  # its rows are read
    "DELETE FROM rows WHERE number",
    "INSERT INTO rows",
    "INSERT OR IGNORE INTO ids",  # the register of ids
    "CREATE TABLE ids",
]


@pytest.mark.parametrize("call", CALLS)
def test_a_disk_that_is_full_at_any_moment_is_one_line(call, folder, monkeypatch):
    class Full(sqlite3.Connection):
        def _call(self, name, sql, *values):
            if sql.strip().startswith(call) or name == call:
                raise sqlite3.OperationalError("database or disk is full")
            return getattr(super(), name)(sql, *values)

        def execute(self, *values):
            return self._call("execute", *values)

        def executemany(self, *values):
            return self._call("executemany", *values)

        def executescript(self, *values):
            return self._call("executescript", *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Full))
    with pytest.raises(SvcRequestError, match=r"disk is full\. .*[Mm]ake room"):
        bulk.run(ECHO, ["1", "2", "3"], journal="j")
