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

from __future__ import annotations

from typing import Any

from . import places
from .lenient import JsonValue, attempt_json, read_json
from .no_answer import NoAnswer
from .reasoning import is_all_reasoning, without_reasoning
from .schema import CompiledSchema, Schema, SchemaMismatch, fit_schema

_READINGS = 3  # the text is looked at this often at most
_ALWAYS = 10_000
_LEAST = 20  # what a reading counts at least
_MOST_REPAIRS = 30

# Penalties beside those of fitting and the number of repairs.
_INCOMPLETE = 1
_NESTED = 4
_ASTRAY = 5

_ENDS_EARLY = "answer: the JSON ends before it is complete"


def read_answer(
    text: str, schema: Schema | CompiledSchema, *, cut: bool = False, only: bool = False
) -> Any:
    """The value in the text that follows the schema; raises NoAnswer.

    Args:
        text: The model's answer.
        schema: A JSON Schema.
        cut: Whether the text is known to be cut off, as by max_tokens.
        only: Whether two objects that fit as well and differ are no answer; else the first is.
    """
    search = _Search(text, CompiledSchema.of(schema), cut=cut)
    search.scan(places.Spots(text))
    if not search.found and is_all_reasoning(text):
        search.scan(places.Spots(text, reasoning=True))
    if not search.found and not cut:
        search.plain(without_reasoning(text))
    return search.best(only=only)


class _Search:
    def __init__(self, text: str, schema: CompiledSchema, *, cut: bool) -> None:
        self.text = text
        self._is_cut = cut
        self._end = len(text.rstrip())
        self.schema = schema
        self._turn = 0
        self._left = _READINGS * len(text) + _ALWAYS
        self._begin()

    def _begin(self) -> None:
        # The best: its penalty, what it fills (negative), whether it is unfenced; and the value.
        self.found: tuple[tuple[int, int, bool], Any] | None = None
        self._differs = False  # whether another object fits as well as the best
        self._missed = (-1, ["answer: no JSON found in the text"])  # the largest, and what is wrong

    def best(self, *, only: bool) -> Any:
        if only and self._differs:
            raise NoAnswer(["answer: two objects that differ fit the schema; write only one"])
        if self.found:
            return self.found[1]
        raise NoAnswer(self._missed[1])

    # -- readings ---------------------------------------------------------------------------------

    def scan(self, spots: places.Spots) -> None:
        """Everything that begins with a bracket."""
        for spot in spots:
            if self._left <= 0:
                break
            self._forget(spots.turn)
            tried = attempt_json(self.text, spot.at)
            self._left -= max(tried.cost, _LEAST)
            value = tried.value
            if value is None:
                spots.was_tried(tried)
                continue
            if self._is_cut and not value.complete:
                self._miss([_ENDS_EARLY], value.end - spot.at)
                break  # nor does what lies inside it count
            penalty = _NESTED * spot.nested + _ASTRAY * (spot.astray and value.repairs > 0)
            ended = value.end >= self._end
            fits = self._offer(
                value, value.end - spot.at, penalty=penalty, fenced=spot.fenced, ended=ended
            )
            spots.was_read(value, fits=fits)
        self._forget(spots.turn)

    def _forget(self, turn: int) -> None:
        """Drop what was found before the end of a reasoning whose beginning is missing."""
        if turn != self._turn:
            self._begin()
            self._turn = turn

    def plain(self, text: str) -> None:
        """A text without brackets: a scalar, or any text where one is wanted."""
        text = places.unfenced(text)
        if text.startswith(("{", "[")):
            return
        value = read_json(text)
        if value is None or text[value.end :].strip():
            if not text or not self.schema.wants("string"):
                return
            value = JsonValue(text, len(text), complete=True, cut_in_value=False, repairs=1)
        self._offer(value, len(text))

    def _offer(
        self,
        value: JsonValue,
        size: int,
        *,
        penalty: int = 0,
        fenced: bool = False,
        ended: bool = True,
    ) -> bool:
        """Fit one reading; whether it does. `ended` says that the text ends with it."""
        penalty += min(value.repairs, _MOST_REPAIRS)
        penalty += _INCOMPLETE * (not value.complete)
        goes_on = not isinstance(value.value, (dict, list, str)) or not value.complete
        if ended and goes_on and (self._is_cut or value.cut_in_value):
            self._miss([_ENDS_EARLY], size)
            return False
        try:
            fitted, more = fit_schema(value.value, self.schema, tidy=True)
        except SchemaMismatch as mismatch:
            cut = [] if value.complete else [_ENDS_EARLY]
            self._miss([*cut, *mismatch.problems], size)
            return False
        rank = (penalty + more, -self._filled(fitted), not fenced)
        if self.found is None or rank < self.found[0]:
            self.found, self._differs = (rank, fitted), False
        elif rank == self.found[0] and isinstance(fitted, dict):
            self._differs = self._differs or fitted != self.found[1]
        return True

    def _miss(self, problems: list[str], size: int) -> None:
        if size > self._missed[0]:
            self._missed = (size, problems)

    def _filled(self, value: Any) -> int:
        if not isinstance(value, dict):
            return 0
        known = self.schema.fields
        return sum(name in known for name in value) if known else len(value)
