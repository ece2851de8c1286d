"""`langchain-svc explain`: the request that a prompt would be, without sending it."""

from __future__ import annotations

import argparse
import json
import math
import os
from typing import Any

from langchain_core.messages import convert_to_messages

from .._chat import TOKENS_A_TURN, count_tokens, encoding
from .._wire import v1
from ..chat_models import ChatSvc
from ..config import V1
from ..quota import DOCUMENTED, PERIODS
from .ask import add_answer_options
from .terminal import MisuseError, emit, read_json, read_schema

_ANYWHERE = "https://your-host/v1"
_MILLION = 1_000_000


def add_explain(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Show the request that a prompt would send, with its tokens by part. "
        "Nothing is sent, and no key is needed."
    )
    parser.add_argument("prompt", nargs="+", help="the prompt; words need no quotes")
    add_answer_options(parser)
    parser.add_argument("--tools", metavar="FILE", help="a JSON list of tools in OpenAI's format")
    parser.add_argument("--schema", metavar="FILE", help="a JSON schema for the answer")
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
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.set_defaults(run=_explain)


def _price(text: str) -> tuple[float, float, str]:
    try:
        tokens_in, tokens_out, *rest = text.split(",")
        price = float(tokens_in), float(tokens_out)
        (currency,) = rest or [""]
    except ValueError:
        price, currency = (-1.0, -1.0), ""
    if not all(math.isfinite(one) and one >= 0 for one in price):
        expected = "expected IN,OUT[,CURRENCY] such as 5,15,USD"
        raise argparse.ArgumentTypeError(f"{expected}, not {text!r}")
    return (*price, currency.strip())


def _plan(text: str) -> str:
    name = "v1:" + text.strip().lower().removeprefix("v1:")
    if name not in DOCUMENTED:
        known = ", ".join(one[3:] for one in DOCUMENTED if one.startswith("v1:"))
        raise argparse.ArgumentTypeError(f"expected a plan of v1 ({known}), not {text!r}")
    return name


def _explain(args: argparse.Namespace) -> int:
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
        emit(json.dumps(found, indent=2, ensure_ascii=False))
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
    settings = {
        "model": args.model,
        "temperature": args.temperature,
        "max_tokens": args.max_tokens,
    }
    given: dict[str, Any] = {name: one for name, one in settings.items() if one is not None}
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
    if args.price is None:
        return {}
    tokens_in, tokens_out, currency = args.price
    most = args.max_tokens or v1.MAX_TOKENS_BY_DEFAULT
    asked = tokens * tokens_in / _MILLION
    return {
        "cost": {
            "prompt": asked,
            "at_most": asked + most * tokens_out / _MILLION,
            "currency": currency,
            "for_output_tokens": most,
        }
    }


def _quota(args: argparse.Namespace, tokens: int) -> dict[str, Any]:
    """How many such requests the plan allows, if their answers take all the tokens they may."""
    if args.plan is None:
        return {}
    each = tokens + (args.max_tokens or v1.MAX_TOKENS_BY_DEFAULT)
    # How often each limit allows the request, in how many seconds, and the limit's name.
    allowed = [
        (limit.amount // (each if limit.unit == "tokens" else 1), limit.seconds, limit)
        for limit in DOCUMENTED[args.plan].limits()
    ]
    found = {}
    for period, length in PERIODS.items() if allowed else ():
        count, limit = min(
            (int(most * max(1, length / seconds)), limit) for most, seconds, limit in allowed
        )
        (of,) = (name for name, seconds in PERIODS.items() if seconds == limit.seconds)
        by = f"{limit.amount:,} {limit.unit} {_a(of)}"
        found[period] = {"requests": count, "limited_by": by}
    return {"quota": {"plan": args.plan, "tokens_each": each, "allowed": found}}


def _a(period: str) -> str:
    return f"an {period}" if period == "hour" else f"a {period}"


def _print(found: dict[str, Any]) -> None:
    request = found["request"]
    emit(f"{request['method']} {request['url']}")
    for name, value in request["headers"].items():
        emit(f"{name}: {value}")
    emit("")
    emit(json.dumps(request["body"], indent=2, ensure_ascii=False))
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
    if quota := found.get("quota"):
        _print_quota(quota)
    emit("Nothing was sent.")


def _print_quota(quota: dict[str, Any]) -> None:
    if not quota["allowed"]:
        emit(f"Plan {quota['plan']}: its limits are agreed with your provider")
        return
    emit(f"Plan {quota['plan']}, at {quota['tokens_each']:,} tokens with the longest answer:")
    for period, one in quota["allowed"].items():
        emit(f"  {one['requests']:>9,} {_a(period):<9} by {one['limited_by']}")
