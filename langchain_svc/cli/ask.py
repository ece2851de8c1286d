"""`langchain-svc ask`: one question, by words or by stdin, and its answer."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import add_usage

from ..chat_models import ChatSvc
from .terminal import (
    MisuseError,
    WordWriter,
    emit,
    is_terminal,
    new_model,
    read_schema,
    tell,
    write_stream,
)


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """The options of every command that asks a model."""
    parser.add_argument(
        "--model", metavar="ID", help="model id, as listed by `langchain-svc models`"
    )
    parser.add_argument("--system", metavar="TEXT", help="instructions for the model")
    parser.add_argument("--temperature", metavar="N", type=float, help="0 to 2")
    parser.add_argument("--max-tokens", metavar="N", type=int, help="maximum tokens of an answer")


def add_ask(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Ask one question. Words need no quotes. Piped text is added after the question: "
        "`git diff | langchain-svc ask review this`."
    )
    parser.add_argument(
        "question", nargs="*", help="the question; - (or nothing, in a pipe) reads it from stdin"
    )
    add_answer_options(parser)
    parser.add_argument("--json", action="store_true", help="the whole answer with usage, as JSON")
    parser.add_argument(
        "--schema", metavar="FILE", help="a JSON schema: the answer is an object that fits it"
    )
    parser.add_argument(
        "--no-stream", action="store_true", help="print the answer when it is complete"
    )
    parser.add_argument(
        "--usage",
        action="store_true",
        help="print a usage line on stderr, as terminals always get",
    )
    parser.set_defaults(run=_ask)


def _ask(args: argparse.Namespace) -> int:
    question = _question(args.question)
    asked = [("system", args.system)] if args.system else []
    asked.append(("user", question))
    schema = read_schema(args.schema) if args.schema else None
    with new_model(
        model=args.model, temperature=args.temperature, max_tokens=args.max_tokens
    ) as model:
        begun = time.monotonic()
        if schema is not None:
            answer = _print_object(model, schema, asked, whole=args.json)
        elif args.json:
            answer = model.invoke(asked)
            _print_json(_record(answer))
        else:
            answer = _print_text(model, asked, stream=not args.no_stream)
        took = time.monotonic() - begun
    if args.usage or is_terminal(sys.stderr):
        tell(usage_line(answer, took), "dim")
    return 0


def _question(words: list[str]) -> str:
    """The question of the command line and of stdin.

    Raises:
        MisuseError: There is none.
    """
    said = " ".join(word for word in words if word != "-")
    stdin = sys.stdin
    piped = stdin is not None and ("-" in words or not is_terminal(stdin))
    try:
        read = stdin.read().strip() if piped else ""
    except UnicodeDecodeError as error:
        raise MisuseError(f"what is piped in is not text in {error.encoding}") from None
    question = "\n\n".join(part for part in (said, read) if part)
    if not question.strip():
        raise MisuseError(
            "there is no question: write it behind `langchain-svc ask`, or pipe one in; "
            "`langchain-svc chat` is for many"
        )
    return question


def _print_text(model: ChatSvc, asked: list[tuple[str, str]], *, stream: bool) -> AIMessage:
    if not stream:
        answer = model.invoke(asked)
        writer = WordWriter()
        writer.write(answer.text)
        writer.end()
        return answer
    last: list[Any] = []
    write_stream(model.stream(asked), last.append)
    return sum_up(last)


def sum_up(chunks: list[Any]) -> AIMessage:
    """One message with the text, the usage and the metadata of the chunks."""
    usage, metadata = None, dict[str, Any]()
    for chunk in chunks:
        if chunk.usage_metadata:
            usage = add_usage(usage, chunk.usage_metadata)
        metadata |= chunk.response_metadata
    text = "".join(chunk.text for chunk in chunks)
    return AIMessage(content=text, usage_metadata=usage, response_metadata=metadata)


def _print_object(
    model: ChatSvc, schema: dict[str, Any], asked: list[tuple[str, str]], *, whole: bool
) -> AIMessage:
    found = model.with_structured_output(schema, include_raw=True).invoke(asked)
    error = found["parsing_error"]
    if error is not None:
        raise error
    raw: AIMessage = found["raw"]
    _print_json({"object": found["parsed"], **_record(raw)} if whole else found["parsed"])
    return raw


def _record(answer: AIMessage) -> dict[str, Any]:
    return {
        "content": answer.text,
        "usage": answer.usage_metadata,
        "metadata": answer.response_metadata,
    }


def _print_json(value: Any) -> None:
    emit(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def usage_line(answer: AIMessage, seconds: float) -> str:
    """What an answer took, in one line."""
    usage, metadata = answer.usage_metadata, answer.response_metadata
    parts = [str(metadata.get("model_name") or "the model")]
    if usage:
        estimated = " (estimated)" if metadata.get("usage_source") == "estimated" else ""
        parts.append(f"{usage['input_tokens']:,} -> {usage['output_tokens']:,} tokens{estimated}")
    parts.append(f"{seconds:.2f} s")
    limit = metadata.get("rate_limit") or {}
    if "remaining" in limit:
        left = limit["remaining"]
        parts.append(f"{left:,} request{'s' * (left != 1)} left")
    return "  ".join(parts)
