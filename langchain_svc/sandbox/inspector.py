"""A page in the browser that shows what the sandbox receives and sends, while it does.

Only the user who started the sandbox can open it. It answers connections from loopback that ask
for a loopback name and know the token of its address; the name keeps out web pages whose own name
resolves to 127.0.0.1. Its page may load nothing and run no other script.
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
from urllib.parse import quote

from .faults import Fault, FaultBook
from .log import Log, Received, ServedExchange
from .prompts import (
    CutMessage,
    count_tokens,
    cut_messages,
    is_call,
    values_in,
)
from .wire import JSON_TYPE, HttpReply, HttpRequest, interface_of, is_loopback

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
        self.token: str = secrets.token_urlsafe(24)
        # By number of the exchange: what does not change while it is answered.
        self._rows: dict[int, dict[str, object]] = {}

    @staticmethod
    def serves(request: HttpRequest) -> bool:
        """Whether a request is one for the inspector, and not for the service."""
        if request.path == "/":
            return request.method == "GET"
        return request.path.startswith(_PREFIX)

    def answer(self, request: HttpRequest, *, is_local: bool) -> HttpReply:
        """Answer a request; `is_local` says that it came over loopback."""
        host = request.headers.get("host", "")
        if not is_local or not is_loopback(_host_name(host)):
            return _refusal(
                "The inspector answers on 127.0.0.1, [::1] and localhost only."
            )
        is_page = request.path == "/"
        if is_page:
            token = request.query
        else:
            token = request.headers.get("x-inspector-token", "")
        token = token.removeprefix("token=")
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return _refusal(
                "Open the address with the token that the sandbox told at its start."
            )
        if is_page:
            return self._page()
        action, number, piece = _parse_path(request.path)
        if request.method == "POST":
            return self._change_faults(action, request.body)
        if action == "state":
            return _json(self._state())
        if action == "exchange":
            for exchange in self._log.latest():
                if exchange.number == number:
                    return _json(_detail(exchange, piece, host))
        return _refusal("There is no such exchange; the latest are kept.", status=404)

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
        page = text.replace("TOKEN", self.token, 1)
        return HttpReply(200, headers, page.encode())

    def _change_faults(self, action: str, body: bytes) -> HttpReply:
        fault = FAULTS.get(body.decode(errors="replace"))
        if action == "forget":
            self._faults.drop_next()
        elif action == "fail" and fault is not None:
            self._faults.put_next(fault)
        else:
            return _refusal(f"Expected one of {', '.join(FAULTS)}.", status=400)
        return _json(self._state())

    def _state(self) -> dict[str, object]:
        exchanges = []
        rows = {}
        for exchange in self._log.latest():
            row = self._rows.get(exchange.number) or _row(exchange)
            exchanges.append({**_summary(exchange), **row})
            if row["run"]:
                rows[exchange.number] = row
        self._rows = rows
        return {
            **self._about,
            "exchanges": exchanges,
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
    # In ASCII: a request may hold halves of characters, which UTF-8 cannot encode.
    headers = {"content-type": JSON_TYPE, **_HEADERS}
    return HttpReply(200, headers, json.dumps(body).encode())


def _refusal(text: str, *, status: int = 403) -> HttpReply:
    headers = {"content-type": "text/plain; charset=utf-8", **_HEADERS}
    return HttpReply(status, headers, f"{text}\n".encode())


def _hash_of(tag: str, page: str) -> str:
    content = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    digest = sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _host_name(host: str) -> str:
    """The name in a Host header, without the port and the brackets of an IPv6 address."""
    return re.sub(r":\d*$", "", host).strip("[]")


def _parse_path(path: str) -> tuple[str, int, int]:
    """The action that a path names, the number of an exchange and the number of a piece."""
    action, _, rest = path.removeprefix(_PREFIX).partition("/")
    numbers = re.fullmatch(r"(\d{1,12})/(\d{1,12})", rest)
    if numbers is None:
        return action, 0, 0
    return action, int(numbers[1]), int(numbers[2])


# -- what the page shows --------------------------------------------------------------------------


def _summary(exchange: ServedExchange) -> dict[str, object]:
    request = exchange.received
    return {
        "number": exchange.number,
        "at": request.at,
        "method": _shorten(request.method, 20),
        "path": _shorten(request.path, 200),
        "status": request.status,
        "seconds": exchange.seconds,
        "tokens": exchange.tokens,
        "bytes": exchange.size,
        "pieces": len(exchange.pieces),
        "left": request.disconnected,
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
    messages = body.get("messages")
    questions = _questions(body)
    last_question = questions[-1] if questions else ""
    first_question = repr(questions[:1])
    return {
        "model": _shorten(str(body.get("model") or ""), 40),
        "words": " ".join(last_question.split())[:100],
        "run": sha256(first_question.encode()).hexdigest()[:12],
        "turns": len(messages) if isinstance(messages, list) else 1,
    }


def _questions(body: dict[str, object]) -> list[str]:
    """The user's words in a chat; the texts of the fields where the body is not a chat's."""
    questions = []
    for role, parts in _cut_body(body):
        if role == "user":
            questions += [
                text
                for kind, text in parts
                if kind in {"question", "history"} and text.strip()
            ]
    if questions:
        return questions
    return [value for value in body.values() if isinstance(value, str)]


def _fault_in_words(fault: Fault) -> str:
    return _NAMES.get(id(fault)) or _shorten(repr(fault), 200)


def _detail(exchange: ServedExchange, piece: int, host: str) -> dict[str, object]:
    """One exchange; with a number of pieces that the page has already, only what may be new."""
    answer = exchange.delivered_text
    detail = {
        **_summary(exchange),
        "from": piece,
        "raw": [
            [seconds, _shorten(data.decode(errors="backslashreplace"), _MOST_PIECE)]
            for seconds, data in exchange.pieces[piece:]
        ],
        "unkept": exchange.size - exchange.stored,
        "answer": _shorten(answer, _MOST_SHOWN),
        "calls": [
            _shorten(json.dumps(value, ensure_ascii=False), 4_000)
            for value, _ in values_in(answer)
            if is_call(value)
        ],
        "answered": dict(exchange.headers),
    }
    if piece:
        return detail
    return {**detail, **_request(exchange.received), **_copies(exchange.received, host)}


def _copies(request: Received, host: str) -> dict[str, str]:
    """The request as a command and as a program, which read the key from the environment."""
    body = _json_of(request)
    if body is None and request.body:
        return {}
    if interface_of(request.path) == "medical":
        variable = "SVC_MEDICAL_API_KEY"
        header = "X-API-Key"
        scheme = ""
    else:
        variable = "SVC_API_KEY"
        header = "Authorization"
        scheme = "Bearer "
    url = f"http://{host}{quote(request.path)}"
    if request.query:
        url += f"?{request.query}"
    curl = f"curl -X {shlex.quote(request.method)} {shlex.quote(url)}"
    curl += f' -H "{header}: {scheme}${variable}"'
    python = f"""\
import os

import httpx

key = os.environ["{variable}"]
answer = httpx.request(
    {request.method!r},
    {url!r},
    headers={{{header!r}: {scheme!r} + key}},
"""
    if request.body:
        curl += (
            f" -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}"
        )
        python += f"    json={body!r},\n"
    python += "    timeout=60,\n)\nprint(answer.status_code, answer.text)\n"
    return {"curl": curl, "python": python}


def _request(request: Received) -> dict[str, object]:
    body = _json_of(request)
    text = ""
    fields: dict[str, object] = {}
    if isinstance(body, dict):
        fields = body
    if not fields:
        text = _shorten(request.body.decode(errors="backslashreplace"), _MOST_SHOWN)
    messages = []
    tokens_by_kind: Counter[str] = Counter()  # by our own rule
    for role, parts in _cut_body(fields):
        shortened = []
        for kind, part in parts:
            shortened.append([kind, _shorten(part, _MOST_SHOWN)])
            tokens_by_kind[kind] += count_tokens(part)
        messages.append([role, shortened])
    return {
        "headers": dict(request.headers),
        "unknown": list(request.unknown_fields),
        "messages": messages,
        "tokens_by": tokens_by_kind,
        "parameters": {
            _shorten(name, 100): _show_value(value)
            for name, value in fields.items()
            if name not in {"messages", "message"}
        },
        "body": text,
    }


def _show_value(value: object) -> str:
    if isinstance(value, str):
        return _shorten(value, 2_000)
    try:
        return _shorten(json.dumps(value, ensure_ascii=False), 2_000)
    except RecursionError:
        return "nested too deep to show"


def _shorten(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}\n… {len(text) - most:,} more characters"


# -- reading a chat's body and its answer ---------------------------------------------------------


def _json_of(request: Received) -> object:
    if len(request.body) > _MOST_READ:
        return None
    return request.json


def _cut_body(body: Mapping[str, object]) -> list[CutMessage]:
    """The messages of a chat's body, each a role and its parts; none where it is not a chat."""
    messages = body.get("messages")
    message = body.get("message")
    if not isinstance(messages, list):
        messages = []
        if isinstance(message, str):
            messages = [{"role": "user", "content": message}]
    return cut_messages(item for item in messages if isinstance(item, dict))
