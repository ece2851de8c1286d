"""An image as a text: in base64, or its address in the web.

We never fetch an address. But the service does, and an address inside somebody's network that a
model wrote would make the service the model's hand there. So only addresses with public names go:
no IP address, public or not. We do not look names up, so a public name that leads to a private
address passes.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import urlsplit

from .headers import ImageError

# base64 of the first bytes of PNG, JPEG, GIF (refused by its name) and WebP.
_BASE64_STARTS = ("iVBORw0KGgo", "/9j/", "_9j_", "R0lGOD", "UklGR")
# Printable ASCII without the characters that parsers read in several ways: quotation marks, angle
# brackets and the backslash.
_URL = re.compile(r"[!#-;=?-\[\]-~]{1,2048}")
# The last part begins with a letter, or some resolvers would read the name as a number.
_NAME = re.compile(r"(?!-)(?:[a-z0-9_-]{1,63}\.)+[a-z][a-z0-9-]{1,62}", re.ASCII)
_PRIVATE_ENDS = (
    ".arpa", ".consul", ".corp", ".default", ".home", ".internal", ".intra", ".intranet",
    ".invalid", ".lan", ".local", ".localdomain", ".localhost", ".onion", ".private", ".svc",
    ".test", ".ts.net",
)  # fmt: skip


def is_address(text: str) -> bool:
    """Whether a text begins as a web address does."""
    return text[:8].lower().startswith(("http://", "https://"))


def is_data_uri(text: str) -> bool:
    """Whether a text begins as a data URI does."""
    return text[:5].lower() == "data:"


def is_image_text(text: str) -> bool:
    """Whether a text begins as an address, a data URI or an image in base64 does."""
    return is_address(text) or is_data_uri(text) or text.startswith(_BASE64_STARTS)


def check_address(url: str) -> str:
    """The address, unchanged.

    Raises:
        ImageError: It is none, or not one of a public host over http or https.
    """
    if not is_address(url):
        raise ImageError(
            "the address must look like https://host/path. A path is not read from here: add the "
            "file to an ImageStore by images.add(path), or give its base64"
        )
    if not _URL.fullmatch(url):
        raise ImageError(
            "the address must have at most 2048 printable ASCII characters, no spaces"
        )
    try:
        parts = urlsplit(url)
        name = (parts.hostname or "").rstrip(".")
        port = parts.port
    except ValueError:
        raise ImageError("the address has no valid host and port") from None
    if "@" in parts.netloc or port == 0:
        raise ImageError(
            "the address must hold no user name, no password and not the port 0"
        )
    # No IP address is a name, nor are its old forms `127.1`, `0x7f000001` and `010.0.0.1`, which
    # parsers read in several ways: the last part of a name begins with a letter.
    if name.endswith(_PRIVATE_ENDS) or not _NAME.fullmatch(name):
        raise ImageError(
            "the address must have the name of a public host, not an IP address or a private name"
        )
    return url


def decode_base64(text: str, max_bytes: int) -> bytes:
    """The bytes of base64, plain or as a data URI.

    Both alphabets are taken, and padding may be missing.

    Raises:
        ImageError: It is not base64, or more than `max_bytes`.
    """
    if is_data_uri(text):
        head, _, text = text.partition(",")
        if not head.lower().endswith(";base64"):
            raise ImageError("it is a data URI without ;base64")
    # Measured before anything is copied. A third of the letters may be line breaks, no more.
    if len(text) > max_bytes * 2 + 64:
        raise ImageError(f"it has more than {max_bytes:,} bytes")
    letters = "".join(text.split()).rstrip("=")
    letters = letters.replace("-", "+").replace("_", "/")
    padding = "=" * (-len(letters) % 4)
    try:
        data = base64.b64decode(letters + padding, validate=True)
    except ValueError:
        raise ImageError("it is not valid base64") from None
    if len(data) > max_bytes:
        raise ImageError(f"it has more than {max_bytes:,} bytes")
    return data
