"""An answer without the tags of its turn, where a conversation went as one text and has them.

The model is told to write none, but may copy what it sees. With the tags, its calls would be
quotations in an element, and a next turn of the user that it makes up would be its own words.
"""

from __future__ import annotations

import re

_OPENING = '<turn role="assistant">\n'
_BEGINNING = re.compile(r'\s{0,32}<turn role="assistant">\n?')
_LONGEST_BEGINNING = 64
_TAG = re.compile(r"<turn[\s>]|\n{0,2}</turn>|</think>")
# The end of a text that may be the beginning of a tag.
_HALF_TAG = re.compile(r"\n{0,2}(?:<(?:/?(?:t(?:u(?:rn?)?|h(?:i(?:nk?)?)?)?)?)?)?\Z")
_LONGEST_HALF = 9
_BEHIND = re.compile(r"\s{0,32}(.{0,5})", re.DOTALL)
_NEXT_TURN = "<turn"
_THINK = "<think>"


class TurnTags:
    """Passes text on without the tags around it: `pass_text(text)`, then `close()`.

    The answer ends at a closing tag without an opening one before it, if nothing or another turn
    follows. Other such tags are the model's words, as in an answer about XML, and so is all that
    it thinks. The result is the same for every way of cutting the text.

    Attributes:
        hit: Whether the closing tag has come.
    """

    def __init__(self) -> None:
        self.hit = False
        self._buffer = ""
        self._is_beginning = True  # of the answer, which is begun anew behind a thought
        self._has_thought = False
        self._is_thinking = False
        self._was_opened = False
        self._depth = 0  # of elements in the answer that are no tags of ours

    def pass_text(self, text: str) -> str:
        """What may be read."""
        return self._pass(self._buffer + text, last=False)

    def close(self) -> str:
        """What was held back and turned out to be no tag."""
        return self._pass(self._buffer, last=True)

    def _pass(self, text: str, *, last: bool) -> str:
        self._buffer = ""
        if self.hit:
            return ""
        if self._is_beginning:
            start = text.lstrip()
            may_go_on = not last and len(text) < _LONGEST_BEGINNING
            if may_go_on and (_OPENING.startswith(start) or _THINK.startswith(start)):
                self._buffer = text
                return ""
            opening = _BEGINNING.match(text)
            if opening is not None and not self._was_opened:
                self._was_opened = True
                return self._pass(text[opening.end() :], last=last)
            self._is_beginning = False
            self._is_thinking = start.startswith(_THINK) and not self._has_thought
        end = self._end(text, last=last)
        if self._is_beginning:  # behind a thought
            return text[:end] + self._pass(text[end:], last=last)
        if not self.hit:
            self._buffer = text[end:]
        return text[:end]

    def _end(self, text: str, *, last: bool) -> int:
        """How much of the text may be read now."""
        for tag in _TAG.finditer(text):
            if tag[0] == "</think>":
                if not self._has_thought:
                    self._has_thought = True
                    self._is_beginning = True
                    self._depth = 0
                    return tag.end()
            elif not self._is_thinking and self._is_unmatched(tag[0]):
                behind = _BEHIND.match(text, tag.end())
                rest = behind[1] if behind else ""
                self.hit = rest == _NEXT_TURN or (last and not rest)
                if self.hit or (not last and _NEXT_TURN.startswith(rest)):
                    return tag.start()
        if last:
            return len(text)
        half = _HALF_TAG.search(text, max(0, len(text) - _LONGEST_HALF))
        return half.start() if half else len(text)

    def _is_unmatched(self, tag: str) -> bool:
        """Whether a tag closes what none of the answer opened; amid a line it is only mentioned."""
        if tag.startswith(_NEXT_TURN):
            self._depth += 1
            return False
        if self._depth:
            self._depth -= 1
            return False
        return self._was_opened or tag.startswith("\n")
