"""Images: their headers, their metadata, and their addresses."""

from __future__ import annotations

from .addresses import (
    check_address,
    decode_base64,
    is_address,
    is_data_uri,
    is_image_text,
)
from .headers import (
    JPEG_FRAMES,
    ImageError,
    is_dicom,
    jpeg_size,
    read_image_header,
    without_metadata,
)
