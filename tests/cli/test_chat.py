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


def test_instructions_model_and_clear(service, typed, capsys):
    typed("/system Be brief.\nHello\n/model svc-code\n/clear\n/system\nHi\n/quit\nnever sent\n")
    assert cli.main(["chat", "--temperature", "0.2"]) == 0
    capsys.readouterr()
    asked = [request.json for request in service.requests if request.json]
    assert len(asked) == 2
    assert "Be brief." in asked[0]["messages"][0]["content"]
    assert asked[1]["messages"] == [{"role": "user", "content": "Hi"}]
    assert [request["model"] for request in asked] == ["svc-turbo", "svc-code"]
    assert [request["temperature"] for request in asked] == [0.2, 0.2]


def test_mistakes_are_told_and_the_session_goes_on(service, typed, capsys):
    typed("/modle svc-pro\n/model gpt-4o\n/save\nHello\n")
    assert cli.main(["chat"]) == 1, "a script can see that something failed"
    captured = capsys.readouterr()
    first, second, third = captured.err.splitlines()
    assert "no command '/modle'; nothing was sent" in first
    assert "/model" in first
    assert "'gpt-4o'" in second
    assert "svc-turbo" in second
    assert "/save FILE" in third
    assert "Hello" in captured.out
    assert service.requests[-1].json["model"] == "svc-turbo"


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


def test_a_backslash_continues_and_two_slashes_are_one(service, typed, capsys):
    typed("first \\\nsecond\n//etc is a folder\n")
    assert cli.main(["chat"]) == 0
    first, second = sent(service)
    assert first[-1]["content"] == "first \nsecond"
    assert second[-1]["content"] == "/etc is a folder"


def test_a_saved_conversation_is_private_and_can_be_asked(service, typed, capsys, tmp_path):
    file = tmp_path / "talk.json"
    typed(f"/system Be brief.\nHello\n/save {file}\n")
    assert cli.main(["chat"]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    messages = json.loads(file.read_text("utf-8"))
    assert [one["role"] for one in messages] == ["system", "user", "assistant"]
    assert svc.ChatSvc().invoke([*messages, {"role": "user", "content": "Hi"}]).text
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_is_never_replaced_unasked_and_a_missing_folder_is_named(
    service, typed, capsys, tmp_path
):
    file = tmp_path / "talk.json"
    file.write_text("mine")
    typed(f"Hello\n/save {file}\ny\n/save {tmp_path}/none/talk.json\n")
    assert cli.main(["chat"]) == 1
    replaced, missing = capsys.readouterr().err.splitlines()
    assert "is there already" in replaced
    assert "none" in missing
    assert file.read_text() == "mine"


def test_at_a_terminal_ctrl_c_stops_the_answer_and_ctrl_d_leaves(monkeypatch, tmp_path):
    file = tmp_path / "talk.json"
    file.write_text("mine")
    with (
        Sandbox(pace=0.3, answers=["one two three four five six seven eight nine"]) as sandbox,
        terminal("chat", **sandbox.env) as screen,
    ):
        screen.expect("/help for commands")
        screen.expect("> ")
        screen.type("Hello\r")
        screen.expect("two")
        screen.type("\x03")
        screen.expect("stopped")
        screen.expect("> ")
        screen.type(f"/save {file}\r")
        screen.expect("[y/N] ")
        screen.type("y\r")
        screen.expect("2 messages are in")
        screen.expect("> ")  # before it, Ctrl-D would be the end of a line
        screen.type("\x04")
        assert screen.process.wait(10) == 0
    question, answer = json.loads(file.read_text("utf-8"))
    assert question == {"role": "user", "content": "Hello"}
    assert answer["content"].startswith("one two")
    assert "nine" not in answer["content"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
