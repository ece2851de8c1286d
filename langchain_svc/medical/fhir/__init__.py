"""FHIR R4 bundles as patients for the medical tools: pure, and imported when first asked for."""

from __future__ import annotations

from .fields import fields_by_code
from .importing import ImportOptions
from .patient import read_patient
from .report import FhirReport
