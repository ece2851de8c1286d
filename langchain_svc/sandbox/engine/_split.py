"""Which part of one turn instructs, and which part asks.

Nothing marks the borders in a prompt that folds the system part, the tools and the question into
one text, so paragraphs are told apart by what they talk about: a paragraph about tools, JSON or
the manner of answering is an instruction; what remains behind the last of them is the request.
"""

from __future__ import annotations

import re

from langchain_svc.sandbox.engine._jsontext import without
from langchain_svc.sandbox.engine._words import any_of, paragraphs, sentences

_MARKUP = re.compile(
    r"</?(?:tools?|tool_call|tool_response|function_calls?|invoke)\b|\btool_call|\btool_response"
    r"|\"arguments\"|\"parameters\"|\bfunction-name\b|^```",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTED_TAG = re.compile(r"\"[^\"\n]{0,500}</?\w[^\"\n]{0,500}\"")
_ABOUT_TOOLS = re.compile(
    r"\b(?:tools?|functions?)\b.{0,80}\b(?:available|listed|offered|below|above|following|calls?"
    r"|called|signatures|fits|needed|provided)\b"
    r"|\b(?:call|calls|calling|access to|choose|available|offered|following|these|those"
    r"|any of)\b.{0,60}\b(?:tools?|functions?)\b"
    r"|\b(?:tool|function)[ -]calls?\b|\bat least one (?:of|call)",
    re.IGNORECASE,
)
_ABOUT_JSON = any_of("JSON", "schema", "code fences?", "markdown", "well-formatted instance")
_MANNER = re.compile(
    r"\W{0,4}(?:you are|you're|act as|your (?:task|job|role|goal) is|always|never|(?:please )?"
    r"(?:respond|reply|answer|speak|write)(?: only| briefly| concisely)? (?:in|with|as|using"
    r"|like)\b|(?:please )?be (?:concise|brief|short|polite|helpful)|keep (?:your|the|it)\b"
    r"|output only|return (?:only|nothing)|do not (?:add|include|use|write)|no (?:prose|markdown))",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^(?:#{1,6} ?(?:the )?(?:user|request|question|conversation|message)\b[^\n]{0,30}\n"
    r"|\*\*(?:user|request|question|message)[^\n*]{0,30}\*\*:?"
    r"|user(?:'s)?(?: (?:message|request|question|input|query))?:)",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING_TAG = re.compile(r"</(user|request|question|message|query|input|user_\w{1,20})>")


def _tagged_request(text: str) -> tuple[int, int, str] | None:
    """Return the last request that stands in a tag of its own, with the span of the tag."""
    closing = list(_CLOSING_TAG.finditer(text))
    if not closing:
        return None
    opening = f"<{closing[-1][1]}>"
    start = text.rfind(opening, 0, closing[-1].start())
    if start < 0:
        return None
    inner = text[start + len(opening) : closing[-1].start()].strip()
    return start, closing[-1].end(), inner


def _marked(paragraph: str) -> bool:
    """Tell whether a paragraph shows markup; within quotation marks it is only talked about."""
    return bool(_MARKUP.search(_QUOTED_TAG.sub("", paragraph)))


def _is_instruction(paragraph: str) -> bool:
    return bool(_marked(paragraph) or _ABOUT_TOOLS.search(paragraph) or _MANNER.match(paragraph))


def without_instructions(text: str) -> str:
    """Return the paragraphs of a system text that are no instructions about tools."""
    return "\n\n".join(part for part in paragraphs(text) if not _is_instruction(part))


def spoken(paragraph: str) -> str:
    """Return a paragraph without its sentences about JSON."""
    if not _ABOUT_JSON.search(paragraph):
        return paragraph
    every = sentences(paragraph)
    kept = [sentence for sentence in every if not _ABOUT_JSON.search(sentence)]
    return paragraph if len(kept) == len(every) else " ".join(kept)


def _choose(parts: list[str]) -> list[int]:
    """Return which paragraphs of a turn are the request.

    Those behind the last markup; failing that the last plain one before it, which is where a
    request stands when the prompt puts its reminder at the end.
    """
    marked = [number for number, part in enumerate(parts) if _marked(part)]
    behind = marked[-1] + 1 if marked else 0
    plain = [n for n, part in enumerate(parts) if not _is_instruction(part) and spoken(part)]
    return [n for n in plain if n >= behind] or plain[-1:]


def split_request(text: str) -> tuple[str, str]:
    """Split one user turn into the instructions in it and the request; either may be empty."""
    if tagged := _tagged_request(text):
        start, end, inner = tagged
        return without(text, [(start, end)]), inner
    headings = list(_HEADING.finditer(text))
    if headings and text[headings[-1].end() :].strip():
        return text[: headings[-1].start()], text[headings[-1].end() :].strip()
    parts = paragraphs(text)
    chosen = _choose(parts)
    kept = set(chosen)
    rest = [part for n, part in enumerate(parts) if n not in kept or spoken(part) != part]
    return "\n\n".join(rest), "\n\n".join(spoken(parts[n]) for n in chosen)


def drop_format(text: str) -> tuple[str, str]:
    """Split a turn without tools into the sentences about JSON and everything else."""
    parts = paragraphs(text)
    rest = [part for part in parts if spoken(part) != part]
    return "\n\n".join(rest), "\n\n".join(kept for part in parts if (kept := spoken(part)))
