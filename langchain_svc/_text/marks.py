"""The marks in an answer as it comes: of thoughts, of turns, and of its end.

Text is searched at the speed of `re`. Where a text that may go on ends in the beginning of a mark,
its reader waits with that much of it, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache, lru_cache

from ..prompt_tags import TURN

_LONGEST_HALF = 80


class Markers:
    """Markers that count anywhere, others that count where a line begins, and patterns beside them.

    `half` finds what may still become one of these patterns, at the end of a text.

    Attributes:
        search: Finds the first marker of a text from a place on.
    """

    def __init__(
        self,
        plain: Collection[str] = (),
        line_starts: Collection[str] = (),
        others: str = "",
        half: re.Pattern[str] | None = None,
    ) -> None:
        # Looking back from after the first letter, instead of before it, keeps the search fast.
        words = [re.escape(word) for word in plain]
        for word in line_starts:
            first = re.escape(word[0])
            words.append(rf"{first}(?<![^\n]{first}){re.escape(word[1:])}")
        patterns: list[str] = []
        if words:
            patterns.append(f"(?P<marker>{'|'.join(words)})")
        if others:
            patterns.append(others)
        self.search = re.compile("|".join(patterns)).search
        self._half = half
        self._beginnings = _beginnings(plain)
        self._line_beginnings = _beginnings(line_starts)
        self._longest = max(map(len, [*plain, *line_starts]), default=0)

    def may_begin(self, text: str, at: int) -> bool:
        """Whether the text from `at` on may be half of a marker: only near its end it can be."""
        return len(text) - at <= _LONGEST_HALF and self.beginning(text, at) == at

    def beginning(self, text: str, at: int) -> int:
        """Where the text from `at` on ends in the beginning of a marker; its end if it does not."""
        end = len(text)
        begin = end
        if self._half:
            half = self._half.search(text, max(at, end - _LONGEST_HALF))
            if half:
                begin = half.start()
        for start in range(max(at, end - self._longest), begin):
            tail = text[start:]
            if tail in self._beginnings:
                return start
            if tail in self._line_beginnings and text[start - 1 : start] in ("", "\n"):
                return start
        return begin


def _beginnings(words: Collection[str]) -> frozenset[str]:
    """Every beginning of the words but the whole words."""
    beginnings: set[str] = set()
    for word in words:
        beginnings.update(word[:end] for end in range(1, len(word)))
    return frozenset(beginnings)


# -- reasoning -------------------------------------------------------------------------------------
# What a model writes while it thinks: the one table of its marks, and how texts are split by
# it.
#
# A mark is recognized by its name: think, thought, analysis, reason and their forms, in any
# case. There are two kinds. `NATIVE` marks are a model's own, and what stands between them is
# not part of the answer. `SPOKEN` ones are elements that a prompt may have asked for: they stay
# in the answer, but nothing inside them is a call, or the object that was asked for.
#
# The opening mark may be missing: many chat templates write it into the prompt. The closing
# mark is missing where an answer was cut off.

_NAMES = "think(?:ing)?|thought|reason(?:ing)?|analysis"
# A mark opens by its name alone or with such a word, and closes with a slash or such a word.
_EDGES = {"": "begin|start", "/": "end|stop"}


def _marks(slash: str) -> str:
    """The marks of all families that open a thought, or close one."""
    edge = _EDGES[slash]
    name = "(?:think(?:ing)?|thought)"
    phrase = rf"(?:{edge})[_-](?:of[_-])?(?:{_NAMES})|(?:{_NAMES})[_-](?:{edge})"
    element = rf"<(?:{slash}(?:\w{{1,20}}:)?{name}(?::[\w-]{{1,40}})?|{phrase})>"
    token = rf"<\|(?:{slash}(?:{_NAMES})|{phrase})\|>|◁{slash}(?:{_NAMES})▷"
    bracket = rf"\[{slash}(?:THINK(?:ING)?|THOUGHT)\]"
    return rf"(?i:{element}|{token})|{bracket}"


NATIVE = (
    rf"{_marks('')}|<\|inner_prefix\|>|<\|START_THINKING\|>"
    rf"|<\|channel\|>(?:{_NAMES})<\|message\|>|<\|channel>(?:{_NAMES})"
)
NATIVE_ENDS = rf"{_marks('/')}|<\|inner_suffix\|>|<\|END_THINKING\|>|<channel\|>"
_SPOKEN_NAMES = "thoughts|reason(?:ing)?|reflection|scratchpad|analysis|monologue"
# Looking back from after the first letter, instead of before it, keeps the search fast.
SPOKEN = rf"<(?<![^\n]<)(?i:{_SPOKEN_NAMES})>"
HALF_MARK = re.compile(
    r"(?:<\|?/?[\w:-]{0,60}\|?|<\|channel\|?>?\w{0,9}(?:<\|?\w{0,8}\|?)?|\[/?[A-Z]{0,8}|◁/?\w{0,9})\Z"
)
_OPPOSITES = {"begin": "end", "BEGIN": "END", "start": "end", "START": "END"}
_SAME_ELSE = {"<|START_": "<|END_", "<|inner_pre": "<|inner_suf"}


def closer_of(mark: str) -> str:
    """What closes what a mark opens."""
    if mark.startswith("<|channel|"):
        return "<|end|>"
    if mark.startswith("<|channel"):
        return "<channel|>"
    for opening, closing in _SAME_ELSE.items():
        if mark.startswith(opening):
            return closing + mark.removeprefix(opening)
    for opening, closing in _OPPOSITES.items():
        if re.search(rf"(?:\b|_){opening}(?:\b|_)", mark):
            return mark.replace(opening, closing)
    if mark.startswith("<|"):
        return f"<|/{mark[2:]}"
    return f"{mark[0]}/{mark[1:]}"


OPENS = rf"{NATIVE}|<(?i:{_SPOKEN_NAMES})>"
CLOSES = rf"{NATIVE_ENDS}|</(?i:{_SPOKEN_NAMES})>|<\|channel\|>final<\|message\|>"


@cache  # here and below, what few texts need is compiled when one does
def _tag() -> re.Pattern[str]:
    return re.compile(rf"(?P<opens>{OPENS})|{CLOSES}")


@cache
def _close() -> re.Pattern[str]:
    return re.compile(CLOSES)


def without_reasoning(text: str) -> str:
    """What a text says beside its reasoning."""
    content: list[str] = []
    at = 0
    while tag := _tag().search(text, at):
        if not tag["opens"]:
            content.clear()  # its beginning is missing: all that precedes it is reasoning
            at = tag.end()
            continue
        content.append(text[at : tag.start()])
        at = end_of_reasoning(text, tag)
    content.append(text[at:])
    return "".join(content).strip()


def end_of_reasoning(text: str, opening: re.Match[str]) -> int:
    """Where the reasoning ends that this mark opens; an answer that was cut off ends in it."""
    closing = _close().search(text, opening.end())
    if closing is None:
        return len(text)
    return closing.end()


_FIRST = "<[◁"  # what every mark begins with
_MARKS = re.compile(f"[{re.escape(_FIRST)}]")
_LINE_ENDS = ("", "\n", "\r")


@cache
def _begins(opens: str) -> re.Pattern[str]:
    return re.compile(opens)


@cache
def _markers(opens: str, closes: str) -> Markers:
    return Markers(others=rf"(?P<opens>(?<![^\n])(?:{opens}))|{closes}", half=HALF_MARK)


@lru_cache(maxsize=64)
def _closing(closer: str) -> Markers:
    return Markers([closer])


CONTENT = "content"
REASONING = "reasoning"
ALL_WAS_REASONING = "all was reasoning"
Segment = tuple[str, str]  # one of these three, and its text


class ReasoningSplitter:
    """Splits an answer without tools into content and reasoning: `parse_chunk`, then `close`.

    An opening mark counts at the beginning of a line: amid a line it is spoken of. A closing mark
    that begins or ends a line, and that nothing opened, says that all before it was reasoning.
    The outcome is the same for every cut of the text. With `spoken`, the marks that a prompt may
    have asked for count, too.
    """

    def __init__(self, *, spoken: bool = False) -> None:
        self._opens = OPENS if spoken else NATIVE
        self._closes = CLOSES if spoken else NATIVE_ENDS
        self._buffer = ""  # the end of the text, which may be half of a mark
        self._before = ""  # the last character of the content
        self._closer = ""
        self._mode = self._split_beginning
        self._in_doubt = True  # content does not simply pass
        self._is_final = False  # nothing follows the text
        self._segments: list[Segment] = []

    def parse_chunk(self, text: str) -> Iterable[Segment]:
        """The segments that a chunk completes."""
        if self._buffer or self._in_doubt or _MARKS.search(text):
            return self._split(text, final=False)
        if not text:
            return ()
        self._before = text[-1]
        return ((CONTENT, text),)

    def close(self) -> Iterable[Segment]:
        """The segments at the end of the text, which waited for what might follow."""
        if self._buffer or self._in_doubt:
            return self._split("", final=True)
        return ()

    def _split(self, text: str, *, final: bool) -> list[Segment]:
        text = self._buffer + text
        self._buffer = ""
        self._is_final = final
        self._segments = []
        while text:
            text = self._mode(text)
        self._in_doubt = self._mode != self._split_content
        return self._segments

    # Each mode adds segments, and returns the text that is still to be split.

    def _wait_with(self, text: str) -> str:
        self._buffer = text
        return ""

    def _split_beginning(self, text: str) -> str:
        """Of the answer, or after a thought: white space before a thought belongs to it."""
        rest = text.lstrip()
        if rest and rest[0] in _FIRST:
            opener = _begins(self._opens).match(rest)
            if opener:
                self._closer = closer_of(opener[0])
                self._mode = self._split_thought
                return rest[opener.end() :]
        may_open = not rest or HALF_MARK.match(rest)
        if may_open and not self._is_final:
            return self._wait_with(text)
        self._mode = self._split_content
        if self._closer:  # the white space separates the thought from the answer
            return rest
        return text

    def _split_content(self, text: str) -> str:
        # A mark counts by the character before it, so the search begins behind that one.
        begin = len(self._before)
        text = self._before + text
        mark = None
        end = len(text)
        if _MARKS.search(text, begin):
            markers = _markers(self._opens, self._closes)
            mark = markers.search(text, begin)
            if mark:
                end = mark.start()
            elif not self._is_final:
                end = markers.beginning(text, begin)
        if end > begin:
            self._segments.append((CONTENT, text[begin:end]))
            self._before = text[end - 1]
        if mark is None:
            return self._wait_with(text[end:])
        rest = text[mark.end() :]
        if mark["opens"]:
            self._closer = closer_of(mark[0])
            self._mode = self._split_thought
            return rest
        if not rest and not self._is_final:
            return self._wait_with(mark[0])  # it may end its line
        if rest[:1] not in _LINE_ENDS and self._before not in _LINE_ENDS:
            # A closing mark amid a line is spoken of.
            self._segments.append((CONTENT, mark[0]))
            self._before = mark[0][-1]
            return rest
        self._segments.append((ALL_WAS_REASONING, ""))
        self._closer = mark[0]
        self._mode = self._split_beginning
        return rest

    def _split_thought(self, text: str) -> str:
        markers = _closing(self._closer)
        closing = markers.search(text, 0)
        if closing:
            end = closing.start()
        elif self._is_final:
            end = len(text)
        else:
            end = markers.beginning(text, 0)
        if end:
            self._segments.append((REASONING, text[:end]))
        if closing is None:
            return self._wait_with(text[end:])
        self._mode = self._split_beginning
        return text[closing.end() :]


# -- turn tags -------------------------------------------------------------------------------------
# An answer without the tags of its turn, where a conversation went as one text and has them.
#
# The model is told to write none, but may copy what it sees. With the tags, its calls would be
# quotations in an element, and a next turn of the user that it makes up would be its own words.

_OPENING_TAG = f'<{TURN} role="assistant">\n'
_BEGINNING = re.compile(rf'\s{{0,32}}<{TURN} role="assistant">\n?')
_LONGEST_BEGINNING = 64
_TAG = re.compile(rf"<{TURN}[\s>]|\n{{0,2}}</{TURN}>|</think>")
# The end of a text that may be the beginning of a tag.
_HALF_TAG = re.compile(r"\n{0,2}(?:<(?:/?(?:t(?:u(?:rn?)?|h(?:i(?:nk?)?)?)?)?)?)?\Z")
_LONGEST_HALF_TAG = 9
_BEHIND = re.compile(r"\s{0,32}(.{0,5})", re.DOTALL)
_NEXT_TURN = f"<{TURN}"
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
            if may_go_on and (
                _OPENING_TAG.startswith(start) or _THINK.startswith(start)
            ):
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
        half = _HALF_TAG.search(text, max(0, len(text) - _LONGEST_HALF_TAG))
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


# -- stop cutter -----------------------------------------------------------------------------------
# Ends an answer at the caller's stop sequences, which the service does not know.


class StopCutter:
    """Passes text on until a stop sequence has come: `pass_text(text)`, then `close()`.

    Text is held back only while it could be the beginning of a sequence, and the result is the
    same for every way of cutting the text.

    Attributes:
        buffer: The text that is held back.
        hit: Whether a stop sequence has come.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self.buffer = ""
        self.hit = False

    def pass_text(self, text: str) -> str:
        """What may be yielded."""
        if not self._stops:
            return text
        if self.hit:
            return ""
        text = self.buffer + text
        starts = [start for stop in self._stops if (start := text.find(stop)) >= 0]
        if starts:
            self.hit = True
            self.buffer = ""
            return text[: min(starts)]
        end = len(text) - max(_overlap(text, stop) for stop in self._stops)
        self.buffer = text[end:]
        return text[:end]

    def close(self) -> str:
        """What was held back and turned out not to be a stop sequence."""
        text = self.buffer
        self.buffer = ""
        return text


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` with which `stop` begins."""
    for size in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
