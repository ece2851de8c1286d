"""A schema that would constrain nothing in one of its places is refused when it is given."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field
from share import part

from langchain_svc import ChatSvc, SvcRequestError

MODEL = ChatSvc(model="svc-pro", api_key="k", base_url_v1="http://localhost/v1", max_retries=0)

# -- schemas as people have them -------------------------------------------------------------------


class Dose(BaseModel):
    model_config = ConfigDict(extra="forbid")
    drug: str = Field(description="The type of drug", pattern="[a-z]+", max_length=40)
    mg: Annotated[float, Field(gt=0, le=5000, multiple_of=0.5)]
    route: Literal["oral", "iv"] = "oral"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(9, ge=0, lt=10)


class Dog(BaseModel):
    kind: Literal["dog"]
    tags: set[str] = Field(min_length=1, max_length=3)


class Plan(BaseModel):
    # Fields may have names that nearly are keywords, or are some.
    requred: date | None = None
    propertys: dict[str, list[Dose]]
    enums: tuple[int, str]
    type: Annotated[Cat | Dog, Field(discriminator="kind")]
    parts: list[Plan] = Field([], json_schema_extra={"x-note": "nested", "example": []})


DRAFT_7: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$id": "https://example.com/order",
    "title": "Order",
    "$comment": "Kept for the old clients",
    "type": "object",
    "definitions": {"name": {"type": "string", "minLength": 1}, "any": True},
    "properties": {
        "name": {"$ref": "#/definitions/name"},
        "pair": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}],
                 "additionalItems": False},
        "card": {"type": ["string", "null"], "contentEncoding": "base64", "readOnly": True},
        "both": {"allOf": [{"$ref": "#/definitions/name"}, {"not": {"enum": ["x", "y"]}}]},
        "some": {"contains": {"const": 3}, "uniqueItems": True, "maxItems": 4},
        "what": {"$ref": "#/definitions/any"},
        "whole": {"$ref": "#"},
    },
    "patternProperties": {"^s_": {"type": "string"}},
    "propertyNames": {"pattern": "^[a-z_]+$"},
    "dependencies": {"card": ["name"], "pair": {"required": ["name"]}},
    "if": {"properties": {"name": {"const": "a"}}},
    "then": {"required": ["card"]},
    "else": {"minProperties": 1},
    "required": ["name"],
    "additionalProperties": False,
}  # fmt: skip
DRAFT_2020: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Node",
    "$anchor": "node",
    "$dynamicAnchor": "node",
    "type": "object",
    "$defs": {"a/b": {"type": "boolean"}, "list": {"items": {"$dynamicRef": "#node"}}},
    "properties": {
        "row": {"prefixItems": [{"type": "number"}, True], "unevaluatedItems": False},
        "flag": {"$ref": "#/$defs/a~1b", "deprecated": True, "default": False},
        "list": {"$ref": "#/$defs/list"},
        "other": {"$ref": "https://example.com/other.json"},
        "few": {"contains": {}, "minContains": 1, "maxContains": 3, "examples": [[1]]},
    },
    "dependentRequired": {"row": ["flag"]},
    "dependentSchemas": {"row": {"properties": {"flag": {"const": True}}}},
    "unevaluatedProperties": {"type": "string", "contentSchema": {"type": "object"}},
    "nobody": {"knows": ["this", {"type": "strng"}]},
}
OPEN_API: dict[str, Any] = {
    "title": "Pet",
    "type": "object",
    "required": ["kind", "age"],
    "properties": {
        "kind": {"type": "string", "nullable": True, "example": "cat", "enum": ["cat", None]},
        "age": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "format": "double"},
        "tags": {"type": "array", "items": {"type": "string"}, "xml": {"wrapped": True}},
        "owner": {"oneOf": [{"type": "string"}, {"type": "integer"}], "writeOnly": True},
    },
    "discriminator": {"propertyName": "kind", "mapping": {"cat": "Cat"}},
    "externalDocs": {"url": "https://example.com"},
    "x-internal": {"type": "strng"},
    "strict": True,
}
SCHEMAS = {
    "pydantic": Plan.model_json_schema()["$defs"]["Plan"] | {
        "$defs": Plan.model_json_schema()["$defs"]
    },
    "dose": Dose.model_json_schema(),
    "draft-07": DRAFT_7,
    "2020-12": DRAFT_2020,
    "openapi": OPEN_API,
}  # fmt: skip


def ways_in(schema):
    """Each way to hand over a schema as a dict."""
    function = {"name": "save", "description": "Save it.", "parameters": schema}
    wrapped = {"type": "json_schema", "json_schema": {"name": "save", "schema": schema}}
    yield lambda: MODEL.with_structured_output(schema)
    yield lambda: MODEL.with_structured_output(schema, method="function_calling")
    yield lambda: MODEL.with_structured_output(schema, method="json_mode")
    yield lambda: MODEL.with_structured_output(function)
    yield lambda: MODEL.bind_tools([{"type": "function", "function": function}])
    yield lambda: MODEL.bind_tools([function])
    yield lambda: MODEL.bind_tools([schema | {"description": "Save it."}])
    yield lambda: MODEL.bind_tools(
        [{"name": "save", "description": "Save it.", "input_schema": schema}]
    )
    bedrock = {"name": "save", "description": "Save it.", "inputSchema": {"json": schema}}
    yield lambda: MODEL.bind_tools([{"toolSpec": bedrock}])
    yield lambda: MODEL.invoke("Hi", response_format=wrapped)
    yield lambda: MODEL.invoke("Hi", tools=[{"type": "function", "function": function}])


@pytest.mark.parametrize("name", SCHEMAS)
def test_valid_schemas_are_accepted(name):
    *given_now, answer, tools = ways_in(SCHEMAS[name])
    row = list(SCHEMAS).index(name)
    for give in part(given_now, row):
        give()
    for call in part([answer, tools], row):
        with pytest.raises(Exception, match=r"^(?!.*constrains nothing)"):
            call()  # nobody listens there


def test_the_schemas_of_json_schema_itself_are_accepted():
    specifications = pytest.importorskip("jsonschema_specifications")
    uris = [uri for uri in specifications.REGISTRY if "draft-03" not in uri]
    assert len(uris) > 15
    for uri in uris:
        schema = specifications.REGISTRY.contents(uri)
        MODEL.with_structured_output({**schema, "title": "meta", "type": "object"})


@pytest.mark.parametrize("kind", [Plan, Dose, list[Plan], Cat | Dog, convert_to_openai_tool(Plan)])
def test_what_pydantic_writes_is_accepted(kind):
    MODEL.with_structured_output(kind)


# -- slips -----------------------------------------------------------------------------------------

ONE = {"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items",
       "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}  # fmt: skip
LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
NAMES = {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
OTHERS = {"type", "required", "enum", "pattern", "format", "uniqueItems", "nullable", "minimum",
          "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
          "minItems", "maxItems", "minProperties", "minContains", "maxContains", "$ref",
          "dependentRequired", "const"}  # fmt: skip
CHECKED = ONE | LISTS | NAMES | OTHERS


def parts(schema: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """The paths of all schemas in a schema."""
    if not isinstance(schema, Mapping):
        return
    yield path
    for word, value in schema.items():
        if word in ONE and isinstance(value, Mapping):
            yield from parts(value, (*path, word))
        elif word in LISTS or (word == "items" and isinstance(value, list)):
            for index, inner in enumerate(value):
                yield from parts(inner, (*path, word, index))
        elif word in NAMES:
            for name, inner in value.items():
                yield from parts(inner, (*path, word, name))


def at(schema, path):
    for step in path:
        schema = schema[step]
    return schema


PLACES = [
    (name, path, word)
    for name, schema in SCHEMAS.items()
    for path in parts(schema)
    for word in at(schema, path)
    if word in CHECKED
]


@st.composite
def slips(draw, word, least=1):
    """The word with a slip of the keyboard behind its first letter."""
    way = draw(st.sampled_from(["double", "drop", "swap", "snake", "case", "plural", "other"]))
    first = 2 if word.startswith("$") else 1
    place = draw(st.integers(first, len(word) - 1))
    letter = word[place]
    if way == "double":
        return word[:place] + letter + word[place:]
    if way == "drop":
        assume(len(word) > 3)
        return word[:place] + word[place + 1 :]
    if way == "swap":
        return word[:place] + word[place : place + 2][::-1] + word[place + 2 :]
    if way == "snake":
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in word)
    if way == "case":
        return word[:place] + letter.swapcase() + word[place + 1 :]
    if way == "plural":
        return f"{word}s"
    assume(len(word.strip("$")) > 4)
    return word[:place] + draw(st.sampled_from("aeiouxtn")) + word[place + 1 :]


def refused(schema, *words):
    for give in ways_in(schema):
        with pytest.raises(SvcRequestError) as caught:
            give()
        for word in words:
            assert word in str(caught.value)


@given(st.data())
def test_a_misspelt_keyword_is_refused_wherever_it_stands(data):
    name, path, word = data.draw(st.sampled_from(PLACES))
    slip = data.draw(slips(word))
    assume(slip not in CHECKED)
    schema = copy.deepcopy(SCHEMAS[name])
    part = at(schema, path)
    part[slip] = part.pop(word)
    # mnxItems is as near to maxItems as to minItems.
    nearest = [known for known in CHECKED if likeness(slip, known) >= likeness(slip, word)]
    refused(schema, ".".join(map(str, [*path, slip])), *([repr(word)] if nearest == [word] else []))


def likeness(word, other):
    plain, other_plain = (text.replace("_", "").lower() for text in (word, other))
    return difflib.SequenceMatcher(None, other_plain, plain).ratio()


@given(st.data())
def test_a_type_that_is_none_is_refused_wherever_it_stands(data):
    name, path, _ = data.draw(st.sampled_from([place for place in PLACES if place[2] == "type"]))
    schema = copy.deepcopy(SCHEMAS[name])
    part = at(schema, path)
    types = part["type"] if isinstance(part["type"], list) else [part["type"]]
    slip = data.draw(
        st.one_of(slips(types[0]), st.sampled_from(["dict", "float", "any", "STRING"]))
    )
    assume(slip != types[0])
    part["type"] = data.draw(st.sampled_from([slip, [*types, slip], [], {"const": 1}, None]))
    value = slip if slip in str(part["type"]) else ""
    if path:  # at the top it may be the type of another provider's tool
        refused(schema, ".".join(map(str, [*path, "type"])), value, "array, boolean, integer")
    else:
        refused(schema)


# Values that no reader understands. (A boolean is a schema, and OpenAPI's bound.)
ODD = {
    **{key: ["string", 3, None] for key in ONE},
    **{key: ["string", {}, True] for key in LISTS},
    **{key: ["string", [], True] for key in NAMES},
    **{key: [{}, None] for key in OTHERS - {"const", "dependentRequired"}},
    "required": ["name", True, [3], {}],
    "enum": ["a", {"a": 1}, 3],
}


@given(st.data())
def test_a_keyword_whose_value_makes_no_sense_is_refused_wherever_it_stands(data):
    places = [place for place in PLACES if place[2] in ODD]
    name, path, word = data.draw(st.sampled_from(places))
    schema = copy.deepcopy(SCHEMAS[name])
    value = data.draw(st.sampled_from(ODD[word]))
    at(schema, path)[word] = value
    if path:  # LangChain itself refuses some at the top
        refused(schema, ".".join(map(str, [*path, word])), "constrains nothing")
    else:
        refused(schema)


@given(st.data())
def test_a_reference_to_nowhere_is_refused_wherever_it_stands(data):
    places = [
        place
        for place in PLACES
        if place[2] == "$ref" and at(SCHEMAS[place[0]], place[1])["$ref"].startswith("#/")
    ]
    name, path, _ = data.draw(st.sampled_from(places))
    schema = copy.deepcopy(SCHEMAS[name])
    part = at(schema, path)
    part["$ref"] += data.draw(st.sampled_from(["s", "/properties/none", "_"]))
    refused(schema, ".".join(map(str, [*path, "$ref"])), repr(part["$ref"]), "'#/$defs/Name'")


@pytest.mark.parametrize("pattern", ["(", "*", r"\p{None}", "(a{1000}){1000}"])
def test_a_pattern_that_no_text_can_be_searched_for_is_refused_wherever_it_stands(pattern):
    field = {"type": "string", "pattern": pattern}
    schema = {"title": "Page", "type": "object", "properties": {"slug": field}}
    refused(schema, "properties.slug.pattern", repr(pattern), "a regular expression")
    schema = {"title": "Page", "type": "object", "patternProperties": {pattern: field}}
    refused(schema, "patternProperties", repr(pattern), "a regular expression")


def test_a_closed_object_that_requires_a_field_it_cannot_have_is_refused():
    schema = copy.deepcopy(SCHEMAS["dose"]) | {"required": ["drug", "dosage"]}
    refused(schema, "required", "'dosage'", "['drug', 'mg', 'route']")
    schema["additionalProperties"] = {"type": "string"}
    MODEL.with_structured_output(schema)


@given(
    st.lists(st.sampled_from(["x", "city", "how many", "drug"]), min_size=1, unique=True), st.data()
)
def test_fields_without_an_object_around_them_are_refused(names, data):
    kinds = st.sampled_from([{"type": "string"}, {"type": "array", "items": {"type": "integer"}}])
    refused({"title": "Flat", **{name: data.draw(kinds) for name in names}}, names[0], "properties")


def test_a_schema_that_holds_itself_does_not_hang():
    schema = {"title": "Loop", "type": "object", "properties": {}}
    schema["properties"]["inner"] = schema
    MODEL.with_structured_output(schema)


@pytest.mark.parametrize("slip", ["paramters", "parameter", "Parameters", "inputSchema", "args"])
def test_a_function_whose_parameters_have_another_name_is_refused(slip):
    function = {"name": "save", "description": "Save it.", slip: SCHEMAS["dose"]}
    for tool in (function, {"type": "function", "function": function}):
        with pytest.raises(SvcRequestError, match=f"'{slip}' of the function 'save'.*'parameters'"):
            MODEL.bind_tools([tool])
    with pytest.raises(SvcRequestError, match=slip):
        MODEL.with_structured_output(function)


# -- what is no schema -----------------------------------------------------------------------------

NO_SCHEMA: list[dict[str, Any]] = [
    {"name": "string", "age": "int"},
    {"name": {"type": "string"}, "age": {"type": "integer"}},
    {"city": "str"},
    {"people": ["string"]},
    {"city": {"description": "where"}},
    {"title": "Person", "name": "string"},
]


@pytest.mark.parametrize("written", NO_SCHEMA)
def test_a_dict_that_is_no_schema_is_refused(written):
    for give in ways_in(written):
        with pytest.raises(SvcRequestError, match=r"constrains nothing: it .*properties"):
            give()
    with pytest.raises(SvcRequestError):
        MODEL.bind_tools([written])


def test_an_empty_dict_is_no_schema():
    with pytest.raises(SvcRequestError, match=r"it is \{\}, and must be a schema, such as"):
        MODEL.with_structured_output({})


@pytest.mark.parametrize("function", [{"name": "now"}, {"name": "now", "description": "The time."}])
def test_a_function_without_parameters_is_a_tool_and_no_answer(function):
    MODEL.bind_tools([function])
    MODEL.bind_tools([{"type": "function", "function": function}])
    with pytest.raises(SvcRequestError, match="'now' has no parameters"):
        MODEL.with_structured_output(function)


LIST = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize("parameters", [LIST, {"type": "string"}, {"items": {"type": "string"}}])
def test_arguments_of_a_tool_are_an_object(parameters):
    for tool in ({"name": "save", "parameters": parameters}, {"title": "save", **parameters}):
        with pytest.raises(SvcRequestError, match="'save' are not an object"):
            MODEL.bind_tools([tool])


def test_a_schema_without_a_name_is_no_tool():
    with pytest.raises(SvcRequestError, match="has no name: write 'name', or the 'title'"):
        MODEL.bind_tools([{"type": "object", "properties": {"a": {"type": "string"}}}])
