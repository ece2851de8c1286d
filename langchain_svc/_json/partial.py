"""A value as far as it has come, while its text still streams in.

Each character is read once, however the stream is cut. Open strings are shown as far as they are,
numbers and words once they are complete, fields once their value has begun. The reader knows no
schema and looks at nothing twice, so it repairs less than `lenient.read` does: quotes and commas,
words without quotes, comments, and closing brackets that are missing. What it shows is for
looking at; the answer itself is `answer.read_answer` of the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .escapes import unescape
from .marks import SPACE
from .reader import MAX_DEPTH
from .reasoning import CLOSE, CLOSES, OPENS
from .words import ABSENT, literal

_LONGEST_TAG = 40
_WORD = re.compile(r"[^\s,:=;{}\[\]\"'`/]+|/")
_PLAIN = {quote: re.compile(rf"[^{quote}\\]+") for quote in "\"'`"}
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB]")
_COMMENTS = {"//": "\n", "/*": "*/"}
_CLOSERS = {"}": dict, "]": list}
_Mode = Callable[[str, int], int]


def partial(text: str) -> Any | None:
    """The first object or array of a text as far as it has come; None before it begins."""
    return PartialReader().feed(text)


@dataclass
class _Open:
    """One container that is not closed yet; it is not in its parent yet, either."""

    value: Any
    key: str | None = None
    word: str | None = None  # what will be the key if a colon follows

    @property
    def is_prose(self) -> bool:
        """Whether it holds words and no JSON."""
        return self.word is not None or any(isinstance(one, str) for one in self.value)

    def put(self, value: Any) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is not None:
            self.value[self.key] = value
            self.key = None

    def with_open(self, child: Any) -> Any:
        """A copy that shows the child that is still open."""
        if isinstance(self.value, list):
            return [*self.value, child]
        return {**self.value, self.key: child} if self.key is not None else dict(self.value)


class PartialReader:
    """Reads a stream piece by piece: `feed(text)` returns the value so far.

    Every value returned stays as it is: later pieces make new ones. That copies the containers
    that are open, not what is in them; `push` alone copies nothing.

    Args:
        root: The brackets that may begin the value: "{" if it is known to be an object.
    """

    def __init__(self, root: str = "{[") -> None:
        self._begins = re.compile(f"{OPENS}|{CLOSES}|[{re.escape(root)}]", re.IGNORECASE)
        self._mode: _Mode = self._seek
        self._held = ""  # may be half of something: a tag, an escape, the beginning of a comment
        self._open: list[_Open] = []
        self._root: Any = None
        self._text: list[str] = []  # the open string or word
        self._quote = ""
        self._comment_end = ""
        self._sure = False  # this is JSON, and not a bracket of prose such as {name} or [see above]

    @property
    def value(self) -> Any | None:
        """The value as far as it has come; None before it begins."""
        if not self._open or not self._sure:
            return self._root
        shown: Any = ABSENT
        if self._quote and not self._expects_key():
            self._text = ["".join(self._text)]
            shown = self._text[0]
        for container in reversed(self._open):
            shown = container.with_open(shown) if shown is not ABSENT else container.value.copy()
        return shown

    def feed(self, text: str) -> Any | None:
        """Read a piece; the value after it."""
        self.push(text)
        return self.value

    def push(self, text: str) -> None:
        """Read a piece."""
        text = self._held + text
        at = 0
        while at < len(text):
            end = self._mode(text, at)
            if end < 0:  # more must come before this can be read
                break
            at = end
        self._held = text[at:]

    # -- before and after -------------------------------------------------------------------------

    def _seek(self, text: str, at: int) -> int:
        found = self._begins.search(text, at)
        if found is None:
            return self._hold(text, at)
        if len(found[0]) == 1:
            self._mode = self._between
            self._enter(found[0])
        elif not CLOSE.fullmatch(found[0]):
            self._mode = self._reasoning
        return found.end()

    def _reasoning(self, text: str, at: int) -> int:
        found = CLOSE.search(text, at)
        if found is None:
            return self._hold(text, at)
        self._mode = self._seek
        return found.end()

    def _hold(self, text: str, at: int) -> int:
        """Pass over all but what may be the beginning of a tag."""
        tag = max(text.rfind(mark, max(at, len(text) - _LONGEST_TAG)) for mark in "<[◁")
        if tag < 0:
            return len(text)
        return tag if tag > at else -1

    def _done(self, text: str, at: int) -> int:
        return len(text)

    # -- between values ---------------------------------------------------------------------------

    def _between(self, text: str, at: int) -> int:
        space = SPACE.match(text, at)
        at = space.end() if space else at
        if at >= len(text):
            return at
        char = text[at]
        if char in _PLAIN:
            self._sure = True
            self._quote = char
            self._mode = self._string
        elif char in "{[":
            self._enter(char)
        elif char in "}]":
            self._leave(_CLOSERS[char])
        elif char in ",;:=":
            self._separate(char)
        elif text[at : at + 2] in _COMMENTS:
            self._comment_end = _COMMENTS[text[at : at + 2]]
            self._mode = self._comment
            return at + 2
        elif char == "/" and at + 1 == len(text):
            return -1
        else:
            self._mode = self._word
            return at
        return at + 1

    def _expects_key(self) -> bool:
        top = self._open[-1]
        return isinstance(top.value, dict) and top.key is None

    def _separate(self, char: str) -> None:
        top = self._open[-1]
        if char in ":=":
            top.key = top.word if top.word is not None else top.key
            self._sure = self._sure or top.key is not None
        else:
            top.key = None
            self._sure = self._sure or (top.value != [] and not top.is_prose)
        top.word = None

    def _enter(self, char: str) -> None:
        if self._open and not self._sure and self._open[-1].is_prose:
            self._open.clear()
        if self._open and self._expects_key():
            return  # braces doubled, or junk
        if len(self._open) >= MAX_DEPTH:
            self._open.clear()
            self._mode = self._done
            return
        self._sure = self._sure or bool(self._open)
        self._open.append(_Open({} if char == "{" else []))

    def _leave(self, kind: type) -> None:
        """Close the innermost container of a kind and what is open inside it."""
        if not any(isinstance(one.value, kind) for one in self._open):
            return
        while self._open:
            top = self._open.pop()
            if self._open:
                self._open[-1].put(top.value)
            else:
                self._finish(top)
            if isinstance(top.value, kind):
                return

    def _finish(self, top: _Open) -> None:
        if not self._sure and top.is_prose:
            self._mode = self._seek
            return
        self._root = top.value
        self._mode = self._done

    def _comment(self, text: str, at: int) -> int:
        end = text.find(self._comment_end, at)
        if end < 0:
            last = len(text) - text.endswith("*")  # may be half of the end
            return last if last > at else -1
        self._mode = self._between
        return end + len(self._comment_end)

    # -- values -----------------------------------------------------------------------------------

    def _string(self, text: str, at: int) -> int:
        char = text[at]
        if char == self._quote:
            self._quote = ""
            self._mode = self._between
            self._take("".join(self._text), quoted=True)
            return at + 1
        if char == "\\":
            end = at + _escape_length(text, at)
            if end > len(text):
                return -1
            self._text.append(unescape(text[at:end])[0])
            return end
        found = _PLAIN[self._quote].match(text, at)
        end = found.end() if found else at + 1
        self._text.append(text[at:end])
        return end

    def _word(self, text: str, at: int) -> int:
        found = _WORD.match(text, at)
        if found:
            self._text.append(found[0])
            return found.end()
        self._mode = self._between
        self._take("".join(self._text), quoted=False)
        return at

    def _take(self, text: str, *, quoted: bool) -> None:
        """A string or a word is complete."""
        self._text = []
        top = self._open[-1]
        if self._expects_key():
            top.word = text
            return
        value = text if quoted else literal(text)[0]
        if value is not ABSENT:
            top.put(value)


def _escape_length(text: str, at: int) -> int:
    """How long the escape at `at` is; two halves of one character are one escape."""
    if text[at + 1 : at + 2] != "u":
        return 2
    if _HIGH_SURROGATE.match(text, at) and text[at + 6 : at + 7] in ("", "\\"):
        follows_u = text[at + 7 : at + 8] in ("", "u")
        return 12 if follows_u else 6
    return 6
