"""FHIR R4 bundles as patients for the medical tools: pure, and imported when first asked for."""

from __future__ import annotations

from .construction import construct_record
from .fields import fields_by_code
from .options import ImportOptions
from .pages import Page, read_page, read_refusal, record_pages
from .patient import read_patient
from .report import FhirReport
from .times import to_datetime
