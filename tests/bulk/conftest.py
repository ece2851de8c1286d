import json

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own, which names of files refer to."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def prompts(folder):
    """Writes an input of so many sums and returns its name."""

    def write(count, name="in.jsonl"):
        rows = ({"id": f"r{n}", "prompt": f"What is {n} * 2?"} for n in range(count))
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        return name

    return write


@pytest.fixture
def written(folder):
    """Reads a file of results."""

    def read(name="out.jsonl"):
        return [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]

    return read
