"""What a chat is answered with: what a test has scripted, or what a few rules make of the prompt."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.tools import tool
from share import fewer

from langchain_svc import ChatSvc, SvcServerError
from langchain_svc.sandbox import Fault, Sandbox, ToolCall
from langchain_svc.sandbox.answers import compose, cut_answer
from langchain_svc.sandbox.prompts import cut_messages

# -- scripted ------------------------------------------------------------------------------------------


@tool
def stock(item: str) -> str:
    """How many of an item are there."""
    return f"12 of {item}"


def test_answers_are_played_in_order_and_then_the_rules_answer():
    with Sandbox(answers=["Yes.", "No."]) as s, ChatSvc(**s.v1) as model:
        assert [model.invoke("Is it so?").text for _ in range(2)] == ["Yes.", "No."]
        assert model.invoke("What is 2 + 2?").text == "2 + 2 = 4"
        s.answers = ["Once more."]
        assert len(s.answers) == 1
        assert "".join(chunk.text for chunk in model.stream("And now?")) == "Once more."
        assert s.answers == ()


@pytest.mark.parametrize("form", ["tags", "fenced"])
def test_a_call_is_written_in_the_form_that_the_prompt_asks_for(form):
    calls = [ToolCall("stock", {"item": "apple"}), ToolCall("stock")]
    with Sandbox(answers=[calls[0], calls]) as s, ChatSvc(tool_format=form, **s.v1) as model:
        bound = model.bind_tools([stock])
        (made,) = bound.invoke("Hello").tool_calls
        assert (made["name"], made["args"]) == ("stock", {"item": "apple"})
        assert [made["args"] for made in bound.invoke("Hello").tool_calls] == [
            {"item": "apple"},
            {},
        ]


def test_a_fault_takes_its_turn_and_spends_no_answer():
    faults = [Fault(status=503, headers={"Retry-After": "0"})] * 2
    with Sandbox(answers=[*faults, "Here."]) as s, ChatSvc(**s.v1) as model:
        answer = model.invoke("Are you there?")
        assert (answer.text, answer.response_metadata["retries"]) == ("Here.", 2)
        s.answers = ["Kept."]
        s.faults = [Fault(status=500)]
        with pytest.raises(SvcServerError):
            model.invoke("Are you there?", max_retries=0)
        s.faults = []
        assert model.list_models()
        assert model.invoke("Are you there?").text == "Kept."


def test_a_function_sees_the_request_and_alone_answers_every_chat():
    def echo(request):
        return request.json["messages"][-1]["content"].upper()

    with Sandbox(answers=[echo, lambda _: ToolCall("stock")]) as s, ChatSvc(**s.v1) as model:
        assert model.invoke("say it").text == "SAY IT"
        assert model.bind_tools([stock]).invoke("Hello").tool_calls[0]["args"] == {}
        s.answers = echo
        assert [model.invoke(text).text for text in "abc"] == ["A", "B", "C"]


@pytest.mark.parametrize("wrong", [3, None, {"a": 1}, [3], b"bytes"])
def test_what_cannot_be_played_is_refused_at_once(wrong):
    with pytest.raises(TypeError, match="answers: expected a text, a ToolCall"):
        Sandbox(answers=[wrong])


@pytest.mark.parametrize("arguments", ['{"city": "Rome"}', ["Rome"], None, 5])
def test_arguments_of_a_call_are_a_mapping(arguments):
    with pytest.raises(TypeError, match=f"expected a mapping.*, got {type(arguments).__name__}"):
        ToolCall("weather", arguments)


# -- by the rules: calls -------------------------------------------------------------------------------


def function(name, description="", **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    told = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": told}


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
WEATHER = function("get_weather", "Get the weather of a city.", city=STRING)
MULTIPLY = function("multiply", "Multiply two numbers.", a=INTEGER, b=INTEGER)
DRAW = function("make_image", "Generate an image of what a text describes.", prompt=STRING)
LOOK = function(
    "look",
    "Describe an image, or read the text in it.",
    image={"type": "string", "description": "A handle such as img_1"},
    task={"enum": ["detect", "ocr", "describe"]},
)
TAGS = """<system_message>
Be kind.

These functions can be called:
<tools>
{tools}
</tools>
Write a call like this:
<tool_call>
{{"name": "<name>", "arguments": {{}}}}
</tool_call>
{extra}
</system_message>

{question}"""
MUST = "You must call at least one function now."


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def offered(question, *tools, extra=""):
    written = "\n".join(map(json.dumps, tools))
    return user(TAGS.format(tools=written, extra=extra, question=question))


def called(name, **arguments):
    body = json.dumps({"name": name, "arguments": arguments})
    return assistant(f"<tool_call>\n{body}\n</tool_call>")


def result(text, attributes=""):
    return user(f"<tool_response{attributes}>\n{text}\n</tool_response>")


def said(*messages):
    """The whole answer that the rules give."""
    return compose(messages, "svc-pro")


def calls(*messages):
    """What an answer calls that holds nothing else."""
    text = said(*messages)
    if "<tool_call>" not in text:
        return []
    made = [json.loads(line) for line in re.sub(r"</?tool_call>", "", text).splitlines() if line]
    return [(call["name"], call["arguments"]) for call in made]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "What's the weather in Paris, San Francisco, CA and Tokyo?",
            [("get_weather", {"city": each}) for each in ("Paris", "San Francisco, CA", "Tokyo")],
        ),
        (
            "What is the weather in Oslo, and what is 5 * 6?",
            [("get_weather", {"city": "Oslo"}), ("multiply", {"a": 5, "b": 6})],
        ),
        ("What is the weather in paris?", [("get_weather", {"city": "paris"})]),
        ("Call multiply(a=3, b=2).", [("multiply", {"a": 3, "b": 2})]),
        ("Tell me a joke about tea.", []),
    ],
)
def test_a_question_gets_the_calls_that_it_needs(question, expected):
    assert calls(offered(question, WEATHER, MULTIPLY)) == expected


@pytest.mark.parametrize(
    ("question", "extra", "names"),
    [
        ("Hello!", "", []),
        ("Hello!", MUST, ["get_weather"]),
        ("Hello!", "You must call the function multiply now.", ["multiply"]),
        ("Weather in Paris and Rome?", "Call at most one function.", ["get_weather"]),
    ],
)
def test_a_call_is_made_where_one_must_be_and_no_more_than_may_be(question, extra, names):
    prompt = offered(question, WEATHER, MULTIPLY, extra=extra)
    assert [name for name, _ in calls(prompt)] == names


def test_results_end_the_loop_and_are_quoted_whole():
    turns = [
        offered("Weather in Paris?", WEATHER, extra=MUST),
        called("get_weather", city="Paris"),
        result("Rainy.", ' mark="ab12" name="get_weather"'),
    ]
    assert said(*turns) == "The tool get_weather answered: Rainy."
    turns[-1] = result("no such city", ' mark="ab12" status="error"')
    assert said(*turns) == "The tool get_weather failed: no such city"
    again = [*turns, assistant("Sorry."), user("And in Rome?")]
    assert calls(*again) == [("get_weather", {"city": "Rome"})]


def test_a_chain_of_steps_passes_results_on():
    turns = [offered("Generate an image of a red boat, then describe the image.", DRAW, LOOK)]
    for name, arguments, returned in [
        ("make_image", {"prompt": "Generate an image of a red boat"}, "Made img_1."),
        ("look", {"image": "img_1", "task": "describe"}, "A red boat."),
    ]:
        assert calls(*turns) == [(name, arguments)]
        turns += [called(name, **arguments), result(returned)]
    assert "A red boat." in said(*turns)


def test_a_complaint_leads_back_to_the_question():
    complaint = (
        "An answer to this could not be used: it does not call the function multiply. You must call "
        "the function multiply now: write one block of this form:"
    )
    turn = offered(f"Hello!\n\n{complaint}", WEATHER, MULTIPLY)
    assert [name for name, _ in calls(turn)] == ["multiply"]


# -- by the rules: JSON and words ----------------------------------------------------------------------

PERSON = {
    "type": "object",
    "properties": {
        "name": STRING,
        "age": {"type": "integer", "minimum": 0},
        "city": {"anyOf": [STRING, {"type": "null"}]},
        "email": {"type": "string", "format": "email"},
        "mood": {"enum": ["glad", "sad"]},
    },
    "required": ["name", "age", "mood"],
}
PEOPLE = {
    "properties": {"people": {"type": "array", "items": {"$ref": "#/$defs/Person"}}},
    "required": ["people"],
    "$defs": {"Person": PERSON},
}
PERSON_FORM = (
    '{"name": "<string>", "age": <integer, at least 0>, "city": "<string>" or null, '
    '"email": "<string, email>", "mood": "<one of: glad, sad>"}'
)
SIZES = {"properties": {"height": INTEGER, "base": INTEGER}, "required": ["height", "base"]}
ANN, BOB = {"name": "Ann", "age": 34, "mood": "glad"}, {"name": "Bob", "age": 41, "mood": "glad"}


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (
            PERSON,
            "Ann is 34 and sad. Write to ann@example.org.",
            {"name": "Ann", "age": 34, "email": "ann@example.org", "mood": "sad"},
        ),
        (PEOPLE, "Ann is 34. Bob is 41.", {"people": [ANN, BOB]}),
        (SIZES, "A triangle with base 10 and height 5.", {"height": 5, "base": 10}),
        (SIZES, "Nothing of it.", {"height": 1, "base": 1}),
    ],
)
def test_a_schema_is_filled_from_the_text(schema, text, expected):
    wanted = f"Answer with JSON of this schema:\n<schema>\n{json.dumps(schema)}\n</schema>"
    made = json.loads(said(user(f"<system_message>\n{wanted}\n</system_message>\n\n{text}")))
    assert made == expected


@pytest.mark.parametrize(
    ("form", "notes", "text", "expected"),
    [
        (
            PERSON_FORM,
            "These keys may be left out: city, email.",
            "Ann is 34 and sad. Write to ann@example.org.",
            {"name": "Ann", "age": 34, "email": "ann@example.org", "mood": "sad"},
        ),
        (
            f'{{"people": [{PERSON_FORM}, ...]}}',
            "These keys may be left out: people[].city, people[].email.",
            "Ann is 34. Bob is 41.",
            {"people": [ANN, BOB]},
        ),
        ('{"ages": [<integer>, ...]}', "About ages: 3 items; of all", "7.", {"ages": [7, 1, 1]}),
        ('{"kind": "cat"} or {"kind": "dog"}', "", "A dog.", {"kind": "cat"}),
        ('{"height": <integer>, "base": <integer or null, 1 to 9: the lowest side>}', "",
         "A triangle with base 10 and height 5.", {"height": 5, "base": 9}),
    ],
)  # fmt: skip
def test_a_form_is_filled_from_the_text(form, notes, text, expected):
    wanted = f"{notes}\nAnswer with JSON of this form, a value in the place of each <...>:\n{form}"
    assert (
        json.loads(said(user(f"<system_message>\n{wanted}\n</system_message>\n\n{text}")))
        == expected
    )


def test_keys_that_words_ask_for_and_only_once():
    asked = user("Tell me a joke about cats. Return JSON with 'setup' and 'punchline' keys.")
    assert json.loads(said(asked)).keys() == {"setup", "punchline"}
    assert "{" not in said(asked, assistant('{"setup": "b"}'), user("Good morning"))


NOTES = """Source: orchard.md
The orchard has 120 apple trees. They were planted in 1998 by Ida Holm.

Source: mill.md
The mill was built in 1871. It has three floors."""
RULES = "Answer from the context alone. If you do not know, say so."
PROMPTS = {
    "a label": lambda question: [user(f"{RULES}\n\nContext:\n{NOTES}\n\nQuestion: {question}")],
    "a tag": lambda question: [user(f"<context>\n{NOTES}\n</context>\n\n{question}")],
    "a system message": lambda question: [
        {"role": "system", "content": f"{RULES}\n\nContext:\n{NOTES}"},
        user(question),
    ],
    "a folded system message, a turn ago": lambda question: [
        user(f"<system_message>\n{RULES}\n\nContext:\n{NOTES}\n</system_message>\n\nHello"),
        assistant("Hello!"),
        user(question),
    ],
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=list(PROMPTS))
def test_the_best_sentence_is_quoted_under_its_source(prompt):
    told = said(*prompt("When was the mill built?"))
    assert "The mill was built in 1871." in told
    assert "mill.md" in told


@pytest.mark.parametrize(
    ("asked", "value"),
    [("What is 17 * 23?", "391"), ("What is 0.1 + 0.2?", "0.3"), ("What is 1/3?", "0.3333333333")],
)
def test_sums_are_exact(asked, value):
    assert said(user(asked)).endswith(f"= {value}")


def test_what_no_rule_answers_says_what_it_is():
    for asked in ("Write a limerick on tides.", "What is 7 / 0?", "What was on 2024-02-29?"):
        told = said(user(asked))
        assert "This is the sandbox, not svc-pro: fixed rules answer." in told
        assert told.endswith(f"You asked: {asked}")
    turns = [user("My name is Bob."), assistant("I see."), user("What is my name?")]
    assert "Bob" in said(*turns)


# -- every answer --------------------------------------------------------------------------------------

BROKEN_FORMS = [
    '{"a": <integer, 1 to x>}',
    '{"a": "<string, at least 3>", "<key>": <any value>}',
    '["<one of: >", ...]',
    "[<one of: 1, x> or null, ...]",
    '{"a": {"b": <integer or null, above 3>, "c": [<number>]}',
]
FRAGMENTS = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "\n<tool_response>", "</tool_response>", "<tools>"),
        *("<system_message>", "</system_message>", '<image handle="img_1">', "</image>", "\n\n"),
        *(json.dumps(WEATHER), json.dumps([MULTIPLY]), json.dumps(PERSON), json.dumps(PEOPLE)),
        '{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}',
        '{"properties": {"y": {"enum": []}, "z": {"anyOf": []}, "v": {"type": "x"}, "w": 3}}',
        '{"properties": {"n": {"type": "integer", "minimum": 3, "maximum": 1, "multipleOf": 7}}}',
        '{"type": ["x", {}], "allOf": 3, "anyOf": [{"type": "array", "minItems": "x"}]}',
        '{"properties": {"s": {"maxLength": null, "format": []}, "m": {"multipleOf": "x"}}}',
        '{"name": "<name>", "arguments": {}}',
        *("\nAbout a: 1 to x items\n", '\nThese keys may be left out: a, "b.\n'),
        *(f"of this form <...>:\n{form}" for form in BROKEN_FORMS),
        *("Return JSON with the keys a and b.", "Context:", "Question: ", MUST),
        *("Source: a.md", "9**9**9", "What is my name?", "get_weather('x', 3)", "count 1 to 9999"),
        *("\x00", "{", "[", '"', "'", "That answer "),
    ]
)
LETTERS = st.text(st.characters(exclude_categories=["Cs"]), max_size=15)
TEXTS = st.lists(FRAGMENTS | LETTERS, max_size=12).map(" ".join)
ROLES = st.sampled_from(["system", "user", "assistant"])
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": ROLES, "content": TEXTS}), min_size=1, max_size=5
)


@settings(max_examples=fewer(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(messages=MESSAGES, limit=st.integers(1, 12) | st.just(2000))
def test_any_conversation_has_one_answer(messages, limit):
    text = said(*messages)
    assert text == said(*messages)
    answer = cut_answer(text, messages, "m", limit)
    assert text.startswith(answer.text)
    assert len(answer.pieces) == answer.completion_tokens <= limit
    assert (answer.finish_reason == "length") == (answer.text != text)


SIZE = 100_000
HUGE = {
    "spaces": " " * SIZE,
    "one word": "a" * SIZE,
    "digits": "1" * SIZE,
    "objects": '{"a":' * (SIZE // 5),
    "tags": "\n<tool_response>" * (SIZE // 16),
    "images": '<image handle="a">' * (SIZE // 18),
    "contexts": "<context>" * (SIZE // 9),
    "calls": '<tool_call>{"name": "get_weather"' * (SIZE // 33),
    "questions": "Question: " * (SIZE // 10),
    "commas": "a, " * (SIZE // 3),
    "names": "Abc " * (SIZE // 4),
    "lines": "Human: a\nAI: b\n" * (SIZE // 15),
    "sources": "[1] source: x.md\n" * (SIZE // 17),
    "forms": 'of this form <...>:\n{"a": "<string' * (SIZE // 34),
    "whole forms": 'of this form <...>:\n{"a": <integer>}' * (SIZE // 36),
    "notes": "About a: 1 to 5 items\nThese keys may be left out: a, b.\n" * (SIZE // 56),
}


@pytest.mark.timeout(200)  # a quadratic rule would take far longer, a linear one a second
@pytest.mark.parametrize("text", HUGE.values(), ids=list(HUGE))
def test_huge_prompts_take_linear_time(text):
    assert cut_messages([user(text)])
    assert said(offered(text, WEATHER, MULTIPLY))
    assert said(user(f"Context:\n{text}\n\nQuestion: what is it?"))
    assert said(user(f"Answer with JSON: {json.dumps(PERSON)}\n\n{text}"))
