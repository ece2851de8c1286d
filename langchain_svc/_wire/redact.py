"""Keeps secrets that a service or a proxy repeats out of errors and of what headers say.

It works on decoded strings, so it does not matter how JSON escaped a secret. Whoever writes an
error may hide one from any search (backwards, letter by letter). The promise is about services that
repeat what they were sent, not about those that conspire. A good answer is passed on as it came.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote, urlsplit

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
        text = _parts(secret).sub(MARK, text)
    return text


@lru_cache(maxsize=64)
def _parts(secret: str) -> re.Pattern[str]:
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
