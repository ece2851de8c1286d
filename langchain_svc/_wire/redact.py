"""Keeps secrets that a service or a proxy repeats out of what the caller gets.

Everything here works on decoded strings, so it does not matter how JSON escaped a secret or how
a stream was cut. An answer loses whole secrets only: `Redactor`. An error, where no text must
stay as it was, loses parts of them too, in any case: `without_secrets`.

Who writes an answer may hide a secret from any search (backwards, letter by letter). What is
promised is about services that repeat what they were sent, not about those that conspire.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote, urlsplit

MARK = "[key]"
# A shorter secret, such as the "k" of a test, stands in ordinary words too.
SHORTEST = 8
# A secret of this kind is a placeholder or a setting: an answer may rightly hold the same.
_ORDINARY = re.compile(r"[A-Za-z]?[a-z]{0,18}|[A-Z]{0,19}|\d+(?:[./:-]\d+)+", re.ASCII)
_ESCAPE = re.compile(rb"\\u00([0-9a-fA-F]{2})")
# Headers that say what is sent and by whom; their values are public words.
_PUBLIC_HEADERS = re.compile(r"accept(-.*)?|content-.*|user-agent|x-title|referer", re.IGNORECASE)


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
    found = [key]
    for name, value in headers:
        if not _PUBLIC_HEADERS.fullmatch(name):
            found += [word for word in (value, *value.split()) if len(word) >= SHORTEST]
    for proxy in proxies:
        try:
            parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        except ValueError:
            continue
        user, password = parts.username or "", parts.password or ""
        found += [user, password, unquote(user), unquote(password)]
        if password:
            found.append(b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode())
    return tuple(dict.fromkeys(filter(None, found)))


def _letter(one: str) -> str:
    """A pattern of a letter in each way in which JSON may write it."""
    forms = sorted({one, json.dumps(one)[1:-1], one.replace("/", "\\/")})
    return f"(?:{'|'.join(map(re.escape, forms))}|(?i:\\\\u{ord(one):04x}))"


@lru_cache(maxsize=16)
def _sought(
    secrets: tuple[str, ...],
) -> tuple[list[str], re.Pattern[str], re.Pattern[bytes], list[str]]:
    """Those that count, the longest first; what finds them in a text and a body; their starts."""
    known = (one for one in secrets if len(one) >= SHORTEST and not _ORDINARY.fullmatch(one))
    longest = sorted(known, key=len, reverse=True)
    plain = re.compile("|".join(map(re.escape, longest)) or r"(?!)")
    in_json = "|".join("".join(map(_letter, one)) for one in longest) or r"(?!)"
    return longest, plain, re.compile(in_json.encode()), [one[:_HELD_FROM] for one in longest]


class Redactor:
    """Replaces secrets in an answer by `[key]`.

    Only those count that cannot be an ordinary part of an answer: 8 characters and more, and
    neither one word in plain letters nor a date or a version number.

    Args:
        secrets: What is not to be seen.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets, self._plain, self._in_json, self._beginnings = _sought(tuple(secrets))
        self._before = ""  # the end of what was given back
        self._held = ""

    def text(self, text: str) -> str:
        """A whole text."""
        return self._plain.sub(MARK, text) if self._secrets else text

    def body(self, body: bytes) -> bytes:
        """A whole body, whatever it holds and however its JSON writes a secret."""
        if not self._secrets:
            return body
        plain = body.replace(b"\\/", b"/")
        shown = _ESCAPE.sub(lambda found: chr(int(found[1], 16)).encode(), plain)
        found = any(secret.encode() in shown for secret in self._secrets)
        return self._in_json.sub(MARK.encode(), body) if found else body

    def feed(self, text: str) -> str:
        """The next piece of a text.

        What may be the beginning of a secret waits for the next piece, from `_HELD_FROM` letters
        on: most pieces end in a letter with which some secret begins.
        """
        if not self._secrets:
            return text
        text = self._before + self._held + text
        if not self._held and not any(map(text.__contains__, self._beginnings)):
            made = text[len(self._before) :]  # as nearly always
            self._before = text[1 - _HELD_FROM :]
            return made
        start, parts = len(self._before), []
        for found in self._plain.finditer(text):
            parts += [text[start : found.start()], MARK]
            start = found.end()
        end = max(start, self._open_at(text))
        self._held = text[end:]
        parts.append(text[start:end])
        made = "".join(parts)
        self._before = (self._before + made)[1 - _HELD_FROM :]
        return made

    def finish(self) -> str:
        """What still waits when the text has ended."""
        held, self._held = self._held, ""
        return held

    def _open_at(self, text: str) -> int:
        """Where an unfinished secret begins at the end of the text, or its length."""
        first = len(text)
        for secret in self._secrets:
            at = text.find(secret[:_HELD_FROM], max(0, len(text) - len(secret) + 1))
            while at >= 0 and not secret.startswith(text[at:]):
                at = text.find(secret[:_HELD_FROM], at + 1)
            first = min(first, at) if at >= 0 else first
        return first


_HELD_FROM = 4


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """A text with `[key]` for each secret and for every longer part of it, in any case.

    A secret of fewer than 8 characters counts only where it stands as a word of its own.
    """
    for secret in secrets:
        text = _parts(secret).sub(MARK, text)
    return text


@lru_cache(maxsize=64)
def _parts(secret: str) -> re.Pattern[str]:
    if len(secret) < SHORTEST:
        return re.compile(rf"(?<!\w){re.escape(secret)}(?!\w)" if secret else "(?!)", re.IGNORECASE)
    ends = len(secret) - SHORTEST + 1
    starts = "|".join(re.escape(secret[at : at + SHORTEST]) for at in range(ends))
    # Every place where a part begins, and what is left of the last of them.
    return re.compile(rf"(?:(?={starts}).)+.{{{SHORTEST - 1}}}", re.IGNORECASE | re.DOTALL)
