"""Everything of a turn that happens before it is sent: what can go wrong there goes wrong here."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage

from .._base.tokens import TOKENS_A_TURN, estimate_tokens
from .._calls import FORMATS, NO_OFFER, Format
from .._service import reveal_secret
from ..errors import SvcContextOverflowError, SvcRequestError
from .messages import (
    answers_at_once,
    conversation_nonce,
    has_calls,
    texts_read,
    to_wire,
)
from .options import CallOptions, ChatModel
from .readers import AnswerReader, TextReader
from .turn import NewExchange, Turn


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
