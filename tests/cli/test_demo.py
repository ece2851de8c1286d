import html
import os
import re
import signal
import time
from pathlib import Path

import pytest
from cli.conftest import PLAIN, done, started, terminal

import langchain_svc

DEMO = Path(langchain_svc.__file__).parent / "cli" / "tour.py"
# The demo must ask nobody but its sandbox, so it gets the address of nobody.
ELSEWHERE = {"SVC_API_KEY": "key", "SVC_BASE_URL_V1": "https://svc.invalid/v1"}


@pytest.fixture(scope="module")
def piped():
    environment = {**os.environ, **ELSEWHERE, "COLUMNS": "100"}
    return done([*PLAIN, "demo"], check=False, env=environment)


@pytest.mark.slow
def test_the_picture_shows_this_output(piped):
    """Renew it with `python docs/screens.py demo`."""
    picture = (Path(__file__).parents[2] / "docs" / "images" / "demo.svg").read_text("utf-8")
    (shown,) = re.findall(r"<desc>(.*?)</desc>", picture, re.DOTALL)
    # Ports, times and where lines break differ from run to run.
    told, real = (
        "".join(re.sub(r"[\d.,:]+", "0", text.partition("\nUsage")[0]).split())
        for text in (html.unescape(shown), f"$ langchain-svc demo\n{piped.stdout}")
    )
    assert told == real
    assert len(picture) < 300_000


def test_the_answers_are_right_and_come_from_the_sandbox(piped):
    """The picture holds the words; these are the digits in them, and what each step came to."""
    assert (piped.returncode, piped.stderr) == (0, "")
    assert "\x1b" not in piped.stdout
    canned = ["391", "(topic=", "According to caching.md", "You asked: ", "24 * 24 = 576"]
    for answer in ("people=12", "status_phrase(code=503)", *canned):
        assert answer in piped.stdout
    written = DEMO.read_text("utf-8")
    assert not [answer for answer in canned if answer in written]


def test_the_readme_shows_how_it_begins(piped):
    page = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    (shown,) = re.findall(r"It prints\n\n```text\n(.*?)```", page, re.DOTALL)
    assert shown in piped.stdout


def test_the_usage_table_counts_everything(piped):
    # One line: errors would have a second.
    table = piped.stdout.partition("\nUsage")[2]
    (row,) = (line for line in table.splitlines() if "svc-pro" in line)
    words = row.replace("│", " ").split()
    assert words[:2] == ["svc-pro", str(6 + 24)]
    assert words[4] == "2", "two retries"


@pytest.mark.slow
def test_a_terminal_gets_live_tokens_and_no_escapes():
    slowly = "from langchain_svc.cli import demo, tour; tour.PACE = 0.3"
    with terminal("demo", columns=100, first=slowly) as seen:
        begin = seen.expect("This is")
        assert "fixed rules" not in seen.text, "the story came at once"
        assert "\x1b" not in begin + seen.expect("fixed rules")


@pytest.mark.slow
@pytest.mark.parametrize("step", ["2. ", "6. "])
def test_ctrl_c_ends_it_cleanly(step):
    with started("demo") as it:
        assert any(line.startswith(step) for line in it.stdout)
        time.sleep(0.4)  # into the stream or the batch
        it.send_signal(signal.SIGINT)
        _, err = it.communicate(timeout=60)
    assert (it.returncode, err) == (130, "langchain-svc: interrupted\n")
