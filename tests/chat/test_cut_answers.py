"""Answers that `max_tokens` cut off: they go on, are marked or are errors, and never pass for whole."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from itertools import pairwise

import pytest
from cut_answers import GOING_ON, SILENT, SURE, TALKING, answers, measure, real_texts, shown
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.tools import tool
from peers import Scripted, summed
from pydantic import BaseModel
from share import fewer, part

import langchain_svc as svc
from langchain_svc._text import Joint, ask_for_rest
from langchain_svc.sandbox import Sandbox, ToolCall

ASKED = "Your answer was cut off behind these words:"
LONG = (
    "Seven silent engineers measure rivers and write reports about bridges. Then they go home, "
    "while the weather turns and two brown foxes jump over a lazy dog. Nobody listens to music."
)
WRITE = {"path": "a.txt", "text": LONG}
CALL = f"<tool_call>\n{json.dumps({'name': 'write', 'arguments': WRITE})}\n</tool_call>"
SHORT = "Half of it."


@tool
def write(path: str, text: str) -> str:
    """Write a file."""
    return f"{len(text)} characters in {path}"


class Report(BaseModel):
    """A report."""

    title: str
    text: str


REPORT = Report(title="Rivers", text=LONG)


class Cut(Scripted):
    """Gives these parts of one answer; all but the last are cut, or the last one, too.

    Where it is shown the last words, it writes them again before the next part, unless that is to
    be taken as it is (`exactly`).
    """

    def __init__(self, *parts, whole=True, reason="length", exactly=False, **settings):
        super().__init__(*parts, **settings)
        self.reason = reason
        self.whole = whole
        self.exactly = exactly
        self.ends = []  # why each answer ends, where that is not by its place

    def __call__(self, request):
        turns = json.loads(request.content)["messages"]
        if ASKED in turns[-1]["content"] and not self.exactly:
            self.answers[0] = shown(turns[-2]["content"]) + self.answers[0]
        is_last = len(self.answers) == 1
        self.finish_reason = "stop" if is_last and self.whole else self.reason
        if self.ends:
            self.finish_reason = self.ends.pop(0)
        return super().__call__(request)


def parts(text, *ends):
    places = [0, *ends, len(text)]
    return [text[begin:end] for begin, end in pairwise(places)]


def read(model, way):
    return model.invoke("?") if way == "invoke" else summed(model.stream("?"))


WAY = ["invoke", "stream"]
WAYS = pytest.mark.parametrize("way", WAY)


# -- the settings -----------------------------------------------------------------------------------


@WAYS
def test_a_call_goes_on_and_a_text_is_marked(way):
    service = Cut(*parts("I write it.\n" + CALL, 60, 150))
    message = read(service.model().bind_tools([write]), way)
    assert [call["args"] for call in message.tool_calls] == [WRITE]
    assert (message.content, message.invalid_tool_calls) == ("I write it.", [])
    assert message.response_metadata["finish_reason"] == "tool_calls"
    assert message.response_metadata["continuations"] == 2
    assert message.usage_metadata["total_tokens"] == 45
    text = read(Cut(SHORT, "No more.").model(), way)
    assert (text.content, text.response_metadata["finish_reason"]) == (SHORT, "length")
    assert "continuations" not in text.response_metadata


@WAYS
def test_the_model_is_shown_its_answer_and_told_to_go_on(way):
    service = Cut(*parts(CALL, 60, 150))
    read(service.model().bind_tools([write]), way)
    for number, end in ((1, 60), (2, 150)):
        *before, begun, order = service.asked[number]
        assert before == service.asked[0]
        assert begun == {"role": "assistant", "content": CALL[:end]}
        assert order["role"] == "user"
        told, *words, request = order["content"].split("\n")
        assert (told, request[:23]) == (ASKED, "Write these words again")
        assert CALL[:end].endswith("\n".join(words))


@WAYS
def test_an_object_goes_on(way):
    service = Cut(*parts(REPORT.model_dump_json(), 30))
    chain = service.model().with_structured_output(Report)
    value = chain.invoke("?") if way == "invoke" else [*chain.stream("?")][-1]
    assert value == REPORT


def test_objects_stream_on_over_the_cut():
    service = Cut(*parts(REPORT.model_dump_json(), 30, 90), step=10)
    schema = {"title": "Report", **Report.model_json_schema()}
    values = [*service.model().with_structured_output(schema).stream("?")]
    assert len(values) > 5
    assert values[-1] == REPORT.model_dump()
    sizes = [len(value.get("text") or "") for value in values]
    assert sizes == sorted(sizes)


@WAYS
def test_a_text_goes_on_where_that_is_asked_for(way):
    service = Cut(*parts(LONG, 50, 120))
    message = read(service.model(on_cut="continue"), way)
    assert (message.content, message.response_metadata["finish_reason"]) == (LONG, "stop")
    assert message.response_metadata["continuations"] == 2


@WAYS
def test_mark_goes_on_with_nothing_and_says_that_a_call_was_cut_off(way):
    service = Cut(f"I write it.\n{CALL[:80]}", "No more.")
    message = read(service.model(on_cut="mark").bind_tools([write]), way)
    assert (len(service.asked), message.tool_calls) == (1, [])
    assert len(message.invalid_tool_calls) == 1
    assert message.content == "I write it.\n\n[a call of write was cut off, and nothing was run]"
    assert message.response_metadata["finish_reason"] == "length"


@WAYS
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_error_raises_with_what_came(way, reason):
    for text in (SHORT, CALL[:80]):
        service = Cut(text, "No more.", reason=reason)
        with pytest.raises(svc.SvcOutputError, match="was cut off") as raised:
            read(service.model(on_cut="error").bind_tools([write]), way)
        assert (raised.value.raw, len(service.asked)) == (text, 1)
        assert raised.value.usage["total_tokens"] == 15


def test_the_settings_hold_for_one_call_too():
    service = Cut(*parts(LONG, 50))
    assert service.model().invoke("?", on_cut="continue", max_continuations=1).content == LONG
    assert Cut(*parts(LONG, 50)).model(on_cut="continue").invoke("?", on_cut="mark").content != LONG


@pytest.mark.parametrize(
    "how",
    [{"on_cut": "resume"}, {"on_cut": True}, {"max_continuations": -1}, {"continue_by": "magic"}],
)
def test_what_the_settings_do_not_take_is_refused(how):
    (name,) = how
    with pytest.raises(ValueError, match=name):
        svc.ChatSvc(api_key="k", base_url_v1="https://svc.example/v1", **how)
    with pytest.raises(svc.SvcRequestError, match=f"{name} must be"):
        Scripted().model().invoke("?", **how)


@WAYS
@pytest.mark.parametrize("echoes", [False, True])
def test_a_service_goes_on_from_the_last_turn_where_that_is_said(way, echoes):
    text = f"I write it.\n{CALL}"
    places = [0, 60, 150, len(text)]
    told = [text[0 if echoes else begin : end] for begin, end in pairwise(places)]
    service = Cut(*told)
    message = read(service.model(continue_by="prefill").bind_tools([write]), way)
    assert [call["args"] for call in message.tool_calls] == [WRITE]
    for number, end in ((1, 60), (2, 150)):
        *before, begun = service.asked[number]
        assert before == service.asked[0]
        assert begun == {"role": "assistant", "content": text[:end]}


def test_the_sandbox_goes_on_from_the_last_turn_too(sandbox):
    sandbox.answers = [LONG]
    with svc.ChatSvc(**sandbox.v1, on_cut="continue", continue_by="prefill") as model:
        message = model.invoke("?", max_tokens=20)
    assert message.content == LONG
    assert message.response_metadata["continuations"] > 1


def test_one_text_has_no_last_turn_and_asks():
    text = f"I write it.\n{CALL}"
    with Sandbox(answers=[text[:90], "No."]) as box:
        general = {**box.general, "interface": "general", "model": None}
        with svc.ChatSvc(**general, continue_by="prefill", max_repairs=0) as model:
            model.bind_tools([write]).invoke("?")
        assert ASKED in box.requests[1].body.decode()


@WAYS
def test_the_model_sees_its_own_text_as_it_wrote_it(way):
    """But for what a server may read as the end of a turn; the words it is shown are defused."""
    begun = f"{LONG}\n<image href='a.png'><|im_end|><schema> of a drawing that is here and"
    service = Cut(begun, " there.", exactly=True)
    read(service.model(on_cut="continue"), way)
    *_, own, asked = service.asked[1]
    assert own["content"] == begun.replace("<|", "&lt;|")
    assert "<image" not in asked["content"]
    assert "<schema" not in asked["content"]


# -- where it ends ----------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("how", [{}, {"on_cut": "continue"}])
def test_a_call_that_stays_cut_off_is_an_error_and_an_agent_never_ends_empty(way, how):
    half = CALL[:-40]
    service = Cut(*parts(half, 60, 90, 120), whole=False)
    with pytest.raises(svc.SvcOutputError, match="inside a call of write") as raised:
        read(service.model(max_repairs=0, **how).bind_tools([write]), way)
    assert len(service.asked) == 4
    assert raised.value.raw == half
    assert raised.value.usage["total_tokens"] == 60


@WAYS
@pytest.mark.parametrize("how", [{}, {"on_cut": "continue"}])
def test_a_call_too_long_for_all_parts_is_asked_for_in_parts_once(way, how):
    half = CALL[:-40]
    short = CALL.replace(LONG, "Seven silent engineers.")
    model = partial(Cut, *parts(half, 60, 90, 120))
    service = model(short)
    service.ends = ["length"] * 4 + ["stop"]
    message = read(service.model(**how).bind_tools([write]), way)
    assert [call["args"]["text"] for call in message.tool_calls] == ["Seven silent engineers."]
    *_, told = service.asked[4]
    assert told["content"].startswith("?\n\n") or "?\n\nAn answer to this" in told["content"]
    assert told["content"].endswith(
        "An answer to this could not be used: its call was too long for one answer and was cut off. "
        "Write it in parts: several calls, each of them shorter."
    )
    assert not any(turn["role"] == "assistant" for turn in service.asked[4])
    again = model(*parts(half, 60, 90, 120), whole=False)
    with pytest.raises(svc.SvcOutputError, match="inside a call of write"):
        read(again.model(**how).bind_tools([write]), way)
    assert len(again.asked) == 8


@WAYS
def test_a_filtered_call_is_not_asked_for_in_parts(way):
    service = Cut(CALL[:90], whole=False, reason="content_filter")
    with pytest.raises(svc.SvcOutputError, match="inside a call of write"):
        read(service.model().bind_tools([write]), way)
    assert len(service.asked) == 1


def test_an_object_that_stays_cut_off_is_an_error():
    text = REPORT.model_dump_json()[:100]
    service = Cut(*parts(text, 30, 60, 90), whole=False)
    with pytest.raises(svc.SvcOutputError, match="cut off") as raised:
        service.model().with_structured_output(Report).invoke("?")
    assert raised.value.raw == text
    assert raised.value.usage["total_tokens"] == 60


@WAYS
@pytest.mark.parametrize("again", [CALL[:100], CALL[:95], CALL.replace("Seven", "Three")[:104]])
def test_a_call_that_is_begun_anew_and_cut_again_is_not_asked_for_once_more(way, again):
    service = Cut(CALL[:100], again, whole=False, exactly=True)
    model = service.model(on_cut="continue", max_continuations=9, max_repairs=0)
    with pytest.raises(svc.SvcOutputError, match="inside a call of write"):
        read(model.bind_tools([write]), way)
    assert len(service.asked) == 2


SCHEMA = json.dumps(Report.model_json_schema())
COPIES = {
    "this is the form": '{"title": "<string>", "text": "<str',
    "this is the schema": '{"title": "Report", "description": "A report.", "properties": {"ti',
    "this is the schema itself": f"Here it is:\n```json\n{SCHEMA[:-30]}",
    "<string> is a placeholder": '{\n  "title": "<string>",\n  "te',
}


@WAYS
@pytest.mark.parametrize("how", [{}, {"on_cut": "continue"}])
@pytest.mark.parametrize("what", COPIES)
def test_a_cut_copy_of_what_was_asked_for_is_asked_anew(way, how, what):
    """Its rest would be a copy, too. A new answer may be cut as well, and goes on."""
    service = Cut(COPIES[what], *parts(REPORT.model_dump_json(), 30))
    chain = service.model(**how).with_structured_output(Report)
    assert (chain.invoke("?") if way == "invoke" else [*chain.stream("?")][-1]) == REPORT
    told = [turns[-1]["content"] for turns in service.asked]
    problem = told[1].removeprefix(f"{told[0]}\n\nAn answer to this could not be used:\n- answer")
    assert what in problem.splitlines()[0]
    assert told[2].startswith(ASKED)


def test_a_copy_beside_tools_is_asked_anew_too():
    service = Cut(COPIES["this is the form"], REPORT.model_dump_json())
    bound = service.model().bind_tools([write], response_format=Report)
    assert bound.invoke("?").additional_kwargs["parsed"] == REPORT
    assert "An answer to this could not be used:" in service.asked[1][-1]["content"]


def test_nothing_but_copies_is_an_error():
    service = Cut(*[COPIES["this is the form"]] * 3, whole=False)
    with pytest.raises(svc.SvcOutputError, match="cut off") as raised:
        service.model(max_repairs=2).with_structured_output(Report).invoke("?")
    assert (raised.value.raw, len(service.asked)) == (COPIES["this is the form"], 3)


@WAYS
def test_a_text_that_stays_cut_off_is_marked(way):
    service = Cut(*parts(LONG, 50, 90), whole=False)
    message = read(service.model(on_cut="continue", max_continuations=2), way)
    assert (message.content, message.response_metadata["finish_reason"]) == (LONG, "length")


@WAYS
def test_no_continuation_where_none_is_allowed(way):
    service = Cut(CALL[:80], whole=False)
    with pytest.raises(svc.SvcOutputError, match="inside a call of write"):
        read(service.model(max_continuations=0, max_repairs=0).bind_tools([write]), way)
    assert len(service.asked) == 1


@WAYS
def test_a_filtered_answer_does_not_go_on(way):
    service = Cut(SHORT, whole=False, reason="content_filter")
    message = read(service.model(on_cut="continue"), way)
    assert (message.content, message.response_metadata["finish_reason"]) == (
        SHORT,
        "content_filter",
    )


def test_a_model_that_adds_nothing_is_not_asked_for_ever():
    service = Cut(LONG[:50], "", whole=False)
    message = service.model(on_cut="continue", max_continuations=9).invoke("?")
    assert (message.content, len(service.asked)) == (LONG[:50], 2)


@WAYS
def test_a_call_that_just_ends_goes_on_too(way):
    """A server that does not say "length" cuts answers as well."""
    service = Cut(*parts(CALL, 80), reason="stop")
    message = read(service.model().bind_tools([write]), way)
    assert [call["args"] for call in message.tool_calls] == [WRITE]


@WAYS
def test_the_call_behind_a_whole_one_is_not_lost(way):
    """Cut between two calls: the first alone would be half of what the model meant."""
    both = f"{CALL}\n{CALL.replace('a.txt', 'b.txt')}"
    service = Cut(*parts(both, len(CALL) + 1))
    message = read(service.model().bind_tools([write]), way)
    assert [call["args"]["path"] for call in message.tool_calls] == ["a.txt", "b.txt"]


@WAYS
def test_a_thought_without_an_answer_goes_on_in_an_agent(way):
    service = Cut("<think>The user wants ", f"a file.</think>{CALL}")
    message = read(service.model().bind_tools([write]), way)
    assert len(message.tool_calls) == 1
    silent = Cut("<think>The user wants ", "to know ", whole=False)
    with pytest.raises(svc.SvcOutputError, match="ended before it said anything"):
        read(silent.model(max_continuations=1).bind_tools([write]), way)


@WAYS
@pytest.mark.parametrize(
    "text", [f"I write it.\n{CALL}", f"{CALL}\n{CALL.replace('a.txt', 'b.txt')}"]
)
def test_a_call_that_is_cut_anywhere_goes_on_or_is_an_error(way, text):
    count = text.count("<tool_call>")
    begin = text.index("<tool_call>") + 1
    ends = [end for end in range(begin, len(text)) if ask_for_rest(text[:end])]
    assert len(ends) > len(text) - begin - 20  # only the first few letters are too few
    for end in part(ends, WAY.index(way)):
        service = Cut(*parts(text, end))
        message = read(service.model().bind_tools([write]), way)
        assert len(message.tool_calls) == count, text[:end]
        assert message.invalid_tool_calls == []
        alone = (
            Cut(text[:end], whole=False)
            .model(max_continuations=0, max_repairs=0)
            .bind_tools([write])
        )
        try:
            message = read(alone, way)
        except svc.SvcOutputError:
            continue
        assert message.tool_calls, text[:end]  # whole ones, which came before the cut


DELETE = {"path": "/data/old", "mode": "recursive", "dry_run": True}
DELETES = [
    f"<tool_call>\n{json.dumps({'name': 'delete', 'arguments': DELETE})}\n</tool_call>",
    json.dumps({"name": "delete", "arguments": DELETE}),
    "<function=delete><parameter=path>/data/old</parameter><parameter=dry_run>true</parameter></function>",
    "[delete(path='/data/old', mode='recursive', dry_run=True)]",
]


@pytest.mark.parametrize("call", DELETES)
def test_a_call_never_runs_shortened_where_nothing_says_that_it_is_cut(call):
    """The general interface has no finish_reason, and some servers say "stop" whatever happened."""
    keys = {key: {"type": "string"} for key in ("path", "mode")} | {"dry_run": {"type": "boolean"}}
    delete = {"name": "delete", "parameters": {"type": "object", "properties": keys}}
    for end in part(range(call.index("/data"), len(call)), len(call)):
        with Sandbox(answers=lambda _, text=call[:end]: text, keep=0) as box:
            for how in (box.v1, {**box.general, "interface": "general", "model": None}):
                with svc.ChatSvc(**how, max_continuations=1, max_repairs=1) as model:
                    calls = model.bind_tools([delete]).invoke("?").tool_calls
                assert all(made["args"].get("dry_run") for made in calls), call[:end]


# -- streams, agents and accounts -------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 5, 1000])
def test_arguments_stream_on_over_the_cut(step):
    service = Cut(*parts(CALL, 80, 150), step=step)
    bound = service.model(stream_tool_args=True).bind_tools([write])
    message = summed(bound.stream("?"))
    assert [call["args"] for call in message.tool_calls] == [WRITE]
    assert len({call["id"] for call in message.tool_calls}) == 1


@pytest.mark.parametrize("step", [1, 5, 1000])
@pytest.mark.parametrize("way", GOING_ON)
def test_a_stream_gives_what_the_whole_answer_is(step, way):
    texts = [text for kind, text in answers(4) if kind == "text"]
    for text in texts:
        end = len(text) // 2
        told = [text[:end], GOING_ON[way](text[:end], text[end:])]
        message = Cut(*told, exactly=True).model(on_cut="continue").invoke("?")
        stream = Cut(*told, exactly=True, step=step).model(on_cut="continue").stream("?")
        summary = summed([*stream])
        reason = message.response_metadata["finish_reason"]
        assert summary.response_metadata["finish_reason"] == reason
        assert summary.content == message.content == (text if reason == "stop" else text[:end])
        assert way not in SURE or reason == "stop"
        assert way not in SILENT or reason == "length"


def test_a_new_answer_replaces_the_one_that_was_cut_off():
    new = f"{LONG[:60]}walk along the river instead."
    service = Cut(LONG[:101], new, exactly=True)
    assert service.model(on_cut="continue").invoke("?").content == new
    # A stream has given its first words away. It keeps them, and says that they are not all.
    stream = summed(Cut(LONG[:101], new, exactly=True).model(on_cut="continue").stream("?"))
    assert stream.content == LONG[:101]
    assert stream.response_metadata["finish_reason"] == "length"


@WAYS
def test_a_call_that_is_begun_anew_is_made_once(way):
    other = CALL.replace("Seven silent", "Three loud")
    service = Cut(f"I write it.\n{CALL[:120]}", f"I write it.\n{other}", exactly=True)
    message = read(service.model().bind_tools([write]), way)
    assert [call["args"]["text"][:10] for call in message.tool_calls] == ["Three loud"]
    assert message.content == "I write it."


def test_an_agent_writes_a_file_that_is_longer_than_an_answer(sandbox):
    sandbox.answers = [ToolCall("write", WRITE), "It is written."]
    with svc.ChatSvc(**sandbox.v1, max_tokens=40) as model:
        agent = create_agent(model, [write])
        messages = agent.invoke({"messages": [("user", "Write it.")]})["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert messages[1].response_metadata["continuations"] == 2
    assert messages[2].content == f"{len(LONG)} characters in a.txt"
    assert messages[3].content == "It is written."


def test_an_agent_writes_in_parts_what_is_too_long_for_all_of_them(sandbox):
    half = {"path": "a.txt", "text": LONG[:40]}
    sandbox.answers = [
        ToolCall("write", {"path": "a.txt", "text": LONG * 9}),
        ToolCall("write", half),
        "It is written.",
    ]
    with svc.ChatSvc(**sandbox.v1, max_tokens=60) as model:
        agent = create_agent(model, [write])
        messages = agent.invoke({"messages": [("user", "Write it.")]})["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert messages[1].tool_calls[0]["args"] == half
    assert messages[3].content == "It is written."


def test_the_rules_of_the_sandbox_go_on_too(sandbox):
    with svc.ChatSvc(**sandbox.v1) as model:
        whole = model.invoke("Say something about rivers.").content
        message = model.invoke(
            "Say something about rivers.", max_tokens=25, on_cut="continue", max_continuations=9
        )
    assert message.content == whole
    assert message.response_metadata["continuations"] > 0


def test_a_budget_holds_over_all_parts():
    service = Cut(*parts(CALL, 60, 150))
    with svc.SvcBudget(max_requests=2), pytest.raises(svc.SvcBudgetError):
        service.model().bind_tools([write]).invoke("?")
    assert len(service.asked) == 2


# -- the joint --------------------------------------------------------------------------------------


def test_an_answer_cut_anywhere_comes_out_whole_or_says_that_it_is_cut():
    """`python tests/chat/cut_answers.py 500` tries the same with 500 answers."""
    verdicts, wrong = measure(fewer(8), GOING_ON)
    assert {name: rows for name, rows in wrong.items() if rows} == {}
    for name in ("repeats what it was shown", "begins anew"):
        assert verdicts[name]["whole"] >= 0.98 * verdicts[name].total(), verdicts
    for name in SILENT:
        assert verdicts[name]["cut"] >= 0.98 * verdicts[name].total(), verdicts


def joined(before, pieces, *, inside=False, exact=False):
    """The text, and whether the new part was refused."""
    joint = Joint(before, inside=inside, exact=exact)
    new = "".join(map(joint.join_chunk, pieces)) + joint.end_part()
    return new if joint.anew else before + new, joint.refused


WINDOW = 3_000  # characters of a real text


def cut_places():
    """Real texts as far as they are there, and what is left of them."""
    for row, text in enumerate(real_texts()):
        for begin in range(0, len(text) - WINDOW, WINDOW):
            whole = text[begin : begin + WINDOW]
            for end in part(range(200, WINDOW - 100, 23), row):
                if ask_for_rest(whole[:end]):
                    yield whole, end


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("way", GOING_ON)
def test_a_real_text_cut_anywhere_is_whole_or_stays_as_it_is(way, inside):
    """But for one in thousands, where the text itself says twice what stands before the cut."""
    found = Counter()
    for whole, end in cut_places():
        begun, rest = whole[:end], whole[end:]
        text, refused = joined(begun, [GOING_ON[way](begun, rest)], inside=inside)
        is_cut = refused or text.rstrip() == begun.rstrip()
        assert not refused or text == begun
        if not is_cut and text != whole:
            *_, line, cut_line = begun.split("\n")
            says_twice = whole.count(line) > 1 or whole.count(cut_line) > 1
            assert says_twice, "nothing else may be joined wrongly"
        found["cut" if is_cut else "whole" if text == whole else "wrong"] += 1
    assert found.total() > 20
    assert found["wrong"] <= 1 + found.total() / 2_000
    if way in SILENT or (inside and way in TALKING):
        assert found["whole"] == 0
    elif way in SURE:
        assert found["whole"] >= 0.9 * found.total()


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    "before", ["Take 1", f"{LONG} Take 1", '{"name": "give", "arguments": {"mg": "1']
)
@pytest.mark.parametrize(
    "after", ["...2 tablets.", "2 tablets.", "… 2 tablets", "```\n2 tablets\n```"]
)
def test_nothing_is_dropped_and_nothing_joined_without_evidence(before, after, inside):
    assert joined(before, [after], inside=inside) == (before, True)
    assert joined(before, [after], inside=inside, exact=True) == (before + after, False)


LINES = st.lists(st.text('ab |-*.\n`{}",é猫', max_size=30), max_size=6).map("\n".join)


@given(before=LINES, after=LINES, way=st.sampled_from([*GOING_ON]), inside=st.booleans(),
       exact=st.booleans(), data=st.data())  # fmt: skip
def test_a_joint_is_the_same_for_every_cut_and_adds_nothing(
    before, after, way, inside, exact, data
):
    before = data.draw(st.sampled_from([before, LONG + before, before + LONG]))
    after = GOING_ON[way](before, after)
    ends = sorted(data.draw(st.lists(st.integers(0, len(after)), max_size=6)))
    text, refused = joined(before, [after], inside=inside, exact=exact)
    assert joined(before, parts(after, *ends), inside=inside, exact=exact) == (text, refused)
    assert joined(before, after, inside=inside, exact=exact) == (text, refused)
    assert text.removeprefix(before) in after


@pytest.mark.parametrize(
    ("before", "after", "whole"),
    [
        (LONG[:60], f"{LONG[30:60]} mountains.", f"{LONG[:60]} mountains."),
        (LONG[:60], f"\n\n{LONG[:60]} mountains.", f"{LONG[:60]} mountains."),
        (f"{LONG[:60]}, ", f"{LONG[:60]}, mountains.", f"{LONG[:60]}, mountains."),
        (f"{LONG[:60]}\n", f"{LONG[30:60]}\n    x", f"{LONG[:60]}\n    x"),
        (LONG[:60], f"Sure:\n\n{LONG[:70]}", LONG[:70]),
        (LONG[:60], f'"{LONG[:70]}', LONG[:70]),
        (LONG[:60], f"Sure: {LONG[:70]}", None),
        (LONG[:60], LONG[60:], None),
        (LONG[:60], LONG[:60], None),
        (LONG[:60], LONG[:50], None),
        (LONG[:60], "", None),
        ("word " * 50, "word " * 70, "word " * 70),
        ("word " * 70, "word " * 90, None),
    ],
)  # fmt: skip
def test_where_an_answer_goes_on(before, after, whole):
    service = Cut(before, after, exactly=True)
    message = service.model(on_cut="continue").invoke("?")
    assert message.content == (whole or before)
    assert message.response_metadata["finish_reason"] == ("stop" if whole else "length")


def test_a_joint_costs_what_its_length_does():
    """Counted: a long answer that is written anew, letter by letter, is compared a few times only."""
    before = "".join(f"Line {n} of a long answer.\n" for n in range(3_000))
    joint = Joint(before)
    looks = []
    find_start = joint._start_of_new

    def counted(text, *, final):
        looks.append(len(text))
        return find_start(text, final=final)

    joint._start_of_new = counted
    assert "".join(map(joint.join_chunk, f"{before}The end.")) + joint.end_part() == "The end."
    assert sum(looks) < 20 * len(before)
