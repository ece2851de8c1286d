"""Images: their headers, their metadata, their addresses, and pictures out of DICOM files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .addresses import AddressError, check_address
from .headers import MIME_TYPES, ImageError, ImageHeader, decode_base64, read_image_header
from .metadata import without_metadata

if TYPE_CHECKING:
    from .clinical import ClinicalImages, Images, imaging_type
    from .dicom_header import read_kind
    from .endpoints import (
        VISION_PATH,
        ImageAnalysis,
        Quality,
        Size,
        Task,
        read_analysis,
        vision_body,
    )
    from .sheet import Sheet, draw_sheet

__getattr__ = lazy(
    __name__,
    {
        "clinical": "ClinicalImages Images imaging_type",
        "dicom_header": "read_kind",
        "endpoints": "VISION_PATH ImageAnalysis Quality Size Task read_analysis vision_body",
        "sheet": "Sheet draw_sheet",
    },
)
