"""Pictures out of DICOM files: the pixels of one frame, and nothing else of the file."""

from __future__ import annotations

from .image import DicomImage, as_dicom, codes_of

__all__ = ["DicomImage", "as_dicom", "codes_of"]
