"""Measurements in the unit that a field means, by UCUM."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

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

# By UCUM's own definitions. ucumvert 0.2, the last for Python 3.10, reads mm[Hg] as metres times
# millimercury, and 1 as no unit at all.
_DEFINED: Mapping[str, tuple[float, str]] = {"mm[Hg]": (0.133322, "kPa"), "1": (100, "%")}

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
    _registry()
    try:
        source, target = _quantity(unit), _quantity(to)
        measured = type(source)(float(value) * source.magnitude, source.units)
        moles = _moles(measured) - _moles(target)
        if molar_mass is not None and moles:
            measured = measured * (molar_mass * _quantity("g/mol")) ** moles
        found = measured.to(target.units).magnitude / target.magnitude
    except Exception:  # noqa: BLE001  # two libraries raise of many kinds, and repeat the unit
        raise UnitError(f"its unit cannot be converted to {to}") from None
    return float(f"{found:.{_DIGITS}g}")


def _quantity(unit: str) -> Any:
    factor, name = _DEFINED.get(unit, (1, unit))
    found = _registry().from_ucum(name)
    return type(found)(found.magnitude * factor, found.units)


def _moles(quantity: Any) -> Any:
    return quantity.dimensionality.get("[substance]", 0)


@lru_cache
def _registry() -> Any:
    try:
        from ucumvert import PintUcumRegistry  # noqa: PLC0415  # an extra, and slow to import
    except ImportError:
        raise ImportError(
            "Converting units needs ucumvert: pip install 'langchain-svc[fhir]'"
        ) from None
    return PintUcumRegistry()
