import os
import re
import shlex
import signal
import socket
import sys

import pytest
from cli.conftest import PLAIN, done, started

import langchain_svc
from langchain_svc import cli
from langchain_svc.sandbox import Fault, Sandbox


def only_line(captured):
    """What stands on stderr, which is one line of ours and no traceback."""
    (line,) = captured.err.splitlines()
    assert line.startswith("langchain-svc: ")
    return line


# -- ask --------------------------------------------------------------------------------------------


def test_ask_streams_piece_by_piece_until_it_is_interrupted(monkeypatch):
    with Sandbox(pace=0.3) as s:
        for name, value in s.env.items():
            monkeypatch.setenv(name, value)
        with started("ask", "What is 17 * 23?") as process:
            first = process.stdout.read(1)
            assert first
            assert process.poll() is None, "the whole answer came at once"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "langchain-svc: interrupted\n")


def test_a_broken_stream_leaves_its_text_and_one_line(service, capsys):
    service.faults = [Fault(cut=True, after=2)]
    assert cli.main(["ask", "What is 17 * 23?"]) == 1
    captured = capsys.readouterr()
    assert captured.out.strip()
    assert captured.out.endswith("\n")
    assert "lost inside the answer; what had arrived is printed" in only_line(captured)


# -- models -----------------------------------------------------------------------------------------


def test_models_lists_each_in_a_line(service, capsys):
    assert cli.main(["models"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["MODEL", "CONTEXT", "PRICE", "IN/OUT", "CAPABILITIES"]
    assert [row.split()[0] for row in rows] == ["svc-turbo", "svc-pro", "svc-vision", "svc-code"]
    assert "200,000" in rows[1]
    assert len({row.index("chat") for row in rows}) == 1, "the columns stand under each other"


def test_models_lists_those_of_another_interface(service, capsys):
    assert cli.main(["models", "--interface", "general"]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 23
    assert rows[1].split()[:2] == ["svc-pro", "200,000"]


def test_models_shows_a_dash_where_the_service_says_nothing(service, capsys):
    service.faults = [Fault(body={"data": [{"id": "bare"}]})]
    assert cli.main(["models"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["bare", "-", "-", "-"]


def test_a_reader_that_leaves_is_no_traceback(service):
    service.faults = [Fault(body={"data": [{"id": "m" * 500}] * 5_000})]
    with started("models") as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 1


# -- what goes wrong --------------------------------------------------------------------------------


NEAR = "langchain-svc sandbox"
ELSEWHERE = "http://elsewhere.example/v1"
NOWHERE = "http://127.0.0.1:9/v1"
CHECK_URL = "check SVC_BASE_URL_V1, and"
TEMPERATURE = "--temperature: must be a number from 0 to 2, not 3"
FAILURES = [
    (2, {"SVC_API_KEY": ""}, ["ask", "Hello"], ["SVC_API_KEY", NEAR]),
    (2, {"SVC_API_KEY": ""}, ["models"], ["SVC_API_KEY", NEAR]),
    (2, {"SVC_BASE_URL_V1": ""}, ["models"], ["SVC_BASE_URL_V1", NEAR]),
    (2, {"SVC_BASE_URL_V1": ELSEWHERE}, ["models"], ["SVC_BASE_URL_V1: plain http"]),
    (2, {"SVC_BASE_URL_V1": "no"}, ["models"], ["SVC_BASE_URL_V1: the base URL must look like"]),
    (2, {"SVC_API_KEY": "two wrong-key-3141"}, ["models"], ["SVC_API_KEY: the API key holds"]),
    (1, {"SVC_API_KEY": "wrong-key-3141"}, ["ask", "Hello"], ["401", "check the API key"]),
    (1, {"SVC_BASE_URL_V1": NOWHERE}, ["ask", "Hello"], ["could not be reached", CHECK_URL]),
    (2, {}, ["ask", "Hello", "--model", ""], ["--model: must be a model id"]),
    (1, {}, ["ask", "Hello", "--model", "gpt-4o"], ["gpt-4o", "`langchain-svc models` names"]),
    (1, {}, ["ask", "Hello", "--model", "SVC-prp"], ["did you mean 'svc-pro'?"]),
    (2, {}, ["ask", "Hello", "--interface", "general", "--max-tokens", "5"], ["--interface v1"]),
    (2, {}, ["ask", "Hello", "--temperature", "3"], [TEMPERATURE]),
]


@pytest.mark.parametrize(("code", "environment", "words", "said"), FAILURES)
def test_what_fails_is_one_line_that_says_what_to_do(
    code, environment, words, said, service, monkeypatch, capsys
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("langchain_svc._client.exchange._FIRST_BACKOFF", 0.01)
    assert cli.main(words) == code, "2 where nothing was sent"
    line = only_line(capsys.readouterr())
    assert all(part in line for part in said), line
    assert "3141" not in line
    assert not re.search(r"\w=|\w\(", line), "a shell has no keywords and no calls"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["aks", "hi"], "there is no command 'aks'; did you mean 'ask'?"),
        (["hi"], "there are demo, batch, sandbox, ask, models, doctor"),
        (["ask", "hi", "--modle", "svc-pro"], "there is no option --modle; did you mean --model?"),
        (["ask", "hi", "--max_tokens=5"], "no option --max_tokens; did you mean --max-tokens?"),
        (["batch", "a", "b", "--concurency", "3"], "did you mean --concurrency?"),
        (["ask", "hi", "-m", "svc-pro"], "there are --help, --interface, --model, "),
        (["models", "extra"], "'extra' is one word too many"),
        (["ask", "hi", "--temperature", "hot"], "--temperature must be a number, not 'hot'"),
        (["ask", "hi", "--model"], "--model needs a value"),
        (["batch", "a", "b", "--status", "b"], "--status takes the output alone"),
        (["batch", "in.jsonl"], "langchain-svc batch prompts.jsonl results.jsonl"),
    ],
)
def test_what_is_mistyped_is_told_in_the_words_of_a_shell(words, said, capsys):
    assert cli.main(words) == 2
    assert said in only_line(capsys.readouterr())


def test_an_address_with_a_letter_too_many_is_named(service, monkeypatch, capsys):
    monkeypatch.setenv("SVC_BASE_URL_V1", service.env["SVC_BASE_URL_V1"].replace("http", "https"))
    monkeypatch.setattr("langchain_svc._client.exchange._FIRST_BACKOFF", 0.01)
    assert cli.main(["models"]) == 1
    assert "its address begins with http://" in only_line(capsys.readouterr())


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", b"\xff\xfe\x80", b"caf\xe9"])
def test_what_is_no_text_is_not_asked(data, service):
    environment = {**os.environ, "LC_ALL": "C"}
    found = done(
        [*PLAIN, "ask", "-"], check=False, text=False, stdin=None, input=data, env=environment
    )
    assert found.returncode == 2
    assert b"what is piped in is not text" in found.stderr
    assert not service.requests


@pytest.mark.parametrize(
    "words",
    [
        ["batch", "in.jsonl", "-", "--journal", "j"],
        ["batch", "in.jsonl", "out.jsonl", "--dry-run"],
        ["models"],
        ["ask", "Hello"],
    ],
)
def test_a_closed_stdout_is_one_line(words, service, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"prompt": "Hello"}\n')
    found = done(["sh", "-c", shlex.join([*PLAIN, *words]) + " >&-"], check=False, cwd=tmp_path)
    line = found.stderr.splitlines()[-1]
    assert line.startswith("langchain-svc: ")
    assert "stdout is closed" in line
    assert "Traceback" not in found.stderr


def test_a_long_wait_is_told_and_not_waited_for(service, capsys):
    service.faults = [Fault(status=429, headers={"Retry-After": "57"})]
    assert cli.main(["ask", "Hello"]) == 1
    assert "come back in 57 s" in only_line(capsys.readouterr())
    assert len(service.requests) == 1


def test_no_command_shows_how_to_use_it(capsys):
    assert cli.main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: langchain-svc")
    assert "\n  langchain-svc ask why is the sky blue\n" in out


def test_the_package_is_the_command_too_and_its_version_imports_nothing_heavy():
    found = done([sys.executable, "-X", "importtime", "-m", "langchain_svc", "--version"])
    assert found.stdout == f"langchain-svc {langchain_svc.__version__}\n"
    imported = {line.split("|")[-1].strip() for line in found.stderr.splitlines()}
    assert "langchain_svc.cli" in imported
    assert not imported & {"rich", "httpx", "h11", "bm25s", "tiktoken"}


@pytest.mark.parametrize(
    ("hidden", "words", "extra"),
    [
        ("rich", ["demo"], "[cli,sandbox]"),
        ("bm25s", ["demo"], "[cli,sandbox]"),
        ("h11", ["sandbox"], "[sandbox]"),
    ],
)
def test_a_missing_extra_is_named(hidden, words, extra, tmp_path):
    # Python takes what is None here for not installed.
    hide = f"import sys; sys.modules[{hidden!r}] = None"
    (tmp_path / "sitecustomize.py").write_text(hide)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    found = done([*PLAIN, *words], env=environment, check=False)
    assert found.returncode == 2
    (line,) = found.stderr.splitlines()
    assert hidden in line
    assert f'pip install "langchain-svc{extra}"' in line


def test_letters_that_the_output_cannot_show_are_replaced(service):
    service.answers = ["a \u2192 b"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = done([*PLAIN, "ask", "Hello"], env=environment)
    assert (found.stdout, found.stderr) == ("a ? b\n", "")


# -- sandbox ----------------------------------------------------------------------------------------


def test_the_sandbox_prints_lines_to_paste_and_stops_cleanly():
    with started("sandbox", "--port", "0", "--plan", "free", "--api-key", "it's-mine") as served:
        lines = [served.stdout.readline() for _ in range(5)]
        assert all(line.startswith("export SVC_") for line in lines)
        pasted = "".join(lines) + shlex.join([*PLAIN, "models"])
        found = done(["sh", "-c", pasted], check=False)
        served.send_signal(signal.SIGINT)
        out, err = served.communicate(timeout=60)
    assert "svc-pro" in found.stdout
    assert found.stderr == ""
    assert (served.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "Stopped."


def test_a_taken_port_is_one_clear_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert cli.main(["sandbox", "--port", port]) == 2
    line = only_line(capsys.readouterr())
    assert f"127.0.0.1:{port}: Address already in use" in line
    assert "--port" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "70000"], "expected 0 to 65535"),
        (["--port", "http"], "--port must be a whole number, not 'http'"),
        (["--plan", "golden"], "--plan must be one of 'free', 'starter', 'pro', 'enterprise'"),
        (["--upstream-model", "qwen3"], "--upstream-model says nothing without --upstream"),
        (["--upstream-key-env", "KEY"], "--upstream-key-env says nothing without --upstream"),
        (["--upstream-allow-http"], "--upstream-allow-http says nothing without --upstream"),
        (["--upstream", "nonsense", "--upstream-model", "m"], "--upstream: expected an address"),
        (["--pace", "-1"], "pace"),
        (["--pace", "nan"], "pace"),
        (["--host", "0.0.0.0"], "other machines"),
        (["--api-key", ""], "--api-key"),
    ],
)
def test_wrong_words_are_refused_by_the_parser_or_the_sandbox(words, said, capsys):
    assert cli.main(["sandbox", "--port", "0", *words]) == 2
    assert said in only_line(capsys.readouterr())
