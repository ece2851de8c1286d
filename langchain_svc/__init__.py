"""Chat models and tools of a hosted AI platform, for LangChain.

Names are imported when they are first asked for, which keeps `import langchain_svc` quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazy, name_wings
from ._version import __version__

if TYPE_CHECKING:
    from .callbacks import SvcUsageCallbackHandler
    from .chat_models import ChatSvc
    from .errors import (
        SvcAPIError,
        SvcAuthenticationError,
        SvcBadRequestError,
        SvcBudgetError,
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
        ClinicalReceipt,
        ClinicalResult,
        DicomImage,
        FhirReport,
        PatientContext,
        SvcCancerRisk,
        SvcDecisionSupport,
        SvcMedicalConsult,
        SvcMedicalStatus,
        SvcMedicalToolkit,
    )
    from .otel import SvcOpenTelemetryCallbackHandler
    from .privacy import PrivateCallbacks
    from .quota import (
        BudgetUse,
        Plan,
        QuotaLimit,
        QuotaSnapshot,
        SvcBudget,
        SvcQuota,
        bulk_priority,
    )
    from .registration import register
    from .toolkit import SvcToolkit
    from .tools import SvcAnalyzeImage, SvcGenerateImage, SvcTranslate

__all__ = [
    "BudgetUse",
    "ChatSvc",
    "ClinicalReceipt",
    "ClinicalResult",
    "DicomImage",
    "FhirReport",
    "ImageStore",
    "PatientContext",
    "Plan",
    "PrivateCallbacks",
    "QuotaLimit",
    "QuotaSnapshot",
    "SvcAPIError",
    "SvcAnalyzeImage",
    "SvcAuthenticationError",
    "SvcBadRequestError",
    "SvcBudget",
    "SvcBudgetError",
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
    "SvcOpenTelemetryCallbackHandler",
    "SvcOutputError",
    "SvcPermissionDeniedError",
    "SvcQuota",
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
    "bulk_priority",
    "register",
]

__getattr__ = lazy(
    __name__,
    {
        "privacy": "PrivateCallbacks",
        "quota": "BudgetUse Plan QuotaLimit QuotaSnapshot SvcBudget SvcQuota bulk_priority",
        "callbacks": "SvcUsageCallbackHandler",
        "chat_models": "ChatSvc",
        "errors": (
            "SvcAPIError SvcAuthenticationError SvcBadRequestError SvcBudgetError "
            "SvcConnectionError SvcContextOverflowError SvcError SvcNotFoundError SvcOutputError "
            "SvcPermissionDeniedError SvcRateLimitError SvcRequestError SvcResponseError "
            "SvcServerError SvcStreamError SvcTimeoutError"
        ),
        "images": "ImageStore",
        "llms": "SvcLLM",
        "medical": (
            "ClinicalReceipt ClinicalResult DicomImage FhirReport PatientContext SvcCancerRisk "
            "SvcDecisionSupport SvcMedicalConsult SvcMedicalStatus SvcMedicalToolkit"
        ),
        "otel": "SvcOpenTelemetryCallbackHandler",
        "registration": "register",
        "toolkit": "SvcToolkit",
        "tools": "SvcAnalyzeImage SvcGenerateImage SvcTranslate",
    },
    elsewhere={
        "SvcChat": "the chat model is ChatSvc",
        "SvcEmbeddings": "the platform has no embeddings; use those of any other package",
    },
)

name_wings(privacy=f"{__name__}.privacy")


def __dir__() -> list[str]:
    return __all__
