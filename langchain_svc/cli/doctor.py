"""`langchain-svc doctor`: what works, what does not, and how to fix it.

No key is ever printed, and nothing of a patient is sent: the medical interface is only asked for
its status.
"""

from __future__ import annotations

import argparse
import difflib
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from pydantic_core import ValidationError

import langchain_svc as svc

from .. import config
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
from .terminal import add_options, emit, emit_json, error_line, wrapped

_LIBRARIES = (
    "langchain-svc", "langchain-core", "httpx", "httptools", "pydantic", "tiktoken", "langchain",
    "langgraph", "rich", "pillow", "h11",
)  # fmt: skip
_TIMEOUTS: dict[str, Any] = {"timeout": 15.0, "deadline": 30.0, "max_retries": 0}
_NAMED = 6  # models; some services list hundreds
# What changes the way to the service.
_OTHER_VARIABLES = (
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
)
_OWN_VARIABLES = [
    getattr(config, name) for name in vars(config) if name.startswith("ENV_")
]


@dataclass(frozen=True)
class _Finding:
    """One line: `status` is ok, FAIL, warn or - (not set up, or only told)."""

    part: str
    status: str
    found: str
    fix: str = ""


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Check the environment and each configured interface, with the cheapest call. "
        "The exit code is 1 if one of them fails, or if nothing is set up."
    )
    add_options(parser, "--json")
    parser.add_argument(
        "--no-chat",
        action="store_true",
        help="skip the chat of a few tokens that shows the stream format",
    )


def run(args: argparse.Namespace) -> int:
    """Print what is found, as it is found."""
    findings: list[_Finding] = []
    for finding in _findings(chat=not args.no_chat):
        findings.append(finding)
        if not args.json:
            _print(finding)
    failed = sum(one.status == "FAIL" for one in findings)
    set_up = any(map(_set, _OWN_VARIABLES))
    if args.json:
        emit_json([asdict(one) for one in findings])
    elif failed:
        emit(f"\n{failed} failed.")
    elif not set_up:
        emit(
            "\nNothing is set up. Run `langchain-svc sandbox` in another terminal and paste the"
        )
        emit(
            "lines that it prints, or set the key and the address that your provider gave you."
        )
    else:
        emit("\nEverything that is set up works.")
    return 1 if failed or not set_up else 0


def _print(finding: _Finding) -> None:
    begin = f"{finding.status:<4}  {finding.part:<12} "
    emit(wrapped(begin + finding.found, " " * len(begin)))
    if finding.fix:
        emit(wrapped(f"{' ' * len(begin)}fix: {finding.fix}", " " * 24))


def _findings(*, chat: bool) -> Iterator[_Finding]:
    machine = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    yield _Finding("python", "ok", machine)
    yield _Finding("packages", "ok", ", ".join(filter(None, map(_version, _LIBRARIES))))
    yield from _environment()
    for interface in (V1, GENERAL, MEDICAL):
        if (unset := _unset(interface)) is not None:
            yield unset
            continue
        try:
            yield from _checked(interface, chat=chat)
        except (SvcError, ValidationError) as error:
            yield _failed(interface, error)


# -- this machine ---------------------------------------------------------------------------------


def _version(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return ""


def _environment() -> Iterator[_Finding]:
    for interface in (V1, GENERAL, MEDICAL):
        for name in (interface.key_env, interface.url_env):
            if (interface, name) != (GENERAL, V1.key_env):
                said = (
                    ("ok", f"{name} is set")
                    if _set(name)
                    else ("-", f"{name} is not set")
                )
                yield _Finding("environment", *said)
    for name in sorted(os.environ):
        near = difflib.get_close_matches(name, _OWN_VARIABLES, 1, 0.8)
        if near and name not in _OWN_VARIABLES:
            fix = f"rename it to {near[0]}"
            yield _Finding(
                "environment", "warn", f"{name} is set, which nothing reads", fix
            )
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        if os.environ.get(name, "").strip().lower() == "true":
            fix = f"unset {name}, unless the prompts may leave this machine"
            yield _Finding(
                "environment", "warn", f"{name} sends prompts to LangSmith", fix
            )
    for name in filter(_set, _OTHER_VARIABLES):
        if name == "SSL_CERT_FILE" and not Path(os.environ[name]).is_file():
            fix = f"let {name} name a file of certificates, or unset it"
            yield _Finding(
                "environment", "FAIL", f"{name} names a file that is not there", fix
            )
        else:
            yield _Finding("environment", "-", f"{name} is set")


def _set(name: str) -> bool:
    return bool(os.environ.get(name))


# -- the interfaces -------------------------------------------------------------------------------


def _checked(interface: Interface, *, chat: bool) -> Iterator[_Finding]:
    """The status of the medical interface, the models of the others, and a chat."""
    if interface is MEDICAL:
        with svc.SvcMedicalStatus(**_TIMEOUTS) as tool:
            _, took = _timed(lambda: list(tool._pieces(tool._use({}).exchange)))  # noqa: SLF001  # our own class
        yield _Finding("medical", "ok", f"GET status answered in {took}")
        return
    kind: Any = svc.ChatSvc if interface is V1 else svc.SvcLLM
    with kind(**_TIMEOUTS) as model:
        models, took = _timed(model.list_models)
        ids = [one.id for one in models]
        more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
        said = (
            f"GET models answered in {took}: {', '.join(ids[:_NAMED]) or 'none'}{more}"
        )
        yield _Finding(interface.name, "ok", said)
        if interface is V1 and model.model not in ids:
            fix = (
                f"name one of them: ChatSvc(model={ids[0]!r})"
                if ids
                else "ask your provider"
            )
            yield _Finding(
                "v1", "warn", f"the default model {model.model!r} is not listed", fix
            )
        if interface is V1 and chat:
            yield _chatted(model)


def _timed(call: Callable[[], Any]) -> tuple[Any, str]:
    """What a call returns, and how long it took."""
    begun = time.monotonic()
    found = call()
    return found, f"{(time.monotonic() - begun) * 1000:.0f} ms"


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


def _chatted(model: Any) -> _Finding:
    """A chat of a few tokens, whose stream shows its format."""
    asked = [HumanMessage("Say OK.")]
    exchange = model._begin(asked, None, {"max_tokens": 5}, stream=True).exchange  # noqa: SLF001  # our own class
    pieces, took = _timed(lambda: list(model._pieces(exchange)))  # noqa: SLF001  # our own class
    label = exchange.head.headers.get("content-type", "no Content-Type").partition(";")[
        0
    ]
    seen = exchange.parser.decoder.seen
    ended = "its own end mark" if seen.ended else seen.finish_reason or "nothing"
    usage = "sent" if seen.usage else "not sent (it is estimated)"
    said = f"a stream of {len(pieces)} pieces in {took}: {label[:60]}, ended by {ended}"
    return _Finding("v1", "ok", f"{said}, usage {usage}")


def _failed(interface: Interface, error: Exception) -> _Finding:
    said = " ".join(str(error).split())
    if isinstance(error, ValidationError):
        setting, _, said = error_line(error).partition(": ")
        name = interface.url_env if setting == interface.url_env else interface.key_env
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
    return _Finding(
        interface.name, "FAIL", said, fix or "try again later, or ask your provider"
    )


_ENDINGS = {
    "v1": ": its path ends in /v1",
    "general": ": it ends before the /api of the paths",
    "medical": ": it ends before the /api/medical of the paths",
}
