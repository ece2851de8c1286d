"""Whether a call only repeats what the model has read: a replay.

A model that quotes a call of a mail or a document does not mean to make it. `Replays` searches a
call in the reading of a text, by letters and digits alone: with its tags, since those may be the
call's (`<path>`), as a page shows it, and without any tag. The characters between words only tell
`path=/mail`, an argument, from "the path /mail", plain words. Where a text repeats itself so often
that a closer look would take long, the call counts as a replay: to ask is cheaper.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

from .._text import characters, fold, rendered, without_partial_escape
from .marks import FIRST_CHARACTERS

_NEAR = 200  # letters between the parts of a call, beside the parts themselves
# Letters between a key and its value, as in <arg_key>path</arg_key><arg_value>.
_BETWEEN = 24
_MANY = 2_000  # places of a text that are compared with one argument
_PARTS = 40  # values of a call that are compared
_LONG = 300  # letters of a value that are compared
_BEGINNING = 1_000  # characters that are compared of a call that the model still writes

_MAIL = re.compile(r"=(?:[0-9A-F]{2}|\r?\n)")
# Of a file that a tool has numbered. A backslash at the end of a line is the begin of an escape
# that goes on in the next line.
_LINE_NUMBER = re.compile(
    r"(?:(?<=\\)\n)?^[ \t]*[\[(#]?[Ll]?(?:[0-9]{1,9}|[0-9a-fA-F]{6,16})(?!\w)"
    r"[\])]?[:|.\u2192-]?[ \t]*",
    re.MULTILINE,
)
_BETWEEN_WORDS = re.compile(r"([\W_]+)")
_SIGN = re.compile(r"[:=>]|</")
_MARKUP = re.compile(r"[(\[{<>]")
_BRACKET = re.compile(r"\A\s*[(\[]")
_EMPTY = re.compile(r"\{\s*\}")
_OPENED = re.compile(r"[:=<>(\[{\n]|\A\Z")  # before the name of a call, not of a word
_CLOSER = re.compile(rf"(?:{'|'.join(map(re.escape, FIRST_CHARACTERS))})/|/>")
_ALONE = (
    re.compile(r"(?:[\[>]\s{0,40}|\n[^\S\n]{0,40})\Z"),
    re.compile(r"\A\(\s*\)\s*(?:[])<`'\"\n]|\Z)"),
)  # f()


class Replays:
    """The texts that the model has read: `source(name, arguments)` says whose text has a call.

    `texts` yields each text with its speaker, once; a call may be spread over all texts of a
    speaker. `asking` is the speaker who asks for a call by writing f(3), which is then no replay.
    """

    def __init__(
        self, texts: Callable[[], Iterable[tuple[str, str]]], asking: str | None = None
    ) -> None:
        self._texts = texts
        self._asking = asking
        self._sources: dict[str, str | None] = {}
        self._beginning = ""
        self._beginning_was_read = True

    @cached_property
    def _readings(self) -> list[tuple[str, _Words]]:
        """Each speaker with a reading of all that this speaker said."""
        texts: dict[str, list[str]] = {}
        for speaker, text in self._texts():
            texts.setdefault(speaker, []).append(text)
        return [
            (speaker, words)
            for speaker, parts in texts.items()
            for words in _readings("\n".join(parts))
        ]

    def source(
        self, name: str, arguments: Mapping[str, Any], source_text: str = ""
    ) -> str | None:
        """The speaker in whose texts a call stands as one; None if it is the model's own.

        `source_text`: the call as the model wrote it, if its arguments could not be read.
        """
        key = json.dumps([name, arguments, source_text], default=str)
        if key not in self._sources:
            self._sources[key] = self._find_source(name, arguments, source_text)
        return self._sources[key]

    def _find_source(
        self, name: str, arguments: Mapping[str, Any], source_text: str
    ) -> str | None:
        calls: dict[_Read, _Call] = {}
        for speaker, words in self._readings:
            call = calls.get(words.read)
            if call is None:
                call = _Call(name, arguments, source_text, words.read)
                calls[words.read] = call
            if call.stands_in(words, speaker_asks=speaker == self._asking):
                return speaker
        return None

    def may_be(self, text: str) -> bool:
        """Whether the beginning of a call, as far as the model has written it, was read."""
        beginning = without_partial_escape(text[:_BEGINNING])
        if beginning != self._beginning:
            self._beginning = beginning
            self._beginning_was_read = any(
                _letters(beginning, words.read) in words.letters
                for _, words in self._readings
            )
        return self._beginning_was_read


_Read: TypeAlias = Callable[[str], str]


def _with_tags(text: str) -> str:
    return characters(text, is_mail=False).text


def _as_page(text: str) -> str:
    return rendered(characters(text, is_mail=False)).text


def _without_tags(text: str) -> str:
    return rendered(characters(text, is_mail=False), all_tags=True).text


def _transports(text: str) -> Iterator[str]:
    """The text as it is, without numbers of lines, out of quoted-printable, and without both."""
    yield text
    unnumbered, count = _LINE_NUMBER.subn("", _with_tags(text))
    numbered = [text]
    if count > 1:
        numbered.append(unnumbered)
        yield unnumbered
    if _MAIL.search(text):
        for source in numbered:
            yield characters(source, is_mail=True).text


def _readings(text: str) -> Iterator[_Words]:
    """The readings of a text that differ: most texts have one."""
    earlier: set[str] = set()
    for source in _transports(text):
        for read in (_with_tags, _as_page, _without_tags):
            reading = read(source)
            if reading not in earlier:
                earlier.add(reading)
                yield _Words(reading, read)


def _letters(value: object, read: _Read) -> str:
    """The letters and digits of a value, by which values are compared."""
    if isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, default=str)
    return _BETWEEN_WORDS.sub("", fold(read(text)))


class _Words:
    """The letters and digits of a reading, and the gaps between its words.

    A place is a number of letters. Gaps are computed when a call's name occurs at all: in most
    texts that a model reads it does not.
    """

    def __init__(self, reading: str, read: _Read) -> None:
        self.read = read
        self._text = fold(reading)
        self._places: dict[str, list[int]] = {}

    @cached_property
    def letters(self) -> str:
        """All letters and digits in a row."""
        return _BETWEEN_WORDS.sub("", self._text)

    @cached_property
    def _gaps(self) -> dict[int, str]:
        """The text before, between and after words, by place, in order."""
        pieces = _BETWEEN_WORDS.split(self._text)
        gaps = {0: ""}
        at = 0
        for word, gap in zip(pieces[::2], pieces[1::2], strict=False):
            at += len(word)
            gaps[at] = gap
        gaps.setdefault(len(self.letters), "")
        return gaps

    @cached_property
    def _edges(self) -> list[int]:
        return list(self._gaps)

    @cached_property
    def _markup(self) -> list[int]:
        return [at for at, gap in self._gaps.items() if _MARKUP.search(gap)]

    def places(self, letters: str) -> list[int]:
        """Where these letters stand as words of their own."""
        if letters not in self._places:
            self._places[letters] = list(self._find(letters))
        return self._places[letters]

    def _find(self, letters: str) -> Iterator[int]:
        at = self.letters.find(letters)
        while at >= 0:
            has_end = len(letters) >= _LONG or at + len(letters) in self._gaps
            if has_end and at in self._gaps:
                yield at
            after = bisect_right(self._edges, at)
            if after == len(self._edges):
                break
            at = self.letters.find(letters, self._edges[after])

    def has(self, sign: re.Pattern[str], at: int) -> bool:
        """Whether a sign stands there."""
        return sign.search(self._gaps.get(at, "")) is not None

    def has_no_arguments(self, at: int, end: int) -> bool:
        """Whether the signs around a name say that it is called without arguments."""
        first = bisect_left(self._edges, end)
        last = bisect_right(self._edges, end + _BETWEEN)
        if any(self.has(_EMPTY, edge) for edge in self._edges[first:last]):
            return True
        if self.has(_OPENED, at) and self.has(_CLOSER, end):
            return True
        before, after = _ALONE
        return self.has(before, at) and self.has(after, end)

    def pairs(self, key: str, value: str) -> list[int]:
        """Where a key stands with its value."""
        keys = self.places(key)
        if not value:
            return [at for at in keys if self.has(_SIGN, at + len(key))]
        values = self.places(value)
        if max(len(keys), len(values)) > _MANY:
            return values
        return [at for at in keys if self._has_value(at + len(key), values)]

    def _has_value(self, end: int, values: list[int]) -> bool:
        """Whether one of the values belongs to the key that ends there."""
        first = bisect_left(values, end)
        last = bisect_right(values, end + _BETWEEN)
        return any(self._is_pair(end, begin) for begin in values[first:last])

    def _is_pair(self, end: int, begin: int) -> bool:
        """Whether something tells a key's value from plain words."""
        if end == begin:
            return self.has(_SIGN, end)
        return self.has(_MARKUP, end) or self.has(_MARKUP, begin)

    def quotes(self, letters: str) -> bool:
        """Whether these letters stand in it with markup between them."""
        if not letters or letters not in self.letters:
            return False
        places = self.places(letters[:_LONG])[:_MANY]
        size = len(letters) - 1
        return any(_has_between(self._markup, at + 1, at + size) for at in places)


class _Call:
    """The letters of a call, read as a text was."""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        source_text: str,
        read: _Read,
    ) -> None:
        self._name = _letters(name, read)
        self._arguments = arguments
        self._source_text = source_text
        self._read = read

    # Computed where the call's name stands in a text at all, which it does in few.

    @cached_property
    def _pairs(self) -> list[tuple[str | None, str]]:
        return list(islice(_pairs(self._arguments, self._read), _PARTS))

    @cached_property
    def _source_letters(self) -> str:
        return _letters(self._source_text, self._read)

    def stands_in(self, words: _Words, *, speaker_asks: bool) -> bool:
        """Whether the call stands in a reading as a call."""
        name = self._name
        if not name or name not in words.letters:
            return False
        names = words.places(name)
        if not names:
            return False
        if not self._pairs:
            return any(words.has_no_arguments(at, at + len(name)) for at in names)
        if not speaker_asks and self._has_no_keys(words):
            return True
        return words.quotes(self._source_letters) or self._stands_together(words)

    def _has_no_keys(self, words: _Words) -> bool:
        """Whether it stands there as f("a", 1)."""
        in_order = self._name + "".join(value for _, value in self._pairs)
        places = words.places(in_order[:_LONG])
        return any(words.has(_BRACKET, at + len(self._name)) for at in places)

    def _stands_together(self, words: _Words) -> bool:
        """Whether its name and all arguments stand near each other, in any order."""
        reach = len(self._name) + _NEAR
        places = [words.places(self._name)]
        for key, value in self._pairs:
            if key is None:
                pair_places = words.places(value)
            else:
                pair_places = words.pairs(key, value)
                reach += len(key)
            if not pair_places:
                return False
            places.append(pair_places)
            reach += len(value) + _NEAR
        rarest, *others = sorted(places, key=len)
        if len(rarest) > _MANY:
            return True
        return any(_has_all_near(others, at, reach) for at in rarest)


def _has_all_near(places: list[list[int]], at: int, reach: int) -> bool:
    return all(_has_between(part, at - reach, at + reach) for part in places)


def _pairs(
    arguments: Mapping[str, Any], read: _Read
) -> Iterator[tuple[str | None, str]]:
    """Each value but lists and objects, with the key before it; the first of a list has it."""
    stack: list[tuple[str | None, object]] = [(None, arguments)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, Mapping):
            for name, item in reversed(list(value.items())):
                stack.append((_letters(str(name), read), item))
            if key:
                yield key, ""
        elif isinstance(value, list) and value:
            stack += [(None, item) for item in reversed(value[1:])]
            stack.append((key, value[0]))
        else:
            yield key, _letters_of_leaf(value, read)


def _letters_of_leaf(value: object, read: _Read) -> str:
    if value is None or isinstance(value, list):  # an empty list
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _letters(value, read)[:_LONG]


def _has_between(places: list[int], low: int, high: int) -> bool:
    at = bisect_left(places, low)
    return at < len(places) and places[at] <= high
