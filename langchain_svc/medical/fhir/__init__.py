"""FHIR R4 bundles as patients for the medical tools: pure, and imported when first asked for."""

from __future__ import annotations

from .fields import LARGEST, NOT_BELOW, READING_NAME, doubts_about, fields_by_code
from .importing import ImportOptions, leaves_out
from .patient import read_patient
from .report import FhirReport
from .times import Clock
