"""A cut answer and what the model wrote when it was told to go on -> one text. Pure.

The model is told to write the last words of its answer again, and to go on from there. Two things
prove where the new text joins:

- The last words come again, at its beginning or within a few hundred characters: what stands behind
  them is new. Words that the answer has said before prove nothing: it may say them once more.
- It begins as the whole answer did: the model has begun anew. What it only says again is passed
  over; where it goes another way, it replaces the answer.

What proves nothing is not joined: the answer stays cut. What stands before a repetition is about
going on, and goes with it; but not inside a call or an object, where it may be a part of it.

The beginning decides, so a stream is held back no longer than until it is there, and every way of
cutting the stream gives the same text.
"""

from __future__ import annotations

ASK_FOR_REST = (
    "Your answer was cut off behind these words:\n{}\n"
    "Write these words again, and go on from there to the end."
)
_HEAD = 200  # characters of the new text within which a repetition begins
_LONGEST = 300  # characters of the answer's end that prove one
_AT_ONCE = 12  # letters that nobody writes twice in a row by chance
_SURE = 30  # letters that nobody writes again by chance in a few hundred characters
_NEAR = 40  # characters to the beginning of a line, or of a word


class _More(Exception):  # noqa: N818  # no error: the text so far does not decide
    """More of the text is needed."""


def ask_for_rest(answer: str) -> str:
    """What the model is told, so that it goes on with an answer that was cut off.

    It is empty where nothing could prove that it does: the answer is too short, or repeats itself.
    """
    words = _last_words(answer)
    return ASK_FOR_REST.format(words) if words else ""


def _last_words(answer: str) -> str:
    """The end of an answer by which a repetition of it is known, from a line or a word on."""
    answer = answer.rstrip()
    end = _unique_end(answer, _SURE)
    if not end:
        return ""
    start = len(answer) - len(end)
    line = answer.rfind("\n", 0, start) + 1
    word = max(answer.rfind(" ", 0, start) + 1, line)
    if start - line <= _NEAR:
        start = line
    elif start - word <= _NEAR:
        start = word
    return answer[start:]


class Joint:
    """Passes on the new text in the next part of a cut answer: `join_chunk`, then `end_part`.

    `inside`: the answer was cut inside a call or an object. `exact`: the service goes on from the
    last turn, and perhaps says it again. Once `anew` is set, the text that is passed on is a new
    answer, which replaces the old one; once `refused` is, nothing is passed on.
    """

    def __init__(
        self, before: str, *, inside: bool = False, exact: bool = False
    ) -> None:
        self._before = before.strip()
        self._blanks = before[len(before.rstrip()) :]
        self._inside = inside
        self._exact = exact
        self._end = _unique_end(self._before, _SURE)
        self._short_end = _unique_end(self._before, _AT_ONCE)
        self._opening = _unique_end(self._before[::-1], _SURE)[::-1]
        self._beginning: str | None = ""  # of the part; None once it has decided
        self._next_look = 0  # at the beginning, once it has this many characters
        self.anew = False
        self.refused = False

    def join_chunk(self, text: str) -> str:
        """What is new in the next piece of the part, as far as that is certain."""
        return self._pass_on(text, final=False)

    def end_part(self) -> str:
        """The remaining new text."""
        return self._pass_on("", final=True)

    def _pass_on(self, text: str, *, final: bool) -> str:
        if self._beginning is None:
            return "" if self.refused else text
        self._beginning += text
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
        return "" if self.refused else text

    def _start_of_new(self, text: str, *, final: bool) -> int:
        """Where the new text begins; raises _More while that is open."""
        said = text.lstrip()
        behind = self._behind_echo if self._exact else self._behind_repetition
        end = behind(said, final=final)
        if end is None:
            self.refused = not self._exact
            return 0
        end += len(text) - len(said)
        if self.anew:
            return end
        # The blanks at which the answer was cut are there already.
        if len(text) < end + len(self._blanks) and not final:
            raise _More
        return end + _common_size(self._blanks, text[end:])

    def _behind_echo(self, said: str, *, final: bool) -> int | None:
        """The place behind the whole answer, where the service says it again."""
        if self._before and said.startswith(self._before):
            return len(self._before)
        if not final and self._before.startswith(said):
            raise _More
        return None

    def _behind_repetition(self, said: str, *, final: bool) -> int | None:
        """The place behind what repeats the answer; None where nothing proves that it does."""
        if not self._end:
            return None
        for size in range(len(self._short_end), len(self._end)):
            repeated = self._before[-size:]
            if said.startswith(repeated):
                return size
            if not final and repeated.startswith(said):
                raise _More
        end = self._find(self._end, said)
        opened = self._find(self._opening, said)
        if opened and (end is None or opened <= end):
            start = opened - len(self._opening)
            return self._behind_beginning(said, start, final=final)
        if end is None and not final and len(said) < _HEAD + _LONGEST:
            raise _More
        return end

    def _find(self, words: str, said: str) -> int | None:
        """The place behind words that come at the beginning, or behind lines of a preface."""
        at = said.find(words, 0, _HEAD + len(words)) if words else -1
        if at < 0:
            return None
        end = at + len(words)
        start = min(at, end - _common_size(said[:end][::-1], self._before[::-1]))
        line = said.rfind("\n", 0, at) + 1
        if any(map(str.isalnum, said[line:start])) or (start and self._inside):
            return None
        return end

    def _behind_beginning(self, said: str, start: int, *, final: bool) -> int | None:
        """The place behind all that is said as before, from the answer's beginning on."""
        size = _common_size(self._before, said[start:])
        if size == len(self._before):
            return start + size
        if start + size == len(said):
            if not final:
                raise _More
            return len(said)
        # Behind a whole call, row or sentence, the next one may begin as the first one does.
        is_amid_words = self._before[-1].isalnum() and "\n" not in self._blanks
        self.anew = not start and (self._inside or is_amid_words)
        return start if self.anew else None


def _unique_end(text: str, least: int) -> str:
    """The shortest end with so many letters that stands nowhere else in a text.

    A text that has fewer is its own end; "" where no end will do.
    """
    letters = 0
    for start in range(len(text) - 1, max(len(text) - _LONGEST, 0) - 1, -1):
        letters += text[start].isalnum()
        if letters >= least and text.find(text[start:]) == start:
            return text[start:]
    return text if _AT_ONCE <= letters < least else ""


def _common_size(first: str, second: str) -> int:
    """The number of characters with which both texts begin."""
    size = 0
    for sign, other_sign in zip(first, second, strict=False):
        if sign != other_sign:
            break
        size += 1
    return size
