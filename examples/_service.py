"""Where the examples run: on the service if the environment names one, else on a sandbox."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from langchain_svc.sandbox import Sandbox


@contextmanager
def service(*, general: bool = False, **options: Any) -> Iterator[dict[str, Any]]:
    """Yield the keyword arguments for ChatSvc; `options` are the sandbox's.

    With `general` they are those of classes that speak to the general interface too.
    """
    names = ["SVC_API_KEY", "SVC_BASE_URL_V1", *(["SVC_BASE_URL"] if general else [])]
    if all(os.environ.get(name) for name in names):
        yield {}  # ChatSvc reads the environment itself
        return
    needed = f"{', '.join(names[:-1])} and {names[-1]}"
    print(f"(On the sandbox: rules, not AI. Set {needed} to use the service.)")
    with Sandbox(**options) as sandbox:
        yield {**sandbox.v1, **(sandbox.general if general else {})}


@contextmanager
def clinic() -> Iterator[dict[str, Any]]:
    """Yield the keyword arguments for the medical tools, which have a key of their own."""
    if os.environ.get("SVC_MEDICAL_API_KEY") and os.environ.get("SVC_MEDICAL_BASE_URL"):
        yield {}  # the tools read the environment themselves
        return
    with Sandbox() as sandbox:
        yield dict(sandbox.medical)


@contextmanager
def redis() -> Iterator[str]:
    """Yield the address of the Redis that the environment names, else of one of our own."""
    if address := os.environ.get("REDIS_URL"):
        yield address
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as server:  # noqa: S603  # our own words
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()


def serve(app: Any) -> None:
    """Serve an app on this machine until Ctrl-C; its address is printed."""
    uvicorn = needed("uvicorn", extras="test")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        print(f"http://127.0.0.1:{free.getsockname()[1]}", flush=True)
        with suppress(KeyboardInterrupt):
            server.run(sockets=[free])


def needed(module: str, *, extras: str) -> Any:
    """Import what only this example needs, or end with the line that installs it."""
    try:
        return import_module(module)
    except ImportError:
        raise SystemExit(
            f'This example needs {module}: pip install ".[{extras}]"'
        ) from None
