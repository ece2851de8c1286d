"""docs/migration.md against the installed langchain-openai and openai: nothing of theirs is missing."""

import re

import openai
import pytest
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import ValidationError
from test_readme import ROOT, rows

import langchain_svc as svc
from langchain_svc import cli

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


# -- what else you may look for -------------------------------------------------------------------

OTHERS = [cells for cells in table("What else you may look for") if cells[0] != "what"]


def an_old_chain(sandbox):
    for option in ("functions", "function_call"):
        with pytest.raises(svc.SvcRequestError, match="with_structured_output"):
            svc.ChatSvc(**sandbox.v1).invoke("Hello", **{option: ["f"]})


def an_old_agent(sandbox):
    with pytest.raises(svc.SvcRequestError, match="create_tool_calling_agent"):
        svc.ChatSvc(**sandbox.v1).bind(functions=["f"]).invoke("Hello")


def citations(sandbox):
    an_old_chain(sandbox)
    asked = {"messages": "Where is the lamp?", "documents": [Document("The lamp is in the hall.")]}
    assert "hall" in svc.ChatSvc(**sandbox.v1).with_citations().invoke(asked).text


def durations(sandbox):
    usage = svc.SvcUsageCallbackHandler()
    svc.ChatSvc(**sandbox.v1).invoke("Hello", {"callbacks": [usage]})
    assert not re.search("duration|second|first", str(usage.to_dict()))


def a_text_model(sandbox):
    with pytest.raises(ImportError, match=r'ChatSvc\(interface="general"\)'):
        svc.SvcLLM  # noqa: B018
    with svc.ChatSvc(interface="general", **sandbox.general) as model:
        assert "This is the sandbox" in model.invoke("Hello").text
    assert sandbox.requests[-1].json == {"message": "Hello"}


def a_conversation(_):
    assert cli.main(["chat"]) == 2
    with pytest.raises(SystemExit, match="0"):
        cli.main(["ask", "--help"])


def a_prompt(sandbox):
    svc.ChatSvc(**sandbox.v1).invoke("Hello")
    assert sandbox.requests[-1].json["messages"][-1]["content"] == "Hello"


PROOFS = {
    "`functions`": an_old_chain,
    "`create_qa": citations,
    "`create_openai_functions_agent`": an_old_agent,
    "durations": durations,
    "a conversation": a_conversation,
    "a text model": a_text_model,
    "the prompt": a_prompt,
}


@pytest.mark.parametrize("cells", OTHERS, ids=[cells[0][:30] for cells in OTHERS])
def test_each_thing_that_people_look_for_is_here_what_the_page_says(cells, sandbox):
    (proof,) = [check for begins, check in PROOFS.items() if cells[0].startswith(begins)]
    proof(sandbox)


def test_each_proof_has_its_row():
    assert len(OTHERS) == len(PROOFS)
