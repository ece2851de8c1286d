"""A cut answer and what the model wrote when it was told to go on -> one text. Pure.

A model that goes on exactly is joined as it is: nothing is dropped without evidence. The evidence:

- What comes repeats the end of the answer, from the beginning of a line or a sentence on: that is
  skipped. Text that repeats itself anyway is no evidence, nor are a few signs.
- It begins with an ellipsis, or with a line about going on: that is skipped.
- It opens a fence where none can stand, or the one that is open already: that line is skipped, and
  the line that closes it again.
- It begins as the whole answer did: the model has begun anew. Where it writes the same again, only
  what is new counts; where it does not, its new answer replaces the old one.

What decides stands at the beginning, so that a stream is held back no further than to there, and
all ways of cutting it give the same.
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
# How a line begins that speaks of going on. A line that another text begins so costs itself, so
# these are phrases, and the line must end as such lines do.
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


class _More(Exception):  # noqa: N818  # no error: what is there does not decide
    """More of the text is needed."""


class Joint:
    """Passes on what is new of the next part of a cut answer: `feed` its pieces, then `finish`.

    `inside`: the answer was cut inside a call or an object, where no fence can stand. Once `anew`
    is set, what is passed on is a new answer, and the old one counts no more.
    """

    def __init__(self, before: str, *, inside: bool = False) -> None:
        self._before = before
        self._inside = inside
        self._held: str | None = ""  # None once it is decided
        self._check_at = (
            0  # characters that must have come before it is looked at again
        )
        self._drops_fence = False
        self._is_cut = False  # whether this part is cut, too
        self._tail = ""  # which may be the end of a fence that is to be dropped
        self.anew = False

    def feed(self, text: str) -> str:
        """What is new, as far as that is known."""
        return self._pass(text, final=False)

    def finish(self, *, cut: bool = False) -> str:
        """The rest; the part has ended, and `cut` says that it was cut in its turn."""
        self._is_cut = cut
        rest = self._pass("", final=True)
        if self._drops_fence:
            end = _ENDING_FENCE.search(self._tail)
            rest += self._tail[: end.start()] if end else self._tail
            self._tail = ""
        return rest

    def _pass(self, text: str, *, final: bool) -> str:
        if self._held is not None:
            self._held += text
            if len(self._held) < self._check_at and not final:
                return ""
            try:
                at = self._decide(self._held, final=final)
            except _More:
                # A tenth more each time: so a long repetition is compared a few times only.
                self._check_at = len(self._held) * 11 // 10 + 1
                return ""
            text = self._held[at:]
            self._held = None
        return self._without_end(text) if self._drops_fence else text

    def _without_end(self, text: str) -> str:
        text = self._tail + text
        end = _ENDING_FENCE.search(text)
        begin = end.start() if end else len(text)
        self._tail = text[begin:]
        return text[:begin]

    @property
    def _stops_in_line(self) -> bool:
        """Whether the answer stopped amid a line, where nothing that needs its own can begin."""
        return bool(self._before.rpartition("\n")[2].strip())

    # -- where the new text begins ----------------------------------------------------------------

    def _decide(self, text: str, *, final: bool) -> int:
        """How much of the text is to be skipped; raises _More while that is open."""
        at = _after_apology(text, final=final)
        skipped = self._repeated(text[at:], final=final)
        if self.anew or skipped:
            return at + skipped
        at = self._after_fence(text, at, final=final)
        at = self._after_ellipsis(text, at, final=final)
        return at + self._repeated(text[at:], final=final)

    def _repeated(self, text: str, *, final: bool) -> int:
        """The characters that only repeat the end of the answer, or all of it."""
        before = self._before
        longest = 0
        for overlap in self._overlaps():
            if text.startswith(overlap):
                longest = max(longest, len(overlap))
            elif not final and overlap.startswith(text):
                raise _More
        if longest:
            return longest
        begun = before.rpartition("\n")[2]
        if begun and not final and begun.startswith(text):
            raise _More
        if (
            begun
            and text.startswith(begun)
            and self._is_row_again(begun, text, final=final)
        ):
            return len(begun)
        half_word = self._half_word_again(text, final=final)
        if not half_word:
            self.anew = self._begins_anew(text, final=final)
        return half_word

    def _half_word_again(self, text: str, *, final: bool) -> int:
        """The letters of a word that was cut off and is written again as a whole."""
        half_word = _HALF_WORD.search(self._before)
        word = half_word[0] if half_word else ""
        if len(word) < _LEAST_WORD:
            return 0
        if not final and word.startswith(text):
            raise _More
        is_again = text.startswith(word) and text[len(word) : len(word) + 1].isalpha()
        return len(word) if is_again else 0

    def _overlaps(self) -> Iterator[str]:
        """The ends of the answer that count as a repetition where they are written again."""
        before = self._before
        first = max(0, len(before) - _LOOK_BACK)
        starts = [
            at + 1 for at in range(len(before) - 1, first - 1, -1) if before[at] == "\n"
        ]
        starts = starts[:_MOST_LINES]
        line = starts[0] if starts else first
        starts += [0]
        sentences = [match.end() for match in _SENTENCE.finditer(before, line)]
        starts += [at for at in sentences[-3:] if len(before) - at >= _LEAST_SENTENCE]
        for start in dict.fromkeys(starts):
            overlap = before[start:]
            if _is_evidence(overlap, before[:start]):
                yield overlap

    def _is_row_again(self, begun: str, text: str, *, final: bool) -> bool:
        """Whether a line that had only just begun is written again, though that says little.

        A row of a table has as many cells as the row before it; and nobody opens a list twice.
        """
        line = text.partition("\n")[0]
        if begun.startswith("|"):
            if line == text and not final:
                raise _More
            row_before = self._before[: -len(begun) - 1].rpartition("\n")[2]
            cells = row_before.count("|")
            return line.count("|") == cells != (begun + line).count("|")
        after = text[len(begun) : len(begun) + 1]
        if not after and not final:
            raise _More
        if self._inside and begun.rstrip().endswith(('"', "<", "</")):
            # Neither two quotation marks nor two tags begin so.
            return after.isalpha() or after == "/"
        return _MARKER.fullmatch(begun) is not None and after.isalnum()

    def _begins_anew(self, text: str, *, final: bool) -> bool:
        """Whether the text begins as the answer did, and then goes another way.

        At the beginning of a line that has to be more than one line: the next row, or the next
        call, may begin as the first one does.
        """
        before = self._before
        if _is_periodic(before) or not text:
            return False
        size = next(
            (
                at
                for at, pair in enumerate(zip(before, text, strict=False))
                if pair[0] != pair[1]
            ),
            min(len(before), len(text)),
        )
        if size == len(text) < len(before) and not final:
            raise _More
        if self._stops_in_line:
            return size >= min(_SURE, len(before)) and size > _LEAST_WEIGHT
        return text[:size].count("\n") > 2 and size >= 4 * _SURE and self._inside

    def _after_fence(self, text: str, at: int, *, final: bool) -> int:
        """Behind the line that opens a fence, where none can be opened."""
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
            fences = sum(
                _IS_FENCE.match(row) is not None for row in text[at:].split("\n")
            )
            return at if fences % 2 or self._is_cut else line.end()
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
        is_blank_again = in_line and self._before[-1:].isspace() and after == " "
        return end + 1 if is_blank_again else end


def join(before: str, after: str, *, inside: bool = False) -> str:
    """The whole text of a cut answer and its next part."""
    joint = Joint(before, inside=inside)
    rest = joint.feed(after) + joint.finish()
    return rest if joint.anew else before + rest


def _after_apology(text: str, *, final: bool) -> int:
    """Behind what a model says about going on, before it does."""
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
    mark = ""
    for line in text.split("\n"):
        fence = _IS_FENCE.match(line)
        if fence is None:
            continue
        sign = fence[0].strip()
        if not mark:
            mark = sign
        elif sign.startswith(mark) and not line.strip(" \t`~"):
            mark = ""
    return bool(mark)


def _is_evidence(overlap: str, rest: str) -> bool:
    """Whether nobody writes this twice in a row unless they repeat themselves."""
    if rest.endswith(overlap) or _is_periodic(overlap):
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


def _is_periodic(text: str) -> bool:
    """Whether the text repeats its beginning again and again."""
    half = len(text) // 2
    if not half:
        return False
    period = text.find(text[:half], 1)
    return 0 < period <= half and text[period:] == text[: len(text) - period]
