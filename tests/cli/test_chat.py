import json
import stat

from cli.conftest import terminal

import langchain_svc as svc
from langchain_svc import cli
from langchain_svc.sandbox import Fault, Sandbox


def sent(sandbox):
    return [request.json["messages"] for request in sandbox.requests if request.json]


def test_the_conversation_goes_on(service, typed, capsys):
    typed("My name is Zoe.\n\nWhat is my name?\n")
    assert cli.main(["chat"]) == 0
    captured = capsys.readouterr()
    assert "Zoe" in captured.out
    assert captured.err == ""
    assert "\x1b" not in captured.out
    first, second = sent(service)
    assert [turn["role"] for turn in second] == ["user", "assistant", "user"]
    assert second[0] == first[0]


def test_reset_forgets_the_turns_and_keeps_the_options(service, typed, capsys):
    typed("Hello\n/reset\nHi\n/exit\nnever sent\n")
    assert cli.main(["chat", "--system", "Be brief.", "--model", "svc-code"]) == 0
    capsys.readouterr()
    first, second = [request.json for request in service.requests if request.json]
    assert first["model"] == second["model"] == "svc-code"
    (turn,) = second["messages"]
    assert turn["content"] == first["messages"][0]["content"].replace("Hello", "Hi")
    assert "Be brief." in turn["content"]


def test_an_unknown_command_is_told_and_not_sent(service, typed, capsys):
    typed("/sav\nHello\n /etc is a folder\n")
    assert cli.main(["chat"]) == 1, "a script can see that something failed"
    captured = capsys.readouterr()
    assert "no command '/sav', and nothing was sent. /save FILE" in captured.err
    assert "Hello" in captured.out
    assert [turns[-1]["content"] for turns in sent(service)] == ["Hello", "/etc is a folder"]


def test_without_a_key_it_does_not_begin(service, typed, monkeypatch, capsys):
    monkeypatch.delenv("SVC_API_KEY")
    typed("Hello\n")
    assert cli.main(["chat"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "SVC_API_KEY" in line
    assert "langchain-svc sandbox" in line


def test_a_failed_question_can_be_asked_again(service, typed, capsys):
    service.faults = [Fault(status=400, times=1)]
    typed("Hello\nHello\n")
    assert cli.main(["chat"]) == 1
    assert "answered 400" in capsys.readouterr().err
    assert sent(service)[-1] == [{"role": "user", "content": "Hello"}]


def test_a_saved_conversation_is_private_and_can_be_asked(service, typed, capsys, tmp_path):
    file = tmp_path / "talk.json"
    typed(f"Hello\n/save {file}\n")
    assert cli.main(["chat", "--system", "Be brief."]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    messages = json.loads(file.read_text("utf-8"))
    assert [one["role"] for one in messages] == ["system", "user", "assistant"]
    assert svc.ChatSvc().invoke([*messages, {"role": "user", "content": "Hi"}]).text
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_is_never_replaced_and_what_cannot_be_written_is_named(
    service, typed, capsys, tmp_path
):
    file = tmp_path / "talk.json"
    file.write_text("mine")
    typed(f"Hello\n/save {file}\n/save {tmp_path}/none/talk.json\n/save\n")
    assert cli.main(["chat"]) == 1
    there, missing, unnamed = capsys.readouterr().err.splitlines()
    assert "exists; name a new file" in there
    assert "none" in missing
    assert "name a new file" in unnamed
    assert file.read_text() == "mine"


def test_at_a_terminal_ctrl_c_stops_the_answer_and_ctrl_d_leaves(monkeypatch, tmp_path):
    file = tmp_path / "talk.json"
    with (
        Sandbox(pace=0.3, answers=["one two three four five six seven eight nine"]) as sandbox,
        terminal("chat", **sandbox.env) as screen,
    ):
        screen.expect("/exit or Ctrl-D leaves")
        screen.expect("> ")
        screen.type("Hello\r")
        screen.expect("two")
        screen.type("\x03")
        screen.expect("stopped")
        screen.expect("> ")
        screen.type(f"/save {file}\r")
        screen.expect("2 messages are in")
        screen.expect("> ")  # before it, Ctrl-D would be the end of a line
        screen.type("\x04")
        assert screen.process.wait(10) == 0
    question, answer = json.loads(file.read_text("utf-8"))
    assert question == {"role": "user", "content": "Hello"}
    assert answer["content"].startswith("one two")
    assert "nine" not in answer["content"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
