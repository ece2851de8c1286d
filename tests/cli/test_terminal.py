import os
import unicodedata
from pathlib import Path

import pytest
from cli.conftest import PLAIN, done, terminal

from langchain_svc import cli
from langchain_svc.sandbox import Fault

# -- what reaches a terminal ------------------------------------------------------------------------

# Escape, bell, a window's title, C1's own escape, delete and a change of the writing direction.
HOSTILE = "svc\x1b[2J\x07\x1b]0;mine\x9b31m\x7f\u202e"


@pytest.mark.parametrize(
    "words",
    [["models", "--json"], ["ask", "Hello"], ["doctor"]],
    ids=lambda words: words[0],
)
def test_no_control_character_reaches_a_terminal(words, sandbox):
    listed = Fault(path="/v1/models", body={"data": [{"id": HOSTILE}, {"id": "svc-turbo"}]})
    choice = {"message": {"content": HOSTILE}, "finish_reason": "stop"}
    answer = {"choices": [choice], "model": HOSTILE}
    sandbox.faults = [listed, Fault(path="/v1/chat/completions", body=answer)]
    with terminal(*words, TERM="dumb", **sandbox.env) as seen:
        text = seen.rest()
    assert "\N{REPLACEMENT CHARACTER}" in text
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf") and c not in "\r\n\t"]


@pytest.mark.parametrize(
    ("words", "stdout"),
    [(["ask", "Hello"], ">&-"), (["models"], "> /dev/full"), (["--help"], "> /dev/full")],
)
def test_an_output_that_cannot_be_written_is_one_line(words, stdout, sandbox):
    if "full" in stdout and not Path("/dev/full").exists():
        pytest.skip("only Linux has a device that is always full")
    command = ["sh", "-c", f'"$@" {stdout}', "sh", *PLAIN, *words]
    found = done(command, check=False, env={**os.environ, **sandbox.env})
    assert found.returncode == 1
    (line,) = found.stderr.splitlines()
    assert line.startswith("langchain-svc: the output cannot be written: ")


def test_words_stay_whole_at_the_edge_of_a_terminal(sandbox):
    sandbox.faults = [Fault(status=400, body={"error": {"message": "no such thing " * 20}})]
    with terminal("ask", "Hello", columns=40, TERM="dumb", **sandbox.env) as seen:
        lines = seen.rest().splitlines()
    assert max(map(len, lines)) < 40
    assert {"no", "such", "thing"} <= set(" ".join(lines).split())


@pytest.mark.parametrize(("typed", "meant"), [("sanbox", "sandbox"), ("modles", "models")])
def test_a_misspelt_command_is_told_what_was_meant(typed, meant, capsys):
    assert cli.main([typed]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"did you mean {meant!r}" in line
