"""The public names: complete, sorted and quick to reach."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
import textwrap
import tomllib
import typing
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from share import part

import langchain_svc
from langchain_svc import errors
from langchain_svc.sandbox import Sandbox


def test_names_are_sorted_and_all_there():
    names = langchain_svc.__all__
    assert names == sorted(names)
    assert all(getattr(langchain_svc, name) is not None for name in names)
    assert dir(langchain_svc) == names


def test_what_deepagents_calls_registers_the_provider(monkeypatch):
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    group = "deepagents.provider_profiles"
    ((name, value),) = project["project"]["entry-points"][group].items()
    base = pytest.importorskip("langchain.chat_models.base")
    monkeypatch.setattr(base, "_BUILTIN_PROVIDERS", {})
    EntryPoint(name, value, group).load()()
    with Sandbox() as service:
        model = base.init_chat_model("svc:svc-pro", **service.v1)
    assert (type(model), model.model) == (langchain_svc.ChatSvc, "svc-pro")


def test_type_checkers_know_the_same_names():
    nodes = ast.walk(ast.parse(inspect.getsource(langchain_svc)))
    imports = [name for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names]
    assert sorted(name.asname for name in imports if name.asname) == langchain_svc.__all__


def test_every_error_is_public():
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert defined <= set(langchain_svc.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        langchain_svc.nothing  # noqa: B018
    assert not hasattr(langchain_svc, "nothing")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("SvcChat", "ChatSvc"),
        ("SvcLLM", r'ChatSvc\(interface="general"\)'),
        ("SvcEmbeddings", "no embeddings"),
        ("SvcBuget", "'SvcBudget'"),
    ],
)
def test_a_name_that_others_have_or_that_is_misspelt_is_told_the_right_one(name, said):
    with pytest.raises(ImportError, match=said):
        exec(f"from langchain_svc import {name}")


def loaded_by(code):
    probe = textwrap.dedent(code) + "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_and_constructing_loads_no_http_library():
    core = loaded_by(
        "import langchain_core.language_models.chat_models, langchain_core.outputs, "
        "langchain_core.tools"
    )
    ours = (
        loaded_by(
            "from langchain_svc import ChatSvc, SvcToolkit; ChatSvc(), SvcToolkit().get_tools()"
        )
        - core
    )
    assert not {"httpx", "httpcore", "tiktoken", "regex", "rich", "h11", "PIL"} & ours


def methods_that_others_call():
    """Methods of ours that are public, special, or hooks of LangChain's."""
    classes = {
        n: c for n in langchain_svc.__all__ if inspect.isclass(c := getattr(langchain_svc, n))
    } | {"Sandbox": Sandbox}
    for name, cls in classes.items():
        theirs = {
            m for c in cls.__mro__ if c.__module__.startswith("langchain_core") for m in vars(c)
        }
        for method in dir(cls):
            found = inspect.getattr_static(cls, method)
            found = getattr(found, "__func__", None) or getattr(found, "fget", None) or found
            function = inspect.unwrap(found) if callable(found) else None
            ours = inspect.isfunction(function) and function.__module__.startswith("langchain_svc")
            private = method.startswith("_") and not method.endswith("__")
            if ours and (method in theirs or not private):
                yield pytest.param(function, id=f"{name}.{method}")


@pytest.mark.parametrize("method", part(methods_that_others_call()))
def test_type_hints_can_be_read_at_run_time(method):
    # LangChain reads those of bind_tools, others those of whatever they wrap.
    assert set(typing.get_type_hints(method)) <= {*inspect.signature(method).parameters, "return"}
