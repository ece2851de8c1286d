"""Reads an error answer: (status, headers, body) -> the error to raise.

The v1 interface documents `{"error": {"message", "type", "code"}}` (v1 API, section 7); the
others show no shape. One reader takes every plausible one. A server's message may quote what was
sent, so it passes through `safe_text` before it becomes part of an error. Where that may be a
patient's record, no word of the message is passed on.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic_core import SchemaValidator, core_schema, from_json

from .. import errors
from .._text import characters

# -- redact ----------------------------------------------------------------------------------------
# Keeps secrets that a service or a proxy repeats out of errors and of what headers say.
#
# It works on decoded strings, so it does not matter how JSON escaped a secret. Whoever writes
# an error may hide one from any search (backwards, letter by letter). The promise is about
# services that repeat what they were sent, not about those that conspire. A good answer is
# passed on as it came.

MARK = "[key]"
# A shorter secret, such as the "k" of a test, stands in ordinary words too.
SHORTEST = 8
# Headers that say what is sent and by whom; their values are public words.
_PUBLIC_HEADERS = re.compile(
    r"accept(-.*)?|content-.*|user-agent|x-title|referer", re.IGNORECASE
)


@lru_cache(maxsize=64)  # the same for each call of an object
def secrets_of(
    key: str, headers: tuple[tuple[str, str], ...], proxies: tuple[str, ...]
) -> tuple[str, ...]:
    """What nobody may see again of what a call carries: see docs/security.md.

    Args:
        key: The API key.
        headers: The caller's own headers. Of their values the words of 8 and more letters count.
        proxies: The URLs of proxies. Their users and passwords count, and the two in base64.
    """
    secrets = [key]
    for name, value in headers:
        if not _PUBLIC_HEADERS.fullmatch(name):
            words = (value, *value.split())
            secrets += [word for word in words if len(word) >= SHORTEST]
    for proxy in proxies:
        try:
            if "://" not in proxy:
                proxy = f"http://{proxy}"  # noqa: PLW2901  # as it is meant
            parts = urlsplit(proxy)
        except ValueError:
            continue
        user = parts.username or ""
        password = parts.password or ""
        secrets += [user, password, unquote(user), unquote(password)]
        if password:
            credentials = f"{unquote(user)}:{unquote(password)}"
            secrets.append(b64encode(credentials.encode()).decode())
    return tuple(dict.fromkeys(filter(None, secrets)))


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """A text with `[key]` for each secret and for every longer part of it, in any case.

    A secret of fewer than 8 characters counts only where it stands as a word of its own.
    """
    for secret in secrets:
        text = _any_part(secret).sub(MARK, text)
    return text


@lru_cache(maxsize=64)
def _any_part(secret: str) -> re.Pattern[str]:
    if not secret:
        return re.compile("(?!)")  # which matches nothing
    if len(secret) < SHORTEST:
        return re.compile(rf"(?<!\w){re.escape(secret)}(?!\w)", re.IGNORECASE)
    ends = len(secret) - SHORTEST + 1
    starts = "|".join(re.escape(secret[at : at + SHORTEST]) for at in range(ends))
    # Every place where a part begins, and the rest of the last of them.
    return re.compile(
        rf"(?:(?={starts}).)+.{{{SHORTEST - 1}}}", re.IGNORECASE | re.DOTALL
    )


# -- limits ----------------------------------------------------------------------------------------
# Reads what response headers say about limits and about when to come back.
#
# The documents leave the units of `X-RateLimit-*` open ("not shown"), and proxies write `Retry-
# After` in several ways. This module reads every plausible form; docs/assumptions.md lists
# them. Nonsense reads as None: the caller falls back to its own backoff.

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


# -- failures --------------------------------------------------------------------------------------

_LONGEST_MESSAGE = 500
_LONGEST_READ = 4_000  # of a message, with its escapes and quotations
_LEFT_OUT = "[...]"
_BY_STATUS: dict[int, type[errors.SvcAPIError]] = {
    400: errors.SvcBadRequestError,
    401: errors.SvcAuthenticationError,
    403: errors.SvcPermissionDeniedError,
    404: errors.SvcNotFoundError,
    413: errors.SvcBadRequestError,
    422: errors.SvcBadRequestError,
    429: errors.SvcRateLimitError,
}
_NEXT_STEP = {
    401: "check the API key and that it belongs to this interface",
    403: "the key is valid but not allowed to do this: check its plan",
    413: "send a shorter request",
}
_LISTED = "list_models() names those that exist, such as svc-turbo and svc-pro in the documents"
_OVERFLOW_CODES = frozenset({"context_length_exceeded", "context_window_exceeded"})
# Statuses that come and go by themselves.
TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
# Those with which the service itself says that it is done with the request. Any other may come from
# a gateway, behind which it is still at work.
OF_SERVICE = frozenset({408, 429, 500, 503})
# Those among them that show the service in trouble; 429 comes from one that is well.
TROUBLE = TRANSIENT - {429}
# Failures of the service that another try cannot fix: Not Implemented, HTTP Version Not Supported.
_LASTING = frozenset({501, 505})


def read_failure(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    secrets: Iterable[str] = (),
    sent: bytes | None = None,
    private: bool = False,
    url: str = "",
    setting: str = "the base URL",
) -> errors.SvcAPIError:
    """The error that an answer with an error status means.

    Args:
        status: The HTTP status.
        headers: The answer's headers, with names in lower case.
        body: The whole body, decoded from its transfer form.
        now: The present as a Unix timestamp, for dates in headers.
        secrets: Keys, removed from the server's message wherever they stand.
        sent: The request's body, in JSON. What the server's message quotes of it is removed.
        private: Whether no word of the server's message is repeated, as it may be a patient's.
        url: Where the request was sent.
        setting: What its base URL is called.
    """
    message, type_, code = read_error_value(
        _load(body), secrets=secrets, sent=sent, private=private
    )
    text = f"The service answered {status}"
    if message:
        text += f": {message.removesuffix('.')}"
    if code and code not in text:
        text += f" (code {code})"
    if status in _NEXT_STEP:
        text += f"; {_NEXT_STEP[status]}"
    if status == 404:
        text += f"; {_why_not_found(url, setting, sent)}"
    request_id = safe_label(headers.get("x-request-id"), secrets=secrets, sent=sent)
    return failure(
        status, headers, text, now=now, type_=type_, code=code, request_id=request_id
    )


def _why_not_found(url: str, setting: str, sent: bytes | None) -> str:
    """What to change where the service has nothing at a URL."""
    *parts, path = url.split("/", 3)
    place = "/".join(parts)  # the rest of a base URL could hold a key
    if path.count("chat/completions") > 1:
        return (
            f"{setting} holds the path of an endpoint, and must end in /v1: {place}/v1"
        )
    if "v1/" not in path and "api/" not in path:
        return f"{setting} does not end in /v1: write {place}/v1"
    if path.count("api/") > 1 or ("v1/" in path and "api/" in path):
        return f"{setting} must end before the /api of the paths: {place}"
    request = _load(sent or b"")
    if isinstance(request, Mapping):
        model = request.get("model")
        if isinstance(model, str):
            return f"the model asked for is {model!r:.80}; {_LISTED}"
    return f"check {setting}, which is at {place}"


def failure(
    status: int,
    headers: Mapping[str, str],
    text: str,
    *,
    now: float,
    type_: str | None = None,
    code: str | None = None,
    request_id: str | None = None,
) -> errors.SvcAPIError:
    """The error of a status, whose text ends with what the status and the headers say to do."""
    if 300 <= status < 400:  # redirects
        text += "; redirects are not followed, as they would carry the key away: check the URL"
    wait = retry_after(status, headers, now)
    if wait is not None:
        seconds = f"{wait:.0f}"
        if wait < 1:
            seconds = f"{wait:.3g}"
        text += f"; come back in {seconds} s"
    error = _kind(status, code)(
        text,
        status_code=status,
        type=type_,
        code=code,
        request_id=request_id,
        retry_after=wait,
    )
    error.is_retryable = status in TRANSIENT or (
        error.is_retryable and status not in _LASTING
    )
    return error


def _kind(status: int, code: str | None) -> type[errors.SvcAPIError]:
    if code in _OVERFLOW_CODES and status < 500:
        return errors.SvcContextOverflowError
    if status >= 500:
        return errors.SvcServerError
    return _BY_STATUS.get(status, errors.SvcAPIError)


def _load(body: bytes) -> object:
    try:
        return from_json(body)
    except ValueError:
        return None  # a page of HTML or a proxy's text says nothing to a program


def read_error_value(
    value: object,
    *,
    secrets: Iterable[str] = (),
    sent: bytes | None = None,
    private: bool = False,
) -> tuple[str, str | None, str | None]:
    """Message, type and code of an error value, alone or under the key `error`, made safe."""
    source: Mapping[str, object] = {}
    if isinstance(value, Mapping):
        source = value
        value = source.get("error")
        if isinstance(value, Mapping):
            source = value
    message = ""
    for text in (value, *map(source.get, _MESSAGE_KEYS)):
        if isinstance(text, str) and not private:
            message = safe_text(text, secrets=secrets, sent=sent)
            break
    safe = partial(safe_label, secrets=secrets, sent=sent)
    return message, safe(source.get("type")), safe(source.get("code"))


_MESSAGE_KEYS = ("message", "detail", "description", "msg", "title")
_LABEL = re.compile(r"[\w.:/-]{1,80}", re.ASCII)


def safe_label(
    value: object, *, secrets: Iterable[str] = (), sent: bytes | None = None
) -> str | None:
    """A short identifier from the server; None for anything else and for what was sent."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        return None
    if value in _OVERFLOW_CODES:  # which decide what is raised, whatever was sent
        return value
    body = (sent or b"").lower()
    runs = _parts(value.lower(), min(len(value), _QUOTATION))
    if any(run.encode() in body for run in runs):
        return None
    if without_secrets(value, secrets) != value:
        return None
    return value


def safe_text(
    text: str, *, secrets: Iterable[str] = (), sent: bytes | None = None
) -> str:
    """A server's message on one line, without keys and without what it quotes of a request."""
    text = _without_keys(text[:_LONGEST_READ], secrets)
    text = _without_quotations(_on_one_line(text), sent).strip()
    text = "".join(map(_printable, text))
    if len(text) > _LONGEST_MESSAGE:
        text = text[: _LONGEST_MESSAGE - len(_LEFT_OUT)] + _LEFT_OUT
    return text


def _without_keys(text: str, secrets: Iterable[str]) -> str:
    """A text without keys; where its escapes hide one, it is without the escapes, too."""
    shown = without_secrets(text, secrets)
    plain = without_secrets(characters(text).text, secrets)
    if characters(shown).text == plain:
        return shown
    return plain


def _printable(letter: str) -> str:
    if letter.isprintable():
        return letter
    return "\ufffd"


# -- what a message quotes of a request ------------------------------------------------------------

_QUOTATION = 20  # characters
# A run of 20 holds 9 that begin at a multiple of 12: only those are looked up in a long text.
_STEP = 12
_PIECE = _QUOTATION - _STEP + 1
_SPACES = [letter for letter in map(chr, range(0x3001)) if letter.isspace()]


def _without_quotations(text: str, sent: bytes | None) -> str:
    """A text of one line with `[...]` for each run of 20 characters and more that was sent."""
    pieces = _parts(text, _PIECE)
    places: set[str] = set()  # a text that repeats itself has few
    words = _on_one_line("\0".join(_texts_sent(sent)))
    for at in range(0, len(words), _STEP):
        if words[at : at + _PIECE] in pieces:
            places.add(words[max(0, at - _STEP + 1) : at + _QUOTATION])
    quoted = {run for place in places for run in _parts(place, _QUOTATION)}
    shown: list[str] = []
    end = 0  # of the last quotation
    for at in range(len(text)):
        if text[at : at + _QUOTATION] in quoted:
            if not shown or at > end:
                shown += (text[end:at], _LEFT_OUT)
            end = at + _QUOTATION
    return "".join(shown) + text[end:]


def _parts(text: str, size: int) -> set[str]:
    return {text[at : at + size] for at in range(len(text) - size + 1)}


def _texts_sent(sent: bytes | None) -> Iterator[str]:
    """The texts in a request's body but the model's name, which an error may say."""
    body = _load(sent or b"")
    if isinstance(body, dict):
        body.pop("model", None)
    pending = [body]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _on_one_line(text: str) -> str:
    """A text with a space for each line end, tab and other space."""
    for space in _SPACES:
        text = text.replace(space, " ")
    return text
