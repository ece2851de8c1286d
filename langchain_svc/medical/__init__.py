"""The medical tools and the patient's record that they send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.lazy import lazy

if TYPE_CHECKING:
    from .dicom import DicomImage
    from .fhir import FhirReport
    from .patient import PatientContext
    from .result import ClinicalReceipt, ClinicalResult
    from .tools import (
        SvcCancerRisk,
        SvcDecisionSupport,
        SvcMedicalConsult,
        SvcMedicalStatus,
        SvcMedicalToolkit,
    )

__all__ = [
    "ClinicalReceipt",
    "ClinicalResult",
    "DicomImage",
    "FhirReport",
    "PatientContext",
    "SvcCancerRisk",
    "SvcDecisionSupport",
    "SvcMedicalConsult",
    "SvcMedicalStatus",
    "SvcMedicalToolkit",
]

if not TYPE_CHECKING:  # a misspelt name is an error for type checkers
    __getattr__ = lazy(
        __name__,
        {
            "dicom": "DicomImage",
            "fhir": "FhirReport",
            "patient": "PatientContext",
            "result": "ClinicalReceipt ClinicalResult",
            "tools": (
                "SvcCancerRisk SvcDecisionSupport SvcMedicalConsult SvcMedicalStatus "
                "SvcMedicalToolkit"
            ),
        },
    )
