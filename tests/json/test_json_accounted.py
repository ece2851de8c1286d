"""An object is certain only if nothing of its text is left over, wherever something stands too much."""

from __future__ import annotations

import json

import pytest
from share import pairs, part

from langchain_svc._json.answer import SchemaMismatch, read_answer

STRING, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "number", "boolean"))


def obj(**fields):
    return {"type": "object", "properties": fields, "required": [*fields]}


def array(items):
    return {"type": "array", "items": items}


PERSON = obj(name=STRING, age=NUMBER)
DOSE = obj(drug=STRING, dose_mg=NUMBER, note=STRING)
OBJECTS = {
    "flat": (obj(drug=STRING, dose_mg=NUMBER, fasting=BOOLEAN),
             {"drug": "warfarin", "dose_mg": 5, "fasting": True}),
    "list of objects": (obj(drugs=array(DOSE), by=STRING),
                        {"drugs": [{"drug": "metformin", "dose_mg": 500, "note": "at night"},
                                   {"drug": "warfarin", "dose_mg": 2.5, "note": "x"}], "by": "Ann"}),
    "fields of one name": (obj(patient=PERSON, doctor=PERSON, age=NUMBER),
                           {"patient": {"name": "Ann", "age": 4},
                            "doctor": {"name": "Bob", "age": 50}, "age": 7}),
    "lists": (obj(tags=array(STRING), scores=array(NUMBER), more=array(array(NUMBER))),
              {"tags": ["a", "b c"], "scores": [1, 2], "more": [[1, 2], [3]]}),
    "deep": (obj(a=obj(b=obj(c=array(STRING), d=NUMBER), e=STRING), f=NUMBER),
             {"a": {"b": {"c": ["x", "y"], "d": 1}, "e": "z"}, "f": 2}),
    "map": ({"type": "object", "additionalProperties": NUMBER}, {"a": 1, "b": 2}),
    "list": (array(obj(n=NUMBER, s=STRING)), [{"n": 1, "s": "a"}, {"n": 2, "s": "b"}]),
    "list of texts": (array(STRING), ["one", "two", "three"]),
}  # fmt: skip
LAYOUTS = [None, 1]


def changed(schema, change):
    if not isinstance(schema, dict):
        return schema
    return change({name: changed(part, change) for name, part in schema.items()})


KINDS = {
    "required": lambda part: part,
    "optional": lambda part: {name: part[name] for name in part if name != "required"},
    "closed": lambda part: (
        {"additionalProperties": False, **part} if "properties" in part else part
    ),
}


def read(text, schema):
    """The object that is delivered, and None where the model is asked."""
    try:
        return read_answer(text, schema, only=True)
    except SchemaMismatch:
        return None


def as_written(text):
    """What sound JSON says; None where the text is none, or writes a key twice."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value


def damaged(name, kind, token):
    """The schema, the object, and its text with the token at every place."""
    schema, value = OBJECTS[name]
    schema = changed(schema, KINDS[kind])
    for layout in LAYOUTS:
        text = json.dumps(value, indent=layout)
        for at in part(range(len(text) + 1), len(name)):
            is_inside = bool(text[:at].strip() and text[at:].strip())
            yield schema, value, text[:at] + token + text[at:], is_inside


ROWS = [(name, kind) for name in OBJECTS for kind in KINDS]


@pytest.mark.parametrize(("row", "word"), pairs(ROWS, [" oops ", "oops", " dose_mg "]))
def test_a_word_at_any_place_is_in_the_object_or_makes_a_question(row, word):
    for schema, value, text, is_inside in damaged(*row, word):
        found = read(text, schema)
        if found == value:
            assert not is_inside, text  # prose around an object is no part of it
        else:
            assert found in (None, as_written(text)), text


@pytest.mark.parametrize(("row", "bracket"), pairs(ROWS, ["{", "}", "[", "]"]))
def test_a_bracket_at_any_place_gives_the_same_object_or_a_question(row, bracket):
    for schema, value, text, _ in damaged(*row, bracket):
        assert read(text, schema) in (None, value, as_written(text)), text


TWICE = [
    '{"drug": "metformin", "dose_mg": 500, "drug": "warfarin", "dose_mg": 5}',
    '{"drug": "metformin", "dose_mg": 500}, "drug": "warfarin"}',
    '{"drug": "metformin", "dose_mg": 500}, "dose_mg": 5}',
    '{"drug": "metformin", "dose_mg": 500}, "note": "of warfarin"}',
    '{"drug": "metformin", "dose_mg": 500}, "drug": "warfarin", {"drug": "aspirin", "dose_mg": 100}',
    '{"drug": "metformin", {"drug": "warfarin", "dose_mg": 5}',
    '{"drug": "metformin", "dose_mg": 500, {"drug": "warfarin"}',
]
AROUND = ["{}", "[{}]", '{{"drugs": [{}]}}', '{{"drugs": {}}}', "```json\n[{}]\n```", "It is {}."]


@pytest.mark.parametrize("form", AROUND)
@pytest.mark.parametrize("inside", TWICE)
@pytest.mark.parametrize("kind", ["required", "optional"])
def test_no_object_is_put_together_from_two(inside, form, kind):
    dose = obj(drug=STRING, dose_mg=NUMBER)
    for schema in (dose, array(dose), obj(drugs=array(dose))):
        assert read(form.format(inside), changed(schema, KINDS[kind])) is None


@pytest.mark.parametrize(
    "text",
    [
        "{'drug': 'warfarin', 'dose_mg': 5, 'fasting': True, 'why': 'as before'}",
        '{"drug": "warfarin", "dose_mg": 5, // as before\n "fasting": true,}',
        '{drug: "warfarin", dose_mg: "5", fasting: yes}',
        '{{"drug": "warfarin", "dose_mg": 5, "fasting": true}}',
        '{"drug": "warfarin", "dose_mg": 5, "fasting": true}}',
        '{"drug": "warfarin" "dose_mg": 5 "fasting": true}',
        '{"drug": "warfarin, "dose_mg": 5, "fasting": true}',
        'So, {"drug": "warfarin", "dose_mg": 5, "fasting": true}, as "agreed".',
        '答案是{"drug": "warfarin", "dose_mg": 5, "fasting": true}以上。',
        '[DOSE]\n{"drug": "warfarin", "dose_mg": 5, "fasting": true}',
    ],
)
def test_what_is_clearly_one_object_is_no_question(text):
    schema, value = OBJECTS["flat"]
    found = read(text, schema)
    assert found is not None
    assert {name: found[name] for name in value} == value


@pytest.mark.parametrize("quotation", ['"fine"', 'a "small" one', 'so, "one" or "two".', 'a: "b"'])
def test_a_quotation_in_a_text_is_a_part_of_it(quotation):
    text = f'{{"note": "it is {quotation}", "drug": "warfarin", "dose_mg": 5}}'
    assert read(text, DOSE)["note"] == f"it is {quotation}"
