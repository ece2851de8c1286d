"""What SvcUsageCallbackHandler tells beyond plain calls: tools, prices, and its table."""

import asyncio
import json
import pickle

import pytest
from langchain.agents import create_agent
from rich.console import Console

from langchain_svc import ChatSvc, SvcTranslate, SvcUsageCallbackHandler
from langchain_svc.observe.usage import ModelUsage, UsageTable
from langchain_svc.sandbox import Fault, Sandbox, ToolCall

HELLO = {"text": "Good morning", "target": "es"}
CALL = {"name": "svc_translate", "args": HELLO, "id": "call_1", "type": "tool_call"}
AT_ONCE = {"Retry-After": "0"}
PRICE = {"input": 5.0, "output": 15.0, "per_tokens": 1_000_000, "currency": "USD"}


@pytest.fixture
def translate(sandbox):
    with SvcTranslate(**sandbox.general) as tool:
        yield tool


def news(counts):
    return {name: value for name, value in counts.items() if value and name != "kind"}


# -- tools ------------------------------------------------------------------------------------------


def test_tools_are_counted_with_retries_and_with_errors_that_the_model_is_told(sandbox, translate):
    sandbox.faults = [Fault(status=503, headers=AT_ONCE, times=1)]
    with SvcUsageCallbackHandler() as usage:
        translate.invoke(HELLO)
        asyncio.run(translate.ainvoke(HELLO))
        sandbox.faults = [Fault(status=404, times=1)]
        assert "404" in translate.invoke(CALL).content
    counts = usage.to_dict()["svc_translate"]
    assert counts["kind"] == "tool"
    assert counts["errors"] == {"SvcNotFoundError": 1}
    assert (counts["calls"], counts["retries"]) == (3, 1)
    assert usage.tools["svc_translate"].calls == 3
    assert usage.models == {}


def test_a_tool_counts_once_in_each_of_nested_blocks_however_often_it_is_reached(translate):
    with SvcUsageCallbackHandler() as outer:
        with SvcUsageCallbackHandler() as inner:
            translate.invoke(HELLO, {"callbacks": [outer, inner, inner]})
        translate.invoke(HELLO)
    assert [each.tools["svc_translate"].calls for each in (outer, inner)] == [2, 1]
    assert outer._runs == inner._runs == {}


def test_a_call_that_a_tool_refuses_is_an_error_and_no_call(sandbox):
    with SvcUsageCallbackHandler() as usage, SvcTranslate(base_url="https://x.invalid") as tool:
        assert "Nothing was sent" in tool.invoke(CALL).content
    assert news(usage.to_dict()["svc_translate"]) == {"errors": {"SvcRequestError": 1}}


def test_tools_of_others_are_not_counted(chat):
    from langchain_core.tools import tool

    @tool
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    with SvcUsageCallbackHandler() as usage:
        add.invoke({"a": 1, "b": 2})
    assert usage.to_dict() == usage._runs == {}


@pytest.mark.parametrize("privacy", [None, "phi"])
def test_an_agent_counts_its_model_and_its_tools(privacy):
    answers = [ToolCall("svc_translate", HELLO), "Done."] * 2
    with (
        Sandbox(answers=answers) as s,
        ChatSvc(**s.v1, privacy=privacy) as model,
        SvcTranslate(**s.general, privacy=privacy) as tool,
        SvcUsageCallbackHandler(prices={"svc-turbo": PRICE}) as usage,
    ):
        agent = create_agent(model, [tool])
        agent.invoke({"messages": [("user", "Translate it")]})
        asyncio.run(agent.ainvoke({"messages": [("user", "Translate it")]}))
    assert usage.models["svc-turbo"].calls == 4
    assert usage.tools["svc_translate"].calls == 2
    assert usage.models["svc-turbo"].cost["USD"] > 0


# -- prices --------------------------------------------------------------------------------------


def test_a_model_on_two_interfaces_is_counted_once(sandbox, chat):
    general = ChatSvc(interface="general", **sandbox.general, model="svc-turbo")
    with SvcUsageCallbackHandler() as usage, general:
        chat.batch(["one", "two"])
        general.invoke("three")
    found = usage.to_dict()["svc-turbo"]
    assert found["calls"] == 3
    assert found["input_tokens"] > 0
    assert found["estimated_input_tokens"] > 0  # of the general interface, which tells their sum
    assert json.loads(json.dumps(found)) == found


def test_cost_by_the_prices_of_the_listing(sandbox, chat):
    usage = SvcUsageCallbackHandler(prices=chat.list_models())
    asked = len(sandbox.requests)
    answers = chat.batch(["Hello", "You"], {"callbacks": [usage]})
    assert len(sandbox.requests) == asked + 2  # none of its own
    (price,) = [m.pricing for m in chat.list_models() if m.id == "svc-turbo"]
    spent = [answer.usage_metadata for answer in answers]
    whole = sum(
        price["input"] * one["input_tokens"] + price["output"] * one["output_tokens"]
        for one in spent
    )
    assert usage.models["svc-turbo"].cost == {"USD": pytest.approx(whole / 1_000_000)}
    assert "USD" in repr(usage)
    copied = pickle.loads(pickle.dumps(usage))
    chat.invoke("Hello", {"callbacks": [copied]})
    assert copied.models["svc-turbo"].cost["USD"] > 0


def test_calls_without_a_price_are_said(sandbox, chat):
    with SvcUsageCallbackHandler(prices={"svc-pro": PRICE}) as usage:
        chat.invoke("Hello")  # a model without a price
        chat.invoke("Hello", model="svc-pro")
    unpriced = {name: counts.unpriced_calls for name, counts in usage.models.items()}
    assert unpriced == {"svc-turbo": 1, "svc-pro": 0}
    assert "without a known price" in str(usage.table())
    with SvcUsageCallbackHandler() as none:
        chat.invoke("Hello")
    assert none.models["svc-turbo"].unpriced_calls == 0  # nobody asked for a cost


BAD_PRICES = [
    5,
    ["svc-pro"],
    {"svc-pro": {"input": 5, "output": 15}},  # of how many tokens?
    {"svc-pro": {"input": -1, "output": 15, "per_tokens": 1000}},
    {"svc-pro": {"input": "much", "output": 15, "per_tokens": 1000}},
]


@pytest.mark.parametrize("prices", BAD_PRICES, ids=repr)
def test_prices_that_cannot_be_read_are_refused_with_the_form(prices):
    with pytest.raises(ValueError, match=r"per_tokens") as raised:
        SvcUsageCallbackHandler(prices=prices)
    assert "list_models()" in str(raised.value)


def test_a_cut_answer_is_counted_and_one_that_went_on_is_not():
    with (
        Sandbox(answers=[" ".join(map(str, range(1_000, 1_030)))] * 3) as s,
        ChatSvc(model="svc-pro", max_tokens=20, max_continuations=9, **s.v1) as model,
        SvcUsageCallbackHandler() as usage,
    ):
        model.invoke("Count.")
        list(model.stream("Count."))
        model.invoke("Count.", on_cut="continue")
    assert usage.models["svc-pro"].cut == 2
    assert "2 answers cut off" in str(usage.table())


# -- what people see --------------------------------------------------------------------------------


def overnight():
    """The counts of a large job with trouble."""
    made = ModelUsage(calls=12_345, cache_hits=120, stopped=3, retries=1_234, waited=812.5)
    made.input_tokens, made.output_tokens = 12_345_678, 2_345_678
    made.estimated_input_tokens = 7_001
    made.errors.update({"SvcServerError": 30, "SvcNotFoundError": 7})
    made.cost["USD"] = 47.11
    return made


def test_the_repr_of_counts_shows_amounts_as_the_table_does():
    made = ModelUsage(calls=2, waited=0.1 + 0.2, cost={"USD": 0.1 + 0.2, "EUR": 1 / 30_000})
    assert "waited=0.30," in repr(made)
    assert "cost={'USD': 0.30, 'EUR': 0.000033}," in repr(made)


NEWS = (
    "12,345|120|12,345,678 + ~7,001|2,345,678|~47.11 USD|1,234 (812.5 s)"
    "|30 SvcServerError|7 SvcNotFoundError|3 left early"
)


@pytest.mark.parametrize(
    "name", ["svc-turbo", "svc-turbo[red]-2026-preview", "a-very-" * 6 + "long-name"]
)
def test_a_table_loses_nothing_at_any_width(name):
    table = UsageTable([(name, overnight()), ("svc-pro", ModelUsage(calls=1))])
    shown = []
    for width in range(30, 201):
        console = Console(width=width, color_system=None)
        with console.capture() as captured:
            console.print(table)
        text = captured.get()
        assert max(map(len, text.splitlines())) <= width
        assert "\u2026" not in text
        words = " ".join(text.split())
        packed = words.replace(" ", "")
        assert name in packed
        assert [fact for fact in NEWS.split("|") if fact.replace(" ", "") not in packed] == []
        shown.append(
            any(line.split()[:3] == ["model", "calls", "cached"] for line in text.splitlines())
        )
    assert shown == sorted(shown)  # once there is room for all, there is
    assert shown[-1]


def test_what_is_printed_without_rich_and_shown_in_a_notebook_tells_the_same():
    usage = SvcUsageCallbackHandler()
    usage._models["svc"] = overnight()
    usage._tools["translate"] = ModelUsage(calls=1)
    assert str(UsageTable([])) == "nothing counted"
    text = str(usage.table())
    assert [fact for fact in NEWS.split("|") if fact not in text] == []
    assert text.splitlines()[1] == "translate: 1 call"
    assert repr(usage.table()) == text
    assert repr(usage) == f"<SvcUsageCallbackHandler: {text}>".replace("\n", "; ")
    assert repr(SvcUsageCallbackHandler()) == "<SvcUsageCallbackHandler: nothing counted>"


def test_a_notebook_shows_usage_and_models_as_tables_of_plain_numbers(chat):
    usage = SvcUsageCallbackHandler()
    usage._models["<svc>"] = ModelUsage(calls=1, cost={"USD": 3.6e-05})
    usage._models["svc-pro"] = overnight()
    for shown in (usage, usage.table()):
        table = shown._repr_html_()
        assert [fact for fact in NEWS.split("|") if fact not in table] == []
        assert "<td>&lt;svc&gt;</td>" in table
        assert "<td>0.000036 USD</td>" in table
    models = chat.list_models()
    assert len(models) > 1
    for model in models:
        assert f"<tr><td>{model.id}</td>" in model._repr_html_()
        assert f"<tr><td>{model.id}</td>" in models._repr_html_()
    assert "<td>5 / 15 USD per 1M</td>" in models._repr_html_()
