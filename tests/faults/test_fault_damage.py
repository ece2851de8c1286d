"""Answers that are cut, or damaged at random, whatever frame they come in."""

from __future__ import annotations

import gzip
import itertools
import random

import pytest
from fault_columns import COLUMNS
from fault_matrix import NEW_KEYS
from fault_peer import CHUNKED, CLOSE, Cell, head, response
from fault_rows_body import in_chunks
from peers import LAST_CHUNK

import langchain_svc as svc

FRAMES = {
    "length": lambda data, *headers: response(data, "200 OK", *headers),
    "chunks": lambda data, *headers: (
        head("200 OK", CHUNKED, *headers) + in_chunks(data, 40) + LAST_CHUNK
    ),
    "end": lambda data, *headers: head("200 OK", *headers) + data,
    "gzip": lambda data, *headers: response(
        gzip.compress(data, mtime=0), "200 OK", "Content-Encoding: gzip", *headers
    ),
}
JUNK = [
    b"\0",
    b"\xff",
    b"\r",
    b"\n",
    b"{",
    b"[",
    b'"',
    b"9",
    b"-",
    b"e",
    b" ",
    b":",
    b"\\",
    b"null",
    b"\xed\xa0\x80",
    b"1e999",
    b"9" * 5_000,
    b"\\ud800",
    b"data:",
    b"[DONE]",
    b"Infinity",
]


def framed(column, frame):
    """The good answer of a column in a frame."""
    return FRAMES[frame](column.good, f"Content-Type: {column.label}", "Retry-After: 5")


def cuts(data):
    """The answer cut at every 31st byte."""
    return [data[:at] for at in range(1, len(data), 31)]


def damages(data):
    """The answer with some damage, six times; the same every time."""
    chance = random.Random(len(data))
    for _ in range(6):
        damaged = data
        for _ in range(chance.choice([1, 1, 1, 2, 4])):
            at, junk = chance.randrange(len(damaged)), chance.choice(JUNK)
            damaged = damaged[:at] + junk + damaged[at + chance.choice([0, 1, len(junk)]) :]
        yield damaged


def outcome(places, column, data):
    """The answer that these bytes and the connection's end make, or None and what is wrong."""
    key = f"secret-key-{next(NEW_KEYS)}"
    url = places.peer.add(Cell([lambda: [data, CLOSE]], list))
    made = column.make(url, api_key=key, max_retries=0, timeout=10.0)
    try:
        return column.call(made), ""
    except svc.SvcError as error:
        return None, f"{error!r:.200}" if key in repr(error) else ""
    finally:
        made.close()


@pytest.mark.parametrize("spoil", [cuts, damages])
def test_the_beginning_of_an_answer_is_none_and_no_damage_brings_out_a_foreign_error(
    places, pool, spoil
):
    cases = [
        (column, data)
        for column, frame in itertools.product(COLUMNS, FRAMES)
        for data in spoil(framed(column, frame))
    ]
    found = pool.map(lambda case: outcome(places, *case), cases)
    for (column, data), (answer, wrong) in zip(cases, found, strict=True):
        assert wrong == "", data
        assert spoil is damages or answer in {None, column.answer}, data
