"""`langchain-svc explain`: the request that a prompt would be, without sending it."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from langchain_core.messages import convert_to_messages

from .._chat import TOKENS_A_TURN, count_tokens, encoding
from .._usage import Price, read_prices
from .._wire import v1
from ..chat_models import ChatSvc
from ..config import V1
from ..quota import DOCUMENTED, PERIODS
from .terminal import (
    ASKED,
    MisuseError,
    add_options,
    emit,
    emit_json,
    model_settings,
    read_json,
    read_schema,
)

_ANYWHERE = "https://your-host/v1"


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Show the request that a prompt would send, with its tokens by part. "
        "Nothing is sent, and no key is needed."
    )
    parser.add_argument("prompt", nargs="+", help="the prompt; words need no quotes")
    add_options(parser, *ASKED, "--schema", "--json")
    parser.add_argument("--tools", metavar="FILE", help="a JSON list of tools in OpenAI's format")
    parser.add_argument("--history", metavar="FILE", help="earlier messages, from chat's /save")
    parser.add_argument(
        "--price",
        metavar="IN,OUT[,CURRENCY]",
        type=_price,
        help="price per million tokens, such as 5,15,USD (see `langchain-svc models`)",
    )
    parser.add_argument(
        "--plan",
        metavar="NAME",
        type=_plan,
        help="show how many such requests a plan allows: free, pro or enterprise",
    )


def _price(text: str) -> Price:
    try:
        tokens_in, tokens_out, *rest = text.split(",")
        (currency,) = rest or [""]
        pricing = {"input": float(tokens_in), "output": float(tokens_out), "per_tokens": 1_000_000}
        return read_prices({"": {**pricing, "currency": currency.strip()}})[""]
    except ValueError:
        expected = "expected IN,OUT[,CURRENCY] such as 5,15,USD"
        raise argparse.ArgumentTypeError(f"{expected}, not {text!r}") from None


def _plan(text: str) -> str:
    name = "v1:" + text.strip().lower().removeprefix("v1:")
    if name not in DOCUMENTED:
        known = ", ".join(one[3:] for one in DOCUMENTED if one.startswith("v1:"))
        raise argparse.ArgumentTypeError(f"expected a plan of v1 ({known}), not {text!r}")
    return name


def run(args: argparse.Namespace) -> int:
    """Show the request, its tokens, its cost, and what a plan allows."""
    prompt = {"role": "user", "content": " ".join(args.prompt)}
    system = [{"role": "system", "content": args.system}] if args.system else []
    history = _history(args.history) if args.history else []
    plain, bound = _models(args)
    # Each part is what the request grows by, so that borders and escapes count where they arise.
    sizes, before = {}, 0
    for name, model, messages in (
        ("prompt", plain, [prompt]),
        ("history", plain, [*history, prompt]),
        ("system", plain, [*system, *history, prompt]),
        ("tools and schema", bound, [*system, *history, prompt]),
    ):
        request = _request(model, messages)
        size = _tokens(request)
        sizes[name], before = size - before, size
    found = {
        "request": request,
        "tokens": {**sizes, "total": before},
        "counted_by": "tiktoken" if encoding() else "a rule on characters (an estimate)",
        **_cost(args, before),
        **_quota(args, before),
    }
    if args.json:
        emit_json(found)
    else:
        _print(found)
    return 0


def _history(name: str) -> list[dict[str, str]]:
    form = 'a list of {"role": ..., "content": ...}'
    history: list[Any] = read_json(name, "--history", list, form)
    for message in history:
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise MisuseError(f"--history: {name!r} holds {message!r:.60}; give {form}")
    return history


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
    model = bound.bound
    made = convert_to_messages(messages)
    turn = model._turn(made, model._options(None, bound.kwargs), stream=True)  # noqa: SLF001  # our own class
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


def _tokens(request: dict[str, Any]) -> int:
    turns = request["body"]["messages"]
    return sum(count_tokens(turn["content"]) + TOKENS_A_TURN for turn in turns)


def _cost(args: argparse.Namespace, tokens: int) -> dict[str, Any]:
    price: Price | None = args.price
    if price is None:
        return {}
    most = args.max_tokens or v1.MAX_TOKENS_BY_DEFAULT
    asked = tokens * price.input
    return {
        "cost": {
            "prompt": asked,
            "at_most": asked + most * price.output,
            "currency": price.currency,
            "for_output_tokens": most,
        }
    }


def _quota(args: argparse.Namespace, tokens: int) -> dict[str, Any]:
    """How many such requests the plan allows, if their answers take all the tokens they may."""
    if args.plan is None:
        return {}
    each = tokens + (args.max_tokens or v1.MAX_TOKENS_BY_DEFAULT)
    names = {seconds: name for name, seconds in PERIODS.items()}
    limits = list(DOCUMENTED[args.plan].limits())
    allowed = {}
    for period, seconds in PERIODS.items() if limits else ():
        count, limit = min(
            (int(one.amount // size * max(1, seconds / one.seconds)), one)
            for one in limits
            for size in [each if one.unit == "tokens" else 1]
        )
        by = f"{limit.amount:,} {limit.unit} per {names[limit.seconds]}"
        allowed[period] = {"requests": count, "limited_by": by}
    return {"quota": {"plan": args.plan, "tokens_each": each, "allowed": allowed}}


def _print(found: dict[str, Any]) -> None:
    request = found["request"]
    emit(f"{request['method']} {request['url']}")
    for name, value in request["headers"].items():
        emit(f"{name}: {value}")
    emit("")
    emit_json(request["body"])
    emit(f"\nTokens by {found['counted_by']}:")
    for name, count in found["tokens"].items():
        emit(f"  {name:<17}{count:>9,}")
    if cost := found.get("cost"):
        emit(
            f"Cost: {cost['prompt']:.6f} {cost['currency']} for the prompt, at most "
            f"{cost['at_most']:.6f} with an answer of {cost['for_output_tokens']:,} tokens"
        )
    else:
        emit("Cost: not known here; give --price IN,OUT as `langchain-svc models` lists it")
    quota = found.get("quota", {"allowed": {}})
    for period, one in quota["allowed"].items():
        each = f"at {quota['tokens_each']:,} tokens each, by {one['limited_by']}"
        emit(f"Plan {quota['plan']}: {one['requests']:,} per {period} {each}")
    if "plan" in quota and not quota["allowed"]:
        emit(f"Plan {quota['plan']}: its limits are agreed with your provider")
    emit("Nothing was sent.")
