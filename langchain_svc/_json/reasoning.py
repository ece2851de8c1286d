"""What a model writes while it thinks: the one table of its marks, and how texts are split by it.

Two kinds of marks. Those of `NATIVE` are a model's own: what stands between them is no part of the
answer. Those of `SPOKEN` are elements that a prompt may have asked for: they stay in the answer,
but nothing inside them is a call, or the object that was asked for.

The opening mark may be missing: many chat templates write it into the prompt. The closing mark is
missing where an answer was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator

from .markers import Markers

NATIVE = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel|>analysis<|message|>": "<|end|>",
}
SPOKEN = {
    f"<{name}>": f"</{name}>"
    for name in ("thoughts", "reasoning", "reflection", "scratchpad", "analysis", "monologue")
}
_END_OF_TURN = "<|end|>"  # ends a thought that was opened, but answers end with it, too
NATIVE_ENDS = frozenset(NATIVE.values()) - {_END_OF_TURN}

_BOTH = NATIVE | SPOKEN
_CLOSERS = {*_BOTH.values(), "<|channel|>final<|message|>"} - {_END_OF_TURN}
OPENS = "|".join(map(re.escape, _BOTH))
CLOSES = "|".join(map(re.escape, sorted(_CLOSERS)))
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


_FIRST = "<[◁"  # what every mark begins with
_MARKS = re.compile(f"[{re.escape(_FIRST)}]")
_LINE_ENDS = ("", "\n", "\r")
_OPENING = {
    False: Markers(NATIVE_ENDS, line_starts=NATIVE),
    True: Markers({*NATIVE_ENDS, *SPOKEN.values()}, line_starts=_BOTH),
}
_CLOSING = {closer: Markers([closer]) for closer in _BOTH.values()}

CONTENT, REASONING, ALL_WAS_REASONING = "content", "reasoning", "all was reasoning"
Piece = tuple[str, str]
Splitting = Generator[Piece, None, str]  # returns the text that is left to read


class Thoughts:
    """Splits an answer without tools into content and reasoning: `feed`, then `finish`.

    An opening mark counts at the beginning of a line: amid a line it is spoken of. A closing mark
    that begins or ends a line, and that nothing opened, says that all before it was reasoning.
    What comes out is the same for every cut of the text.

    Args:
        spoken: Whether the marks that a prompt may have asked for count, too.
    """

    def __init__(self, *, spoken: bool = False) -> None:
        self._marks = _BOTH if spoken else NATIVE
        self._opening = _OPENING[spoken]
        self._held = ""
        self._before = ""  # the last character of the content
        self._closer = ""
        self._mode = self._beginning
        self._in_doubt = True  # content does not simply pass

    def feed(self, text: str) -> Iterable[Piece]:
        """What the text brings, as (CONTENT | REASONING | ALL_WAS_REASONING, text)."""
        if self._held or self._in_doubt or _MARKS.search(text):
            return self._split(text, final=False)
        if not text:
            return ()
        self._before = text[-1]
        return ((CONTENT, text),)

    def finish(self) -> Iterable[Piece]:
        """What was held back."""
        return self._split("", final=True) if self._held or self._in_doubt else ()

    def _split(self, text: str, *, final: bool) -> Iterator[Piece]:
        text, self._held = self._held + text, ""
        while text:
            text = yield from self._mode(text, final)
        self._in_doubt = self._mode != self._content

    def _hold(self, text: str) -> str:
        self._held = text
        return ""

    def _beginning(self, text: str, final: bool) -> Splitting:  # noqa: FBT001
        """Of the answer, and after a thought: white space before a thought belongs to it."""
        rest = text.lstrip()
        if rest and rest[0] not in _FIRST:
            self._mode = self._content
            return rest if self._closer else text
        opener = next((mark for mark in self._marks if rest.startswith(mark)), None)
        if opener:
            self._closer, self._mode = self._marks[opener], self._thought
            return rest[len(opener) :]
        if not final and any(mark.startswith(rest) for mark in self._marks):
            return self._hold(text)
        self._mode = self._content
        yield from ()
        return rest if self._closer else text

    def _content(self, text: str, final: bool) -> Splitting:  # noqa: FBT001
        seen = self._before + text
        begin = len(self._before)
        found = self._opening.search(seen, begin)
        held = len(seen) if final or found else self._opening.beginning(seen, begin)
        end = found.start() if found else held
        if end > begin:
            yield CONTENT, seen[begin:end]
            self._before = seen[end - 1]
        if not found:
            return self._hold(seen[end:])
        mark, rest = found[0], seen[found.end() :]
        if mark in self._marks:
            self._closer, self._mode = self._marks[mark], self._thought
            return rest
        if not rest and not final:
            return self._hold(mark)  # it may end its line
        if rest[:1] not in _LINE_ENDS and self._before not in _LINE_ENDS:
            yield CONTENT, mark
            self._before = mark[-1]
            return rest
        yield ALL_WAS_REASONING, ""
        self._closer, self._mode = mark, self._beginning
        return rest

    def _thought(self, text: str, final: bool) -> Splitting:  # noqa: FBT001
        markers = _CLOSING[self._closer]
        found = markers.search(text, 0)
        end = found.start() if found else len(text) if final else markers.beginning(text, 0)
        if end:
            yield REASONING, text[:end]
        if not found:
            return self._hold(text[end:])
        self._mode = self._beginning
        return text[found.end() :]
