"""Tasks that rules can really do: sums, counting, repeating, lists, summaries, rewriting.

Each row of the table is a pattern for the question and the work it starts. The first work that
has an answer gives it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._arithmetic import find_sum
from langchain_svc.sandbox.engine._context import Material, passages_of
from langchain_svc.sandbox.engine._facts import facts_of
from langchain_svc.sandbox.engine._gazetteer import LANGUAGE_CODES, NUMBER_WORDS
from langchain_svc.sandbox.engine._mentions import plain_request, request_text
from langchain_svc.sandbox.engine._prose import MOST_ITEMS, PIECES, items_for, singular, story
from langchain_svc.sandbox.engine._topic import subject_of, topic_of
from langchain_svc.sandbox.engine._translate import pseudo_localise
from langchain_svc.sandbox.engine._words import clip, content_stems, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NUMBER = rf"(?P<count>\d{{1,4}}|{'|'.join(NUMBER_WORDS)})"
_LONGEST_TASK = 4_000
_SIGN, _SPACED = re.compile(r"(?<=[\w)])\s?(\*\*|[-+*/%])\s?(?=[-(\d])"), r" \1 "


@dataclass(frozen=True)
class Task:
    """One question with the text it is about and the last question before it."""

    ask: str
    context: str
    instructions: str
    before: str
    found: re.Match[str]


def _count_of(word: str) -> int:
    if word.isdigit():
        return int(word)
    return NUMBER_WORDS.get(word.lower(), 1)


# --- The works -----------------------------------------------------------------------------


def _exactly(task: Task) -> str | None:
    said = task.found["said"].strip()
    quoted = [fact for fact in facts_of(said) if fact.kind == "quoted" and fact.start == 0]
    return str(quoted[0].value) if quoted else said.rstrip(" ") or None


def _count(task: Task) -> str | None:
    first, last = _count_of(task.found["first"] or "1"), _count_of(task.found["last"])
    if abs(last - first) >= 10 * MOST_ITEMS:
        return None
    step = 1 if last >= first else -1
    return ", ".join(str(number) for number in range(first, last + step, step))


def _sum(task: Task) -> str | None:
    found = find_sum(task.ask)
    if not found:
        return None
    expression, value = found
    return f"{_SIGN.sub(_SPACED, expression)} = {value}"


def _list(task: Task) -> str | None:
    count, thing = _count_of(task.found["count"]), task.found["thing"].strip().lower()
    if singular(thing.split()[-1]) in {"word", "paragraph", "line", "time", "minute", "way"}:
        return None
    # The first noun that is known to be written in pieces decides: "haikus about the sea".
    thing = next((w for w in thing.split() if singular(w) in PIECES), thing)
    topic = subject_of(task.ask) if singular(thing) in PIECES else topic_of(task.ask)
    items = items_for(thing, count, topic)
    if singular(thing.split()[-1]) in PIECES:
        return "\n\n".join(items)
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


def _comma_list(task: Task) -> str | None:
    found = _LIST.search(task.ask)
    count = _count_of(found["count"]) if found else 5
    thing = found["thing"] if found else task.ask
    return ", ".join(items_for(thing.strip(" ."), count, topic_of(task.ask)))


def _story(task: Task) -> str | None:
    return story(subject_of(task.ask), task.ask)


def _piece(task: Task) -> str | None:
    return PIECES[singular(task.found["piece"].lower())](subject_of(task.ask), 0)


def _text_of(task: Task) -> str:
    """Return the text a task works on: the context, or what the request itself carries."""
    return task.context or request_text("text", task.ask)


def _summary(task: Task) -> str | None:
    text = _text_of(task)
    every = [p.text for p in passages_of(text)] or sentences(text)
    if not every:
        return None
    weights = Counter(cut for sentence in every for cut in set(content_stems(sentence)))
    one = re.search(r"\b(?:one|a single|1) sentence\b|\bbrief", f"{task.instructions} {task.ask}")

    def centrality(sentence: str) -> float:
        stems = set(content_stems(sentence))
        return sum(weights[cut] for cut in stems) / (4 + len(stems))

    best = sorted(every[1:200], key=centrality, reverse=True)[: 0 if one else 2]
    chosen = [sentence for sentence in every if sentence in best]
    return " ".join(clip(s, 400) for s in dict.fromkeys([every[0], *chosen]))


def _translation(task: Task) -> str | None:
    language = task.found["language"].lower()
    code = LANGUAGE_CODES.get(language)
    said = task.found.groupdict().get("said")
    text = (said or _text_of(task)).strip().strip("\"'")
    if not code or not text:
        return None
    return f"[{code}] {pseudo_localise(text)}\n(pseudo-localised by the sandbox, no translation)"


def _upper(task: Task) -> str | None:
    return _carried(task).upper()


def _lower(task: Task) -> str | None:
    return _carried(task).lower()


def _reversed(task: Task) -> str | None:
    return _carried(task)[::-1]


def _carried(task: Task) -> str:
    quoted = [str(f.value) for f in facts_of(task.ask) if f.kind == "quoted"]
    head, colon, tail = task.ask.partition(":")
    if quoted:
        return quoted[0]
    if colon and tail.strip() and len(head) < len(task.ask):
        return tail.strip()
    words = re.sub(_CASE_WORDS, " ", plain_request(task.ask)).split()
    return " ".join(words).strip(" .?!")


_CASE_WORDS = re.compile(
    r"\b(?:what is|please|reverse|reversed|spell|convert|turn|make|write|put|say|to|in|into|all"
    r"|the (?:word|string|text|letters of))\b|\b(?:upper|lower)[- ]?case\b"
    r"|\b(?:capitals|backwards?|capital letters|caps)\b",
    re.IGNORECASE,
)


def _standalone(task: Task) -> str | None:
    """Return the question itself, with the topic of the one before where it points back."""
    ask = task.ask.strip()
    points = re.search(
        r"\b(?:it|its|that|this|they|their|them|he|she|his|her)\b", ask, re.IGNORECASE
    )
    known = set(content_stems(ask))
    said = topic_of(task.before).split() if task.before and points else []
    topic = " ".join(word for word in said if not known.intersection(content_stems(word)))
    return f"{ask.rstrip('?. ')} ({topic})?" if topic and topic != "that" else ask


def _versions(task: Task) -> str | None:
    count = min(_count_of(task.found["count"]), MOST_ITEMS)
    bare = task.ask.strip().rstrip("?. ")
    topic = topic_of(bare)
    forms = (
        "{bare}?",
        "What is known about {topic}?",
        "{bare}, in detail?",
        "Which facts concern {topic}?",
        "{bare}, in short?",
    )
    lines = [forms[n % len(forms)].format(bare=bare, topic=topic) for n in range(count)]
    return "\n".join(line if n < len(forms) else f"{line} ({n})" for n, line in enumerate(lines))


# --- The table -----------------------------------------------------------------------------

_LANGUAGE = rf"(?P<language>{'|'.join(LANGUAGE_CODES)})"
_FIGURE = rf"\d{{1,4}}|{'|'.join(NUMBER_WORDS)}"
_LIST_PATTERN = (
    r"\b(?:write|list|name|give|tell|suggest|generate|create|show|recommend|provide|think of)"
    r"(?: me| us)?(?: (?:a|the) (?:list|set) of)?(?: up to| exactly)?"
    rf"\s{_NUMBER}\s(?P<thing>[^\W\d_][\w' -]{{1,60}}\b)"
)
_LIST = re.compile(_LIST_PATTERN, re.IGNORECASE)

# Patterns of the instructions: the question is then the material, whatever it says.
_VERSIONS = (
    rf"\b{_NUMBER} (?:different |alternative |other )?"
    r"(?:versions|variations|rephrasings|alternatives|search queries|queries)\b"
)
_BY_INSTRUCTIONS = (
    (r"\bstandalone (?:question|query)|\bsearch query to look up", _standalone),
    (_VERSIONS, _versions),
    (r"\blist of comma[- ]separated values", _comma_list),
)
# Patterns of the question for work that needs nothing but the prompt.
_EXACTLY = (
    r"\A(?:please |now |just |only )*(?:repeat|say|reply|respond|answer|echo|output|print|write)"
    r"(?: back)?(?: only| just)?(?: (?:after me|exactly|with|verbatim|the following|this"
    r"|word for word|nothing but|the (?:single |exact |one )?(?:words?|text|phrase|sentence)))"
    r"{1,4}(?: exactly| only| text| words?| sentence)*\s?:?\s"
    r"(?P<said>(?!an?\b|the\b|one\b|only\b|JSON).+)"
)
_COUNT = (
    rf"\bcount\b[^.\n]{{0,20}}?(?:\bfrom (?P<first>{_FIGURE}) )?"
    rf"(?:up |down )?to (?P<last>{_FIGURE})\b"
)
_BY_QUESTION = (
    (_EXACTLY, _exactly),
    (r"\A(?:please )?(?:repeat|say|echo)\b[^:\n]{0,30}?:?\s(?P<said>[\"'\u201c].+)", _exactly),
    (r"\A(?:please )?say (?P<said>\w{1,30}(?: (?:you|to \w{1,30}))?)[.!]?\Z", _exactly),
    (_COUNT, _count),
    (r"\bsummar|\btl;?dr\b", _summary),
    (rf"\btranslat.{{0,3000}}\b(?:in)?to {_LANGUAGE}\b", _translation),
    (rf"\bhow (?:do|would) you say\s(?P<said>.{{1,300}}?)\sin {_LANGUAGE}\b", _translation),
    (r"\breverse\b|\bbackwards\b", _reversed),
    (r"\bupper[- ]?case\b|\bin (?:all )?(?:caps|capitals)\b", _upper),
    (r"\blower[- ]?case\b", _lower),
)
# Patterns for work that invents or computes: not where a text is given to answer from.
_INVENTING = (
    (r"\b(?:story|tale|essay)\b", _story),
    (_LIST_PATTERN, _list),
    (r"\b(?P<piece>haiku|poem|joke|limerick)s?\b", _piece),
    (r"\d|\b(?:sum|product) of\b", _sum),
)


def _compiled(
    rows: Sequence[tuple[str, Callable[[Task], str | None]]],
) -> list[tuple[re.Pattern[str], Callable[[Task], str | None]]]:
    return [(re.compile(pattern, re.IGNORECASE | re.DOTALL), work) for pattern, work in rows]


_TABLES = tuple(map(_compiled, (_BY_INSTRUCTIONS, _BY_QUESTION, _INVENTING)))


def do_task(material: Material, instructions: str, before: str) -> str | None:
    """Return the result of the first task that the prompt asks for, or `None`."""
    ask = material.ask[:_LONGEST_TASK].strip()
    told = "\n".join(t[:_LONGEST_TASK] for t in (instructions, material.context, ask))
    searched = (told, ask, "" if material.context else ask)
    for table, text in zip(_TABLES, searched, strict=True):
        for pattern, work in table:
            found = pattern.search(text)
            task = Task(ask, material.context, instructions, before, found) if found else None
            result = work(task) if task else None
            if result:
                return result
    return None
