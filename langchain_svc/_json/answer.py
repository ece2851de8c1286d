"""The value that a model's answer gives for a schema, wherever in the answer it stands.

Every place where JSON may begin is read, with its repairs, and fitted to the schema; the reading
that needed the least wins. Of equals, the one that fills more of the schema, then one in a fence,
then the first. What a model writes while it thinks does not count, unless it wrote nothing else.

Four rules keep a wrong value from being found: what lies inside sound JSON is not an answer of its
own; what lies inside repaired JSON is one only where prose precedes it (the bracket before it was
a stray one); a value that the text ends inside of is none, and of a text that is known to be cut
off, only a value counts whose last bracket came; and all readings together may look at no more
than a fixed multiple of the text.
"""

# ruff: noqa: RUF001 - full-width brackets are meant

from __future__ import annotations

import re
from typing import Any

from .lenient import attempt_json
from .parser import JsonValue
from .reasoning import CLOSE, CLOSES, OPENS, without_reasoning
from .schema import CompiledSchema, Schema, SchemaMismatch, fit_schema
from .signs import QUOTES, VALUE_START, is_key, peek

_READINGS = 3  # the text is looked at this often at most
_ALWAYS = 10_000
_LEAST = 20  # what a reading counts at least
_MOST_REPAIRS = 30

# Penalties beside those of fitting and the number of repairs.
_INCOMPLETE = 1
_NESTED = 4  # inside another reading that fits
_ASTRAY = 5  # repaired, and amid a line of prose

_ENDS_EARLY = "answer: the JSON ends before it is complete"
_MARK = re.compile(
    rf"(?P<opens>{OPENS})|{CLOSES}|(?P<bracket>[{{\[｛［])", re.IGNORECASE
)
_LINE_BEFORE = re.compile(r"(?:\A|[\n:>`-])[ \t]*$")
_LOOK_BACK = 60
_IN_OBJECT = frozenset([*QUOTES, "}", "\\", "{"])
_IN_ARRAY = frozenset([*QUOTES, "]", "\\"])


def read_answer(
    text: str, schema: Schema | CompiledSchema, *, cut: bool = False, only: bool = False
) -> Any:
    """The value in the text that follows the schema; raises SchemaMismatch.

    `cut`: the text is known to be truncated, as by max_tokens. `only`: two objects that fit as well
    and differ are no answer; else the first is.
    """
    search = _Search(text, CompiledSchema.of(schema), cut=cut)
    search.scan()
    if not search.found and not without_reasoning(text):
        search.scan(reasoning=True)
    return search.best(only=only)


class _Search:
    def __init__(self, text: str, schema: CompiledSchema, *, cut: bool) -> None:
        self.text = text
        self._is_cut = cut
        self._end = len(text.rstrip())
        self._first = len(text) - len(text.lstrip())
        self.schema = schema
        self._left = _READINGS * len(text) + _ALWAYS
        self._begin()

    def _begin(self) -> None:
        # The best: its penalty, what it fills (negative), whether it is unfenced; and the value.
        self.found: tuple[tuple[int, int, bool], Any] | None = None
        self._differs = False  # whether another object fits as well as the best
        self._missed = (
            -1,
            ["answer: no JSON found in the text"],
        )  # the largest, and what is wrong

    def best(self, *, only: bool) -> Any:
        if only and self._differs:
            raise SchemaMismatch(
                ["answer: two objects that differ fit the schema; write only one"]
            )
        if self.found:
            return self.found[1]
        raise SchemaMismatch(self._missed[1])

    # -- readings ---------------------------------------------------------------------------------

    def scan(self, *, reasoning: bool = False) -> None:
        """Everything that begins with a bracket; `reasoning`: also where the model only thinks."""
        at = inside = 0  # up to `inside`, a repaired reading has been through
        nested = barred = False
        while self._left > 0 and (found := _MARK.search(self.text, at)):
            begin, at = found.span()
            if not found["bracket"]:
                at = at if reasoning else self._after_mark(found)
                continue
            within = begin < inside
            if not self._may_begin(begin, barred=barred and within):
                continue
            tried = attempt_json(self.text, begin)
            self._left -= max(tried.cost, _LEAST)
            value = tried.value
            if value is None:
                at = max(at, tried.too_deep_until)
                continue
            if self._is_cut and not value.complete:
                self._miss([_ENDS_EARLY], value.end - begin)
                break  # nor does what lies inside it count
            fits = self._offer(value, begin, nested=nested and within)
            if not value.repairs:
                at = value.end
            elif value.end > inside:
                inside, nested = value.end, fits
                barred = fits or isinstance(value.value, dict)

    def _after_mark(self, mark: re.Match[str]) -> int:
        """Where the answer goes on behind a mark of reasoning."""
        if mark["opens"]:
            close = CLOSE.search(self.text, mark.end())
            return close.end() if close else len(self.text)
        self._begin()  # its beginning is missing: all that was found was only thought
        return mark.end()

    def _may_begin(self, at: int, *, barred: bool) -> bool:
        """Whether to read from the bracket at `at`; `barred`: not as a value of JSON around it."""
        if barred and self._continues(at):
            return False
        after = peek(self.text, at + 1)
        char = self.text[after : after + 1]
        if self.text[at] in "{｛":
            return (
                char in _IN_OBJECT
                or char.isdigit()
                or is_key(self.text, after, words=True)
            )
        if char.isalpha() and (at == self._first or self._fenced(at)):
            return True  # items without quotes; elsewhere these are brackets of prose
        return char in _IN_ARRAY or VALUE_START.match(self.text, after) is not None

    def _fenced(self, at: int) -> bool:
        """Whether a fence opens right before `at`, with or without a label."""
        before = self.text[max(0, at - _LOOK_BACK) : at].rstrip()
        end = len(before)
        while end and (before[end - 1].isalnum() or before[end - 1] in "_+-"):
            end -= 1
        return before.endswith(("``", "~~~"), 0, end)

    def _continues(self, at: int) -> bool:
        """Whether the bracket at `at` stands where a value of the JSON around it would."""
        return self.text[max(0, at - _LOOK_BACK) : at].rstrip().endswith((*":,[{(=",))

    def _cost(self, value: JsonValue, begin: int) -> int:
        """The penalty of a reading by itself."""
        penalty = min(value.repairs, _MOST_REPAIRS) + _INCOMPLETE * (not value.complete)
        if not value.repairs or self._fenced(begin):
            return penalty
        line = _LINE_BEFORE.search(self.text, max(0, begin - _LOOK_BACK), begin)
        return penalty + _ASTRAY * (line is None)

    def _offer(self, value: JsonValue, begin: int, *, nested: bool) -> bool:
        """Fit what was read at a place; whether it does."""
        size = value.end - begin
        penalty = self._cost(value, begin) + _NESTED * nested
        ended = value.end >= self._end
        if ended and not value.complete and (self._is_cut or value.cut_in_value):
            self._miss([_ENDS_EARLY], size)
            return False
        try:
            fitted, more = fit_schema(value.value, self.schema, tidy=True)
        except SchemaMismatch as mismatch:
            cut = [] if value.complete else [_ENDS_EARLY]
            if not self._is_heading(begin):
                self._miss([*cut, *mismatch.problems], size)
            return False
        rank = (penalty + more, -self._filled(fitted), not self._fenced(begin))
        if self.found is None or rank < self.found[0]:
            self.found, self._differs = (rank, fitted), False
        elif rank == self.found[0] and isinstance(fitted, dict):
            self._differs = self._differs or fitted != self.found[1]
        return True

    def _is_heading(self, at: int) -> bool:
        """Whether a bracket holds bare words: [CONTENT] is no list that somebody meant to write."""
        return (
            self.text[at] in "[［"
            and self.text[peek(self.text, at + 1) :][:1].isalpha()
        )

    def _miss(self, problems: list[str], size: int) -> None:
        if size > self._missed[0]:
            self._missed = (size, problems)

    def _filled(self, value: Any) -> int:
        if not isinstance(value, dict):
            return 0
        known = self.schema.fields
        return sum(name in known for name in value) if known else len(value)
