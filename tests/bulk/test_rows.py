"""Input files: read as streams, and a bad row is an error of its own."""

import csv
import json
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from langchain_core.runnables import RunnableLambda

from langchain_svc import SvcRequestError, bulk

ECHO = RunnableLambda(str)
NOTHING = object()


def outcome(rows, **options):
    """Contents, or error messages, in the input's order."""
    report = bulk.run(ECHO, rows, journal="j", **options)
    return [
        (row["id"], row["content"] if row["error"] is None else row["error"]["message"])
        for row in report.results()
    ]


TURN = "[{'role': 'user', 'content': 'two'}]"
JSONL = [
    (b'\xef\xbb\xbf{"prompt": "one"}', 1, "one"),
    (b"", None, NOTHING),
    (b'  {"id": "b", "messages": [{"role": "user", "content": "two"}]}  ', "b", TURN),
    (b"{nonsense", None, "line 4: the line is not JSON that can be read: Expecting"),
    (b'{"prompt": "\xff"}', None, "can't decode byte"),
    (b"[1]", None, "a list and no object"),
    (b'{"prompt": ""}', 6, "not empty"),
    (b'{"id": 8, "text": "x"}', 8, "has none (its columns: id, text)"),
    (b'{"id": 9, "prompt": "x", "messages": [1]}', 9, "has prompt and messages"),
    (b'{"prompt": ' + b"[" * 100_000, None, "not JSON that can be read"),
    (b'{"prompt": "' + b"x" * 2_000_000 + b'"}', None, "longer than 1,000,000 bytes"),
    (b'{"id": "c", "prompt": "first", "prompt": "second"}', None, "gives 'prompt' twice"),
    (b'{"id": "d", "messages": [{"role": "user", "role": "x"}]}', None, "gives 'role' twice"),
    (b'{"id": "e", "prompt": "\0"}', None, "not JSON that can be read"),
    (b'{"prompt": "\\ud83d half"}', 14, "\ud83d half"),
    (b'{"id": {"a": [1, null]}, "prompt": "last"}', {"a": [1, None]}, "last"),
]
CSV = [
    (b'id,text\r\n1,"a\nb, c"', "1", "Summarize: a\nb, c!"),
    (b"2,", "2", "line 4: it has nothing to ask: text is empty"),
    (b"", None, NOTHING),
    (b"1,twice", "1", "line 6: its id is that of row 1"),
    ("4,\xfc".encode(), "4", "Summarize: \xfc!"),
    (b"5," + b"a" * 200_000, "5", "Summarize: " + "a" * 200_000 + "!"),
    (b'6,"say ""hi"", please"', "6", 'Summarize: say "hi", please!'),
]


@pytest.mark.parametrize(
    ("name", "lines", "template"),
    [("in.jsonl", JSONL, None), ("in.csv", CSV, "Summarize: {text}!")],
)
def test_a_bad_line_is_an_error_of_its_own(name, lines, template, folder, monkeypatch):
    monkeypatch.setattr("langchain_svc.bulk.rows.LONGEST_ROW", 1_000_000)
    (folder / name).write_bytes(b"\r\n".join(line for line, _, _ in lines))
    found = outcome(name, format=template, output="out.jsonl")
    wanted = [(key, said) for _, key, said in lines if said is not NOTHING]
    for (key, said), (found_key, found_said) in zip(wanted, found, strict=True):
        assert found_key == key
        assert said in found_said
    assert len((folder / "out.jsonl").read_text("utf-8").splitlines()) == len(wanted)


def test_parquet(folder):
    turns = [{"role": "user", "content": "hi"}]
    pq.write_table(pa.table({"id": [7, 8], "messages": [turns, None]}), "in.parquet")
    (_, first), (_, second) = outcome("in.parquet")
    assert first in {str(turns), "[{'content': 'hi', 'role': 'user'}]"}  # older versions sort
    assert "has none (its columns: id, messages)" in second


def test_a_damaged_parquet_file_is_one_clear_error(folder):
    pq.write_table(pa.table({"prompt": [f"What is {n} * 2?" for n in range(500)]}), "good.parquet")
    whole = (folder / "good.parquet").read_bytes()
    chance, refused = random.Random(1), 0
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


@pytest.mark.parametrize(
    ("row", "template", "said"),
    [
        ({"text": "a", "n": 5}, "{{{n:03}}} {text!r}", "{005} 'a'"),
        ({"text": None, "n": 6}, "{{{n:03}}} {text!r}", "{006} ''"),
        ({"id": 3, "text": "b"}, "{n} {text}", "no column 'n', only id, text"),
        ({"n": "x"}, "{n:03d}", "does not suit the format"),
        ({"id": float("nan"), "prompt": "x"}, None, "its id is not a JSON value"),
        ({"a": 2, "b": 3}, lambda row: row["a"] + row["b"], "5"),
    ],
)
def test_a_row_and_its_format(row, template, said, folder):
    (found,) = outcome([row], format=template)
    assert said in found[1]


@pytest.mark.parametrize(
    ("rows", "content", "said"),
    [
        ("in.xlsx", None, "in.xlsx: the suffix tells the format.*Save it in one of these"),
        ("nowhere.jsonl", None, "nowhere.jsonl cannot be read: No such file"),
        ({"prompt": "x"}, None, "rows must be a path or an iterable of rows, not a dict"),
        (5, None, "not an int"),
        ("in.csv", "id,prompt,prompt\n1,a,b\n", "line 1: the header names .* twice .'prompt'"),
        ("in.jsonl", '[\n{"prompt": "x"}\n]', r"one JSON array.*jq -c '\.\[\]'"),
    ],
)
def test_an_input_that_is_none(rows, content, said, folder):
    if content is not None:
        (folder / rows).write_text(content)
    with pytest.raises(SvcRequestError, match=said):
        bulk.run(ECHO, rows, journal="j")
    assert not (folder / "j").exists() or not list(bulk.results("j"))


def test_an_iterable_that_fails_ends_the_run_and_loses_nothing(folder):
    def rows():
        yield from "12"
        raise OSError("the database has gone")

    with pytest.raises(OSError, match="has gone"):
        bulk.run(ECHO, rows(), journal="j")
    assert bulk.run(ECHO, ["1", "2", "3"], journal="j").done == 3


# -- damaged files ----------------------------------------------------------------------------------


def lamps(count, **damage):
    """A CSV of so many rows in UTF-8, with other text in some of its records."""
    records = [damage.get(f"row_{n}", f"{n},The lamp {n} broke") for n in range(1, count + 1)]
    return "\n".join(["id,text", *records, ""]).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lamps(500, row_100='100,"The lamp 100 broke'), "line 101: a quoted field .*never ends"),
        (lamps(50, row_9='9,"The "lamp" broke"'), 'line 10: .*written twice: ""'),
        (lamps(50, row_9='9,"The lamp', row_20='20,"It broke"'), "line 10: .*in line 21"),
        (lamps(50, row_9="9,The lamp, which broke"), "line 10: .*3 fields, and the header 2"),
        (lamps(50, row_9="9,The lamp\nbroke"), "line 11: .*1 fields, and the header 2"),
        (lamps(50, row_9="9,The l\0mp broke"), "line 10: .*no UTF-8 text"),
        (lamps(50, row_9="9,schön").decode().encode("latin-1"), "line 10: .*no UTF-8 text"),
        (lamps(50).decode().encode("utf-16"), "line 1: .*no UTF-8 text"),
        (lamps(50).decode().encode("utf-16-le"), "line 1: .*no UTF-8 text"),
        (b"PK\3\4" + bytes(range(256)) * 8, "line 1: .*no UTF-8 text"),
        (b"", "line 1: the file is empty"),
        (b"\xef\xbb\xbf\r\n\r\n", "line 1: the file is empty"),
        (b"id,text,id\n1,a,2\n", "line 1: the header names a column twice"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line_before_anything_is_asked(content, said, folder):
    requests = []
    (folder / "in.csv").write_bytes(content)
    with pytest.raises(SvcRequestError, match=f"in.csv, {said}") as caught:
        bulk.run(RunnableLambda(requests.append), "in.csv", journal="j", format="Sum up: {text}")
    assert "lamp" not in str(caught.value), "as it is somebody's text"
    assert not requests
    assert [file.name for file in folder.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("seed", range(20))
def test_what_a_writer_of_csv_wrote_is_read_as_it_was(seed, folder):
    chance = random.Random(seed)
    letters = ["a", "b", '"', ",", "\n", "\r\n", " ", "\u2028", "é", ";"]
    texts = ["x" + "".join(chance.choices(letters, k=chance.randrange(12))) for _ in range(40)]
    with (folder / "in.csv").open(
        "w", encoding="utf-8-sig" if seed % 2 else "utf-8", newline=""
    ) as file:
        writer = csv.writer(file, lineterminator=chance.choice(["\n", "\r\n"]))
        writer.writerows([["text"], *([text] for text in texts)])
    assert outcome("in.csv", format="{text}") == list(enumerate(texts, 1))


@pytest.mark.parametrize(
    ("name", "content", "template", "said"),
    [
        (
            "in.csv",
            lamps(40),
            None,
            r"line 2: it must have one of .*--format.*\(and 39 more alike\)",
        ),
        ("in.csv", lamps(40), "{txet}", "line 2: it has no column 'txet', only id, text"),
        ("in.csv", b"id;text\n1;a\n", "{text}", "separated by commas"),
        ("in.csv", b"id;text\n1;a\n", None, "separated by commas"),
        ("in.jsonl", b'{"a": 1}\n{"b": 2}\n', "{text}", "only a; line 2: .*only b"),
        (
            "in.jsonl",
            '{"prompt": "x"}\n'.encode("utf-16") * 3,
            None,
            "line 1: the line is not JSON",
        ),
    ],
)
def test_an_input_of_which_no_row_can_be_asked_is_refused(name, content, template, said, folder):
    (folder / name).write_bytes(content)
    with pytest.raises(SvcRequestError, match=f"No row of the input can be asked. .*{said}"):
        bulk.run(ECHO, name, journal="j", format=template)
    assert [file.name for file in folder.iterdir()] == [name]


def test_rows_that_cannot_be_asked_are_told_before_the_first_request(folder, capsys):
    told = []

    def ask(text):
        told.append(capsys.readouterr().err)
        return text

    lines = ['{"prompt": "a"}', "", "oops", '{"prompt": "b"}']
    (folder / "in.jsonl").write_text("\n".join(lines))
    report = bulk.run(RunnableLambda(ask), "in.jsonl", journal="j", progress=True, concurrency=1)
    assert (report.done, report.failed) == (2, 1)
    assert told[0].startswith("1 of 3 rows cannot be asked. line 3: the line is not JSON")


def test_an_unreadable_row_takes_no_other_rows_id(folder):
    lines = ['{"id": 1, "prompt": "a"}', "{oops", '{"id": 2, "prompt": "b"}', '{"prompt": "c"}']
    (folder / "in.jsonl").write_text("\n".join(lines))
    report = bulk.run(ECHO, "in.jsonl", journal="j")
    rows = [(row["row"], row["id"], row["error"] is None) for row in report.results()]
    assert rows == [(1, 1, True), (2, None, False), (3, 2, True), (4, 4, True)]


def test_a_parquet_file_with_a_column_twice_is_refused(folder):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["prompt", "prompt"])
    pq.write_table(table, "in.parquet")
    with pytest.raises(SvcRequestError, match="names a column twice"):
        bulk.run(ECHO, "in.parquet", journal="j")


def test_an_empty_value_of_parquet_is_nothing_to_ask(folder):
    pq.write_table(pa.table({"id": [1, 2, 3], "text": ["a", None, " "]}), "in.parquet")
    report = bulk.run(ECHO, "in.parquet", journal="j", format="Sum up: {text}")
    assert (report.done, report.failed) == (1, 2)


@pytest.mark.parametrize(
    ("make", "said"),
    [(os.mkdir, "in.jsonl is a folder"), (os.mkfifo, r"in.jsonl is not a regular file.*on stdin")],
)
def test_what_is_no_regular_file_is_refused(make, said, folder):
    make("in.jsonl")
    with pytest.raises(SvcRequestError, match=said):
        bulk.run(ECHO, "in.jsonl", journal="j")


# -- what others write ------------------------------------------------------------------------------


OPENAI = {
    "custom_id": "request-1",
    "method": "POST",
    "url": "/v1/chat/completions",
    "body": {
        "model": "gpt-4o-mini",
        "messages": [{"role": "user", "content": "What is 6 * 7?"}],
        "max_tokens": 50,
        "temperature": 0,
    },
}


def test_an_openai_batch_file_is_read_with_its_settings(chat, sandbox, folder):
    (folder / "in.jsonl").write_text(json.dumps(OPENAI) + "\n")
    (row,) = bulk.run(chat, "in.jsonl", journal="j").results()
    assert (row["id"], row["content"]) == ("request-1", "6 * 7 = 42")
    sent = sandbox.requests[-1].json
    assert (sent["max_tokens"], sent["temperature"]) == (50, 0)
    assert sent["model"] == chat.model


def test_settings_of_an_openai_batch_belong_to_the_row(chat, folder):
    (folder / "in.jsonl").write_text(json.dumps(OPENAI) + "\n")
    bulk.run(chat, "in.jsonl", journal="j")
    other = {**OPENAI, "body": {**OPENAI["body"], "temperature": 1}}
    (folder / "in.jsonl").write_text(json.dumps(other) + "\n")
    with pytest.raises(SvcRequestError, match="Row 1 of the input is not the one"):
        bulk.run(chat, "in.jsonl", journal="j")


def test_a_setting_that_the_service_does_not_have_is_the_rows_error(chat, folder):
    other = {**OPENAI, "body": {**OPENAI["body"], "top_p": 0.5}}
    (folder / "in.jsonl").write_text(json.dumps(other) + "\n")
    (row,) = bulk.run(chat, "in.jsonl", journal="j").results()
    assert "'top_p'" in row["error"]["message"]


@pytest.mark.parametrize(
    ("message", "role"),
    [
        ({"role": "wizard", "content": "hi"}, "wizard"),
        ({"role": "user"}, "user"),
        (["wizard", "hi"], "wizard"),
        ({"content": "hi"}, "None"),
        (7, "None"),
    ],
)
def test_a_message_that_nobody_can_read_is_a_bad_row(message, role, folder):
    rows = [{"messages": [{"role": "user", "content": "a"}, message]}, "fine"]
    (bad, good) = outcome(rows)
    assert f"its message 2 cannot be read (its role: {role})" in bad[1]
    assert good[1] == "fine"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("in.json", '[{"prompt": "a"}]', r"jq -c '\.\[\]' in\.json > in\.jsonl"),
        ("in.jsonl", "", "in.jsonl has no rows"),
        ("in.jsonl", "\n\n", "in.jsonl has no rows"),
        ("in.csv", "id,prompt\n", "in.csv has no rows"),
    ],
)
def test_a_file_that_holds_no_rows_is_refused(name, content, said, folder):
    (folder / name).write_text(content)
    with pytest.raises(SvcRequestError, match=said):
        bulk.run(ECHO, name, journal="j")
    assert [one.name for one in folder.iterdir()] == [name]


# -- shards -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "list", "stream"])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_shards_are_the_input_and_each_row_is_in_one(kind, count, folder):
    rows = [{"id": f"r{n}", "prompt": str(n)} for n in range(10)]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = []
    for shard in range(1, count + 1):
        given = {"file": "in.jsonl", "list": rows, "stream": iter(rows)}[kind]
        report = bulk.run(
            ECHO, given, journal=f"{shard}", output=f"{shard}.jsonl", shard=f"{shard}/{count}"
        )
        part = [json.loads(line) for line in (folder / f"{shard}.jsonl").read_text().splitlines()]
        assert (report.done, report.unanswered) == (len(part), 0)
        found += part
    assert sorted((row["row"], row["id"]) for row in found) == [(n + 1, f"r{n}") for n in range(10)]


def test_an_id_of_another_shard_is_found_and_a_journal_belongs_to_its_shard(folder):
    rows = [{"id": "a", "prompt": "1"}, {"id": "a", "prompt": "2"}, {"id": "b", "prompt": "3"}]
    report = bulk.run(ECHO, rows, journal="j", shard="2/2")
    assert report.failures == {"BadRow": 1}
    bulk.run(ECHO, rows, journal="i", shard="1/2")
    with pytest.raises(SvcRequestError, match="other settings: shard"):
        bulk.run(ECHO, rows, journal="i", shard="1/3")


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "1/0", "a/b", 2, "1/2/3"])
def test_a_shard_that_is_none_is_refused(shard, folder):
    with pytest.raises(SvcRequestError, match="shard must be a part of the input"):
        bulk.run(ECHO, ["a"], journal="j", shard=shard)
