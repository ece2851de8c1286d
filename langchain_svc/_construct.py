"""Constructors whose failure does not show what they were given.

Among what a constructor gets are keys and patients' records. Pydantic's error keeps every input
for `errors()`, and the frames of its traceback have them as variables, which some tools print.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

T = TypeVar("T")


def construct(make: Callable[..., T], words: dict[str, Any]) -> T:
    """What `make(**words)` makes; afterwards `words` is empty, also where it fails.

    Raises:
        ValidationError: Pydantic's, with every problem but without inputs and inner frames.
    """
    try:
        return make(**words)
    except ValidationError as error:
        failed = _without_inputs(error)
    finally:
        words.clear()
    raise failed


class Constructed:
    """A mixin that stands first, for classes of pydantic's."""

    if not TYPE_CHECKING:  # a type checker reads the words of a constructor from the fields

        def __init__(self, /, **words: Any) -> None:  # a model may name an argument "self"
            construct(super().__init__, words)


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
