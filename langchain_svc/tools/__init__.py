"""The tools of the general interface, their toolkit, and what every tool has in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.lazy import lazy

if TYPE_CHECKING:
    from .base import (
        ServiceTool,
        ServiceToolkit,
        ToolOutput,
        ToolUse,
        request_id,
        tool_selection,
        utc_now,
    )
    from .general import SvcAnalyzeImage as SvcAnalyzeImage
    from .general import SvcGenerateImage as SvcGenerateImage
    from .general import SvcTranslate as SvcTranslate
    from .toolkit import SvcToolkit as SvcToolkit
else:
    __getattr__ = lazy(
        __name__,
        {
            "base": (
                "ServiceTool ServiceToolkit ToolOutput ToolUse request_id tool_selection utc_now"
            ),
            "general": "SvcAnalyzeImage SvcGenerateImage SvcTranslate",
            "toolkit": "SvcToolkit",
        },
    )
