"""A reader that repairs: one pass over the text, with its own stack.

The rules, in the order in which a stranger will ask for them:

- Nothing is invented. A key without a value is no field; a container that the text leaves open
  is closed as it is.
- A closing bracket closes the innermost container of its kind and whatever is open inside it,
  unless what follows it could not stand there: then it was a slip (`_believed`).
- A comma too many or too few changes nothing.
- What is neither key nor value is passed over and counted as a repair.
- The reader moves forward only, save for a few characters after a forgotten quote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .endings import Around, Place, Scalar
from .marks import (
    ARROW,
    BARE_KEY,
    BLANK_LINE,
    CLOSERS,
    COLONS,
    COMMAS,
    ELLIPSIS,
    OPENERS,
    QUOTED_KEY,
    QUOTES,
    VALUE_START,
    WHOLE_STRING,
    is_key,
    peek,
    skip,
    stops,
)
from .strings import begins_string, read_string
from .words import read_word

MAX_DEPTH = 200

# Every string that turns out to have no end costs a look at the whole rest.
_MAX_LOST_ENDS = 8


class TooDeepError(Exception):
    """The containers are nested deeper than is read."""


@dataclass
class Frame:
    """One open container."""

    closer: str
    value: Any
    key: str = ""  # of the last field
    commas: int = 1  # since the last item; a container opens as if after a comma
    prose: bool = False  # it has what is neither key nor value
    bare: bool = False  # it has keys or items without quotes

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    def put(self, value: Any) -> None:
        """Add an item, or set the value of the last key."""
        if self.is_object:
            self.value[self.key] = value
        else:
            self.value.append(value)


class Reader:
    """Reads the object or array whose opening bracket stands at `at`."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.root: Any = None
        self.prose = False  # the root holds no JSON but words
        self.words = False  # so does a container in it
        self.repairs = 0
        self.cut = False
        self._stack: list[Frame] = []
        self._around = Around()
        self.lost_ends = 0

    def run(self) -> bool:
        """Read; says whether the root was closed. Raises TooDeepError."""
        self._open()
        while self._stack:
            before = self.at
            self._skip(before)
            if self._text_ends(before):
                break
            self._step(self._stack[-1])
        closed = not self._stack
        if not closed and self.at >= len(self.text) and self._stack[-1].commas:
            self.cut = True  # it was about to go on
        while self._stack:
            self.repairs += 1
            self._pop()
        return closed

    def _text_ends(self, before: int) -> bool:
        """Whether the JSON ends here: with the text, at a fence or tag, or where prose goes on."""
        if stops(self.text, self.at):
            return True
        frame = self._stack[-1]
        return bool(
            frame.value
            and not frame.bare
            and self.text[self.at].isalpha()
            and BLANK_LINE.search(self.text, before, self.at)
            and not VALUE_START.match(self.text, self.at)
            and not is_key(self.text, self.at)
        )

    def _step(self, frame: Frame) -> None:
        char = self.text[self.at]
        self._around.words = frame.bare
        ellipsis = ELLIPSIS.match(self.text, self.at)
        if char in CLOSERS:
            self._close(CLOSERS[char])
        elif char in COMMAS:
            self.at += 1
            self.repairs += char != ","
            frame.commas += 1
        elif ellipsis:
            self._junk(ellipsis.end())
        elif frame.is_object:
            self._field(frame)
        else:
            self._item(frame)

    def _skip(self, at: int) -> None:
        """Go on behind white space and comments."""
        self.at = skip(self.text, at)
        self.repairs += self.at - at > 1 and not self.text[at : self.at].isspace()

    def _junk(self, end: int) -> None:
        self.at = end
        self.repairs += 1

    # -- items and fields -------------------------------------------------------------------------

    def _item(self, frame: Frame) -> None:
        char = self.text[self.at]
        if char in COLONS:
            self._junk(self.at + 1)
        elif self._key_in_list(frame):
            self._pop()
            self.repairs += 1
        else:
            self._after_comma(frame)
            self._value(frame, Place.ITEM)

    def _key_in_list(self, frame: Frame) -> bool:
        """Whether a key stands where an item should be: the closing bracket was forgotten."""
        in_object = len(self._stack) > 1 and self._stack[-2].is_object
        return bool(frame.value and in_object and QUOTED_KEY.match(self.text, self.at))

    def _field(self, frame: Frame) -> None:
        if self.text[self.at] in OPENERS:
            self._opener_for_key(frame)
            return
        quoted, lost = begins_string(self.text, self.at), self.lost_ends
        key = self._string(Place.KEY) if quoted else self._bare_key(frame)
        if key is None:
            return
        self._after_comma(frame)
        if not self._arrow(quoted=quoted):
            self.repairs += 1
            ended = self.at >= len(self.text)
            self.cut = self.cut or ended
            may_go_on = quoted and (ended or lost < self.lost_ends)
            frame.prose = frame.prose or not may_go_on
            return
        frame.key = key
        frame.bare = self._around.words = frame.bare or not quoted
        if not self._value(frame, Place.FIELD):
            self.repairs += 1
            self.cut = self.cut or self.at >= len(self.text)

    def _arrow(self, *, quoted: bool) -> bool:
        """Pass the colon, or what stands for it; whether a value may follow."""
        self._skip(self.at)
        arrow = ARROW.match(self.text, self.at)
        if arrow:
            self._skip(arrow.end())
            self.repairs += arrow[0] != ":"
        elif quoted and self.at < len(self.text):
            self.repairs += 1
            return self.text[self.at] in OPENERS or begins_string(self.text, self.at)
        return arrow is not None

    def _bare_key(self, frame: Frame) -> str | None:
        found = BARE_KEY.match(self.text, self.at)
        if found is None:
            self._junk(self.at + 1)
            frame.prose = True
            return None
        self.at = found.end()
        self.repairs += 1
        if self.text[self.at : self.at + 1] in ('"', "'"):  # its opening quote was forgotten
            self.at += 1
        return found[0].strip()

    def _opener_for_key(self, frame: Frame) -> None:
        """An object or a list where a key should be."""
        self.repairs += 1
        last = frame.value.get(frame.key)
        if frame.value and len(self._stack) > 1 and not self._stack[-2].is_object:
            self._pop()  # [{"a": 1, {"a": 2}]: the closing brace was forgotten
        elif isinstance(last, dict | list):
            items = last if isinstance(last, list) else [last]
            frame.put(items)  # "a": {...}, {...}: the brackets of the list were forgotten
            self._push(Frame("]", items))
        else:
            self.at += 1  # {{"a": 1}}: braces doubled, as templates want them

    def _after_comma(self, frame: Frame) -> None:
        self.repairs += abs(frame.commas - 1)
        frame.commas = 0

    # -- values -----------------------------------------------------------------------------------

    def _value(self, frame: Frame, place: Place) -> bool:
        """Read the value that stands here, if one does, into the frame."""
        if self.at >= len(self.text):
            return False
        char = self.text[self.at]
        if char in OPENERS:
            self._open()
            return True
        if begins_string(self.text, self.at):
            string = self._string(place)
            if string is not None:
                frame.put(string)
            return string is not None
        if char in CLOSERS or char in COMMAS or stops(self.text, self.at):
            return False
        if ELLIPSIS.match(self.text, self.at):
            return False
        self._word(frame, place)
        return True

    def _word(self, frame: Frame, place: Place) -> None:
        word = read_word(self.text, self.at, place, self._around)
        self._take(word)
        frame.put(word.value)
        frame.bare = frame.bare or (place is Place.ITEM and isinstance(word.value, str))

    def _string(self, place: Place) -> str | None:
        """The string that stands here, joined with those that a + adds to it."""
        parts = []
        while True:
            string = read_string(self.text, self.at, place, self._around)
            if string is None:  # a fence, not a quote
                return None
            self._take(string)
            parts.append(string.value)
            plus = peek(self.text, self.at)
            after = peek(self.text, plus + 1)
            if self.text[plus : plus + 1] != "+" or self.text[after : after + 1] not in QUOTES:
                return "".join(parts)
            self._junk(after)

    def _take(self, scalar: Scalar) -> None:
        self.at = scalar.end
        self.repairs += scalar.repairs
        self.cut = self.cut or scalar.cut
        self.lost_ends += scalar.lost
        if self.lost_ends > _MAX_LOST_ENDS:
            self.at = len(self.text)
            self.cut = True

    # -- containers -------------------------------------------------------------------------------

    def _open(self) -> None:
        char = self.text[self.at]
        closer = OPENERS[char]
        self.at += 1
        self.repairs += char not in "{["
        frame = Frame(closer, {} if closer == "}" else [])
        if self._stack:
            self._stack[-1].put(frame.value)
        else:
            self.root = frame.value
        self._push(frame)

    def _push(self, frame: Frame) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise TooDeepError
        self._stack.append(frame)
        self._around.closers.append(frame.closer)

    def _pop(self) -> None:
        frame = self._stack.pop()
        self._around.closers.pop()
        self.repairs += max(0, frame.commas - (not frame.value))
        if frame.prose and not frame.value:
            self.words = True
            self.prose = not self._stack

    def _close(self, closer: str) -> None:
        self.at += 1
        depth = self._innermost(closer)
        if depth is None:
            self.repairs += 1
            return
        skipped = len(self._stack) - 1 - depth
        if self._believed(depth, skipped):
            self.repairs += skipped
            while len(self._stack) > depth + 1:
                self._pop()
            self._pop()
            return
        self.repairs += 1

    def _innermost(self, closer: str) -> int | None:
        depths = range(len(self._stack) - 1, -1, -1)
        return next((at for at in depths if self._stack[at].closer == closer), None)

    def _believed(self, depth: int, skipped: int) -> bool:
        """Whether what follows a closing bracket can stand where it leaves us."""
        after = peek(self.text, self.at)
        if self.text[after : after + 1] not in COMMAS:
            return True
        after = peek(self.text, after + 1)
        frame = self._stack[depth]
        parent = self._stack[depth - 1] if depth else None
        if frame.is_object:
            parent_takes_keys = parent is not None and parent.is_object
            return parent_takes_keys or not QUOTED_KEY.match(self.text, after)
        if not self._item_follows(after):
            return True
        return not parent.is_object if parent else not skipped

    def _item_follows(self, at: int) -> bool:
        """Whether an item of a list stands at `at`, and no key."""
        if self.text.startswith(("{", "["), at):
            return True
        string = WHOLE_STRING.match(self.text, at)
        after = peek(self.text, string.end()) if string else at
        return self.text.startswith((",", "]"), after)
