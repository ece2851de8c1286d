"""The journal: what is in it is safe, and what is wrong with it is said."""

import sqlite3
import stat

import pytest
from langchain_core.runnables import RunnableLambda

from benchmarks.bulk import cut, kill
from langchain_svc import SvcRequestError, bulk
from langchain_svc.bulk.journal import Journal

ECHO = RunnableLambda(lambda text: text)


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


def test_what_was_answered_is_its_owners_only(folder):
    bulk.run(ECHO, ["1"], journal="j", output="out.jsonl")
    for name in ("j", "out.jsonl"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    (folder / "out.jsonl").chmod(0o644)
    bulk.run(ECHO, ["1"], journal="j", output="out.jsonl")
    assert stat.S_IMODE((folder / "out.jsonl").stat().st_mode) == 0o644, "as its owner has set it"


def test_no_key_is_in_a_journal(box, folder):
    from langchain_svc import ChatSvc

    with ChatSvc(**box.v1) as model:
        bulk.run(model, ["Hello"], journal="j", settings={"note": "mine"})
    assert box.v1["api_key"].encode() not in (folder / "j").read_bytes()


def test_nothing_is_left_beside_a_journal_and_a_result(folder):
    bulk.run(ECHO, ["1", "2"], journal="j", output="out.jsonl")
    assert {one.name for one in folder.iterdir()} == {"j", "out.jsonl"}


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
        (b"", "does not begin as one"),
        (b"notes of mine", "does not begin as one"),
        (b"SQLite format 3\0" + b"\0" * 2_000, "is a database, but no journal"),
        (b"SQLite format 3\0" + b"\0" * 52 + b"SVCB" + b"\0" * 2_000, "damaged"),
    ],
)
def test_what_is_no_journal_is_left_alone(content, said, folder):
    (folder / "j").write_bytes(content)
    with pytest.raises(SvcRequestError, match=said):
        bulk.run(ECHO, ["1"], journal="j")
    assert (folder / "j").read_bytes() == content


def test_another_database_is_left_alone(folder):
    other = sqlite3.connect("j")
    other.execute("CREATE TABLE mine (x)")
    other.close()
    before = (folder / "j").read_bytes()
    with pytest.raises(SvcRequestError, match="is a database, but no journal"):
        bulk.run(ECHO, ["1"], journal="j")
    assert (folder / "j").read_bytes() == before


def test_a_journal_that_is_not_there_is_no_empty_one(folder):
    with pytest.raises(SvcRequestError, match="There is no journal j"):
        list(bulk.results("j"))
    assert not list(folder.iterdir())


def test_a_disk_that_is_full_ends_the_run_and_keeps_what_was_saved(folder, monkeypatch):
    bulk.run(ECHO, ["1"], journal="j")

    def full(self, answers):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Journal, "_write", full)
    with pytest.raises(SvcRequestError, match="cannot be written: database or disk is full"):
        bulk.run(ECHO, ["1", "2", "3"], journal="j")
    assert len(list(bulk.results("j"))) == 1
