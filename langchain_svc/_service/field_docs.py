"""What `help()` and an editor show of a class of settings, worked out when somebody looks.

The source of each field's description is the docstring under it. Pydantic can read them too, but it
parses the source when the class is made, which would be a tenth of the first import.
"""

from __future__ import annotations

import ast
import inspect
from functools import reduce
from itertools import pairwise
from operator import or_
from textwrap import TextWrapper, dedent
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

_WRAP = TextWrapper(96, initial_indent="    ", subsequent_indent="        ")


def field_docs(kind: type[Any]) -> dict[str, str]:
    """The docstrings under a class's fields, and under those of our classes that it is made of."""
    found: dict[str, str] = {}
    for one in kind.__mro__:
        if one.__module__.partition(".")[0] == __name__.partition(".")[0]:
            found |= {name: said for name, said in _own_docs(one).items() if name not in found}
    return found


def _own_docs(kind: type[Any]) -> dict[str, str]:
    try:
        source = dedent(inspect.getsource(kind))
    except (OSError, TypeError):  # compiled, or made at a prompt
        return {}
    (tree,) = ast.parse(source).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(said.value.value)
        for field, said in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(said, ast.Expr)
        and isinstance(said.value, ast.Constant)
        and isinstance(said.value.value, str)
    }


class DocWithArgs:
    """A class's docstring with an `Args:` block of its fields."""

    def __init__(self, text: str) -> None:
        self._text = inspect.cleandoc(text)

    def __get__(self, _: object, kind: type[Any]) -> str:
        lines = [
            _WRAP.fill(f"{name}: {' '.join(said.split())}")
            for name, said in field_docs(kind).items()
            if name in kind.model_fields
        ]
        summary, raises, rest = self._text.partition("\n\nRaises:")
        return "\n".join([summary, "", "Args:", *lines]) + raises + rest


class PlainSignature:
    """A constructor's signature without the checks of its parameters, our own ones first."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def __get__(self, _: object, kind: type[Any]) -> inspect.Signature:
        kind.__doc__ = kind.__doc__  # help() asks for the signature first, and takes only a text
        made: inspect.Signature = self._made.__get__(None, kind)
        own = [name for name in field_docs(kind) if name in made.parameters]
        others = [
            name
            for name, parameter in made.parameters.items()
            if name not in own and parameter.kind is not parameter.VAR_POSITIONAL
        ]
        parameters = (made.parameters[name] for name in (*own, *others))
        return made.replace(
            parameters=[one.replace(annotation=_plain(one.annotation)) for one in parameters]
        )


def _plain(annotation: Any) -> Any:
    """A type without what pydantic checks about it."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _plain(parts[0])
    if origin in {Union, UnionType}:
        return reduce(or_, map(_plain, parts))
    return annotation
