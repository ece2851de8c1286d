"""Input files: read as streams, and a bad row is an error of its own."""

import ast
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from langchain_core.runnables import RunnableLambda

from langchain_svc import SvcRequestError, bulk

ECHO = RunnableLambda(str)


def outcome(rows, **options):
    """Contents and errors by id."""
    report = bulk.run(ECHO, rows, journal="j", **options)
    return {
        row["id"]: row["content"] if row["error"] is None else row["error"]["message"]
        for row in report.results()
    }


# -- JSONL ------------------------------------------------------------------------------------------


def test_a_bad_line_is_an_error_of_its_own(folder):
    lines = [
        b'\xef\xbb\xbf{"prompt": "one"}',
        b"",
        b'  {"id": "b", "messages": [{"role": "user", "content": "two"}]}  ',
        b"{nonsense",
        b'{"prompt": "\xff"}',
        b"[1]",
        b'{"prompt": ""}',
        b'{"id": 8, "text": "x"}',
        b'{"id": 9, "prompt": "x", "messages": [1]}',
        b'{"id": {"a": [1, null]}, "prompt": "last"}',
    ]
    (folder / "in.jsonl").write_bytes(b"\r\n".join(lines))
    report = bulk.run(ECHO, "in.jsonl", journal="j")
    rows = list(report.results())
    assert [row["content"] for row in rows if row["error"] is None] == [
        "one",
        "[{'role': 'user', 'content': 'two'}]",
        "last",
    ]
    assert [row["id"] for row in rows] == [1, "b", 3, 4, 5, 6, 8, 9, {"a": [1, None]}]
    said = [row["error"]["message"] for row in rows if row["error"]]
    for message, words in zip(
        said,
        [
            "not JSON: Expecting",
            "not UTF-8",
            "a list and no object",
            "not empty",
            "has none (its columns: id, text)",
            "has prompt and messages",
        ],
        strict=True,
    ):
        assert words in message


def test_a_line_longer_than_memory_should_hold_is_an_error(folder, monkeypatch):
    monkeypatch.setattr("langchain_svc.bulk.rows.LONGEST_ROW", 100)
    lines = [{"prompt": "a"}, {"prompt": "b" * 950}, {"prompt": "c"}]
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = outcome("in.jsonl")
    assert (found[1], found[3]) == ("a", "c")
    assert "longer than 100 bytes" in found[2]


def test_a_json_array_is_told_from_jsonl(folder):
    (folder / "in.jsonl").write_text('[\n{"prompt": "x"}\n]')
    with pytest.raises(SvcRequestError, match=r"one JSON array.*jq -c '\.\[\]'"):
        bulk.run(ECHO, "in.jsonl", journal="j")


def test_half_a_character_in_a_prompt_or_an_answer_is_kept(folder):
    (folder / "in.jsonl").write_text('{"prompt": "\\ud83d half"}')
    assert outcome("in.jsonl", output="out.jsonl") == {1: "\ud83d half"}


# -- CSV and Parquet --------------------------------------------------------------------------------


def test_csv_with_line_breaks_in_fields(folder):
    (folder / "in.csv").write_text('id,text\r\n1,"a\nb, c"\r\n2,too,many\r\n\r\n3,ü\r\n', "utf-8")
    found = outcome("in.csv", format="Summarize: {text}!")
    assert found["1"] == "Summarize: a\nb, c!"
    assert found["3"] == "Summarize: ü!"
    assert "more or fewer fields" in found[2]


def test_a_long_field(folder):
    (folder / "in.csv").write_text("id,prompt\nx," + "a" * 200_000)
    assert outcome("in.csv") == {"x": "a" * 200_000}


def test_csv_that_is_not_utf_8(folder):
    (folder / "in.csv").write_bytes("id,prompt\n1,good\n2,schön\n".encode("latin-1"))
    found = outcome("in.csv")
    assert found["1"] == "good"
    assert "not UTF-8" in found[2]


def test_a_column_named_twice(folder):
    (folder / "in.csv").write_text("id,prompt,prompt\n1,a,b\n")
    with pytest.raises(SvcRequestError, match="names a column twice"):
        bulk.run(ECHO, "in.csv", journal="j")


def test_parquet(folder):
    turns = [{"role": "user", "content": "hi"}]
    pq.write_table(pa.table({"id": [7, 8], "messages": [turns, None]}), "in.parquet")
    found = outcome("in.parquet")
    assert ast.literal_eval(found[7]) == turns  # older versions sort the fields
    assert "has none (its columns: id, messages)" in found[8]


def test_a_damaged_parquet_file_is_one_clear_error(folder):
    pq.write_table(pa.table({"prompt": [f"What is {n} * 2?" for n in range(500)]}), "good.parquet")
    whole = (folder / "good.parquet").read_bytes()
    chance = random.Random(1)
    refused = 0
    for number in range(60):
        damaged = bytearray(whole)
        if number % 3:
            for _ in range(number):
                damaged[chance.randrange(len(damaged))] ^= chance.randrange(1, 256)
        else:
            del damaged[chance.randrange(len(damaged)) :]
        (folder / "in.parquet").write_bytes(damaged)
        try:
            bulk.run(ECHO, "in.parquet", journal=f"{number}.journal", progress=False)
        except SvcRequestError as error:
            assert "damaged" in str(error)
            refused += 1
    assert refused > 30


# -- templates and other rows -----------------------------------------------------------------------


def test_a_template(folder):
    rows = [{"id": 1, "text": "a", "n": 5}, {"id": 2, "text": None, "n": 6}, {"id": 3, "text": "b"}]
    found = outcome(rows, format="{{{n:03}}} {text!r}")
    assert found[1] == "{005} 'a'"
    assert found[2] == "{006} ''"
    assert "no column 'n', only id, text" in found[3]


def test_a_value_that_the_template_cannot_write_is_an_error_of_its_row(folder):
    found = outcome([{"id": 1, "n": "x"}, {"id": 2, "n": 5}], format="{n:03d}")
    assert found[2] == "005"
    assert "format" in found[1]


def test_an_id_that_json_cannot_hold(folder):
    found = outcome([{"id": float("nan"), "prompt": "x"}, {"id": 2, "prompt": "y"}])
    assert "its id is no JSON value" in found[1]
    assert found[2] == "y"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("in.xlsx", "in.xlsx: the suffix tells the format"),
        ("nowhere.jsonl", "nowhere.jsonl cannot be read: No such file"),
        ({"prompt": "x"}, "rows must be a path or an iterable of rows, not a dict"),
        (5, "not a int"),
    ],
)
def test_an_input_that_is_none(rows, said, folder):
    with pytest.raises(SvcRequestError, match=said):
        bulk.run(ECHO, rows, journal="j")
    assert not list(folder.iterdir())


def test_an_iterable_that_fails_ends_the_run_and_loses_nothing(folder):
    def rows():
        yield "1"
        yield "2"
        raise OSError("the database has gone")

    with pytest.raises(OSError, match="has gone"):
        bulk.run(ECHO, rows(), journal="j")
    assert bulk.run(ECHO, ["1", "2", "3"], journal="j").done == 3
