"""The UCUM units that measurements of patients need, each as a product of base units.

No library does it safely: ucumvert 0.3 with pint 0.25 equates mg{FEU}/L with mg{DDU}/L, which
differ by a factor of two, and takes two seconds to import.
Parentheses and logarithmic units are not read; a unit that is not read is an error, not a guess.
Equivalents are not moles, and notes in braces are kept: a conversion must look at both.

Rests on the Unified Code for Units of Measure, sections 2 (grammar) and 4 (tables).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

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
