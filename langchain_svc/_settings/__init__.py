"""The settings that every class shares, and the requests that they make."""

from .names import ALIASES, did_you_mean, resolve_aliases, suggest_name, suggests_fields
from .requests import (
    LimitSettings,
    keep_prices,
    limits_of,
    new_exchange,
    refuse_incomplete_pickle,
    vision_exchange,
)
from .runs import MAKERS, RUNS, Privacy, keeps_runs, replaces, set_uncached
from .settings import (
    Retries,
    Seconds,
    Secret,
    ServiceSettings,
    bounded_number,
    url_of,
)
