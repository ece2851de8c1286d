"""Chat models and tools of a hosted AI platform, for LangChain.

Names are imported when they are first asked for, which keeps `import langchain_svc` quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base.lazy import lazy
from ._version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers, which know no names made at run time
    from .chat.chat_models import ChatSvc as ChatSvc
    from .chat.chat_models import register as register
    from .chat.interfaces import ListedModel as ListedModel
    from .citations.middleware import SvcCitations as SvcCitations
    from .errors import SvcAPIError as SvcAPIError
    from .errors import SvcAuthenticationError as SvcAuthenticationError
    from .errors import SvcBadRequestError as SvcBadRequestError
    from .errors import SvcBudgetError as SvcBudgetError
    from .errors import SvcConnectionError as SvcConnectionError
    from .errors import SvcContextOverflowError as SvcContextOverflowError
    from .errors import SvcError as SvcError
    from .errors import SvcNotFoundError as SvcNotFoundError
    from .errors import SvcOutputError as SvcOutputError
    from .errors import SvcPermissionDeniedError as SvcPermissionDeniedError
    from .errors import SvcRateLimitError as SvcRateLimitError
    from .errors import SvcRequestError as SvcRequestError
    from .errors import SvcResponseError as SvcResponseError
    from .errors import SvcServerError as SvcServerError
    from .errors import SvcStreamError as SvcStreamError
    from .errors import SvcTimeoutError as SvcTimeoutError
    from .images import ImageStore as ImageStore
    from .medical.fhir import FhirReport as FhirReport
    from .medical.images import DicomImage as DicomImage
    from .medical.patient import PatientContext as PatientContext
    from .medical.result import ClinicalReceipt as ClinicalReceipt
    from .medical.result import ClinicalResult as ClinicalResult
    from .medical.tools import SvcCancerRisk as SvcCancerRisk
    from .medical.tools import SvcDecisionSupport as SvcDecisionSupport
    from .medical.tools import SvcMedicalConsult as SvcMedicalConsult
    from .medical.tools import SvcMedicalStatus as SvcMedicalStatus
    from .medical.tools import SvcMedicalToolkit as SvcMedicalToolkit
    from .observe.otel import (
        SvcOpenTelemetryCallbackHandler as SvcOpenTelemetryCallbackHandler,
    )
    from .observe.usage import ModelUsage as ModelUsage
    from .observe.usage import SvcUsageCallbackHandler as SvcUsageCallbackHandler
    from .privacy.private_runs import PrivateCallbacks as PrivateCallbacks
    from .privacy.pseudonyms import PseudonymRestorer as PseudonymRestorer
    from .privacy.pseudonyms import Pseudonyms as Pseudonyms
    from .quota.budget_middleware import SvcBudgetMiddleware as SvcBudgetMiddleware
    from .quota.limiter import BudgetUse as BudgetUse
    from .quota.limiter import SvcBudget as SvcBudget
    from .quota.limiter import bulk_priority as bulk_priority
    from .quota.quota import Plan as Plan
    from .quota.quota import QuotaLimit as QuotaLimit
    from .quota.quota import QuotaSnapshot as QuotaSnapshot
    from .quota.quota import SvcQuota as SvcQuota
    from .tools.general import SvcAnalyzeImage as SvcAnalyzeImage
    from .tools.general import SvcGenerateImage as SvcGenerateImage
    from .tools.general import SvcToolkit as SvcToolkit
    from .tools.general import SvcTranslate as SvcTranslate

_HOMES = {
    "citations.middleware": "SvcCitations",
    "chat.chat_models": "ChatSvc register",
    "chat.interfaces": "ListedModel",
    "errors": (
        "SvcAPIError SvcAuthenticationError SvcBadRequestError SvcBudgetError "
        "SvcConnectionError SvcContextOverflowError SvcError SvcNotFoundError "
        "SvcOutputError SvcPermissionDeniedError SvcRateLimitError SvcRequestError "
        "SvcResponseError SvcServerError SvcStreamError SvcTimeoutError"
    ),
    "images": "ImageStore",
    "medical.fhir": "FhirReport",
    "medical.images": "DicomImage",
    "medical.patient": "PatientContext",
    "medical.result": "ClinicalReceipt ClinicalResult",
    "medical.tools": (
        "SvcCancerRisk SvcDecisionSupport SvcMedicalConsult SvcMedicalStatus "
        "SvcMedicalToolkit"
    ),
    "observe.otel": "SvcOpenTelemetryCallbackHandler",
    "observe.usage": "ModelUsage SvcUsageCallbackHandler",
    "privacy.private_runs": "PrivateCallbacks",
    "privacy.pseudonyms": "PseudonymRestorer Pseudonyms",
    "quota.budget_middleware": "SvcBudgetMiddleware",
    "quota.limiter": "BudgetUse SvcBudget bulk_priority",
    "quota.quota": "Plan QuotaLimit QuotaSnapshot SvcQuota",
    "tools.general": "SvcAnalyzeImage SvcGenerateImage SvcToolkit SvcTranslate",
}
"""Each public name, by the module that has it."""

_NAMES = sorted(["__version__", *" ".join(_HOMES.values()).split()])

if not TYPE_CHECKING:  # so that type checkers find a misspelt name
    __all__ = _NAMES  # noqa: PLE0605  # so that a name is written in two places and not in three
    __getattr__ = lazy(
        __name__,
        _HOMES,
        elsewhere={
            "SvcChat": "the chat model is ChatSvc",
            "SvcLLM": 'ChatSvc(interface="general") asks the same endpoint, and takes a text, too',
            "SvcEmbeddings": "the platform has no embeddings; use those of any other package",
        },
    )


def __dir__() -> list[str]:
    return _NAMES
