"""Constructors whose failure does not show what they were given.

Among what a constructor gets are keys and patients' records. Pydantic's error keeps every input
for `errors()`, and the frames of its traceback have them as variables, which some tools print.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError


class Constructed:
    """A mixin that stands first, for classes of pydantic's.

    Raises:
        ValidationError: Pydantic's, with every problem but without inputs and inner frames.
    """

    if not TYPE_CHECKING:  # a type checker reads the words of a constructor from the fields

        def __init__(self, /, *args: Any, **words: Any) -> None:  # an argument may be named "self"
            if args:
                name = type(self).__name__
                word = "model" if "model" in type(self).model_fields else "api_key"
                raise TypeError(f"{name} takes its settings by name, as in {name}({word}=...)")
            failed = _failure(super().__init__, words)
            if failed is not None:
                del self  # half made, it would be shown with what is wrong about it
                raise failed


def _failure(make: Callable[..., None], words: dict[str, Any]) -> ValidationError | None:
    """What went wrong with `make(**words)`; afterwards `words` is empty."""
    try:
        make(**words)
    except ValidationError as error:
        return _without_inputs(error)
    finally:
        words.clear()
    return None


def _without_inputs(error: ValidationError) -> ValidationError:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return ValidationError.from_exception_data(
        error.title,
        [
            InitErrorDetails(
                type=PydanticCustomError(one["type"], "{said}", {"said": one["msg"]}),
                loc=one["loc"],
                input=None,
            )
            for one in found
        ],
        hide_input=True,
    )


def shown(value: object) -> str:
    """A value as an error may show it: short, and only the type of what may hold anything."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)[:40]
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")
    return f"a {type(value).__name__}"


_SHOWN = 40
