"""What `inspect.signature()` and `help()` show of a class of settings, worked out on demand."""

from __future__ import annotations

import ast
import inspect
from inspect import Parameter, Signature
from textwrap import dedent, indent
from types import SimpleNamespace
from typing import TYPE_CHECKING, get_type_hints

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo


# Fields whose annotations check nothing, since validators do, or whose secrets may be texts.
_ACCEPTED_TYPES = {
    "api_key": "SecretStr | str | None",
    "proxy": "SecretStr | str | None",
    "audit_key": "SecretStr | str | None",
    "http_client": "httpx.Client | httpx2.Client | None",
    "http_async_client": "httpx.AsyncClient | httpx2.AsyncClient | None",
    "quota": "SvcQuota | None",
    "budget": "SvcBudget | None",
    "pseudonyms": "Pseudonyms | None",
}
_PACKAGE = __name__.partition(".")[0]


class LazySignature:
    """A class's `__signature__`: its settings with their types and defaults, our own ones first."""

    def __get__(self, instance: object, owner: type[BaseModel]) -> Signature:
        if instance is not None:
            raise AttributeError("__signature__ is the class's")
        inspect.getdoc(
            owner
        )  # pydoc asks for the signature, then reads the docstring past LazyDoc
        signature = _signature_of(owner)
        owner.__signature__ = signature
        return signature


class LazyDoc:
    """A class's `__doc__`: its docstring, and then what each parameter means.

    Args:
        doc: The docstring as it is written.
    """

    def __init__(self, doc: str) -> None:
        self._doc = doc

    def __get__(self, instance: object, owner: type[BaseModel]) -> str:
        doc = inspect.cleandoc(self._doc)
        meanings = _meanings_of(owner)
        lines = [
            f"{name}: {_first_paragraph(meanings[name])}"
            for name in _names_of(owner)
            if name in meanings
        ]
        if lines:
            doc += "\n\nAll parameters:\n" + indent("\n".join(lines), "    ")
        owner.__doc__ = doc
        return doc


def describe_lazily(kind: type[BaseModel]) -> None:
    """Give a class a signature and a docstring that are worked out at their first use."""
    kind.__signature__ = LazySignature()  # type: ignore[assignment]  # it gives one
    # A docstring of a user's subclass stays as the user wrote it.
    if kind.__doc__ and _is_ours(kind):
        kind.__doc__ = LazyDoc(kind.__doc__)  # type: ignore[assignment]  # it gives a text


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == _PACKAGE


def _names_of(kind: type[BaseModel]) -> list[str]:
    """The settings in the order of the signature: ours stand before LangChain's."""
    names: dict[str, None] = {}
    for base in filter(_is_ours, kind.__mro__):
        names |= dict.fromkeys(vars(base).get("__annotations__", ()))
    names |= dict.fromkeys(kind.model_fields)
    return [name for name in names if name in kind.model_fields]


def _signature_of(kind: type[BaseModel]) -> Signature:
    fields = kind.model_fields
    annotations = {name: field.annotation for name, field in fields.items()}
    # Without the checks of `Annotated`, which a reader cannot read.
    types = get_type_hints(SimpleNamespace(__annotations__=annotations))
    return Signature(
        [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=_default_of(fields[name]),
                annotation=_ACCEPTED_TYPES.get(name, types[name]),
            )
            for name in _names_of(kind)
        ]
    )


def _default_of(field: FieldInfo) -> object:
    if field.is_required():
        return Parameter.empty
    if isinstance(field.default_factory, type):  # an empty dict or store
        return field.default_factory()
    if field.default_factory is not None:  # of the environment
        return None
    return field.default


def _meanings_of(kind: type[BaseModel]) -> dict[str, str]:
    """What stands below the fields in the sources of a class and its bases, by their names."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if "model_fields" in dir(base):
            meanings |= _attribute_docs(base)
    return meanings


def _first_paragraph(text: str) -> str:
    paragraph = inspect.cleandoc(text).partition("\n\n")[0]
    return " ".join(paragraph.split())


def _attribute_docs(kind: type) -> dict[str, str]:
    try:
        source = dedent(inspect.getsource(kind))
    except (OSError, TypeError):  # an installation without sources
        return {}
    (definition,) = ast.parse(source).body
    if not isinstance(definition, ast.ClassDef):
        return {}
    docs: dict[str, str] = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[name] = text
    return docs
