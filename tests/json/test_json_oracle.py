"""Validation against the reference implementation, on schemas and values made up at random."""

import pytest
from hypothesis import given, settings
from made_schemas import VALUES, schemas, with_definitions
from share import fewer

from langchain_svc._json.fit import fit_schema, problems

jsonschema = pytest.importorskip("jsonschema")


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
