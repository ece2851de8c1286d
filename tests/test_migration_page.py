"""docs/migration.md against the installed langchain-openai and openai: nothing of theirs is missing."""

import base64
import io
import re

import openai
import pytest
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_openai import ChatOpenAI
from PIL import Image
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
PATIENT = {"resourceType": "Patient", "id": "a", "gender": "female"}


def gif():
    stream = io.BytesIO()
    Image.new("P", (40, 40)).save(stream, "GIF")
    return stream.getvalue()


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


def a_gif(sandbox):
    image = f"data:image/gif;base64,{base64.b64encode(gif()).decode()}"
    tool = svc.SvcAnalyzeImage(**sandbox.general)
    with pytest.raises(svc.SvcRequestError, match="it is a GIF"):
        tool.invoke({"image": image, "task": "ocr"})
    handle = tool.images.add(Image.open(io.BytesIO(gif())))
    assert tool.invoke({"image": handle, "task": "ocr"})


def an_image_nearby(sandbox):
    tool = svc.SvcAnalyzeImage(**sandbox.general)
    for address in ("http://10.0.0.5/a.png", "http://intranet/a.png"):
        with pytest.raises(svc.SvcRequestError, match="not an IP address or a private name"):
            tool.invoke({"image": address, "task": "ocr"})
    assert not sandbox.requests


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


def a_server(_):
    assert not hasattr(svc.PatientContext, "from_server")
    assert svc.PatientContext.from_fhir(PATIENT).sex == "female"


def a_part_left_out(_):
    code = {"coding": [{"system": "http://snomed.info/sct", "code": "86406008"}]}
    about = {"subject": {"reference": "Patient/a"}, "clinicalStatus": {"text": "active"}}
    condition = {"resourceType": "Condition", "id": "c", "code": code, **about}
    for leave_out in (["86406008"], lambda raw: raw["id"] == "c"):
        patient = svc.PatientContext.from_fhir([PATIENT, condition], leave_out=leave_out)
        assert patient.sex == "female"
        assert not patient.medical_history
        assert "(leave_out)" in str(patient.fhir_report)


def an_answer_as_fhir(sandbox):
    result = svc.SvcMedicalConsult(**sandbox.medical).invoke(
        {"type": "tool_call", "id": "1", "name": "", "args": {"message": "chest pain"}}
    )
    assert not hasattr(result.artifact, "to_fhir")
    assert result.artifact.raw
    assert result.artifact.audit()["resourceType"] == "AuditEvent"


PROOFS = {
    "`functions`": an_old_chain,
    "`create_qa": citations,
    "`create_openai_functions_agent`": an_old_agent,
    "GIF": a_gif,
    "images at IP": an_image_nearby,
    "durations": durations,
    "a conversation": a_conversation,
    "a text model": a_text_model,
    "the prompt": a_prompt,
    "a FHIR server": a_server,
    "parts of a record": a_part_left_out,
    "FHIR resources": an_answer_as_fhir,
}


@pytest.mark.parametrize("cells", OTHERS, ids=[cells[0][:30] for cells in OTHERS])
def test_each_thing_that_people_look_for_is_here_what_the_page_says(cells, sandbox):
    (proof,) = [check for begins, check in PROOFS.items() if cells[0].startswith(begins)]
    proof(sandbox)


def test_each_proof_has_its_row():
    assert len(OTHERS) == len(PROOFS)
