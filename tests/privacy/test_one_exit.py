"""An answer stays as it was written until its turn gives it out, and a name leaves only then."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.tools import tool
from peers import RawServer, Scripted, response, summed
from pydantic import BaseModel, Field
from share import pairs, part

import langchain_svc as svc
from langchain_svc.sandbox import Sandbox, ToolCall

NAMES = ["Anna Berg", *(f"Otto{letter} Lund{letter}" for letter in "bcdefghijkl"), "Jürgen Groß"]
VALUES = {"identifiers": ["MRN-48291734"], "telecoms": ["+49 30 1234567"], "dates": ["1950-03-04"]}
WRITTEN = [*NAMES, "MRN-48291734", "030 1234567", "1950-03-04"]
WAYS = ("invoke", "stream")


def people(**settings):
    """Pseudonyms that have hidden each of WRITTEN, and their marks."""
    pseudonyms = svc.Pseudonyms(names=NAMES, **VALUES, **settings)
    return pseudonyms, [pseudonyms.hide(text) for text in WRITTEN]


class Cut(Scripted):
    """Gives the parts of one answer, of which all but the last are cut."""

    def __call__(self, request):
        self.finish_reason = "stop" if len(self.answers) == 1 else "length"
        return super().__call__(request)


class Letter(BaseModel):
    """A letter."""

    name: str
    day: str


@tool
def give(patient: str, day: str, mg: int) -> str:
    """Give a drug."""
    return f"{patient} was given {mg} mg"


def asked(model, way):
    if way == "invoke":
        return model.invoke("?")
    return summed(model.stream("?"))


def as_text(model, way):
    message = asked(model, way)
    return message.text, message.response_metadata["finish_reason"]


def as_calls(model, way):
    message = asked(model.bind_tools([give]), way)
    return [call["args"] for call in message.tool_calls], message.text


def as_streamed_calls(model, way):
    return as_calls(model.model_copy(update={"stream_tool_args": True}), way)


def as_object(model, way):
    bound = model.with_structured_output(Letter)
    return bound.invoke("?") if way == "invoke" else [*bound.stream("?")][-1]


def call_of(patient, day):
    arguments = {"patient": patient, "day": day, "mg": 5}
    return f"<tool_call>\n{json.dumps({'name': 'give', 'arguments': arguments})}\n</tool_call>"


ANSWERS = {
    "text": (as_text, lambda name, day: f"Dear {name}, on {day} you come. Yours, [Dr. Who]"),
    "calls": (as_calls, lambda name, day: f"So be it.\n{call_of(name, day)}\n{call_of('x', day)}"),
    "streamed": (as_streamed_calls, call_of),
    "object": (as_object, lambda name, day: json.dumps({"name": f"{name} (f)", "day": day})),
}
MODES = {"mark": {}, "shift": {"shift_dates": True}}
ROWS = [(kind, way, mode) for kind in ANSWERS for way in WAYS for mode in MODES]


@pytest.mark.parametrize(("row", "step"), pairs(ROWS, [1, 3, 1000]))
def test_an_answer_that_is_cut_anywhere_is_the_whole_one(row, step):
    kind, way, mode = row
    read, write = ANSWERS[kind]
    plain = write(NAMES[11], "1950-03-04")
    whole = read(Scripted(plain).model(), way)
    pseudonyms, _ = people(**MODES[mode])
    hidden = write(pseudonyms.hide(NAMES[11]), pseudonyms.hide("1950-03-04"))
    for end in part(range(1, len(hidden)), step):
        service = Cut(hidden[:end], hidden[end:], step=step)
        model = service.model(pseudonyms=pseudonyms, on_cut="continue")
        try:
            answer = read(model, way)
        except svc.SvcOutputError as error:
            assert "cut off" in str(error) or "ended" in str(error)
            continue
        if kind == "text" and answer[1] == "length":  # it says that it is cut
            assert not [name for name in NAMES if name in answer[0] and name != NAMES[11]]
        else:
            assert answer == whole, (hidden[:end], hidden[end:])
        assert not named(service.asked)


def named(sent):
    """The names and numbers that stand in what was sent."""
    text = json.dumps(sent, ensure_ascii=False)
    return [value for value in WRITTEN if value in text]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", [1, 4, 1000])
def test_a_text_that_stays_cut_names_nobody_by_half_a_mark(way, step):
    pseudonyms, marks = people()
    for mark, value in zip(marks, WRITTEN, strict=True):
        for end in range(1, len(mark)):
            service = Scripted("For " + mark[:end], step=step, finish_reason="length")
            text, _ = as_text(service.model(pseudonyms=pseudonyms), way)
            assert text == "For " + mark[:end]
            restorer = pseudonyms.restorer()
            assert restorer.parse_chunk(mark[:end]) + restorer.close(cut=True) == mark[:end]
        assert pseudonyms.restore(f"For {mark}") == f"For {value}"


def test_no_mark_is_the_beginning_of_another():
    _, marks = people()
    assert not [pair for pair in itertools.permutations(marks, 2) if pair[1].startswith(pair[0])]


class Strict(BaseModel):
    """A letter with a small code."""

    name: str
    code: int = Field(le=5)


@pytest.mark.parametrize(
    "around", ["{}a", "L{}", "{}12", "{}akte", "{}ovi", "x{}y", "_{}_", "{}{}"]
)
@pytest.mark.parametrize("way", WAYS)
def test_what_was_given_out_is_never_sent_again(around, way):
    """A model writes letters and digits right beside a mark; the next requests show none of it."""
    pseudonyms, marks = people()
    mixed = " ".join(around.replace("{}", mark) for mark in marks)
    service = Scripted(json.dumps({"name": mixed, "code": 9}), '{"name": "x", "code": 1}', "end")
    model = service.model(pseudonyms=pseudonyms)
    as_strict = model.with_structured_output(Strict)
    if way == "invoke":
        as_strict.invoke("?")
    else:
        list(as_strict.stream("?"))
    assert len(service.asked) == 2
    model.invoke(pseudonyms.restore(mixed))
    assert not named(service.asked)


def test_an_agent_sends_no_name_back():
    pseudonyms, _ = people()
    call = ToolCall("give", {"patient": "[PERSON_12]akte [ID_1]b", "day": "x[DATE_1]", "mg": 1})
    with Sandbox(answers=[call, "[PERSON_12]ovi has it."]) as sandbox:
        agent = create_agent(svc.ChatSvc(pseudonyms=pseudonyms, **sandbox.v1), [give])
        state = agent.invoke({"messages": [("user", "Give it to Ottol Lundl.")]})
        assert state["messages"][1].tool_calls[0]["args"] == {
            "patient": "Ottol Lundlakte MRN-48291734b",
            "day": "x1950-03-04",
            "mg": 1,
        }
        assert state["messages"][-1].text == "Ottol Lundlovi has it."
        assert not named([request.json for request in sandbox.requests])


TEXTS = st.lists(
    st.sampled_from(
        [*WRITTEN, "a", " ", "-", "12", "akte", "Ä", "\n", "&uuml;", "%20", "<b>", "山"]
    ),
    max_size=12,
).map("".join)


@given(TEXTS, TEXTS)
def test_a_name_that_was_restored_is_hidden_in_any_text(before, behind):
    pseudonyms, marks = people()
    restored = [pseudonyms.restore(mark) for mark in marks]
    for value in restored:
        hidden = pseudonyms.hide(before + value + behind)
        assert value not in hidden
        assert pseudonyms.restore(hidden) == before + value + behind


def test_a_short_name_that_was_restored_is_hidden_as_a_word_only():
    pseudonyms = svc.Pseudonyms(names=["Ha Do"], identifiers=["12"])
    assert pseudonyms.restore(pseudonyms.hide("Mr Ha, 12")) == "Mr Ha, 12"
    assert pseudonyms.hide("Haemoglobin 120") == "Haemoglobin 120"


# -- fields and addresses ---------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["to", "role", "task", "language", "image", "Anna Berg"])
@pytest.mark.parametrize("interface", ["v1", "general"])
def test_no_field_is_exempt_by_its_name(key, interface):
    with Sandbox(strict=False) as sandbox:
        model = svc.ChatSvc(
            interface=interface,
            pseudonyms=people()[0],
            extra_body={"metadata": {key: ["Anna Berg"]}, "note": "MRN-48291734"},
            **(sandbox.v1 if interface == "v1" else sandbox.general),
        )
        model.invoke("x")
        assert not named([request.json for request in sandbox.requests])


def test_the_free_fields_of_the_medical_tools_are_text():
    with Sandbox() as sandbox:
        tools = {"pseudonyms": people()[0], "patient": None, **sandbox.medical}
        svc.SvcCancerRisk(**tools).invoke({"symptoms": "x", "imaging_type": "CT of Anna Berg"})
        svc.SvcMedicalConsult(**tools).invoke({"message": "x", "language": "Anna Berg"})
        assert len(sandbox.requests) == 2
        assert not named([request.json for request in sandbox.requests])


@pytest.mark.parametrize(
    "written", ["[ID_1]", "MRN-48291734", "MRN%2D48291734", "Anna-Berg", "a[ID_1]"]
)
def test_an_address_that_names_somebody_is_not_sent(written):
    pseudonyms, _ = people()
    address = f"https://images.example.com/?q={pseudonyms.restore(written)}"
    with Sandbox() as sandbox:
        tool = svc.SvcAnalyzeImage(pseudonyms=pseudonyms, **sandbox.general)
        with pytest.raises(svc.SvcRequestError, match="address of an image") as caught:
            tool.invoke({"image": address, "task": "describe"})
        assert not re.search("48291734|Berg", f"{caught.value!r}")
        assert not sandbox.requests
        tool.invoke({"image": "https://images.example.com/?q=1", "task": "describe"})


# -- bodies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("privacy", [None, "phi"])
@pytest.mark.parametrize(
    "body",
    [
        rb'{"choices":[{"message":{"content":"[PERSON_1] \ud83d"},"finish_reason":"stop"}]}',
        b"[" * 100_000,
        b'{"choices":[{"message":{"content":' + b"[" * 100_000,
    ],
    ids=["half a letter", "deep", "deeper"],
)
def test_every_body_is_an_answer_or_one_of_our_errors(body, privacy):
    with RawServer(lambda connection: connection.sendall(response(body))) as server:
        model = svc.ChatSvc(pseudonyms=people()[0], privacy=privacy, max_retries=0, **server.v1)
        (outcome,) = model.batch(["Anna Berg"], return_exceptions=True)
    if isinstance(outcome, Exception):
        assert isinstance(outcome, svc.SvcError)
        assert "Berg" not in repr(outcome)
    else:
        assert outcome.text.startswith("Anna Berg")
