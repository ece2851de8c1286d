"""What one call may set differently from its model, checked as the constructor would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from .._base.safe_errors import safe_repr
from .._service import (
    ALIASES,
    Limits,
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
    if (
        not isinstance(value, str)
        or not value
        or not value.isprintable()
        or value != value.strip()
    ):
        raise ValueError(
            "must be a model id, such as 'svc-pro' (list_models() names them)"
        )
    return value


def _check_stop(value: Any) -> list[str] | None:
    if value is None:
        return None
    if isinstance(value, str):  # other integrations take one text, and "" for none
        return [value] if value else []
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(s, str) and s for s in value
    ):
        raise ValueError(
            f"must be a list of texts, none of them empty, not {safe_repr(value)}"
        )
    return list(value)


def _check_on_cut(value: Any) -> str | None:
    if value is None or value in ON_CUT:
        return value  # type: ignore[no-any-return]  # as just checked
    raise ValueError(
        "must be None (a call or an object goes on, text is marked), 'continue' (text goes on, "
        f"too), 'mark' or 'error', not {safe_repr(value)}"
    )


def _check_extra_body(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object of fields to send, such as {'top_p': 0.9}")  # noqa: TRY004
    taken = v1.CHAT_FIELDS & value.keys()
    if taken:
        raise ValueError(
            f"must not hold {sorted(taken)}: these are parameters of their own"
        )
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("must hold nothing but what JSON can say") from None
    return dict(value)


ON_CUT = ("continue", "mark", "error")
OnCut = Annotated[
    Literal["continue", "mark", "error"] | None, BeforeValidator(_check_on_cut)
]
ModelId = Annotated[str, BeforeValidator(_check_model)]
Temperature = Annotated[
    float, bounded_number(v1.LOWEST_TEMPERATURE, v1.HIGHEST_TEMPERATURE, text=True)
]
MaxTokens = Annotated[int, bounded_number(1, whole=True, text=True)]
Stop = Annotated[list[str], BeforeValidator(_check_stop)]
ExtraBody = Annotated[dict[str, Any], BeforeValidator(_check_extra_body)]

_Headers = Annotated[dict[str, str], AfterValidator(check_headers)]

# What an answer is to be.
_ANSWER_OPTIONS = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "response_format"}
)
# Those and LangChain's own, which have done their work before, are not checked here.
_PASSED = _ANSWER_OPTIONS | {"stream", "strict"}
_CHAT_OPTIONS = _PASSED | {"extra_headers"}


@dataclass(frozen=True)
class CallOptions:
    """What one call of a chat model is to do."""

    settings: Any  # the model, with the settings of this call
    limits: Limits
    offer: ToolRequest | None
    response_format: ResponseFormat | None  # of an answer without calls
    extra_headers: Mapping[str, str] | None


def call_options(
    model: Any, stop: list[str] | None, given: Mapping[str, Any]
) -> CallOptions:
    """The options of one call of a chat model.

    Raises:
        SvcRequestError: As `call_settings`; or a tool or a schema cannot be read.
    """
    settings, others = call_settings(model, stop, given, _CHAT_OPTIONS)
    offer = response_format = None
    if others.keys() & _ANSWER_OPTIONS:
        from .structured import read_response_format  # noqa: PLC0415  # most calls want a text
        from .tools import tool_request  # noqa: PLC0415  # the same

        offer = tool_request(others)
        response_format = read_response_format(others.get("response_format"))
        if offer is not None and offer.required:
            response_format = None  # an answer without calls is none
    limits = settings._limits()  # noqa: SLF001  # our own class
    return CallOptions(
        settings, limits, offer, response_format, others.get("extra_headers")
    )


def call_settings(
    model: Any,
    stop: list[str] | None,
    given: Mapping[str, Any],
    more: frozenset[str] = frozenset(),
) -> tuple[Any, dict[str, Any]]:
    """The model with what a call sets differently, and what else the call has, both checked.

    Raises:
        SvcRequestError: A name is unknown or a value out of its bounds.
    """
    if stop is not None:
        given = {**given, "stop": stop}
    if not given:
        return model, {}
    kind = type(model)
    known = kind.overrides | more
    if not given.keys() <= known:
        who = f"A call of {kind.__name__}"
        try:
            given = resolve_aliases(given, known, who)
        except ValueError as error:
            raise SvcRequestError(str(error)) from None
        for name in given.keys() - known:
            raise SvcRequestError(
                f"{who} does not take {name!r}; {suggest_name(name, known)}"
            )
    others = {
        name: value if name in _PASSED else _checked(kind, name, value)
        for name, value in given.items()
    }
    own = {name: others.pop(name) for name in given.keys() & kind.overrides}
    if "extra_body" in own:
        own["extra_body"] = model.extra_body | own["extra_body"]
    return model.model_copy(update=own) if own else model, others


@cache
def _check_of(kind: Any, name: str) -> TypeAdapter[Any]:
    if name == "extra_headers":
        return TypeAdapter(_Headers)
    field = kind.model_fields[name]
    return TypeAdapter(Annotated[field.annotation, field])  # type: ignore[arg-type]  # it is a type


def _checked(kind: Any, name: str, value: Any) -> Any:
    try:
        return _check_of(kind, name).validate_python(value)
    except ValidationError as error:
        said = error.errors(
            include_url=False, include_context=False, include_input=False
        )
        raise SvcRequestError(
            f"{name} {said[0]['msg'].removeprefix('Value error, ')}"
        ) from None


def traced_options(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What callbacks, which are told first, may be told of a call's unchecked parameters.

    No header is among them, and no unknown name, which may be `api_key`.
    """
    known = (kind.overrides | _CHAT_OPTIONS | ALIASES.keys()) - {"extra_headers"}
    return {name: value for name, value in given.items() if name in known}
