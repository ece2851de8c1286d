"""Where readings go: the fields of a record, their LOINC codes, units and substances.

The units of vital signs are those of `VitalSigns`. The documents name no unit for laboratory
results; those here are the usual ones of the United States, where the names `troponin`, `bnp` and
`creatinine` come with ng/mL, pg/mL and mg/dL.

Sources: LOINC for codes; for molar masses the formula by IUPAC's atomic weights, unless a comment
says another; for charges the ion in blood.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, TypeAlias

from ..errors import SvcRequestError
from .ucum import UnknownUnitError, read_unit
from .units import Substance, UnitError, converted, spelled

_ANY = Substance()
_IU = Substance(international=True)  # enzymes and hormones, whose U and IU are one unit


@dataclass(frozen=True)
class Field:
    """Where a reading goes: its group, its name, its UCUM unit, and what is measured.

    `of_body` tells measurements of the body, which last as long as laboratory results do.
    """

    group: str
    name: str
    unit: str
    substance: Substance = _ANY
    of_body: bool = False

    @property
    def window(self) -> str:
        """The kind of reading that it must be of one time with."""
        return "body" if self.of_body else self.group

    @property
    def path(self) -> str:
        """Its name within a patient, such as `vital_signs.temperature`."""
        return f"{self.group}.{self.name}"


_VITAL = "vital_signs"
_LAB = "lab_results"
_Listed: TypeAlias = "tuple[tuple[Field, str], ...]"
_DEFAULT: _Listed = (
    (Field(_VITAL, "systolic", "mm[Hg]"), "8480-6 8459-0 8460-8 8461-6 76534-7"),
    (Field(_VITAL, "diastolic", "mm[Hg]"), "8462-4 8453-3 8454-1 8455-8 76535-4"),
    (Field(_VITAL, "heart_rate", "/min"), "8867-4 8889-8 8893-0"),
    (
        Field(_VITAL, "temperature", "Cel"),
        "8310-5 8331-1 8332-9 8333-7 8328-7 8329-5 75539-7",
    ),
    (Field(_VITAL, "respiratory_rate", "/min"), "9279-1"),
    (Field(_VITAL, "oxygenSaturation", "%"), "2708-6 59408-5"),
    (Field(_VITAL, "height", "cm", of_body=True), "8302-2 3137-7"),
    (Field(_VITAL, "weight", "kg", of_body=True), "29463-7 3141-9"),
    (Field(_VITAL, "bmi", "kg/m2", of_body=True), "39156-5"),
    # Assays with limits of their own: none may pass for another, or take its place.
    (Field(_LAB, "troponin", "ng/mL"), "10839-9 42757-5 49563-0"),  # I, the usual one
    (Field(_LAB, "troponinT", "ng/mL"), "6598-7 48425-3"),
    (Field(_LAB, "hsTroponinI", "ng/L"), "89579-7"),
    (Field(_LAB, "hsTroponinT", "ng/L"), "67151-1"),
    # Peptides of 32 and 76 amino acids. NT-proBNP is several times as high in the same blood.
    (Field(_LAB, "bnp", "pg/mL", Substance(3464.0)), "30934-4 42637-9"),
    (Field(_LAB, "ntProBnp", "pg/mL", Substance(8457.0)), "33762-6 33763-4 71425-3 83107-3"),
    (
        Field(_LAB, "creatinine", "mg/dL", Substance(113.12)),  # C4H7N3O
        "2160-0 38483-4 14682-9 77140-2 59826-8",
    ),
)
_CHOLESTEROL = Substance(386.66)  # C27H46O
_GLUCOSE = Substance(180.156)  # C6H12O6
_COMMON: _Listed = (
    # blood count
    (Field(_LAB, "leukocytes", "10*3/uL"), "6690-2 26464-8 804-5"),
    (Field(_LAB, "erythrocytes", "10*6/uL"), "789-8 26453-1"),
    # Amounts of hemoglobin count its subunits (a quarter of 64,458 g/mol; ICSH).
    (Field(_LAB, "hemoglobin", "g/dL", Substance(16114.5)), "718-7 59260-0 20509-6"),
    (Field(_LAB, "hematocrit", "%"), "4544-3 20570-8"),
    (Field(_LAB, "platelets", "10*3/uL"), "777-3 26515-7"),
    (Field(_LAB, "mcv", "fL"), "787-2 30428-7"),
    (Field(_LAB, "mch", "pg"), "785-6 28539-5"),
    (Field(_LAB, "mchc", "g/dL"), "786-4 28540-3"),
    # lipids
    (Field(_LAB, "cholesterol", "mg/dL", _CHOLESTEROL), "2093-3 14647-2"),
    (Field(_LAB, "hdlCholesterol", "mg/dL", _CHOLESTEROL), "2085-9 14646-4"),
    (
        Field(_LAB, "ldlCholesterol", "mg/dL", _CHOLESTEROL),
        "13457-7 18262-6 2089-1 22748-8 39469-2",
    ),
    # Mixed fats, counted as triolein, C57H104O6.
    (Field(_LAB, "triglycerides", "mg/dL", Substance(885.45)), "2571-8 14927-8"),
    # glucose
    (Field(_LAB, "glucose", "mg/dL", _GLUCOSE), "2345-7 2339-0 14749-6 15074-8"),
    (Field(_LAB, "fastingGlucose", "mg/dL", _GLUCOSE), "1558-6 14771-0"),
    (Field(_LAB, "hba1c", "%", Substance(hba1c=True)), "4548-4 17856-6 59261-8"),
    # electrolytes
    (Field(_LAB, "sodium", "mmol/L", Substance(22.990, charge=1)), "2951-2 2947-0"),
    (Field(_LAB, "potassium", "mmol/L", Substance(39.098, charge=1)), "2823-3 6298-4"),
    (Field(_LAB, "chloride", "mmol/L", Substance(35.45, charge=1)), "2075-0 2069-3"),
    (Field(_LAB, "bicarbonate", "mmol/L", Substance(61.017, charge=1)), "1963-8 1959-6 14627-4"),
    # Mostly bicarbonate, and given in its equivalents.
    (Field(_LAB, "totalCo2", "mmol/L", Substance(charge=1)), "2028-9"),
    (Field(_LAB, "calcium", "mg/dL", Substance(40.078, charge=2)), "17861-6 2000-8"),
    (Field(_LAB, "magnesium", "mg/dL", Substance(24.305, charge=2)), "19123-9 2601-3"),
    # Weighed as phosphorus. It has no charge here: that depends on the pH.
    (Field(_LAB, "phosphate", "mg/dL", Substance(30.974)), "2777-1 14879-1"),
    # kidney: weighed as the two nitrogens of urea
    (Field(_LAB, "ureaNitrogen", "mg/dL", Substance(28.014)), "3094-0 6299-2 22664-7"),
    (Field(_LAB, "egfr", "mL/min/{1.73_m2}"), "98979-8 62238-1"),
    # liver
    (Field(_LAB, "alt", "U/L", _IU), "1742-6 1743-4 1744-2"),
    (Field(_LAB, "ast", "U/L", _IU), "1920-8 30239-8 88112-8"),
    (Field(_LAB, "alkalinePhosphatase", "U/L", _IU), "6768-6"),
    (Field(_LAB, "ggt", "U/L", _IU), "2324-2"),
    (Field(_LAB, "bilirubin", "mg/dL", Substance(584.67)), "1975-2 14631-6"),  # C33H36N4O6
    (Field(_LAB, "albumin", "g/dL"), "1751-7 61151-7 61152-5"),
    (Field(_LAB, "totalProtein", "g/dL"), "2885-2"),
    # thyroid
    (Field(_LAB, "tsh", "m[IU]/L", _IU), "3016-3 11579-0 11580-8"),
    (Field(_LAB, "freeT4", "ng/dL", Substance(776.87)), "3024-7 14920-3"),  # C15H11I4NO4
    (Field(_LAB, "freeT3", "pg/mL", Substance(650.97)), "3051-0 14928-6"),  # C15H12I3NO4
    # inflammation and clotting
    (Field(_LAB, "crp", "mg/L"), "1988-5"),
    (Field(_LAB, "inr", "1"), "6301-6 34714-6 38875-1"),
)
_CODE = re.compile(r"[0-9]{1,7}-[0-9]")

Codes: TypeAlias = Mapping[str, Field]


def _by_code(listed: _Listed) -> dict[str, Field]:
    return {code: one for one, fields_by_code in listed for code in fields_by_code.split()}


def order() -> Iterator[str]:
    """The paths of the known fields, in the order in which they are sent."""
    return (one.path for one, _ in (*_DEFAULT, *_COMMON))


def fields_by_code(
    lab_codes: Mapping[str, str] | Literal["common"],
    units: Mapping[str, str],
    molar_masses: Mapping[str, float],
) -> Codes:
    """The fields of all LOINC codes, with what the application adds or changes.

    Args:
        lab_codes: Further LOINC codes and the names of their laboratory results; or "common".
        units: Units in UCUM by name of a laboratory result.
        molar_masses: Grams a mole by name of a laboratory result.

    Raises:
        SvcRequestError: A code, a unit or a mass is not valid; or a unit is missing or measures
            something else than the result.
    """
    named = {one.name: one for one, _ in (*_DEFAULT, *_COMMON)}
    coded = _by_code((*_DEFAULT, *_COMMON))
    table = _by_code(_DEFAULT) if lab_codes != "common" else dict(coded)
    for code, name in _pairs(lab_codes):
        if not _CODE.fullmatch(code):
            raise SvcRequestError("lab_codes must have LOINC codes such as 2345-7 as its keys")
        if name not in named and name not in units:
            raise SvcRequestError(
                f"lab_codes has the name {name!r}, for which units must have a UCUM unit"
            )
        held = named.get(name) or Field(_LAB, name, units[name])
        # What a code measures is known by the code, whatever the application calls it.
        table[code] = replace(held, substance=coded.get(code, held).substance)
    of_labs = list(dict.fromkeys(one.name for one in table.values() if one.group == _LAB))
    for option, given in (("units", units), ("molar_masses", molar_masses)):
        for name in given:
            if name not in of_labs:
                raise SvcRequestError(
                    f"{option} has {name!r}; it takes names of laboratory results: "
                    + ", ".join(of_labs)
                )
    for name, mass in molar_masses.items():
        if isinstance(mass, bool) or not isinstance(mass, (int, float)) or not 0 < mass < math.inf:
            raise SvcRequestError(f"molar_masses must have grams a mole for {name!r}, above 0")
    return {
        code: _adapted(one, coded.get(code), units, molar_masses) for code, one in table.items()
    }


def _pairs(lab_codes: Mapping[str, str] | Literal["common"]) -> Iterator[tuple[str, str]]:
    if isinstance(lab_codes, str):
        if lab_codes != "common":
            raise SvcRequestError(f"lab_codes is {lab_codes!r}; it takes a mapping or 'common'")
        return
    yield from lab_codes.items()


def _adapted(
    held: Field,
    known: Field | None,
    units: Mapping[str, str],
    molar_masses: Mapping[str, float],
) -> Field:
    """A field with the application's unit and mass for it."""
    if held.group != _LAB:
        return held
    substance = held.substance
    if held.name in molar_masses:
        substance = replace(substance, molar_mass=float(molar_masses[held.name]))
    unit = spelled(units.get(held.name, held.unit))
    if held.name in units:
        _check_unit(held.name, unit, known, substance)
    return replace(held, unit=unit, substance=substance)


def _check_unit(name: str, unit: str, known: Field | None, substance: Substance) -> None:
    try:
        read_unit(unit)
    except UnknownUnitError:
        raise SvcRequestError(
            f"units has {unit!r} for {name!r}, which is not a UCUM unit that is read here; UCUM "
            "writes mg/dL, mmol/L, 10*3/uL, m[IU]/L, mL/min/{1.73_m2}, % or 1"
        ) from None
    try:
        if known is not None:
            converted(Decimal(1), known.unit, unit, substance)
    except UnitError:
        raise SvcRequestError(
            f"units has {unit!r} for {name!r}, to which {known.unit if known else ''} cannot be "
            "converted; give a unit of the same kind, or molar_masses for masses and amounts"
        ) from None
