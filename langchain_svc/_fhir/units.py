"""Measurements in the unit that a field means, by UCUM."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from .ucum import UnknownUnitError, read_unit

UCUM = "http://unitsofmeasure.org"

# What people write for units that UCUM writes otherwise; none of these is another unit in UCUM.
_SPELLINGS: Mapping[str, str] = {
    "mmHg": "mm[Hg]", "mm Hg": "mm[Hg]", "mm[hg]": "mm[Hg]",
    "1/min": "/min", "{beats}/min": "/min", "{Beats}/min": "/min", "{breaths}/min": "/min",
    "{Breaths}/min": "/min", "{beats}/minute": "/min", "beats/min": "/min", "beats/minute": "/min",
    "breaths/min": "/min", "breaths/minute": "/min", "bpm": "/min", "per minute": "/min",
    "°C": "Cel", "degC": "Cel", "deg C": "Cel", "cel": "Cel", "Celsius": "Cel",
    "°F": "[degF]", "degF": "[degF]", "deg F": "[degF]", "[degf]": "[degF]",
    "Fahrenheit": "[degF]",
}  # fmt: skip
# In UCUM C is coulomb and F is farad; as words beside a temperature they are not.
_WORDS: Mapping[str, str] = {"C": "Cel", "F": "[degF]"}

_DIGITS = 6  # significant ones of what was converted


class UnitError(ValueError):
    """A unit that is missing, unknown or of another kind; its text says which."""


def unit_of(quantity: Any) -> str:
    """The UCUM unit of a Quantity: its code, or else the words of its unit.

    Raises:
        UnitError: It has none.
    """
    if quantity.system == UCUM and quantity.code:
        code = str(quantity.code)
        return _SPELLINGS.get(code, code)
    words = str(quantity.code or quantity.unit or "").strip().replace("µ", "u").replace("μ", "u")
    if not words:
        raise UnitError("it has no unit")
    return _WORDS.get(words) or _SPELLINGS.get(words, words)


def converted(value: Decimal, unit: str, to: str, molar_mass: float | None) -> int | float:
    """A number in another unit, with 6 significant digits; as it was where the unit is the same.

    Args:
        value: The number.
        unit: Its unit in UCUM.
        to: The unit wanted.
        molar_mass: Grams a mole, for amounts of substance where a mass is wanted or the reverse.

    Raises:
        UnitError: The units are not of one kind, or one is unknown.
    """
    if unit == to:
        whole = value == value.to_integral_value() and value.as_tuple().exponent == 0
        return int(value) if whole else float(value)
    try:
        source, target = read_unit(unit), read_unit(to)
    except UnknownUnitError:
        raise UnitError(f"its unit cannot be converted to {to}") from None
    if molar_mass is not None:
        source = source.by_mass(source.moles - target.moles, molar_mass)
    if source.powers != target.powers:
        raise UnitError(f"its unit cannot be converted to {to}")
    found = (float(value) * source.factor + source.offset - target.offset) / target.factor
    return float(f"{found:.{_DIGITS}g}")
