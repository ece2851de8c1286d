"""Validation against the reference implementation, on schemas and values made up at random."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from share import fewer

from langchain_svc._json.fit import fit_schema, problems

jsonschema = pytest.importorskip("jsonschema")

NAMES = st.sampled_from(["a", "b", "A", "b-c", "properties", "type"])
WORDS = st.sampled_from(["", "a", "yes", "5", "b c", "null"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([0.5, 1.0, 2.5, 5.0, -1.5]),
    WORDS,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def keywords(inner):
    small = st.integers(0, 3)
    return {
        "type": st.one_of(TYPES, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "const": SCALARS,
        "minimum": st.integers(-2, 6),
        "maximum": st.integers(-2, 6),
        "exclusiveMinimum": st.integers(-2, 6),
        "exclusiveMaximum": st.integers(-2, 6),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
        "minLength": small,
        "maxLength": small,
        "pattern": st.sampled_from(["^a", "s$", "^[0-9]+$", "."]),
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "minItems": small,
        "maxItems": small,
        "uniqueItems": st.booleans(),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": st.one_of(st.booleans(), inner),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "c$"]), inner, max_size=2),
        "minProperties": small,
        "maxProperties": small,
        "anyOf": st.lists(inner, min_size=1, max_size=3),
        "oneOf": st.lists(inner, min_size=1, max_size=3),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"]),
    }


def schemas():
    leaf = st.one_of(
        st.booleans(),
        st.fixed_dictionaries({"type": TYPES}),
        st.fixed_dictionaries({"enum": st.lists(SCALARS, min_size=1, max_size=3)}),
    )
    return st.recursive(
        leaf,
        lambda inner: st.integers(1, 4).flatmap(
            lambda n: st.lists(
                st.sampled_from(sorted(keywords(inner))), min_size=1, max_size=n, unique=True
            ).flatmap(
                lambda names: st.fixed_dictionaries({one: keywords(inner)[one] for one in names})
            )
        ),
        max_leaves=6,
    )


def with_definitions(schema, one, two):
    schema = dict(schema) if isinstance(schema, dict) else {"allOf": [schema]}
    return {**schema, "$defs": {"one": one, "two": two}}


@settings(max_examples=fewer(600), deadline=None)
@given(VALUES, schemas(), schemas(), schemas())
def test_what_is_valid_is_what_the_reference_says_and_stays_as_it_is(value, schema, one, two):
    schema = with_definitions(schema, one, two)
    try:
        valid = jsonschema.Draft202012Validator(schema).is_valid(value)
    except RecursionError:  # a reference that leads back to itself
        return
    assert bool(problems(value, schema)) != valid
    may_be_an_echo = isinstance(value, dict) and "properties" in value
    if valid and not may_be_an_echo:
        assert fit_schema(value, schema) == (value, 0)
