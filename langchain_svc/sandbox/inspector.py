"""A page in the browser that shows what the sandbox receives and sends, while it does.

For whoever started the sandbox alone: it answers connections from loopback that ask for a loopback
name (a page of the web whose name is turned to 127.0.0.1 has another one) and that know the token
of its address, and its page may load nothing and run no other script.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import secrets
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from langchain_svc.sandbox.faults import Fault, FaultBook
from langchain_svc.sandbox.log import Log, Received, ServedExchange
from langchain_svc.sandbox.prompts import (
    Part,
    count_tokens,
    cut_messages,
    is_call,
    values_in,
)
from langchain_svc.sandbox.wire import JSON_TYPE, HttpReply, HttpRequest, is_loopback

_PREFIX = "/_inspector/"
_MOST_SHOWN = 100_000  # characters of one part
_MOST_PIECE = 4_000  # characters of one piece of a stream
_MOST_READ = 2_000_000  # bytes of a body whose JSON is read
_PAGE = Path(__file__).with_suffix(".html")

# What the page's buttons make of the next request.
FAULTS = {
    "400": Fault(status=400),
    "401": Fault(status=401),
    "403": Fault(status=403),
    "404": Fault(status=404),
    "429, wait 2 s": Fault(status=429, headers={"Retry-After": "2"}),
    "500": Fault(status=500),
    "503": Fault(status=503),
    "3 s late": Fault(delay=3.0),
    "no answer": Fault(hang=True),
    "reset": Fault(reset="before"),
    "reset inside": Fault(reset="inside"),
    "cut inside": Fault(cut=True),
    "no end mark": Fault(end=True),
    "silence inside": Fault(stall=True),
    "error inside": Fault(error_event=True),
    "broken JSON": Fault(mangle="json"),
    "half a character": Fault(mangle="utf8"),
    "wrong Content-Type": Fault(mangle="content-type"),
    "not HTTP": Fault(raw=b"SSH-2.0-OpenSSH_9.6\r\n"),
}
_NAMES = {id(fault): name for name, fault in FAULTS.items()}


class Inspector:
    """Answers the requests of the page."""

    def __init__(
        self,
        log: Log,
        faults: FaultBook,
        meters: Callable[[], Mapping[str, object]],
        about: Mapping[str, object],
    ) -> None:
        self._log = log
        self._faults = faults
        self._meters = meters
        self._about = about
        self.token = secrets.token_urlsafe(24)
        self._rows: dict[
            int, dict[str, object]
        ] = {}  # what does not change while it is answered

    @staticmethod
    def is_for_it(request: HttpRequest) -> bool:
        """Whether a request is one for the inspector, and not for the service."""
        page = request.path == "/" and request.method == "GET"
        return page or request.path.startswith(_PREFIX)

    def answer(self, request: HttpRequest, *, from_here: bool) -> HttpReply:
        """Answer a request; `from_here` says that it came over loopback."""
        host = request.headers.get("host", "")
        name = host.rpartition(":")[0] if re.search(r":\d*$", host) else host
        if not from_here or not is_loopback(name.strip("[]")):
            return _refusal(
                "The inspector answers on 127.0.0.1, [::1] and localhost only."
            )
        page = request.path == "/"
        given = request.query if page else request.headers.get("x-inspector-token", "")
        if not hmac.compare_digest(
            given.removeprefix("token=").encode(), self.token.encode()
        ):
            return _refusal(
                "Open the address with the token that the sandbox told at its start."
            )
        if page:
            return self._page()
        what, number, piece = _asked(request)
        if request.method == "POST":
            return self._changed(request, what)
        if what == "state":
            return _json(self._state())
        found = [each for each in self._log.latest() if each.number == number]
        if what != "exchange" or not found:
            return _refusal(
                "There is no such exchange; the latest are kept.", status=404
            )
        return _json(_detail(found[0], piece, request.headers.get("host", "")))

    def _page(self) -> HttpReply:
        text = _PAGE.read_text(encoding="utf-8")
        policy = [
            "default-src 'none'",
            "connect-src 'self'",
            "img-src data:",
            f"script-src {_hash_of('script', text)}",
            f"style-src {_hash_of('style', text)}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
        headers = {"content-type": "text/html; charset=utf-8", **_HEADERS}
        headers["content-security-policy"] = "; ".join(policy)
        return HttpReply(200, headers, text.replace("TOKEN", self.token, 1).encode())

    def _changed(self, request: HttpRequest, what: str) -> HttpReply:
        if what == "forget":
            self._faults.drop_next()
        elif what == "fail" and (
            fault := FAULTS.get(request.body.decode(errors="replace"))
        ):
            self._faults.put_next(fault)
        else:
            return _refusal(f"Expected one of {', '.join(FAULTS)}.", status=400)
        return _json(self._state())

    def _state(self) -> dict[str, object]:
        latest = self._log.latest()
        known = {
            each.number: self._rows.get(each.number) or _row(each) for each in latest
        }
        self._rows = {number: row for number, row in known.items() if row["run"]}
        return {
            **self._about,
            "exchanges": [{**_summary(each), **known[each.number]} for each in latest],
            "meters": self._meters(),
            "faults": list(FAULTS),
            "next": [_NAMES[id(fault)] for fault in self._faults.next],
        }


_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def _json(body: object) -> HttpReply:
    # In ASCII: what was received may hold halves of characters, which UTF-8 cannot say.
    return HttpReply(
        200, {"content-type": JSON_TYPE, **_HEADERS}, json.dumps(body).encode()
    )


def _refusal(text: str, *, status: int = 403) -> HttpReply:
    headers = {"content-type": "text/plain; charset=utf-8", **_HEADERS}
    return HttpReply(status, headers, f"{text}\n".encode())


def _hash_of(tag: str, page: str) -> str:
    held = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return f"'sha256-{base64.b64encode(sha256(held.encode()).digest()).decode()}'"


def _asked(request: HttpRequest) -> tuple[str, int, int]:
    what, _, rest = request.path.removeprefix(_PREFIX).partition("/")
    numbers = re.fullmatch(r"(\d{1,12})/(\d{1,12})", rest)
    return what, *(map(int, numbers.groups()) if numbers else (0, 0))


# -- what the page shows --------------------------------------------------------------------------


def _summary(exchange: ServedExchange) -> dict[str, object]:
    seen = exchange.received
    return {
        "number": exchange.number,
        "at": seen.at,
        "method": _shown(seen.method, 20),
        "path": _shown(seen.path, 200),
        "status": seen.status,
        "seconds": exchange.seconds,
        "tokens": exchange.tokens,
        "bytes": exchange.size,
        "pieces": len(exchange.pieces),
        "left": seen.disconnected,
        "fault": None if exchange.fault is None else _fault_in_words(exchange.fault),
        "upstream": exchange.upstream,
        "note": exchange.note,
    }


def _row(exchange: ServedExchange) -> dict[str, object]:
    """What tells one request from another: its model, its first words, and the run it belongs to.

    The requests of an agent's run begin with the same question and grow.
    """
    body = _json_of(exchange.received)
    if not isinstance(body, dict):
        return {"model": "", "words": "", "run": "", "turns": 0}
    asked = [
        text
        for role, parts in _read_prompt(body)
        if role == "user"
        for kind, text in parts
        if kind in {"question", "history"} and text.strip()
    ] or [value for value in body.values() if isinstance(value, str)]
    words = " ".join(asked[-1].split()) if asked else ""
    return {
        "model": _shown(str(body.get("model") or ""), 40),
        "words": words[:100],
        "run": sha256(repr(asked[:1]).encode()).hexdigest()[:12],
        "turns": len(turns) if isinstance(turns := body.get("messages"), list) else 1,
    }


def _fault_in_words(fault: Fault) -> str:
    known = _NAMES.get(id(fault))
    given = {
        name: value for name, value in vars(fault).items() if value != _NO_FAULT[name]
    }
    return known or _shown(
        ", ".join(f"{name}={value!r}" for name, value in given.items()), 200
    )


_NO_FAULT = vars(Fault())


def _detail(exchange: ServedExchange, piece: int, host: str) -> dict[str, object]:
    """One exchange; with a number of pieces that the page has already, only what may be new."""
    pieces = exchange.pieces[:]
    answer = exchange.said
    shown = {
        **_summary(exchange),
        "from": piece,
        "raw": [
            [seconds, _shown(data.decode(errors="backslashreplace"), _MOST_PIECE)]
            for seconds, data in pieces[piece:]
        ],
        "unkept": exchange.size - exchange.kept,
        "answer": _shown(answer, _MOST_SHOWN),
        "calls": [
            _shown(json.dumps(value, ensure_ascii=False), 4_000)
            for value, _ in values_in(answer)
            if is_call(value)
        ],
        "answered": dict(exchange.headers),
    }
    return (
        shown if piece else {**shown, **_request(exchange), **_copies(exchange, host)}
    )


def _copies(exchange: ServedExchange, host: str) -> dict[str, str]:
    """The request as a command and as a program; the key is read from the environment."""
    seen = exchange.received
    sent = _json_of(seen)
    if sent is None and seen.body:
        return {}
    medical = seen.path.startswith("/api/medical")
    variable = "SVC_MEDICAL_API_KEY" if medical else "SVC_API_KEY"
    name, before = ("X-API-Key", "") if medical else ("Authorization", "Bearer ")
    url = f"http://{host}{quote(seen.path)}{'?' * bool(seen.query)}{seen.query}"
    curl = f'curl -X {shlex.quote(seen.method)} {shlex.quote(url)} -H "{name}: {before}${variable}"'
    python = f'import os\n\nimport httpx\n\nkey = os.environ["{variable}"]\n'
    python += "answer = httpx.request(\n"
    python += f"    {seen.method!r},\n    {url!r},\n    headers={{{name!r}: {before!r} + key}},\n"
    if seen.body:
        curl += (
            f" -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(sent))}"
        )
        python += f"    json={sent!r},\n"
    return {
        "curl": curl,
        "python": f"{python}    timeout=60,\n)\nprint(answer.status_code, answer.text)\n",
    }


def _request(exchange: ServedExchange) -> dict[str, object]:
    seen = exchange.received
    sent = _json_of(seen)
    messages = _read_prompt(sent)
    body: dict[str, Any] = sent if isinstance(sent, dict) else {}
    rest = {
        name: value
        for name, value in body.items()
        if name not in {"messages", "message"}
    }
    counts: Counter[str] = (
        Counter()
    )  # about how many tokens come from where, by our own rule
    for kind, text in (part for _, parts in messages for part in parts):
        counts[kind] += count_tokens(text)
    return {
        "headers": dict(seen.headers),
        "unknown": list(seen.unknown_fields),
        "messages": [
            [role, [[kind, _shown(text, _MOST_SHOWN)] for kind, text in parts]]
            for role, parts in messages
        ],
        "tokens_by": counts,
        "parameters": {
            _shown(name, 100): _value(value) for name, value in rest.items()
        },
        "body": ""
        if body
        else _shown(seen.body.decode(errors="backslashreplace"), _MOST_SHOWN),
    }


def _value(value: object) -> str:
    try:
        written = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        )
    except RecursionError:
        written = "nested too deep to show"
    return _shown(written, 2_000)


def _shown(text: str, most: int) -> str:
    return (
        text
        if len(text) <= most
        else f"{text[:most]}\n… {len(text) - most:,} more characters"
    )


# -- reading a chat's body and its answer ---------------------------------------------------------


def _json_of(seen: Received) -> object:
    return seen.json if len(seen.body) <= _MOST_READ else None


def _read_prompt(body: object) -> list[tuple[str, list[Part]]]:
    """The messages of a chat's body, each a role and its parts; none where it is not a chat."""
    if not isinstance(body, dict):
        return []
    messages = body.get("messages")
    if not isinstance(messages, list):
        message = body.get("message")
        messages = (
            [{"role": "user", "content": message}] if isinstance(message, str) else []
        )
    return cut_messages(message for message in messages if isinstance(message, dict))
