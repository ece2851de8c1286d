"""The value that a model's answer gives for a schema, wherever in the answer it stands.

The search reads JSON from every place where it may begin, repairs it and fits it to the schema.
The reading that needed the least wins; of equals, the one that fills more of the schema, then one
in a fence, then the first. What a model writes while it thinks does not count, unless it wrote
nothing else.

Where a schema has one field and no bracket holds an answer, the whole text may be that field's
value: `true`, `3` or `"spam"`.

Five rules keep the search from a wrong value:

- What lies inside sound JSON is not an answer of its own.
- What lies inside repaired JSON is one only where prose precedes it: then the bracket before it
  was a stray one.
- A reading of which something is left over (a word without a place, a key that stands twice, a
  bracket too many) may not be the right one: if it is the best, there is none.
- A value that the text ends inside of is none. Of a text that is known to be cut off, only a value
  counts whose last bracket came.
- All readings together may look at no more than a fixed multiple of the text.
"""

# ruff: noqa: RUF001 - full-width brackets are meant

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from .._text import (
    CLOSES,
    OPENS,
    Pseudonymizer,
    end_of_reasoning,
    restored,
    without_reasoning,
)
from .fit import IS_SCHEMA, SchemaMismatch, fit_schema
from .form import Form, left_standing, without_copies
from .parser import GOES_ON, JsonValue, attempt_json, refuse_constant
from .scalars import frozen
from .schema import CompiledSchema, Schema, begins_schema
from .signs import QUOTED_KEY, QUOTES, VALUE_START, WHOLE_STRING, is_key, peek

_READINGS = 3  # the text is looked at this often at most
_ALWAYS = 10_000
_LEAST = 20  # what a reading counts at least
_MOST_REPAIRS = 30

# Penalties beside those of fitting and the number of repairs.
_INCOMPLETE = 1
_NESTED = 4  # inside another reading that fits
_ASTRAY = 5  # repaired, and amid a line of prose

_NO_JSON = "answer: no JSON found in the text"
_COPY = "answer: this is the form itself, without a value in the place of each <...>"
_ENDS_EARLY = "answer: the JSON ends before it is complete"
_MARK = re.compile(
    rf"(?P<opens>{OPENS})|{CLOSES}|(?P<bracket>[{{\[｛［])", re.IGNORECASE
)
# What may stand right before a bracket.
_LINE_START = re.compile(r"(?:\A|[\n:>`-])[ \t]*$")
_FENCE = re.compile(r"(?:``|~~~)[\w+-]*\s*\Z")  # with or without a label
_JSON_GOES_ON = re.compile(r"[:,\[{(=]\s*\Z")
_LOOK_BACK = 60
_FIRST_ITEM = re.compile(rf"[{{\[\d-]|{WHOLE_STRING.pattern}|(?:true|false|null)\b")
_STRAY_WORD = re.compile(rf"\w{{1,40}}\s{{0,40}}{QUOTED_KEY.pattern}")
_IN_OBJECT = frozenset([*QUOTES, "\\", *"{}[]"])
_IN_ARRAY = frozenset([*QUOTES, "]", "\\"])


def read_answer(
    text: str,
    schema: Schema | CompiledSchema,
    *,
    cut: bool = False,
    only: bool = False,
    form: Form | None = None,
    pseudonyms: Pseudonymizer | None = None,
) -> object:
    """The value in the text that follows the schema; raises SchemaMismatch.

    `cut`: the text is known to be truncated, as by max_tokens. `only`: two objects that fit as well
    and differ are no answer; else the first is. `form`: what the model was shown of the schema, of
    which no copy is an answer, nor what still holds a placeholder. `pseudonyms`: what restores a
    value, once it is parsed, before it is fitted.
    """
    search = _Search(text, CompiledSchema.of(schema), form, pseudonyms, cut=cut)
    search.scan()
    if search.best is None and not without_reasoning(text):
        search.scan(reasoning=True)
    if search.best is None and not cut:
        search.read_scalar(without_reasoning(text))
    return search.answer(only=only)


@dataclass(frozen=True)
class _Fit:
    """A reading that fits the schema."""

    # Its penalty, the fields it fills (negative), whether it is unfenced: the least is the best.
    rank: tuple[int, int, bool]
    value: object
    spare: str = ""  # what is left over, so that it may not be what was meant


@dataclass(frozen=True)
class _Around:
    """The repaired reading that goes furthest, of which a later one may be a part."""

    end: int = 0
    nested: bool = False  # it fits
    barred: bool = False  # what stands in it as a value of JSON is no answer
    goes_on: bool = False  # so does what stands behind it


class _Search:
    def __init__(
        self,
        text: str,
        schema: CompiledSchema,
        form: Form | None,
        pseudonyms: Pseudonymizer | None,
        *,
        cut: bool,
    ) -> None:
        self._text = text
        self._placeholders: Collection[str] = ()
        if form is not None:
            self._text = without_copies(text, form)
            self._placeholders = form.placeholders
        self._has_copy = self._text != text
        self._is_cut = cut
        self._end = len(text.rstrip())
        self._first = len(text) - len(text.lstrip())
        self._schema = schema
        self._pseudonyms = pseudonyms
        self._remaining = _READINGS * len(text) + _ALWAYS  # characters to look at
        self._forget()

    def _forget(self) -> None:
        self.best: _Fit | None = None
        self._is_ambiguous = False  # another object fits as well as the best
        # What is wrong with the largest reading that does not fit, and its size.
        self._problems = [_COPY if self._has_copy else _NO_JSON]
        self._problems_size = -1
        # Whether that reading repeats what was shown of the schema.
        self._is_copy = self._has_copy

    def answer(self, *, only: bool) -> object:
        """The best reading; raises SchemaMismatch if there is none."""
        if only and self._is_ambiguous:
            raise SchemaMismatch(
                ["answer: two objects that differ fit the schema; write only one"]
            )
        if self.best is None:
            raise SchemaMismatch(self._problems, is_copy=self._is_copy)
        if self.best.spare:
            raise SchemaMismatch([f"answer: {self.best.spare}"])
        return self.best.value

    # -- readings ---------------------------------------------------------------------------------

    def scan(self, *, reasoning: bool = False) -> None:
        """Read from every bracket; `reasoning`: also from those in the model's reasoning."""
        at = 0
        self._around = _Around()
        while self._remaining > 0:
            mark = _MARK.search(self._text, at)
            if mark is None:
                break
            at = mark.end()
            if mark["bracket"]:
                at = max(at, self._read(mark.start()))
            elif not reasoning:
                at = self._after_mark(mark)

    def _read(self, begin: int) -> int:
        """Read from a bracket; returns before which place no other reading may begin."""
        around = self._around
        is_inside = begin < around.end
        is_part = around.goes_on or not self._may_begin(
            begin, barred=around.barred and is_inside
        )
        if is_part:
            return begin
        attempt = attempt_json(self._text, begin)
        self._remaining -= max(attempt.cost, _LEAST)
        value = attempt.value
        if value is None:
            end = begin + attempt.cost
            if end > around.end:
                self._around = replace(around, end=end, barred=True)
            return attempt.too_deep_until
        if self._is_cut_inside(value):
            return len(self._text)
        is_copy = self._holds_placeholder(value.value, value.end - begin)
        fits = not is_copy and self._offer(
            value, begin, nested=around.nested and is_inside
        )
        goes_on = value.spare == GOES_ON
        if is_copy or not value.repairs or self._is_json(value, begin):
            # What lies inside a copy, or inside JSON, is not an answer of its own.
            self._around = replace(around, goes_on=goes_on)
            return value.end
        if value.end > around.end:
            barred = fits or isinstance(value.value, dict)
            self._around = _Around(
                value.end, nested=fits, barred=barred, goes_on=goes_on
            )
        return begin

    def read_scalar(self, text: str) -> None:
        """Read a text that is a JSON scalar as the value of the schema's only field."""
        if len(self._schema.fields) != 1:
            return
        try:
            value = json.loads(text, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            return
        if isinstance(value, (dict, list)):
            return
        [name] = self._schema.fields
        try:
            fitted, penalty = fit_schema(
                {name: restored(value, self._pseudonyms)}, self._schema, coerce=False
            )
        except SchemaMismatch as mismatch:
            self._record(mismatch.problems, len(text))
            return
        if not self._holds_placeholder(fitted, len(text)):
            self.best = _Fit((penalty, -1, True), fitted)

    def _after_mark(self, mark: re.Match[str]) -> int:
        """Where the answer goes on behind a mark of reasoning."""
        self._around = _Around()
        if mark["opens"]:
            return end_of_reasoning(self._text, mark)
        self._forget()  # its opening mark is missing: all that precedes it is reasoning
        return mark.end()

    def _may_begin(self, at: int, *, barred: bool) -> bool:
        """Whether to read from the bracket at `at`; `barred`: not as a value of JSON around it."""
        text = self._text
        if barred and self._comes_after(_JSON_GOES_ON, at):
            return False
        after = peek(text, at + 1)
        char = text[after : after + 1]
        if text[at] in "{｛":
            if char in _IN_OBJECT or char.isdigit():
                return True
            return (
                is_key(text, after, words=True)
                or _STRAY_WORD.match(text, after) is not None
            )
        if char.isalpha() and (at == self._first or self._is_fenced(at)):
            return True  # items without quotes; elsewhere these are brackets of prose
        return char in _IN_ARRAY or VALUE_START.match(text, after) is not None

    def _is_json(self, value: JsonValue, begin: int) -> bool:
        """Whether a bracket with this value begins nothing but JSON, be it broken behind."""
        after = peek(self._text, begin + 1)
        first = _FIRST_ITEM
        if isinstance(value.value, dict):
            first = QUOTED_KEY
        return first.match(self._text, after) is not None

    def _is_fenced(self, at: int) -> bool:
        return self._comes_after(_FENCE, at)

    def _comes_after(self, pattern: re.Pattern[str], at: int) -> bool:
        """Whether the pattern, which ends with its text, matches right before `at`."""
        return pattern.search(self._text, max(0, at - _LOOK_BACK), at) is not None

    def _offer(self, value: JsonValue, begin: int, *, nested: bool) -> bool:
        """Fit a value to the schema, and keep it if it is the best; returns whether it fits."""
        size = value.end - begin
        if not value.complete and value.cut_in_value and value.end >= self._end:
            self._record([_ENDS_EARLY], size)
            return False
        try:
            fitted, penalty = fit_schema(
                restored(value.value, self._pseudonyms),
                self._schema,
                tidy=True,
                exact=not value.balanced,
            )
        except SchemaMismatch as mismatch:
            problems = mismatch.problems
            if value.spare:
                problems = [f"answer: {value.spare}", *problems]
            if not value.complete:
                problems = [_ENDS_EARLY, *problems]
            if not self._is_heading(begin):
                self._record(problems, size, is_copy=mismatch.is_copy)
            return False
        penalty += self._reading_penalty(value, begin)
        if nested:
            penalty += _NESTED
        rank = (penalty, -self._count_fields(fitted), not self._is_fenced(begin))
        if self.best is None or rank < self.best.rank:
            self.best = _Fit(rank, fitted, value.spare)
            self._is_ambiguous = False
        elif rank == self.best.rank and isinstance(fitted, dict):
            is_other = frozen(fitted) != frozen(self.best.value)
            self._is_ambiguous = self._is_ambiguous or is_other
        return not value.spare

    def _reading_penalty(self, value: JsonValue, begin: int) -> int:
        """The penalty of a reading by itself, whatever the schema."""
        penalty = min(value.repairs, _MOST_REPAIRS)
        if not value.complete:
            penalty += _INCOMPLETE
        if not value.repairs or self._is_fenced(begin):
            return penalty
        if not self._comes_after(_LINE_START, begin):
            penalty += _ASTRAY
        return penalty

    def _is_heading(self, at: int) -> bool:
        """Whether a bracket has bare words: [CONTENT] is no list that somebody meant to write."""
        if self._text[at] not in "[［":
            return False
        first = peek(self._text, at + 1)
        return self._text[first : first + 1].isalpha()

    def _holds_placeholder(self, value: object, size: int) -> bool:
        problems = [*left_standing(value, self._placeholders)]
        if problems:
            self._record(problems, size, is_copy=True)
        return bool(problems)

    def _is_cut_inside(self, value: JsonValue) -> bool:
        """Whether max_tokens cut the answer inside this value: then nothing inside it is one."""
        if not self._is_cut or value.complete:
            return False
        copied = [*left_standing(value.value, self._placeholders)]
        if begins_schema(value.value, self._schema):
            copied = [IS_SCHEMA]
        self._problems = copied or [_ENDS_EARLY]
        self._is_copy = bool(copied)
        return True

    def _record(self, problems: list[str], size: int, *, is_copy: bool = False) -> None:
        if size > self._problems_size:
            self._problems = problems
            self._problems_size = size
            self._is_copy = is_copy

    def _count_fields(self, value: object) -> int:
        """How many of the schema's fields an object fills."""
        if not isinstance(value, dict):
            return 0
        fields = self._schema.fields
        if not fields:
            return len(value)
        return len(fields.keys() & value.keys())
