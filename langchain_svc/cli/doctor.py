"""`langchain-svc doctor`: what works, what does not, and how to fix it.

No key is ever printed, and nothing of a patient is sent: the medical interface is only asked for
its status.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from pydantic_core import ValidationError

import langchain_svc as svc

from .. import config
from .._chat import encoding
from .._service import Exchange
from .._wire import read_rate_limit
from ..config import GENERAL, MEDICAL, V1, Interface
from ..errors import (
    SvcAuthenticationError,
    SvcConnectionError,
    SvcError,
    SvcNotFoundError,
    SvcPermissionDeniedError,
    SvcRateLimitError,
    SvcTimeoutError,
)
from .terminal import columns, emit, error_line, is_terminal, wrapped

_LIBRARIES = (
    "langchain-svc", "langchain-core", "httpx", "httpcore", "httptools", "anyio", "pydantic",
    "tiktoken", "langchain", "langgraph", "rich", "pillow", "h11", "argcomplete",
)  # fmt: skip
_TIMEOUTS: dict[str, Any] = {"timeout": 15.0, "deadline": 30.0, "max_retries": 0}
_NAMED = 6  # models; some services list hundreds
_LARGEST_SKEW = 30.0  # seconds; dates of Retry-After and X-RateLimit-Reset are read by our clock
# What sends texts elsewhere, or changes the way to the service.
_OTHER_VARIABLES = (
    "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "TIKTOKEN_CACHE_DIR",
    "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2",
)  # fmt: skip
_OWN_VARIABLES = [getattr(config, name) for name in vars(config) if name.startswith("ENV_")]
_TRACING = frozenset({"LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"})
_MARKS = {"ok": "green", "FAIL": "red", "warn": "yellow", "-": "dim"}


@dataclass(frozen=True)
class _Finding:
    """One line: `status` is ok, FAIL, warn or - (not set up, or only told)."""

    part: str
    status: str
    found: str
    fix: str = ""


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Check the environment and each configured interface, with the cheapest call. "
        "The exit code is 1 if one of them fails."
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--no-chat",
        action="store_true",
        help="skip the chat of a few tokens that shows the stream format",
    )
    parser.set_defaults(run=_doctor)


def _doctor(args: argparse.Namespace) -> int:
    findings: list[_Finding] = []
    for finding in _findings(chat=not args.no_chat):
        findings.append(finding)
        if not args.json:
            _print(finding)
    failed = [one for one in findings if one.status == "FAIL"]
    if args.json:
        emit(json.dumps([asdict(one) for one in findings], indent=2, ensure_ascii=False))
    elif failed:
        emit(f"\n{len(failed)} failed.")
    elif not any(map(_set, _OWN_VARIABLES)):
        emit("\nNothing is set up. Run `langchain-svc sandbox` in another terminal and paste the")
        emit("lines that it prints, or set the key and the address that your provider gave you.")
    else:
        emit("\nEverything that is set up works.")
    return int(bool(failed))


def _print(finding: _Finding) -> None:
    width = columns() if is_terminal(sys.stdout) else 80
    begin = f"{finding.status:<4}  {finding.part:<12} "
    text = wrapped(begin + finding.found, width, indent=" " * len(begin))
    emit(finding.status, _MARKS[finding.status], end="")
    emit(text.removeprefix(finding.status))
    if finding.fix:
        word = "hint" if finding.status == "-" else "fix"
        emit(wrapped(f"{word}: {finding.fix}", width, " " * len(begin), " " * 24), "bold")


def _findings(*, chat: bool) -> Iterator[_Finding]:
    yield from _versions()
    yield _tokenizer()
    yield from _environment()
    checks: dict[Interface, Callable[[], Iterator[_Finding]]] = {
        V1: partial(_v1, chat=chat),
        GENERAL: _general,
        MEDICAL: _medical,
    }
    for interface, check in checks.items():
        if (unset := _unset(interface)) is not None:
            yield unset
            continue
        try:
            yield from check()
        except (SvcError, ValidationError) as error:
            yield _failed(interface, error)


# -- this machine ---------------------------------------------------------------------------------


def _versions() -> Iterator[_Finding]:
    yield _Finding(
        "python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    found = {name: _version(name) for name in _LIBRARIES}
    yield _Finding("packages", "ok", ", ".join(f"{k} {v}" for k, v in found.items() if v))
    missing = [name for name, known in found.items() if not known]
    if missing:
        yield _Finding("packages", "-", f"of the extras not installed: {', '.join(missing)}")


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _tokenizer() -> _Finding:
    if encoding() is not None:
        return _Finding("tokenizer", "ok", "tiktoken o200k_base, from its file on this machine")
    fix = (
        'for closer counts, once, with network: python -c "import tiktoken; '
        "tiktoken.get_encoding('o200k_base')\""
    )
    return _Finding("tokenizer", "-", "a rule on characters estimates tokens before a call", fix)


def _environment() -> Iterator[_Finding]:
    for interface in (V1, GENERAL, MEDICAL):
        for name in (interface.key_env, interface.url_env):
            if (interface, name) != (GENERAL, V1.key_env):
                said = ("ok", f"{name} is set") if _set(name) else ("-", f"{name} is not set")
                yield _Finding("environment", *said)
    for name in sorted(os.environ):
        near = difflib.get_close_matches(name, _OWN_VARIABLES, 1, 0.8)
        if near and name not in _OWN_VARIABLES:
            fix = f"rename it to {near[0]}"
            yield _Finding("environment", "warn", f"{name} is set, which nothing reads", fix)
    for name in filter(_set, _OTHER_VARIABLES):
        if name in _TRACING and os.environ[name].strip().lower() == "true":
            fix = f"unset {name}, unless the prompts may leave this machine"
            yield _Finding("environment", "warn", f"{name} sends prompts to LangSmith", fix)
        elif name == "SSL_CERT_FILE" and not Path(os.environ[name]).is_file():
            fix = f"let {name} name a file of certificates, or unset it"
            yield _Finding("environment", "FAIL", f"{name} names a file that is not there", fix)
        else:
            yield _Finding("environment", "-", f"{name} is set")


def _set(name: str) -> bool:
    return bool(os.environ.get(name))


# -- the interfaces -------------------------------------------------------------------------------


def _v1(*, chat: bool) -> Iterator[_Finding]:
    with svc.ChatSvc(**_TIMEOUTS) as model:
        yield from _listed(V1, model, model.model)
        if chat:
            yield from _chatted(model)


def _general() -> Iterator[_Finding]:
    with svc.SvcLLM(**_TIMEOUTS) as model:
        yield from _listed(GENERAL, model, None)


def _medical() -> Iterator[_Finding]:
    begun = time.monotonic()
    with svc.SvcMedicalStatus(**_TIMEOUTS) as tool:
        exchange = tool._use({}).exchange  # noqa: SLF001  # our own class
        list(tool._pieces(exchange))  # noqa: SLF001  # our own class
    took = time.monotonic() - begun
    yield _Finding("medical", "ok", f"GET status answered in {took * 1000:.0f} ms")
    yield from _told(MEDICAL, exchange, time.time() - took / 2)


def _unset(interface: Interface) -> _Finding | None:
    """Why an interface is not checked: nothing of it is set, or only one half."""
    key, url = _set(interface.key_env), _set(interface.url_env)
    if key and url:
        return None
    missing = interface.url_env if not url else interface.key_env
    # One key serves two interfaces, of which many use only one.
    if not url and (not key or interface is GENERAL):
        return _Finding(interface.name, "-", f"not set up: {missing} is not set")
    fix = f"export {missing}=..., or run `langchain-svc sandbox` and paste the lines it prints"
    return _Finding(interface.name, "FAIL", f"{missing} is not set", fix)


def _listed(interface: Interface, model: Any, wanted: str | None) -> Iterator[_Finding]:
    """The listing of models, which costs nothing, and what its headers tell."""
    exchange = model._listing()  # noqa: SLF001  # our own class
    begun = time.time()
    (models,) = model._pieces(exchange)  # noqa: SLF001  # our own class
    took = time.time() - begun
    ids = [one.id for one in models]
    some = ", ".join(ids[:_NAMED]) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
    said = f"GET models answered in {took * 1000:.0f} ms: {some or 'none'}"
    yield _Finding(interface.name, "ok", said)
    if wanted is not None and wanted not in ids:
        fix = f"name one of them: ChatSvc(model={ids[0]!r})" if ids else "ask your provider"
        yield _Finding(interface.name, "warn", f"the default model {wanted!r} is not listed", fix)
    yield from _told(interface, exchange, begun + took / 2)


def _told(interface: Interface, exchange: Exchange[Any], now: float) -> Iterator[_Finding]:
    """What the headers of an answer tell: limits, and the service's clock."""
    headers = exchange.head.headers if exchange.head is not None else {}
    limits = read_rate_limit(headers, now, exchange.request.secrets) or {}
    words = {"limit": "requests allowed", "remaining": "left", "reset_after": "s until the reset"}
    text = ", ".join(
        f"{limits[name]:,.0f} {said}" for name, said in words.items() if name in limits
    )
    yield _Finding(interface.name, "ok" if text else "-", f"limits: {text or 'none in headers'}")
    try:
        skew = parsedate_to_datetime(headers["date"]).timestamp() + 0.5 - now  # whole seconds
    except (KeyError, ValueError, TypeError):
        yield _Finding(interface.name, "-", "clock: the answer has no Date")
        return
    if abs(skew) <= _LARGEST_SKEW:
        said = f"clock: within {max(1, abs(skew)):.0f} s of the service's"
        yield _Finding(interface.name, "ok", said)
        return
    fix = "set this machine's clock (NTP): waits that the service states as dates are read by it"
    which = "ahead of" if skew > 0 else "behind"
    said = f"clock: the service's is {abs(skew):,.0f} s {which} this machine's"
    yield _Finding(interface.name, "warn", said, fix)


def _chatted(model: Any) -> Iterator[_Finding]:
    """A chat of a few tokens, whose stream shows its format."""
    options = model._options(None, {"max_tokens": 5})  # noqa: SLF001  # our own class
    turn = model._turn([HumanMessage("Say OK.")], options, stream=True)  # noqa: SLF001  # our own class
    exchange = turn.exchange
    begun = time.monotonic()
    pieces = list(model._pieces(exchange))  # noqa: SLF001  # our own class
    took = time.monotonic() - begun
    label = exchange.head.headers.get("content-type", "no Content-Type").partition(";")[0]
    seen = exchange.parser.decoder.seen
    ended = "its own end mark" if seen.ended else seen.finish_reason or "nothing"
    yield _Finding(
        "v1",
        "ok",
        f"a stream of {len(pieces)} pieces in {took * 1000:.0f} ms: {label[:60]}, read as "
        f"{exchange.parser.decoder.format}, ended by {ended}, "
        f"usage {'sent' if seen.usage else 'not sent (it is estimated)'}",
    )


def _failed(interface: Interface, error: Exception) -> _Finding:
    said = " ".join(str(error).split())
    if isinstance(error, ValidationError):
        said = error_line(error).partition(": ")[2]
        setting = str(error.errors(include_url=False, include_input=False)[0]["loc"][:1])
        name = interface.key_env if "api_key" in setting else interface.url_env
        return _Finding(interface.name, "FAIL", said, f"correct {name}")
    fixes: dict[type[SvcError], str] = {
        SvcAuthenticationError: f"correct {interface.key_env}: it is not a key of this interface",
        SvcPermissionDeniedError: f"ask your provider what the key of {interface.key_env} may do",
        SvcNotFoundError: f"correct {interface.url_env}" + _ENDINGS[interface.name],
        SvcConnectionError: f"check {interface.url_env}, and that the service or sandbox runs",
        SvcTimeoutError: f"check {interface.url_env}, the proxy and the network",
        SvcRateLimitError: "wait, and run this again",
    }
    fix = next((fix for kind, fix in fixes.items() if isinstance(error, kind)), "")
    return _Finding(interface.name, "FAIL", said, fix or "try again later, or ask your provider")


_ENDINGS = {
    "v1": ": its path ends in /v1",
    "general": ": it ends before the /api of the paths",
    "medical": ": it ends before the /api/medical of the paths",
}
