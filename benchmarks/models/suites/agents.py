"""Agents that run to their end: tasks of one to three steps, with tools that do something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_function

from ...tool_calling import right
from ..cases import SEEN, Case, Outcome, Suite, says
from ..ways import WAYS, Way
from .tools import MARKS, tools_text

_ROOM = 96
_MOST_STEPS = 12  # of the graph: six requests

_BOOKS = {"dune": 88, "emma": 31, "faust": 9}
_COPIES = {88: 7, 31: 6, 9: 14}
_BALANCES = {"main": 80, "savings": 1250, "holiday": 410}
_STOCK = {"lamp": 4, "chair": 12, "table": 1}
_PRICES = {"lamp": 20, "chair": 35, "table": 110}


def _plain(name: str) -> str:
    return re.sub(r"\W", "", name.casefold()).removeprefix("the")


@tool
def find_book(title: str) -> str:
    """The id of a book."""
    book = _BOOKS.get(_plain(title))
    return str(book) if book else "error: there is no book of this title"


@tool
def count_copies(book_id: int) -> str:
    """How many copies of a book there are."""
    return str(_COPIES.get(book_id, "error: there is no book of this id"))


@tool
def add(a: float, b: float) -> str:
    """The sum of two numbers."""
    return f"{a + b:g}"


@tool
def get_balance(account: str) -> str:
    """The balance of an account, in euros."""
    return str(_BALANCES.get(_plain(account), "error: there is no such account"))


@tool
def transfer(source: str, target: str, euros: float) -> str:
    """Moves euros from one account to another."""
    if euros > _BALANCES.get(_plain(source), 0):
        return f"error: there are no {euros:g} euros in {source}"
    return f"moved {euros:g} euros from {source} to {target}"


@tool
def multiply(a: float, b: float) -> str:
    """The product of two numbers."""
    return f"{a * b:g}"


@tool
def get_stock(product: str) -> str:
    """How many pieces of a product are in stock."""
    return str(_STOCK.get(_plain(product).rstrip("s"), "unknown product"))


@tool
def get_price(product: str) -> str:
    """The price of a product in euros."""
    return str(_PRICES.get(_plain(product).rstrip("s"), "unknown product"))


BOXES: dict[str, Sequence[BaseTool]] = {
    "library": (find_book, count_copies, add),
    "bank": (get_balance, transfer, multiply),
    SEEN: (get_stock, get_price, multiply),
}
# group, steps, question, what the last words say, a transfer that must have been made
TASKS: Sequence[tuple[str, int, str, list[tuple[str, ...]], dict[str, Any] | None]] = [
    ("library", 1, "Which id has the book 'Faust'?", [("9",)], None),
    ("library", 2, "How many copies of 'Dune' are there?", [("7", "seven")], None),
    ("library", 1, "What is 38 plus 47?", [("85",)], None),
    ("library", 2, "How many copies are there of the book 31, and how many of the book 9?",
        [("6", "six"), ("14", "fourteen")], None),
    ("library", 3, ("How many copies of 'Emma' are there if we buy 10 more? "
        "First find the book, then count its copies, then add."), [("16", "sixteen")], None),
    ("library", 3, ("How many copies of book 88 and of book 9 are there together? "
        "Count both, then add."), [("21", "twenty-one")], None),
    ("bank", 1, "How much is in the account holiday?", [("410",)], None),
    ("bank", 1, "Move 25 euros from main to holiday.", [],
        {"source": ["main"], "target": ["holiday"], "euros": [25]}),
    ("bank", 2, "How much is in main, and how much in holiday?", [("80",), ("410",)], None),
    ("bank", 2, "Move all that is in main to savings. Look at the balance of main first.", [],
        {"source": ["main"], "target": ["savings"], "euros": [80]}),
    ("bank", 2, "What is three times the balance of holiday? Get it, then multiply.",
        [("1230", "1,230")], None),
    ("bank", 3, ("Double the balance of main: get it, multiply it by 2, "
        "and move that many euros from savings to main."), [],
        {"source": ["savings"], "target": ["main"], "euros": [160]}),
    (SEEN, 1, "How many lamps are in stock?", [("4", "four")], None),
    (SEEN, 1, "What does a table cost?", [("110",)], None),
    (SEEN, 2, "How many chairs are in stock, and what does a chair cost?",
        [("12", "twelve"), ("35",)], None),
    (SEEN, 3, ("What are all lamps in stock worth together? "
        "First get the stock, then the price, then multiply them."), [("80",)], None),
    (SEEN, 2, "What do 3 tables cost?", [("330",)], None),
    (SEEN, 2, "What costs more, a lamp or a chair, and how much?", [("chair",), ("35",)], None),
    (SEEN, 2, "How many lamps and how many tables are in stock?",
        [("4", "four"), ("1", "one")], None),
    (SEEN, 1, "What is 17 times 23?", [("391",)], None),
]  # fmt: skip


def _cases() -> Iterator[Case]:
    for number, (group, steps, question, wanted, made) in enumerate(TASKS, 1):
        tools = [convert_to_openai_function(one) for one in BOXES[group]]
        data = {"question": question, "says": wanted, "made": made, "tools": tools}
        yield Case("agents", group, str(number), f"{steps} steps", data)


def _ask(way: Way, case: Case) -> Outcome:
    agent: Any = create_agent(way.chat(max_tokens=_ROOM), list(BOXES[case.group]))
    messages: list[AnyMessage] = []
    error = ""
    try:
        for state in agent.stream(
            {"messages": [("user", case.data["question"])]},
            {"recursion_limit": _MOST_STEPS},
            stream_mode="values",
        ):
            messages = state["messages"]
    except Exception as raised:  # noqa: BLE001  # whatever a user would have got
        error = f"{type(raised).__name__}: {raised}"
    return judge(case, messages, error)


def judge(case: Case, messages: Sequence[AnyMessage], error: str = "") -> Outcome:
    """Whether the last words say what is right, and the call that is needed was made."""
    answers = [message for message in messages if isinstance(message, AIMessage)]
    calls = [call for answer in answers for call in answer.tool_calls]
    finished = bool(answers) and not answers[-1].tool_calls
    text = answers[-1].text if finished else ""
    made = case.data["made"]
    why = ""
    if error:
        why = "an error"
    elif not text.strip():
        why = "nothing"
    elif MARKS.search(text):
        why = "markup"
    elif not says(text, case.data["says"]):
        why = "other words"
    elif made and not any(_transfers(made, call) for call in calls):
        why = "the call was not made"
    delivered = {
        "text": text,
        "messages": [
            [message.type, message.text, *getattr(message, "tool_calls", [])]
            for message in messages
        ],
    }
    empty = finished and not text.strip()
    return Outcome(not why, why, delivered, max(len(answers), 1), empty, error)


def _transfers(made: dict[str, list[Any]], call: Mapping[str, Any]) -> bool:
    wanted = {"calls": [{"name": "transfer"}], "accepted": [made]}
    return right(wanted, [{"name": call["name"], "args": call["args"]}])


AGENTS = Suite("agents", WAYS, _cases, _ask, tools_text)
