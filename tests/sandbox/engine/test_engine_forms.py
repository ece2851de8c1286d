"""JSON answers: valid for any schema, filled from the text, plausible where it is silent."""

import json
import re

import pytest
from engine_prompts import STRING, answer, assistant, called, fold, result, system, text_of, user
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

JOKE = {
    "title": "Joke",
    "type": "object",
    "properties": {
        "setup": {"type": "string", "description": "question to set up a joke"},
        "punchline": {"type": "string", "description": "answer to resolve the joke"},
    },
    "required": ["setup", "punchline"],
}
OPEN_JOKE = {
    **JOKE,
    "properties": {
        "setup": STRING,
        "punchline": {"anyOf": [STRING, {"type": "null"}], "default": None},
    },
    "required": ["setup"],
}


def before(question, schema):
    told = "Answer with one JSON object that is valid for this schema, and nothing else:"
    return user(f"{told}\n{json.dumps(schema)}\n\n{question}")


def behind(question, schema):
    told = "Your whole answer must be JSON that matches the schema below. No prose."
    return user(f"{question}\n\n{told}\n```json\n{json.dumps(schema, indent=1)}\n```")


def inline(question, schema):
    return user(f"{question} Reply in JSON, following the schema {json.dumps(schema)}.")


PLACES = pytest.mark.parametrize("place", [before, behind, inline])


# --- A small validator ----------------------------------------------------------------------

TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def is_a(value, kind):
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind])


def target(schema, root):
    while "$ref" in schema:
        node = root
        for step in schema["$ref"].lstrip("#/").split("/") if schema["$ref"] != "#" else []:
            node = node[step]
        schema = node
    return schema


def wrong(value, schema, root=None):
    """Return what is wrong with a value, or None."""
    root = schema if root is None else root
    schema = target(schema, root)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return None if any(not wrong(value, one, root) for one in choices) else "no choice"
    if "const" in schema:
        return None if value == schema["const"] else "const"
    if "enum" in schema:
        return None if value in schema["enum"] else "enum"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_a(value, kind) for kind in kinds):
        return f"{value!r} is no {kinds}"
    return wrong_inside(value, schema, root)


def wrong_inside(value, schema, root):
    if isinstance(value, dict):
        missing = [key for key in schema.get("required", []) if key not in value]
        parts = schema.get("properties", {})
        inner = [wrong(value[key], part, root) for key, part in parts.items() if key in value]
        return missing or next((one for one in inner if one), None)
    if isinstance(value, list):
        size = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**6)
        inner = [wrong(item, schema.get("items", {}), root) for item in value]
        return next((one for one in inner if one), None) if size else "size"
    if isinstance(value, str):
        size = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**6)
        return None if size and re.search(schema.get("pattern", ""), value) else "text"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        fits = schema.get("minimum", value) <= value <= schema.get("maximum", value)
        above = "exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"]
        below = "exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"]
        return None if fits and above and below else "bounds"
    return None


def filled(*messages, schema=None):
    value = json.loads(text_of(*messages))
    if schema is not None:
        assert wrong(value, schema) is None, (wrong(value, schema), value)
    return value


# --- Jokes ----------------------------------------------------------------------------------


@PLACES
def test_a_joke_is_about_its_topic(place):
    joke = filled(place("Tell me a joke about cats.", JOKE), schema=JOKE)
    assert list(joke) == ["setup", "punchline"]
    assert "cats" in joke["setup"]
    other = filled(place("Tell me a joke about trains.", JOKE))
    assert "trains" in other["setup"]


@PLACES
def test_an_optional_key_is_there_unless_unwanted(place):
    with_it = filled(place("Give me a joke about cats, include the punchline.", OPEN_JOKE))
    assert with_it["punchline"]
    without = filled(place("Give me the setup to a joke about cats, no punchline.", OPEN_JOKE))
    assert without.get("punchline") is None
    assert without["setup"]


def test_keys_without_a_schema():
    asked = (
        "Tell me a joke about cats. Return the result as a JSON with 'setup' and 'punchline' keys."
        " Return nothing other than JSON."
    )
    assert set(filled(user(asked))) == {"setup", "punchline"}


def test_bare_keys_are_typed_by_their_names():
    asked = "Zoe is 9 years old. Respond in JSON with keys name, age"
    assert filled(user(asked)) == {"name": "Zoe", "age": 9}


def test_an_example_gives_the_shape():
    asked = (
        'I hate rain, it is awful. Respond in JSON, in the format {"label": "positive|negative",'
        ' "score": 0.5, "words": ["x"]}'
    )
    value = filled(user(asked))
    assert value["label"] == "negative"
    assert isinstance(value["score"], float)
    assert all(isinstance(word, str) for word in value["words"])


def test_json_demanded_without_keys():
    assert "4" in filled(user("What is 2 + 2? Answer in JSON."))["answer"]


def test_a_question_about_json_is_answered_in_words():
    assert not text_of(user("What is JSON?")).startswith("{")


# --- Values from the text -------------------------------------------------------------------

PERSON = {
    "type": "object",
    "properties": {
        "name": STRING,
        "age": {"type": "integer"},
        "city": STRING,
        "email": {"type": "string", "format": "email"},
        "born": {"type": "string", "format": "date"},
    },
    "required": ["name", "age", "city"],
}


@PLACES
def test_values_are_extracted(place):
    value = filled(place("Ann is 34 and lives in Oslo.", PERSON), schema=PERSON)
    assert (value["name"], value["age"], value["city"]) == ("Ann", 34, "Oslo")
    assert re.fullmatch(r"[^@]+@[^@]+", value["email"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", value["born"])


def test_a_schema_in_the_system_message():
    value = filled(system(before("", PERSON)["content"]), user("Ann is 34 and lives in Oslo."))
    assert (value["name"], value["age"], value["city"]) == ("Ann", 34, "Oslo")


def test_forms_and_dates_in_a_text():
    asked = "Bob Smith (bob@x.org), 51 years old, moved to Lima on March 3, 2021."
    assert filled(before(asked, PERSON)) == {
        "name": "Bob Smith",
        "age": 51,
        "city": "Lima",
        "email": "bob@x.org",
        "born": "2021-03-03",
    }


def test_records_of_an_enumeration():
    line = {
        "type": "object",
        "properties": {"product": STRING, "quantity": {"type": "integer"}},
        "required": ["product", "quantity"],
    }
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": line}},
        "required": ["items"],
    }
    value = filled(before("I bought 2 apples and 3 pears.", schema), schema=schema)
    assert value["items"] == [
        {"product": "apples", "quantity": 2},
        {"product": "pears", "quantity": 3},
    ]


def test_feelings_and_choices():
    schema = {
        "type": "object",
        "properties": {
            "sentiment": {"enum": ["positive", "negative", "neutral"]},
            "tool": {
                "anyOf": [
                    {"const": "a", "description": "repairs bicycles"},
                    {"const": "b", "description": "judges cameras and phones"},
                ]
            },
        },
        "required": ["sentiment", "tool"],
    }
    value = filled(before("I love this phone, the camera is great!", schema), schema=schema)
    assert value == {"sentiment": "positive", "tool": "b"}


def test_an_answer_from_a_context_names_its_sources():
    schema = {
        "type": "object",
        "properties": {"answer": STRING, "sources": {"type": "array", "items": STRING}},
        "required": ["answer", "sources"],
    }
    asked = "Context:\nSource: orchard.md\nThe orchard has 120 trees.\n\nQuestion: How many trees?"
    value = filled(before(asked, schema), schema=schema)
    assert "120 trees" in value["answer"]
    assert value["sources"] == ["orchard.md"]


def test_results_of_tools_go_into_the_form():
    weather = {
        "type": "object",
        "properties": {"city": STRING, "degrees": {"type": "integer"}},
        "required": ["city", "degrees"],
    }
    told = f"Your final answer must be JSON for the schema {json.dumps(weather)}."
    tool = {"name": "look_outside", "description": "The weather.", "parameters": {}}
    turns = [
        fold("How is the weather in Paris?", tool, extra=told),
        called("look_outside"),
        result("It is 21 degrees in Paris."),
    ]
    assert filled(*turns) == {"city": "Paris", "degrees": 21}


# --- Constraints ----------------------------------------------------------------------------

NODE = {
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": STRING,
                "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
            },
            "required": ["name", "next"],
        }
    },
    "$ref": "#/$defs/Node",
}
TREE = {
    "type": "object",
    "properties": {"value": STRING, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["value", "children"],
}
TIGHT = {
    "type": "object",
    "properties": {
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "level": {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
        "even": {"type": "integer", "multipleOf": 4, "minimum": 5},
        "code": {"type": "string", "pattern": r"^[A-Z]{3}-\d{4}$"},
        "slug": {"type": "string", "minLength": 12, "maxLength": 14},
        "tags": {"type": "array", "items": STRING, "minItems": 4, "maxItems": 5},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}, STRING]},
        "kind": {"const": "review"},
        "maybe": {"type": ["integer", "null"]},
    },
    "required": ["score", "level", "even", "code", "slug", "tags", "kind"],
}


@pytest.mark.parametrize("schema", [NODE, TREE, TIGHT], ids=["node", "tree", "tight"])
@pytest.mark.parametrize("question", ["Make one about pears.", "Take 99 of them to Oslo.", ""])
def test_constraints_hold(schema, question):
    filled(before(question, schema), schema=schema)


@pytest.mark.parametrize(
    ("schema", "question", "expected"),
    [
        ({"type": "array", "items": STRING, "minItems": 3}, "List three colours", list),
        ({"enum": ["yes", "no"]}, "Is it so? I say no", "no"),
        ({"anyOf": [{"type": "integer"}, STRING]}, "The answer is 42", 42),
    ],
)
def test_the_top_need_not_be_an_object(schema, question, expected):
    value = filled(before(question, schema), schema=schema)
    assert value == expected or isinstance(value, list)


def test_the_example_schema_of_format_instructions_is_not_the_one():
    example = '{"properties": {"foo": {"type": "array", "items": {"type": "string"}}}}'
    asked = (
        f"The output must be a JSON instance of a schema. For {example} the object "
        f'{{"foo": ["bar"]}} is right. Here is the schema:\n```\n{json.dumps(JOKE)}\n```\n\n'
        "Tell me a joke about dogs."
    )
    assert "dogs" in filled(user(asked), schema=JOKE)["setup"]


# --- Asked again ----------------------------------------------------------------------------


def test_a_complaint_leads_back_to_the_question():
    turns = [
        before("Tell me a joke about cats.", JOKE),
        assistant('{"setup": "x"}'),
        user("That is not valid: 'punchline' is missing. Answer again with corrected JSON only."),
    ]
    assert "cats" in filled(*turns, schema=JOKE)["setup"]


@pytest.mark.parametrize(
    ("complaint", "key", "check"),
    [
        ("rating\n  Input should be greater than or equal to 7", "rating", lambda v: v >= 7),
        ("rating: must be less than 2", "rating", lambda v: v < 2),
        ("mood\n  Input should be 'calm' or 'wild'", "mood", lambda v: v in {"calm", "wild"}),
        ("mood: String should have at least 30 characters", "mood", lambda v: len(v) >= 30),
    ],
)
def test_a_complaint_may_know_more_than_the_schema(complaint, key, check):
    schema = {"type": "object", "properties": {"rating": {"type": "integer"}, "mood": STRING}}
    turns = [
        before("Rate the film Alien.", schema),
        assistant('{"rating": 5, "mood": "x"}'),
        user(f"The answer did not pass:\n{complaint}\nPlease fix it, JSON only."),
    ]
    assert check(filled(*turns)[key])


# --- Any schema -----------------------------------------------------------------------------

LEAVES = st.sampled_from(
    [
        STRING,
        {"type": "integer"},
        {"type": "number", "minimum": 3, "maximum": 3.5},
        {"type": "integer", "minimum": -2, "maximum": 2},
        {"type": "boolean"},
        {"type": "null"},
        {"enum": ["a", 1, None]},
        {"const": {"x": [1]}},
        {"type": "string", "maxLength": 3},
        {"type": "string", "pattern": r"^\d{2,4}[a-c]$"},
    ]
)
NAMES = st.sampled_from(["name", "age", "tags", "answer", "setup", "city", "a b", "email", "x"])
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner, "minItems": st.integers(0, 3)}
        ),
        st.dictionaries(NAMES, inner, max_size=4).map(
            lambda parts: {"type": "object", "properties": parts, "required": list(parts)[:2]}
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCHEMAS, st.text(max_size=60))
def test_any_schema_is_satisfied(schema, question):
    root = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    question = question.replace("{", "").replace("[", "").replace("<", "")
    text = answer([before(f"About this: {question}", root)], model="m").text
    assert wrong(json.loads(text), root) is None
