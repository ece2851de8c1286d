"""JSON out of real model text, and onto a schema: pure, without LangChain and without I/O."""

from .answer import read_answer
from .embedded import (
    Brackets,
    More,
    Signs,
    bracket_end,
    embedded_json,
    split_commas,
)
from .fit import SchemaMismatch, fit_schema
from .form import Form, form_of
from .malformed import check_schema
from .parser import (
    JsonValue,
    PartialObject,
    read_json,
)
from .scalars import dump, shortened, with_decimals
from .schema import TYPE_NAMES, CompiledSchema
from .signs import has_surrogates, lone_backslash, whole_characters
