"""The errors of this package, as one tree.

Every failure of this package is a `SvcError`, and each is also the matching `ModelError` of
LangChain, so that agents, retry and fallback middleware decide by `is_retryable`:

    SvcError
    ├── SvcRequestError            nothing was sent: a setting, parameter or message is wrong
    │   └── SvcBudgetError             a try that would exceed a SvcBudget was not sent
    ├── SvcAPIError                the service answered with an error status
    │   ├── SvcBadRequestError         400
    │   │   └── SvcContextOverflowError    the prompt cannot fit (also raised before sending)
    │   ├── SvcAuthenticationError     401
    │   ├── SvcPermissionDeniedError   403
    │   ├── SvcNotFoundError           404
    │   ├── SvcRateLimitError          429
    │   └── SvcServerError             5xx
    ├── SvcConnectionError         the service could not be reached, or the answer was lost
    ├── SvcTimeoutError            no answer in time
    ├── SvcStreamError             a stream broke, stalled or carried an error; see `.partial`
    ├── SvcResponseError           an answer that no reader understands
    └── SvcOutputError             the model's answer is not what was asked for

`str(error)` never holds a key or patient data. With `privacy`, pseudonyms or on the medical
interface it repeats no word of the service's message; without, no 20 characters in a row of what
was sent. No error has a `.response`: LangChain would copy its headers and body into traces.
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from typing import Any

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
    OutputParserException,
)


class SvcError(ModelError):
    """Any failure of this package.

    Attributes:
        message: What happened and what to do next, safe to log.
        retries: How many times the request was sent again before this was raised.
        waited: Seconds spent waiting between those tries.
        retry_after: Seconds until another try makes sense, where that is known.
        receipt: What a medical tool's call sent, and how each try ended, as a `ClinicalReceipt`;
            None where nothing was tried, and in all other errors.
    """

    retry_after: float | None = None
    receipt: Any = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.retries = 0
        self.waited: float = 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take keyword arguments, which BaseException would not pass when unpickled.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class SvcRequestError(SvcError, ModelInvalidRequestError, ValueError):
    """Nothing was sent, because a setting, a parameter or a message is wrong."""


class SvcBudgetError(SvcRequestError):
    """A try was not sent, because it would exceed a `SvcBudget`.

    Nothing was sent if `retries` is 0. Otherwise an earlier try of the call was sent and failed.

    Attributes:
        used: The `requests`, `tokens` and `cost` that were used.
        left: What is left of each; None where the budget does not limit it.
    """

    def __init__(self, message: str, *, used: Any = None, left: Any = None) -> None:
        super().__init__(message)
        self.used = used
        self.left = left
        # Of the budget whose bound it is, for `SvcBudgetMiddleware`.
        self.budget_id = ""


class SvcAPIError(SvcError):
    """The service answered with an error status.

    Attributes:
        status_code: The HTTP status; None where the error was foreseen and nothing was sent.
        type: The `type` of the service's error object, if it sent one (v1 API, section 7).
        code: The `code` of that object, if any.
        request_id: The service's id of the request, if it sent one.
        retry_after: Seconds after which the service said to come back, if it said so.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        type: str | None = None,  # noqa: A002  # the name on the wire
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.type = type
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after


class SvcBadRequestError(SvcAPIError, ModelInvalidRequestError):
    """400: the service found the request invalid."""


class SvcContextOverflowError(SvcBadRequestError, ContextOverflowError):
    """The prompt is larger than the model's context window."""


class SvcAuthenticationError(SvcAPIError, ModelAuthenticationError):
    """401: the key is missing or invalid."""


class SvcPermissionDeniedError(SvcAPIError, ModelPermissionDeniedError):
    """403: the key is valid but not allowed to do this."""


class SvcNotFoundError(SvcAPIError, ModelNotFoundError):
    """404: no such model or path."""


class SvcRateLimitError(SvcAPIError, ModelRateLimitError):
    """429: the plan's limit is used up.

    It is also raised before sending, with `status_code` None, where a `SvcQuota` knows that a
    call's turn comes after its deadline.

    `is_retryable` is False on an instance whose `retry_after` lies beyond what the caller
    allows to wait: trying again soon cannot help.
    """

    is_retryable = True


class SvcServerError(SvcAPIError, ModelAPIError):
    """5xx: the service failed."""

    is_retryable = True


class SvcConnectionError(SvcError, ModelConnectionError):
    """The service could not be reached, or its answer was lost on the way."""


class SvcTimeoutError(SvcError, ModelTimeoutError):
    """No answer within `timeout` or `deadline`."""


class SvcStreamError(SvcError, ModelConnectionError):
    """A stream broke, stalled or carried an error before its end.

    Attributes:
        partial: The text that had arrived. It is model output: it is not part of `str(error)`.
    """

    def __init__(self, message: str, *, partial: str = "") -> None:
        super().__init__(message)
        self.partial = partial


class SvcResponseError(SvcError, ModelAPIError):
    """The service answered, but no reader understands the answer.

    Attributes:
        status_code: The HTTP status of that answer.
    """

    is_retryable = False

    def __init__(self, message: str, *, status_code: int | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code


class SvcOutputError(SvcError, OutputParserException):
    """The model's answer is not what was asked for, even after asking again.

    It does not fit the schema, or calls no function although one had to be called.

    Attributes:
        raw: The answer's text as the model wrote it.
        problems: What is wrong with it, one sentence each. Like `raw` it may repeat the answer,
            so neither is part of `str(error)`.
        usage: The tokens that all tries took, as LangChain's `usage_metadata`.
        finish_reason: Why the answer ended, where that is what is wrong with it: it was cut off.
    """

    def __init__(
        self,
        message: str,
        *,
        problems: Sequence[str] = (),
        raw: str = "",
        usage: Any = None,
        finish_reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.raw = raw
        self.finish_reason = finish_reason
        self.problems: list[str] = list(problems)
        self.usage = usage
        self.llm_output = raw
