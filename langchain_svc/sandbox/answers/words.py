"""Answers in words: quotations of results and material, sums, small talk, and a plain refusal."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from langchain_svc.sandbox.answers.read import Prompt
from langchain_svc.sandbox.answers.text import sentences, stems, subject, sums

_LONGEST = 4_000  # characters of a result that are quoted
_SAY = re.compile(r"(?is)(?:say|repeat|write|answer) (?:exactly|only|just)?\s?: ?(.{1,2000})")
_COUNT = re.compile(r"(?i)\bcount (?:from )?(\d{1,4}) to (\d{1,4})\b")
_FEW = 4  # words of a greeting that asks nothing
_MOST_COUNTED = 1_000
_GREETING = re.compile(r"(?i)\W*(hello|hi|hey|good (?:morning|afternoon|evening))\b")
_STORY = re.compile(r"(?i)\b(?:story|joke|poem|haiku|song|tale)\b")
_REFERS = re.compile(r"(?i)\b(?:it|its|they|them|he|she|that|this|there)\b")
_WHO = "This is the sandbox; rules answer here, not a model."


def answer_in_words(prompt: Prompt, model: str) -> str:
    """The answer where neither calls nor JSON are due."""
    asked = prompt.question
    if prompt.results:
        return "\n".join(_told(prompt))
    if len(asked.split()) <= _FEW and (talk := _small_talk(asked)):
        return talk
    if said := _SAY.match(asked):
        return said[1]
    if counted := _COUNT.search(asked):
        first, last = map(int, counted.groups())
        return ", ".join(map(str, range(first, min(last, first + _MOST_COUNTED) + 1)))
    if prompt.images:
        return f'The description of the image says: "{prompt.images[0][:_LONGEST]}"'
    told = quoted(asked, prompt.material, prompt.before if _REFERS.search(asked) else "")
    if told is None and (found := list(sums(asked))):
        told = "; ".join(f"{shown} = {value}" for shown, value in found)
    return told or _small_talk(asked) or recalled(asked, prompt.material) or _template(asked, model)


def _told(prompt: Prompt) -> Iterator[str]:
    """What each of the functions returned."""
    for number, result in enumerate(prompt.results):
        called = prompt.calls[number].name if number < len(prompt.calls) else ""
        done = "failed" if result.failed else "answered"
        told = f"{done}: {result.text[:_LONGEST]}"
        yield " ".join(["The tool", *filter(None, [result.name or called]), told])


def _small_talk(asked: str) -> str | None:
    greeting = _GREETING.match(asked)
    return f"{greeting[1].capitalize()}! {_WHO} How can I help?" if greeting else None


def _template(asked: str, model: str) -> str:
    about = subject(asked)
    if _STORY.search(asked):
        return (
            f"The day began with rain, and with {about} at the door. At noon the wind turned, and "
            f"{about} found a path that no map had shown. In the evening everybody told it "
            f"differently, but in every version {about} came home. (A story by the sandbox's "
            "template, not by AI.)"
        )
    return (
        f"This is about {about}. The sandbox answers for {model} by fixed rules, not by AI, and "
        f"none of them can follow this prompt: they quote a text that is given, compute sums, "
        f"call tools and fill schemas. You asked: {asked[:500]}"
    )


# -- quotations -----------------------------------------------------------------------------------

_CONTEXT = re.compile(
    r"(?im)^[^\n:]{0,80}\b(?:context|documents?|sources|passages?|excerpts?)\b[^\n:]{0,40}:"
)
_TAG = re.compile(r"(?i)<(context|documents?|sources?)>")
_QUESTION = re.compile(r"(?im)^[ \t]*(?:question|query|user question)[ \t]*:[ \t]*")
_LABEL = re.compile(r"(?im)^[ \t]*(?:\[\d+\]\s*)?(?:source|document|title|file)\s*:\s*(.{1,200})$")
_NUMBERED = re.compile(r"\s*(\[\d+\])\s*(.*)")
_PERSONA = re.compile(
    r"(?i)(?:you(?:'re| are)|your|answer|respond|reply|use|always|never|do not|if you|be|given|keep"
    r"|please)\b"
)
_LONG = 300  # characters; a system text of that length holds more than a role
_LINES = 4  # the same, in lines
_NEXT = 0.5  # a sentence that is worth so much of the best one is quoted with it


def quoted(asked: str, material: Sequence[str], before: str) -> str | None:
    """The best sentence of a context, in the question's own turn or an earlier one."""
    before, _ = _split(before)
    asked, contexts = _split(asked)
    for text in material:
        contexts += _split(text)[1]
    given = [t for t in material if len(t) > _LONG or len(t.splitlines()) >= _LINES]
    found = _best(asked, [*contexts, *given], before)
    if found or not contexts:
        return found[0] if found else None
    return f'The given text does not answer "{asked[:500].strip()}".'


def recalled(asked: str, material: Sequence[str]) -> str | None:
    """What was said before with the words of the question, where it has nearly all of them."""
    told = [each for text in material for each in sentences(text) if not each.endswith("?")]
    found = _best(asked, [each for each in told if each != asked])
    return found[0] if found and found[1] else None


def _split(text: str) -> tuple[str, list[str]]:
    """A text without the context in it, and that context."""
    if (tag := _TAG.search(text)) and (end := text.rfind(f"</{tag[1]}>")) > 0:
        rest = text[: tag.start()] + text[end + len(tag[0]) + 1 :]
        return rest.strip(), [text[tag.end() : end]]
    label = _CONTEXT.search(text) or _LABEL.search(text)
    if not label:
        return text, []
    # The label of a passage belongs to it; the one of the whole context does not.
    begins = label.end() if label[0].endswith(":") else label.start()
    before, body = text[: label.start()], text[begins:]
    if not body.strip():
        return text, []
    asks = list(_QUESTION.finditer(body))
    if asks:
        return body[asks[-1].end() :].strip(), [body[: asks[-1].start()]]
    if ask := _QUESTION.search(before):
        return before[ask.end() :].strip(), [body]
    paragraphs = body.strip().split("\n\n")
    if before.rstrip().endswith("?") or len(paragraphs) == 1 or not paragraphs[-1].endswith("?"):
        return before.strip(), [body]
    return paragraphs[-1], ["\n\n".join(paragraphs[:-1])]


def _best(asked: str, texts: Sequence[str], before: str = "") -> tuple[str, bool] | None:
    """The best sentence with its neighbour, and whether it has nearly all words of the question."""
    passages: list[tuple[str, str]] = []
    for text in texts:
        label = ""
        for line in text.split("\n"):
            if named := _LABEL.fullmatch(line):
                label = named[1].strip()
            elif numbered := _NUMBERED.match(line):
                passages += [(numbered[1], each) for each in sentences(numbered[2])]
            else:
                passages += [(label, each) for each in sentences(line) if not _PERSONA.match(each)]
    bags = [frozenset(stems(sentence)) for _, sentence in passages]
    common = Counter(word for bag in bags for word in bag)
    wanted = set(stems(asked))
    worth = {w: 0.4 * math.log(1 + len(bags) / common[w]) for w in stems(before) if w in common}
    worth |= {w: math.log(1 + len(bags) / common[w]) for w in wanted if w in common}
    scores = [sum(worth.get(w, 0) for w in bag) / (1 + 0.02 * len(bag)) for bag in bags]
    if not scores or not max(scores):
        return None
    at = scores.index(max(scores))
    label, quote = passages[at]
    after = passages[at + 1 : at + 2]
    if after and after[0][0] == label and scores[at + 1] > _NEXT * scores[at]:
        quote += f" {after[0][1]}"
    nearly_all = 3 * len(wanted & bags[at]) >= 2 * len(wanted)
    return f'According to {label or "the text"}: "{quote}"', nearly_all
