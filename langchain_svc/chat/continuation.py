"""A cut answer and what the model wrote when it was told to go on -> one text. Pure.

A model that goes on exactly is joined as it is: nothing is dropped without evidence. The evidence:

- The new text repeats the end of the answer, from the beginning of a line or a sentence on: the
  repetition is skipped. Text that repeats itself anyway is no evidence, nor are a few signs.
- It begins with an ellipsis, or with a line about going on: these are skipped.
- It opens a fence where none can stand, or the one that is open already: that line is skipped, and
  the line that closes it again.
- It begins as the whole answer did: the model has begun anew. If it writes the same again, only
  what is new counts; if it does not, its new answer replaces the old one.

The beginning decides, so a stream is held back no longer than until it is there, and every way of
cutting the stream gives the same text.
"""

# ruff: noqa: RUF001 - signs of other scripts are meant

from __future__ import annotations

import re
from collections.abc import Iterator

_LOOK_BACK = 4_000  # characters of the answer of which the end may be repeated
_MOST_LINES = 40  # at whose beginnings a repetition may begin
_LONGEST_LINE = 300  # characters of a line about going on
_SURE = 20  # characters that two answers do not share by chance at their beginning
_LEAST_WEIGHT = 3  # signs, letters counted twice
_HEAVY = 12  # signs: no cell of a row is likely to be that long, and twice there
_LEAST_WORD = 4  # letters of a half word that is written again
_LEAST_SENTENCE = 20  # characters
_SEPARATORS = (",", ";", "|", "\t")

_FENCE_LINE = re.compile(r"[ \t]*(?:`{3,}|~{3,})([\w+-]*)[ \t]*\n")
_HALF_FENCE_LINE = re.compile(r"[ \t]{0,9}(?:`{1,9}|~{1,9})[\w+-]{0,30}[ \t]{0,9}\Z")
_ENDING_FENCE = re.compile(r"\n[ \t]{0,9}(?:`{1,9}|~{1,9})?\s{0,9}\Z")
_IS_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})")
_SENTENCE = re.compile(r"[.!?]\s+")
_HALF_WORD = re.compile(r"[^\W\d_]{1,40}\Z")
_ELLIPSIS = re.compile(r"\.{3}|…")
_HALF_ELLIPSIS = re.compile(r"(?:\.{1,3}|…)\Z")
_MARKER = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)]|#{1,6}) ")
# How a line begins that speaks of going on. An answer whose own line begins so loses that line:
# these are whole phrases, and the line must end as such lines do.
_ABOUT_GOING_ON = re.compile(
    r"(?i)(?:(?:i(?:['’]m| am)\s+)?(?:so |very )?sorry|(?:my |i )?apolog|continu(?:ing|ation)\b"
    r"|here(?:['’]s| is) (?:the )?(?:rest|remain|continu|whole|complete|full)|picking up|resuming"
    r"|entschuldig|es tut mir leid|fortsetzung|hier ist der rest|désolé|je m['’]excuse"
    r"|voici la suite|lo siento|disculp|perdón|continúo|desculp|continuando|mi dispiace|scusa"
    r"|извин|продолж"
    r"|抱歉|对不起|继续|続き|申し訳|죄송|계속)"
)
_MOST_ABOUT = 24  # characters that decide whether a line begins so
_ABOUT_ENDS = re.compile(r"[.:!…。：！][ \t]*(\n{1,2})")


class _More(Exception):  # noqa: N818  # no error: the text so far does not decide
    """More of the text is needed."""


class Joint:
    """Passes on the new text in the next part of a cut answer: `join_chunk`, then `end_part`.

    `inside`: the answer was cut inside a call or an object, where no fence can stand. Once `anew`
    is set, the text that is passed on is a new answer, which replaces the old one.
    """

    def __init__(self, before: str, *, inside: bool = False) -> None:
        self._before = before
        self._inside = inside
        self._beginning: str | None = ""  # of the part; None once it has decided
        self._next_look = 0  # at the beginning, once it has this many characters
        self._drops_fence = False
        self._is_cut = False  # whether this part is cut, too
        self._tail = ""  # which may be the end of a fence that is to be dropped
        self.anew = False

    def join_chunk(self, text: str) -> str:
        """What is new in the next piece of the part, as far as that is certain."""
        return self._pass_on(text, final=False)

    def end_part(self, *, cut: bool = False) -> str:
        """The remaining new text; `cut`: this part was cut off in its turn."""
        self._is_cut = cut
        remaining = self._pass_on("", final=True)
        if self._drops_fence:
            fence = _ENDING_FENCE.search(self._tail)
            remaining += self._tail[: fence.start()] if fence else self._tail
            self._tail = ""
        return remaining

    def _pass_on(self, text: str, *, final: bool) -> str:
        if self._beginning is not None:
            self._beginning += text
            if not self._beginning:  # a piece without text decides nothing
                return ""
            if len(self._beginning) < self._next_look and not final:
                return ""
            try:
                start = self._start_of_new(self._beginning, final=final)
            except _More:
                # A tenth more each time: so a long repetition is compared a few times only.
                self._next_look = len(self._beginning) * 11 // 10 + 1
                return ""
            text = self._beginning[start:]
            self._beginning = None
        return self._without_ending_fence(text) if self._drops_fence else text

    def _without_ending_fence(self, text: str) -> str:
        text = self._tail + text
        fence = _ENDING_FENCE.search(text)
        end = fence.start() if fence else len(text)
        self._tail = text[end:]
        return text[:end]

    @property
    def _stops_in_line(self) -> bool:
        """Whether the answer stopped amid a line, where nothing can begin that needs its own."""
        return bool(self._before.rpartition("\n")[2].strip())

    # -- where the new text begins ----------------------------------------------------------------

    def _start_of_new(self, text: str, *, final: bool) -> int:
        """Where the new text begins; raises _More while that is open."""
        start = _after_apology(text, final=final)
        repeated = self._repeated(text[start:], final=final)
        if self.anew or repeated:
            return start + repeated
        start = self._after_fence(text, start, final=final)
        start = self._after_ellipsis(text, start, final=final)
        return start + self._repeated(text[start:], final=final)

    def _repeated(self, text: str, *, final: bool) -> int:
        """The characters that only repeat the end of the answer, or all of it."""
        longest = 0
        for overlap in self._overlaps():
            if text.startswith(overlap):
                longest = max(longest, len(overlap))
            elif not final and overlap.startswith(text):
                raise _More
        if longest:
            return longest
        open_line = self._before.rpartition("\n")[2]
        if open_line and not final and open_line.startswith(text):
            raise _More
        if self._is_line_again(open_line, text, final=final):
            return len(open_line)
        half_word = self._half_word_again(text, final=final)
        if not half_word:
            self.anew = self._begins_anew(text, final=final)
        return half_word

    def _half_word_again(self, text: str, *, final: bool) -> int:
        """The letters of a word that was cut off and is written again as a whole."""
        half_word = _HALF_WORD.search(self._before)
        if half_word is None or len(half_word[0]) < _LEAST_WORD:
            return 0
        word = half_word[0]
        if not final and word.startswith(text):
            raise _More
        if text.startswith(word) and text[len(word) : len(word) + 1].isalpha():
            return len(word)
        return 0

    def _overlaps(self) -> Iterator[str]:
        """The ends of the answer that count as a repetition where they are written again."""
        before = self._before
        first = max(0, len(before) - _LOOK_BACK)
        backwards = range(len(before) - 1, first - 1, -1)
        starts = [at + 1 for at in backwards if before[at] == "\n"]
        starts = starts[:_MOST_LINES]
        last_line = starts[0] if starts else first
        starts.append(0)
        sentences = [match.end() for match in _SENTENCE.finditer(before, last_line)]
        latest = len(before) - _LEAST_SENTENCE
        starts += [start for start in sentences[-3:] if start <= latest]
        for start in dict.fromkeys(starts):
            overlap = before[start:]
            if _is_evidence(overlap, before[:start]):
                yield overlap

    def _is_line_again(self, open_line: str, text: str, *, final: bool) -> bool:
        """Whether the beginning of a line is written again, though it is short.

        A row of a table has as many cells as the row before it, and nobody opens a list twice.
        """
        if not open_line or not text.startswith(open_line):
            return False
        line = text.partition("\n")[0]
        if open_line.startswith("|"):
            if line == text and not final:
                raise _More
            row_before = self._before[: -len(open_line) - 1].rpartition("\n")[2]
            cells = row_before.count("|")
            is_whole_row = line.count("|") == cells
            return is_whole_row and (open_line + line).count("|") != cells
        after = text[len(open_line) : len(open_line) + 1]
        if not after and not final:
            raise _More
        if self._inside and open_line.rstrip().endswith(('"', "<", "</")):
            # Neither two quotation marks nor two tags begin so.
            return after.isalpha() or after == "/"
        return _MARKER.fullmatch(open_line) is not None and after.isalnum()

    def _begins_anew(self, text: str, *, final: bool) -> bool:
        """Whether the text begins as the answer did, and then goes another way.

        If the answer stopped at the end of a line, several lines have to be the same: the next row,
        or the next call, may begin as the first one does.
        """
        before = self._before
        if _is_periodic(before) or not text:
            return False
        size = _common_size(before, text)
        if size == len(text) < len(before) and not final:
            raise _More
        if self._stops_in_line:
            return size >= min(_SURE, len(before)) and size > _LEAST_WEIGHT
        return text[:size].count("\n") > 2 and size >= 4 * _SURE and self._inside

    def _after_fence(self, text: str, at: int, *, final: bool) -> int:
        """The place behind a line that opens a fence where none can be opened."""
        line = _FENCE_LINE.match(text, at)
        if line is None:
            if not final and _HALF_FENCE_LINE.match(text, at):
                raise _More
            return at
        is_open = _has_open_fence(self._before)
        if is_open and (self._stops_in_line or line[1]):
            return line.end()
        if is_open:
            # It closes the fence, unless one end too many follows.
            if not final:
                raise _More
            fences = [*filter(_IS_FENCE.match, text[at:].split("\n"))]
            closes = len(fences) % 2 == 1
            return at if closes or self._is_cut else line.end()
        if self._stops_in_line or self._inside:
            self._drops_fence = True
            return line.end()
        return at

    def _after_ellipsis(self, text: str, at: int, *, final: bool) -> int:
        if not final and _HALF_ELLIPSIS.match(text, at):
            raise _More
        dots = _ELLIPSIS.match(text, at)
        if dots is None:
            return at
        end = dots.end()
        if len(text) < end + 2 and not final:
            raise _More
        after = text[end : end + 1]
        in_line = self._stops_in_line
        if after in ("", "\n") and not in_line and _has_open_fence(self._before):
            return at  # a line of its own, as in Python
        if in_line and self._before[-1:].isspace() and after == " ":
            return end + 1  # the answer ends with this blank
        return end


def _after_apology(text: str, *, final: bool) -> int:
    """The place behind what a model says about going on, before it does."""
    at = 0
    for _ in range(3):
        about = _ABOUT_GOING_ON.match(text, at)
        line_end = text.find("\n", at, at + _LONGEST_LINE)
        if about is None:
            is_open = line_end < 0 and len(text) - at < _MOST_ABOUT
            if is_open and not final and text[at : at + 1].isalpha():
                raise _More
            return at
        end = _ABOUT_ENDS.search(text, at, at + _LONGEST_LINE)
        if end is None:
            if line_end < 0 and len(text) - at < _LONGEST_LINE and not final:
                raise _More
            return at
        if end.end() == len(text) and not final:
            raise _More  # a second line end may follow
        if line_end < end.start():
            return at
        at = end.end()
    return at


def _has_open_fence(text: str) -> bool:
    opener = ""
    for line in text.split("\n"):
        fence = _IS_FENCE.match(line)
        if fence is None:
            continue
        mark = fence[0].strip()
        if not opener:
            opener = mark
        elif mark.startswith(opener) and not line.strip(" \t`~"):
            opener = ""
    return bool(opener)


def _is_evidence(overlap: str, before: str) -> bool:
    """Whether nobody writes this twice in a row unless they repeat themselves."""
    if before.endswith(overlap) or _is_periodic(overlap):
        return False
    signs = [sign for sign in overlap if not sign.isspace()]
    letters = [sign for sign in signs if sign.isalpha()]
    if len(signs) >= _HEAVY:
        return True
    is_in_line = "\n" not in overlap
    if is_in_line and overlap.startswith(("  ", "\t")) and not "".join(signs).isdigit():
        return bool(signs)  # no line is indented again in its middle
    is_cell = is_in_line and overlap.rstrip(" ").endswith(_SEPARATORS)
    if is_cell or overlap.startswith("|") or not letters:
        return False
    return len(signs) + len(letters) >= _LEAST_WEIGHT


def _common_size(first: str, second: str) -> int:
    """The number of characters with which both texts begin."""
    size = 0
    for sign, other_sign in zip(first, second, strict=False):
        if sign != other_sign:
            break
        size += 1
    return size


def _is_periodic(text: str) -> bool:
    """Whether the text repeats its beginning again and again."""
    half = len(text) // 2
    if not half:
        return False
    period = text.find(text[:half], 1)
    return 0 < period <= half and text[period:] == text[: len(text) - period]
