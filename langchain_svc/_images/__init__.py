"""Images: their headers, their metadata, and their addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .addresses import AddressError, check_address
from .headers import (
    JPEG_FRAMES,
    MIME_TYPES,
    ImageError,
    ImageHeader,
    decode_base64,
    is_dicom,
    jpeg_size,
    read_image_header,
)
from .metadata import without_metadata

if TYPE_CHECKING:
    from .endpoints import (
        VISION_PATH,
        ImageAnalysis,
        Quality,
        Size,
        Task,
        read_analysis,
        vision_body,
    )

__getattr__ = lazy(
    __name__,
    {
        "endpoints": "VISION_PATH ImageAnalysis Quality Size Task read_analysis vision_body",
    },
)
