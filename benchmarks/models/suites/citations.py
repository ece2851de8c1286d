"""Answers from passages: the right words, and a quote that stands in the right passage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage

from ..cases import SEEN, Case, Outcome, Suite, says
from ..ways import Way, read_json

_ROOM = 96
PASSAGES = {
    "machines": {
        "Pump": "The pump P-30 moves 45 litres a minute and must be oiled every six months.",
        "Fan": "The fan F-7 turns at 900 revolutions a minute. Its filter is washed in cold water.",
        "Oven": "Before the oven is opened, it has to cool down for 20 minutes.",
        "Lift": "The lift carries eight people or 630 kilograms. Call 555-0199 if it stops.",
    },
    "town": {
        "Museum": "The town museum opens at ten and is closed on Mondays.",
        "Pool": "The indoor pool was built in 1974; a ticket costs four euros.",
        "Market": "On Saturdays farmers sell cheese, honey and flowers at the market.",
        "Tower": "From the tower, which has 212 steps, one can see the lake.",
    },
    SEEN: {
        "Rhine": "The Rhine rises in the Swiss Alps and flows 1,230 kilometres to the North Sea.",
        "Bees": "Honey bees visit about two million flowers to make one pound of honey.",
        "Eiffel Tower": "The Eiffel Tower was completed in 1889 and is 330 metres tall.",
        "Saffron": "Saffron is picked by hand, and a kilogram needs about 150,000 flowers.",
    },
}
# group, question, what the answer says, the numbers of the passages that must be quoted
QUESTIONS: Sequence[tuple[str, str, list[tuple[str, ...]], list[int]]] = [
    ("machines", "How often must the pump be oiled?", [("six months", "6 months")], [1]),
    ("machines", "How many people does the lift carry?", [("eight", "8")], [4]),
    ("machines", "In what is the filter of the fan washed?", [("cold water",)], [2]),
    ("machines", "How long must the oven cool down?", [("20", "twenty")], [3]),
    ("machines", "How fast does the fan turn, and how much does the pump move?",
        [("900",), ("45",)], [2, 1]),
    ("machines", "Which number do I call if the lift stops?", [("555-0199",)], [4]),
    ("town", "On which day is the museum closed?", [("Monday", "Mondays")], [1]),
    ("town", "When was the pool built?", [("1974",)], [2]),
    ("town", "What do the farmers sell?", [("cheese",), ("honey",), ("flowers",)], [3]),
    ("town", "How many steps has the tower?", [("212",)], [4]),
    ("town", "What does a ticket for the pool cost, and when does the museum open?",
        [("four", "4"), ("ten", "10")], [2, 1]),
    ("town", "What can one see from the tower?", [("lake",)], [4]),
    (SEEN, "Where does the Rhine rise?", [("Alps",)], [1]),
    (SEEN, "How many flowers do bees visit for a pound of honey?",
        [("two million", "2 million")], [2]),
    (SEEN, "When was the Eiffel Tower completed?", [("1889",)], [3]),
    (SEEN, "How is saffron picked?", [("hand",)], [4]),
    (SEEN, "How long is the Rhine?", [("1,230", "1230")], [1]),
    (SEEN, "How tall is the Eiffel Tower?", [("330",)], [3]),
]  # fmt: skip
_PLAIN = """{}

{}
Answer from these passages with JSON and nothing else: \
{{"answer": "...", "sources": [{{"passage": 1, "quote": "words copied from it"}}]}}"""


def _cases() -> Iterator[Case]:
    for number, (group, question, wanted, quoted) in enumerate(QUESTIONS, 1):
        data: dict[str, Any] = {"question": question, "says": wanted}
        data |= {"quoted": quoted, "passages": PASSAGES[group]}
        category = "one passage" if len(quoted) == 1 else "two passages"
        yield Case("citations", group, str(number), category, data)


def _ask(way: Way, case: Case) -> Outcome:
    passages = case.data["passages"]
    if way.name == "plain":
        listed = "\n".join(
            f"{n}. {text}" for n, text in enumerate(passages.values(), 1)
        )
        asked = _PLAIN.format(listed, case.data["question"])
        answer = read_json(way.chat(max_tokens=_ROOM).invoke(asked).text)
        return judge(case, *_plain_answer(answer, list(passages.values())))
    documents = [
        Document(text, metadata={"title": title}) for title, text in passages.items()
    ]
    model: Any = way.chat(max_tokens=_ROOM)
    message = model.with_citations(documents).invoke(case.data["question"])
    return judge(case, message.text, _quoted(message))


def _quoted(message: AIMessage) -> set[int]:
    """The numbers of the passages that statements quote, as the package checked it."""
    return {
        annotation["extras"]["document"] + 1
        for block in message.content_blocks
        if block["type"] == "text" and block["text"].strip()
        for annotation in block.get("annotations", [])
        if annotation["type"] == "citation"
    }


def _plain_answer(value: Any, passages: list[str]) -> tuple[str, set[int]]:
    """The answer, and the passages in which its quotes stand."""
    if not isinstance(value, dict):
        return "", set()
    sources = value.get("sources")
    quotes = [
        (source.get("passage"), str(source.get("quote") or ""))
        for source in (sources if isinstance(sources, list) else [])
        if isinstance(source, dict)
    ]
    quoted = {
        number
        for number, quote in quotes
        if isinstance(number, int)
        and 0 < number <= len(passages)
        and quote.strip()
        and quote.casefold() in passages[number - 1].casefold()
    }
    return str(value.get("answer") or ""), quoted


def judge(case: Case, text: str, quoted: set[int]) -> Outcome:
    """Whether the answer says what is right, and the right passages are quoted for it."""
    why = ""
    if not text.strip():
        why = "nothing"
    elif not says(text, case.data["says"]):
        why = "other words"
    elif not quoted >= set(case.data["quoted"]):
        why = "no quote of the passage"
    delivered = {"text": text, "quoted": sorted(quoted)}
    return Outcome(not why, why, delivered, empty=not text.strip())


def _passages_text(case: Case) -> str:
    return "\n".join(case.data["passages"].values())


CITATIONS = Suite("citations", ("svc", "plain"), _cases, _ask, _passages_text)
