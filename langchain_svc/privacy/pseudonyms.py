"""`Pseudonyms`: hides what identifies people in a text, and restores it in what comes back."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from datetime import date, datetime
from typing import Literal, NoReturn, Self, TypeVar

from .._base.safe_errors import type_text
from ..errors import SvcRequestError
from .engine import Engine, ExtraFailedError, ExtraFinder
from .identities import Identities, UnreadableRecordError, full_date, read_identities
from .vocabulary import LANGUAGES

Item = TypeVar("Item")

_LEAST_WEEKS = 5
_MOST_WEEKS = 520
_NO_PICKLE = (
    "Pseudonyms stay in memory and cannot be pickled: make them again from the record, and pass "
    "them to each run"
)
_CONTEXT = 4  # characters before a piece of a stream that the patterns look at


class Pseudonyms:
    """Names, numbers, addresses and dates that no text may show, and marks in their place.

    `hide` puts a mark such as `[PERSON_1]` in the place of each identifier, also where people write
    it in another way: MÜLLER, Mueller, "Meyer, Anna", A. Meyer, Müllers, 0049 30 123-4567 for
    +49 (0)30 1234567, 4. März 1950 for 1950-03-04. `restore` puts back what was hidden, each as it
    was written. The guide is docs/pseudonyms.md.

    The identifiers stay in this object, in memory: it has no repr, cannot be pickled, and a copy is
    the same object. Threads may share it. Marks are stable for as long as it lives, so use one
    object for a conversation.

    Args:
        names: Persons. A text is one person ("Anna Meyer" or "Meyer, Anna"); a list of texts is one
            person with several names. Titles are not hidden.
        identifiers: Numbers of records, insurances and the like. Separators in them do not matter
            if they have four signs or more, one of them a digit; others are hidden as they are.
        telecoms: Telephone numbers, hidden with and without country code and extension, and e-mail
            addresses.
        addresses: Postal addresses, such as "Hauptstraße 12, 10115 Berlin". They are hidden whole,
            and the parts between commas and lines each for themselves.
        dates: Full dates, as `date` or as ISO texts.
        texts: Anything else, hidden as a whole and in any case.
        shift_dates: Whether, instead of marks for `dates`, every full date of a text is moved by
            the same number of days, which is drawn at random for this object. Gaps in days and days
            of the week stay as they are. (`from_fhir` calls this `dates="shift"`; here `dates` are
            the dates themselves.)
        languages: The languages whose endings of names count, as in ["de", "tr"]: of de, en, es,
            fr, nl, pl and tr. All of them unless given.
        extra: Finds more: called with each text, it returns tuples (start, end, kind) of what is to
            be hidden. If it raises or returns anything else, `hide` raises.

    Raises:
        SvcRequestError: An argument has another type, a language is unknown, or a date is none.
    """

    # A function that returns the engine, since tracers look into `__dict__` and `__slots__`, and
    # of a function they show its name.
    __slots__ = ("_engine",)

    def __init__(
        self,
        *,
        names: Iterable[str | list[str]] = (),
        identifiers: Iterable[str] = (),
        telecoms: Iterable[str] = (),
        addresses: Iterable[str] = (),
        dates: Iterable[date | str] = (),
        texts: Iterable[str] = (),
        shift_dates: bool = False,
        languages: Iterable[str] | None = None,
        extra: ExtraFinder | None = None,
    ) -> None:
        identities = Identities()
        try:
            identities.persons = _name_lists(names)
            identities.identifiers = _text_list("identifiers", identifiers)
            identities.telecoms = _text_list("telecoms", telecoms)
            identities.addresses = _text_list("addresses", addresses)
            identities.texts = _text_list("texts", texts)
            identities.dates = _date_list(dates)
            self._engine = _opener(
                Engine(
                    identities,
                    _languages(languages),
                    _extras(extra),
                    _shift_days(is_shifted=shift_dates),
                )
            )
        except _InvalidArgument as error:
            problem = str(error)
        else:
            return
        # A traceback would show the arguments.
        del (
            names,
            identifiers,
            telecoms,
            addresses,
            dates,
            texts,
            extra,
            identities,
            self,
        )
        raise SvcRequestError(problem)

    @classmethod
    def from_fhir(
        cls,
        record: object,
        *,
        dates: Literal["mark", "shift"] = "mark",
        languages: Iterable[str] | None = None,
        extra: ExtraFinder | None = None,
    ) -> Self:
        """The identifiers of everyone whom a FHIR record names.

        These are patients, their contacts and relatives, practitioners, organizations and
        locations, and whoever else a reference to one of these displays. Names, identifiers,
        telecoms, addresses, and full dates of birth and death are read wherever they stand. Person
        1 is the patient. Nothing is checked: what cannot be read as one of these is passed over.

        Args:
            record: A Bundle, a resource or a list of them: dicts, JSON text or bytes, lines of
                JSON, a `pathlib.Path`, or objects with `model_dump()`.
            dates: "mark" hides the record's dates of birth and death; "shift" moves every full date
                of a text by the same number of days.
            languages: As for the constructor.
            extra: As for the constructor.

        Raises:
            SvcRequestError: The record holds no FHIR resource, or an argument is invalid.
        """
        try:
            is_shifted = _is_shift(dates)
            identities = read_identities(record)
            engine = Engine(
                identities,
                _languages(languages),
                _extras(extra),
                _shift_days(is_shifted=is_shifted),
            )
        except UnreadableRecordError as error:
            problem = f"The record cannot be read: {error}"
        except _InvalidArgument as error:
            problem = str(error)
        else:
            return cls._with_engine(engine)
        del record, extra
        raise SvcRequestError(problem)

    @classmethod
    def _with_engine(cls, engine: Engine) -> Self:
        pseudonyms = cls.__new__(cls)
        pseudonyms._engine = _opener(engine)  # noqa: SLF001  # our own class
        return pseudonyms

    def hide(self, text: str) -> str:
        """A text with marks in the place of identifiers.

        Hide each text once: what looks like a mark in it becomes a mark, too, so that restoring
        gives the text as it was. `restore(hide(text)) == text` always.

        Raises:
            SvcRequestError: `extra` failed, or `text` is no text. Nothing was hidden: send nothing.
        """
        _check_text("hide", text)
        try:
            return self._engine().hide(text)
        except ExtraFailedError as error:
            problem = str(error)
        del text
        raise SvcRequestError(problem)

    def restore(self, text: str) -> str:
        """A text with what was hidden in the place of its marks.

        Marks that were not given out stay as they are. A mark may be written a little otherwise:
        `[Person 1]`, `PERSON_1`, `**[PERSON_1]**`.
        """
        _check_text("restore", text)
        return self._engine().restore(text)

    def restorer(self) -> PseudonymRestorer:
        """Restores a text that comes in pieces; use a new one for each answer."""
        return PseudonymRestorer(self._engine())

    def __add__(self, other: Pseudonyms) -> Self:
        """Both sets of identifiers in a new object, with new marks.

        Dates are shifted if either shifts them, by the days of the first that does.
        """
        if not isinstance(other, Pseudonyms):
            return NotImplemented
        first = self._engine()
        second = other._engine()
        languages = dict.fromkeys([*first.languages, *second.languages])
        engine = Engine(
            first.identities.joined(second.identities),
            [*languages],
            first.extras + second.extras,
            first.shift_days or second.shift_days,
        )
        return self._with_engine(engine)

    def __repr__(self) -> str:
        return "<Pseudonyms>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(_NO_PICKLE)


class PseudonymRestorer:
    """Restores one text that comes in pieces, wherever they are cut.

    It holds back no more than what may still become a mark, or, if dates are shifted, a date.
    All that it returns, joined, is what `Pseudonyms.restore` makes of the whole text. What a text
    that was cut off ends in may be half of a mark or of a date, and stays as it is.
    """

    __slots__ = ("_context", "_engine", "_rest")

    def __init__(self, engine: Engine) -> None:
        self._engine = _opener(engine)
        # Both are of the text with marks, so they show nothing.
        self._context = ""
        self._rest = ""

    def parse_chunk(self, text: str) -> str:
        """The next piece of the text, restored as far as it is certain."""
        text = self._context + self._rest + text
        start = len(self._context)
        restored, end = self._engine().restore_begin(text, start)
        self._context = text[max(0, end - _CONTEXT) : end]
        self._rest = text[end:]
        return restored

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(_NO_PICKLE)

    def close(self, *, cut: bool = False) -> str:
        """What was held back, restored; `cut`: the text was cut off there."""
        text = self._context + self._rest
        start = len(self._context)
        self._context = ""
        self._rest = ""
        return self._engine().restore_end(text, start, cut=cut)


def _opener(engine: Engine) -> Callable[[], Engine]:
    return lambda: engine


# -- arguments -------------------------------------------------------------------------------------


class _InvalidArgument(Exception):  # noqa: N818  # it becomes a SvcRequestError
    """Says what is wrong with an argument, without what it holds."""


def _text_list(name: str, values: Iterable[object]) -> list[str]:
    if isinstance(values, str):
        return [values]
    texts: list[str] = []
    for index, text in enumerate(_listed(name, values)):
        if not isinstance(text, str):
            kind = type_text(text)
            raise _InvalidArgument(f"{name}[{index}] must be a text, not {kind}")
        if not any(map(str.isalnum, text)):
            raise _InvalidArgument(
                f"{name}[{index}] has no letter and no digit; leave it out"
            )
        texts.append(text)
    return texts


def _name_lists(names: Iterable[object]) -> list[list[str]]:
    if isinstance(names, str):
        names = [names]
    persons: list[list[str]] = []
    for index, person in enumerate(_listed("names", names)):
        if not isinstance(person, (str, list, tuple)):
            kind = type_text(person)
            raise _InvalidArgument(
                f"names[{index}] must be a text or a list of texts, not {kind}"
            )
        persons.append(_text_list(f"names[{index}]", person))
    return persons


def _date_list(dates: Iterable[date | str]) -> list[date]:
    if isinstance(dates, (str, date)):
        dates = [dates]
    days: list[date] = []
    for index, value in enumerate(_listed("dates", dates)):
        if isinstance(value, datetime):
            days.append(value.date())
        elif isinstance(value, date):
            days.append(value)
        else:
            day = full_date(value) if isinstance(value, str) else None
            if day is None:
                raise _InvalidArgument(
                    f"dates[{index}] must be a date, or a full date as text, such as '1950-03-04'"
                )
            days.append(day)
    return days


def _listed(name: str, values: Iterable[Item]) -> list[Item]:
    try:
        return [*values]
    except TypeError:
        kind = type_text(values)
        raise _InvalidArgument(f"{name} must be a list, not {kind}") from None


def _check_text(method: str, text: object) -> None:
    if not isinstance(text, str):
        kind = type_text(text)
        raise SvcRequestError(f"{method}() takes a text, not {kind}")


def _languages(languages: Iterable[str] | None) -> list[str]:
    if languages is None:
        return [*LANGUAGES]
    codes = _text_list("languages", languages)
    for code in codes:
        if code not in LANGUAGES:
            allowed = ", ".join(LANGUAGES)
            raise _InvalidArgument(f"languages has {code!r:.20}; it may have {allowed}")
    return codes


def _extras(extra: ExtraFinder | None) -> tuple[ExtraFinder, ...]:
    if extra is None:
        return ()
    if not callable(extra):
        raise _InvalidArgument(
            "extra must be a function from a text to tuples (start, end, kind)"
        )
    return (extra,)


def _is_shift(dates: str) -> bool:
    if dates not in ("mark", "shift"):
        raise _InvalidArgument(f'dates is {dates!r:.20}; it may be "mark" or "shift"')
    return dates == "shift"


def _shift_days(*, is_shifted: bool) -> int:
    """Whole weeks, so that days of the week beside dates stay true."""
    if not is_shifted:
        return 0
    weeks = _LEAST_WEEKS + secrets.randbelow(_MOST_WEEKS - _LEAST_WEEKS + 1)
    return 7 * weeks * secrets.choice((-1, 1))
