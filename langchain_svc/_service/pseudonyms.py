"""What a request hides and its answer restores: whoever people are, by marks in their place.

The core knows only this protocol; `langchain_svc.privacy.Pseudonyms` implements it. All that an
object sends passes `hidden_body`, and all that it reads is restored where a parser reads it, so
that no text can take another way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol, TypeGuard

from langchain_core.runnables.config import var_child_runnable_config

from .._base.safe_errors import safe_repr
from .._wire import dump_json
from ..errors import SvcRequestError

CONFIG_KEY = "svc_pseudonyms"
"""The key of `config["configurable"]` that holds the pseudonyms of one run."""
# What of a body is no text of a person: names of models and roles, choices, and images.
_NOT_TEXT = frozenset(
    {
        *("model", "role", "task", "size", "quality"),
        *("from", "to", "language", "imagingType", "image", "images"),
    }
)

_DECODER = json.JSONDecoder()


class Restorer(Protocol):
    """Restores one text that comes in pieces: a `PseudonymRestorer`."""

    def parse_chunk(self, text: str) -> str:
        """The next piece, as far as it is certain."""

    def close(self) -> str:
        """What was held back."""


class Pseudonymizer(Protocol):
    """Hides identifiers in texts, and restores them."""

    def hide(self, text: str) -> str:
        """A text with marks in the place of identifiers."""

    def restore(self, text: str) -> str:
        """A text with identifiers in the place of marks."""

    def restorer(self) -> Restorer:
        """Restores a text that comes in pieces."""


def check_pseudonyms(value: object) -> Pseudonymizer | None:
    """A value of the setting or of a run.

    Raises:
        ValueError: It cannot hide and restore.
    """
    if value is None or _is_pseudonymizer(value):
        return value
    raise ValueError(
        "must be Pseudonyms, such as Pseudonyms.from_fhir(record) or Pseudonyms(names=[...]), "
        f"not {safe_repr(value)}"
    )


def _is_pseudonymizer(value: object) -> TypeGuard[Pseudonymizer]:
    return all(
        callable(getattr(value, name, None)) for name in ("hide", "restore", "restorer")
    )


def pseudonyms_of_run(
    args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Pseudonymizer | None:
    """The pseudonyms that a run's config brings; `args` are those behind `self`.

    Raises:
        SvcRequestError: They cannot hide and restore.
    """
    config = kwargs.get("config")
    if config is None and len(args) > 1:
        config = args[1]
    if not isinstance(config, Mapping):
        config = var_child_runnable_config.get()  # of the chain or agent around it
    if not config:
        return None
    value = (config.get("configurable") or {}).get(CONFIG_KEY)
    try:
        return check_pseudonyms(value)
    except ValueError as error:
        problem = f"config['configurable']['{CONFIG_KEY}'] {error}"
    raise SvcRequestError(problem)


def hidden_body(body: bytes, pseudonyms: Pseudonymizer) -> bytes:
    """A request's body with marks in all of its texts."""
    return dump_json(_hidden(json.loads(body), pseudonyms))


def _hidden(value: object, pseudonyms: Pseudonymizer) -> object:
    if isinstance(value, str):
        return pseudonyms.hide(value)
    if isinstance(value, list):
        return [_hidden(item, pseudonyms) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in _NOT_TEXT else _hidden(item, pseudonyms)
            for key, item in value.items()
        }
    return value


def restored_body(body: bytes, pseudonyms: Pseudonymizer) -> bytes:
    """A whole answer's body with what was hidden, in each string of its JSON or in its text.

    Everything else stays as it is written: numbers, and members that stand twice.
    """
    text = body.decode("utf-8-sig", "replace")
    try:
        json.loads(text)
    except ValueError:
        return pseudonyms.restore(text).encode()

    pieces: list[str] = []
    at = 0
    while True:
        begin = text.find('"', at)
        if begin < 0:
            break
        string, end = _DECODER.raw_decode(text, begin)
        whole = pseudonyms.restore(string)
        pieces.append(text[at:begin])
        if whole == string:
            pieces.append(text[begin:end])
        else:
            pieces.append(json.dumps(whole, ensure_ascii=False))
        at = end
    pieces.append(text[at:])
    return "".join(pieces).encode()
