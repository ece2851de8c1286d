"""Where readings go: the fields of a record, their LOINC codes, units, bounds, ages and substances.

The units of vital signs are those of `VitalSigns`. The documents name no unit for laboratory
results; those here are the usual ones of the United States, where the names `troponin`, `bnp` and
`creatinine` come with ng/mL, pg/mL and mg/dL.

The bounds are those of the possible, not of the normal: a number beyond them was never measured in
anybody alive (or has been a few times in the literature) and is in another unit, or a slip. The
days say how old a reading may be: what changes within hours is of the day, what is followed from
day to day is of the week, the rest of the quarter.

Sources: LOINC for codes; for molar masses the formula by IUPAC's atomic weights, unless a comment
says another; for charges the ion in blood.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...errors import SvcRequestError
from .concepts import SNOMED, codes_of
from .report import spaced
from .resources import is_loinc
from .units import (
    Substance,
    UnitError,
    UnknownUnitError,
    converted,
    read_unit,
    spelled,
    unit_in_words,
    unit_of,
)

if TYPE_CHECKING:
    from fhir.resources.R4B.codeableconcept import CodeableConcept
    from fhir.resources.R4B.quantity import Quantity

_ANY = Substance()
_IU = Substance(international=True)  # enzymes and hormones, whose U and IU are one unit
_BARE = Substance(bare=True)
_CHOLESTEROL = Substance(386.66)  # C27H46O
_GLUCOSE = Substance(180.156)  # C6H12O6
# Amounts of hemoglobin count its subunits (a quarter of 64,458 g/mol; ICSH).
_HEMOGLOBIN = Substance(16114.5)
_HBA1C = Substance(hba1c=True)
_CREATININE = Substance(113.12)  # C4H7N3O
_LACTIC_ACID = Substance(90.078, charge=1)  # C3H6O3
_FATS = Substance(885.45)  # mixed, counted as triolein, C57H104O6
_BILIRUBIN = Substance(584.67)  # C33H36N4O6
_T4 = Substance(776.87)  # C15H11I4NO4
_T3 = Substance(650.97)  # C15H12I3NO4
_BNP = Substance(3464.0)  # a peptide of 32 amino acids
# A peptide of 76 amino acids, several times as high as BNP in the same blood.
_NT_PRO_BNP = Substance(8457.0)
_NA = Substance(22.990, charge=1)
_K = Substance(39.098, charge=1)
_CL = Substance(35.45, charge=1)
_HCO3 = Substance(61.017, charge=1)
_CO2 = Substance(charge=1)  # mostly bicarbonate, and given in its equivalents
_CA = Substance(40.078, charge=2)
_MG = Substance(24.305, charge=2)
# Weighed as phosphorus; without a charge, which depends on the pH.
_P = Substance(30.974)
_UREA_NITROGEN = Substance(28.014)  # two nitrogens
_UREA = Substance(28.014, in_moles=True)
_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)
_QUARTER = timedelta(days=90)
HISTORY = "medical_history"
MEDICATIONS = "current_medications"
RISKS = "risk_factors"
_VITAL = "vital_signs"
_LAB = "lab_results"
LARGEST = 1e15  # beyond it a number is a slip, and a float no longer counts in ones


@dataclass(frozen=True)
class Field:
    """Where a reading goes, and which numbers it takes.

    Bounds are in `unit`. The reading is sent in `sent_unit`, or where that is empty in `unit`.
    `window` is how old it may be, seen from the day of the record and from the newest of its kind.
    `of_blood` says that its codes are of blood, serum or plasma.
    """

    group: str
    name: str
    unit: str
    low: float = -LARGEST
    high: float = LARGEST
    window: timedelta | None = _QUARTER
    substance: Substance = _ANY
    sent_unit: str = ""
    of_blood: bool = False

    @property
    def kind(self) -> str:
        """The group whose readings must all lie within their windows of its newest one."""
        return "body" if self.name in _OF_BODY else self.group

    @property
    def path(self) -> str:
        """Its name within a patient, such as `vital_signs.temperature`."""
        return f"{self.group}.{self.name}"

    @property
    def words(self) -> str:
        """Its name for a reader, such as "urea nitrogen"."""
        return reading_in_words(self.name)

    def number(self, quantity: Quantity) -> tuple[int | float, str]:
        """A measurement in the unit that is sent, with the unit that it came in; or a UnitError."""
        unit = unit_of(quantity, self.substance)
        if quantity.value is None:
            raise UnitError("it has no value")
        return self.accepted(quantity.value, unit), unit

    def accepted(self, value: Decimal, unit: str) -> int | float:
        """A value in the unit that is sent; a UnitError if there is none, or no patient has it."""
        number = converted(value, unit, self.unit, self.substance)
        if not self.low <= number <= self.high:
            unit = unit_in_words(self.unit)
            bounds = f"{self.low:g} and {self.high:g} {unit}".rstrip()
            raise UnitError(
                f"it is not between {bounds}, which no patient has: probably another unit, or a "
                "slip"
            )
        if not self.sent_unit:
            return number
        return converted(value, unit, self.sent_unit, self.substance)

    def sent_in(self, unit: str) -> Field:
        """The same field, sent in a unit."""
        return replace(self, sent_unit="" if unit == self.unit else unit)


_Row: TypeAlias = "tuple[str, str, float, float, timedelta, Substance, str]"
# Name, unit, least, most, window, substance, LOINC codes.
_VITAL_SIGNS: tuple[_Row, ...] = (
    ("systolic", "mm[Hg]", 30, 350, _DAY, _ANY, "8480-6 8459-0 8460-8 8461-6 76534-7"),
    ("diastolic", "mm[Hg]", 15, 250, _DAY, _ANY, "8462-4 8453-3 8454-1 8455-8 76535-4"),
    ("heart_rate", "/min", 1, 400, _DAY, _ANY, "8867-4 8889-8 8893-0"),
    (
        "temperature",
        "Cel",
        20,
        45,
        _DAY,
        _ANY,
        "8310-5 8331-1 8332-9 8333-7 8328-7 8329-5 75539-7",
    ),
    ("respiratory_rate", "/min", 1, 150, _DAY, _ANY, "9279-1"),
    ("oxygenSaturation", "%", 10, 100, _DAY, _ANY, "2708-6 59408-5"),
    ("height", "cm", 20, 280, _QUARTER, _ANY, "8302-2 3137-7"),
    ("weight", "kg", 0.2, 700, _QUARTER, _ANY, "29463-7 3141-9"),
    ("bmi", "kg/m2", 5, 200, _QUARTER, _ANY, "39156-5"),
)
NOT_BELOW = (
    "diastolic must be below systolic: they are probably exchanged or not in mmHg"
)
_OF_BODY = frozenset({"height", "weight", "bmi"})
_LAB_RESULTS: tuple[_Row, ...] = (
    # Assays with limits of their own: none may pass for another, or take its place.
    ("troponin", "ng/mL", 0, 5_000, _DAY, _ANY, "10839-9 42757-5 49563-0"),  # I, the usual one
    ("troponinT", "ng/mL", 0, 500, _DAY, _ANY, "6598-7 48425-3"),
    ("hsTroponinI", "ng/L", 0, 5e6, _DAY, _ANY, "89579-7"),
    ("hsTroponinT", "ng/L", 0, 5e5, _DAY, _ANY, "67151-1"),
    ("bnp", "pg/mL", 0, 1e5, _WEEK, _BNP, "30934-4 42637-9"),
    ("ntProBnp", "pg/mL", 0, 1e6, _WEEK, _NT_PRO_BNP, "33762-6 33763-4 71425-3 83107-3"),
    ("creatinine", "mg/dL", 0.01, 75, _QUARTER, _CREATININE,
     "2160-0 38483-4 14682-9 77140-2 59826-8"),
)  # fmt: skip
_COMMON: tuple[_Row, ...] = (
    # blood count
    ("leukocytes", "10*3/uL", 0, 2_000, _WEEK, _ANY, "6690-2 26464-8 804-5"),
    ("erythrocytes", "10*6/uL", 0.2, 15, _QUARTER, _ANY, "789-8 26453-1"),
    ("hemoglobin", "g/dL", 0.5, 30, _QUARTER, _HEMOGLOBIN, "718-7 59260-0 20509-6"),
    ("hematocrit", "%", 2, 90, _QUARTER, _ANY, "4544-3 20570-8"),
    ("platelets", "10*3/uL", 0, 20_000, _WEEK, _ANY, "777-3 26515-7"),
    ("mcv", "fL", 30, 200, _QUARTER, _ANY, "787-2 30428-7"),
    ("mch", "pg", 5, 80, _QUARTER, _ANY, "785-6 28539-5"),
    ("mchc", "g/dL", 10, 60, _QUARTER, _ANY, "786-4 28540-3"),
    # lipids
    ("cholesterol", "mg/dL", 5, 5_000, _QUARTER, _CHOLESTEROL, "2093-3 14647-2"),
    ("hdlCholesterol", "mg/dL", 0.5, 300, _QUARTER, _CHOLESTEROL, "2085-9 14646-4"),
    ("ldlCholesterol", "mg/dL", 0, 5_000, _QUARTER, _CHOLESTEROL,
     "13457-7 18262-6 2089-1 22748-8 39469-2"),
    ("triglycerides", "mg/dL", 5, 50_000, _QUARTER, _FATS, "2571-8 14927-8"),
    # glucose
    ("glucose", "mg/dL", 0.5, 3_500, _DAY, _GLUCOSE,
     "2345-7 2339-0 14749-6 15074-8 41653-7 32016-8"),
    ("fastingGlucose", "mg/dL", 0.5, 3_500, _QUARTER, _GLUCOSE, "1558-6 14771-0"),
    ("hba1c", "%", 2, 30, _QUARTER, _HBA1C, "4548-4 17856-6 59261-8"),
    # electrolytes
    ("sodium", "mmol/L", 80, 250, _WEEK, _NA, "2951-2 2947-0"),
    ("potassium", "mmol/L", 0.5, 20, _WEEK, _K, "2823-3 6298-4 39789-3"),
    ("chloride", "mmol/L", 30, 200, _WEEK, _CL, "2075-0 2069-3"),
    ("bicarbonate", "mmol/L", 0.5, 80, _WEEK, _HCO3, "1963-8 1959-6 14627-4"),
    ("totalCo2", "mmol/L", 0.5, 100, _WEEK, _CO2, "2028-9 20565-8"),
    ("calcium", "mg/dL", 2, 40, _WEEK, _CA, "17861-6 2000-8 49765-1"),
    ("magnesium", "mg/dL", 0.05, 50, _WEEK, _MG, "19123-9 2601-3"),
    ("phosphate", "mg/dL", 0.05, 60, _WEEK, _P, "2777-1 14879-1"),
    # kidney
    ("ureaNitrogen", "mg/dL", 0.5, 500, _QUARTER, _UREA_NITROGEN, "3094-0 6299-2"),
    # Its moles are those of urea nitrogen, its mass is not.
    ("ureaNitrogen", "mg/dL", 0.5, 500, _QUARTER, _UREA, "22664-7"),
    ("egfr", "mL/min/{1.73_m2}", 0, 300, _QUARTER, _ANY,
     "98979-8 62238-1 33914-3 48642-3"),
    # liver
    ("alt", "U/L", 0, 1e5, _QUARTER, _IU, "1742-6 1743-4 1744-2"),
    ("ast", "U/L", 0, 1e5, _QUARTER, _IU, "1920-8 30239-8 88112-8"),
    ("alkalinePhosphatase", "U/L", 0, 5e4, _QUARTER, _IU, "6768-6"),
    ("ggt", "U/L", 0, 5e4, _QUARTER, _IU, "2324-2"),
    ("bilirubin", "mg/dL", 0, 150, _QUARTER, _BILIRUBIN, "1975-2 14631-6"),
    ("albumin", "g/dL", 0.1, 12, _QUARTER, _ANY, "1751-7 61151-7 61152-5"),
    ("totalProtein", "g/dL", 0.5, 25, _QUARTER, _ANY, "2885-2"),
    # thyroid
    ("tsh", "m[IU]/L", 0, 5_000, _QUARTER, _IU, "3016-3 11579-0 11580-8"),
    ("freeT4", "ng/dL", 0, 100, _QUARTER, _T4, "3024-7 14920-3"),
    ("freeT3", "pg/mL", 0, 500, _QUARTER, _T3, "3051-0 14928-6"),
    # inflammation and clotting
    ("crp", "mg/L", 0, 2_000, _WEEK, _ANY, "1988-5"),
    ("inr", "1", 0.4, 50, _WEEK, _BARE, "6301-6 34714-6 38875-1 46418-0"),
    # blood gases
    ("arterialPh", "[pH]", 6, 8.5, _DAY, _BARE, "2744-1"),
    ("arterialPco2", "mm[Hg]", 3, 300, _DAY, _ANY, "2019-8"),
    ("arterialPo2", "mm[Hg]", 3, 2_000, _DAY, _ANY, "2703-7"),
    # of blood of any vessel: in a vein it is lower
    ("bloodOxygenSaturation", "%", 5, 100, _DAY, _ANY, "20564-1"),
    ("lactate", "mmol/L", 0, 60, _DAY, _LACTIC_ACID, "2524-7 32693-4 2518-9 2519-7"),
)  # fmt: skip
# Readings whose names are not the words for them.
_READINGS: Mapping[str, str] = {
    "systolic": "systolic pressure", "diastolic": "diastolic pressure", "bmi": "BMI",
    "troponinT": "troponin T", "hsTroponinI": "high-sensitivity troponin I",
    "hsTroponinT": "high-sensitivity troponin T", "bnp": "BNP", "ntProBnp": "NT-proBNP",
    "mcv": "MCV", "mch": "MCH", "mchc": "MCHC", "hdlCholesterol": "HDL cholesterol",
    "ldlCholesterol": "LDL cholesterol", "hba1c": "HbA1c", "totalCo2": "total CO2",
    "egfr": "eGFR", "alt": "ALT", "ast": "AST", "ggt": "GGT", "tsh": "TSH", "freeT4": "free T4",
    "freeT3": "free T3", "crp": "CRP", "inr": "INR", "arterialPh": "arterial pH",
    "arterialPco2": "arterial pCO2", "arterialPo2": "arterial pO2",
}  # fmt: skip
_CAMEL_CASE = re.compile(r"[a-z]+(?:[A-Z][a-z]+|_[a-z]+)*")
READING_NAME = re.compile(r"\w[\w .%/+-]{0,59}")  # of the application's own

Codes: TypeAlias = Mapping[str, Field]


def _by_code(group: str, rows: Iterable[_Row]) -> dict[str, Field]:
    of_blood = group == _LAB
    return {
        code: Field(group, *row[:6], of_blood=of_blood)
        for row in rows
        for code in row[6].split()
    }


_BY_CODE = _by_code(_VITAL, _VITAL_SIGNS) | _by_code(_LAB, (*_LAB_RESULTS, *_COMMON))
# The order in which readings are sent.
ORDER = tuple(dict.fromkeys(field.path for field in _BY_CODE.values()))


def _folded(name: str) -> str:
    return re.sub(r"[\s_]", "", name).lower()


_BY_NAME: dict[tuple[str, str], Field] = {
    (field.group, _folded(field.name)): field for field in _BY_CODE.values()
}
_BY_NAME[_VITAL, "spo2"] = _BY_NAME[_VITAL, "oxygensaturation"]
# Units in which a number may have come by mistake, the most usual first.
_USUAL_UNITS = (
    "umol/L", "mmol/L", "mg/dL", "g/L", "g/dL", "1", "%", "ng/L", "ng/mL", "pmol/L",
    "10*9/L", "/uL", "kPa", "[lb_av]", "g", "m", "[in_i]", "[degF]", "mmol/mol",
)  # fmt: skip


def doubts_about(group: str, name: str, value: float) -> str:
    """Why no patient can have a reading, and its probable unit; empty if one can.

    Names are compared without regard to case, spaces and underscores. Unknown names have no bounds.
    """
    field = _field_named(group, name)
    if field is None or field.low <= value <= field.high:
        return ""
    reason = "it is in another unit, or a slip"
    for unit in _USUAL_UNITS:
        if _is_possible(field, value, unit):
            probable = "a fraction" if unit == "1" else f"in {unit_in_words(unit)}"
            reason = f"it is probably {probable}"
            break
    bounds = f"{field.low:g} to {field.high:g} {unit_in_words(field.unit)}".rstrip()
    return f"{field.name} must be {bounds}: {reason}"


def usual_unit(group: str, name: str) -> str:
    """The unit that a reading is assumed to be in; empty if its name is not known."""
    field = _field_named(group, name)
    if field is None:
        return ""
    return field.unit


def reading_in_words(name: str) -> str:
    """The name of a reading: `urea_nitrogen` and `ureaNitrogen` are "urea nitrogen".

    A name that an application gave stands as it is.
    """
    if name in _READINGS:
        return _READINGS[name]
    return spaced(name) if _CAMEL_CASE.fullmatch(name) else name


def known_reading(group: str, name: str) -> str:
    """The name of a reading for a reader; empty if it is not known, since it may say anything."""
    field = _field_named(group, name)
    return field.words if field else ""


def _field_named(group: str, name: str) -> Field | None:
    return _BY_NAME.get((group, _folded(name)))


def _is_possible(field: Field, value: float, unit: str) -> bool:
    try:
        field.accepted(Decimal(str(value)), unit)
    except UnitError:
        return False
    return True


def fields_by_code(
    lab_codes: Mapping[str, str] | Literal["common"],
    units: Mapping[str, str],
    windows: Mapping[str, timedelta | None],
) -> Codes:
    """The fields by LOINC code, with the codes, units and windows of the application."""
    table = _with_lab_codes(lab_codes, units)
    labs = dict.fromkeys(field.name for field in table.values() if field.group == _LAB)
    if unknown := [name for name in units if name not in labs]:
        raise SvcRequestError(
            f"units has {unknown[0]!r}; it takes names of laboratory results: {', '.join(labs)}"
        )
    _check_windows(windows, table)
    return {code: _adapted(field, units, windows) for code, field in table.items()}


def _check_windows(windows: Mapping[str, timedelta | None], table: Codes) -> None:
    names = dict.fromkeys(
        name for field in table.values() for name in (field.group, field.name)
    )
    for name, width in windows.items():
        if name not in names:
            raise SvcRequestError(f"windows has {name!r}; it takes {', '.join(names)}")
        if width is None:
            continue
        if not isinstance(width, timedelta) or width < timedelta():
            raise SvcRequestError(
                f"windows must have a timedelta of 0 or more, or None, for {name!r}"
            )


def _with_lab_codes(
    lab_codes: Mapping[str, str] | Literal["common"], units: Mapping[str, str]
) -> Codes:
    """The table with the codes that the application names."""
    if isinstance(lab_codes, str):
        if lab_codes != "common":
            raise SvcRequestError(
                f"lab_codes is {lab_codes!r}; it takes a mapping or 'common'"
            )
        return _BY_CODE
    fields = {field.name: field for field in _BY_CODE.values()}
    table = dict(_BY_CODE)
    for code, name in lab_codes.items():
        if not is_loinc(code):
            raise SvcRequestError(
                "lab_codes must have LOINC codes such as 2345-7 as its keys"
            )
        if not READING_NAME.fullmatch(name):
            raise SvcRequestError(
                "a name in lab_codes must be at most 60 letters and digits"
            )
        if name not in fields and name not in units:
            raise SvcRequestError(
                f"lab_codes has the name {name!r}, for which units must have a UCUM unit"
            )
        if code in _BY_CODE:
            # The code says what is measured, whatever the application calls it.
            field = _BY_CODE[code]
            unit = fields.get(name, field).unit
            table[code] = replace(field, name=name).sent_in(unit)
        else:
            field = fields.get(name) or Field(_LAB, name, spelled(units[name]))
            table[code] = replace(field, of_blood=False)  # what it is of, nobody says
    return table


def _adapted(
    field: Field, units: Mapping[str, str], windows: Mapping[str, timedelta | None]
) -> Field:
    """A field with the application's unit and window for it."""
    for name in (field.group, field.name):
        if name in windows:
            field = replace(field, window=windows[name])
    if field.group != _LAB or field.name not in units:
        return field
    unit = spelled(units[field.name])
    _check_unit(field, unit)
    return field.sent_in(unit)


def _check_unit(field: Field, unit: str) -> None:
    try:
        read_unit(unit)
    except UnknownUnitError:
        raise SvcRequestError(
            f"units has {unit!r} for {field.name!r}, which is not a UCUM unit that is read here; "
            "UCUM writes mg/dL, mmol/L, 10*3/uL, m[IU]/L, mL/min/{1.73_m2}, % or 1"
        ) from None
    try:
        converted(Decimal(1), field.unit, unit, field.substance)
    except UnitError:
        raise SvcRequestError(
            f"units has {unit!r} for {field.name!r}, to which {field.unit} cannot be converted; "
            "give a unit of the same kind"
        ) from None


# -- what a number is about ------------------------------------------------------------------------

# Panels of LOINC and SNOMED CT that are of the patient as a whole.
_PRESSURE_PANELS = frozenset({
    "85354-9", "55284-4", "35094-2", "96607-7", "75367002", "364090009",
})  # fmt: skip
# Vital signs; blood counts; metabolic, renal, hepatic and lipid panels; blood gases.
_PANELS = frozenset({
    "85353-1", "8716-3", "34565-2", "58410-2", "57021-8", "57782-5", "24320-4", "24321-2",
    "51990-0", "24323-8", "24322-0", "24326-1", "24362-6", "24325-3", "24331-1", "57698-3",
    "24336-0", "24338-6",
})  # fmt: skip


def is_of_panel(part: Field, panels: Collection[str]) -> bool:
    """Whether a component of an Observation with these codes is about the patient as a whole.

    A pressure has the same code in the arm, in a heart chamber and in the pulmonary artery.
    """
    if part.group == _VITAL and not _PRESSURE_PANELS.isdisjoint(panels):
        return True
    return not _PANELS.isdisjoint(panels)


_WHOLE_BODY = "38266002"
_UPPER_ARM = "368209003 368208006 40983000 53120007"
_ARTERIES_OF_THE_ARM = "17137000 45631007"  # brachial, radial
_FINGER = "7569003 83738005 65531009 82002001 12406000 76505004"
_USUAL_SITES: Mapping[str, frozenset[str]] = {
    name: frozenset((_WHOLE_BODY, *sites.split()))
    for name, sites in {
        "systolic": f"{_UPPER_ARM} {_ARTERIES_OF_THE_ARM}",
        "diastolic": f"{_UPPER_ARM} {_ARTERIES_OF_THE_ARM}",
        "heart_rate": f"{_UPPER_ARM} {_ARTERIES_OF_THE_ARM} {_FINGER} 80891009 51185008",
        "respiratory_rate": "51185008",
        # mouth, ear, tympanic membrane, axilla, rectum, forehead, bladder, esophagus
        "temperature": "74262004 123851003 117590005 42859004 91470000 34402009 52795006 89837001 "
        "32849002",
        # ear lobe, ear, toes
        "oxygenSaturation": f"{_FINGER} 48800003 117590005 29707007 78883009",
    }.items()
}


# Codes of SNOMED CT that mean a vital sign of the patient as a whole.
_USUAL_CONCEPTS: Mapping[str, frozenset[str]] = {
    name: frozenset(codes.split())
    for name, codes in {
        "systolic": "271649006 72313002 163030003 75367002",
        "diastolic": "271650006 1091811000000102 163031004 75367002",
        "heart_rate": "364075005 78564009 8499008 366199006",
        "respiratory_rate": "86290005",
        "temperature": "386725007 276885007 415945006 415882003 307047009 415974002",
        "oxygenSaturation": "431314004 103228002 442476006",
        "height": "50373000 248333004 1153637007",
        "weight": "27113001 363808001",
        "bmi": "60621009",
    }.items()
}


def is_usual_concept(field: Field, concept: CodeableConcept) -> bool:
    """Whether the codes of SNOMED CT beside a vital sign's own mean the same."""
    if field.group != _VITAL:
        return True
    usual = _USUAL_CONCEPTS.get(field.name, frozenset())
    return usual.issuperset(codes_of(concept, SNOMED))


def is_usual_site(field: Field, site: CodeableConcept | None) -> bool:
    """Whether a vital sign is of a body site where it is usually measured, or names no site."""
    if field.group != _VITAL or site is None:
        return True
    usual = _USUAL_SITES.get(field.name, frozenset({_WHOLE_BODY}))
    return not usual.isdisjoint(codes_of(site))
