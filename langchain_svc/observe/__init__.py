"""What calls cost and how they went: usage by model and tool, and OpenTelemetry's spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.lazy import lazy

if TYPE_CHECKING:
    from .callbacks import RunHandler
    from .callbacks import SvcUsageCallbackHandler as SvcUsageCallbackHandler
    from .otel import SvcOpenTelemetryCallbackHandler as SvcOpenTelemetryCallbackHandler
    from .usage import ModelUsage as ModelUsage
else:
    __getattr__ = lazy(
        __name__,
        {
            "callbacks": "RunHandler SvcUsageCallbackHandler",
            "otel": "SvcOpenTelemetryCallbackHandler",
            "usage": "ModelUsage",
        },
    )
