"""Where a string of broken JSON ends, when its own quotes do not settle it.

Quotes inside a string may lack their backslash, and a string may lack its closing quote. What
follows a quote tells: after the value of a field come a comma and a key, or a closing bracket;
after an item a comma and a value; after a key a colon. A quote that none of these follows is part
of the text, unless it opens the next string because the quote before it was forgotten.
"""

# ruff: noqa: RUF001 - what models write has such characters

from __future__ import annotations

import re

from .signs import (
    CLOSERS,
    COLONS,
    COMMAS,
    QUOTES,
    STRUCTURE,
    VALUE_START,
    WHOLE_STRING,
    Frame,
    Slot,
    can_close,
    comma_at,
    comma_separates,
    is_key,
    key_follows,
    peek,
    quote_follows,
    stops,
    structure_at,
)

_LONGEST_KEY = 1_000
_LOOK_BACK = 100
_AFTER_KEY = COLONS | STRUCTURE
_CLOSING_MARKS = {
    quote: re.compile(f"[{re.escape(closing)}\\\\]")
    for quote, closing in QUOTES.items()
}
_KEY_OPENS = re.compile(
    rf"\"[^\"\n:{{}}]{{1,80}}\"\s{{0,20}}:\s{{0,40}}{VALUE_START.pattern}"
)
_BARE_KEY_AT_END = re.compile(r",\s{0,40}([^\W\d][\w$-]{0,60})\s{0,20}:\s{0,20}$")
_KEY_TEXT = re.compile(r"\s*[^:{}\[\],\"]{1,80}(?=:)")
_CUT_KEY = re.compile(r"\"(?:[^\"\\\n]|\\[^\n]){0,200}\\?\Z")
_UNOPENED_ITEM = re.compile(r"\s{0,5}[^\"\s,\]][^\"\n,\]]{0,80}\"?")
_INCHES = re.compile(r"(?:^|[\s(x×])\d+(?:[.,/]\d+)?$")


class StringScan:
    """A search for the end of one string, and what it has seen inside the string so far."""

    def __init__(self, text: str, begin: int, slot: Slot, frames: list[Frame]) -> None:
        self.begin = begin  # just after the opening quote
        self.inner_quotes = 0  # quotes that turned out to be text
        self.last_inner_quote = 0  # where the last of them stands
        self._braces = 0  # how many more { than }
        self._text = text
        self._slot = slot
        self._frames = frames

    def find_end(self) -> tuple[int, int] | None:
        """Where the string's text ends and where parsing goes on; None if it does not end."""
        text = self._text
        closing_mark = _CLOSING_MARKS[text[self.begin - 1]]
        at = self.begin
        counted = self.begin
        while match := closing_mark.search(text, at):
            quote = match.start()
            if match[0] == "\\":
                at = quote + 2
                continue
            if self._slot is Slot.KEY and quote - self.begin > _LONGEST_KEY:
                return None
            self._braces += text.count("{", counted, quote)
            self._braces -= text.count("}", counted, quote)
            counted = quote
            if self._ends_at(quote):
                resume = quote + 1
                is_doubled = text.startswith(text[quote], resume)
                if is_doubled and structure_at(text, resume + 1):
                    resume += 1  # "value"",: the second quote is one too many
                return quote, resume
            earlier_end = self._end_before(quote)
            if earlier_end is not None:
                return earlier_end, earlier_end
            self.inner_quotes += 1
            self.last_inner_quote = quote
            at = quote + 1
        return None

    # -- does this quote end the string? ----------------------------------------------------------

    def _ends_at(self, quote: int) -> bool:
        text = self._text
        slot = self._slot
        after = peek(text, quote + 1)
        if slot is Slot.ROOT or stops(text, after):
            return True
        char = text[after]
        if char in QUOTES:
            return self._ends_before_quote(quote, after)
        if char == "+" and quote_follows(text, after):
            return True
        if slot is Slot.KEY:
            # A key has one line: by the second one its closing quote has been forgotten.
            return char in _AFTER_KEY or "\n" in text[self.begin : quote]
        if char in CLOSERS:
            return self._ends_before_bracket(after)
        if char in COMMAS:
            return self._ends_before_comma(quote, after)
        if slot is Slot.FIELD:
            # The comma was forgotten, and the next key stands in a line of its own.
            has_break = "\n" in text[quote:after]
            return has_break and key_follows(text, after, self._frames)
        return after > quote + 1 and self._unopened_item_follows(quote, after)

    def _ends_before_quote(self, quote: int, next_quote: int) -> bool:
        """Whether a quote ends the string when another follows: a comma or a colon is missing."""
        text = self._text
        if self._slot is Slot.KEY or is_key(text, next_quote):
            return True
        if next_quote == quote + 1 and structure_at(text, next_quote + 1):
            # In "value"" the second quote is one too many; in "say "hi"" the first is text.
            return self.inner_quotes % 2 == 0
        if self._slot is not Slot.ITEM:
            return False
        # ["a" "b"]: a whole item follows.
        item = WHOLE_STRING.match(text, next_quote)
        if item is None:
            return False
        beyond = peek(text, item.end())
        return structure_at(text, beyond) or VALUE_START.match(text, beyond) is not None

    def _ends_before_comma(self, quote: int, comma: int) -> bool:
        """Whether the comma after the quote separates two fields or items, and is not text."""
        if comma_separates(self._text, comma, self._slot, self._frames):
            return True
        if self._slot is Slot.FIELD:
            return self._lone_key_follows(comma)
        return self._unopened_item_follows(quote, comma + 1)

    def _ends_before_bracket(self, bracket: int) -> bool:
        """Whether the bracket after the quote closes a container, and not a brace of the text."""
        text = self._text
        if not can_close(text[bracket], self._frames):
            return self._stray_brackets_end(bracket)
        after = peek(text, bracket + 1)
        comma_follows = comma_at(text, after)
        if structure_at(text, after) and not comma_follows:
            return True
        if "\n" in text[bracket:after] or is_key(text, after):
            return True
        if self._braces <= 0:
            return True
        # The text has an open brace of its own, which this one may close; but between two
        # containers a comma follows.
        return comma_follows and len(self._frames) > 1

    def _stray_brackets_end(self, bracket: int) -> bool:
        """Whether brackets that close nothing lead to one that does: "a")}."""
        text = self._text
        at = bracket
        for _ in range(3):
            at = peek(text, at + 1)
            char = text[at : at + 1]
            if char not in CLOSERS or can_close(char, self._frames):
                break
        return can_close(text[at : at + 1], self._frames) and structure_at(text, at + 1)

    def _lone_key_follows(self, comma: int) -> bool:
        """Whether a key without a value follows: "a": "b", "c"}, or one that is cut off: , "c."""
        if self.inner_quotes:
            return False
        after = peek(self._text, comma + 1)
        key = WHOLE_STRING.match(self._text, after)
        if key is None:
            return _CUT_KEY.match(self._text, after) is not None
        return structure_at(self._text, key.end())

    def _unopened_item_follows(self, quote: int, after: int) -> bool:
        """Whether an item ends at the quote and the next lacks its opening quote: ["a" b" ]."""
        if self.inner_quotes:  # inside a pair of quotes, this one is text as well
            return False
        text = self._text
        if _INCHES.search(text[max(self.begin, quote - 20) : quote]):
            return False
        item = _UNOPENED_ITEM.match(text, after)
        if item is None:
            return False
        beyond = peek(text, item.end())
        return stops(text, beyond) or text[beyond] == "]" or text[beyond] in COMMAS

    # -- or had the string ended before it, without a quote? --------------------------------------

    def _end_before(self, quote: int) -> int | None:
        """Where the string had ended already if the quote opens the next one; else None."""
        text = self._text
        if self._slot is Slot.KEY:  # {"key: "value"}
            key = _KEY_TEXT.match(text, self.begin, quote)
            if key is None:
                return None
            return key.end()
        if self._slot is Slot.ITEM:  # ["first, "second"]
            if self.inner_quotes:
                return None
            return self._separator_before(quote)
        if self._braces <= 0 and _KEY_OPENS.match(text, quote):
            before = text[quote - 1]
            if before.isalnum() or before in ".!?":  # {"name": "teacher"rating": 4}
                return quote
            end = self._separator_before(quote)
            if end is not None:  # {"name": "teacher, "rating": 4}
                return end
        return self._end_before_bare_key(quote)

    def _end_before_bare_key(self, quote: int) -> int | None:
        """Where the string ends if the quote opens a bare key's value: {"a": "text, b: "c"}."""
        text = self._text
        start = max(self.begin, quote - _LOOK_BACK)
        key = _BARE_KEY_AT_END.search(text[start:quote])
        value = WHOLE_STRING.match(text, quote)
        if key is None or value is None or stops(text, value.end()):
            return None
        scan = StringScan(text, quote + 1, Slot.FIELD, self._frames)
        if not scan._ends_at(value.end() - 1):
            return None
        return start + key.start()

    def _separator_before(self, quote: int) -> int | None:
        """The position of the comma, or of the line end, right before the quote."""
        start = max(self.begin, quote - _LOOK_BACK)
        tail = self._text[start:quote]
        stripped = tail.rstrip()
        if stripped.endswith(","):
            if self._braces < 0:
                # The string took in closing brackets of the JSON; it ended before their lines.
                return start + _before_closing_lines(stripped)
            return start + len(stripped) - 1
        if "\n" in tail[len(stripped) :]:
            return start + len(stripped)
        return None


def _before_closing_lines(text: str) -> int:
    """Where the lines of closing brackets before a last comma begin; without any, at the comma."""
    comma = len(text) - 1
    begin = comma
    while begin and (text[begin - 1].isspace() or text[begin - 1] in "}]"):
        begin -= 1
    line = text.find("\n", begin, comma)
    if line < 0 or not text[line:comma].strip():
        return comma
    return begin + len(text[begin:line].rstrip())
