"""Whether a call only repeats what the model has read: a replay.

A model that quotes a call of a mail or a document does not mean to make it. Texts are compared by
their letters and digits alone, after unescaping, NFKC and casefolding; what stood between them only
tells `path=/mail`, an argument, from "the path /mail", plain words. Where a text repeats itself so
often that looking closer would take long, the call counts as a replay: to ask is cheaper.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

_NEAR = 200  # letters between the parts of a call, beside the parts themselves
_BETWEEN = 24  # letters between a key and its value, as in <arg_key>path</arg_key><arg_value>
_MANY = 2_000  # places of a text that are looked at for one argument
_PARTS = 40  # values of a call that are looked for
_LONG = 300  # letters of a value that are compared
_BEGUN = 1_000  # characters of a call that is being written that are compared

_ESCAPE = re.compile(
    r"\\{1,8}(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,5})\}|x([0-9a-fA-F]{2})|[nrtbf])"
)
_HALF_ESCAPE = re.compile(r"(?:\\u?[0-9a-fA-F{]{0,4}|&#?\w{0,8})\Z")
_HUGE_ENTITY = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}")  # html.unescape would raise
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters that nobody sees
_BETWEEN_WORDS = re.compile(r"([\W_]+)")
_SIGN = re.compile(r"[:=>]|</")
_MARKUP = re.compile(r"[(\[{<>]")
_BRACKET = re.compile(r"\A\s*[(\[]")
_EMPTY = re.compile(r"\{\s*\}")
_OPENED = re.compile(r"[:=<>(\[{\n]|\A\Z")  # before the name of a call, not of a word
_CLOSER = re.compile(r"</|/>")
_ALONE = (re.compile(r"[\[>\n]\s*\Z"), re.compile(r"\A\(\s*\)\s*(?:[])<`'\"\n]|\Z)"))  # f()


class Replays:
    """Knows what the model has read: `source(name, arguments)` says where a call stands in it.

    `texts` gives who said what, once; a call may be spread over all that one speaker said. `asking`
    is who asks for a call by writing f(3), which is then not a replay.
    """

    def __init__(
        self, texts: Callable[[], Iterable[tuple[str, str]]], asking: str | None = None
    ) -> None:
        self._texts = texts
        self._asking = asking
        self._known: dict[str, str | None] = {}
        self._begun: tuple[str, bool] = ("", True)

    @cached_property
    def _read(self) -> dict[str, _Text]:
        said: dict[str, list[str]] = {}
        for who, text in self._texts():
            said.setdefault(who, []).append(text)
        return {who: _Text("\n".join(texts)) for who, texts in said.items()}

    def source(self, name: str, arguments: Mapping[str, Any], written: str = "") -> str | None:
        """Where a call, or what was written of it, stands as a call; None where it is its own."""
        call = json.dumps([name, arguments, written], default=str)
        if call not in self._known:
            self._known[call] = None
            for who, text in self._read.items():
                if _stands_in(text, name, arguments, written, asks=who == self._asking):
                    self._known[call] = who
                    break
        return self._known[call]

    def may_be(self, written: str) -> bool:
        """Whether what has been written of a call so far stands in what was read."""
        begin = written[:_BEGUN]
        if begin != self._begun[0]:
            begun = _letters(_HALF_ESCAPE.sub("", begin))
            self._begun = begin, any(begun in text.letters for text in self._read.values())
        return self._begun[1]


def _fold(text: str) -> str:
    """The text without escapes, invisible letters, and differences of case and width."""
    for _ in range(3):  # an escape in an escape in an escape
        before = text
        text = html.unescape(_HUGE_ENTITY.sub(" ", _ESCAPE.sub(_unescaped, text)))
        if text == before:
            break
    if text.isascii():
        return text.lower()
    # Halves of one letter, then marks: thousands of them in a row would take long to normalize.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    unseen = {ord(letter): None for letter in set(text) if _is_unseen(letter)}
    text = unicodedata.normalize("NFKD", text.translate(unseen)).casefold()
    return unicodedata.normalize("NFKD", text)


def _unescaped(escape: re.Match[str]) -> str:
    number = escape[1] or escape[2] or escape[3]
    return chr(int(number, 16)) if number else "\n"


def _is_unseen(letter: str) -> bool:
    return unicodedata.category(letter) in {"Mn", "Me", "Cf"} or letter in _FILLERS


class _Text:
    """A text's letters and digits, and what stood between its words by their number."""

    def __init__(self, text: str) -> None:
        pieces = _BETWEEN_WORDS.split(_fold(text))
        words = pieces[::2]
        self.letters = "".join(words)
        self.gaps = {0: ""}
        at = 0
        for word, gap in zip(words, pieces[1::2], strict=False):
            at += len(word)
            self.gaps[at] = gap
        self.gaps.setdefault(len(self.letters), "")
        self._edges = list(self.gaps)
        self._markup = [at for at, gap in self.gaps.items() if _MARKUP.search(gap)]
        self._places: dict[str, list[int]] = {}

    def places(self, wanted: str) -> list[int]:
        """Where these letters stand as words of their own."""
        if wanted not in self._places:
            self._places[wanted] = list(self._find(wanted))
        return self._places[wanted]

    def _find(self, wanted: str) -> Iterator[int]:
        at = self.letters.find(wanted)
        while at >= 0:
            if at in self.gaps and (len(wanted) >= _LONG or at + len(wanted) in self.gaps):
                yield at
            after = bisect_right(self._edges, at)
            at = self.letters.find(wanted, self._edges[after]) if after < len(self._edges) else -1

    def has(self, sign: re.Pattern[str], at: int) -> bool:
        """Whether a sign stands there."""
        return sign.search(self.gaps.get(at, "")) is not None

    def has_nothing(self, at: int, end: int) -> bool:
        """Whether what surrounds a name says that it is called without arguments."""
        first, last = bisect_left(self._edges, end), bisect_right(self._edges, end + _BETWEEN)
        return (
            any(self.has(_EMPTY, edge) for edge in self._edges[first:last])
            or (self.has(_OPENED, at) and self.has(_CLOSER, end))
            or (self.has(_ALONE[0], at) and self.has(_ALONE[1], end))
        )

    def pairs(self, key: str, value: str) -> list[int]:
        """Where a key stands with its value."""
        keys = self.places(key)
        if not value:
            return [at for at in keys if self.has(_SIGN, at + len(key))]
        values = self.places(value)
        if max(len(keys), len(values)) > _MANY:
            return values
        found = []
        for at in keys:
            end = at + len(key)
            near = values[bisect_left(values, end) : bisect_right(values, end + _BETWEEN)]
            if any(self._parts(end, begin) for begin in near):
                found.append(at)
        return found

    def _parts(self, end: int, begin: int) -> bool:
        """Whether something tells a key's value from plain words."""
        if end == begin:
            return self.has(_SIGN, end)
        return self.has(_MARKUP, end) or self.has(_MARKUP, begin)

    def quotes(self, written: str) -> bool:
        """Whether these letters stand in it with markup between them."""
        places = self.places(written[:_LONG])[:_MANY] if written in self.letters else []
        size = len(written) - 1
        return any(_has_between(self._markup, at + 1, at + size) for at in places)


def _stands_in(
    text: _Text, name: str, arguments: Mapping[str, Any], written: str, *, asks: bool
) -> bool:
    name = _letters(name)
    names = text.places(name) if name else []
    if not names:
        return False
    pairs = list(islice(_leaves(arguments), _PARTS))
    if not pairs:
        return any(text.has_nothing(at, at + len(name)) for at in names)
    in_order = text.places((name + "".join(value for _, value in pairs))[:_LONG])
    if not asks and any(text.has(_BRACKET, at + len(name)) for at in in_order):
        return True  # f("a", 1) has no keys
    return text.quotes(_letters(written)) or _stand_together(text, name, pairs)


def _stand_together(text: _Text, name: str, pairs: list[tuple[str | None, str]]) -> bool:
    found = [text.places(name)]
    for key, value in pairs:
        found.append(text.places(value) if key is None else text.pairs(key, value))
        if not found[-1]:
            return False
    reach = len(name) + _NEAR + sum(len(key or "") + len(value) + _NEAR for key, value in pairs)
    rarest, *others = sorted(found, key=len)
    return len(rarest) > _MANY or any(
        all(_has_between(places, at - reach, at + reach) for places in others) for at in rarest
    )


def _letters(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return _BETWEEN_WORDS.sub("", _fold(text))


def _leaves(arguments: Mapping[str, Any]) -> Iterator[tuple[str | None, str]]:
    """Each value but lists and objects, with the key before it; the first of a list has it."""
    left: list[tuple[str | None, Any]] = [(None, arguments)]
    while left:
        key, value = left.pop()
        if isinstance(value, Mapping):
            left += [(_letters(str(name)), one) for name, one in reversed(list(value.items()))]
            if key:
                yield key, ""
        elif isinstance(value, list) and value:
            left += [*((None, one) for one in reversed(value[1:])), (key, value[0])]
        else:
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            empty = value is None or isinstance(value, list)
            yield key, "" if empty else _letters(value)[:_LONG]


def _has_between(places: list[int], low: int, high: int) -> bool:
    at = bisect_left(places, low)
    return at < len(places) and places[at] <= high
