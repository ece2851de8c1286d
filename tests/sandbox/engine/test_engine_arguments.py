"""Arguments: taken from the question by name, type and form, plausible where it is silent."""

import pytest
from engine_prompts import INTEGER, NUMBER, STRING, calls_of, fold, tool


def arguments_for(question, properties, required=None, name="do_work", extra=""):
    one = tool(name, "Do the work that is asked for.", properties, required)
    ((_, arguments),) = calls_of(fold(f"{question} Use the tool.", one, extra=extra))
    return arguments


ROUTE = {"origin": STRING, "destination": STRING}
FILLED = [
    ("Fly from New York to Los Angeles.", ROUTE, {"origin": "New York", "destination": "Los Angeles"}),
    ("Go to Oslo from Bergen.", ROUTE, {"origin": "Bergen", "destination": "Oslo"}),
    ("A triangle with base 10 and height 5.", {"height": INTEGER, "base": INTEGER}, {"height": 5, "base": 10}),
    ("The gcd of 40 and 50.", {"x": INTEGER, "y": INTEGER}, {"x": 40, "y": 50}),
    ("Pay $1,200 now.", {"amount": NUMBER}, {"amount": 1200}),
    ("Grow 1.5M by 5%.", {"start": NUMBER, "rate": NUMBER}, {"start": 1500000, "rate": 0.05}),
    ("Wait three times.", {"times": INTEGER}, {"times": 3}),
    ("Cool to -4 degrees.", {"degrees": INTEGER}, {"degrees": -4}),
    ("Sort [3, 1, 2].", {"numbers": {"type": "array", "items": INTEGER}}, {"numbers": [3, 1, 2]}),
    ("Buy apples, pears and figs.", {"items": {"type": "array", "items": STRING}}, {"items": ["apples", "pears", "figs"]}),
    ("Paint it Green.", {"colour": {"type": "string", "enum": ["red", "green"]}}, {"colour": "green"}),
    ("Measured in celsius.", {"unit": {"type": "string", "enum": ["C", "F"]}}, {"unit": "C"}),
    ("Write to ann@example.org.", {"email": STRING}, {"email": "ann@example.org"}),
    ("Open https://example.com/a?b=1 today.", {"url": STRING}, {"url": "https://example.com/a?b=1"}),
    ("Meet on March 3, 2025.", {"date": {"type": "string", "format": "date"}}, {"date": "2025-03-03"}),
    ("Meet on March 3, 2025.", {"date": STRING}, {"date": "March 3, 2025"}),
    ("Meet on 2025-03-04.", {"day": {"type": "string", "description": "DD/MM/YYYY"}}, {"day": "04/03/2025"}),
    ("Search for 'blue tits'.", {"query": STRING}, {"query": "blue tits"}),
    ("Search the web for cheap ferries.", {"query": STRING}, {"query": "cheap ferries"}),
    ("Show user 7890.", {"user_id": INTEGER}, {"user_id": 7890}),
    ("Order number AB-1234 please.", {"order_id": STRING}, {"order_id": "AB-1234"}),
    ("limit=5 and verbose=true.", {"limit": INTEGER, "verbose": {"type": "boolean"}}, {"limit": 5, "verbose": True}),
    ("Translate 'good night' into German.", {"text": STRING, "target_language": STRING}, {"text": "good night", "target_language": "German"}),
    ("Weather in paris?", {"city": STRING}, {"city": "paris"}),
]  # fmt: skip


@pytest.mark.parametrize(("question", "properties", "expected"), FILLED)
def test_values_come_from_the_question(question, properties, expected):
    assert arguments_for(question, properties) == expected


def test_optional_arguments_only_when_mentioned():
    properties = {
        "city": STRING,
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": INTEGER,
        "alerts": {"type": "boolean"},
    }
    plain = arguments_for("Weather in Rome.", properties, ["city"])
    assert plain == {"city": "Rome"}
    full = arguments_for(
        "Weather in Rome for 3 days in fahrenheit without alerts.", properties, ["city"]
    )
    assert full == {"city": "Rome", "unit": "fahrenheit", "days": 3, "alerts": False}


def test_required_arguments_are_always_there_and_of_the_right_type():
    properties = {
        "who": STRING,
        "how_many": INTEGER,
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "sure": {"type": "boolean"},
        "kind": {"enum": ["a", "b"]},
        "tags": {"type": "array", "items": STRING, "minItems": 2},
        "where": {"type": "object", "properties": {"city": STRING}, "required": ["city"]},
    }
    arguments = arguments_for("Go!", properties)
    assert set(arguments) == set(properties)
    assert isinstance(arguments["who"], str)
    assert arguments["who"]
    assert type(arguments["how_many"]) is int
    assert 0 <= arguments["share"] <= 1
    assert type(arguments["sure"]) is bool
    assert arguments["kind"] in {"a", "b"}
    assert len(arguments["tags"]) == 2
    assert isinstance(arguments["where"]["city"], str)


def test_nested_objects_are_filled():
    address = {"type": "object", "properties": {"city": STRING, "zip": STRING}}
    properties = {"name": STRING, "address": address}
    arguments = arguments_for("Register Ann Lee in Oslo.", properties)
    assert arguments == {"name": "Ann Lee", "address": {"city": "Oslo"}}


def test_lists_of_objects_have_one_for_each_item():
    line = {
        "type": "object",
        "properties": {"product": STRING, "quantity": INTEGER},
        "required": ["quantity"],
    }
    arguments = arguments_for(
        "Order 2 apples and 3 pears.", {"lines": {"type": "array", "items": line}}
    )
    assert [one["quantity"] for one in arguments["lines"]] == [2, 3]


def test_a_nullable_type_is_read_through():
    properties = {
        "days": {"anyOf": [INTEGER, {"type": "null"}]},
        "city": {"type": ["string", "null"]},
    }
    assert arguments_for("Stay 4 days in Rome.", properties) == {"days": 4, "city": "Rome"}


def test_a_language_is_a_code_where_a_code_is_wanted():
    wanted = {"type": "string", "description": "ISO 639 code"}
    assert arguments_for("Say 'hi' in German.", {"text": STRING, "language": wanted}) == {
        "text": "hi",
        "language": "de",
    }
