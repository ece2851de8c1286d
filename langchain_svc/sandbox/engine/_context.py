"""Questions over a given text: where the text is, what is asked, and the sentence that answers."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

from langchain_svc.sandbox.engine._words import clip, content_stems, paragraphs, sentences, words

_QUESTION_LABEL = re.compile(
    r"^(?:#{1,4} ?)?(?:\*\*)?(?:question|user question|query|follow[- ]?up input|user query|task)"
    r"(?:\*\*)?:(?:\*\*)?[ \t]*|\b(?:original|follow[- ]?up|user) question:[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_OTHER_LABEL = re.compile(
    r"^(?:#{1,4} ?)?(?:\*\*)?(?:(?:helpful|concise|final|short)? ?answer|response|output|context"
    r"|standalone question|documents?|sources?|concise summary|summary)(?:\*\*)?:",
    re.IGNORECASE | re.MULTILINE,
)
_CONTEXT_LABEL = re.compile(
    r"^(?:#{1,4} ?)?(?:\*\*)?(?:context|documents?|passages?|sources|background|text|article"
    r"|information|search results?|retrieved [a-z ]{1,30})(?:\*\*)?:",
    re.IGNORECASE | re.MULTILINE,
)
_CONTEXT_TAG = re.compile(
    r"<(context|documents?|passages?|sources?|articles?|text|images?|attachments?)\b[^<>]{0,200}>"
)
_ANNOUNCED = re.compile(
    r"\b(?:following|given|provided|retrieved|below|based on|use only"
    r"|(?:use|using|from) (?:the|this))\b.{0,60}"
    r"\b(?:context|documents?|passages?|text|sources?|information|articles?|notes?|facts)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\?\s*$|^\W{0,3}(?:what|who|whom|whose|where|when|why|how|which|is|are|was|were|does|do|did"
    r"|can|could|name|list|tell|explain|describe|summari[sz]e|find|give|according|in what|translate"
    r"|write|extract)\b",
    re.IGNORECASE,
)
_LONG_CONTEXT = 40  # words from which a text before or after a question is a context unannounced
_LONGEST_QUESTION = 80  # words


@dataclass(frozen=True)
class Material:
    """A text to work on, and what is asked about it.

    `announced` says that the answer must come from the text.
    """

    context: str
    ask: str
    announced: bool = True


def _labelled(text: str) -> Material | None:
    labels = list(_QUESTION_LABEL.finditer(text))
    if not labels:
        return None
    last = labels[-1]
    tail = text[last.end() :]
    stop = _OTHER_LABEL.search(tail)
    ask = tail[: stop.start()] if stop else tail
    context = f"{text[: last.start()]}\n{tail[stop.start() :] if stop else ''}"
    return Material(context, ask.strip()) if ask.strip() else None


def _tagged(text: str) -> Material | None:
    opening = _CONTEXT_TAG.search(text)
    if not opening:
        return None
    end = text.rfind(f"</{opening[1]}>")
    if end < opening.end():
        return None
    behind = text[end + len(opening[1]) + 3 :].strip()
    return Material(text[opening.start() : end], behind or text[: opening.start()].strip())


def _is_ask(paragraph: str) -> bool:
    short = len(paragraph) < 12 * _LONGEST_QUESTION
    return short and bool(_ASKS.search(paragraph)) and len(words(paragraph)) <= _LONGEST_QUESTION


def _by_paragraphs(text: str, announced: str) -> Material | None:
    parts = paragraphs(text)
    told = bool(_ANNOUNCED.search(announced[:4_000]) or _CONTEXT_LABEL.search(text))
    if len(parts) < 2:  # noqa: PLR2004 - a context and a question are two
        return _by_sentences(text) if told or len(text) > 8 * _LONG_CONTEXT else None
    for at in (-1, 0):
        rest = parts[:at] if at else parts[1:]
        long_rest = sum(len(part) for part in rest) > 3 * _LONG_CONTEXT
        if _is_ask(parts[at]) and (told or long_rest):
            return Material("\n\n".join(rest), parts[at])
    return Material("\n\n".join(parts[:-1]), parts[-1]) if told else None


def _by_sentences(text: str) -> Material | None:
    every = sentences(text)
    for at in (-1, 0):
        if len(every) > 1 and _is_ask(every[at]):
            return Material("\n".join(every[:at] if at else every[1:]), every[at])
    return None


def _gives_context(text: str) -> bool:
    """Tell whether a text announces a context, or has parts under the names of their sources."""
    labelled = [line for line in text[:4_000].splitlines() if _SOURCE_LINE.match(line)]
    return bool(labelled or _ANNOUNCED.search(text[:4_000]) or _CONTEXT_LABEL.search(text))


_SOURCE_LINE = re.compile(
    r"\W{0,4}(?:source|file|document)\b[^:\n]{0,12}:|\[\d{1,3}\] ", re.IGNORECASE
)


def material_of(system: str, question: str) -> Material:
    """Split a prompt into the text it gives and the question about that text.

    `system` counts as a text when it announces one, or is longer than instructions are.
    """
    inner = _labelled(question) or _tagged(question) or _by_paragraphs(question, question)
    ask = inner.ask if inner else question
    context = inner.context if inner else ""
    told = _gives_context(system)
    if told or len(words(system[:4_000])) > _LONG_CONTEXT:
        context = f"{system}\n\n{context}"
    return Material(context.strip(), ask.strip(), announced=bool(inner) or told)


# --- Passages ------------------------------------------------------------------------------

_FILE = r"[\w./-]{1,80}\.(?:md|txt|pdf|html?|csv|json|docx?|rst|py|ya?ml)"
_FILE_NAME = re.compile(rf"\b{_FILE}\b")
_SOURCE = re.compile(
    r"\b(?:source|file|path|url|title|document|doc)[\"']?\s?[\d]{0,4}\s?[:=]\s?"
    r"[\"'\[<(]{0,2}([^\s\"'<>,\]){}]{1,120})",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^\s{0,4}\[(\w{1,12})\]")
_INSTRUCTIVE = re.compile(
    r"^\W{0,4}(?:use the following|answer (?:the|only|based|in|with|using|as|from)|if (?:you|the "
    r"(?:answer|context|information))|you are|keep the|do not|don't|use (?:three|only|the)|cite"
    r"|given the|based on the|helpful answer|question:|context:\s*$|chat history|begin!?$|respond"
    r"|reply)",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"^\W{0,4}(?:(?:source|file|path|url|title|document|doc|content|context|passage|text)\b[^:\n]{0,20}:)"
    r"\s{0,3}|^\s{0,4}\[\w{1,12}\]:?\s{0,3}|</?\w{1,20}[^<>]{0,200}>",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Passage:
    """One sentence of a context, and the label of the source it stands in."""

    text: str
    label: str


def _label(line: str) -> str:
    """Return what a line names as its source: a file, a named source, or a number."""
    brief = line[:200]
    file = _FILE_NAME.search(brief)
    if file and (len(words(brief)) <= 12 or _SOURCE.search(brief) or file.start() <= 8):  # noqa: PLR2004 - a heading
        return file[0]
    source = _SOURCE.search(brief)
    if source and not source[1][:1].isspace() and not source[1].endswith(":"):
        return source[1].rstrip(".;")
    numbered = _NUMBERED.match(brief)
    return f"[{numbered[1]}]" if numbered else ""


def _is_label_only(line: str, label: str) -> bool:
    return bool(label) and len(words(_HEAD.sub("", line).replace(label, ""))) <= 2  # noqa: PLR2004


def passages_of(context: str) -> list[Passage]:
    """Return the sentences of a context with the sources they stand under.

    A label in a line of its own counts for its paragraph and for those behind it; a label within
    a line counts for that line and what follows in the paragraph.
    """
    found: list[Passage] = []
    standing = ""
    for paragraph in paragraphs(context):
        passages, standing = _passages_in(paragraph.splitlines(), standing)
        found += passages
    return found


def _passages_in(lines: list[str], standing: str) -> tuple[list[Passage], str]:
    """Return the passages of a paragraph, and the label that stands over the next one."""
    labels = [_label(line) for line in lines]
    own = [label for label in labels if label]
    if not own:
        return _under(lines, labels, standing), standing
    leads, trails = _is_label_only(lines[0], labels[0]), _is_label_only(lines[-1], labels[-1])
    # A label at the end of a paragraph, or of each of its parts, speaks for what is before it.
    spoken_for = _backwards(labels) if trails and not leads else labels
    current = own[0] if len(set(own)) == 1 else standing
    return _under(lines, spoken_for, current), own[-1] if leads else standing


def _under(lines: list[str], labels: list[str], current: str) -> list[Passage]:
    """Return the sentences of lines, each under the last label given."""
    found: list[Passage] = []
    for line, label in zip(lines, labels, strict=True):
        current = label or current
        if not _is_label_only(line, _label(line)) and not _INSTRUCTIVE.match(line):
            found += [Passage(text, current) for text in _sentences(line, label)]
    return found


def _backwards(labels: list[str]) -> list[str]:
    """Give every line the next label."""
    following = ""
    given: list[str] = []
    for label in reversed(labels):
        following = label or following
        given.append(following)
    return given[::-1]


def _sentences(line: str, label: str) -> list[str]:
    body = _HEAD.sub("", line)
    if label and body.startswith((f"({label})", f"{label}:", f"{label} -")):
        body = body.partition(label)[2].lstrip(" ):-")
    return [text for text in sentences(_HEAD.sub("", body)) if words(text)]


# --- The best sentence ---------------------------------------------------------------------

_SATURATION, _LENGTH_SHARE = 1.2, 0.5
_LEAST_COVERAGE = 0.3
_CLOSE = 0.7
_HISTORY_WEIGHT = 0.3


@dataclass(frozen=True)
class Found:
    """The passages that answer best, and how much of the question they cover."""

    passages: tuple[Passage, ...]
    coverage: float


def best_passages(passages: list[Passage], ask: str, before: str = "") -> Found:
    """Return the passage that shares most with the question, and a close second beside it."""
    bags = [Counter(content_stems(passage.text)) for passage in passages]
    worth = _worth(bags, ask, before)
    scores = _scores(bags, worth)
    if not any(scores):
        return Found((), 0.0)
    top = scores.index(max(scores))
    covered = sum(value for stem, value in worth.items() if bags[top][stem])
    chosen = [passages[top]]
    if top + 1 < len(scores) and scores[top + 1] > _CLOSE * scores[top]:
        chosen.append(passages[top + 1])
    return Found(tuple(chosen), covered / sum(worth.values()))


def _worth(bags: list[Counter[str]], ask: str, before: str) -> dict[str, float]:
    """Return what a match of each asked stem counts: more, the fewer passages have it."""
    asked = dict.fromkeys(content_stems(before), _HISTORY_WEIGHT)
    asked |= dict.fromkeys(content_stems(ask), 1.0)
    spread = Counter(stem for bag in bags for stem in bag)
    return {
        stem: weight * math.log(1 + (len(bags) + 1) / (1 + spread[stem]))
        for stem, weight in asked.items()
    }


def _scores(bags: list[Counter[str]], worth: dict[str, float]) -> list[float]:
    """Return the BM25 score of each passage."""
    length = sum(map(Counter.total, bags)) / max(len(bags), 1) or 1.0

    def score(bag: Counter[str]) -> float:
        brake = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * bag.total() / length)
        hits = ((value, bag[stem]) for stem, value in worth.items() if bag[stem])
        return sum(value * count * (_SATURATION + 1) / (count + brake) for value, count in hits)

    return [score(bag) for bag in bags]


def answer_from(material: Material, before: str = "") -> str | None:
    """Answer a question by quoting the context; `None` where there is nothing to quote from."""
    passages, ask = passages_of(material.context), material.ask
    if not passages:
        return None
    if not content_stems(ask):
        return (
            None
            if not material.announced
            else f'The context begins: "{clip(passages[0].text, 400)}"'
        )
    found = best_passages(passages, ask, before)
    if found.coverage < _LEAST_COVERAGE and not material.announced:
        return None
    if found.coverage < _LEAST_COVERAGE:
        asked = " ".join(dict.fromkeys(w for w in words(ask) if content_stems(w)))
        return f"The given context does not answer that: it says nothing about {clip(asked, 120)}."
    return quote(found.passages)


def quote(passages: tuple[Passage, ...]) -> str:
    """Quote passages, each after the label of its source."""
    first = passages[0]
    same = [p for p in passages if p.label == first.label]
    said = clip(" ".join(p.text for p in same), 700)
    lead = f"According to {first.label}" if first.label else "The context says"
    return f'{lead}: "{said}"'
