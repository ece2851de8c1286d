"""`langchain-svc ask`: one question, from the command line or stdin, and its answer.

A cut answer is printed as far as it came, and the exit code says that it is not whole.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import add_ai_message_chunks

import langchain_svc as svc

from .._wire import is_cut
from .terminal import (
    CHAT_OPTIONS,
    CUT,
    MisuseError,
    add_options,
    emit_json,
    is_terminal,
    model_settings,
    new_model,
    read_schema,
    suggests_model,
    tell,
    write_stream,
)

_MORE = "a higher --max-tokens lets it end, unless a filter cut it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = (
        "Ask one question. Words need no quotes. Piped text is added after the question: "
        "`git diff | langchain-svc ask review this`. The exit code is 3 if the answer was cut off."
    )
    parser.add_argument(
        "question",
        nargs="*",
        help="the question; - (or nothing, in a pipe) reads it from stdin",
    )
    add_options(parser, "--interface", *CHAT_OPTIONS, "--json", "--schema")


def run(args: argparse.Namespace) -> int:
    """Ask, and print the answer."""
    messages = []
    if args.system:
        messages.append(("system", args.system))
    messages.append(("user", _question(args.question)))
    schema = read_schema(args.schema) if args.schema else None
    with new_model(**model_settings(args)) as model, suggests_model(model):
        answer: AIMessage
        start = time.monotonic()
        if schema is not None:
            answer = _print_object(model, messages, schema, whole=args.json)
        elif args.json:
            answer = model.invoke(messages)
            emit_json(_record(answer))
        else:
            chunks: list[AIMessageChunk] = []
            write_stream(model.stream(messages), chunks)
            answer = add_ai_message_chunks(*chunks)
        seconds = time.monotonic() - start
    if is_terminal(sys.stderr):
        tell(usage_line(answer, seconds))
    reason = answer.response_metadata.get("finish_reason")
    if schema is None and is_cut(reason):  # an object was checked, and is whole
        tell(
            f"langchain-svc: the answer was cut off (finish_reason {reason!r}): {_MORE}"
        )
        return CUT
    return 0


def _print_object(
    model: svc.ChatSvc,
    messages: list[tuple[str, str]],
    schema: dict[str, Any],
    *,
    whole: bool,
) -> AIMessage:
    """Ask for an object and print it, or with `whole` the whole answer."""
    structured = model.with_structured_output(schema, include_raw=True)
    result = structured.invoke(messages)
    if result["parsing_error"] is not None:
        raise result["parsing_error"]
    answer: AIMessage = result["raw"]
    if whole:
        emit_json({"object": result["parsed"], **_record(answer)})
    else:
        emit_json(result["parsed"])
    return answer


def _question(words: list[str]) -> str:
    """The question of the command line, followed by what stdin holds.

    Raises:
        MisuseError: There is none.
    """
    parts = [" ".join(word for word in words if word != "-")]
    if sys.stdin is not None and ("-" in words or not is_terminal(sys.stdin)):
        parts.append(_piped_text())
    question = "\n\n".join(part for part in parts if part.strip())
    if not question:
        raise MisuseError(
            "no question given: write it after `langchain-svc ask`, or pipe one in"
        )
    return question


def _piped_text() -> str:
    """What stdin holds.

    Raises:
        MisuseError: It is not text. Python reads the bytes of a picture as halves of letters.
    """
    text = sys.stdin.read()
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise MisuseError("what is piped in is not text in UTF-8")
    return text.strip()


def _record(answer: AIMessage) -> dict[str, object]:
    return {
        "content": answer.text,
        "usage": answer.usage_metadata,
        "metadata": answer.response_metadata,
    }


def usage_line(answer: AIMessage, seconds: float) -> str:
    """What an answer took, in one line."""
    usage = answer.usage_metadata
    metadata = answer.response_metadata
    parts = [str(metadata.get("model_name") or "the model")]
    if usage:
        tokens = f"{usage['input_tokens']:,} -> {usage['output_tokens']:,} tokens"
        if metadata.get("usage_source") == "estimated":
            tokens += " (estimated)"
        parts.append(tokens)
    parts.append(f"{seconds:.2f} s")
    remaining = (metadata.get("rate_limit") or {}).get("remaining")
    if remaining is not None:
        noun = "request" if remaining == 1 else "requests"
        parts.append(f"{remaining:,} {noun} left")
    return "  ".join(parts)
