"""Answers that a test has written itself, over real HTTP."""

import pytest
from langchain_core.tools import tool

from langchain_svc import ChatSvc, SvcLLM, SvcServerError
from langchain_svc.sandbox import Fault, Sandbox, ToolCall


@tool
def stock(item: str) -> str:
    """How many of an item are there."""
    return f"12 of {item}"


def test_answers_are_played_in_order_and_then_the_rules_answer():
    with Sandbox(answers=["Yes.", "No."]) as s, ChatSvc(**s.v1) as model:
        assert [model.invoke("Is it so?").text for _ in range(2)] == ["Yes.", "No."]
        assert model.invoke("What is 2 + 2?").text == "2 + 2 = 4"
        s.answers = ["Once more."]
        assert len(s.answers) == 1
        assert "".join(chunk.text for chunk in model.stream("And now?")) == "Once more."
        assert s.answers == ()


@pytest.mark.parametrize("form", ["tags", "fenced"])
def test_a_call_is_written_in_the_form_that_the_prompt_asks_for(form):
    calls = [ToolCall("stock", {"item": "apple"}), ToolCall("stock", {"item": "pear"})]
    with Sandbox(answers=[calls[0], calls]) as s, ChatSvc(tool_format=form, **s.v1) as model:
        bound = model.bind_tools([stock])
        (made,) = bound.invoke("Hello").tool_calls
        assert (made["name"], made["args"]) == ("stock", {"item": "apple"})
        assert [made["args"]["item"] for made in bound.invoke("Hello").tool_calls] == [
            "apple",
            "pear",
        ]


def test_a_fault_takes_its_turn_and_spends_no_answer():
    faults = [Fault(status=503, headers={"Retry-After": "0"})] * 2
    with Sandbox(answers=[*faults, "Here."]) as s, ChatSvc(**s.v1) as model:
        answer = model.invoke("Are you there?")
        assert (answer.text, answer.response_metadata["retries"]) == ("Here.", 2)
        s.answers = ["Kept."]
        s.faults = [Fault(status=500)]
        with pytest.raises(SvcServerError):
            model.invoke("Are you there?", max_retries=0)
        s.faults = []
        assert model.list_models()
        assert model.invoke("Are you there?").text == "Kept."


def test_a_function_sees_the_request():
    def echo(request):
        return request.json["messages"][-1]["content"].upper()

    with Sandbox(answers=[echo, lambda _: ToolCall("stock")]) as s, ChatSvc(**s.v1) as model:
        assert model.invoke("say it").text == "SAY IT"
        assert model.bind_tools([stock]).invoke("Hello").tool_calls[0]["args"] == {}


def test_the_other_chat_and_max_tokens():
    with Sandbox(answers=["A text.", "one two three"]) as s:
        with SvcLLM(**s.general) as llm:
            assert llm.invoke("Hello") == "A text."
        with ChatSvc(max_tokens=2, **s.v1) as model:
            cut = model.invoke("Hello")
        assert (cut.text, cut.response_metadata["finish_reason"]) == ("one two", "length")


@pytest.mark.parametrize("wrong", [3, None, {"a": 1}, [3], b"bytes"])
def test_what_cannot_be_played_is_refused_at_once(wrong):
    with pytest.raises(TypeError, match="answers: expected a text, a ToolCall"):
        Sandbox(answers=[wrong])
