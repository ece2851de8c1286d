"""`langchain-svc explain`: the request that a prompt would be, without sending it."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from langchain_core.messages import convert_to_messages

from .._chat import TOKENS_A_TURN, count_tokens, encoding
from ..chat_models import ChatSvc
from ..config import V1
from .terminal import ASKED, add_options, emit_json, model_settings, read_json, read_schema

_ANYWHERE = "https://your-host/v1"


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Show the request that a prompt would send, and its tokens by part, as JSON. "
        "Nothing is sent, and no key is needed."
    )
    parser.add_argument("prompt", nargs="+", help="the prompt; words need no quotes")
    add_options(parser, *ASKED, "--schema")
    parser.add_argument("--tools", metavar="FILE", help="a JSON list of tools in OpenAI's format")


def run(args: argparse.Namespace) -> int:
    """Show the request and its tokens."""
    prompt = {"role": "user", "content": " ".join(args.prompt)}
    system = [{"role": "system", "content": args.system}] if args.system else []
    plain, bound = _models(args)
    # Each part is what the request grows by, so that borders and escapes count where they arise.
    sizes, before = {}, 0
    for name, model, messages in (
        ("prompt", plain, [prompt]),
        ("system", plain, [*system, prompt]),
        ("tools and schema", bound, [*system, prompt]),
    ):
        request = _request(model, messages)
        turns = request["body"]["messages"]
        size = sum(count_tokens(turn["content"]) + TOKENS_A_TURN for turn in turns)
        sizes[name], before = size - before, size
    emit_json(
        {
            "request": request,
            "tokens": {**sizes, "total": before},
            "counted_by": "tiktoken" if encoding() else "a rule on characters (an estimate)",
        }
    )
    return 0


def _models(args: argparse.Namespace) -> tuple[Any, Any]:
    """The model alone, and with its tools and its schema."""
    given = model_settings(args)
    examples = {V1.key_env: ("api_key", "none"), V1.url_env: (V1.url_word, _ANYWHERE)}
    given |= dict(named for variable, named in examples.items() if not os.environ.get(variable))
    plain = ChatSvc(**given)
    bound: Any = plain.bind()
    if args.tools:
        form = "a list of tools in OpenAI's form"
        bound = plain.bind_tools(read_json(args.tools, "--tools", list, form))
    if args.schema:
        shaped: Any = plain.with_structured_output(read_schema(args.schema))
        bound = bound.bind(response_format=shaped.first.kwargs["response_format"])
    return plain.bind(), bound


def _request(bound: Any, messages: list[dict[str, str]]) -> dict[str, Any]:
    """The request as it would go out, without the key."""
    made = convert_to_messages(messages)
    turn = bound.bound._begin(made, None, bound.kwargs, stream=True)  # noqa: SLF001  # our own class
    request = turn.exchange.request
    headers = {
        name: "Bearer (your key)" if name == "Authorization" else value
        for name, value in request.headers
    }
    return {
        "method": request.method,
        "url": request.url,
        "headers": headers,
        "body": json.loads(request.body),
    }
