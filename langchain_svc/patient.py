"""The former home of `PatientContext`, now `langchain_svc.medical`."""

from langchain_svc import FhirReport, PatientContext

__all__ = ["FhirReport", "PatientContext"]
