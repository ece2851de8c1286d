"""The call that asks about an image: a tool makes it, and a chat model that describes images."""

from __future__ import annotations

from functools import partial

from .._wire import image_endpoints
from ..config import GENERAL
from .settings import ServiceSettings
from .steps import Exchange, Limits, WholeParser


def vision_exchange(
    settings: ServiceSettings, image: str, task: image_endpoints.Task, limits: Limits
) -> Exchange[image_endpoints.ImageAnalysis]:
    """The call that asks about an image, which is an address or base64."""
    return settings._new_exchange(  # noqa: SLF001  # our own class
        GENERAL,
        "POST",
        image_endpoints.VISION_PATH,
        partial(WholeParser, partial(image_endpoints.read_analysis, task=task)),
        limits,
        body=image_endpoints.vision_body(image, task),
        closed=image_endpoints.VISION_CLOSED,
        images=image_endpoints.VISION_IMAGES,
    )
