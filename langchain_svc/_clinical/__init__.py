"""Medical answers: what a model may read of them, and what a program gets."""

from __future__ import annotations

from .result import ClinicalResult
from .tool import EchoMode, Endpoint, MedicalTool, Patient
