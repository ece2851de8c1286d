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
from typing import Any, TypeVar

from langchain_core.messages import HumanMessage
from pydantic_core import ValidationError

import langchain_svc as svc

from .. import config
from .._wire import About, Text
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
from .terminal import FAILED, add_options, emit, emit_json, error_line, wrapped

_LIBRARIES = (
    "langchain-svc", "langchain-core", "httpx", "httptools", "pydantic", "tiktoken", "langchain",
    "langgraph", "rich", "pillow", "h11",
)  # fmt: skip
_TIMEOUTS: dict[str, Any] = {"timeout": 15.0, "deadline": 30.0, "max_retries": 0}
_MOST_MODELS = 6  # of a line; some services list hundreds
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


_Result = TypeVar("_Result")


@dataclass(frozen=True)
class _Finding:
    """One line: `status` is ok, FAIL, warn or - (not set up, or for information)."""

    part: str
    status: str
    found: str
    fix: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
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
    """Print each finding as soon as it is known."""
    findings: list[_Finding] = []
    for finding in _findings(chat=not args.no_chat):
        findings.append(finding)
        if not args.json:
            _print(finding)
    failed = len([finding for finding in findings if finding.status == "FAIL"])
    set_up = any(map(_is_set, _OWN_VARIABLES))
    if args.json:
        emit_json([asdict(finding) for finding in findings])
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
    return FAILED if failed or not set_up else 0


def _print(finding: _Finding) -> None:
    head = f"{finding.status:<4}  {finding.part:<12} "
    indent = " " * len(head)
    emit(wrapped(head + finding.found, indent))
    if finding.fix:
        emit(wrapped(f"{indent}fix: {finding.fix}", " " * 24))


def _findings(*, chat: bool) -> Iterator[_Finding]:
    machine = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    yield _Finding("python", "ok", machine)
    yield _Finding("packages", "ok", ", ".join(filter(None, map(_version, _LIBRARIES))))
    yield from _environment()
    for interface in (V1, GENERAL, MEDICAL):
        unset = _find_unset(interface)
        if unset is not None:
            yield unset
            continue
        try:
            yield from _check(interface, chat=chat)
        except (SvcError, ValidationError) as error:
            yield _failure(interface, error)


# -- this machine ---------------------------------------------------------------------------------


def _version(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return ""


def _environment() -> Iterator[_Finding]:
    # The general interface shares its key with v1: a dict names each variable once.
    names = dict.fromkeys(
        name
        for interface in (V1, GENERAL, MEDICAL)
        for name in (interface.key_env, interface.url_env)
    )
    for name in names:
        if _is_set(name):
            yield _Finding("environment", "ok", f"{name} is set")
        else:
            yield _Finding("environment", "-", f"{name} is not set")
    yield from _misspelt_names()
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        if os.environ.get(name, "").strip().lower() == "true":
            yield _Finding(
                "environment",
                "warn",
                f"{name} sends prompts to LangSmith",
                f"unset {name}, unless the prompts may leave this machine",
            )
    for name in filter(_is_set, _OTHER_VARIABLES):
        if name == "SSL_CERT_FILE" and not Path(os.environ[name]).is_file():
            yield _Finding(
                "environment",
                "FAIL",
                f"{name} names a file that is not there",
                f"let {name} name a file of certificates, or unset it",
            )
        else:
            yield _Finding("environment", "-", f"{name} is set")


def _misspelt_names() -> Iterator[_Finding]:
    for name in sorted(os.environ):
        similar = difflib.get_close_matches(name, _OWN_VARIABLES, 1, 0.8)
        if similar and name not in _OWN_VARIABLES:
            yield _Finding(
                "environment",
                "warn",
                f"{name} is set, which nothing reads",
                f"rename it to {similar[0]}",
            )


def _is_set(name: str) -> bool:
    return bool(os.environ.get(name))


# -- the interfaces -------------------------------------------------------------------------------


def _check(interface: Interface, *, chat: bool) -> Iterator[_Finding]:
    """The status of the medical interface, the models of the others, and a chat."""
    if interface is MEDICAL:
        with svc.SvcMedicalStatus(**_TIMEOUTS) as tool:
            _, duration = _timed(lambda: tool.invoke({}))
        yield _Finding("medical", "ok", f"GET status answered in {duration}")
    elif interface is GENERAL:
        with svc.ChatSvc(interface="general", **_TIMEOUTS) as model:
            models, duration = _timed(model.list_models)
        yield _listing(interface, models, duration)
    else:
        with svc.ChatSvc(**_TIMEOUTS) as model:
            models, duration = _timed(model.list_models)
            yield _listing(interface, models, duration)
            if model.model and model.model not in {item.id for item in models}:
                yield _unlisted(model.model, models)
            if chat:
                yield _check_chat(model)


def _timed(call: Callable[[], _Result]) -> tuple[_Result, str]:
    """What a call returns, and how long it took."""
    start = time.monotonic()
    result = call()
    return result, f"{(time.monotonic() - start) * 1000:.0f} ms"


def _listing(
    interface: Interface, models: list[svc.ListedModel], duration: str
) -> _Finding:
    names = ", ".join(model.id for model in models[:_MOST_MODELS]) or "none"
    if len(models) > _MOST_MODELS:
        names += f" and {len(models) - _MOST_MODELS} more"
    return _Finding(interface.name, "ok", f"GET models answered in {duration}: {names}")


def _unlisted(model: str, models: list[svc.ListedModel]) -> _Finding:
    fix = "ask your provider"
    if models:
        fix = f"name one of them: --model {models[0].id}"
    return _Finding("v1", "warn", f"the default model {model!r} is not listed", fix)


def _find_unset(interface: Interface) -> _Finding | None:
    """Why an interface is not checked: nothing of it is set, or only one half."""
    has_key = _is_set(interface.key_env)
    has_url = _is_set(interface.url_env)
    if has_key and has_url:
        return None
    missing = interface.key_env if has_url else interface.url_env
    # The key of the general interface is that of v1, so a key alone does not set it up.
    if not has_url and (not has_key or interface is GENERAL):
        return _Finding(interface.name, "-", f"not set up: {missing} is not set")
    fix = f"export {missing}=..., or run `langchain-svc sandbox` and paste the lines it prints"
    return _Finding(interface.name, "FAIL", f"{missing} is not set", fix)


def _check_chat(model: Any) -> _Finding:
    """A chat of a few tokens, whose stream shows its format.

    The end mark and the usage stand in the exchange and its events, below the model's own face.
    """
    messages = [HumanMessage("Say OK.")]
    exchange = model._begin(messages, None, {"max_tokens": 5}, stream=True).exchange  # noqa: SLF001  # our own class
    reads, duration = _timed(lambda: list(model._client.read(exchange)))  # noqa: SLF001  # our own class
    label = exchange.head.headers.get("content-type", "no Content-Type")
    label = label.partition(";")[0][:60]
    about = About()
    text_reads = 0
    for events in reads:
        if any(isinstance(event, Text) for event in events):
            text_reads += 1
        for event in events:
            if not isinstance(event, Text):
                about.note(event)
    end = about.finish_reason or "nothing"
    if exchange.parser.ended:
        end = "its own end mark"
    usage = "sent" if about.usage else "not sent (it is estimated)"
    return _Finding(
        "v1",
        "ok",
        f"a stream of {text_reads} pieces in {duration}: {label}, ended by {end}, "
        f"usage {usage}",
    )


def _failure(interface: Interface, error: Exception) -> _Finding:
    if isinstance(error, ValidationError):
        setting, _, message = error_line(error).partition(": ")
        name = interface.url_env if setting == interface.url_env else interface.key_env
        return _Finding(interface.name, "FAIL", message, f"correct {name}")
    fixes: dict[type[SvcError], str] = {
        SvcAuthenticationError: f"correct {interface.key_env}: it is not a key of this interface",
        SvcPermissionDeniedError: f"ask your provider what the key of {interface.key_env} may do",
        SvcNotFoundError: f"correct {interface.url_env}" + _ENDINGS[interface.name],
        SvcConnectionError: f"check {interface.url_env}, and that the service or sandbox runs",
        SvcTimeoutError: f"check {interface.url_env}, the proxy and the network",
        SvcRateLimitError: "wait, and run this again",
    }
    fix = "try again later, or ask your provider"
    for kind, remedy in fixes.items():
        if isinstance(error, kind):
            fix = remedy
            break
    return _Finding(interface.name, "FAIL", error_line(error), fix)


_ENDINGS = {
    "v1": ": its path ends in /v1",
    "general": ": it ends before the /api of the paths",
    "medical": ": it ends before the /api/medical of the paths",
}
