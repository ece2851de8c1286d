"""`PatientContext`: what an application knows of a patient, checked and never shown.

The application builds it; the medical tools send it. No error, `repr` or log repeats a value:
they name fields, counts and bounds. Units are not part of the service's documents, so a reading
that looks like another unit is refused, and the error names the unit that it probably is in.

Rests on the medical API, section 2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeAlias,
    TypeGuard,
)

from pydantic import (
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_plain_validator_function

from .._base.safe_errors import safe_constructor, safe_repr
from ..errors import SvcRequestError
from .fhir import (
    LARGEST,
    NOT_BELOW,
    READING_NAME,
    Clock,
    FhirReport,
    ImportOptions,
    doubts_about,
    fields_by_code,
    leaves_out,
    read_patient,
)
from .images import ClinicalImages, imaging_type

MOST_ENTRIES = 200
LONGEST_LINE = 2_000


# -- numbers ---------------------------------------------------------------------------------------


def _finite(value: object) -> TypeGuard[float]:
    # True is not a number, and a text is a mistake to report, not to guess at.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -LARGEST < value < LARGEST


@dataclass(frozen=True)
class _Between:
    """Accepts a finite number in its bounds; its errors hold the bounds, not the value."""

    low: float = -math.inf
    high: float = math.inf
    doubts: str = ""

    def __get_pydantic_core_schema__(self, *_: Any) -> CoreSchema:
        return no_info_plain_validator_function(self.checked)

    def __get_pydantic_json_schema__(self, *_: Any) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "number"}
        if math.isfinite(self.low):
            schema["minimum"] = self.low
        if math.isfinite(self.high):
            schema["maximum"] = self.high
        return schema

    def checked(self, value: object) -> float:
        doubts = f": {self.doubts}" if self.doubts else ""
        if not _finite(value):
            raise ValueError("must be a finite number, not a text, true, false or NaN")
        if value < self.low:
            raise ValueError(f"must be {self.low:g} or more{doubts}")
        if value > self.high:
            raise ValueError(f"must be {self.high:g} or less{doubts}")
        return value


_PRESSURE = "it is a pressure in mmHg; a lower one is probably in kPa"
_FAHRENHEIT = (
    "a higher one is probably in degrees Fahrenheit; give degrees Celsius, (F - 32)/1.8"
)
_YEARS = "it is an age in years; give years, not a year of birth or days"
Age = Annotated[int | float, _Between(0, 130, _YEARS)]
Systolic = Annotated[int | float, _Between(30, 350, _PRESSURE)]
Diastolic = Annotated[int | float, _Between(15, 250, _PRESSURE)]
HeartRate = Annotated[int | float, _Between(0, 400, "it is in beats a minute")]
Temperature = Annotated[int | float, _Between(20, 45, _FAHRENHEIT)]
RespiratoryRate = Annotated[int | float, _Between(0, 150, "it is in breaths a minute")]
Level = Annotated[int | float, _Between(0, doubts="a level cannot be negative")]


# -- texts -----------------------------------------------------------------------------------------

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_MARKUP = re.compile(r"</?[A-Za-z!][^<>]*>")


def text_problem(value: object, most: int = LONGEST_LINE) -> str:
    """Why a record does not take a text; empty where it does."""
    if not isinstance(value, str) or not value.strip():
        return "must be a text that is not empty"
    if len(value) > most:
        return f"must have at most {most:,} characters"
    if _CONTROL.search(value):
        return "must be plain text: it holds a control character"
    if _MARKUP.search(value):
        return "must be plain text: it holds markup"
    return ""


def line(
    most: int = LONGEST_LINE, pattern: str = "", expected: str = ""
) -> BeforeValidator:
    """Accepts a plain text of 1 to `most` characters; an error names the pattern as `expected`."""

    def check(value: object) -> str:
        problem = text_problem(value, most)
        if problem or not isinstance(value, str):
            raise ValueError(problem)
        text = value.strip()
        if pattern and not re.fullmatch(pattern, text):
            raise ValueError(f"must be {expected}")
        return text

    return BeforeValidator(check)


Line = Annotated[str, line()]
Sex = Annotated[str, line(40)]
if TYPE_CHECKING:
    Lines: TypeAlias = Sequence[str]
else:
    Lines = Annotated[tuple[Line, ...], Field(max_length=MOST_ENTRIES)]


# -- records ---------------------------------------------------------------------------------------


class _Count(int):
    """Stands for values in a `repr`."""

    def __repr__(self) -> str:
        unit = "value" if self == 1 else "values"
        return f"<{int(self)} {unit}>"


@safe_constructor
class Record(BaseModel):
    """Values that are sent and never shown. Fields may be named as in the documents too."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=AliasGenerator(serialization_alias=to_camel),
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _take_documented_names(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        documented = {to_camel(name): name for name in cls.model_fields}
        return {documented.get(name, name): value for name, value in values.items()}

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name in type(self).model_fields:
            count = _count(getattr(self, name))
            if count:
                yield name, _Count(count)
        further = len(self.model_extra or {})
        if further:
            yield "further", _Count(further)


def _count(value: object) -> int:
    """The number of values in a field."""
    if value is None:
        return 0
    if isinstance(value, BaseModel):
        return len([name for name, item in value if item is not None])
    if isinstance(value, tuple):
        return len(value)
    return 1


_OF_A_REQUEST = frozenset({"symptoms", "message", "specialty", "language"})


class _Readings(Record):
    """Documented readings, and any others as long as they are numbers.

    Readings that are known by name have bounds, in the units that docs/medical-records.md lists.
    """

    group: ClassVar[str]

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="allow", json_schema_extra={"additionalProperties": {"type": "number"}}
    )

    @model_validator(mode="before")
    @classmethod
    def _check_further(cls, values: object) -> object:
        # Here and not by a type, whose errors would repeat the caller's names.
        if not isinstance(values, Mapping):
            return values
        documented = {*cls.model_fields, *map(to_camel, cls.model_fields)}
        further = {
            name: value for name, value in values.items() if name not in documented
        }
        if len(further) > MOST_ENTRIES:
            raise ValueError(f"must hold at most {MOST_ENTRIES} further readings")
        for name, value in further.items():
            if not isinstance(name, str) or not READING_NAME.fullmatch(name):
                raise ValueError(
                    "the name of a further reading must be at most 60 letters"
                )
            if not _finite(value):
                raise ValueError(
                    "each further reading must be a finite number, not a text, true, false or NaN"
                )
        cls._check_bounds(values)
        return values

    @classmethod
    def _check_bounds(cls, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            has_own_bounds = cls.group == "vital_signs" and name in cls.model_fields
            if has_own_bounds or not _finite(value) or value < 0:
                continue
            doubts = doubts_about(cls.group, name, value)
            if doubts:
                raise ValueError(doubts)


class VitalSigns(_Readings):
    """Readings as numbers: pressures in mmHg, temperature in degrees Celsius, rates a minute."""

    group = "vital_signs"

    systolic: Systolic | None = Field(
        default=None, description="Systolic pressure in mmHg."
    )
    diastolic: Diastolic | None = Field(
        default=None, description="Diastolic pressure in mmHg."
    )
    heart_rate: HeartRate | None = Field(default=None, description="Beats a minute.")
    temperature: Temperature | None = Field(
        default=None, description="Degrees Celsius."
    )
    respiratory_rate: RespiratoryRate | None = Field(
        default=None, description="Breaths a minute."
    )

    @model_validator(mode="after")
    def _check_pressures(self) -> Self:
        if self.systolic is None or self.diastolic is None:
            return self
        if self.diastolic >= self.systolic:
            raise ValueError(NOT_BELOW)
        return self


class LabResults(_Readings):
    """Laboratory results as numbers."""

    group = "lab_results"

    troponin: Level | None = Field(default=None, description="Troponin.")
    bnp: Level | None = Field(default=None, description="B-type natriuretic peptide.")
    creatinine: Level | None = Field(default=None, description="Creatinine.")


class Demographics(Record):
    """Who the patient is, what they have had and what they take."""

    age: Age | None = Field(default=None, description="Age in years.")
    sex: Sex | None = Field(default=None, description="Sex, such as female or male.")
    medical_history: Lines = Field(
        default=(), description="Earlier and present conditions."
    )
    current_medications: Lines = Field(
        default=(), description="What the patient takes now."
    )


class PatientContext(Demographics):
    """A patient for the medical tools: built by the application, neither shown to the model
    nor invented by it.

        from langchain_svc import PatientContext, SvcMedicalToolkit

        patient = PatientContext(
            age=61,
            sex="female",
            medical_history=["hypertension"],
            vital_signs={"systolic": 150, "diastolic": 95, "oxygenSaturation": 97},
        )
        tools = SvcMedicalToolkit(patient=patient).get_tools()

    Every field may be left out. Numbers must be finite numbers; images are PNG, JPEG or DICOM. It
    cannot be changed, and its `repr` shows field names and counts only.

    Raises:
        pydantic.ValidationError: A value is out of its bounds or probably in another unit. The
            error names the field, not the value.
    """  # noqa: D205  # one sentence over two lines

    vital_signs: VitalSigns | None = None
    """systolic, diastolic, heart_rate, temperature, respiratory_rate, and any other numbers."""

    lab_results: LabResults | None = None
    """troponin, bnp, creatinine, and any other numbers."""

    risk_factors: Lines = ()
    """Such as smoking or a family history."""

    images: ClinicalImages = Field(default=(), repr=False)
    """PNG or JPEG as bytes, base64 or data URIs, and DICOM as `DicomImage`. At most 8 of 8 MB. Only
    the pixels are kept."""

    imaging_type: Line | None = None
    """What kind of imaging the images are, such as "chest CT"; of DICOM images their modality and
    body part, if it is not given. It goes before what a model writes."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        valid = {*cls.model_fields, *map(to_camel, cls.model_fields)}
        for name in values:
            if name not in valid:
                from .._settings import did_you_mean  # noqa: PLC0415  # few names are wrong

                hint = ""
                if name in _OF_A_REQUEST:
                    hint = ", which is an argument of the tools"
                raise ValueError(
                    f"PatientContext has no field {safe_repr(name)}{hint}; "
                    + did_you_mean(str(name), cls.model_fields)
                )
        return values

    @model_validator(mode="before")
    @classmethod
    def _name_imaging(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        if values.get("imaging_type", values.get("imagingType")):
            return values
        images = values.get("images")
        if not isinstance(images, (list, tuple)):
            return values
        imaging = imaging_type(images)
        if imaging is None:
            return values
        return {**values, "imaging_type": imaging}

    @cached_property  # beside the fields: neither sent nor compared, but copied and pickled
    def fhir_report(self) -> FhirReport | None:
        """What `from_fhir` took and left out, without values; None for any other record."""
        return None

    @classmethod
    def from_fhir(
        cls,
        source: Any,
        *,
        patient: str | None = None,
        today: date | None = None,
        now: datetime | None = None,
        windows: Mapping[str, timedelta | None] | None = None,
        lab_codes: Mapping[str, str] | Literal["common"] = "common",
        units: Mapping[str, str] | None = None,
        past_conditions: bool = False,
        typed_texts: Literal["take", "leave_out"] = "take",
        leave_out: Iterable[str] | Callable[[Mapping[str, Any]], bool] = (),
        restricted: bool = False,
        partial: bool = False,
        risk_factors: Iterable[str] = (),
        images: Iterable[Any] = (),
    ) -> Self:
        """A record from FHIR R4 resources of one patient; `fhir_report` says what was taken.

            patient = PatientContext.from_fhir(Path("bundle.json"))
            print(patient.fhir_report)

        Names, addresses and identifiers are not read into the record, nor days: the years of
        conditions and the months of medicines are. Of several versions the newest counts. What
        cannot be read, has no usable unit, is beyond the possible or is too many is left out with
        its reason.
        docs/medical-records.md lists which elements become which field. It needs
        `pip install "langchain-svc[fhir]"`.

        Args:
            source: A Bundle (also one of Bundles), one resource, or a list of either: dicts, JSON
                text or bytes, lines of JSON (a bulk export), or a `pathlib.Path` to such a file.
            patient: The id or reference of the patient, where `source` holds several, or the
                whole address, where two servers have one of that id; what is about others is
                passed over and counted.
            today: The day of the record, in whole days. It decides the age, and nothing that
                happened or was recorded after it is taken.
            now: The moment of the record, with its time zone, instead of `today`: windows are then
                of hours. By default the present moment.
            windows: How old a reading may be, by its name or by its group (`vital_signs`,
                `lab_results`), in place of the table's windows; None for any age.
            lab_codes: LOINC codes of laboratory results beyond the "common" ones, with the name of
                each. Those are blood count, lipids, glucose, HbA1c, electrolytes, kidney, liver,
                thyroid, CRP, INR, lactate and blood gases, in the usual units of the United States.
            units: The UCUM unit of a laboratory result by its name: for those of `lab_codes`, or
                in place of the unit of the table.
            past_conditions: Take conditions that are over as well, marked "(past)".
            typed_texts: Take texts that somebody typed, such as dosages and conditions without a
                code, or leave them out. They may name anybody, and so may the display that a
                sender wrote beside a code: with "leave_out" codes are sent alone, such as
                "SNOMED CT 38341003".
            leave_out: Codes that are never sent, of resources or of their categories, also as
                "system|code"; or a function that is given a resource's JSON and returns True to
                leave it out. Each has its line in the report.
            restricted: Take what a security label other than L, M, N, U and HTEST (test data)
                restricts, and a record with a consent that denies; the report says so. Otherwise a
                resource with such a label is left out, and a record that is labelled as a whole
                (Bundle, Composition, Patient) or has such a consent is refused.
            partial: Take what can be had of an empty record, of one page of several, or of a
                search that failed in part. Refused otherwise.
            risk_factors: Further risk factors, which stand after those that were read.
            images: The record's images, which are not taken from the source.

        Raises:
            SvcRequestError: It is not the record of one living patient, is empty, not whole or
                restricted. The error names the entry and the element, not the value.
            ImportError: The extra `fhir` is not installed.
        """
        if typed_texts not in {"take", "leave_out"}:
            raise SvcRequestError(
                f"typed_texts is {typed_texts!r}; it takes take or leave_out"
            )
        for name, switch in (("restricted", restricted), ("partial", partial)):
            if not isinstance(switch, bool):
                raise SvcRequestError(
                    f"{name} must be True or False, not {safe_repr(switch)}"
                )
        if isinstance(risk_factors, str):
            raise SvcRequestError("risk_factors must be a list of texts, not one text")
        options = ImportOptions(
            clock=_clock(today, now),
            patient=patient,
            codes=fields_by_code(lab_codes, units or {}, windows or {}),
            past_conditions=past_conditions,
            typed_texts=typed_texts,
            restricted=restricted,
            partial=partial,
            leaves_out=leaves_out(leave_out),
            text_problem=text_problem,
            most=MOST_ENTRIES,
        )
        result = cls._from_source(source, options, risk_factors, images)
        if isinstance(result, Exception):
            # Some tools show an error's frames, which must not hold what is in the record.
            del source, patient, options, risk_factors, images
            try:
                raise result
            finally:
                del result
        return result

    @classmethod
    def _from_source(
        cls,
        source: object,
        options: ImportOptions,
        risk_factors: Iterable[str],
        images: Iterable[Any],
    ) -> Self | Exception:
        """The record, or what is wrong, without the frames that have the source."""
        try:
            parameters, report = read_patient(source, options)
            risks = (*parameters.pop("risk_factors", ()), *risk_factors)
            results = parameters.get("lab_results")
            if results:
                # Checked already, and in units that the caller may have chosen.
                parameters["lab_results"] = LabResults.model_construct(**results)
            record = cls(**parameters, risk_factors=risks, images=tuple(images))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            reason = first["msg"].removeprefix("Value error, ")
            return SvcRequestError(f"{'.'.join(map(str, first['loc']))}: {reason}")
        except (SvcRequestError, ImportError) as error:
            error.__context__ = None
            return error.with_traceback(None)
        vars(record)["fhir_report"] = report
        return record


def _clock(today: date | None, now: datetime | None) -> Clock | None:
    """The day or the moment that the caller names; None where it names neither."""
    if now is None:
        if isinstance(today, datetime):
            today = today.date()
        return Clock(today) if today else None
    if today is not None:
        raise SvcRequestError(
            "from_fhir takes today= or now=, not both: now= is a moment of a day"
        )
    if not isinstance(now, datetime) or now.utcoffset() is None:
        raise SvcRequestError(
            "now must be a datetime with a time zone, such as datetime.now().astimezone()"
        )
    return Clock(now.date(), now)


def on_wire(record: BaseModel) -> dict[str, Any]:
    """A record's values by their documented names, without those that are absent."""
    return _present(record.model_dump(by_alias=True, exclude_none=True))


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without empty lists and groups."""
    present: dict[str, Any] = {}
    for name, value in values.items():
        item = _present(value) if isinstance(value, Mapping) else value
        if item not in ((), [], {}):
            present[name] = item
    return present
