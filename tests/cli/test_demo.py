import html
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli.conftest import terminal

import langchain_svc
from langchain_svc.cli.demo.tour import QUESTIONS, rag_chain

DEMO = [
    sys.executable,
    "-c",
    "from langchain_svc.cli import main; raise SystemExit(main(['demo']))",
]
FOLDER = Path(langchain_svc.__file__).parent / "cli" / "demo"
# The demo must ask nobody but its sandbox, so it gets the address of nobody.
ELSEWHERE = {"SVC_API_KEY": "key", "SVC_BASE_URL_V1": "https://svc.invalid/v1"}


@pytest.fixture(scope="module")
def piped():
    return subprocess.run(
        DEMO,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **ELSEWHERE, "COLUMNS": "100"},
    )


# -- in a pipe --------------------------------------------------------------------------------------


def test_a_pipe_gets_plain_text(piped):
    assert (piped.returncode, piped.stderr) == (0, "")
    assert "\x1b" not in piped.stdout
    assert "\r" not in piped.stdout
    before_table = piped.stdout.partition("\nUsage")[0]
    assert not re.search(r"[ \t]$", before_table, re.MULTILINE), "blanks at the end of a line"


def test_the_picture_shows_this_output(piped):
    """Renew it with `python docs/screens.py demo`."""
    picture = (Path(__file__).parents[2] / "docs" / "images" / "demo.svg").read_text("utf-8")
    (shown,) = re.findall(r"<desc>(.*?)</desc>", picture, re.DOTALL)
    # Ports, times and where lines break differ from run to run.
    told, real = (
        " ".join(re.sub(r"[\d.,:]+", "0", text.partition("\nUsage")[0]).split())
        for text in (html.unescape(shown), f"$ langchain-svc demo\n{piped.stdout}")
    )
    assert told == real
    assert len(picture) < 300_000


def test_the_answers_are_right(piped):
    """The picture holds the words; these are the digits in them, and what each step came to."""
    for answer in ("17 * 23 = 391", "people=12", "status_phrase(code=503)", "24/24"):
        assert answer in piped.stdout


@pytest.mark.parametrize(
    "canned", ["391", "(topic=", "According to", "forbids a cache", "You asked: "]
)
def test_no_answer_is_written_into_the_demo(canned, piped):
    assert canned in piped.stdout
    assert not any(canned in path.read_text("utf-8") for path in FOLDER.glob("*.py"))


def test_the_usage_table_counts_everything(piped):
    # One line: errors would have a second.
    table = piped.stdout.partition("\nUsage")[2]
    (row,) = (line for line in table.splitlines() if "svc-pro" in line)
    words = row.replace("│", " ").split()
    assert words[:2] == ["svc-pro", str(6 + len(QUESTIONS))]
    assert words[4] == "2", "two retries"


# -- on a terminal ----------------------------------------------------------------------------------

HASTY = "from langchain_svc.cli.demo import tour; tour.PACE, tour.DELAY = 0.01, 0"


def on_terminal(**environment):
    """What a terminal is sent, as the demo runs there with shorter pauses."""
    with terminal("demo", columns=100, first=HASTY, **environment) as seen:
        sent = seen.rest()
        assert seen.process.wait(10) == 0
    return sent


def test_a_terminal_gets_colours_and_live_tokens():
    sent = on_terminal(TERM="xterm-256color")
    assert "\x1b[1;36m1. One answer" in sent
    story = sent[sent.index("about Ada") : sent.index("3. Structured")]
    # Pieces that arrive together are one: a busy machine draws less often.
    assert story.count("\x1b[2K") > 5, "the story is drawn again as its pieces arrive"


@pytest.mark.parametrize("plain", [{"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_asks_for_plain_text_gets_it(plain):
    sent = on_terminal(**plain)
    assert "17 * 23 = 391" in sent
    assert "\x1b" not in sent


# -- interrupted ------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["2. ", "5. "])
def test_ctrl_c_ends_it_cleanly(step):
    with subprocess.Popen(DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert any(line.startswith(step) for line in demo.stdout)
        time.sleep(0.4)  # into the stream or the batch
        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=10)
    assert demo.returncode == 130
    assert err == "langchain-svc: interrupted\n"


WAITS_FOR_EVER = (
    DEMO[2]
    .replace(
        "raise",
        "import langchain_svc.cli.demo as demo, time; demo._GRACE = 0.1\n"
        "def run():\n"
        "    print('begun', flush=True)\n"
        "    try: time.sleep(60)\n"
        "    finally: time.sleep(60)\n"
        "demo.run = run; raise",
    )
    .replace("from langchain_svc.cli import main", "from langchain_svc import cli; main = cli.main")
)


def test_ctrl_c_ends_what_waits_for_ever():
    command = [*DEMO[:2], WAITS_FOR_EVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        assert it.stdout.readline() == "begun\n"
        it.send_signal(signal.SIGINT)
        _, err = it.communicate(timeout=30)
    assert (it.returncode, err) == (130, "langchain-svc: interrupted\n")


# -- documents --------------------------------------------------------------------------------------

DOCUMENTS = (
    "status-codes.md",
    "retrying.md",
    "caching.md",
    "content-negotiation.md",
    "redirects.md",
    "conditional-requests.md",
)


def test_each_question_of_the_batch_is_answered_from_its_document(chat):
    answers = rag_chain(chat).batch(list(QUESTIONS))
    told = [re.match(r"According to ([\w-]+\.md)", found["answer"])[1] for found in answers]
    assert told == [name for name in DOCUMENTS for _ in range(4)]
