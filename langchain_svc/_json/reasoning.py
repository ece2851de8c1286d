"""What a model writes while it thinks, and how the tags around it look.

The opening tag may be missing: many chat templates write it into the prompt. The closing tag is
missing where an answer was cut off.
"""

from __future__ import annotations

import re

_NAMES = r"(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)"
OPENS = rf"<{_NAMES}>|\[THINK\]|◁think▷|<\|channel\|>analysis<\|message\|>"
CLOSES = rf"</{_NAMES}>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>"
TAG = re.compile(rf"(?P<opens>{OPENS})|{CLOSES}", re.IGNORECASE)
CLOSE = re.compile(CLOSES, re.IGNORECASE)


def without_reasoning(text: str) -> str:
    """What a text says beside its reasoning."""
    kept: list[str] = []
    at = 0
    while found := TAG.search(text, at):
        if not found["opens"]:
            kept.clear()
            at = found.end()
            continue
        kept.append(text[at : found.start()])
        close = CLOSE.search(text, found.end())
        at = close.end() if close else len(text)
    return "".join([*kept, text[at:]]).strip()


def is_all_reasoning(text: str) -> bool:
    """Whether a text has reasoning and nothing else."""
    return bool(text.strip()) and not without_reasoning(text)
