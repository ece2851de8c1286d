"""Whole answers of a model, and the value in them that the schema asks for; or none."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_svc._json.answer import SchemaMismatch, read_answer

BOOL, INT, NUM, STR = ({"type": name} for name in ("boolean", "integer", "number", "string"))


def obj(required=None, /, **fields):
    required = list(fields) if required is None else required
    return {"type": "object", "properties": fields, "required": required}


def array(items):
    return {"type": "array", "items": items}


N = obj(n=INT)
FOUND = [
    # where it stands
    ('{"n": 1}', N, {"n": 1}),
    ('```json\n{"n": 1}\n```', N, {"n": 1}),
    ('``json\n{"n": 1}\n``', N, {"n": 1}),
    ('<answer>\n{"n": 1}\n</answer></s>', N, {"n": 1}),
    ('"{\\"n\\": 1}"', N, {"n": 1}),
    ('{\\"n\\": 1}', N, {"n": 1}),
    ("**Result:** [{'n': 1,},]", array(N), [{"n": 1}]),
    ("[red, light blue]", array(STR), ["red", "light blue"]),
    # prose with brackets of its own
    ('Replace {name} in [this](http://x/{id}): {"n": 1}', N, {"n": 1}),
    ('Lines begin with "I, [".\n\n{"s": "I, [%t]"}', obj(s=STR), {"s": "I, [%t]"}),
    ('An open { brace, then {"n": 1}', N, {"n": 1}),
    # several
    ('{"n": "x"} or {"n": "2"} or {"n": 3}', N, {"n": 3}),
    ('{} or {"n": 1}', obj([], n=INT), {"n": 1}),
    ('Form: {"n": "..."}\nAnswer: {"n": 1}', N, {"n": 1}),
    (json.dumps(N) + '\n{"n": 1}', N, {"n": 1}),
    ('```\n[1, 2]\n```\n```\n["1", "2", "3"]\n```', array(STR), ["1", "2", "3"]),
    # fences and tags inside strings
    ('{"s": "```py\\nx\\n```"}', obj(s=STR), {"s": "```py\nx\n```"}),
    ('```json\n{"s": "```py\\nx\\n```",}\n```', obj(s=STR), {"s": "```py\nx\n```"}),
    ('{"s": "</think>"}', obj(s=STR), {"s": "</think>"}),
    ("Here: {'s': '<think> is a tag'}", obj(s=STR), {"s": "<think> is a tag"}),
    # reasoning
    ('<think>{"n": 1}?</think>{"n": 2}', N, {"n": 2}),
    ('Perhaps {"n": 1}.\n</think>\n{"n": 2}', N, {"n": 2}),
    ('<think>a</think>{"m": 0}<think>{"n": 1}</think>{"n": 2}', N, {"n": 2}),
    ("[THINK]{'n': 1}[/THINK]{'n': 2}", N, {"n": 2}),
    ('<|channel>thought {"n": 1}<channel|>{"n": 2}', N, {"n": 2}),
    ('<think>It is {"n": 1}.</think>', N, {"n": 1}),
    ('<think>It is {"n": 1}', N, {"n": 1}),
    # cut off, or only a bracket short
    ('```json\n{"n": 1, "l": [1, 2\n```\nDone.', obj(n=INT, l=array(INT)), {"n": 1, "l": [1, 2]}),
    ('[{"n": 1}, {"n": 2}', array(N), [{"n": 1}, {"n": 2}]),
    ('{"n": 1, "l": [1]\n\nNote: done.', obj(n=INT, l=array(INT)), {"n": 1, "l": [1]}),
    # wrapped and spelled otherwise, where the schema is open
    ('{"Result": {"N": "1"}}', N, {"n": 1}),
    ('{"type":"function","function":{"name":"R","parameters":{"n":1}}}', N, {"n": 1}),
]


@pytest.mark.parametrize(("text", "schema", "value"), FOUND)
def test_what_is_found(text, schema, value):
    found = read_answer(text, schema)
    assert found == value
    assert type(found) is type(value)


NOT_FOUND = [
    # where the first of two is broken
    ('Write {"n": followed by a number.\n{"n": 1}', N),
    # what ends inside a value, which may be half of it
    ('{"n": 1', N),
    ('{"s": "x", "l": ["a", "b', obj(s=STR, l=array(STR))),
    ('```json\n{"s": "x\n```\nI hope this helps.', obj(s=STR)),
    ("", N),
    ("I cannot say.", array(STR)),
    # only brackets hold an answer: the model is asked for one that has them
    ("42", INT),
    ("True", BOOL),
    ('"a text"', STR),
    ("a text", STR),
    ("no idea", INT),
    ("The answer is TWO.", {"enum": ["ONE", "TWO"]}),  # it may say which it is not
    ("{}", N),
    ('{"n": }', N),
    ('{"n": ...}', N),
    ('{"n": NaN}', obj(n=NUM)),
    ('{"n": 1e999}', obj(n=NUM)),
    ('{"n1": 5}', N),
    ('{"error": {"n": 1}}', N),
    ('{"m": 0}', {"$ref": "#/$defs/N", "$defs": {"N": obj([], n=INT)}}),
    ('{"name": "Ada", "n', obj(name=STR, n=INT)),
    ('{"s": "x", "t": "y", ', obj(s=STR, t=STR, u=STR)),
    ('{"people": [{"n": 1, "s": "x"}, {"n": 2', obj(people=array(obj(n=INT, s=STR)))),
    (json.dumps(N), N),
    (json.dumps(obj([], n=INT)), obj([], n=INT)),
    # a part of the answer is not the answer
    ('{"title": "x", "author": {"n": 5}}', N),
    ('{"title": "x", "pages": [{"n": 5}, {"n": 6}]}', N),
    ('[{"n": 1}, {"n": 2}]', N),
    # nor is what was only thought
    ('<think>It is {"n": 1}.</think> I cannot say.', N),
    ('It is {"n": 1}.</think> I cannot say.', N),
]


@pytest.mark.parametrize(("text", "schema"), NOT_FOUND)
def test_what_is_not_found(text, schema):
    with pytest.raises(SchemaMismatch) as caught:
        read_answer(text, schema)
    assert caught.value.problems


@pytest.mark.parametrize(
    "text",
    ['{"n": 12.75, "l": ["latex"]}', "12.75", '[{"n": 1}, {"n": 2}]', '```json\n{"n": 12}\n```'],
)
@pytest.mark.parametrize("schema", [obj([], n=NUM, l=array(STR)), NUM, array(N)])
def test_a_text_known_to_be_cut_off_gives_a_whole_value_or_none(text, schema):
    def found(text, cut):
        try:
            return read_answer(text, schema, cut=cut)
        except SchemaMismatch:
            return None

    whole = found(text, cut=False)
    for end in range(len(text) + 1):
        assert found(text[:end], cut=True) in (None, whole)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("Hello.", ["answer: no JSON found in the text"]),
        ("[CONTENT]\nThe fee is 40.", ["answer: no JSON found in the text"]),
        ("```\n[Notes]\nnothing\n```", ["answer: no JSON found in the text"]),
        ('{"n": "x"}', ["answer.n: expected integer, got string 'x'"]),
        ('{"m": 1}:\n{"n": "x", "m": [1, 2]}', ["answer.n: expected integer, got string 'x'"]),
        ('{"m": 1, "s": "x', ["answer: the JSON ends before it is complete"]),
    ],
)
def test_problems_are_those_of_the_largest_reading(text, problems):
    with pytest.raises(SchemaMismatch) as caught:
        read_answer(text, N)
    assert caught.value.problems == problems


# -- properties -----------------------------------------------------------------------------------

PROSE = st.text(st.sampled_from("abc ABC.,!?-\n"), max_size=40)
PEOPLE = obj(["name"], name=STR, age=INT, tags=array(STR))
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\b\f"), max_size=20)
PERSON = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "age": st.integers(-(10**6), 10**6),
        "tags": st.lists(NAMES, max_size=4),
    },
)


def plain(value):
    return json.loads(json.dumps(value).encode("utf-8", "replace"))


@settings(deadline=None)
@given(PERSON, PROSE, PROSE, st.sampled_from([None, 2]), st.booleans(), st.booleans())
def test_an_answer_is_found_in_prose(person, before, after, indent, fenced, ascii_only):
    text = json.dumps(person, indent=indent, ensure_ascii=ascii_only)
    text = f"```json\n{text}\n```" if fenced else text
    assert read_answer(f"{before}\n{text}\n{after}", PEOPLE) == person


@settings(deadline=None)
@given(PERSON, st.data())
def test_a_value_is_never_invented(person, data):
    text = json.dumps(person)
    text = text[: data.draw(st.integers(0, len(text)))]
    try:
        found = read_answer(text, obj(name=STR, age=INT, tags=array(STR)))
    except SchemaMismatch:
        return
    assert person["name"].startswith(found["name"]) or found["name"] in person["name"]
    assert str(person["age"]).startswith(str(found["age"]))
    assert len(found["tags"]) <= len(person["tags"])


def test_two_objects_that_both_fit_and_differ_are_a_reason_to_ask():
    schema = {"type": "object", "properties": {"dose": {"type": "number"}}, "required": ["dose"]}
    text = 'First {"dose": 5}, or rather {"dose": 50}.'
    assert read_answer(text, schema) == {"dose": 5}
    with pytest.raises(SchemaMismatch, match="two objects that differ"):
        read_answer(text, schema, only=True)
    assert read_answer(text.replace("50", "5.0"), schema, only=True) == {"dose": 5}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("true", obj(n=BOOL), {"n": True}),
        (" 3\n", obj(n=INT), {"n": 3}),
        ('"spam"', obj(n={"enum": ["spam", "ham"]}), {"n": "spam"}),
        ("<think>So it is.</think>false", obj(n=BOOL), {"n": False}),
    ],
)
def test_a_whole_answer_may_be_the_value_of_the_only_field(text, schema, value):
    assert read_answer(text, schema) == value


@pytest.mark.parametrize(
    ("text", "schema", "cut"),
    [
        ("It is true", obj(n=BOOL), False),
        ("NaN", obj(n=NUM), False),
        ('"eggs"', obj(n={"enum": ["spam", "ham"]}), False),
        ("3", obj(n=INT, m=INT), False),
        ("3", obj(n=INT), True),  # it may have gone on as 35
        ("3", INT, False),
    ],
)
def test_a_scalar_is_nothing_else(text, schema, cut):
    with pytest.raises(SchemaMismatch):
        read_answer(text, schema, cut=cut)
