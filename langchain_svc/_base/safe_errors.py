"""Constructors whose failure does not show what they were given.

Among what a constructor gets are keys and patients' records. Pydantic's error keeps every input
for `errors()`, and the frames of its traceback have them as variables, which some tools print.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

Kind = TypeVar("Kind", bound="type[Any]")


def safe_constructor(kind: Kind) -> Kind:
    """Gives a class of pydantic's, and those made of it, such a constructor.

    Raises:
        ValidationError: Pydantic's, with every problem but without inputs and inner frames.
    """
    above: type[Any] = kind

    def __init__(self: Any, /, *args: Any, **words: Any) -> None:  # noqa: N807  # it is one
        if args:
            name = type(self).__name__
            fields = type(self).model_fields
            word = next(one for one in ("model", "api_key", *fields) if one in fields)
            raise TypeError(
                f"{name} takes its settings by name, as in {name}({word}=...)"
            )
        failed = _failure(super(above, self).__init__, words)
        if failed is not None:
            del self  # half made, it would be shown with what is wrong about it
            raise failed

    kind.__init__ = __init__
    return kind


def _failure(
    make: Callable[..., None], words: dict[str, Any]
) -> ValidationError | None:
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


def safe_repr(value: object) -> str:
    """A value as an error may show it: short, and only the type of what may hold anything."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)[:40]
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")
    return f"a {type(value).__name__}"


_SHOWN = 40
