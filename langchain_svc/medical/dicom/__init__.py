"""Pictures out of DICOM files: the pixels of one frame, and nothing else of the file."""

from __future__ import annotations

from .image import DicomImage, codes_of

__all__ = ["DicomImage", "codes_of"]
