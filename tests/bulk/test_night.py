"""A night in miniature: two machines, a plan in Redis, and every end that a run can have."""

import json
import re
import resource
import signal
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from bulk.test_command import until
from cli.conftest import started

from benchmarks.redis_server import COMMAND, RedisServer
from langchain_svc import cli
from langchain_svc.sandbox import Sandbox

ROWS = 120
SHARDS = ("1/2", "2/2")


def count(text):
    """The number at the beginning of a text."""
    return int(re.match(r"[\d,]+", text)[0].replace(",", ""))


class Machine:
    """One of the machines: its output, its journal, and the command that it runs."""

    def __init__(self, shard, environment):
        self.output = f"out-{shard[0]}.jsonl"
        self.words = ["batch", "in.jsonl", self.output, "--shard", shard]
        self.words += ["--plan", "600/min", "--concurrency", "4", "--quiet"]
        self._environment = environment

    def run(self, **options):
        return started(*self.words, env=self._environment, **options)

    def finish(self, **options):
        """The exit code and the report of a run that is left alone."""
        with self.run(**options) as process:
            _, err = process.communicate(timeout=120)
        assert "Traceback" not in err
        return process.returncode, err

    def status(self, capsys):
        """What `--status` shows, by its first word."""
        capsys.readouterr()
        assert cli.main(["batch", "--status", self.output]) == 0
        return dict(
            re.split(r"  +", line, maxsplit=1) for line in capsys.readouterr().out.splitlines()
        )

    def rows(self):
        return [json.loads(line) for line in Path(self.output).read_text("utf-8").splitlines()]


@pytest.fixture
def night(folder, prompts, monkeypatch):
    """A sandbox that counts, a Redis, and the two machines."""
    pytest.importorskip("redis")
    if COMMAND is None:
        pytest.skip("redis-server is not on PATH")
    prompts(ROWS)
    with Sandbox() as service, RedisServer() as redis:
        environment = {**service.env, "SVC_QUOTA_STORAGE": redis.url}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield service, [Machine(shard, None) for shard in SHARDS]


def asked(service):
    """How often each question reached the service."""
    chats = [one for one in service.requests if one.path.endswith("/chat/completions")]
    return Counter(one.json["messages"][-1]["content"] for one in chats)


@pytest.mark.slow
def test_a_night_on_two_machines(night, capsys):
    service, (first, second) = night
    # Both begin; the first is told to end, and says what it has.
    with first.run() as one, second.run() as two:
        until(lambda: len(asked(service)) >= 24)
        during = first.status(capsys)
        one.send_signal(signal.SIGTERM)
        _, err = one.communicate(timeout=60)
        # The second is killed.
        two.send_signal(signal.SIGKILL)
        two.wait(60)
    assert one.returncode == 130
    assert "process" in during["run"]
    told = int(re.search(r"interrupted: (\d+) rows? answered", err)[1])
    after = first.status(capsys)
    assert told == count(after["answered"]) >= count(during["answered"])
    assert after["rows"] == f"{told} of {ROWS // 2}"
    assert len(first.rows()) == ROWS // 2, "a line for each of its rows"
    killed = second.status(capsys)
    assert killed["run"] == "none; the same command resumes"
    # The disk of the second is full; what it had is safe.
    full = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (24_000, 24_000))
    code, err = second.finish(preexec_fn=full)
    assert code in {1, 2}, err
    assert "cannot be written" in err
    assert count(second.status(capsys)["answered"]) >= count(killed["answered"])
    # Both go on in the morning.
    for machine in (first, second):
        code, err = machine.finish()
        assert (code, err.partition(" rows answered")[0]) == (0, str(ROWS // 2))
        status = machine.status(capsys)
        assert f" in {status['time']}; journal" in err
        assert status["time"].endswith((", in 2 runs", ", in 3 runs"))
        assert status["rows"] == f"{ROWS // 2} of {ROWS // 2}"
        assert status["run"] == "none; all rows are through"
        assert re.search(rf"answered, {status['tokens']} tokens, cost {status['cost']} in", err)
    # Joined by id, every row has its answer, and what was asked twice was in flight at an end.
    answers = {row["id"]: row["content"] for machine in (first, second) for row in machine.rows()}
    assert answers == {f"r{n}": f"{n} * 2 = {2 * n}" for n in range(ROWS)}
    counts = asked(service)
    assert len(counts) == ROWS
    assert counts.total() - ROWS <= 2 * 4, "at most the rows in flight of the two hard ends"
