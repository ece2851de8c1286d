"""Counts of tokens: what the service reports, as LangChain wants it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages.ai import (
    InputTokenDetails,
    OutputTokenDetails,
    UsageMetadata,
)

_COUNTS = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
}
"""What LangChain and what the service calls the counts of tokens."""


def token_usage(usage: Mapping[str, Any]) -> dict[str, int]:
    """LangChain's counts by the service's names."""
    return {
        service_name: usage[name]
        for name, service_name in _COUNTS.items()
        if name in usage
    }


def usage_metadata(counts: Mapping[str, int]) -> UsageMetadata | None:
    """The service's counts as LangChain's, if they tell the tokens in and out."""
    tokens_in = counts.get("prompt_tokens")
    tokens_out = counts.get("completion_tokens")
    total = counts.get("total_tokens")
    if total is not None:
        if tokens_in is None and tokens_out is not None:
            tokens_in = total - tokens_out
        if tokens_out is None and tokens_in is not None:
            tokens_out = total - tokens_in
    if tokens_in is None or tokens_out is None:
        return None
    if tokens_in < 0 or tokens_out < 0:
        return None
    if total is None:
        total = tokens_in + tokens_out
    usage = UsageMetadata(
        input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=total
    )
    if "cached_tokens" in counts:
        usage["input_token_details"] = InputTokenDetails(
            cache_read=counts["cached_tokens"]
        )
    if "reasoning_tokens" in counts:
        usage["output_token_details"] = OutputTokenDetails(
            reasoning=counts["reasoning_tokens"]
        )
    return usage


def summed_outputs(
    outputs: Iterable[Mapping[str, Any] | None], model: str | None
) -> dict[str, Any]:
    """The `llm_output` of several answers."""
    counts: dict[str, int] = {}
    for output in outputs:
        if output:
            for name, count in output["token_usage"].items():
                counts[name] = counts.get(name, 0) + count
            model = output["model_name"]
    return {"token_usage": counts, "model_name": model}
