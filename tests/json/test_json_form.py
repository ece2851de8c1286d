"""Forms of schemas: they say all of a schema, or there is none."""

import json
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made_schemas import VALUES, form_roots, near, schemas, with_definitions
from peers import Scripted
from share import fewer

import langchain_svc as svc
from langchain_svc._json.fit import problems
from langchain_svc._json.form import form_of
from langchain_svc.chat.structured import ResponseFormat, format_for
from langchain_svc.sandbox.answers import compose
from langchain_svc.sandbox.prompts import forms_in

STRING, INTEGER, NULL = ({"type": name} for name in ("string", "integer", "null"))


def obj(**fields):
    return {"type": "object", "properties": fields, "required": [*fields]}


def array(items, **more):
    return {"type": "array", "items": items, **more}


SAID = [
    (STRING, '"<string>"'),
    ({"type": "boolean"}, "<true or false>"),
    ({}, "<any value>"),
    ({**STRING, "description": "the day\n of it"}, '"<string: the day of it>"'),
    ({**STRING, "format": "date"}, '"<string, date>"'),
    ({**STRING, "pattern": r"^\d+$"}, r'"<string, pattern ^\\d+$>"'),
    ({**STRING, "minLength": 1, "maxLength": 9}, '"<string, 1 to 9 characters>"'),
    ({**STRING, "maxLength": 9}, '"<string, at most 9 characters>"'),
    ({**STRING, "maxLength": 1}, '"<string, at most 1 character>"'),
    ({**STRING, "minLength": 2, "maxLength": 2}, '"<string, 2 characters>"'),
    ({**INTEGER, "minimum": 1, "maximum": 5}, "<integer, 1 to 5>"),
    ({"type": "number", "minimum": 0}, "<number, at least 0>"),
    ({**INTEGER, "exclusiveMinimum": 0, "multipleOf": 5}, "<integer, above 0, a multiple of 5>"),
    ({**INTEGER, "default": 3, "examples": [4, 5]}, "<integer: default 3; for example 4, 5>"),
    ({"type": ["integer", "null"]}, "<integer or null>"),
    ({"type": ["string", "null"]}, '"<string>" or null'),
    ({"anyOf": [{**INTEGER, "minimum": 1}, NULL], "description": "stars"},
     "<integer or null, at least 1: stars>"),
    ({"anyOf": [NULL, array(INTEGER)]}, "[<integer>, ...] or null"),
    ({**INTEGER, "nullable": True}, "<integer or null>"),
    ({"enum": ["train", "plane"], "type": "string"}, '"<one of: train, plane>"'),
    ({"enum": ["a", "b"], "description": "how"}, '"<one of: a, b; how>"'),
    ({"enum": ["a, b", "c"]}, '"a, b" or "c"'),
    ({"enum": [1, 2, None]}, "<one of: 1, 2> or null"),
    ({"const": "cat"}, '"cat"'),
    ({"const": "<string>"}, '"\\u003cstring\\u003e"'),
    (array(STRING), '["<string>", ...]'),
    (array(array(INTEGER)), "[[<integer>, ...], ...]"),
    (obj(a=obj(b=STRING)), '{"a": {"b": "<string>"}}'),
    ({"type": "object", "additionalProperties": INTEGER}, '{"<key>": <integer>, ...}'),
    ({**obj(a=STRING), "additionalProperties": True}, '{"a": "<string>", "<key>": <any value>, ...}'),
    ({"$ref": "#/$defs/A", "$defs": {"A": obj(n=INTEGER)}}, '{"n": <integer>}'),
    ({"allOf": [obj(n=INTEGER)]}, '{"n": <integer>}'),
    ({"oneOf": [obj(n=INTEGER), obj(s=STRING)]}, '{"n": <integer>} or {"s": "<string>"}'),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "text"), SAID)
def test_what_a_form_says(schema, text):
    assert form_of(schema).text == text


def test_what_has_no_placeholder_is_said_before_the_form():
    line = {**obj(product=STRING, note=STRING), "required": ["product"], "description": "A line."}
    lines = array(line, minItems=1, maxItems=3, uniqueItems=True, description="What was bought.")
    schema = obj(**{"lines": lines, "a key": STRING}) | {"description": "A bill.", "required": []}
    assert form_of(schema).notes == (
        "About the answer: A bill.",
        "About lines: 1 to 3 items, no item twice; What was bought.",
        "About lines[]: A line.",
        'These keys may be left out: lines, lines[].note, "a key".',
    )


LINKED = {"type": "object", "properties": {"next": {"$ref": "#"}}}
UNSAID = {
    "recursion": LINKED,
    "a tuple": {"type": "array", "prefixItems": [STRING], "items": False},
    "names of keys": {"type": "object", "propertyNames": {"pattern": "^a"}},
    "a condition": {**obj(a=STRING), "if": {}, "then": {}},
    "all of two": {"allOf": [obj(a=STRING), obj(b=STRING)]},
    "a note of somebody's own": {**STRING, "x-note": "for the office"},
    "a required key without a schema": {"type": "object", "required": ["a"]},
    "a reference elsewhere": {"$ref": "https://example.com/schema"},
    "nothing": False,
    "a bound without a type": {"minimum": 3},
    "a bound of another type": {**STRING, "minimum": 3},
    "keys that one alternative needs": {"anyOf": [obj(a=STRING), {**obj(a=INTEGER), "required": []}]},
    "objects in an enumeration": {"enum": [{"a": 1}]},
    "many parts": {
        "$ref": "#/$defs/a0",
        "$defs": {f"a{n}": obj(x={"$ref": f"#/$defs/a{n + 1}"}, y={"$ref": f"#/$defs/a{n + 1}"})
                  for n in range(40)} | {"a40": STRING},
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", UNSAID)
def test_what_a_form_cannot_say(kind):
    assert form_of(UNSAID[kind]) is None


OTHER_KEYWORDS: dict[str, object] = {
    **{name: {} for name in ("not", "if", "contains", "propertyNames", "contentSchema")},
    **{name: {} for name in ("patternProperties", "dependentSchemas", "dependentRequired")},
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties", "additionalItems"), False),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains"), 1),
    **dict.fromkeys(("x-note", "$anchor", "contentEncoding", "unit"), "a"),
    "prefixItems": [{}],
}


@given(form_roots(), st.sampled_from([*OTHER_KEYWORDS]), st.data())
def test_a_keyword_that_no_form_says_makes_it_impossible(schema, keyword, data):
    name = data.draw(st.sampled_from([*schema["properties"]]))
    with_keyword = {**schema["properties"][name], keyword: OTHER_KEYWORDS[keyword]}
    fields = {**schema["properties"], name: with_keyword}
    assert form_of({**schema, "properties": fields}) is None


# -- as a reader understands it --------------------------------------------------------------------


def read(form):
    """The schema that the sandbox reads of a form, which nothing but the prompt tells it."""
    order = "of this form, with a value in the place of each <...>:"
    text = "\n".join([*form.notes, order, form.text, "The end."])
    ((schema, start, end),) = forms_in(text)
    assert text[start:end] == form.text
    return schema


def changed(schema, change):
    """The schema, each part of it changed."""
    if isinstance(schema, list):
        return [changed(part, change) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return change({name: changed(part, change) for name, part in schema.items()})


def as_read(part):
    """A part of a schema as far as the sandbox reads it, which cannot write for the rest."""
    names = {name: "anyOf" if name == "oneOf" else name for name in part}
    return {names[name]: part[name] for name in part if name not in ("pattern", "uniqueItems")}


def closed(part):
    """A form shows no further keys where its schema does not ask for them."""
    return {"additionalProperties": False, **part} if part.get("properties") else part


@settings(max_examples=fewer(600))
@given(VALUES, schemas(), schemas(), schemas())
def test_what_a_form_of_any_schema_allows_the_schema_allows(value, schema, one, two):
    schema = with_definitions(schema, one, two)
    form = form_of(schema)  # of a third of them
    if form is not None and not problems(value, read(form)):
        assert not problems(value, changed(schema, as_read))


def with_value(schema):
    return st.tuples(st.just(schema), near(schema, schema))


MADE = form_roots().flatmap(with_value)


@settings(max_examples=fewer(600))
@given(MADE)
def test_a_form_allows_what_its_schema_allows_and_nothing_else(made):
    schema, value = made
    form = form_of(schema)
    assume(form)
    assert bool(problems(value, read(form))) == bool(problems(value, changed(schema, closed)))


# -- as an answer ----------------------------------------------------------------------------------


def model(service, schema, **settings):
    return service.model(**settings).with_structured_output(schema)


@settings(max_examples=fewer(200))
@given(MADE)
def test_a_valid_value_is_the_answer_and_the_form_is_none(made):
    schema, value = made
    form = form_of(schema)
    assume(form and form.placeholders and not problems(value, schema))
    service = Scripted(form.text, json.dumps(value))
    assert model(service, schema).invoke("?") == value
    first, again = (turns[-1]["content"] for turns in service.asked)
    assert again.startswith(f"{first}\n\nAn answer to this could not be used:\n- ")
    shown = again.rpartition("\n")[2]
    assert f"in the place of each <...>:\n{shown}\n" in first


@settings(max_examples=fewer(200))
@given(form_roots(), st.data())
def test_a_cut_copy_is_asked_anew_and_never_told_to_go_on(schema, data):
    assume(form_of(schema))
    shown = format_for(schema)
    form = shown.preamble(among_tools=False).rpartition("\n")[2]
    copies = [(form, "<(?!key>)"), (json.dumps(shown.schema), '", ')]
    text, beyond = data.draw(st.sampled_from(copies))
    begun = re.search(beyond, text)
    assume(begun)
    least = begun.start() + 2  # characters, of which an answer may begin so, too
    end = data.draw(st.integers(least, len(text) - 1))
    service = Scripted(text[:end], text[:end], finish_reason="length")
    with pytest.raises(svc.SvcOutputError) as raised:
        model(service, schema, max_repairs=1).invoke("?")
    assert len(service.asked) == 2
    assert "\n\nAn answer to this could not be used:\n- " in service.asked[1][-1]["content"]
    assert raised.value.raw == text[:end]


def filled(order, text="Ann is 34 and sad. Bob, 41, is in Rome since 2024-05-01; he said 'yes'."):
    """The object that the rules of the sandbox write."""
    content = f"<system_message>\n{order}\n</system_message>\n\n{text}"
    return json.loads(compose([{"role": "user", "content": content}], "svc-pro"))


def fillable(part):
    """A part of a schema as far as the rules of the sandbox heed it: lowest and highest, in order."""
    part = {name: part[name] for name in part if name not in ("multipleOf", *EXCLUSIVE)}
    for what in ("imum", "Length", "Items"):
        pair = [part[f"{bound}{what}"] for bound in ("min", "max") if f"{bound}{what}" in part]
        if len(pair) == 2:
            part |= {f"min{what}": min(pair), f"max{what}": max(pair)}
    return part


EXCLUSIVE = ("exclusiveMinimum", "exclusiveMaximum")


@settings(max_examples=fewer(300))
@given(form_roots())
def test_the_sandbox_fills_a_form(schema):
    schema = changed(schema, fillable)
    assume(form_of(schema))
    assert problems(filled(ResponseFormat(schema).preamble(among_tools=False)), schema) == []
