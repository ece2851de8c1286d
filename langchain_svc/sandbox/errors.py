"""A refused request, and how each interface words it.

v1 API, section 7, shows an error body and one combination of `type` and `code`; the other
combinations are the sandbox's choice. The general and medical documents show no error body.
"""

_REQUEST = "invalid_request_error"

# status -> (type, code) on v1. 401 is the documented combination.
_V1_KINDS = {
    400: (_REQUEST, "invalid_request"),
    401: (_REQUEST, "invalid_api_key"),
    403: ("permission_error", "not_authorized"),
    404: (_REQUEST, "not_found"),
    405: (_REQUEST, "method_not_allowed"),
    413: (_REQUEST, "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    500: ("server_error", "internal_error"),
    503: ("server_error", "service_unavailable"),
}

_MESSAGES = {
    400: "The request is invalid.",
    401: "The API key is missing or invalid.",
    403: "The API key is valid but not authorized for this resource.",
    404: "The requested resource was not found.",
    429: "Too many requests.",
    500: "Internal server error.",
    503: "The service is temporarily unavailable.",
}


class Problem(Exception):  # noqa: N818 - it is a value that travels by raise, not a defect
    """A refusal with its status; the message names fields, never their values."""

    def __init__(
        self,
        status: int,
        message: str | None = None,
        *,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.status = status
        self.message = message or _MESSAGES.get(status, f"The service answered {status}.")
        self.code = code
        self.headers = headers or {}
        super().__init__(self.message)


def v1_body(problem: Problem) -> dict[str, object]:
    """Return the documented v1 error body."""
    fallback = ("server_error", "internal_error") if problem.status >= 500 else _V1_KINDS[400]  # noqa: PLR2004
    kind, code = _V1_KINDS.get(problem.status, fallback)
    return {"error": {"message": problem.message, "type": kind, "code": problem.code or code}}


def general_body(problem: Problem) -> dict[str, object]:
    """Return the general interface's error body (not shown: the sandbox's choice)."""
    return {"success": False, "error": problem.message}


def medical_body(problem: Problem) -> dict[str, object]:
    """Return the medical interface's error body (not shown: the sandbox's choice)."""
    return {"error": problem.message}
