"""Answers that `max_tokens` cut, and that go on: is the seam one that a reader does not see?

A text to copy, into an answer or a call, is compared word by word. For an open question the judge
looks for what a bad seam leaves behind: words about going on, words said twice, a joint in the
middle of a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from ..cases import SEEN, Case, Outcome, Suite
from ..ways import Way, conversation

_ROOM = 40  # tokens: each answer is cut
_MOST = 3  # continuations
_TWICE = 36  # characters: nobody says so many twice
_MOST_WORDS = 8  # at a joint
_ABOUT = re.compile(
    r"\W*(?:sure|certainly|of course|i apologi[sz]e|i'?m sorry|sorry|okay|ok|understood|"
    r"continu\w+|here(?:'s| is| are)|(?:let|allow) me|as requested)\b",
    re.IGNORECASE,
)
COPIES = {
    "prose": """The lighthouse stood at the end of a long pier. Every evening old Marten climbed \
its ninety steps with a lamp in one hand and a book in the other. Ships passed far outside, and he \
counted them. When the fog came, he rang the bell once a minute and read aloud, so that he would \
not fall asleep. Nobody ever heard which stories he read, but the gulls on the rail seemed to like \
them, for they came back every night.""",
    "list": """- two litres of milk
- a loaf of rye bread
- six brown eggs
- a bag of onions
- three lemons
- a jar of honey
- half a pound of butter
- one box of black tea
- four red apples
- a bottle of olive oil
- two tins of tomatoes
- some fresh parsley
- a packet of rice
- paper towels""",
    "table": """| day | morning | evening |
|---|---|---|
| Monday | swim | read |
| Tuesday | run | cook |
| Wednesday | rest | chess |
| Thursday | swim | paint |
| Friday | run | dance |
| Saturday | hike | film |
| Sunday | rest | write |""",
    "code": """def total(orders):
    result = 0
    for order in orders:
        if order.is_paid:
            continue
        for line in order.lines:
            result += line.price * line.quantity
    return result


def names(orders):
    return sorted({order.customer for order in orders})""",
    "numbers": ", ".join(str(number) for number in range(101, 141)),
}
OPEN = [
    "Explain how a sailing boat can go against the wind.",
    "Write a letter to a neighbour about a barking dog.",
    "List ten things to do on a rainy day, one a line.",
    "Describe how bread is made, from the grain to the loaf.",
    "Write a Python function that tells whether a word is a palindrome, with a docstring.",
]
OPEN_SEEN = [
    "Write a short story about a fox and a crow.",
    "Explain how a bicycle stays upright.",
    "List ten uses of baking soda, one a line.",
    "Describe the water cycle in one paragraph.",
    "Write a recipe for pancakes with steps.",
    "Compare cats and dogs as pets.",
]


def _cases() -> Iterator[Case]:
    for name, text in COPIES.items():
        question = f"Copy this text to the end, word for word, and write nothing else:\n\n{text}"
        yield Case("cut", "new", name, "copy", {"question": question, "text": text})
    for group, questions in (("new", OPEN), (SEEN, OPEN_SEEN)):
        for number, question in enumerate(questions, 1):
            yield Case("cut", group, str(number), "open", {"question": question})


@tool
def write_file(path: str, text: str) -> str:
    """Write a text to a file."""
    return f"{len(text)} characters in {path}"


def _call_cases() -> Iterator[Case]:
    for name, text in COPIES.items():
        question = f"Write this text to the file {name}.txt, word for word:\n\n{text}"
        yield Case(
            "cut-calls", "new", name, "call", {"question": question, "text": text}
        )


def _ask_for_call(way: Way, case: Case) -> Outcome:
    model = way.chat(max_tokens=_ROOM, max_continuations=2 * _MOST)
    message = model.bind_tools([write_file]).invoke(case.data["question"])
    calls = [
        {"name": call["name"], "args": call["args"]} for call in message.tool_calls
    ]
    text = "\n".join(str(call["args"].get("text", "")) for call in calls)
    why = _miscopied(case.data["text"], text, is_cut=False) if calls else "no call"
    delivered = {"text": message.text, "calls": calls}
    return Outcome(
        not why, why, delivered, len(way.exchanges()), not (calls or message.text)
    )


def _ask(way: Way, case: Case) -> Outcome:
    if way.name == "plain":
        pieces, finish = _told_to_continue(way, case.data["question"])
        return judge(case, "".join(pieces), pieces, finish)
    model = way.chat(max_tokens=_ROOM, on_cut="continue", max_continuations=_MOST)
    message = model.invoke(case.data["question"])
    pieces = [exchange.text for exchange in way.exchanges()]
    return judge(case, message.text, pieces, message.response_metadata["finish_reason"])


def _told_to_continue(way: Way, question: str) -> tuple[list[str], str]:
    """What anybody writes: "Continue", and one text behind the other."""
    model = way.chat(max_tokens=_ROOM)
    pieces: list[str] = []
    finish = "length"
    while finish == "length" and len(pieces) <= _MOST:
        turns: list[AIMessage | HumanMessage | str] = [question]
        if pieces:
            turns += [AIMessage("".join(pieces)), "Continue"]
        message = model.invoke(conversation(*turns))
        pieces.append(message.text)
        finish = message.response_metadata["finish_reason"]
    return pieces, finish


def judge(case: Case, text: str, pieces: Sequence[str], finish: str) -> Outcome:
    """Whether the text reads as if nothing had been cut; `pieces` are the answers it came in."""
    if len(pieces) > 1 and len(text.strip()) <= len(pieces[0].strip()):
        why = "no further than the cut"
    elif "text" in case.data:
        why = _miscopied(case.data["text"], text, is_cut=finish == "length")
    else:
        why = _bad_seam(text, pieces)
    delivered = {"text": text, "finish": finish}
    return Outcome(not why, why, delivered, max(len(pieces), 1), not text.strip())


def _miscopied(wanted: str, text: str, *, is_cut: bool) -> str:
    """Why this is no copy: the whole text, or its beginning where the answer says it is cut."""
    words, copied = _words(wanted), _words(text)
    starts = [at for at in range(len(copied)) if copied[at : at + 3] == words[:3]]
    if not starts:
        return "not begun"
    copied = copied[starts[0] :]
    if copied == words:
        return ""
    both = min(len(copied), len(words))
    same = next((at for at in range(both) if copied[at] != words[at]), both)
    if same == len(words):
        return "more than the text"
    is_last = same >= len(copied) - 1 and words[same].startswith("".join(copied[same:]))
    if is_last:
        return "" if is_cut else "half, and ended as whole"
    return f"differs after {same} words"


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _bad_seam(text: str, pieces: Sequence[str]) -> str:
    """What a joint left behind in the text; empty where nothing."""
    for joint in _joints(text, pieces):
        before, after = text[:joint], text[joint:]
        if _ABOUT.match(after):
            return "words about going on"
        if re.search(r"[\w,;-]$", before) and _begins_anew(after.lstrip(" ")):
            return "joined in the middle of a sentence"
        if _says_again(before, after):
            return "said twice"
    return ""


def _joints(text: str, pieces: Sequence[str]) -> Iterator[int]:
    """Where an answer ends in the text, and another goes on."""
    at = 0
    for piece in pieces[:-1]:
        end = piece.rstrip()[-_TWICE:]
        found = text.find(end, at) if end else -1
        if found >= 0:  # otherwise the piece was replaced
            at = found + len(end)
            yield at


def _says_again(before: str, after: str) -> bool:
    """Whether the last words are said again, or a long run of the text."""
    last, first = before.split(), after.split()
    most = min(len(last), len(first), _MOST_WORDS)
    if any(last[-count:] == first[:count] for count in range(1, most + 1)):
        return True
    before, after = " ".join(last), " ".join(first)
    starts = range(0, len(after) - _TWICE + 1, 4)
    return any(after[at : at + _TWICE] in before for at in starts)


def _begins_anew(text: str) -> bool:
    """Whether this is how a sentence or a block begins, and no going on."""
    is_capital = text[:1].isupper() and not re.match(r"I\b", text)
    return is_capital or text.startswith(("#", "```"))


CUT = Suite("cut", ("svc", "svc-prefill", "plain"), _cases, _ask, lambda _: "")
CUT_CALLS = Suite(
    "cut-calls", ("svc", "svc-prefill"), _call_cases, _ask_for_call, lambda _: ""
)
