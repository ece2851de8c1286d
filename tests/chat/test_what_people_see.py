"""What people see of a model: its signature, help, repr, and whether it is set up well."""

from __future__ import annotations

import inspect
import json
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.prompts import ChatPromptTemplate
from peers import png

from langchain_svc import ChatSvc, ImageStore, SvcRequestError, SvcTranslate
from langchain_svc.errors import SvcAuthenticationError

KEY = "key-0123456789abcdef"
SET = {"api_key": KEY, "base_url_v1": "http://127.0.0.1:1/v1"}


def test_the_signature_says_what_may_be_given_and_not_how_it_is_checked():
    signature = str(inspect.signature(ChatSvc))
    assert signature.startswith(
        "(*, model: Optional[str] = 'svc-turbo', temperature: Optional[float] = None"
    )
    assert "http_client: 'httpx.Client | httpx2.Client | None' = None" in signature
    assert {"api_key", "timeout", "max_retries"} <= inspect.signature(
        SvcTranslate
    ).parameters.keys()
    assert "Undefined" not in signature
    assert "0x" not in signature


@pytest.mark.parametrize("kind", [ChatSvc, SvcTranslate], ids=lambda kind: kind.__name__)
def test_help_says_what_each_parameter_of_ours_means(kind):
    shown = pydoc.plain(pydoc.render_doc(kind))
    _, _, parameters = inspect.getdoc(kind).partition("All parameters:\n")
    ours = {"api_key", "timeout", "max_retries", "quota", "privacy"}
    assert ours <= set(re.findall(r"^    (\w+): [A-Z\"`]", parameters, re.MULTILINE))
    assert "timeout: Seconds without a byte after which a call is given up." in shown
    assert "timeout: Optional[float] = 120.0" in shown


def test_a_subclass_keeps_its_own_docstring():
    class Own(ChatSvc):
        """A model of ours."""

        extra: int = 3

    assert Own.__doc__ == "A model of ours."
    assert "extra" in inspect.signature(Own).parameters


def test_accepted_names_are_set_and_read_as_the_fields_that_they_stand_for():
    model = ChatSvc(**SET)
    aliases = {"model_name": "model", "request_timeout": "timeout",
               "stop_sequences": "stop", "max_completion_tokens": "max_tokens"}  # fmt: skip
    for value, (alias, name) in enumerate(aliases.items(), 3):
        setattr(model, alias, value)
        assert getattr(model, name) == getattr(model, alias) == value
        assert name in model.model_fields_set


@pytest.mark.parametrize("option", ["functions", "function_call"])
def test_options_of_old_chains_name_what_replaces_them(option):
    chain = ChatPromptTemplate.from_template("{x}") | ChatSvc(**SET).bind(**{option: ["f"]})
    with pytest.raises(SvcRequestError, match=r"bind_tools\(.*with_structured_output\("):
        chain.invoke({"x": "hi"})


@pytest.mark.slow
def test_a_program_of_users_is_typed_without_a_plugin_of_mypy(tmp_path):
    pytest.importorskip("mypy")
    program = Path(__file__).parents[1] / "typing_api.py"
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", tmp_path]
    done = subprocess.run([*command, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_editors_know_the_types_of_what_is_exported():
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--verifytypes", "langchain_svc"]
    command += ["--ignoreexternal", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)["typeCompleteness"]
    unknown = [
        one["name"] for one in told["symbols"] if one["isExported"] and not one["isTypeKnown"]
    ]
    assert told["completenessScore"] >= 0.99, unknown


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
