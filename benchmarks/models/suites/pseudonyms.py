"""Pseudonyms: nothing of a person leaves, and all of it is back in the answer.

The plain way has the names in its prompt: it shows what the model makes of the same note without.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from langchain_svc import Pseudonyms

from ..cases import SEEN, Case, Outcome, Suite
from ..ways import Way

_ROOM = 80
# A mark, however a model may have spelt it.
_MARK = re.compile(
    r"\b(?:PERSON|PHONE|DATE|EMAIL|PLACE|ID|TEXT)[\s_\\]*\d", re.IGNORECASE
)


class Note(NamedTuple):
    """A note about a patient, and who they are."""

    name: str
    phone: str
    born: str
    text: str


NOTES: dict[str, Sequence[Note]] = {
    "new": (
        Note("Rosa Lindqvist", "+46 8 1234567", "1962-09-14",
            "Rosa Lindqvist (born 14 September 1962) fell on the stairs. Her left knee is "
            "swollen. Reach her at +46 8 1234567."),
        Note("Paulo Mendes", "+351 22 7654321", "1991-02-08",
            "Today Paulo Mendes, 1991-02-08, had his second vaccination. He had no reaction. "
            "Phone: +351 22 7654321."),
        Note("Greta Vogel", "+43 1 9876543", "1948-12-30",
            "Mrs Vogel sleeps badly. Greta Vogel, born 30 December 1948, gets valerian. Her "
            "number is +43 1 9876543."),
        Note("Henk de Boer", "+31 20 5550123", "1979-06-17",
            "Henk de Boer, born on 17 June 1979, wants to stop smoking. Call him next week: "
            "+31 20 5550123."),
    ),
    SEEN: (
        Note("Anna Mueller", "+49 30 1234567", "1950-03-04",
            "Anna Mueller, born 4 March 1950, phone +49 30 1234567, was seen today for back "
            "pain. She is to return in two weeks."),
        Note("Tom Hart", "+44 20 7946 0958", "1988-07-21",
            "Tom Hart (21 July 1988) has asthma. Call him at +44 20 7946 0958 with the results."),
    ),
}  # fmt: skip
# category, question, what must be in the answer
TASKS: Sequence[tuple[str, str, Sequence[str]]] = (
    (
        "copied",
        "Answer with the patient's name and phone number only: {}",
        ("name", "phone"),
    ),
    ("letter", "Write a short letter to the patient about this note: {}", ("name",)),
    ("summary", "Summarize this note in one sentence: {}", ()),
)


def _cases() -> Iterator[Case]:
    for group, notes in NOTES.items():
        for category, question, wanted in TASKS:
            for number, note in enumerate(notes, 1):
                data = {"question": question, "wanted": wanted, "note": note._asdict()}
                yield Case("pseudonyms", group, f"{category}-{number}", category, data)


def _ask(way: Way, case: Case) -> Outcome:
    note = Note(**case.data["note"])
    settings: dict[str, Any] = {"max_tokens": _ROOM}
    if way.name == "svc":
        settings["pseudonyms"] = Pseudonyms(
            names=[note.name], telecoms=[note.phone], dates=[note.born]
        )
    message = way.chat(**settings).invoke(case.data["question"].format(note.text))
    sent = json.dumps([exchange.sent for exchange in way.exchanges()])
    return judge(case, message.text, sent if way.name == "svc" else "")


def judge(case: Case, text: str, sent: str = "") -> Outcome:
    """Whether nothing left, no mark is left, and the answer names what it must."""
    note = case.data["note"]
    why = ""
    if note["name"] in sent or note["phone"] in sent:
        why = "a name was sent"
    elif not text.strip():
        why = "nothing"
    elif _MARK.search(text):
        why = "a mark is left"
    elif not all(_named(note[what], text) for what in case.data["wanted"]):
        why = "not named"
    return Outcome(not why, why, {"text": text}, empty=not text.strip())


def _named(what: str, text: str) -> bool:
    """The whole of it, or a person's last name."""
    return what in text or (what[0].isalpha() and what.rpartition(" ")[2] in text)


PSEUDONYMS = Suite("pseudonyms", ("svc", "plain"), _cases, _ask, lambda _: "")
