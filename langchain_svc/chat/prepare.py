"""Everything of a turn that happens before it is sent: what can go wrong there goes wrong here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    get_args,
)

from langchain_core.messages import BaseMessage
from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from .._base.safe_errors import safe_repr
from .._base.tokens import TOKENS_A_TURN, estimate_tokens
from .._calls import FORMATS, NO_OFFER, Format
from .._client import Limits
from .._settings import (
    ALIASES,
    LimitSettings,
    bounded_number,
    limits_of,
    resolve_aliases,
    suggest_name,
)
from .._wire import v1
from ..config import check_headers, reveal_secret
from ..errors import SvcContextOverflowError, SvcRequestError
from .messages import (
    answers_at_once,
    conversation_nonce,
    has_calls,
    texts_read,
    to_wire,
)
from .readers import AnswerReader, TextReader
from .turn import NewExchange, Turn

if TYPE_CHECKING:
    from typing import Self

    from langchain_core.language_models import ModelProfile

    from .._calls import ToolFormat
    from .._settings import Secret
    from .._text import Pseudonymizer
    from .interfaces import ChatInterface
    from .messages import SystemRole
    from .structured import ResponseFormat
    from .tools import ToolRequest


# -- options ---------------------------------------------------------------------------------------
# What one call may set differently from its model, checked as the constructor would.


def _check_model(value: object) -> str:
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


def _check_stop(value: object) -> list[str] | None:
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


def _check_on_cut(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and value in get_args(_Cut):
        return value
    raise ValueError(
        "must be None (a call or an object goes on, text is marked), 'continue' (text goes on, "
        f"too), 'mark' or 'error', not {safe_repr(value)}"
    )


def _is_nested(value: object, levels: int) -> bool:
    """Whether objects and lists are nested deeper than this."""
    if not isinstance(value, (Mapping, list, tuple)):
        return False
    parts = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(_is_nested(part, levels - 1) for part in parts)


def _check_continue_by(value: object) -> str:
    if isinstance(value, str) and value in get_args(_Way):
        return value
    raise ValueError(
        "must be 'ask' (in a turn of the user) or 'prefill' (the answer is the last turn), "
        f"not {safe_repr(value)}"
    )


def _check_extra_body(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object of fields to send, such as {'top_p': 0.9}")  # noqa: TRY004
    reserved = v1.CHAT_FIELDS & value.keys()
    if reserved:
        raise ValueError(
            f"must not hold {sorted(reserved)}: these are parameters of their own"
        )
    if _is_nested(value, _DEEPEST):
        raise ValueError(f"must not be nested more than {_DEEPEST} deep")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("must hold nothing but what JSON can say") from None
    return dict(value)


_Cut = Literal["continue", "mark", "error"]
OnCut = Annotated[_Cut | None, BeforeValidator(_check_on_cut)]
_Way = Literal["ask", "prefill"]
ContinueBy = Annotated[_Way, BeforeValidator(_check_continue_by)]
"""How a model is told to go on with an answer that was cut off."""
ModelId = Annotated[str, BeforeValidator(_check_model)]
Temperature = Annotated[
    float, bounded_number(v1.LOWEST_TEMPERATURE, v1.HIGHEST_TEMPERATURE, text=True)
]
MaxTokens = Annotated[int, bounded_number(1, whole=True, text=True)]
Stop = Annotated[list[str], BeforeValidator(_check_stop)]
ExtraBody = Annotated[dict[str, Any], BeforeValidator(_check_extra_body)]

_Headers = Annotated[dict[str, str], AfterValidator(check_headers)]

_DEEPEST = 100  # levels, which whatever reads JSON can read

# What an answer is to be.
ANSWER_OPTIONS = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "response_format"}
)
# Those and LangChain's own, which have done their work before, are not checked here.
_PASSED = ANSWER_OPTIONS | {"stream", "strict"}
_CHAT_OPTIONS = _PASSED | {"extra_headers"}


class ChatModel(LimitSettings, Protocol):
    """What a turn reads of its `ChatSvc`."""

    overrides: ClassVar[frozenset[str]]
    """The names of the settings of which one call may have others."""

    @classmethod
    def _setting_type(cls, name: str) -> Any: ...

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Self: ...

    @property
    def model(self) -> str | None: ...
    @property
    def temperature(self) -> float | None: ...
    @property
    def pseudonyms(self) -> Pseudonymizer | None: ...
    @property
    def chat_interface(self) -> ChatInterface: ...
    @property
    def api_key(self) -> Secret: ...
    @property
    def profile(self) -> ModelProfile | None: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def stop(self) -> list[str] | None: ...
    @property
    def system_role(self) -> SystemRole: ...
    @property
    def tool_format(self) -> ToolFormat: ...
    @property
    def stream_tool_args(self) -> bool: ...
    @property
    def max_repairs(self) -> int: ...
    @property
    def on_cut(self) -> str | None: ...
    @property
    def max_continuations(self) -> int: ...
    @property
    def continue_by(self) -> str: ...
    @property
    def reasoning(self) -> str: ...
    @property
    def image_inputs(self) -> str: ...
    @property
    def extra_body(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class CallOptions:
    """What one call of a chat model is to do.

    Attributes:
        model: The model with the settings of this call.
        limits: How long the call may take.
        offer: The tools that are described to the model.
        response_format: What an answer without calls is to fit.
        extra_headers: Headers of this call's requests.
    """

    model: ChatModel
    limits: Limits
    offer: ToolRequest | None
    response_format: ResponseFormat | None
    extra_headers: Mapping[str, str] | None


def call_options(
    model: ChatModel, stop: list[str] | None, settings: Mapping[str, Any]
) -> CallOptions:
    """The options of one call of a chat model.

    Raises:
        SvcRequestError: A name is unknown or a value out of its bounds; or a tool or a schema
            cannot be read.
    """
    model, others = _call_settings(model, stop, settings)
    offer = None
    response_format = None
    if others.keys() & ANSWER_OPTIONS:
        from .tools import tool_request  # noqa: PLC0415  # most calls have none

        offer = tool_request(others)
    wanted = others.get("response_format")
    if wanted is not None:
        from .structured import read_response_format  # noqa: PLC0415  # most want a text

        response_format = read_response_format(wanted)
        if offer is not None and offer.required:
            response_format = None  # an answer without calls is none
    limits = limits_of(model)
    return CallOptions(
        model, limits, offer, response_format, others.get("extra_headers")
    )


def _call_settings(
    model: ChatModel, stop: list[str] | None, settings: Mapping[str, Any]
) -> tuple[ChatModel, dict[str, Any]]:
    """The model with what a call sets differently, and what else the call has, both checked.

    Raises:
        SvcRequestError: A name is unknown or a value out of its bounds.
    """
    if stop is not None:
        settings = {**settings, "stop": stop}
    if not settings:
        return model, {}
    kind = type(model)
    valid_names = kind.overrides | _CHAT_OPTIONS
    if not settings.keys() <= valid_names:
        settings = _resolve_names(settings, valid_names, f"A call of {kind.__name__}")
    others = {}
    own = {}
    for name, value in settings.items():
        if name in _PASSED:
            others[name] = value
            continue
        checked = _checked(kind, name, value)
        if name in kind.overrides:
            own[name] = checked
        else:
            others[name] = checked
    if "extra_body" in own:
        own["extra_body"] = model.extra_body | own["extra_body"]
    if own:
        model = model.model_copy(update=own)
    return model, others


def _resolve_names(
    settings: Mapping[str, Any], valid_names: frozenset[str], owner: str
) -> dict[str, Any]:
    try:
        resolved = resolve_aliases(settings, valid_names, owner)
    except ValueError as error:
        raise SvcRequestError(str(error)) from None
    for name in resolved.keys() - valid_names:
        raise SvcRequestError(
            f"{owner} does not take {name!r}; {suggest_name(name, valid_names)}"
        )
    return resolved


@cache
def _check_of(kind: type[ChatModel], name: str) -> TypeAdapter[Any]:
    if name == "extra_headers":
        return TypeAdapter(_Headers)
    return TypeAdapter(kind._setting_type(name))  # noqa: SLF001  # our own class


def _checked(kind: type[ChatModel], name: str, value: object) -> Any:
    try:
        return _check_of(kind, name).validate_python(value)
    except ValidationError as error:
        details = error.errors(
            include_url=False, include_context=False, include_input=False
        )
        problem = details[0]["msg"].removeprefix("Value error, ")
    raise SvcRequestError(f"{name} {problem}")


def traced_options(
    kind: type[ChatModel], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of a call that callbacks may see, which run before they are checked.

    Each has the name of the model's own setting, whose place it takes. No header is among them, and
    no unknown name, which may be `api_key`.
    """
    if not settings:
        return {}
    valid_names = (kind.overrides | _CHAT_OPTIONS) - {"extra_headers"}
    named = [(ALIASES.get(name, name), value) for name, value in settings.items()]
    return {name: value for name, value in named if name in valid_names}


# -- prepare ---------------------------------------------------------------------------------------


def new_turn(
    new_exchange: NewExchange,
    messages: Sequence[BaseMessage],
    options: CallOptions,
    *,
    stream: bool,
) -> Turn:
    """A turn whose first exchange is ready to run.

    Raises:
        SvcRequestError: The conversation or a setting cannot be sent.
        SvcContextOverflowError: It cannot fit into the model's window.
    """
    model = options.model
    interface = model.chat_interface
    # A call's own settings, and those that were assigned later, are not checked before.
    problem = interface.problem(model)
    if problem is not None:
        raise SvcRequestError(problem)
    holds_calls = has_calls(messages)
    calls_before = options.offer is None and holds_calls
    tool_format = FORMATS[model.tool_format]
    nonce = ""
    if holds_calls:
        nonce = conversation_nonce(messages, reveal_secret(model.api_key) or "")
    preamble = ""
    if options.offer or options.response_format or calls_before:
        preamble = _preamble(options, tool_format, calls_before=calls_before)
        reader: AnswerReader = _reader_of(messages, options, stream=stream)
    else:
        reader = TextReader(split=model.reasoning == "split")
    turns = to_wire(
        messages,
        system_role=model.system_role,
        preamble=preamble,
        tool_format=tool_format,
        nonce=nonce,
        can_call=options.offer is not None,
        omit_images=model.image_inputs == "omit",
    )
    _refuse_too_long(model, [turn["content"] for turn in turns])
    if model.pseudonyms is not None:
        for turn in turns:
            turn["content"] = model.pseudonyms.hide(turn["content"])
    return Turn(
        new_exchange,
        turns,
        model=model.model,
        stops=model.stop or (),
        reader=reader,
        as_one_text=interface.as_one_text,
        pseudonyms=model.pseudonyms,
        defuse_text=tool_format.written,
        on_cut=model.on_cut,
        max_continuations=model.max_continuations,
        continue_by=model.continue_by,
        max_reasks=model.max_repairs,
    )


def _reader_of(
    messages: Sequence[BaseMessage], options: CallOptions, *, stream: bool
) -> AnswerReader:
    """A reader of calls of tools, or of JSON that fits a schema."""
    # Here and not above: these modules are two thirds of what importing ChatSvc takes.
    from .calls_reader import CallsReader  # noqa: PLC0415
    from .structured import JsonReader  # noqa: PLC0415  # the same
    from .tools import ToolRequest  # noqa: PLC0415  # the same

    model = options.model
    json_reader = None
    if options.response_format is not None:
        json_reader = JsonReader(
            options.response_format, streaming=stream, pseudonyms=model.pseudonyms
        )
    if options.offer is None and json_reader is not None:
        return json_reader
    return CallsReader(
        options.offer or ToolRequest([]),
        json_reader,
        tool_format=FORMATS[model.tool_format],
        thinks=not answers_at_once(messages, model.model),
        stream_arguments=stream and model.stream_tool_args,
        split_reasoning=model.reasoning == "split",
        mark_cuts=model.on_cut == "mark",
        texts_read=partial(texts_read, messages),
        pseudonyms=model.pseudonyms,
    )


def count_prompt(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    tools: Sequence[Any],
    count: Callable[[str], int],
) -> int:
    """About how many tokens a conversation has as it would be sent, with its tools."""
    from .tools import ToolList  # noqa: PLC0415  # the same

    turns = to_wire(
        messages,
        system_role=model.system_role,
        omit_images=model.image_inputs == "omit",
    )
    schemas = map(json.dumps, ToolList(tools))
    return sum(count(turn["content"]) + TOKENS_A_TURN for turn in turns) + sum(
        map(count, schemas)
    )


def _preamble(options: CallOptions, tool_format: Format, *, calls_before: bool) -> str:
    """The instructions for tools and JSON, which stand before the conversation."""
    parts: list[str] = []
    among_tools = options.offer is not None
    if options.offer is not None:
        parts.append(options.offer.preamble(tool_format))
    if calls_before:
        parts.append(NO_OFFER)
    if options.response_format is not None:
        parts.append(options.response_format.preamble(among_tools=among_tools))
    return "\n\n".join(parts)


# An estimate may be off by half: only a prompt beyond that surely does not fit.
_SURE_FACTOR = 1.5


def _refuse_too_long(model: ChatModel, prompt: list[str]) -> None:
    name = model.model
    profile = model.profile or {}
    if profile.get("name", name) != name:  # of the model that another one replaces
        profile = model.chat_interface.profile(name) or {}
    window = profile.get("max_input_tokens")
    # Nearly no token is shorter than a character.
    if not window or sum(map(len, prompt)) <= window:
        return
    count = sum(map(estimate_tokens, prompt))
    if count > _SURE_FACTOR * window:
        raise SvcContextOverflowError(
            f"The prompt has about {count:,} tokens and cannot fit into the {window:,} of "
            f"{name!r}; nothing was sent. Shorten it or choose a model with a larger window"
        )
