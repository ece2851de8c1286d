"""The former home of `DicomImage`, now `langchain_svc.medical`."""

from langchain_svc import DicomImage

__all__ = ["DicomImage"]
