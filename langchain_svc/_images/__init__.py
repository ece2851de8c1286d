"""Images: their headers, their metadata, and their addresses."""

from __future__ import annotations

from .addresses import AddressError, check_address, is_address
from .headers import (
    JPEG_FRAMES,
    ImageError,
    ImageHeader,
    decode_base64,
    is_dicom,
    jpeg_size,
    read_image_header,
)
from .metadata import without_metadata
