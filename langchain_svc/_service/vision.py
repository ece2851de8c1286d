"""Asking the service about one image (POST /api/vision): what a tool and a chat model share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .._images import VISION_PATH, ImageAnalysis, Task, read_analysis, vision_body
from ..config import GENERAL
from .parsers import WholeParser

if TYPE_CHECKING:
    from .settings import ServiceSettings
    from .steps import Exchange, Limits

# A service that quotes an image which it cannot read quotes its beginning.
_QUOTABLE = 4096


def vision_exchange(
    asker: ServiceSettings, image: str, task: Task, limits: Limits
) -> Exchange[ImageAnalysis]:
    """The call that asks about an image, given as its address or as base64."""
    return asker._new_exchange(  # noqa: SLF001  # our own class
        GENERAL,
        "POST",
        VISION_PATH,
        partial(WholeParser, partial(read_analysis, task=task)),
        limits,
        body=vision_body(image, task),
        private=(image[:_QUOTABLE],),
    )
