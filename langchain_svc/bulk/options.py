"""How a run goes, and what its answers depend on."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.load import dumpd
from langchain_core.load.serializable import Serializable
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel

from .._base.safe_errors import safe_repr
from .._settings import ServiceSettings, suggests_fields
from ..errors import SvcRequestError

Place: TypeAlias = str | os.PathLike[str]
Format: TypeAlias = str | Callable[[Any], Any] | None
"""A template of a row's columns, or a function from a row to the runnable's input."""

# Names that answers do not depend on. How the service is reached and how long to wait may change
# between two runs, and so may the length at which an answer is cut: a whole answer is the same, and
# rows with cut answers are to be asked again with a higher limit.
_NO_MATTER = ServiceSettings.model_fields.keys() - {"privacy"} | {
    "base_url",
    "base_url_v1",
    "callbacks",
    "continue_by",
    "lc",
    "max_continuations",
    "max_tokens",
    "medical_base_url",
    "merge_events",
    "metadata",
    "name",
    "on_cut",
    "repr",
    "require_stream_end",
    "stream_tool_args",
    "streaming",
    "tags",
}

_OTHER_FORMATS = {".csv", ".tsv", ".parquet", ".xlsx"}


@suggests_fields
@dataclass(frozen=True, kw_only=True, repr=False)
class BulkOptions:
    """The options of a bulk run: keyword arguments of `run` and `arun`.

    Attributes:
        journal: The file that keeps the answers, readable by its owner only. It belongs to one
            input and one runnable. A missing file is created; its folder must exist.
        output: A JSONL file that is written whole when the run ends, one `{"row", "id",
            "content", "usage", "finish_reason", "error"}` per line; "-" is stdout. Where the run
            ends early, rows without an answer have an error of the type "unanswered", and are
            asked by the next run.
        concurrency: How many rows are asked at the same time.
        format: A template for other columns ("Summarize: {text}"), or a function from a row to
            what the runnable is asked.
        ordered: Whether the output has the order of the input; otherwise rows are in the order
            in which they finished.
        retry_errors: Whether rows that failed or were cut in an earlier run are asked again.
        shard: The part of the input that this run asks, for several machines: "1/2" is every second
            row from the first on. Each machine has the whole input and a journal of its own.
        settings: What else the answers depend on, such as the version of a function. A journal
            with answers of other settings is refused.
        outage_wait: Seconds that the run waits, counted from the last answer, for a service that is
            down or whose limit is used up.
        prices: Token prices as for `SvcUsageCallbackHandler`, for example `model.list_models()`,
            all in one currency.
        config: Passed to every call. Its `max_concurrency` is ignored.
        progress: Whether progress is shown on stderr; False logs no waits either. None shows it on
            a terminal and in a notebook.

    Raises:
        SvcRequestError: A value is out of range, or two of the files are the same.
        TypeError: There is no such option; the error suggests the nearest.
    """

    journal: Place
    output: Place | None = None
    concurrency: int = 16
    format: Format = None
    ordered: bool = False
    retry_errors: bool = False
    shard: str | None = None
    settings: Mapping[str, Any] | None = None
    outage_wait: float = 3600.0
    prices: Mapping[str, Any] | Iterable[Any] | None = None
    config: RunnableConfig | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        for name, least, kinds, kind in (
            ("concurrency", 1, int, "a whole number"),
            ("outage_wait", 0, (int, float), "seconds"),
        ):
            value = getattr(self, name)
            is_number = isinstance(value, kinds) and not isinstance(value, bool)
            if not is_number or not least <= value < math.inf:
                raise SvcRequestError(
                    f"{name} must be {kind} >= {least}, not {safe_repr(value)}"
                )

        self.part()

    def part(self) -> tuple[int, int]:
        """The shard as numbers: (1, 2) of "1/2".

        Raises:
            SvcRequestError: The text is not of this form.
        """
        if self.shard is None:
            return 1, 1
        match = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,8})", str(self.shard))
        if match is None or int(match[1]) > int(match[2]):
            raise SvcRequestError(
                f"shard must be a part of the input such as '1/2' or '3/8', not "
                f"{safe_repr(self.shard)}"
            )
        return int(match[1]), int(match[2])

    def check_places(self, rows: object) -> None:
        """No file may be written over another, and a device is not replaced by a file."""
        places = [self.journal]
        if isinstance(rows, str | os.PathLike):
            places.append(rows)
        if self.output is not None:
            places.append(self.output)
            if self.output != "-":
                _check_output(Path(self.output))
        paths = [os.path.realpath(place) for place in places if place != "-"]
        if len(set(paths)) < len(paths):
            raise SvcRequestError(
                "The input, the journal and the output must be three files, and two of them are "
                f"{max(paths, key=paths.count)}"
            )

    def fingerprint(self, runnable: Runnable[Any, Any]) -> dict[str, str]:
        """A digest of each thing that the answers depend on besides the rows, by name.

        LangChain's own serialization says what a runnable is made of, with names in the place of
        keys. A value may be a key in a header or somebody's text.
        """
        leaves = dict(_leaves("", dumpd(runnable)))
        config = dict(self.config or {})
        leaves.update(_records("record", [runnable, config]))
        settings = dict(self.settings or {})
        leaves.update(_leaves("settings", settings))
        if isinstance(self.format, str):
            leaves["format"] = self.format
        if self.shard is not None:
            leaves["shard"] = self.shard
        return {name: _digest(name, value) for name, value in leaves.items()}


def _check_output(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise SvcRequestError(
            f"The output {path} is not a regular file and would be replaced by one: give "
            "another path, or - for stdout"
        )
    if path.suffix.lower() in _OTHER_FORMATS:
        raise SvcRequestError(
            f"The output {path} is written as JSONL, which its suffix denies: name it "
            f"{path.with_suffix('.jsonl')}"
        )


def _records(name: str, value: object) -> Iterator[tuple[str, object]]:
    """The objects that LangChain does not serialize but answers are about: a patient's record."""
    if isinstance(value, BaseModel) and not isinstance(value, Serializable):
        yield name, value.model_dump_json()
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _records(f"{name}.{place}", item)
    elif isinstance(value, (BaseModel, dict)):
        for key, item in dict(value).items():
            if key not in _NO_MATTER:
                yield from _records(f"{name}.{key}", item)


def _leaves(name: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        if value.get("type") == "secret":
            return
        for key, item in value.items():
            if key == "kwargs":  # LangChain's word for the arguments of a class
                yield from _leaves(name, item)
            elif key not in _NO_MATTER:
                yield from _leaves(f"{name}.{key}".lstrip("."), item)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for place, item in enumerate(value):
            yield from _leaves(f"{name}.{place}".lstrip("."), item)
    else:
        yield name, value


def _digest(name: str, value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=lambda part: type(part).__name__)
    return hashlib.blake2b(f"{name}\0{text}".encode(), digest_size=16).hexdigest()
