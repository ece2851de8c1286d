"""Rows in, one result each out, whatever happens on the way."""

import asyncio
import os
import random
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest
from langchain_core.language_models.llms import BaseLLM
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import Generation, LLMResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel
from share import pairs, part

import langchain_svc as svc
from langchain_svc import bulk
from langchain_svc.bulk.journal import Journal
from langchain_svc.quota.limiter import BULK_JOB
from langchain_svc.sandbox import Fault


def questions(sandbox):
    """How often each question reached the sandbox."""
    return Counter(received.json["messages"][-1]["content"] for received in sandbox.requests)


def echo(value):
    return f"<{value}>"


# -- what comes out ---------------------------------------------------------------------------------


def test_every_row_has_its_result(chat, prompts, written):
    report = bulk.run(chat, prompts(40), journal="j", output="out.jsonl")
    assert (report.done, report.failed, report.asked) == (40, 0, 40)
    rows = {row["id"]: row for row in written()}
    assert len(rows) == 40
    assert rows["r21"]["content"] == "21 * 2 = 42"
    assert rows["r21"]["error"] is None
    assert rows["r21"]["usage"].keys() == {"input_tokens", "output_tokens", "total_tokens"}
    assert report.total_tokens == sum(row["usage"]["total_tokens"] for row in rows.values()) > 0


def test_results_are_in_the_inputs_order_on_request(folder, written):
    asked = []
    all_are_asked = asyncio.Event()

    async def slow_first(text):
        asked.append(text)
        if len(asked) == 6:
            all_are_asked.set()
        if text == "0":
            await all_are_asked.wait()
            await asyncio.sleep(0.2)
        return text

    rows = [{"id": n, "prompt": str(n)} for n in range(6)]
    runnable = RunnableLambda(slow_first)
    report = bulk.run(runnable, rows, journal="j", output="out.jsonl")
    assert [row["id"] for row in written()][-1] == 0, "as they finished"
    bulk.run(runnable, rows, journal="j", output="out.jsonl", ordered=True)
    assert [row["id"] for row in written()] == list(range(6))
    assert list(report.results()) == written() == list(bulk.results("j"))


def test_a_second_run_asks_what_is_new_and_writes_the_file_again(
    chat, sandbox, prompts, written, folder
):
    bulk.run(chat, prompts(5), journal="j", output="out.jsonl")
    (folder / "out.jsonl").write_text("somebody's note")
    report = bulk.run(chat, prompts(7), journal="j", output="out.jsonl")
    assert (report.done, report.asked, len(written())) == (7, 2, 7)
    assert set(questions(sandbox).values()) == {1}


async def test_both_versions_work_where_an_event_loop_runs(chat, prompts):
    assert (await bulk.arun(chat, prompts(4), journal="j")).done == 4
    assert bulk.run(chat, prompts(6), journal="j").asked == 2


SUM = {"title": "Sum", "type": "object", "properties": {"total": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("made", "row", "content"),
    [
        (
            lambda chat: (
                ChatPromptTemplate.from_template("What is {a} * {b}?") | chat | StrOutputParser()
            ),
            {"input": {"a": 6, "b": 7}},
            "6 * 7 = 42",
        ),
        (
            lambda chat: chat.with_structured_output(SUM),
            {"prompt": "The total is 12."},
            {"total": 12},
        ),
    ],
    ids=["chain", "object"],
)
def test_a_runnable_has_its_tokens_counted(made, row, content, chat, folder):
    (found,) = bulk.run(made(chat), [row], journal="j").results()
    assert found["content"] == content
    assert found["usage"]["total_tokens"] > 0


def test_a_part_that_only_blocks_runs_on_that_many_threads(folder):
    together = threading.Barrier(12)

    def meet(text):
        together.wait(10)
        return text

    rows = [str(n) for n in range(12)]
    assert bulk.run(RunnableLambda(meet), rows, journal="j", concurrency=12).done == 12


# -- errors of rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", part(range(12)))
def test_each_row_has_one_result_whatever_becomes_of_the_runs(seed, folder):
    """Rows that fail for good or once, bad rows, ids twice, runs that end early, inputs that grow."""
    chance = random.Random(seed)
    rows, asked = [], Counter()
    for number in range(1, 60):
        text = chance.choice(["good", "good", "good", "never", "once", "later"]) + f" {number}"
        key = chance.choice([number, number, f"id {number}", f"id {number - 5}"])
        rows.append(chance.choice([{"id": key, "prompt": text}] * 5 + [{"id": key, "text": text}]))

    def ask(text):
        asked[text] += 1
        fate = text.partition(" ")[0]
        if fate == "never" or (fate in {"once", "later"} and asked[text] == 1):
            raise (
                ValueError(fate)
                if fate != "later"
                else svc.SvcAuthenticationError("a withdrawn key")
            )
        return text

    done = False
    while not done:
        some = rows if chance.random() < 0.5 else rows[: max(40, chance.randrange(60))]
        with suppress(svc.SvcAuthenticationError, svc.SvcRequestError):
            report = bulk.run(
                RunnableLambda(ask),
                iter(some),
                journal="j",
                concurrency=chance.choice([1, 4]),
                retry_errors=chance.random() < 0.5,
            )
            done = report.done + report.failed == len(rows)
    bulk.run(RunnableLambda(ask), rows, journal="j", retry_errors=True)
    found = list(bulk.results("j"))
    first = {repr(row["id"]): n for n, row in reversed(list(enumerate(rows)))}
    for number, (row, one) in enumerate(zip(rows, found, strict=True)):
        assert one["id"] == row["id"]
        text = row.get("prompt", "")
        if first[repr(row["id"])] != number and text:
            assert "its id is that of row" in one["error"]["message"]
        elif text and not text.startswith("never"):
            assert (one["content"], one["error"]) == (text, None)
            assert asked[text] == 1 + text.startswith(("once", "later"))
        else:
            assert one["error"]["type"] in {"ValueError", "BadRow"}


def test_an_answer_that_json_cannot_hold_is_an_error(folder):
    report = bulk.run(RunnableLambda(float), ["nan", "1"], journal="j")
    assert (report.done, report.failed) == (1, 1)


# -- cut answers ------------------------------------------------------------------------------------

LONG = "word " * 9_000
BOTH = {"a": RunnableLambda(lambda _: "short"), "b": RunnableLambda(lambda text: text)}


@pytest.mark.parametrize(
    "made",
    [
        lambda chat: chat,
        lambda chat: chat | StrOutputParser(),
        lambda chat: chat | StrOutputParser() | RunnableParallel(BOTH),
        lambda chat: chat | RunnableLambda(lambda message: AIMessage(message.text)),
        lambda chat: chat | RunnableLambda(lambda message: {"messages": [message]}),
    ],
    ids=["message", "text", "object", "message made anew", "state"],
)
def test_a_cut_answer_is_a_failed_row_with_its_text(made, chat, sandbox, folder, written):
    sandbox.answers = [LONG, "short"]
    rows = [{"id": "long", "prompt": "a"}, {"id": "short", "prompt": "b"}]
    report = bulk.run(made(chat), rows, journal="j", output="out.jsonl", concurrency=1)
    assert (report.done, report.failed, report.cut) == (1, 1, 1)
    long, short = written()
    assert long.keys() == {"row", "id", "content", "usage", "finish_reason", "error"}
    assert (long["row"], long["id"], long["finish_reason"]) == (1, "long", "length")
    assert long["error"]["type"] == "cut"
    assert "max_tokens" in long["error"]["message"]
    assert "word word" in str(long["content"])
    assert (short["finish_reason"], short["error"]) == ("stop", None)


def test_a_cut_object_is_a_cut_row(chat, sandbox, folder):
    sandbox.answers = ['{"total": ' + "1" * 45_000] * 9
    (row,) = bulk.run(chat.with_structured_output(SUM), ["x"], journal="j").results()
    assert row["error"]["type"] == "cut"
    assert row["content"].startswith('{"total": 111')


def test_a_whole_object_is_whole_whatever_is_written_behind_it(chat, sandbox, folder):
    sandbox.answers = ['{"total": 12}\n' + LONG]
    report = bulk.run(chat.with_structured_output(SUM), ["x"], journal="j")
    assert [row["content"] for row in report.results()] == [{"total": 12}]
    assert report.cut == 0


@pytest.mark.parametrize(
    ("metadata", "cut"),
    [
        ({"finish_reason": "MAX_TOKENS"}, True),
        ({"stop_reason": "max_tokens"}, True),
        ({"done_reason": "length"}, True),
        ({"finish_reason": "stop", "continuations": 2}, False),
        ({}, False),
    ],
)
def test_other_models_say_it_in_their_words(metadata, cut, folder):
    model = RunnableLambda(lambda text: AIMessage(text, response_metadata=metadata))
    report = bulk.run(model, ["half"], journal="j")
    assert (report.done, report.cut) == (not cut, cut)


class TextModel(BaseLLM):
    """One of another package."""

    _llm_type = "text"

    def _generate(self, prompts, stop=None, run_manager=None, **kwargs):
        half = Generation(text="half", generation_info={"finish_reason": "length"})
        return LLMResult(generations=[[half] for _ in prompts])


def test_a_text_model_of_another_package_says_it_too(folder):
    report = bulk.run(TextModel(), ["x"], journal="j")
    assert (report.done, report.cut) == (0, 1)


def test_cut_rows_are_asked_again_with_a_higher_limit_and_no_token_is_lost(
    chat, sandbox, prompts, folder
):
    model = chat.model_copy(update={"max_tokens": 3})
    first = bulk.run(model, prompts(4), journal="j")
    assert (first.done, first.failed, first.cut, first.asked) == (0, 4, 4, 4)
    assert bulk.run(model, "in.jsonl", journal="j").asked == 0, "unless it is wanted"
    again = bulk.run(chat, "in.jsonl", journal="j", retry_errors=True)
    assert (again.done, again.failed, again.cut, again.asked) == (4, 0, 0, 4)
    alone = bulk.run(chat, "in.jsonl", journal="other")
    assert again.total_tokens == first.total_tokens + alone.total_tokens
    assert again.total_tokens == sum(row["usage"]["total_tokens"] for row in again.results())


# -- a refused key ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("answered", "ordered"), pairs([0, 7], [True, False]))
def test_a_key_that_is_refused_overnight(answered, ordered, chat, sandbox, prompts, written):
    sandbox.faults = [Fault(delay=0.001, times=answered)] if answered else []
    sandbox.faults = [*sandbox.faults, Fault(status=401)]
    options = {"journal": "j", "output": "out.jsonl", "concurrency": 1, "ordered": ordered}
    with pytest.raises(svc.SvcAuthenticationError):
        bulk.run(chat, prompts(200), **options)
    rows = written()
    assert sorted(row["row"] for row in rows) == list(range(1, 201))
    assert sorted(row["id"] for row in rows) == sorted(f"r{n}" for n in range(200))
    assert sum(row["error"] is None for row in rows) == answered
    open_rows = [row for row in rows if row["error"] is not None]
    assert {row["error"]["type"] for row in open_rows} == {"unanswered"}
    assert all("401" in row["error"]["message"] for row in open_rows)
    sandbox.faults = []
    sandbox.clear()
    report = bulk.run(chat, "in.jsonl", **options)
    assert (report.done, report.failed, report.asked) == (200, 0, 200 - answered)
    assert set(questions(sandbox).values()) == {1}
    assert all(row["error"] is None for row in written())


@pytest.mark.parametrize(
    ("tool", "place", "arguments"),
    [
        (svc.SvcTranslate, "general", {"text": "Hello", "target": "de"}),
        (svc.SvcMedicalConsult, "medical", {"message": "chest pain"}),
    ],
)
def test_a_refused_key_ends_a_run_of_a_tool(tool, place, arguments, sandbox, folder):
    rows = [{"id": n, "input": arguments} for n in range(50)]
    sandbox.faults = [Fault(status=401)]
    with tool(**getattr(sandbox, place), handle_tool_error=False) as asked:
        with pytest.raises(svc.SvcAuthenticationError):
            bulk.run(asked, rows, journal="j", concurrency=4)
        assert not list(bulk.results("j"))
        assert len(sandbox.requests) <= 4
        sandbox.faults = []
        assert bulk.run(asked, rows, journal="j").done == 50


# -- what ends a run --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, svc.SvcAuthenticationError),
        (403, svc.SvcPermissionDeniedError),
        (404, svc.SvcNotFoundError),
        (503, svc.SvcServerError),
    ],
)
def test_what_meets_every_row_ends_the_run_and_is_no_rows_error(
    status, error, chat, sandbox, prompts
):
    sandbox.faults = [Fault(delay=0.001, times=3), Fault(status=status)]
    model = chat.model_copy(update={"max_retries": 0})
    with pytest.raises(error):
        bulk.run(model, prompts(30), journal="j", concurrency=4, outage_wait=0.0)
    assert [row["error"] for row in bulk.results("j")] == [None] * 3
    assert len(sandbox.requests) <= 3 + 4
    sandbox.faults = []
    assert bulk.run(model, "in.jsonl", journal="j").done == 30


def test_rows_that_all_fail_alike_end_the_run(folder):
    asked = []

    def wrong(text):
        asked.append(text)
        raise TypeError("a function of yours")

    with pytest.raises(TypeError, match="of yours"):
        bulk.run(RunnableLambda(wrong), map(str, range(1_000)), journal="j", concurrency=4)
    assert len(asked) < 30


def test_an_outage_is_waited_out(sandbox, chat, prompts, monkeypatch):
    monkeypatch.setattr("langchain_svc.bulk.outage._FIRST_PAUSE", 0.01)
    sandbox.faults = [Fault(status=503, times=60, headers={"Retry-After": "0"})]
    model = chat.model_copy(update={"max_retries": 0})
    report = bulk.run(model, prompts(20), journal="j", concurrency=4)
    assert (report.done, report.failed) == (20, 0)


def test_a_row_that_always_fails_is_an_error_where_others_are_answered(folder, monkeypatch):
    monkeypatch.setattr("langchain_svc.bulk.outage._FIRST_PAUSE", 0.01)
    asked = Counter()

    def fragile(text):
        asked[text] += 1
        if text == "3":
            raise svc.SvcConnectionError("lost")
        return text

    report = bulk.run(RunnableLambda(fragile), map(str, range(30)), journal="j", concurrency=2)
    assert (report.done, report.failed) == (29, 1)
    assert asked["3"] == 3


def test_a_budget_that_is_used_up_ends_the_run(chat, prompts):
    with svc.SvcBudget(max_requests=5), pytest.raises(svc.SvcBudgetError):
        bulk.run(chat, prompts(30), journal="j", concurrency=2)
    assert len(list(bulk.results("j"))) == 5, "and makes no row an error"
    assert bulk.run(chat, "in.jsonl", journal="j").done == 30


# -- quotas -----------------------------------------------------------------------------------------


def test_a_quota_keeps_a_run_within_its_plan(chat, prompts, sandbox):
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=4))
    model = chat.model_copy(update={"deadline": 0.5, "quota": quota})
    with pytest.raises(svc.SvcRateLimitError):
        bulk.run(model, prompts(30), journal="j", outage_wait=1.0)
    assert 1 <= len(sandbox.requests) == len(list(bulk.results("j"))) <= 4


def test_a_run_waits_behind_interactive_calls(folder):
    jobs = []
    bulk.run(RunnableLambda(lambda _: jobs.append(BULK_JOB.get())), ["1", "2"], journal="j")
    assert jobs[0] is not None
    assert jobs[0] == jobs[1]
    assert BULK_JOB.get() is None


# -- settings ---------------------------------------------------------------------------------------


def test_a_journal_belongs_to_its_patient(prompts, sandbox):
    prompts(1)

    def ask(age, *, bound):
        made = svc.PatientContext(age=age)
        tool = svc.SvcMedicalConsult(**sandbox.medical, patient=made if bound else "per_run")
        config = None if bound else {"configurable": {"svc_patient": made}}
        return bulk.run(tool, "in.jsonl", journal=f"{bound}", config=config)

    for bound in (True, False):
        assert ask(75, bound=bound).done == 1
        assert ask(75, bound=bound).asked == 0
        with pytest.raises(svc.SvcRequestError, match=r"other settings: .*patient"):
            ask(20, bound=bound)


def test_a_journal_belongs_to_its_settings(chat, prompts):
    bulk.run(chat, prompts(2), journal="j")
    other = chat.model_copy(update={"temperature": 0.3})
    with pytest.raises(svc.SvcRequestError, match="other settings: temperature"):
        bulk.run(other, "in.jsonl", journal="j")
    with pytest.raises(svc.SvcRequestError, match="version"):
        bulk.run(chat, "in.jsonl", journal="j", settings={"version": 2})
    patient = chat.model_copy(update={"timeout": 5.0, "max_retries": 7})
    assert bulk.run(patient, "in.jsonl", journal="j").asked == 0, "how to wait changes no answer"


def test_a_journal_belongs_to_its_rows(chat, prompts, folder):
    bulk.run(chat, prompts(3), journal="j")
    text = (folder / "in.jsonl").read_text()
    (folder / "in.jsonl").write_text(text.replace("1 * 2", "1 * 3"))
    with pytest.raises(svc.SvcRequestError, match="Row 2 of the input is not the one"):
        bulk.run(chat, "in.jsonl", journal="j")
    with pytest.raises(svc.SvcRequestError, match=r"up to row 3, and the input ends at row 2"):
        bulk.run(chat, prompts(2), journal="j")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"concurrency": 0}, "concurrency must be a whole number >= 1, not 0"),
        ({"concurrency": 2.5}, "concurrency must be"),
        ({"outage_wait": -1}, "outage_wait must be seconds >= 0, not -1"),
        ({"output": "in.jsonl"}, "must be three files"),
        ({"output": "j"}, "must be three files"),
        ({"output": os.devnull}, "is not a regular file and would be replaced by one"),
        ({"format": "no column"}, "must name columns"),
        ({"format": "{a.b}"}, "must name columns"),
        ({"format": "{"}, "must name columns"),
        ({"journal": "nowhere/j"}, "nowhere/j cannot be written"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(given, said, prompts):
    with pytest.raises(svc.SvcRequestError, match=said):
        bulk.run(RunnableLambda(echo), prompts(1), **{"journal": "j", **given})


def test_an_output_that_cannot_be_written_leaves_the_journal(folder):
    with pytest.raises(svc.SvcRequestError, match=r"nowhere/out.jsonl cannot be written.*in j"):
        bulk.run(RunnableLambda(echo), ["1", "2"], journal="j", output="nowhere/out.jsonl")
    assert len(list(bulk.results("j"))) == 2


async def test_a_cancelled_run_keeps_every_answer_that_had_come(folder, monkeypatch):
    write, answered = Journal.save, set()

    def slow(self, answers):
        time.sleep(0.5)
        write(self, answers)

    async def answer(text):
        await asyncio.sleep(0.01 * int(text))
        answered.add(text)
        return text

    monkeypatch.setattr(Journal, "save", slow)
    rows = [str(number) for number in range(8)]
    run = asyncio.create_task(bulk.arun(RunnableLambda(answer), rows, journal="j", concurrency=8))
    while len(answered) < 8:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)  # LangChain has work to do after an answer
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert {row["content"] for row in bulk.results("j")} == answered
