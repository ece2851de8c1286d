"""Reaching the service: the exchange of a request and its answer, retries, connections."""

from .client import Client, LentClient, refuse_trio
from .steps import (
    ANSWERED,
    BLOCK_LIMITS,
    ON_WAIT,
    AnswerParser,
    CallSize,
    CompletionParser,
    EventParser,
    Exchange,
    Limits,
    RateLimiter,
    Request,
    RetryBudget,
    Route,
    TryEnd,
    UseLimit,
    Wait,
    WholeParser,
)
