"""JSON out of real model text, and onto a schema: pure, without LangChain and without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.lazy import lazy
from .reasoning import (
    ALL_WAS_REASONING,
    CONTENT,
    HALF_MARK,
    NATIVE,
    NATIVE_ENDS,
    SPOKEN,
    ReasoningSplitter,
    Segment,
    closer_of,
)

if TYPE_CHECKING:
    from .answer import read_answer
    from .fit import SchemaMismatch, fit_schema
    from .lenient import attempt_json, once, read_json, refuse_constant
    from .malformed import check_schema
    from .markers import Markers
    from .parser import JsonValue
    from .partial import PartialObject
    from .scalars import shortened
    from .schema import CompiledSchema
    from .signs import has_surrogates, whole_characters

if not TYPE_CHECKING:  # a misspelt name is an error for type checkers
    __getattr__ = lazy(
        __name__,
        {
            "answer": "read_answer",
            "signs": "has_surrogates whole_characters",
            "lenient": "attempt_json once read_json refuse_constant",
            "malformed": "check_schema",
            "markers": "Markers",
            "partial": "PartialObject",
            "parser": "JsonValue",
            "scalars": "shortened",
            "fit": "SchemaMismatch fit_schema",
            "schema": "CompiledSchema",
        },
    )
