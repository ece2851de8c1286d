"""Answers that are cut at any byte, or damaged at random, whatever frame they come in.

The beginning of an answer must be no answer, and no damage may bring out an error that is not ours.
"""

from __future__ import annotations

import gzip
import itertools

from fault_columns import COLUMNS
from fault_matrix import NEW_KEYS
from fault_peer import CHUNKED, CLOSE, LAST_CHUNK, Cell, chunk, head, response
from langchain_core.tools import ToolException

import langchain_svc as svc


def _chunks(data, size=40):
    return b"".join(chunk(data[i : i + size]) for i in range(0, len(data), size)) + LAST_CHUNK


FRAMES = {
    "length": lambda data, *headers: response(data, "200 OK", *headers),
    "chunks": lambda data, *headers: head("200 OK", CHUNKED, *headers) + _chunks(data),
    "end": lambda data, *headers: head("200 OK", *headers) + data,
    "gzip": lambda data, *headers: response(
        gzip.compress(data, mtime=0), "200 OK", "Content-Encoding: gzip", *headers
    ),
}
_JUNK = [
    b"\0", b"\xff", b"\r", b"\n", b"{", b"[", b'"', b"9", b"-", b"e", b" ", b":", b"\\", b"null", b"\xed\xa0\x80",
    b"1e999", b"9" * 5_000, b"\\ud800", b"data:", b"[DONE]", b"Infinity",
]  # fmt: skip


def framed(column, frame):
    """The good answer of a column in a frame."""
    return FRAMES[frame](column.good, f"Content-Type: {column.label}", "Retry-After: 5")


def cuts(step=1):
    """Every column's good answer in every frame, cut at every `step`-th byte; the same every time."""
    for column, frame in itertools.product(COLUMNS, FRAMES):
        data = framed(column, frame)
        for at in range(1, len(data), step):
            yield column, data[:at]


def damages(random, times):
    """Every column's good answer in every frame, with `times` random damages each."""
    for column, frame in itertools.product(COLUMNS, FRAMES):
        for _ in range(times):
            data = framed(column, frame)
            for _ in range(random.choice([1, 1, 1, 2, 4])):
                at, junk = random.randrange(len(data)), random.choice(_JUNK)
                data = data[:at] + junk + data[at + random.choice([0, 1, len(junk)]) :]
            yield column, data


def wrong_with(places, column, data, *, cut):
    """What is wrong with what becomes of these bytes and the connection's end; "" if nothing."""
    key = f"secret-key-{next(NEW_KEYS)}"
    url = places.peer.add(Cell([lambda: [data, CLOSE]], list))
    made = column.make(url, api_key=key, max_retries=0, timeout=10.0)
    try:
        answer = column.call(made)
    except svc.SvcError as error:
        return _wrong_error(error, key)
    except ToolException as error:
        # Images that came and cannot be kept have no cause: the service did answer.
        kept = error.__cause__ is None and "made no image" in str(error)
        return "" if kept else _wrong_error(error.__cause__, key)
    except Exception as error:
        return f"{error!r:.200}"
    finally:
        made.close()
    return f"answered {answer!r:.60}" if cut and answer != column.answer else ""


def _wrong_error(error, key):
    if not isinstance(error, svc.SvcError):
        return f"{error!r:.200}"
    return "the error tells the key" if key in repr(error) else ""


def all_wrong(places, pool, cases, *, cut):
    """What is wrong with these cases, and how many they were."""
    asked = [pool.submit(wrong_with, places, *case, cut=cut) for case in cases]
    found = [future.result(60) for future in asked]
    return [problem for problem in found if problem], len(found)
