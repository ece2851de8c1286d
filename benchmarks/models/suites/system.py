"""What an application says before the conversation: whether a model follows it, and copies nothing.

A case is a system message, a question, and an expression that only an answer which follows both
matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from langchain_core.messages import HumanMessage, SystemMessage

from ..cases import Case, Outcome, Suite
from ..ways import Way
from .tools import MARKS

_ROOM = 64

_CASES = {
    "format": [
        ("Answer with one number and nothing else.", "How many days has a week?", r"\A7\.?\Z"),
        ("Answer with one word and nothing else.", "What is the capital of Italy?", r"\ARome\.?\Z"),
        ("Answer with yes or no and nothing else.", "Is ice colder than steam?", r"(?i)\Ayes\.?\Z"),
        ("Answer with yes or no and nothing else.", "Is a mouse bigger than a cow?",
            r"(?i)\Ano\.?\Z"),
        ("Write every answer in capital letters.", "Name a fruit.", r"\A[^a-z]*[A-Z]{3}[^a-z]*\Z"),
        ("Answer with a JSON list of texts and nothing else.", "Name the first two months.",
            r"(?s)\[\s*\"January\"\s*,\s*\"February\"\s*\]"),
        ("End every answer with the word OVER.", "What colour is grass?", r"(?s)green.*OVER\W*\Z"),
        ("Begin every answer with 'Dear guest,'.", "When is breakfast? It is from 7 to 10.",
            r"\A\W*Dear guest,"),
    ],
    "language": [
        ("Always answer in Spanish.", "How do you say 'thank you'?", r"(?i)gracias"),
        ("Always answer in French.", "How do you say 'good day'?", r"(?i)bonjour"),
        ("You translate what the user writes into German. Write the translation only.",
            "the house", r"(?i)\A\W*(das )?haus\W*\Z"),
        ("You translate what the user writes into Spanish. Write the translation only.",
            "the dog", r"(?i)\A\W*(el )?perro\W*\Z"),
    ],
    "facts": [
        ("The shop is open from 9 to 17 o'clock, on Sundays it is closed.",
            "Can I come on Sunday?", r"(?i)closed|\bno\b|not open|cannot|can't"),
        ("Our phone number is 555-0199.", "How can I call you?", r"555-0199"),
        ("You are Ada, the assistant of a library.", "What is your name?", r"\bAda\b"),
        ("A ticket costs 14 euros, for children 6 euros.", "What does a ticket for a child cost?",
            r"\b6\b"),
        ("The user's name is Tom. Greet him by his name.", "Hello!", r"\bTom\b"),
        ("Parcels are sent from Hamburg and take 3 days.", "How long does a parcel take?",
            r"(?i)\b(3|three)\b"),
        ("The meeting is in room 214 at 3 pm.", "Where is the meeting?", r"\b214\b"),
        ("Returns are free within 30 days.", "How long can I return something?", r"\b30\b"),
    ],
    "task": [
        ("You judge reviews. Answer with positive or negative and nothing else.",
            "I love this lamp, it is perfect.", r"(?i)\Apositive\.?\Z"),
        ("You judge reviews. Answer with positive or negative and nothing else.",
            "It broke after one day. Terrible.", r"(?i)\Anegative\.?\Z"),
        ("You find names of cities. Answer with the city alone.",
            "Last week I took the train to Vienna.", r"\AVienna\.?\Z"),
        ("You correct spelling. Write the corrected word alone.", "recieve", r"(?i)\Areceive\.?\Z"),
    ],
}  # fmt: skip


def _cases() -> Iterator[Case]:
    for category, tasks in _CASES.items():
        for number, (system, question, pattern) in enumerate(tasks, 1):
            data = {"system": system, "question": question, "pattern": pattern}
            yield Case("system", category, str(number), category, data)


def _ask(way: Way, case: Case) -> Outcome:
    data = case.data
    messages = [SystemMessage(data["system"]), HumanMessage(data["question"])]
    text = str(way.chat(max_tokens=_ROOM).invoke(messages).text)
    delivered = {"text": text}
    if MARKS.search(text):
        return Outcome(right=False, why="markup", delivered=delivered)
    is_right = bool(re.search(data["pattern"], text.strip()))
    return Outcome(
        is_right, "" if is_right else "not followed", delivered, empty=not text.strip()
    )


SYSTEM = Suite(
    "system", ("svc", "native"), _cases, _ask, lambda case: case.data["system"]
)
