"""Images: their headers, their metadata, their addresses, and a store of them."""

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
    format_of,
    is_dicom,
    jpeg_size,
    read_image_header,
    without_metadata,
)
from .store import HANDLE, ImageStore, StoredImage
