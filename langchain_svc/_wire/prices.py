"""What tokens cost, as the caller says or the service lists it.

The fields of a listed price are "not shown" (v1 API, section 2). Read are a number for tokens in
(`input` or `prompt`) and one for tokens out (`output` or `completion`), `per_tokens`, to how many
tokens they refer, and `currency`. Without `per_tokens` a price is not read: guessed wrongly, it
would be wrong by a million.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Price:
    """What one token in and one token out cost."""

    input: float
    output: float
    currency: str = ""


def read_prices(source: object) -> dict[str, Price]:
    """The prices of models by their ids.

    Args:
        source: Prices by model id, as dicts; or the models of `ChatSvc.list_models()`, of which
            those without a price that can be read are left out.

    Raises:
        ValueError: It is neither, or a price by model id cannot be read.
    """
    prices: dict[str, Price] = {}
    if isinstance(source, Mapping):
        for model_id, pricing in source.items():
            price = _read_price(pricing)
            if price is None:
                raise ValueError(
                    f"The price of {model_id!r} is unclear: {pricing!r:.200}. {_FORM}"
                )
            prices[model_id] = price
        return prices
    models = [source]
    if isinstance(source, Iterable):
        models = list(source)
    for model in models:
        if not hasattr(model, "id") or not hasattr(model, "pricing"):
            raise ValueError(f"Prices cannot be {source!r:.200}. {_FORM}")
        price = _read_price(model.pricing)
        if price is not None:
            prices[model.id] = price
    return prices


_FORM = (
    "Give the models of list_models(), or by model id "
    '{"input": 5.0, "output": 15.0, "per_tokens": 1_000_000, "currency": "USD"}'
)


def _read_price(pricing: object) -> Price | None:
    if isinstance(pricing, Price):
        return pricing
    if not isinstance(pricing, Mapping):
        return None
    tokens_in = _number(pricing.get("input", pricing.get("prompt")))
    tokens_out = _number(pricing.get("output", pricing.get("completion")))
    per_tokens = _number(pricing.get("per_tokens"))
    if tokens_in is None or tokens_out is None or not per_tokens:
        return None
    currency = str(pricing.get("currency") or "")[:12]
    return Price(tokens_in / per_tokens, tokens_out / per_tokens, currency)


def _number(value: Any) -> float | None:
    """A number that is not below 0, also written as text."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    if number < 0 or not math.isfinite(number):
        return None
    return number
