"""Where the examples run: on the service if the environment names one, else on a sandbox."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_svc.sandbox import Sandbox


@contextmanager
def service(**options: Any) -> Iterator[dict[str, Any]]:
    """Yield the keyword arguments for ChatSvc; `options` are the sandbox's."""
    if os.environ.get("SVC_API_KEY") and os.environ.get("SVC_BASE_URL_V1"):
        yield {}  # ChatSvc reads the environment itself
        return
    print(
        "(On the sandbox: rules, not AI. Set SVC_API_KEY and SVC_BASE_URL_V1 to use the service.)"
    )
    with Sandbox(**options) as sandbox:
        yield dict(sandbox.v1)
