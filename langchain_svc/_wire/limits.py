"""Reads what response headers say about limits and about when to come back.

The documents leave the units of `X-RateLimit-*` open ("not shown"), and proxies write
`Retry-After` in several ways. This module reads every plausible form; docs/assumptions.md lists
them. Nonsense reads as None: the caller falls back to its own backoff.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic_core import SchemaValidator, core_schema

from .redact import without_secrets

# A plain number above this is a moment, not a delay: no plan has a window of 30 years.
_EPOCH_SECONDS = 1e9

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?", re.ASCII)
_PART = re.compile(r"((?<!\d)\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_UNIT = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3}
_MOMENT = SchemaValidator(core_schema.datetime_schema())
_LONGEST_VALUE = 64
_COUNT = re.compile(r"\d{1,15}", re.ASCII)


def read_wait(value: str | None, now: float) -> float | None:
    """Seconds from `now` (a Unix timestamp) until the moment that a header value names.

    Reads delta seconds (also with a fraction), epoch seconds, epoch milliseconds, an HTTP date,
    ISO 8601 and durations like `1m30s` or `1800ms`. None for nonsense and for the past.
    """
    seconds = _seconds_until(value, now)
    if seconds is None or seconds < 0:
        return None
    return seconds


def _seconds_until(value: str | None, now: float) -> float | None:
    """The same, less than 0 for the past."""
    text = (value or "").strip()
    if len(text) > _LONGEST_VALUE:
        return None
    parts = _PART.findall(text)
    if _NUMBER.fullmatch(text) and float(text) <= _EPOCH_SECONDS:
        wait = float(text)
    elif parts and "".join(map("".join, parts)) == text.replace(" ", ""):
        wait = sum(float(number) * _UNIT[unit] for number, unit in parts)
    else:
        wait = _moment(text) - now
    return wait if math.isfinite(wait) else None


def _moment(text: str) -> float:
    """An HTTP date, ISO 8601, or epoch seconds or milliseconds, which pydantic reads as well."""
    for parse in (parsedate_to_datetime, _MOMENT.validate_python):
        try:
            moment: datetime = parse(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        if moment.tzinfo is None:  # both forms mean UTC where they name no zone
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    return -math.inf


def retry_after(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait before the next try: Retry-After, else on 429 X-RateLimit-Reset.

    None where our own backoff will do: nothing is said, the moment to come back has passed, or
    requests remain, so that no window was full.
    """
    wait = _seconds_until(headers.get("retry-after"), now)
    if wait is None and status == 429:  # Too Many Requests
        remaining = headers.get("x-ratelimit-remaining", "").strip()
        if not _COUNT.fullmatch(remaining) or int(remaining) == 0:
            wait = read_wait(headers.get("x-ratelimit-reset"), now)
    if wait is None or wait < 0:
        return None
    return wait


def read_rate_limit(
    headers: Mapping[str, str], now: float, secrets: Iterable[str] = ()
) -> dict[str, Any] | None:
    """What the X-RateLimit headers say (v1 API, section 8), or None where there are none.

    `limit` and `remaining` are whole numbers, `reset_after` seconds and `reset_at` an ISO 8601
    UTC time, each only where it could be read; `raw` keeps the header texts without `secrets`.
    """
    raw = {
        name: without_secrets(headers[f"x-ratelimit-{name}"], secrets)
        for name in ("limit", "remaining", "reset")
        if f"x-ratelimit-{name}" in headers
    }
    if not raw:
        return None
    limits: dict[str, Any] = {}
    for name in ("limit", "remaining"):
        text = raw.get(name, "").strip()
        if _COUNT.fullmatch(text):
            limits[name] = int(text)
    wait = read_wait(raw.get("reset"), now)
    if wait is not None:
        limits["reset_after"] = round(wait, 3)
        reset_at = _iso_utc(now + wait)
        if reset_at is not None:
            limits["reset_at"] = reset_at
    limits["raw"] = raw
    return limits


def rate_limit_of(
    headers: Mapping[str, str], now: float
) -> tuple[int, int, float] | None:
    """The limit, what remains of it and the seconds until it resets, where all three are there."""
    limits = read_rate_limit(headers, now) or {}
    if not {"limit", "remaining", "reset_after"} <= limits.keys():
        return None
    return limits["limit"], limits["remaining"], limits["reset_after"]


def _iso_utc(timestamp: float) -> str | None:
    try:
        return datetime.fromtimestamp(round(timestamp), UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
