"""Structured output on a chat endpoint that has none: methods, schemas, repairs and streams."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from typing import Any, Literal, Optional

import pydantic.v1
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.exceptions import OutputParserException
from peers import Scripted, hearing, summed
from pydantic import BaseModel, Field, RootModel, field_validator
from share import part
from test_turns import TEXTS
from typing_extensions import TypedDict

import langchain_svc as svc
from langchain_svc._text import defuse
from langchain_svc.chat.structured import ResponseFormat
from langchain_svc.sandbox import Sandbox


class Person(BaseModel):
    """A person."""

    name: str
    age: int = Field(ge=0, le=150)
    email: Optional[str] = None  # noqa: UP045  # the older way, which users write


class OldPerson(pydantic.v1.BaseModel):
    """A person, in Pydantic's old way."""

    name: str
    age: int


class PersonDict(TypedDict):
    """A person."""

    name: str
    age: int


SCHEMA = {
    "title": "Person",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
GOOD = '{"name": "Ann", "age": 34}'
METHODS = pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])


def in_method(method, text):
    if method != "function_calling":
        return text
    return f'<tool_call>\n{{"name": "Person", "arguments": {text}}}\n</tool_call>'


class Meeting(BaseModel):
    """A meeting."""

    city: str


@dataclasses.dataclass
class Place:
    city: str


class Stop(TypedDict):
    """A stop."""

    city: str


class Numbers(RootModel[list[int]]):
    """Some numbers."""


class Counts(RootModel[dict[str, int]]):
    """How many there are of each."""


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Named(BaseModel):
    """Someone."""

    name: str


class Leaf(BaseModel):
    """A node of a tree."""

    label: str
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"
    size: int | float | None = None
    children: list[Leaf] = Field(default_factory=list)


Leaf.model_rebuild()
TREE = {
    "label": "x",
    "colour": "blue",
    "size": 1.5,
    "children": [{"label": "y", "children": [{"label": "z"}]}],
}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CITIES = {"type": "array", "items": CITY}
MAP = {"type": "object", "additionalProperties": {"type": "integer"}}
NESTED = {"title": "Nested", "type": "array", "items": {"$ref": "#"}}
ROME, LISTED = '{"city": "Rome"}', '{"answer": [{"city": "Rome"}]}'
ANN = {"name": "Ann", "age": 34}
SCHEMAS: dict[str, tuple[Any, str, Any]] = {
    "class": (Person, GOOD, Person(**ANN)),
    "a name alone": (Named, '{"name": "Ann"}', Named(name="Ann")),  # as a call has one, too
    "older class": (OldPerson, GOOD, OldPerson(**ANN)),
    "TypedDict": (PersonDict, GOOD, ANN),
    "JSON schema": (SCHEMA, GOOD, ANN),
    "dataclass": (Place, ROME, Place("Rome")),
    "root list": (Numbers, "[1, 2]", Numbers([1, 2])),
    "tree": (Leaf, json.dumps(TREE), Leaf.model_validate(TREE)),
    "list": (list[Meeting], LISTED, [Meeting(city="Rome")]),
    "list of dicts": (list[Stop], LISTED, [{"city": "Rome"}]),
    "tuple": (tuple[int, str], '{"answer": [1, "a"]}', (1, "a")),
    "union": (Meeting | int, '{"answer": 3}', 3),
    "bare optional": (Meeting | None, ROME, Meeting(city="Rome")),
    "bare union": (int | Meeting, ROME, Meeting(city="Rome")),
    "bare optional list": (list[Meeting] | None, f"[{ROME}]", [Meeting(city="Rome")]),
    "literal": (Literal["yes", "no"], '{"answer": "no"}', "no"),
    "root map": (Counts, '{"a": 1}', Counts({"a": 1})),
    "schema of a list": ({"title": "Cities", **CITIES}, LISTED, [{"city": "Rome"}]),
    "without a title": (CITIES, LISTED, [{"city": "Rome"}]),
    "bare list": ({"title": "Cities", **CITIES}, '[{"city": "Rome"}, {"city": "Oslo"}]',
                  [{"city": "Rome"}, {"city": "Oslo"}]),
    "schema of a map": ({"title": "Counts", **MAP}, '{"a": 1, "b": 2}', {"a": 1, "b": 2}),
    "map of a map": ({"additionalProperties": MAP}, '{"a": {"b": 2}}', {"a": {"b": 2}}),
    "schema by reference": ({"$ref": "#/$defs/City", "$defs": {"City": CITY}}, ROME, {"city": "Rome"}),
    "list in itself": (NESTED, '{"answer": [[], [[]]]}', [[], [[]]]),
    "function": ({"name": "City", "parameters": CITY}, ROME, {"city": "Rome"}),
    "function of a list": ({"name": "Cities", "parameters": CITIES}, LISTED, [{"city": "Rome"}]),
    "scalar": ({"title": "Word", "type": "string"}, '{"answer": "yes"}', "yes"),
}  # fmt: skip


@METHODS
@pytest.mark.parametrize("kind", SCHEMAS)
async def test_whatever_type_is_asked_for_comes_back(kind, method):
    schema, text, value = SCHEMAS[kind]
    if isinstance(schema, dict):
        name = schema.get("title", schema.get("name", "answer"))
    else:
        name = getattr(schema, "__name__", "answer")
        name = "answer" if text.startswith('{"answer"') else name
    if (method, kind) == ("json_mode", "scalar"):
        value = json.loads(text)  # the user's prompt asks for an object
    text = in_method(method, text).replace('"Person"', f'"{name}"')
    service = Scripted(*[text] * 4)
    chain = service.model().with_structured_output(schema, method=method, strict=True)
    assert chain.invoke("?") == await chain.ainvoke("?") == value
    assert list(chain.stream("?"))[-1] == [made async for made in chain.astream("?")][-1] == value
    assert len(service.asked) == 4


@pytest.mark.parametrize(
    "schema", [None, {"type": "object", "properties": {}}, {"type": "json_object"}, SCHEMA]
)
def test_json_mode_leaves_the_wording_to_the_prompt_and_needs_no_title(schema):
    service = Scripted(GOOD)
    chain = service.model().with_structured_output(schema, method="json_mode")
    assert chain.invoke("?") == ANN
    said = service.asked[0][0]["content"]
    assert "JSON object" in said and "of this form" not in said


@pytest.mark.parametrize(
    "text",
    [
        f"Sure!\n```json\n{GOOD}\n```\nAnything else?",
        f"<think>hm {{}}</think>{GOOD}",
        "{'name': 'Ann', 'age': 34,}",
        '{"name": "Ann", "age": "34"}',
        '{"person": {"name": "Ann", "age": 34}}',
    ],
)
def test_what_models_write_around_and_instead(text):
    service = Scripted(text)
    result = service.model().with_structured_output(Person, include_raw=True).invoke("?")
    assert result["parsed"] == Person(name="Ann", age=34)
    assert json.loads(result["raw"].content) == {"name": "Ann", "age": 34}
    assert result["parsing_error"] is None
    assert len(service.asked) == 1


class Perhaps(BaseModel):
    """What may be unknown."""

    city: str = "?"


@pytest.mark.parametrize(
    "text",
    ['{"error": "no city"}', "{}", "5", '{"city": "Rome", "arguments": {"city": "Oslo"}}'],
)
def test_an_object_without_a_field_of_the_class_is_not_taken_for_one(text):
    service = Scripted(text, '{"answer": null}')
    assert service.model().with_structured_output(Perhaps | None).invoke("?") is None
    assert len(service.asked) == 2


class Even(BaseModel):
    """An even number."""

    number: int

    @field_validator("number")
    @classmethod
    def _even(cls, value):
        if value % 2:
            raise ValueError("must be even")  # what no schema says
        return value


MISFITS = [
    (Person, '{"name": "Ann"}', GOOD, Person(**ANN), "age"),
    (Even, '{"number": 3}', '{"number": 4}', Even(number=4), "must be even"),
]


@METHODS
@pytest.mark.parametrize(("schema", "bad", "good", "made", "told"), MISFITS)
def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason(
    method, schema, bad, good, made, told
):
    answers = [in_method(method, text).replace("Person", schema.__name__) for text in (bad, good)]
    service = Scripted(*answers)
    chain = service.model().with_structured_output(schema, method=method, include_raw=True)
    result = chain.invoke("?")
    assert result["parsed"] == made
    assert result["raw"].usage_metadata["total_tokens"] == 30
    assert told in service.asked[1][-1]["content"]


class Dosed(BaseModel):
    """A drug and its dose."""

    drug: str
    dose_mg: float | None = None
    note: str | None = None


class Drugs(BaseModel):
    """What somebody takes."""

    drugs: list[Dosed]


DRUGS = '{"drugs": [{"drug": "metformin", "dose_mg": 500}, {"drug": "warfarin", "note": "x"}]}'
LEFT_OVER = {
    "a brace is missing": (DRUGS.replace('{"drug": "w', '"drug": "w'), "a bracket in it is missing"),
    "a key twice": (DRUGS.replace('}, {"drug"', ', "drug"'), "'drug' stands twice"),
    "a bracket too many": (DRUGS.replace('"metformin",', '"metformin"},'), "a bracket in it is missing"),
    "a word": (DRUGS.replace('500}', '500} daily'), "words"),
    "a formula": (DRUGS.replace('"x"', r'"\frac{a}{b}"'), "a backslash"),
}  # fmt: skip


@METHODS
@pytest.mark.parametrize("kind", LEFT_OVER)
def test_an_object_of_which_something_is_left_over_is_asked_for_again(kind, method):
    damaged, told = LEFT_OVER[kind]
    service = Scripted(
        *(in_method(method, text).replace("Person", "Drugs") for text in (damaged, DRUGS))
    )
    chain = service.model().with_structured_output(Drugs, method=method)
    assert chain.invoke("?") == Drugs.model_validate_json(DRUGS)
    assert re.search(told, service.asked[1][-1]["content"])


SLUG, NO_SLUG = "a-slug-2", "Not A Slug, certainly not one!"
PAGE = {
    "title": "page",
    "description": "A page.",
    "type": "object",
    "properties": {"slug": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"}},
    "required": ["slug"],
}
FUNCTION = {"name": "page", "description": "A page.", "parameters": PAGE}
PAGE_FORMAT = {"type": "json_schema", "json_schema": {"name": "page", "schema": PAGE}}
WAYS_TO_A_PAGE = {
    "schema": lambda model: model.with_structured_output(PAGE).invoke("?"),
    "call": lambda model: model.with_structured_output(PAGE, method="function_calling").invoke("?"),
    "stream": lambda model: [*model.with_structured_output(PAGE).stream("?")][-1],
    "format": lambda model: json.loads(model.invoke("?", response_format=PAGE_FORMAT).text),
    "tool": lambda model: (
        model.bind_tools([FUNCTION], tool_choice="page").invoke("?").tool_calls[0]["args"]
    ),
}


@pytest.mark.parametrize("way", WAYS_TO_A_PAGE)
@pytest.mark.parametrize("length", [30, 60, 150, 400])
def test_a_text_that_its_pattern_does_not_match_is_asked_for_again(way, length):
    wrong, right = (json.dumps({"slug": slug}) for slug in ((NO_SLUG * 14)[:length], SLUG))
    if way == "tool":  # in a call without tags, which counts only if it fits
        wrong, right = f"page{wrong}", f"page{right}"
    with Sandbox(answers=[wrong, right]) as box:
        assert WAYS_TO_A_PAGE[way](svc.ChatSvc(**box.v1)) == {"slug": SLUG}
        told = json.loads(box.requests[1].body)["messages"][-1]["content"]
    if way != "tool":
        assert "expected text that matches ^[a-z0-9]+(-[a-z0-9]+)*$, got" in told


def test_a_call_in_its_tags_goes_to_the_tool_whatever_its_pattern_says():
    call = json.dumps({"name": "page", "arguments": {"slug": NO_SLUG}})
    with Sandbox(answers=[f"<tool_call>{call}</tool_call>"]) as box:
        message = svc.ChatSvc(**box.v1).bind_tools([FUNCTION]).invoke("?")
    assert [call["args"] for call in message.tool_calls] == [{"slug": NO_SLUG}]


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a?){28}a{28}$", r"^(\d\d?){2,}$", "^(?:(?R)|a)+$"]
)
def test_a_pattern_that_would_be_searched_for_hours_refuses_the_text(pattern):
    schema = {**PAGE, "properties": {"slug": {"type": "string", "pattern": pattern}}}
    with Sandbox(answers=[json.dumps({"slug": "1" * 33 + "a" * 33 + "!"})] * 2) as box:
        chain = svc.ChatSvc(**box.v1, max_repairs=1).with_structured_output(schema)
        with pytest.raises(svc.SvcOutputError) as raised:
            chain.invoke("?")
        assert len(box.requests) == 2
    assert "expected text that matches" in raised.value.problems[0]


@METHODS
@pytest.mark.parametrize("repairs", [0, 1, 2])
def test_repairs_are_bounded_and_the_error_knows_all(method, repairs):
    bad = in_method(method, '{"name": "Ann"}')
    service = Scripted(*[bad] * 5)
    chain = service.model(max_repairs=repairs).with_structured_output(Person, method=method)
    with pytest.raises(svc.SvcOutputError) as raised:
        chain.invoke("?")
    assert len(service.asked) == repairs + 1
    assert isinstance(raised.value, OutputParserException)
    assert any("age" in problem for problem in raised.value.problems)
    assert '"Ann"' in raised.value.raw
    assert raised.value.usage["total_tokens"] == 15 * (repairs + 1)
    assert "Ann" not in str(raised.value)


class Dose(BaseModel):
    """A dose."""

    dose_mg: float
    allergies: list[str] = []


WHOLE = '{"dose_mg": 12.75, "allergies": ["latex", "penicillin"]}'


@METHODS
@pytest.mark.parametrize("reason", ["length", "content_filter", "stop"])
def test_half_an_answer_is_never_an_object(method, reason):
    """Wherever it is cut, streamed or not; only a bracket that was forgotten may be missing."""
    written = in_method(method, WHOLE).replace("Person", "Dose")
    whole = Dose.model_validate_json(WHOLE)
    schema = Dose if method != "json_mode" else {"title": "Dose", **Dose.model_json_schema()}
    for end in part(range(1, len(written))):
        text = written[:end]
        service = Scripted(text, text, finish_reason=reason)
        model = service.model(max_repairs=0, on_cut="mark")
        chain = model.with_structured_output(schema, method=method)
        for way in ("invoke", "stream"):
            try:
                made = chain.invoke("?") if way == "invoke" else [*chain.stream("?")][-1]
            except svc.SvcOutputError:
                continue
            made = Dose.model_validate(made)
            forgotten = reason == "stop" and text.rstrip().endswith(('"', "]"))
            assert made == whole or (forgotten and made.dose_mg == 12.75)


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [('{"dose_mg": 1', "length", "cut off .*max_tokens"), ("I cannot.", "stop", "does not fit")],
)
def test_the_raw_message_survives_a_failure(text, reason, said):
    service = Scripted(text, finish_reason=reason)
    model = service.model(max_repairs=0, on_cut="mark")
    chain = model.with_structured_output(Dose, include_raw=True)
    result = chain.invoke("?")
    assert (result["raw"].content, result["parsed"]) == (text, None)
    assert isinstance(result["parsing_error"], svc.SvcOutputError)
    assert re.search(said, str(result["parsing_error"]))


def test_an_answer_cut_by_max_tokens_is_not_asked_for_again():
    service = Scripted('{"dose_mg": 1', WHOLE, finish_reason="length")
    with pytest.raises(svc.SvcOutputError, match="cut off"):
        service.model(on_cut="mark").with_structured_output(Dose).invoke("?")
    assert len(service.asked) == 1


@pytest.mark.parametrize("tag", ["think", "thought", "reasoning"])
def test_a_stream_of_objects_shows_nothing_that_was_only_thought(tag):
    service = Scripted(f'<{tag}>perhaps {{"name": "Bob"}}</{tag}>{GOOD}', step=4)
    values = list(service.model().with_structured_output(SCHEMA).stream("?"))
    assert all("Bob" not in str(value) for value in values)
    assert values[-1] == json.loads(GOOD)


def test_partial_objects_of_a_stream():
    service = Scripted('{"name": "Ann Meyer", "age": 34}', step=4)
    values = list(service.model().with_structured_output(SCHEMA).stream("?"))
    assert values[-1] == {"name": "Ann Meyer", "age": 34}
    assert {"name": "Ann Me"} in values
    assert all(set(value) <= {"name", "age"} for value in values)
    assert len(values) == len({json.dumps(value) for value in values})


def test_a_stream_of_texts_is_parsed_as_one_of_messages():
    parser = Scripted("").model().with_structured_output(SCHEMA).steps[-1]
    values = list(parser.transform(iter(['{"name": "Ann", ', '"age": 34}'])))
    assert values == [{"name": "Ann"}, {"name": "Ann", "age": 34}]


def outcome(call):
    try:
        return call()
    except svc.SvcOutputError as error:
        return error.problems, error.raw


ANSWERS = st.sampled_from([GOOD, '{"name": "Ann"}', '{"name": "Bob", "age": "?"}', '{"age": 5}'])


@given(st.lists(ANSWERS, min_size=3, max_size=3), st.integers(1, 40))
def test_a_repaired_stream_shows_one_json_and_ends_as_a_whole_answer_does(answers, step):
    def asking():
        return Scripted(*answers, step=step).model().with_structured_output(SCHEMA)

    assert outcome(lambda: [*asking().stream("?")][-1]) == outcome(lambda: asking().invoke("?"))
    message = summed(asking().steps[0].stream("?"))
    assert json.loads(message.text) == json.loads(answers[0])


FORMS = {
    "schema": {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA, "strict": True}},
    "object": {"type": "json_object"},
    "class": Person,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("tools", [[], None])
def test_the_response_format_that_agents_bind(form, tools):
    model = Scripted(f"Here: ```json\n{GOOD}\n```", f"Here: {GOOD}").model()
    bound = model.bind(response_format=form)
    if tools is not None:
        bound = model.bind_tools(tools, response_format=form)
    for message in (bound.invoke("?"), summed(bound.stream("?"))):
        assert json.loads(message.content) == ANN
        assert form is not Person or message.additional_kwargs["parsed"] == Person(**ANN)


def look_up(name: str) -> str:
    """Look up a person."""
    return name


CALL = '<tool_call>{"name": "look_up", "arguments": {"name": "Ann"}}</tool_call>'


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_required_call_comes_before_the_response_format(way):
    """JSON is no call: the model is told so, and asked for JSON only where it may answer."""
    service = Scripted(GOOD, CALL, GOOD.replace("34", '"old"'), GOOD)
    model = service.model()
    required = model.bind_tools([look_up], tool_choice="any", response_format=Person)
    free = model.bind_tools([look_up], response_format=Person)
    messages = [
        bound.invoke("?") if way == "invoke" else summed(bound.stream("?"))
        for bound in (required, free)
    ]
    assert [call["args"] for call in messages[0].tool_calls] == [{"name": "Ann"}]
    assert (messages[0].content, "parsed" in messages[0].additional_kwargs) == ("", False)
    assert messages[1].additional_kwargs["parsed"] == Person(**ANN)
    asked = [turns[-1]["content"] for turns in service.asked]
    assert "of this form and nothing else: no prose" not in asked[0]
    assert "does not call" in asked[1]
    assert "When you call no function, answer with one JSON object of this form" in asked[2]
    assert "age" in asked[3]


@pytest.mark.parametrize(
    "form",
    ["json", {"type": "xml"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {}}],
)
def test_another_response_format_is_refused(form):
    with pytest.raises(svc.SvcRequestError, match="response_format must be"):
        Scripted().model().bind(response_format=form).invoke("?")


@pytest.mark.parametrize(
    ("schema", "method"),
    [(5, "json_schema"), ("Person", "json_schema"), (None, "json_schema"), (Person, "yaml")],
)
def test_what_is_no_schema_or_method_is_refused(schema: Any, method: Any):
    with pytest.raises(svc.SvcRequestError):
        Scripted().model().with_structured_output(schema, method=method)


class PlainClass:
    city: str


@pytest.mark.parametrize("schema", [PlainClass, list[PlainClass], dict[str, PlainClass | None]])
def test_a_plain_class_is_refused_by_its_name(schema: Any):
    with pytest.raises(svc.SvcRequestError, match=r"write class PlainClass\(BaseModel\)"):
        Scripted().model().with_structured_output(schema)


def test_a_repair_is_one_run():
    seen = hearing()
    service = Scripted('{"name": "Ann"}', GOOD)
    service.model().with_structured_output(Person).invoke("?", {"callbacks": [seen]})
    assert seen.names.count("on_chat_model_start") == 1
    (started,) = [told for told in seen.told if told.startswith("on_chat_model_start")]
    assert "'ls_structured_output_format'" in started and "'title': 'Person'" in started


class Trip(BaseModel):
    """A trip."""

    traveller: str = Field(description="who travels")
    by: Literal["train", "plane"]
    nights: Optional[int] = Field(None, ge=1)  # noqa: UP045  # the older way
    stops: list[Stop] = Field(min_length=1)


ASKED_FOR = """\
About the answer: A trip.
About stops: at least 1 item
About stops[]: A stop.
These keys may be left out: nights.
Answer with one JSON object of this form and nothing else: no prose around it, no fence. Put a \
value in the place of each <...>:
{"traveller": "<string: who travels>", "by": "<one of: train, plane>", \
"nights": <integer or null, at least 1>, "stops": [{"city": "<string>"}, ...]}"""


def test_a_schema_is_asked_for_as_a_form():
    service = Scripted(json.dumps({"traveller": "Ann", "by": "train", "stops": [{"city": "Rome"}]}))
    assert service.model().with_structured_output(Trip).invoke("?").by == "train"
    assert service.asked[0][0]["content"].endswith(f"{ASKED_FOR}\n\n?")


def test_a_schema_that_no_form_says_is_shown_as_it_is():
    service = Scripted("?", '{"answer": [1, "a"]}')
    chain = service.model().with_structured_output(tuple[int, str])
    assert chain.invoke("?") == (1, "a")
    first, again = (turns[-1]["content"] for turns in service.asked)
    assert '"prefixItems"' in first and "\n</schema>\n" in first
    assert again.endswith(' as JSON of this form and nothing else:\n{"answer": ...}')


class Notes(BaseModel):
    """Some notes."""

    title: str
    tags: list[str] = []
    counts: dict[str, int] = {}
    more: Any = None
    kind: Literal["<integer>", "short"] = "short"


@pytest.mark.parametrize(
    ("left", "place"),
    [
        ({"title": "<string>"}, "answer.title: <string>"),
        ({"title": " <string>\n"}, "answer.title: <string>"),
        ({"title": "x", "tags": ["y", "<string>"]}, "answer.tags[1]: <string>"),
        ({"title": "x", "counts": {"<key>": 1}}, "answer.counts: <key>"),
        ({"title": "x", "counts": {"a": "<integer>"}}, "answer.counts.a: expected integer"),
        ({"title": "x", "more": {"a": ["<any value>"]}}, "answer.more.a[0]: <any value>"),
        ({"title": '<string>" or null'}, "answer.title: <string>"),
        ({"title": "x", "kind": "<one of: long>"}, "answer.kind: expected one of"),
    ],
)
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_a_placeholder_that_was_left_standing_is_no_value(left, place, method):
    good = {"title": "A <string> in XML", "kind": "<integer>"}
    answers = [
        in_method(method, json.dumps(one)).replace("Person", "Notes") for one in (left, good)
    ]
    service = Scripted(*answers)
    made = service.model().with_structured_output(Notes, method=method).invoke("?")
    assert made == Notes(**good)
    assert f"\n- {place}" in service.asked[1][-1]["content"]


@given(TEXTS, TEXTS)
def test_no_text_of_a_schema_speaks_as_somebody_else(text, other):
    leaf = {"type": "string", "description": text, "pattern": re.escape(other), "examples": [other]}
    options = {"enum": [text, other], "description": other}
    fields = {text: leaf, "options": options, "list": {"type": "array", "items": leaf}}
    schema = {"title": "x", "type": "object", "description": other, "properties": fields}
    asked = ResponseFormat(schema)
    shown = [asked.preamble(among_tools=False), asked.repair_prompt([text])]
    for told in shown:
        assert "of this form" in told
        assert defuse(told) == told


def test_a_second_request_shows_the_form_of_the_object_at_its_end():
    with Sandbox(answers=["yes, it is", "true"]) as box, svc.ChatSvc(**box.v1) as model:
        assert model.with_structured_output(bool).invoke("Is it?") is True
        prompt = box.requests[-1].json["messages"][-1]["content"]
        first = box.requests[0].json["messages"][-1]["content"]
    problem = prompt.removeprefix(f"{first}\n\nAn answer to this could not be used:\n- ")
    assert problem.startswith("answer: no JSON found")
    assert problem.endswith('in the place of each <...>:\n{"answer": <true or false>}')
