"""What the answers of a run depend on besides its rows, as names and short texts.

LangChain's own serialization says what a runnable is made of, with names in the place of keys. How
the service is reached and how long to wait is left out: it may change between two runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.load import dumpd
from langchain_core.runnables import Runnable

from .._service import ServiceSettings

_LONGEST = 40  # characters that are kept as they are
_NOT_ASKED = ServiceSettings.model_fields.keys() - {"privacy"} | {
    *("base_url", "base_url_v1", "medical_base_url", "callbacks", "metadata", "tags", "name"),
    *("streaming", "stream_tool_args", "merge_events", "require_stream_end", "repr", "lc"),
}


def fingerprint(runnable: Runnable[Any, Any], given: Mapping[str, Any] | None) -> dict[str, str]:
    """The settings of a run by their names; a long one as its digest.

    Args:
        runnable: What is asked.
        given: Further settings, as the caller names them.
    """
    found = dict(_leaves("", dumpd(runnable)))
    found.update(_leaves("", dict(given or {})))
    return {name: _short(value) for name, value in found.items()}


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        if value.get("type") == "secret":
            return
        for key, part in value.items():
            if key not in _NOT_ASKED:
                # "kwargs" is LangChain's word for what a class is made with.
                path = name if key == "kwargs" else f"{name}.{key}".lstrip(".")
                yield from _leaves(path, part)
    elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
        for place, part in enumerate(value):
            yield from _leaves(f"{name}.{place}".lstrip("."), part)
    else:
        yield name, value


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=lambda one: type(one).__name__)
    if len(text) <= _LONGEST:
        return text
    return "digest " + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
