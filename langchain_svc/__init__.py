"""Chat models and tools of a hosted AI platform, for LangChain.

Names are imported when they are first asked for, which keeps `import langchain_svc` quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base.lazy import lazy
from ._version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers, which know no names made at run time
    from .chat import ChatSvc as ChatSvc
    from .chat import ListedModel as ListedModel
    from .chat import SvcCitations as SvcCitations
    from .chat import register as register
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
    from .medical import ClinicalReceipt as ClinicalReceipt
    from .medical import ClinicalResult as ClinicalResult
    from .medical import DicomImage as DicomImage
    from .medical import FhirReport as FhirReport
    from .medical import PatientContext as PatientContext
    from .medical import SvcCancerRisk as SvcCancerRisk
    from .medical import SvcDecisionSupport as SvcDecisionSupport
    from .medical import SvcMedicalConsult as SvcMedicalConsult
    from .medical import SvcMedicalStatus as SvcMedicalStatus
    from .medical import SvcMedicalToolkit as SvcMedicalToolkit
    from .observe import ModelUsage as ModelUsage
    from .observe import (
        SvcOpenTelemetryCallbackHandler as SvcOpenTelemetryCallbackHandler,
    )
    from .observe import SvcUsageCallbackHandler as SvcUsageCallbackHandler
    from .privacy import PrivateCallbacks as PrivateCallbacks
    from .privacy import PseudonymRestorer as PseudonymRestorer
    from .privacy import Pseudonyms as Pseudonyms
    from .quota import BudgetUse as BudgetUse
    from .quota import Plan as Plan
    from .quota import QuotaLimit as QuotaLimit
    from .quota import QuotaSnapshot as QuotaSnapshot
    from .quota import SvcBudget as SvcBudget
    from .quota import SvcBudgetMiddleware as SvcBudgetMiddleware
    from .quota import SvcQuota as SvcQuota
    from .quota import bulk_priority as bulk_priority
    from .tools import SvcAnalyzeImage as SvcAnalyzeImage
    from .tools import SvcGenerateImage as SvcGenerateImage
    from .tools import SvcToolkit as SvcToolkit
    from .tools import SvcTranslate as SvcTranslate

_HOMES = {
    "privacy": "PrivateCallbacks PseudonymRestorer Pseudonyms",
    "quota": (
        "BudgetUse Plan QuotaLimit QuotaSnapshot SvcBudget SvcBudgetMiddleware SvcQuota "
        "bulk_priority"
    ),
    "chat": "ChatSvc ListedModel SvcCitations register",
    "errors": (
        "SvcAPIError SvcAuthenticationError SvcBadRequestError SvcBudgetError "
        "SvcConnectionError SvcContextOverflowError SvcError SvcNotFoundError SvcOutputError "
        "SvcPermissionDeniedError SvcRateLimitError SvcRequestError SvcResponseError "
        "SvcServerError SvcStreamError SvcTimeoutError"
    ),
    "images": "ImageStore",
    "medical": (
        "ClinicalReceipt ClinicalResult DicomImage FhirReport PatientContext SvcCancerRisk "
        "SvcDecisionSupport SvcMedicalConsult SvcMedicalStatus SvcMedicalToolkit"
    ),
    "observe": "ModelUsage SvcOpenTelemetryCallbackHandler SvcUsageCallbackHandler",
    "tools": "SvcAnalyzeImage SvcGenerateImage SvcToolkit SvcTranslate",
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
