"""What identifies people never leaves, and comes back: every class, over real sockets."""

import asyncio
import json
import pickle
import re

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from peers import listed, tool_call
from pydantic import BaseModel, ValidationError

import langchain_svc as svc
from langchain_svc.sandbox import Fault, Sandbox
from privacy import test_leaks

NAMES = ("Anna Meyer", "MEYER", "A. Meyer", "0555 0134567", "4.3.1950")
SAID = "I am Anna Meyer (MEYER, A. Meyer), tel 0555 0134567, born 4.3.1950. [PERSON_1] and 2.5 mg."


def people():
    return svc.Pseudonyms(names=["Anna Meyer"], telecoms=["+49 555 0134567"], dates=["1950-03-04"])


def echo(request):
    """A model that repeats what it was told."""
    return "You said: " + json.loads(request.body)["messages"][-1]["content"]


def wire(sandbox, first=0):
    return "\n".join(request.body.decode() for request in sandbox.requests[first:])


def assert_hidden(sandbox, first=0):
    sent = wire(sandbox, first)
    assert sent
    assert not [name for name in NAMES if name in sent]


WAYS = {
    "invoke": lambda model: model.invoke(SAID).text,
    "stream": lambda model: "".join(chunk.text for chunk in model.stream(SAID)),
    "batch": lambda model: model.batch([SAID])[0].text,
    "ainvoke": lambda model: asyncio.run(model.ainvoke(SAID)).text,
    "astream": lambda model: "".join(
        chunk.text for chunk in asyncio.run(listed(model.astream(SAID)))
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream_format", ["sse", "ndjson", "text"])
def test_an_answer_equals_that_of_a_run_without(way, stream_format):
    with Sandbox(answers=echo, stream_format=stream_format) as sandbox:
        with svc.ChatSvc(**sandbox.v1) as model:
            plain = WAYS[way](model)
        with svc.ChatSvc(**sandbox.v1, pseudonyms=people()) as model:
            assert WAYS[way](model) == plain == f"You said: {SAID}"
        assert_hidden(sandbox, first=1)


@pytest.mark.parametrize("door", test_leaks.DOORS)
def test_nothing_of_a_record_leaves_by_any_door(door, monkeypatch):
    make, use = test_leaks.DOORS[door]
    asked = [*test_leaks.PATIENT.model_dump(mode="json").values(), test_leaks.ASKED]
    texts = [text for text in _texts(asked) if len(text) > 8]
    with Sandbox() as sandbox:
        for name, value in sandbox.env.items():
            monkeypatch.setenv(name, value)
        words = {"pseudonyms": svc.Pseudonyms(texts=texts), "patient": test_leaks.PATIENT}
        use(make(words), {})
        sent = wire(sandbox)
    assert not [text for text in texts if text in sent]


def _texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_agents_calls_results_and_history_are_hidden_and_restored(asynchronous):
    arguments = []

    @tool
    def look_up(person: str) -> str:
        """Look up a person such as Anna Meyer."""
        arguments.append(person)
        return f"{person} was born 4.3.1950"

    def answers(request):
        text = request.body.decode()
        if "tool_response" in text.rpartition("tools_end")[2] and "was born" in text:
            return "[PERSON_1] was born [DATE_1]."
        return (
            '<tool_call>\n{"name": "look_up", "arguments": {"person": "[PERSON_1]"}}\n</tool_call>'
        )

    with Sandbox(answers=answers) as sandbox:
        with svc.ChatSvc(**sandbox.v1, pseudonyms=people()) as model:
            agent = create_agent(model, [look_up])
            question = {"messages": [("user", "When was Anna Meyer born?")]}
            state = asyncio.run(agent.ainvoke(question)) if asynchronous else agent.invoke(question)
        assert_hidden(sandbox)
    assert arguments == ["Anna Meyer"]
    assert state["messages"][-1].text == "Anna Meyer was born 4.3.1950."


class Person(BaseModel):
    name: str
    born: str


def test_objects_are_restored():
    answer = '{"name": "[PERSON_1]", "born": "[DATE_1]"}'
    with Sandbox(answers=[answer, answer]) as sandbox:
        with svc.ChatSvc(**sandbox.v1, pseudonyms=people()) as model:
            person = model.with_structured_output(Person).invoke("Anna Meyer, born 4.3.1950")
            *_, streamed = model.with_structured_output(Person).stream("Anna Meyer, born 4.3.1950")
        assert_hidden(sandbox)
    assert person == streamed == Person(name="Anna Meyer", born="4.3.1950")


def test_documents_and_their_quotes_are_restored():
    with Sandbox() as sandbox, svc.ChatSvc(**sandbox.v1, pseudonyms=people()) as model:
        documents = [Document("Anna Meyer is the head of the clinic.")]
        answer = model.with_citations(documents).invoke("Who is the head of the clinic?")
        assert_hidden(sandbox)
    (annotation,) = answer.content[0]["annotations"]
    assert annotation["cited_text"] == "Anna Meyer is the head of the clinic"


def test_the_partial_text_of_a_broken_stream_is_restored():
    with Sandbox(answers=echo, faults=[Fault(cut=True, after=14)]) as sandbox:
        model = svc.ChatSvc(**sandbox.v1, pseudonyms=people(), max_retries=0)
        with pytest.raises(svc.SvcStreamError) as raised:
            list(model.stream(SAID))
    assert "Anna Meyer" in raised.value.partial


def test_a_run_brings_its_own():
    config = {"configurable": {"svc_pseudonyms": people()}}
    with Sandbox(answers=echo) as sandbox, svc.ChatSvc(**sandbox.v1) as model:
        assert model.invoke(SAID, config).text == f"You said: {SAID}"
        assert "".join(chunk.text for chunk in model.stream(SAID, config)) == f"You said: {SAID}"
        assert (model | (lambda message: message.text)).invoke(SAID, config) == f"You said: {SAID}"
        assert asyncio.run(model.ainvoke(SAID, config=config)).text == f"You said: {SAID}"
        assert_hidden(sandbox)


def test_a_medical_tool_hides_the_record_and_the_question():
    patient = svc.PatientContext(medicalHistory=["Seen by Anna Meyer on 4.3.1950"])
    with Sandbox() as sandbox:
        toolkit = svc.SvcMedicalToolkit(**sandbox.medical, patient=patient, pseudonyms=people())
        consult = toolkit.get_tools()[0]
        message = consult.invoke(tool_call(consult, {"message": "Anna Meyer has chest pain"}))
        assert_hidden(sandbox)
    assert "Anna Meyer has chest pain" in message.content


@pytest.mark.parametrize("value", ["Anna Meyer", ["Anna Meyer"], 7])
def test_another_value_is_refused_without_showing_it_as_accepted(value):
    with pytest.raises(ValidationError, match=r"must be Pseudonyms, such as Pseudonyms\.from_fhir"):
        svc.ChatSvc(pseudonyms=value)
    model = svc.ChatSvc(api_key="k", base_url_v1="http://127.0.0.1:1/v1")
    with pytest.raises(svc.SvcRequestError, match=r"\['svc_pseudonyms'\] must be Pseudonyms"):
        model.invoke("Hi", {"configurable": {"svc_pseudonyms": value}})


def test_pickles_and_reprs_hold_nothing_and_say_what_is_missing():
    model = svc.ChatSvc(api_key="k", base_url_v1="http://127.0.0.1:1/v1", pseudonyms=people())
    data = pickle.dumps(model)
    shown = f"{model!r} {data!r} {model.model_dump()}"
    assert not [name for name in (*NAMES, "Meyer") if name in shown]
    again = pickle.loads(data).model_copy(update={"api_key": "k"})
    with pytest.raises(svc.SvcRequestError, match="pseudonyms"):
        again.invoke("Hi")


def streamed(body):
    """What a stream brings whose body, in lines of JSON, is this and has no last line end."""
    headers = {"content-type": "application/x-ndjson"}
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers=headers, content=json.dumps(body))
    )
    with httpx.Client(transport=transport) as client:
        model = svc.ChatSvc(
            api_key="k",
            base_url_v1="http://127.0.0.1:1/v1",
            http_client=client,
            pseudonyms=people(),
            max_retries=0,
        )
        return "".join(chunk.text for chunk in model.stream("Anna Meyer"))


def test_a_mark_that_is_cut_off_comes_behind_the_text_before_it():
    delta = {"content": "Hello there [PERSON"}
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}
    assert streamed(body) == "Hello there [PERSON"


def test_a_stream_without_text_is_still_an_error():
    body = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    with pytest.raises(svc.SvcStreamError, match="without any text"):
        streamed(body)


@pytest.mark.parametrize("surname", ["Turn", "Role", "User", "Assistant", "System"])
def test_whatever_a_person_is_called_turns_are_told_apart(surname):
    name = f"Zita {surname}"
    thread = [
        SystemMessage("Be brief."),
        HumanMessage(f"I am {name}."),
        AIMessage(f"Hello, Ms {surname}."),
        HumanMessage("Hi"),
    ]
    with Sandbox(answers=lambda _: "Yes.") as sandbox:
        people = svc.Pseudonyms(names=[name])
        with svc.ChatSvc(
            interface="general", system_role="system", **sandbox.general, pseudonyms=people
        ) as model:
            model.invoke(thread)
        message = json.loads(sandbox.requests[-1].body)["message"]
    assert re.findall('<turn role="(.*)">', message) == ["system", "user", "assistant", "user"]
    assert surname not in message
