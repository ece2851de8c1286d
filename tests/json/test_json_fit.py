"""Fitting values to schemas: what is understood, what is refused, and in which words."""

import copy
import enum
import pickle
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from langchain_svc._json.fit import SchemaMismatch, fit_schema, problems
from langchain_svc._json.schema import CompiledSchema

NULL, BOOL, INT, NUM, STR = (
    {"type": name} for name in ("null", "boolean", "integer", "number", "string")
)


def obj(required=None, /, extra=None, **fields):
    schema = {"type": "object", "properties": fields}
    schema["required"] = list(fields) if required is None else required
    return schema if extra is None else {**schema, "additionalProperties": extra}


def array(items, **more):
    return {"type": "array", "items": items, **more}


def union(*members):
    return {"anyOf": list(members)}


SPELLED = [
    (INT, " 5.0 ", 5),
    (INT, "007", 7),
    (INT, "**12**", 12),
    (NUM, "1.5e3", 1500.0),
    (NUM, "1,234.50", 1234.5),
    (NUM, "-1.234,56", -1234.56),
    (INT, "\u22125", -5),
    (BOOL, "Yes", True),
    (BOOL, 0, False),
    (STR, 5, "5"),
    (STR, True, "true"),
    (NULL, "None", None),
    (union(INT, NULL), "n/a", None),
    ({"enum": ["red", "dark-red"]}, "Dark red", "dark-red"),
    ({"enum": [1, 2, None]}, "2", 2),
    ({"enum": [True, "maybe"]}, "TRUE", True),
    ({"const": "cat"}, "Cat", "cat"),
    (union({"const": "a"}, {"const": "b"}), "B", "b"),
]
SHAPED = [
    (array(STR), "x", ["x"]),
    (array(INT), "[1, 2]", [1, 2]),
    (array(obj(n=INT)), {"n": 1}, [{"n": 1}]),
    (array(array(INT)), [1, 2], [[1, 2]]),
    (array(array(STR)), [["a"], "b", "c", ["d"]], [["a"], ["b", "c"], ["d"]]),
    (array(INT, uniqueItems=True), [1, 2, 1], [1, 2]),
    ({"type": "array", "prefixItems": [INT, STR]}, ["1", 2], [1, "2"]),
    (obj(n=INT), [{"n": 1}], {"n": 1}),
    (obj(n=INT), '{"n": 1}', {"n": 1}),
    (obj(n=INT), "```json\n{'n': 1}\n```", {"n": 1}),
    (obj(n=INT), {"answer": {"n": 1}}, {"n": 1}),
    (obj(n=INT), {"type": "object", "properties": {"n": 1}, "required": ["n"]}, {"n": 1}),
    (obj(n=INT), {"name": "Answer", "arguments": {"n": 1}}, {"n": 1}),
    (obj(people=array(obj(n=INT))), [{"n": 1}, {"n": 2}], {"people": [{"n": 1}, {"n": 2}]}),
    (obj(n=INT), 12, {"n": 12}),
    (obj(a=obj(n=INT)), {"a": {"A": {"n": 1}}}, {"a": {"n": 1}}),
]
FIELDS = [
    (obj(first_name=STR, n=INT), {"firstName": "x", "N": 1}, {"first_name": "x", "n": 1}),
    (obj(n=INT), {" n ": 1}, {"n": 1}),
    ({"properties": {"n": INT}}, {"n": "1"}, {"n": 1}),
    (obj(["n"], n=INT, m=INT), {"n": 1, "m": "N/A"}, {"n": 1}),
    (obj(n=INT, extra=False), {"n": 1, "more": 2}, {"n": 1}),
    (obj(n=INT, extra=INT), {"n": "1", "more": "2"}, {"n": 1, "more": 2}),
    ({"type": "object", "additionalProperties": INT}, {"a": "1"}, {"a": 1}),
    ({"type": "object", "patternProperties": {"^n": INT}}, {"n1": "1"}, {"n1": 1}),
    (obj(n=union(INT, NULL)), {"n": "null"}, {"n": None}),
    ({"allOf": [obj(n=INT)], "description": "x"}, {"n": "1"}, {"n": 1}),
    ({"type": ["null", "integer"]}, "5", 5),
    ({"type": "integer", "anyOf": "x"}, "5", 5),
]


@pytest.mark.parametrize(("schema", "value", "fitted"), SPELLED + SHAPED + FIELDS)
def test_what_is_understood(schema, value, fitted):
    assert problems(value, schema)
    found, penalty = fit_schema(value, schema)
    assert found == fitted
    assert type(found) is type(fitted)
    assert penalty > 0
    assert not problems(found, schema)


REFUSED = [
    (INT, "five"),
    (INT, True),
    *(
        (kind, text)
        for kind in (INT, NUM)
        for text in ("1,2", "5,000", "1.000,", "1 000", "1_0", "1'000", "1,234,567")
    ),
    (INT, None),
    (INT, ""),
    (NUM, float("nan")),
    (NUM, float("inf")),
    (NUM, "3/4"),
    *((NUM, text) for text in ("50%", "$5", "5 €", "5 or 6")),
    (array(obj(n=INT)), {"results": [{"n": 1}, {"n": 2}]}),
    (array({"type": "object"}), {"item": [{"n": 1}, {"n": 2}]}),
    (array({"type": "object"}), '{"item": [{"n": 1}]}'),
    *((BOOL, text) for text in ("maybe", "not true", "true or false", "The answer is: True")),
    (BOOL, 2),
    (STR, None),
    (STR, {"a": 1}),
    ({**STR, "pattern": "^a+$"}, "b"),
    *(({"enum": ["ONE", "TWO"]}, text) for text in ("THREE", "ONE or TWO", "not ONE", "It is ONE")),
    ({"const": "cat"}, "a cat or a dog"),
    (array(INT), ["1", "x"]),
    (array(INT), None),
    (array(INT, minItems=1), []),
    (obj(n=INT), {}),
    (obj(n=INT), {"n1": 1}),
    (obj(n=INT), {"error": {"n": 1}}),
    (obj(n=INT), {"title": "x", "author": {"n": 1}}),
    (obj(n=INT), [{"n": 1}, {"n": 2}]),
    (obj(s=STR), "a text"),
    (obj(s=STR, t=STR), {"s": "x"}),
    (obj(n=INT, s=STR), {"N": 1, "S": {}}),
    (union(INT, NULL), "x"),
    (False, 1),
]


@pytest.mark.parametrize(("schema", "value"), REFUSED)
def test_what_is_refused(schema, value):
    with pytest.raises(SchemaMismatch) as caught:
        fit_schema(value, schema)
    assert caught.value.problems
    assert str(caught.value) == "; ".join(caught.value.problems)


@pytest.mark.parametrize(
    ("schema", "echo"),
    [
        (obj([], n=INT), obj([], n=INT)),
        (obj([], n=INT), {"type": "object", "properties": {"n": {"type": "integer"}}}),
        (obj([], n={}), {"n": {}}),
        (obj(n=STR), {"n": {"type": "string", "description": "a name"}}),
        (obj([], n={}, m={}), {"properties": {"n": {"type": "string"}}, "title": "X"}),
    ],
)
def test_an_echo_of_the_schema_is_no_value(schema, echo):
    with pytest.raises(SchemaMismatch):
        fit_schema(echo, schema)


def test_a_schema_may_be_the_answer_where_one_is_asked_for():
    schema = obj(type=STR, properties={"type": "object"})
    value = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert fit_schema(value, schema) == (value, 0)


def test_five_point_zero_is_five_where_an_integer_is_wanted():
    (value,), penalty = fit_schema([5.0], array(INT))
    assert (type(value), penalty) == (int, 0)
    assert problems([5.0], array(INT)) == []


def test_without_coercion_only_what_is_valid_passes():
    assert fit_schema({"n": 1}, obj(n=INT), coerce=False) == ({"n": 1}, 0)
    with pytest.raises(SchemaMismatch):
        fit_schema({"n": "1"}, obj(n=INT), coerce=False)


def test_a_valid_value_with_other_spellings_is_tidied_only_on_request():
    schema = obj([], first_name=STR)
    assert fit_schema({"firstName": "x"}, schema) == ({"firstName": "x"}, 0)
    assert fit_schema({"firstName": "x"}, schema, tidy=True) == ({"first_name": "x"}, 1)
    wrapped = {"Person": {"first_name": "x"}}
    assert fit_schema(wrapped, schema, tidy=True) == ({"first_name": "x"}, 2)
    assert fit_schema({}, schema, tidy=True) == ({}, 0)
    with pytest.raises(SchemaMismatch, match="none of the fields first_name"):
        fit_schema({"age": 5}, schema, tidy=True)
    free = {**schema, "additionalProperties": True}
    assert fit_schema({"age": 5}, free, tidy=True)[0] == {"age": 5}


# -- unions and references ------------------------------------------------------------------------

CAT = obj(kind={"const": "cat"}, lives=INT)
DOG = obj(kind={"const": "dog"}, tricks=array(STR))


@pytest.mark.parametrize(
    ("value", "fitted"),
    [
        ({"kind": "Dog", "tricks": "sit"}, {"kind": "dog", "tricks": ["sit"]}),
        ([{"kind": "cat", "lives": 9}], {"kind": "cat", "lives": 9}),
    ],
)
@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_a_union_takes_the_member_that_fits_best(word, value, fitted):
    assert fit_schema(value, {word: [CAT, DOG]})[0] == fitted


def test_a_union_prefers_what_needs_no_coercion():
    assert fit_schema("5", union(INT, STR)) == ("5", 0)
    assert fit_schema("5", union(INT, BOOL)) == (5, 1)
    assert fit_schema(1, {"oneOf": [INT, NUM]}) == (1, 0)  # both fit, and that is good enough
    assert problems(1, {"oneOf": [INT, NUM]}) == [
        "answer: expected exactly one of 2 alternatives, fits 2"
    ]


def test_references_may_be_recursive():
    schema = {
        "$ref": "#/$defs/Node",
        "$defs": {"Node": obj(["n"], n=INT, next={"$ref": "#/$defs/Node"})},
    }
    value = {"n": "1", "next": {"n": "2", "Next": {"n": 3, "next": None}}}
    assert fit_schema(value, schema)[0] == {"n": 1, "next": {"n": 2, "next": {"n": 3}}}
    assert problems({"n": 1, "next": {}}, schema) == ["answer.next.n: required, but missing"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "https://example.com/schema"},
        {"type": "file"},
        {"properties": [], "required": True, "items": 5, "anyOf": "x", "enum": None},
        {"pattern": "(", "minimum": "1", "maxLength": None},
        {"allOf": [{"$ref": "#/allOf/1"}, {"$ref": "#/allOf/0"}]},
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
        {},
        True,
    ],
)
@pytest.mark.parametrize("value", [1, "x", {"a": [None]}, [], None])
def test_what_is_not_understood_allows_anything(schema, value):
    assert fit_schema(value, schema) == (value, 0)
    assert problems(value, schema) == []


def test_pointers_into_definitions():
    schema = {"definitions": {"a/b": INT, "c": [STR, INT]}}
    assert problems("x", {**schema, "$ref": "#/definitions/a~1b"})
    assert problems("x", {**schema, "$ref": "#/definitions/c/1"})
    assert not problems("x", {**schema, "$ref": "#/definitions/c/0"})


def test_a_compiled_schema_can_be_copied_and_pickled():
    compiled = CompiledSchema(
        {"$ref": "#/$defs/N", "$defs": {"N": obj(n={**STR, "pattern": "^a"})}}
    )
    for schema in (compiled, copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert fit_schema({"N": "a"}, schema) == ({"n": "a"}, 1)
        assert len(problems({"n": "b"}, schema)) == 1


def test_nullable_as_openapi_writes_it():
    assert fit_schema(None, {"type": "integer", "nullable": True}) == (None, 0)


def test_a_value_too_deep_is_a_misfit():
    schema = {"$defs": {"T": obj(["n"], n=INT, t={"$ref": "#/$defs/T"})}, "$ref": "#/$defs/T"}
    value = {"n": 1}
    for _ in range(3000):
        value = {"n": "1", "t": value}
    with pytest.raises(SchemaMismatch, match="nested too deeply"):
        fit_schema(value, schema)
    assert problems(value, schema) == ["answer: nested too deeply"]


# -- patterns -------------------------------------------------------------------------------------


IPV6 = (
    r"^(([0-9a-f]{1,4}:){7,7}[0-9a-f]{1,4}|([0-9a-f]{1,4}:){1,7}:|([0-9a-f]{1,4}:){1,6}:"
    r"[0-9a-f]{1,4}|:((:[0-9a-f]{1,4}){1,7}|:)|::(ffff(:0{1,4}){0,1}:){0,1}"
    r"((25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9])\.){3,3}(25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9]))$"
)
PATTERNS = {
    "slug": ("^[a-z0-9]+(-[a-z0-9]+)*$", "a-long-slug-2"),
    "version": (r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$", "1.20.3-rc.1+5"),
    "path": (r"^(/[\w.-]+)+/?$", "/usr/share/doc"),
    "name": (r"^[\w'-]+( [\w'-]+)*$", "Jörg Müller-O'Neil"),
    "e-mail": (r"^[\w.+-]+@([\w-]+\.)+[A-Za-z]{2,}$", "ann.lee+x@mail.example.com"),
    "host": (r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$", "www.a-b.example.com"),
    "list of tags": (r"^\w+(,\s*\w+)*$", "red, green,blue"),
    "number": (r"^-?\d{1,3}(,\d{3})*(\.\d+)?$", "-1,234,567.50"),
    "address": (r"^https?://[^\s/]+(/[^\s/]*)*$", "https://example.com/a/b"),
    "password": (r"^(?=.*[A-Z])(?=.*\d)[\x21-\x7e]+$", "aB3$xyz"),
    "identifier": ("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", f"{'0' * 8}{'-0000' * 3}-{'f' * 12}"),
    "IPv6": (IPV6, "2001:db8:0:0:0:ff00:42:8329"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PATTERNS)
def test_a_usual_pattern_is_checked_whatever_the_length(kind):
    pattern, right = PATTERNS[kind]
    assert problems(right, {"pattern": pattern}) == []
    for length in (30, 60, 150, 400):
        like_right = (right * length)[: length - 2] + " !"
        for wrong in (like_right, "Not what was asked for, certainly not! " * (length // 39 + 1)):
            assert problems(wrong[:length], {"pattern": pattern})


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 60 + "!"),
        ("^(a|a)*$", "a" * 60 + "!"),
        ("^(a?){28}a{28}$", "a" * 27 + "!"),
        (r"^(\d\d?){2,}$", "1" * 33 + "!"),
        ("^(aa|a[a]|a)*$", "a" * 40 + "!"),
        ("^((a*)*)*$", "a" * 40 + "!"),
        ("^(?:(?=(a*))a)*$", "a" * 40 + "!"),
        (r"^\d*\d*\d*\d*\d*\d*$", "1" * 300 + "!"),
        (r"\d+\d+\d+x", "1" * 500),
        (r"(?m)^\d*\d*x", "1" * 900),
        ("^(.*?,){11}P", "1,2,3,4,5,6,7,8,9,10,11,12," * 1000),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000),
        ("(((a{1,1000}){1,1000}){1,1000}){1,1000}b", "a" * 5000),
        ("^(?:(?R)|a)+$", "a" * 50),
        ("abc", "abd" * 3000),
    ],
)
def test_a_text_is_refused_however_long_a_pattern_would_search_it(pattern, text):
    assert problems(text, {"pattern": pattern})


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        ("ab", "xaby", "xay"),
        ("^a$", "a", "a\n"),
        (r"^a\Z", "a", "a\n"),
        ("(?m)^a$", "b\na\nc", "ba\n"),
        (r"^\$[$]$", "$$", "$"),
        (r"^\d+$", "12", "\u0661\u0662"),
        (r"^[\d.]+$", "1.2", "\u0661"),
        (r"^\D$", "\u0661", "1"),
        (r"^\\d$", r"\d", "\\1"),
        (r"^\w+$", "Größe", "a b"),
        (r"^\p{Lu}\p{L}*$", "Österreich", "österreich"),
        (r"^(?<quote>['\"]).*\1$", "'a'", "'a\""),
        (r"^\u0041\/$", "A/", "B/"),
        ("^[][]$", "]", "a"),
    ],
)
def test_a_pattern_means_what_json_schema_says(pattern, right, wrong):
    assert problems(right, {"pattern": pattern}) == []
    assert problems(wrong, {"pattern": pattern})


TOO_LARGE = [
    "^(a{1000}){1000}$",
    "^((b{100}){100}){100}$",
    "^(?:[ab]{1000,}?){1000}+$",
    "(?x)^(a{1000} # (\n){1000} # )\n$",
    "^(a{1000}(?#(((){1000}$",
    "(?V1)^(a{1000}[c[(](]){1000}$",
    "^((a{1000}[[:alpha:](]){1000})$",
    "^(a{1000}[](]){1000}$",
]


@pytest.mark.parametrize(
    "pattern", [*TOO_LARGE, "(", "*", "a)(", r"^\p{None}$", "(" * 5000 + ")" * 5000]
)
def test_a_pattern_that_cannot_be_read_or_fills_the_memory_asserts_nothing(pattern):
    assert problems("!", {"pattern": pattern}) == []


def test_names_of_fields_by_their_pattern():
    schema = {
        "type": "object",
        "patternProperties": {"^(a+)+$": INT},
        "additionalProperties": False,
    }
    assert problems({"aa": 1}, schema) == []
    assert problems({"aa": "x"}, schema) == ["answer.aa: expected integer, got string 'x'"]
    assert problems({"a" * 60 + "!": 1}, schema)


# -- schemas as Pydantic and TypedDicts make them -------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: list[str] = []


class Owner(BaseModel):
    full_name: str
    age: int | None = None
    colour: Colour
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    home: tuple[float, float]
    boss: "Owner | None" = None


def test_an_answer_for_a_pydantic_model():
    value = {
        "FullName": "Ada",
        "age": "N/A",
        "colour": "Blue",
        "pet": {"kind": "cat", "lives": "9"},
        "home": ["50.7", 7],
        "boss": None,
    }
    fitted, penalty = fit_schema(value, Owner.model_json_schema())
    owner = Owner.model_validate(fitted)
    assert owner.model_dump(mode="json") == {
        "full_name": "Ada",
        "age": None,
        "colour": "blue",
        "pet": {"kind": "cat", "lives": 9},
        "home": [50.7, 7.0],
        "boss": None,
    }
    assert penalty == 5


def test_problems_of_a_pydantic_model_are_all_named():
    value = {"colour": "green", "pet": {"kind": "cat", "lives": 10}, "home": [1], "age": "old"}
    with pytest.raises(SchemaMismatch) as caught:
        fit_schema(value, Owner.model_json_schema())
    assert caught.value.problems == [
        "answer.full_name: required, but missing",
        "answer.colour: expected one of 'red', 'blue', got string 'green'",
        "answer.pet.lives: expected at most 9, got integer 10",
        "answer.home: expected at least 2 items, got 1",
        "answer.age: expected integer or null, got string 'old'",
    ]


# -- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        (obj(age=INT), {"age": None}, "answer.age: expected integer, got null"),
        (obj(age=INT), 5.5, "answer: expected object, got number 5.5"),
        (obj(a=array(INT)), {"a": [1, "x"]}, "answer.a[1]: expected integer, got string 'x'"),
        (
            {"type": "object", "additionalProperties": INT},
            {"a b": []},
            'answer["a b"]: expected integer, got array with 0 items',
        ),
        (obj(n=INT, extra=False), {"n": 1, "m": 2}, "answer.m: no such field"),
        ({**INT, "minimum": 1}, 0, "answer: expected at least 1, got integer 0"),
        ({**INT, "multipleOf": 5}, 7, "answer: expected a multiple of 5, got integer 7"),
        ({**STR, "maxLength": 2}, "abc", "answer: expected at most 2 characters, got 3"),
        ({**STR, "pattern": "^a"}, "b", "answer: expected text that matches ^a, got string 'b'"),
        (array(INT, uniqueItems=True), [1, 1], "answer: expected no item twice, got 1 again"),
        (union(CAT, DOG), {"kind": "cat"}, "answer.lives: required, but missing"),
        (union(CAT, STR), 5, "answer: expected object or string, got integer 5"),
        (False, 5, "answer: not allowed here"),
    ],
)
def test_problems_say_where_and_what(schema, value, problem):
    assert problems(value, schema) == [problem]


def test_long_values_are_shortened():
    (problem,) = problems("x" * 1000, INT)
    assert len(problem) < 120
    (problem,) = problems({f"key{n}": n for n in range(50)}, INT)
    assert problem.endswith("key0, key1, key2, key3, key4, key5, key… and 42 more")
    assert len(problems(["x"] * 1000, array(INT))) <= 1000
    with pytest.raises(SchemaMismatch) as caught:
        fit_schema(["x"] * 1000, array(INT))
    assert len(caught.value.problems) <= 20
