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


def read_prices(given: Any) -> dict[str, Price]:
    """The prices of models by their ids.

    Args:
        given: Prices by model id, as dicts; or the models of `ChatSvc.list_models()`, of which
            those without a price that can be read are left out.

    Raises:
        ValueError: They are neither, or a price by model id cannot be read.
    """
    if isinstance(given, Mapping):
        read = {model: _read(pricing) for model, pricing in given.items()}
        for model in (model for model, price in read.items() if price is None):
            raise ValueError(
                f"The price of {model!r} is unclear: {given[model]!r:.200}. {_FORM}"
            )
    else:
        models = list(given) if isinstance(given, Iterable) else [given]
        if not all(hasattr(model, "pricing") for model in models):
            raise ValueError(f"Prices cannot be {given!r:.200}. {_FORM}")
        read = {model.id: _read(model.pricing) for model in models}
    return {model: price for model, price in read.items() if price is not None}


_FORM = (
    "Give the models of list_models(), or by model id "
    '{"input": 5.0, "output": 15.0, "per_tokens": 1_000_000, "currency": "USD"}'
)


def _read(pricing: Any) -> Price | None:
    if isinstance(pricing, Price):
        return pricing
    if not isinstance(pricing, Mapping):
        return None
    tokens_in = _number(pricing.get("input", pricing.get("prompt")))
    tokens_out = _number(pricing.get("output", pricing.get("completion")))
    per = _number(pricing.get("per_tokens"))
    if tokens_in is None or tokens_out is None or not per:
        return None
    return Price(
        tokens_in / per, tokens_out / per, str(pricing.get("currency") or "")[:12]
    )


def _number(value: Any) -> float | None:
    """A number that is not below 0, also written as text."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
