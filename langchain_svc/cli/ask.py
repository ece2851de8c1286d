"""`langchain-svc ask`: one question, by words or by stdin, and its answer.

A cut answer is printed as far as it came, and the exit code says that it is not whole.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from langchain_core.messages import AIMessage

from .._wire import is_cut
from .terminal import (
    ASKED,
    MisuseError,
    add_options,
    emit_json,
    is_terminal,
    model_settings,
    new_model,
    read_schema,
    tell,
    write_stream,
)

_CUT = 3  # the exit code
_MORE = "a higher --max-tokens lets it end, unless a filter cut it"


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Ask one question. Words need no quotes. Piped text is added after the question: "
        "`git diff | langchain-svc ask review this`. The exit code is 3 if the answer was cut off."
    )
    parser.add_argument(
        "question",
        nargs="*",
        help="the question; - (or nothing, in a pipe) reads it from stdin",
    )
    add_options(parser, *ASKED, "--json", "--schema")


def run(args: argparse.Namespace) -> int:
    """Ask, and print the answer."""
    asked = [("system", args.system)] if args.system else []
    asked.append(("user", _question(args.question)))
    schema = read_schema(args.schema) if args.schema else None
    with new_model(**model_settings(args)) as model:
        begun = time.monotonic()
        if schema is not None:
            result = model.with_structured_output(schema, include_raw=True).invoke(
                asked
            )
            if result["parsing_error"] is not None:
                raise result["parsing_error"]
            answer: Any = result["raw"]
            record = {"object": result["parsed"], **_record(answer)}
            emit_json(record if args.json else result["parsed"])
        elif args.json:
            answer = model.invoke(asked)
            emit_json(_record(answer))
        else:
            chunks: list[Any] = []
            write_stream(model.stream(asked), chunks)
            answer = chunks[0] + chunks[1:]
        took = time.monotonic() - begun
    if is_terminal(sys.stderr):
        tell(usage_line(answer, took))
    reason = answer.response_metadata.get("finish_reason")
    if schema is None and is_cut(reason):  # an object was checked, and is whole
        tell(
            f"langchain-svc: the answer was cut off (finish_reason {reason!r}): {_MORE}"
        )
        return _CUT
    return 0


def _question(words: list[str]) -> str:
    """The question of the command line and of stdin.

    Raises:
        MisuseError: There is none.
    """
    said = " ".join(word for word in words if word != "-")
    piped = sys.stdin is not None and ("-" in words or not is_terminal(sys.stdin))
    read = sys.stdin.read().strip() if piped else ""
    question = "\n\n".join(filter(str.strip, (said, read)))
    if not question:
        raise MisuseError(
            "no question given: write it after `langchain-svc ask`, or pipe one in"
        )
    return question


def _record(answer: AIMessage) -> dict[str, Any]:
    return {
        "content": answer.text,
        "usage": answer.usage_metadata,
        "metadata": answer.response_metadata,
    }


def usage_line(answer: AIMessage, seconds: float) -> str:
    """What an answer took, in one line."""
    usage, metadata = answer.usage_metadata, answer.response_metadata
    parts = [str(metadata.get("model_name") or "the model")]
    if usage:
        estimated = (
            " (estimated)" if metadata.get("usage_source") == "estimated" else ""
        )
        parts.append(
            f"{usage['input_tokens']:,} -> {usage['output_tokens']:,} tokens{estimated}"
        )
    parts.append(f"{seconds:.2f} s")
    left = (metadata.get("rate_limit") or {}).get("remaining")
    if left is not None:
        parts.append(f"{left:,} request{'s' * (left != 1)} left")
    return "  ".join(parts)
