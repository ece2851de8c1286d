"""What a request hides and its answer restores: whoever people are, by marks in their place.

All that an object sends passes `hidden_body`. An answer stays as the service wrote it, with marks,
until it is given out: a chat's by its turn, any other by its parser.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

from langchain_core.runnables.config import var_child_runnable_config

from .._base.safe_errors import safe_repr
from .._text import Pseudonymizer
from .._wire import dump_json
from ..errors import SvcRequestError
from ..images import is_address

CONFIG_KEY = "svc_pseudonyms"
"""The key of `config["configurable"]` that holds the pseudonyms of one run."""


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
    if config is None or not isinstance(config, Mapping):
        config = var_child_runnable_config.get()  # of the chain or agent around it
    if not config:
        return None
    value = (config.get("configurable") or {}).get(CONFIG_KEY)
    try:
        return check_pseudonyms(value)
    except ValueError as error:
        problem = f"config['configurable']['{CONFIG_KEY}'] {error}"
    raise SvcRequestError(problem)


def hidden_body(
    body: bytes,
    pseudonyms: Pseudonymizer,
    *,
    closed: Collection[str] = (),
    images: Collection[str] = (),
) -> bytes:
    """A request's body with marks in all of its texts, whatever their fields are called.

    Args:
        body: The body, a JSON object.
        pseudonyms: What hides.
        closed: The fields in which nothing is left to hide: their values are of a closed set, which
            was checked, or were hidden before.
        images: The fields that hold images: base64 stays as it is.

    Raises:
        SvcRequestError: The address of an image names somebody: a mark would make it another
            address, and without one the name would leave.
    """
    fields: dict[str, object] = {}
    for name, value in json.loads(body).items():
        if name in images:
            _check_addresses(value, pseudonyms)
        elif name not in closed:
            fields[pseudonyms.hide(name)] = _hidden(value, pseudonyms)
            continue
        fields[name] = value
    return dump_json(fields)


def _hidden(value: object, pseudonyms: Pseudonymizer) -> object:
    if isinstance(value, str):
        return pseudonyms.hide(value)
    if isinstance(value, list):
        return [_hidden(item, pseudonyms) for item in value]
    if isinstance(value, dict):
        return {
            pseudonyms.hide(key): _hidden(item, pseudonyms)
            for key, item in value.items()
        }
    return value


def _check_addresses(images: Any, pseudonyms: Pseudonymizer) -> None:
    for image in images if isinstance(images, list) else [images]:
        if is_address(image) and pseudonyms.hide(image) != image:
            break
    else:
        return
    del images, image  # a traceback would show them
    raise SvcRequestError(
        "The address of an image has a name or a number of the pseudonyms in it, so it was not "
        "sent: whoever is behind the address would read it. Give the image itself, as a handle or "
        "as base64"
    )
