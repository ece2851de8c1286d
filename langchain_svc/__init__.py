"""Chat models and tools of a hosted AI platform, for LangChain.

Names are imported when they are first asked for, which keeps `import langchain_svc` quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._clinical.result import ClinicalResult
    from ._fhir.report import FhirReport
    from ._privacy.callbacks import PrivateCallbacks
    from .callbacks import SvcUsageCallbackHandler
    from .chat_models import ChatSvc
    from .dicom import DicomImage, DicomSeries
    from .errors import (
        SvcAPIError,
        SvcAuthenticationError,
        SvcBadRequestError,
        SvcConnectionError,
        SvcContextOverflowError,
        SvcError,
        SvcNotFoundError,
        SvcOutputError,
        SvcPermissionDeniedError,
        SvcRateLimitError,
        SvcRequestError,
        SvcResponseError,
        SvcServerError,
        SvcStreamError,
        SvcTimeoutError,
    )
    from .images import ImageStore
    from .llms import SvcLLM
    from .medical import (
        SvcCancerRisk,
        SvcDecisionSupport,
        SvcMedicalConsult,
        SvcMedicalStatus,
        SvcMedicalToolkit,
    )
    from .patient import PatientContext
    from .registration import register
    from .toolkit import SvcToolkit
    from .tools import SvcAnalyzeImage, SvcGenerateImage, SvcTranslate

__all__ = [
    "ChatSvc",
    "ClinicalResult",
    "DicomImage",
    "DicomSeries",
    "FhirReport",
    "ImageStore",
    "PatientContext",
    "PrivateCallbacks",
    "SvcAPIError",
    "SvcAnalyzeImage",
    "SvcAuthenticationError",
    "SvcBadRequestError",
    "SvcCancerRisk",
    "SvcConnectionError",
    "SvcContextOverflowError",
    "SvcDecisionSupport",
    "SvcError",
    "SvcGenerateImage",
    "SvcLLM",
    "SvcMedicalConsult",
    "SvcMedicalStatus",
    "SvcMedicalToolkit",
    "SvcNotFoundError",
    "SvcOutputError",
    "SvcPermissionDeniedError",
    "SvcRateLimitError",
    "SvcRequestError",
    "SvcResponseError",
    "SvcServerError",
    "SvcStreamError",
    "SvcTimeoutError",
    "SvcToolkit",
    "SvcTranslate",
    "SvcUsageCallbackHandler",
    "__version__",
    "register",
]

_HOMES = {
    "ChatSvc": "chat_models",
    "ClinicalResult": "_clinical.result",
    "DicomImage": "dicom",
    "DicomSeries": "dicom",
    "FhirReport": "_fhir.report",
    "ImageStore": "images",
    "PatientContext": "patient",
    "PrivateCallbacks": "_privacy.callbacks",
    "SvcAnalyzeImage": "tools",
    "SvcCancerRisk": "medical",
    "SvcDecisionSupport": "medical",
    "SvcGenerateImage": "tools",
    "SvcLLM": "llms",
    "SvcMedicalConsult": "medical",
    "SvcMedicalStatus": "medical",
    "SvcMedicalToolkit": "medical",
    "SvcToolkit": "toolkit",
    "SvcTranslate": "tools",
    "SvcUsageCallbackHandler": "callbacks",
    "register": "registration",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
