"""Constructors whose errors do not show their arguments.

Constructors receive keys and patients' records. Pydantic's error keeps every input for `errors()`,
and the frames of its traceback hold them as variables, which some tools print.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

Kind = TypeVar("Kind", bound="type[Any]")


def safe_constructor(kind: Kind) -> Kind:
    """Gives a pydantic class and its subclasses a constructor that keeps its arguments to itself.

    Raises:
        ValidationError: Pydantic's, with every problem but without inputs and inner frames.
    """
    base: type[Any] = kind

    def __init__(self: BaseModel, /, *args: object, **values: object) -> None:  # noqa: N807  # it is one
        if args:
            name = type(self).__name__
            fields = type(self).model_fields
            example = next(
                field for field in ("model", "api_key", *fields) if field in fields
            )
            raise TypeError(
                f"{name} takes its settings by name, as in {name}({example}=...)"
            )
        error = _validation_error(super(base, self).__init__, values)
        if error is not None:
            # A traceback would show the half-made object with its invalid values.
            del self
            raise error

    kind.__init__ = __init__
    return kind


def _validation_error(
    constructor: Callable[..., None], values: dict[str, object]
) -> ValidationError | None:
    """The error of `constructor(**values)`, without inputs; it empties `values`."""
    try:
        constructor(**values)
    except ValidationError as error:
        return _without_inputs(error)
    finally:
        values.clear()
    return None


def _without_inputs(error: ValidationError) -> ValidationError:
    problems: list[InitErrorDetails] = []
    for problem in error.errors(
        include_url=False, include_context=False, include_input=False
    ):
        # The text is a value of the template: braces in it stay as they are.
        text = {"text": problem["msg"]}
        kind = PydanticCustomError(problem["type"], "{text}", text)
        problems.append(InitErrorDetails(type=kind, loc=problem["loc"], input=None))
    return ValidationError.from_exception_data(error.title, problems, hide_input=True)


def safe_repr(value: object) -> str:
    """A value as an error may show it: short, of objects only the type."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)[:_LONGEST]
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if not isinstance(value, str):
        return type_text(value)
    if len(value) > _LONGEST:
        value = value[:_LONGEST] + "..."
    return repr(value)


_LONGEST = 40  # characters of a value


def type_text(value: object) -> str:
    """The type of a value behind its article: a list, an int, a UUID."""
    name = type(value).__name__
    article = "a"
    if name[0] in "aeioAEIO":
        article = "an"
    return f"{article} {name}"
