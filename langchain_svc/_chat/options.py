"""What one call may set differently from its model, checked as the constructor would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from .._safe_errors import safe_repr
from .._service import (
    ALIASES,
    Limits,
    Retries,
    Seconds,
    bounded_number,
    resolve_aliases,
    suggest_name,
)
from .._wire import v1
from ..config import check_headers
from ..errors import SvcRequestError

if TYPE_CHECKING:
    from .structured import ResponseFormat
    from .tools import ToolRequest


def _check_model(value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isprintable() or value != value.strip():
        raise ValueError("must be a model id, such as 'svc-pro' (list_models() names them)")
    return value


def _check_stop(value: Any) -> list[str] | None:
    if value is None:
        return None
    if isinstance(value, str):  # other integrations take one text, and "" for none
        return [value] if value else []
    if not isinstance(value, (list, tuple)) or not all(isinstance(s, str) and s for s in value):
        raise ValueError(f"must be a list of texts, none of them empty, not {safe_repr(value)}")
    return list(value)


def _check_extra_body(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object of fields to send, such as {'top_p': 0.9}")  # noqa: TRY004
    taken = v1.CHAT_FIELDS & value.keys()
    if taken:
        raise ValueError(f"must not hold {sorted(taken)}: these are parameters of their own")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("must hold nothing but what JSON can say") from None
    return dict(value)


ModelId = Annotated[str, BeforeValidator(_check_model)]
Temperature = Annotated[
    float, bounded_number(v1.LOWEST_TEMPERATURE, v1.HIGHEST_TEMPERATURE, text=True)
]
MaxTokens = Annotated[int, bounded_number(1, whole=True, text=True)]
Stop = Annotated[list[str], BeforeValidator(_check_stop)]
ExtraBody = Annotated[dict[str, Any], BeforeValidator(_check_extra_body)]

# What one call may set differently, with the same checks as the constructor's.
OVERRIDES: dict[str, TypeAdapter[Any]] = {
    "model": TypeAdapter(ModelId),
    "temperature": TypeAdapter(Temperature | None),
    "max_tokens": TypeAdapter(MaxTokens | None),
    "timeout": TypeAdapter(Seconds | None),
    "deadline": TypeAdapter(Seconds | None),
    "max_retries": TypeAdapter(Retries),
    "max_repairs": TypeAdapter(Retries),
    "stop": TypeAdapter(Stop | None),
    "n": TypeAdapter(Annotated[int, bounded_number(1, whole=True, text=True)] | None),
    "extra_body": TypeAdapter(ExtraBody),
    "extra_headers": TypeAdapter(Annotated[dict[str, str], AfterValidator(check_headers)]),
}
# What an answer is to be. These are read where they are used.
_ANSWER_OPTIONS = frozenset({"tools", "tool_choice", "parallel_tool_calls", "response_format"})
_KNOWN = frozenset((*OVERRIDES, *_ANSWER_OPTIONS))
# LangChain's own parameters, which have done their work before a call reaches us.
_LANGCHAIN_OPTIONS = frozenset({"stream", "strict"})


@dataclass(frozen=True)
class CallOptions:
    """The settings of one call."""

    model: str
    temperature: float | None
    max_tokens: int | None
    stop: list[str] | None
    max_repairs: int
    n: int
    limits: Limits
    offer: ToolRequest | None
    response_format: ResponseFormat | None
    extra_body: Mapping[str, Any]
    extra_headers: Mapping[str, str] | None


def check_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """What one call of ChatSvc sets differently, by name."""
    return read_options(given, OVERRIDES, "A call of ChatSvc", _ANSWER_OPTIONS | _LANGCHAIN_OPTIONS)


def read_options(
    given: Mapping[str, Any],
    checks: Mapping[str, TypeAdapter[Any]],
    who: str,
    passed: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """What a call sets differently, in our words; what is `passed` is checked where it is used.

    Raises:
        SvcRequestError: A name is unknown or a value out of its bounds.
    """
    known = checks.keys() | passed
    if not given.keys() <= known:
        try:
            given = resolve_aliases(given, known, who)
        except ValueError as error:
            raise SvcRequestError(str(error)) from None
        for name in given.keys() - known:
            raise SvcRequestError(f"{who} does not take {name!r}; {suggest_name(name, known)}")
    return {
        name: value if name in passed else _checked(name, value, checks[name])
        for name, value in given.items()
    }


def _checked(name: str, value: Any, check: TypeAdapter[Any]) -> Any:
    try:
        return check.validate_python(value)
    except ValidationError as error:
        said = error.errors(include_url=False, include_context=False, include_input=False)
        raise SvcRequestError(f"{name} {said[0]['msg'].removeprefix('Value error, ')}") from None


def alias_of(name: str) -> property:
    """An attribute under the name that other integrations use."""
    return property(attrgetter(name), doc=f"The same as `{name}`.")


def traced_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """What callbacks may be told of the parameters of a call.

    They are told before the parameters are checked. So no header is among them, and no unknown
    name, which may be `api_key`.
    """
    known = (_KNOWN | _LANGCHAIN_OPTIONS | ALIASES.keys()) - {"extra_headers"}
    return {name: value for name, value in given.items() if name in known}


def read_answer_options(
    given: Mapping[str, Any],
) -> tuple[ToolRequest | None, ResponseFormat | None]:
    """The tools that a call offers and the JSON that it asks for.

    Raises:
        SvcRequestError: A tool, a choice or a format cannot be read.
    """
    if not given.keys() & _ANSWER_OPTIONS:
        return None, None
    from .structured import read_response_format  # noqa: PLC0415  # most calls want a text
    from .tools import tool_request  # noqa: PLC0415  # the same

    offered = tool_request(
        given.get("tools"),
        given.get("tool_choice"),
        parallel=given.get("parallel_tool_calls"),
    )
    return offered, read_response_format(given.get("response_format"))
