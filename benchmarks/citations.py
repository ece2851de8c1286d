"""How much of what is shown as supported is so, and how much of what is so is shown.

python -m benchmarks.citations TEXTS.jsonl            # {"contexts": ["...", ...]} in each line
python -m benchmarks.citations TEXTS.jsonl --answers 500 --seed 5 --wrong

Each answer makes four statements about the texts of one line, of kinds drawn at random. What is
true of a statement is known from how it was made: does the cited source, as it is cited, say this?
A statement is shown as supported if it has a citation that is not doubtful. `--wrong` prints those
whose outcome is wrong. No model and no network.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from langchain_svc.citations.passages import Passage, Passages
from langchain_svc.citations.statements import (
    AnswerStatement,
    CitationParser,
    doubt_about,
    places_of,
)

_NONCE = "b3nch"
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SHORTEST = 40  # characters of a sentence to make a statement of
_TRIES = 60
_VERBS = [
    (" was ", " was not "), (" were ", " were not "), (" is ", " is not "), (" are ", " are not "),
    (" had ", " did not have "), (" can ", " cannot "),
]  # fmt: skip
_UNITS = [
    ("mg", "g"), ("months", "years"), ("days", "weeks"), ("mm", "cm"), ("years", "months"),
    ("hours", "days"), ("%", " per mille"), ("patients", "hospitals"),
]  # fmt: skip
_OPPOSITES = [
    ("higher", "lower"),
    ("increased", "decreased"),
    ("before", "after"),
    ("more", "less"),
]


class Made(NamedTuple):
    """What a model says of a sentence, the words that it cites for it, and where it looks."""

    statement: str
    quote: str
    is_elsewhere: bool = False  # cited under the number of another passage


Make = Callable[[str, str, random.Random], Made | None]  # of a sentence, and all texts


def exact(sentence: str, _: str, __: random.Random) -> Made:
    return Made(sentence, sentence)


def elsewhere(sentence: str, _: str, __: random.Random) -> Made:
    return Made(sentence, sentence, is_elsewhere=True)


def a_part(sentence: str, _: str, rng: random.Random) -> Made | None:
    words = sentence.split()
    if len(words) < 12:
        return None
    begin = rng.randrange(len(words) - 8)
    return Made(sentence, " ".join(words[begin : begin + 8]))


def other_typography(sentence: str, _: str, __: random.Random) -> Made:
    return Made(
        sentence, sentence.replace(" ", "  ").replace("-", "\u2011").replace('"', "”")
    )


def ellipsis_in_quote(sentence: str, _: str, __: random.Random) -> Made | None:
    words = sentence.split()
    if len(words) < 16:
        return None
    return Made(sentence, f"{' '.join(words[:6])} ... {' '.join(words[-6:])}")


def a_word_added_to_quote(sentence: str, _: str, __: random.Random) -> Made | None:
    words = sentence.split()
    if len(words) < 10:
        return None
    return Made(sentence, " ".join([*words[:3], "apparently", *words[3:]]))


def in_other_words(sentence: str, _: str, __: random.Random) -> Made:
    text = re.sub(r"\s*\([^()]*\)", "", sentence)
    text = re.sub(r"(\d)%", r"\1 percent", text)
    text = re.sub(r"\b(?:significantly|also|however),?\s", "", text)
    return Made(f"The study reports that {text[0].lower()}{text[1:]}", sentence)


def a_not_added(sentence: str, _: str, __: random.Random) -> Made | None:
    for verb, denied in _VERBS:
        if verb in sentence and denied not in sentence:
            return Made(sentence.replace(verb, denied, 1), sentence)
    return None


def quoted_behind_a_not(sentence: str, _: str, __: random.Random) -> Made | None:
    negator = re.search(r"\b(?:not|no|without) ", sentence)
    if negator is None or len(sentence[negator.end() :].split()) < 3:
        return None
    rest = sentence[negator.end() :]
    return Made(sentence[: negator.start()] + rest, rest)


def another_number(sentence: str, _: str, rng: random.Random) -> Made | None:
    changed = _with_another_number(sentence, rng)
    return Made(changed, sentence) if changed else None


def another_number_in_quote(
    sentence: str, texts: str, rng: random.Random
) -> Made | None:
    changed = _with_another_number(sentence, rng)
    return Made(changed, changed) if changed and changed not in texts else None


def _with_another_number(sentence: str, rng: random.Random) -> str:
    numbers = [*_NUMBER.finditer(sentence)]
    if not numbers:
        return ""
    number = rng.choice(numbers)
    whole, point, decimals = number[0].partition(".")
    other = f"{int(whole) + rng.choice([3, 7, 11])}{point}{decimals}"
    return sentence[: number.start()] + other + sentence[number.end() :]


def another_unit(sentence: str, _: str, __: random.Random) -> Made | None:
    for unit, other in _UNITS:
        changed = re.sub(
            rf"(\d\s?){re.escape(unit)}(?!\w)", rf"\g<1>{other}", sentence, count=1
        )
        if changed != sentence:
            return Made(changed, sentence)
    return None


def the_opposite(sentence: str, _: str, __: random.Random) -> Made | None:
    for pair in _OPPOSITES:
        for word, other in (pair, pair[::-1]):
            changed = re.sub(rf"\b{word}\b", other, sentence, count=1)
            if changed != sentence:
                return Made(changed, sentence)
    return None


def a_quote_that_says_nothing(_: str, texts: str, rng: random.Random) -> Made:
    words = ("the", "of the", "patients", "in", "significant", "and")
    there = [word for word in words if re.search(rf"\b{word}\b", texts)]
    quote = rng.choice(there or ["the"])
    return Made("The treatment is safe and cures most people.", quote)


def of_something_else(sentence: str, _: str, __: random.Random) -> Made:
    return Made("The effect lasts for more than ten years.", sentence)


def invented(_: str, __: str, ___: random.Random) -> Made:
    quote = "the effect was found to be very large in all arms of the trial"
    return Made("The effect was large.", quote)


SUPPORTED: Sequence[Make] = (
    exact, elsewhere, a_part, other_typography, ellipsis_in_quote, a_word_added_to_quote,
)  # fmt: skip
UNSUPPORTED: Sequence[Make] = (
    a_not_added, quoted_behind_a_not, another_number, another_number_in_quote, another_unit,
    the_opposite, a_quote_that_says_nothing, of_something_else, invented,
)  # fmt: skip
# In other words, a statement is no kind of the fifteen: what it costs is told beside them.
PARAPHRASED: Sequence[Make] = (in_other_words,)


@dataclass
class Score:
    """How often statements of a kind were made and shown, and those with the wrong outcome."""

    count: int = 0
    shown: int = 0
    wrong: list[str] = field(default_factory=list)


def measure(
    texts: Sequence[Sequence[str]], answers: int, seed: int
) -> dict[Make, Score]:
    """The scores of each kind, over so many answers about texts drawn at random."""
    rng = random.Random(seed)
    scores: dict[Make, Score] = defaultdict(Score)
    kinds = [*SUPPORTED, *UNSUPPORTED, *PARAPHRASED]
    for _ in range(answers):
        contexts = rng.choice(texts)
        passages = Passages(
            [Passage(number, text, {}) for number, text in enumerate(contexts, 1)]
        )
        made = _statements(contexts, rng.sample(kinds, 4), rng)
        answer = " ".join(text for _, _, text in made)
        cited = _cited(answer)
        for kind, statement, _ in made:
            reason = _reason(statement, cited, passages)
            score = scores[kind]
            score.count += 1
            score.shown += reason is None
            if (reason is None) != (kind not in UNSUPPORTED):
                score.wrong.append(f"{reason}: {statement}")
    return scores


def _statements(
    contexts: Sequence[str], kinds: Sequence[Make], rng: random.Random
) -> list[tuple[Make, Made, str]]:
    """Statements of some kinds, each as the answer has it."""
    texts = "\n".join(contexts)
    used = set[str]()
    made: list[tuple[Make, Made, str]] = []
    for kind in kinds:
        for _ in range(_TRIES):
            at = rng.randrange(len(contexts))
            sentence = rng.choice(_SENTENCE.split(contexts[at]))
            if len(sentence) <= _SHORTEST or sentence in used:
                continue
            statement = kind(sentence, texts, rng)
            if statement is not None:
                used.add(sentence)
                number = (at + statement.is_elsewhere) % len(contexts) + 1
                quote = statement.quote.replace("<", "‹")  # as passages are shown
                said = statement.statement.replace("<", "‹").rstrip(". ")
                text = f'{said} <cite id="{number}-{_NONCE}">{quote}</cite>.'
                made.append((kind, statement._replace(quote=quote), text))
                break
    return made


def _cited(answer: str) -> list[AnswerStatement]:
    parser = CitationParser(_NONCE)
    parts = [*parser.parse_chunk(answer), *parser.close()]
    return [part for part in parts if part.quotes]


def _reason(
    made: Made, cited: Sequence[AnswerStatement], passages: Passages
) -> str | None:
    """Why a statement is not shown as supported; None: it is."""
    for statement in cited:
        if statement.quotes[0].text == made.quote.strip():
            places = places_of(statement, passages)
            return doubt_about(statement, places) if places else "it stands nowhere"
    return "it is no statement of the answer"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of what was shown; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.citations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("texts", type=Path)
    parser.add_argument("--answers", type=int, default=500)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--wrong", action="store_true", help="print wrong outcomes")
    options = parser.parse_args(arguments)
    lines = options.texts.read_text("utf-8").splitlines()
    texts = [json.loads(line)["contexts"] for line in lines]
    scores = measure(texts, options.answers, options.seed)
    for kind, score in scores.items():
        truth = "not so" if kind in UNSUPPORTED else "so"
        name = kind.__name__.replace("_", " ")
        print(f"{name:28} {truth:8} shown {score.shown:4} of {score.count:4}")
        if options.wrong:
            print("".join(f"    {line}\n" for line in score.wrong), end="")
    precision, recall = totals(scores)
    print(f"precision {precision:.3f}, recall {recall:.3f}")
    return 0


def totals(scores: dict[Make, Score]) -> tuple[float, float]:
    """Precision and recall of what is shown as supported, over the fifteen kinds."""
    sums: Counter[str] = Counter()
    for kind in SUPPORTED:
        sums["right"] += scores[kind].shown
        sums["so"] += scores[kind].count
    sums["wrong"] = sum(scores[kind].shown for kind in UNSUPPORTED)
    shown = sums["right"] + sums["wrong"]
    return sums["right"] / max(1, shown), sums["right"] / max(1, sums["so"])


if __name__ == "__main__":
    sys.exit(main())
