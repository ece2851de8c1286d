"""Asking the service about one image (POST /api/vision): what a tool and a chat model share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from .._images import VISION_PATH, ImageAnalysis, Task, read_analysis, vision_body
from ..config import GENERAL
from ..images import ImageStore
from .general import GeneralSettings
from .readers import WholeReader

if TYPE_CHECKING:
    from .call import Call, Limits

# A service that quotes an image which it cannot read quotes its beginning.
_QUOTABLE = 4096


class VisionSettings(GeneralSettings):
    """`GeneralSettings` with a store of images to ask the service about."""

    images: ImageStore = Field(default_factory=ImageStore, exclude=True, repr=False)
    """The images that handles stand for."""

    def _vision_call(self, image: str, task: Task, limits: Limits) -> Call[ImageAnalysis]:
        """The call that asks about an image, given as its address or as base64."""
        return self._new_call(
            GENERAL,
            "POST",
            VISION_PATH,
            partial(WholeReader, partial(read_analysis, task=task)),
            limits,
            body=vision_body(image, task),
            private=(image[:_QUOTABLE],),
        )
