"""What people see of a model: its signature, help, repr, and whether it is set up well."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from peers import png

from langchain_svc import ChatSvc, ImageStore, SvcRequestError, SvcTranslate
from langchain_svc.errors import SvcAuthenticationError

KEY = "key-0123456789abcdef"
SET = {"api_key": KEY, "base_url_v1": "http://127.0.0.1:1/v1"}


def test_the_signature_says_what_may_be_given_and_not_how_it_is_checked():
    signature = str(inspect.signature(ChatSvc))
    assert signature.startswith("(*, model='svc-turbo', temperature=None, ")
    assert {"api_key", "timeout", "max_retries"} <= inspect.signature(
        SvcTranslate
    ).parameters.keys()
    assert "Undefined" not in signature
    assert "0x" not in signature


@pytest.mark.slow
def test_a_program_of_users_is_typed_without_a_plugin_of_mypy(tmp_path):
    pytest.importorskip("mypy")
    program = Path(__file__).parents[1] / "typing_api.py"
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", tmp_path]
    done = subprocess.run([*command, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_repr_says_what_was_set_and_no_secret():
    model = ChatSvc(
        **SET, model="svc-pro", temperature=0, default_headers={"X-Team": "secret-team"}
    )
    assert (
        repr(model)
        == "ChatSvc(model='svc-pro', base_url_v1='http://127.0.0.1:1/v1', temperature=0.0)"
    )
    assert repr(ChatSvc(**SET, proxy="http://u:pw@127.0.0.1:2")).count("pw") == 0
    assert "functools" not in repr(SvcTranslate(api_key=KEY, base_url="http://127.0.0.1:1"))


def test_a_stored_image_is_shown_in_a_notebook():
    store = ImageStore()
    stored = store.get(store.add(png()))
    assert stored._repr_mimebundle_(include=None, exclude=None)["image/png"] == stored.data
    address = store.get(store.add("https://svc.example/a.png"))
    assert list(address._repr_mimebundle_()) == ["text/plain"]


def test_from_env_fails_at_once_where_a_variable_is_missing(monkeypatch):
    for name in ("SVC_API_KEY", "SVC_BASE_URL_V1", "SVC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SvcRequestError, match="SVC_API_KEY"):
        ChatSvc.from_env()
    monkeypatch.setenv("SVC_API_KEY", KEY)
    with pytest.raises(SvcRequestError, match="SVC_BASE_URL_V1"):
        ChatSvc.from_env()
    monkeypatch.setenv("SVC_BASE_URL_V1", "http://127.0.0.1:1/v1")
    assert ChatSvc.from_env(temperature=0.5).temperature == 0.5
    with pytest.raises(SvcRequestError, match="SVC_BASE_URL"):
        ChatSvc.from_env(image_inputs="describe")


async def test_check_tells_a_good_set_up_from_a_bad_one(sandbox):
    with ChatSvc(**sandbox.v1, model="svc-pro") as model:
        assert model.check().id == (await model.acheck()).id == "svc-pro"
        assert model.check().profile["max_input_tokens"] == 200_000
    with pytest.raises(SvcRequestError, match=r"no model 'svc-por'; did you mean 'svc-pro'"):
        ChatSvc(**sandbox.v1, model="svc-por").check()
    with pytest.raises(SvcAuthenticationError):
        ChatSvc(**{**sandbox.v1, "api_key": "wrong-key-0123456789"}).check()
