import io
import json
import re
import sys

import pytest
from cli.conftest import terminal

from langchain_svc import cli

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}


def asked(sandbox):
    return sandbox.requests[-1].json["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("words", "piped", "question"),
    [
        (["two", "words"], "", "two words"),
        (["--model", "svc-pro", "two", "words"], "", "two words"),
        (["-"], "from stdin\n", "from stdin"),
        ([], "from stdin\n", "from stdin"),
        (["sum", "this", "up:"], "a text\n", "sum this up:\n\na text"),
        (["--", "-x", "is", "what?"], "", "-x is what?"),
    ],
)
def test_the_question_is_what_was_written_and_piped(words, piped, question, service, typed):
    typed(piped)
    assert cli.main(["ask", *words]) == 0
    assert asked(service) == question


@pytest.mark.parametrize(
    ("words", "piped", "said"),
    [
        ([], b"", "no question given: write it after"),
        (["what is this?"], b"\xff\xfe", "not text in utf-8"),
        (["what", "--modle", "x"], b"", "--modle"),
    ],
)
def test_what_is_no_question_is_told_and_nothing_sent(
    words, piped, said, service, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped), "utf-8"))
    assert cli.main(["ask", *words]) == 2
    assert said in capsys.readouterr().err
    assert not service.requests


def test_another_interface_answers(service, capsys):
    words = ["ask", "--interface", "general", "--model", "ember-base"]
    assert cli.main([*words, "Hello"]) == 0
    request = service.requests[-1]
    sent = {"message": "Hello", "model": "ember-base", "stream": True}
    assert (request.path, request.json) == ("/api/chat", sent)
    sent_before = len(service.requests)
    assert cli.main([*words, "--max-tokens", "9", "Hello"]) == 2
    assert "--max-tokens: the general interface has no such field" in capsys.readouterr().err
    assert len(service.requests) == sent_before


def test_options_reach_the_service(service):
    words = ["ask", "Hello", "--system", "Be brief.", "--temperature", "0.5", "--max-tokens", "9"]
    assert cli.main([*words, "--model", "svc-code"]) == 3, "nine tokens cut the answer"
    sent = service.requests[-1].json
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("svc-code", 0.5, 9)
    assert "Be brief." in sent["messages"][0]["content"]


def test_json_is_the_whole_answer(service, capsys):
    assert cli.main(["ask", "What is 17 * 23?", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "391" in answer["content"]
    assert answer["usage"]["total_tokens"] > 0
    assert answer["metadata"]["finish_reason"] == "stop"


@pytest.fixture
def trip(tmp_path):
    """The name of a file with a schema."""
    file = tmp_path / "trip.json"
    file.write_text(json.dumps(SCHEMA))
    return str(file)


def test_a_schema_gives_an_object(service, capsys, trip):
    service.answers = ['Here: {"city": "Rome", "days": 3}'] * 2
    assert cli.main(["ask", "Rome for 3 days", "--schema", trip]) == 0
    assert json.loads(capsys.readouterr().out) == {"city": "Rome", "days": 3}
    assert cli.main(["ask", "Rome for 3 days", "--schema", trip, "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["object"] == {"city": "Rome", "days": 3}
    assert json.loads(whole["content"]) == whole["object"]
    assert whole["usage"]["total_tokens"] > 0


def test_an_answer_that_never_fits_the_schema_is_an_error(service, capsys, trip):
    service.answers = lambda _: "I would rather not."
    assert cli.main(["ask", "Rome", "--schema", trip]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("langchain-svc: ")


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_cut_answer_is_told_and_has_an_exit_code_of_its_own(words, service, capsys):
    service.answers = ["word " * 9_000]
    assert cli.main(["ask", "Hello", *words]) == 3
    captured = capsys.readouterr()
    assert "word word" in captured.out
    (line,) = captured.err.splitlines()
    assert line.startswith("langchain-svc: the answer was cut off (finish_reason 'length')")
    assert "--max-tokens" in line


def test_a_cut_object_is_an_error(service, capsys, trip):
    service.answers = lambda _: '{"city": "Rome", "days": ' + "1" * 45_000
    assert cli.main(["ask", "Rome", "--schema", trip]) == 1
    assert capsys.readouterr().out == ""


TEXT = "A keeper lit the lamp each evening. 灯台守は毎晩ランプを灯した\n\n" * 3


def test_a_terminal_gets_the_text_without_escapes_and_a_line_of_usage(service):
    service.answers = [TEXT + "\x1b[31mend\x07"]
    with terminal("ask", "Hi") as screen:
        shown = screen.expect("end").replace("\r\n", "\n")
        usage = screen.rest()
        assert screen.process.wait(10) == 0
    assert shown == TEXT + "\N{REPLACEMENT CHARACTER}[31m"
    assert re.search(r"svc-turbo  \d+ -> \d+ tokens( \(estimated\))?  \d+\.\d\d s", usage)


def test_words_stay_whole_on_a_terminal(service):
    text = "A keeper lit the lamp, whatever the sea said. " * 5 + "x" * 40 + " "
    service.answers = [text + "end"]
    with terminal("ask", "Hi", columns=25) as screen:
        lines = screen.expect("end").replace("\r\n", "\n").split("\n")
    assert " ".join(" ".join(lines).split()) == text.strip()
    assert all(len(line.rstrip()) <= 24 or line.startswith("xxx") for line in lines)


def test_a_pipe_gets_the_exact_text(service, capsys):
    service.answers = [TEXT + "\x1b[31m\tend"]
    assert cli.main(["ask", "Hi"]) == 0
    assert capsys.readouterr().out == TEXT + "\x1b[31m\tend\n"
