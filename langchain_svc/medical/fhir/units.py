"""Measurements in the unit that a field means, by UCUM: converted rightly, or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fhir.resources.R4B.quantity import Quantity


UCUM = "http://unitsofmeasure.org"

# What people write for units that UCUM writes otherwise; none of these is another unit in UCUM.
_SPELLINGS: Mapping[str, str] = {
    "mmHg": "mm[Hg]", "mm Hg": "mm[Hg]", "mm[hg]": "mm[Hg]",
    "1/min": "/min", "{beats}/min": "/min", "{Beats}/min": "/min", "{breaths}/min": "/min",
    "{Breaths}/min": "/min", "{beats}/minute": "/min", "beats/min": "/min", "beats/minute": "/min",
    "breaths/min": "/min", "breaths/minute": "/min", "bpm": "/min", "per minute": "/min",
    "°C": "Cel", "degC": "Cel", "deg C": "Cel", "cel": "Cel", "Celsius": "Cel",
    "°F": "[degF]", "degF": "[degF]", "deg F": "[degF]", "[degf]": "[degF]",
    "Fahrenheit": "[degF]", "percent": "%", "INR": "{INR}", "ratio": "1",
    "pH": "[pH]", "{pH}": "[pH]", "[ph]": "[pH]",
    "lb": "[lb_av]", "lbs": "[lb_av]", "in": "[in_i]", "inches": "[in_i]",
}  # fmt: skip
# In UCUM C is coulomb and F is farad; as words beside a temperature they are not.
_WORDS: Mapping[str, str] = {"C": "Cel", "F": "[degF]"}
# Parts of units as laboratories of the United States and Europe print them. A letter before a
# volume is a multiple of cells: no laboratory gives kelvins, gauss or teslas a litre.
_VOLUME = r"/(?=[a-zµ]*(?:[lL]|m3|mm\^3)$)"
_REWRITTEN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"[µμ]", "u"),
        (r"(?-i:mc)(?=[gLl]\b|mol)", "u"),
        (r"cu ?mm\b", "mm3"),
        (r"^(?:x ?)?10 ?(?:e|\^|\*{1,2})?\(?([0-9]{1,2})\)?(?=/)", r"10*\1"),
        (rf"^(?:k|thou|thousand)(?:{{[^{{}}]*}})?{_VOLUME}", "10*3/"),
        (rf"^(?-i:M|[Mm]il|[Mm]ill|[Mm]illion){_VOLUME}", "10*6/"),
        (rf"^(?-i:G|Gpt|Giga){_VOLUME}", "10*9/"),
        (rf"^(?-i:T|Tpt|Tera){_VOLUME}", "10*12/"),
        (r"^([mukn]?)(?:iu|ui)(?=/)", r"\1[iU]"),
        (r"^(m?)eq(?=/)", r"\1eq"),
        (r"^gm(?=/)", "g"),
        (r"^(cells|copies)(?=/)", r"{\1}"),
        (
            r"/ ?[{(\[]? ?1[.,]73[ ._]?[{(\[]?(?:sq ?)?(?:m(?:2|\^2|²)|sqm)?[})\]]?$",
            "/{1.73_m2}",
        ),
        (
            r"/ ?[{(]?24[. ]?h(?:r|rs|our|ours)?[})]$|/ ?24 ?h(?:r|rs|our|ours)?$|/day$",
            "/d",
        ),
        (r"/(?:hr|hour)$", "/h"),
    )
)

_DIGITS = 6  # significant ones of what was converted


class UnitError(ValueError):
    """A unit is missing, unknown or of another kind; the text says which."""


@dataclass(frozen=True)
class Substance:
    """What the conversion of units must know of the substance that is measured.

    `molar_mass` is in grams a mole, and `charge` is that of the ion if it is always the same. An
    `international` one counts U and international units as one. A `bare` number has no unit, and
    in % it would be another quantity. One that is `in_moles` has another mass than what it counts.
    """

    molar_mass: float | None = None
    charge: int = 0
    international: bool = False
    hba1c: bool = False
    bare: bool = False
    in_moles: bool = False


_UNKNOWN = Substance()


def spelled(unit: str) -> str:
    """A unit in the spelling of UCUM, if it is one that people often write otherwise."""
    unit = _SPELLINGS.get(unit.strip(), unit.strip())
    for pattern, replacement in _REWRITTEN:
        unit = pattern.sub(replacement, unit)
    return _SPELLINGS.get(unit, unit)


def is_unit(text: str) -> bool:
    """Whether a text is a unit and nothing else: between braces anything may stand."""
    try:
        read_unit(spelled(text))
    except UnknownUnitError:
        return False
    return "{" not in text


def unit_of(quantity: Quantity, substance: Substance = _UNKNOWN) -> str:
    """The UCUM unit of a Quantity: its code, or else the text of its unit.

    A code of another system, such as SNOMED CT, is no UCUM code; then the text counts. A text that
    is read as another unit than the code leaves it open which of them is meant.
    """
    printed = _written(quantity.unit)
    if quantity.system == UCUM and quantity.code:
        code = spelled(quantity.code)
        if _contradicts(printed, code, substance):
            raise UnitError("its unit is printed as another one than its code is")
    elif quantity.code and not quantity.system:
        code = _written(quantity.code)
    else:
        code = printed
    if code:
        if substance.in_moles and not _counts_moles(code):
            raise UnitError("it counts molecules, and its unit weighs another thing")
        return code
    if substance.bare and not quantity.code:
        return "1"
    raise UnitError("it has no unit")


def _without_notes(unit: str) -> str:
    return re.sub(r"\{[^{}]*\}", "", unit).rstrip("/.")


def _counts_moles(unit: str) -> bool:
    try:
        return read_unit(unit).moles != 0
    except UnknownUnitError:
        return True  # it is refused where it cannot be converted


def _written(words: str | None) -> str:
    """A unit as people write it, in UCUM's spelling."""
    words = (words or "").strip()
    return _WORDS.get(words) or spelled(words)


def _contradicts(printed: str, code: str, substance: Substance) -> bool:
    """Whether a printed text is read as another unit than a code."""
    if not _without_notes(printed):
        return False
    try:
        read_unit(code)
        notes = read_unit(printed).notes
    except UnknownUnitError:
        return False  # it may be printed in any words
    if not notes:
        code = _without_notes(code)  # a print has no room for them
    try:
        return bool(converted(Decimal(1), printed, code, substance) != 1)
    except UnitError:
        return True


def converted(value: Decimal, unit: str, to: str, substance: Substance) -> int | float:
    """A number in another unit, with 6 significant digits; unchanged if the unit is the same."""
    if unit == to:
        exponent = value.as_tuple().exponent
        return int(value) if exponent == 0 else float(value)
    try:
        source = read_unit(unit)
        target = read_unit(to)
    except UnknownUnitError:
        raise UnitError("its unit cannot be converted") from None
    _check_kind(source, target, substance)
    if substance.hba1c and source.amounts != target.amounts:
        return _rounded(_other_scale(float(value), source, target))
    if substance.international:
        source = source.with_enzyme_units()
        target = target.with_enzyme_units()
    if substance.charge:
        source = source.by_charge(substance.charge)
        target = target.by_charge(substance.charge)
    elif source.equivalents != target.equivalents:
        raise UnitError(
            "its unit cannot be converted: the charge that equivalents count is not known"
        )
    if substance.molar_mass is not None:
        source = source.by_mass(source.moles - target.moles, substance.molar_mass)
    # % and mmol/mol have no dimension either, and are not multiples of each other.
    if source.powers != target.powers or source.amounts != target.amounts:
        raise UnitError("its unit cannot be converted")
    base = float(value) * source.factor + source.offset
    return _rounded((base - target.offset) / target.factor)


def _check_kind(source: Unit, target: Unit, substance: Substance) -> None:
    if substance.bare and source.factor != target.factor:
        raise UnitError("its unit cannot be converted: it is a number without a unit")
    if _differ(source.notes, target.notes):
        raise UnitError("its unit cannot be converted: their notes in braces differ")


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


# -- in words --------------------------------------------------------------------------------------

_WORDS_OF_UNITS: Mapping[str, str] = {
    "1": "", "[pH]": "", "Cel": "°C", "[degF]": "°F", "a": "years",
}  # fmt: skip
# What UCUM writes otherwise than people do, within a unit. Other annotations are not of the unit.
_PARTS_OF_UNITS: tuple[tuple[str, str], ...] = (
    (r"\{1\.73_m2\}", "1.73 m2"),
    (r"\{[^{}]*\}", ""),
    (r"\[iU\]", "IU"),
    (r"\[([A-Za-z0-9]+)(?:_[a-z]+)?\]", r"\1"),
    (r"\bu(?=[A-Za-z])", "µ"),
)
_POWER_IN_WORDS = re.compile(r"(?<=\b10)\*([0-9]+)|(?<=m)([23])\b")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def unit_in_words(unit: str) -> str:
    """A UCUM unit as people write it: mmHg, °C, µmol/L, 10³/µL; empty where there is none."""
    if unit in _WORDS_OF_UNITS:
        return _WORDS_OF_UNITS[unit]
    for pattern, words in _PARTS_OF_UNITS:
        unit = re.sub(pattern, words, unit)
    return _POWER_IN_WORDS.sub(
        lambda power: (power[1] or power[2]).translate(_SUPERSCRIPTS), unit
    )


# -- hemoglobin A1c --------------------------------------------------------------------------------

# The master equation between the networks of IFCC and NGSP: NGSP in % = 0.09148 * IFCC in mmol/mol
# + 2.152 (Hoelzel and others, Clinical Chemistry 50, 2004; used by IFCC, NGSP and the ADA).
_SLOPE = 0.09148
_INTERCEPT = 2.152
_PERCENT = 0.01
_PER_MILLE = 0.001


def _other_scale(value: float, source: Unit, target: Unit) -> float:
    """HbA1c in the other scale; % is of NGSP, mmol/mol of IFCC."""
    if any(source.powers) or any(target.powers):
        raise UnitError("its unit is none of hemoglobin A1c")
    if source.amounts:
        ngsp = _SLOPE * value * source.factor / _PER_MILLE + _INTERCEPT
        return ngsp * _PERCENT / target.factor
    ifcc = (value * source.factor / _PERCENT - _INTERCEPT) / _SLOPE
    return ifcc * _PER_MILLE / target.factor


# -- notes in braces -------------------------------------------------------------------------------

# Notes that only name what is counted, or what something is divided by. Any other changes what
# the number means: D-dimer in FEU is about twice that in DDU, a log is not a number of copies.
_NAMING = frozenset({
    "beat", "beats", "breath", "breaths", "cell", "cells", "copies", "copy", "count", "creat",
    "creatinine", "hb", "hgb", "inr", "ratio", "rbc", "score", "wbc", "#",
})  # fmt: skip


def _differ(first: frozenset[str], second: frozenset[str]) -> bool:
    if first and second:
        return first != second
    return bool((first | second) - _NAMING)


# -- ucum ------------------------------------------------------------------------------------------
# The UCUM units that measurements of patients need, each as a product of base units.
#
# No library does it safely: ucumvert 0.3 with pint 0.25 equates mg{FEU}/L with mg{DDU}/L, which
# differ by a factor of two, and takes two seconds to import. Parentheses and logarithmic units
# are not read; a unit that is not read is an error, not a guess. Equivalents are not moles, and
# notes in braces are kept: a conversion must look at both.
#
# Rests on the Unified Code for Units of Measure, sections 2 (grammar) and 4 (tables).

_DIMENSIONS = ("m", "s", "g", "K", "mol", "[iU]", "eq")
_SECOND = _DIMENSIONS.index("s")
_GRAM = _DIMENSIONS.index("g")
_MOLE = _DIMENSIONS.index("mol")
_INTERNATIONAL = _DIMENSIONS.index("[iU]")
_EQUIVALENT = _DIMENSIONS.index("eq")
_ENZYME = 1e-6 / 60  # a U is a micromole a minute
Powers = tuple[int, ...]


@dataclass(frozen=True)
class Unit:
    """A unit as a multiple of base units: `value * factor + offset` is in those.

    `amounts` is how many moles cancel in it, such as 1 in mmol/mol; `notes` are its notes in
    braces, in lower case without spaces and underscores.
    """

    factor: float
    powers: Powers
    offset: float = 0.0
    amounts: int = 0
    notes: frozenset[str] = frozenset()

    def by_mass(self, moles: int, molar_mass: float) -> Unit:
        """The same with so many moles written as grams."""
        return self.multiplied({_MOLE: -moles, _GRAM: moles}, molar_mass**moles)

    def by_charge(self, charge: int) -> Unit:
        """The same with its equivalents written as moles."""
        count = self.equivalents
        return self.multiplied(
            {_EQUIVALENT: -count, _MOLE: count}, float(charge) ** -count
        )

    def with_enzyme_units(self) -> Unit:
        """The same with its international units written as U."""
        count = self.powers[_INTERNATIONAL]
        return self.multiplied(
            {_INTERNATIONAL: -count, _MOLE: count, _SECOND: -count}, _ENZYME**count
        )

    def multiplied(self, exponents: Mapping[int, int], factor: float) -> Unit:
        """The same times base units, by their places, and times a factor."""
        powers = list(self.powers)
        for place, exponent in exponents.items():
            powers[place] += exponent
        return replace(self, factor=self.factor * factor, powers=tuple(powers))

    @property
    def moles(self) -> int:
        return self.powers[_MOLE]

    @property
    def equivalents(self) -> int:
        return self.powers[_EQUIVALENT]


def _unit(factor: float, offset: float = 0.0, **powers: int) -> Unit:
    names = (name.strip("[]") for name in _DIMENSIONS)
    return Unit(factor, tuple(powers.get(name, 0) for name in names), offset)


# Those that take a prefix, and those that do not.
_METRIC: Mapping[str, Unit] = {
    "m": _unit(1, m=1),
    "s": _unit(1, s=1),
    "g": _unit(1, g=1),
    "K": _unit(1, K=1),
    "mol": _unit(1, mol=1),
    "eq": _unit(1, eq=1),
    "[iU]": _unit(1, iU=1),
    "[IU]": _unit(1, iU=1),
    "L": _unit(1e-3, m=3),
    "l": _unit(1e-3, m=3),
    "Hz": _unit(1, s=-1),
    "Pa": _unit(1e3, g=1, m=-1, s=-2),
    "bar": _unit(1e8, g=1, m=-1, s=-2),
    "m[Hg]": _unit(133.322e6, g=1, m=-1, s=-2),
    "m[H2O]": _unit(9.80665e6, g=1, m=-1, s=-2),
    "U": _unit(_ENZYME, mol=1, s=-1),
    "kat": _unit(1, mol=1, s=-1),
}
_OTHERS: Mapping[str, Unit] = {
    "%": _unit(0.01),
    "[pH]": _unit(1),
    "10*": _unit(10),
    "10^": _unit(10),
    "min": _unit(60, s=1),
    "h": _unit(3600, s=1),
    "d": _unit(86_400, s=1),
    "[lb_av]": _unit(453.59237, g=1),
    "[oz_av]": _unit(28.349523125, g=1),
    "[in_i]": _unit(0.0254, m=1),
    "[ft_i]": _unit(0.3048, m=1),
    "[psi]": _unit(6_894_757.293, g=1, m=-1, s=-2),
}
_TEMPERATURES: Mapping[str, Unit] = {
    "Cel": _unit(1, 273.15, K=1),
    "[degF]": _unit(5 / 9, 459.67 * 5 / 9, K=1),
}
_PREFIXES: Mapping[str, float] = {
    "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "h": 1e2, "da": 1e1, "d": 1e-1, "c": 1e-2, "m": 1e-3,
    "u": 1e-6, "n": 1e-9, "p": 1e-12, "f": 1e-15,
}  # fmt: skip

_SYMBOL = r"10[*^]|%|[A-Za-z]+(?:\[[A-Za-z0-9_]+\])?|\[[A-Za-z0-9_]+\]"
_POWER = r"[+-]?(?:1[0-9]|[1-9])"
_NUMBER = r"[1-9][0-9]{0,8}"
_PART = re.compile(
    r"(?P<divided>[./])?(?:"
    rf"(?:(?P<symbol>{_SYMBOL})(?P<power>{_POWER})?|(?P<number>{_NUMBER}))"
    r"(?:\{(?P<about>[^{}]*)\})?"  # a note about it
    r"|\{(?P<note>[^{}]*)\})"  # a note alone
)
_LONGEST = 60


class UnknownUnitError(ValueError):
    """A unit is not read here."""


@lru_cache(maxsize=256)
def read_unit(code: str) -> Unit:
    """The unit of a UCUM code; an UnknownUnitError if there is none, or it is not read here."""
    if code in _TEMPERATURES:
        return _TEMPERATURES[code]
    if not code or len(code) > _LONGEST:
        raise UnknownUnitError
    whole = _unit(1)
    notes: set[str] = set()
    multiplied_moles = 0
    divided_moles = 0
    position = 0
    while position < len(code):
        part = _PART.match(code, position)
        # Every part but the first stands behind a point or a slash.
        if part is None or (position and not part["divided"]):
            raise UnknownUnitError
        unit, power = _component(part)
        if part["divided"] == "/":
            power = -power
        exponents = {place: power * own for place, own in enumerate(unit.powers)}
        whole = whole.multiplied(exponents, unit.factor**power)
        multiplied_moles += max(exponents[_MOLE], 0)
        divided_moles += max(-exponents[_MOLE], 0)
        for note in part.group("about", "note"):
            if note:
                notes.add(re.sub(r"[\s_]", "", note).lower())
        position = part.end()
    amounts = min(multiplied_moles, divided_moles)
    return replace(whole, amounts=amounts, notes=frozenset(notes))


def _component(part: re.Match[str]) -> tuple[Unit, int]:
    if symbol := part["symbol"]:
        return _atom(symbol), int(part["power"] or 1)
    return _unit(float(part["number"] or 1)), 1  # a note alone counts as one


def _atom(symbol: str) -> Unit:
    unit = _OTHERS.get(symbol) or _METRIC.get(symbol)
    if unit is not None:
        return unit
    for prefix, scale in _PREFIXES.items():
        metric = _METRIC.get(symbol[len(prefix) :])
        if metric is not None and symbol.startswith(prefix):
            return Unit(metric.factor * scale, metric.powers)
    raise UnknownUnitError
