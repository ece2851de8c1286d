"""Reaching the service: settings, retries, connections. The network is touched only here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .bounded_gather import gather
from .call import Call, Limits
from .readers import TextReader, WholeReader
from .reading import read
from .settings import (
    ALIASES,
    Retries,
    Seconds,
    Secret,
    ServiceSettings,
    did_you_mean,
    hint,
    number,
    renamed,
    revealed,
    url_of,
)
from .vision import vision_call

if TYPE_CHECKING:
    from .fhir_server import FhirServer
    from .tool import Job, ServiceTool, ServiceToolkit, Told, moment, request_id, selection

__getattr__ = lazy(
    __name__,
    {
        "tool": "Job ServiceTool ServiceToolkit Told moment request_id selection",
        "fhir_server": "FhirServer",
    },
)
