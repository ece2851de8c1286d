"""Which version of FHIR a resource is of, by elements that R4 does not have.

Rests on the pages of each resource in DSTU2, STU3, R4 and R5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from ..errors import SvcRequestError
from .bundle import Resource

_Test: TypeAlias = Callable[[Any], bool]


def _there(value: Any) -> bool:
    return value is not None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


_OLD = "STU3 or DSTU2"
# By resource type: the element, what it is where it is another version's, and that version.
_SIGNS: Mapping[str, tuple[tuple[str, _Test, str], ...]] = {
    "Patient": (("animal", _there, _OLD),),
    "Condition": (
        ("patient", _there, "DSTU2"), ("dateRecorded", _there, "DSTU2"),
        ("context", _there, "STU3"), ("assertedDate", _there, "STU3"),
        ("clinicalStatus", _is_text, _OLD), ("verificationStatus", _is_text, _OLD),
        ("participant", _there, "R5"),
    ),
    "Observation": (
        ("comments", _there, "DSTU2"), ("comment", _there, "STU3"), ("context", _there, "STU3"),
        ("related", _there, _OLD), ("triggeredBy", _there, "R5"), ("bodyStructure", _there, "R5"),
        ("instantiatesCanonical", _there, "R5"),
    ),
    "MedicationStatement": (
        ("wasNotTaken", _there, "DSTU2"), ("taken", _there, "STU3"), ("medication", _there, "R5"),
        ("adherence", _there, "R5"),
    ),
    "MedicationRequest": (
        ("context", _there, "STU3"), ("definition", _there, "STU3"), ("medication", _there, "R5"),
    ),
    "AllergyIntolerance": (
        ("substance", _there, "DSTU2"), ("assertedDate", _there, "STU3"),
        ("clinicalStatus", _is_text, "STU3"), ("participant", _there, "R5"),
        ("type", _is_object, "R5"),
    ),
    "Procedure": (
        ("notPerformed", _there, "DSTU2"), ("notDone", _there, "STU3"),
        ("context", _there, "STU3"), ("occurrenceDateTime", _there, "R5"),
        ("occurrencePeriod", _there, "R5"), ("recorded", _there, "R5"),
    ),
    "FamilyMemberHistory": (("notDone", _there, "STU3"), ("participant", _there, "R5")),
    "DiagnosticReport": (
        ("codedDiagnosis", _there, _OLD), ("context", _there, "STU3"),
        ("supportingInfo", _there, "R5"), ("composition", _there, "R5"),
    ),
    "MedicationOrder": (("resourceType", _there, "DSTU2"),),
    "DiagnosticOrder": (("resourceType", _there, "DSTU2"),),
    "ProcedureRequest": (("resourceType", _there, _OLD),),
    "ReferralRequest": (("resourceType", _there, _OLD),),
}  # fmt: skip


def check_version(resources: Iterable[Resource]) -> None:
    """Refuse what is of another version than R4.

    Raises:
        SvcRequestError: A resource has an element as another version has it.
    """
    for one in resources:
        for element, is_sign, version in _SIGNS.get(one.kind, ()):
            if element in one.raw and is_sign(one.raw[element]):
                raise SvcRequestError(
                    f"{one.place} ({one.kind}) has {element} as FHIR {version} has it; the import "
                    "reads R4. Ask the server for fhirVersion=4.0, or read what fits with "
                    "partial=True"
                )
