"""Answers to prompts that ask for citations: the best sentence of the passages, quoted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_PASSAGES = re.compile(r"<passages>\n(.*?)\n</passages>\n", re.DOTALL)
_PASSAGE = re.compile(
    r'<passage id="([\w-]{1,40})"[^>\n]*>\n(.*?)\n</passage>', re.DOTALL
)
_QUESTION_ABOUT_QUOTES = re.compile(
    r"\AThese statements have quotes that stand in no passage"
)


def cited_answer(
    prompt: str, sentences_of: Callable[[str], Iterable[str]]
) -> str | None:
    """The sentence of the passages with most words of the question, and its mark.

    None: the prompt has no passages, or none has a word of the question.
    """
    if _QUESTION_ABOUT_QUOTES.match(prompt):
        return "1. NONE"  # rules have no better quote
    block = _PASSAGES.search(prompt)
    if block is None:
        return None
    words = _words(prompt[: block.start()])
    most = 0
    answer = None
    for passage, text in _PASSAGE.findall(block[1]):
        for sentence in sentences_of(text):
            count = len(words & _words(sentence))
            if count > most:
                most = count
                answer = f'{sentence} <cite id="{passage}">{sentence}</cite>'
    return answer


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 2}
