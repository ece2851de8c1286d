"""docs/migration.md against the installed langchain-openai and openai: nothing of theirs is missing."""

import re

import openai
import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import ValidationError
from test_readme import ROOT, rows

import langchain_svc as svc

TEXT = (ROOT / "docs/migration.md").read_text("utf-8")
INNER = {"client", "async_client", "root_client", "root_async_client"}  # the SDK's own objects
GIVEN = {"api_key": "k", "base_url_v1": "https://svc.example/v1"}


def table(heading):
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    return rows(found[1])


def names(cell):
    return re.findall(r"`(\w+)`", cell)


PARAMETERS = [(name, theirs[1]) for theirs in table("Parameters") for name in names(theirs[0])]


def test_no_parameter_is_missing():
    theirs = set()
    for name, field in ChatOpenAI.model_fields.items():
        if name not in BaseChatModel.model_fields:
            theirs |= {name, field.alias or name}
    assert theirs - INNER == {name for name, _ in PARAMETERS}


@pytest.mark.parametrize(("name", "ours"), PARAMETERS, ids=[name for name, _ in PARAMETERS])
def test_each_parameter_is_here_what_the_page_says(name, ours):
    if ours.startswith("the same"):
        assert name in svc.ChatSvc.model_fields
    elif ours.startswith("accepted"):
        assert name not in svc.ChatSvc.model_fields
        values = {"stop_sequences": ["x"], "model_name": "m"}
        svc.ChatSvc(**GIVEN, **{name: values.get(name, 5)})
    elif ours.startswith("another meaning"):
        assert name in svc.ChatSvc.model_fields
    elif ours.startswith("none"):
        with pytest.raises(ValidationError, match=f"no setting '{name}'; (?!known|did you mean)"):
            svc.ChatSvc(**GIVEN, **{name: 2})
    elif name == "base_url":
        made = svc.ChatSvc(api_key="k", base_url="https://svc.example/v1")
        assert made.base_url_v1 == "https://svc.example/v1"
    else:
        with pytest.raises(ValidationError, match=f"did you mean {names(ours)[0]!r}"):
            svc.ChatSvc(**GIVEN, **{name: 1})


def test_the_errors_exist_on_both_sides():
    for theirs, ours in table("Errors"):
        assert all(issubclass(getattr(openai, name), Exception) for name in names(theirs))
        assert issubclass(getattr(svc, names(ours)[0]), svc.SvcError)
