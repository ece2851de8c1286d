"""Reaching the service: settings, retries, and the exchange of a request and its answer."""

from .fields import (
    Retries,
    Seconds,
    Secret,
    bounded_number,
    reveal_secret,
    url_of,
)
from .names import ALIASES, did_you_mean, resolve_aliases, suggest_name, suggests_fields
from .runs import MAKERS, RUNS, Privacy, keeps_runs, replaces, set_uncached
from .settings import ServiceSettings
from .steps import (
    BLOCK_LIMITS,
    ON_WAIT,
    AnswerParser,
    CallSize,
    CompletionParser,
    EventParser,
    Exchange,
    Limits,
    Request,
    TryEnd,
    Wait,
    WholeParser,
)
