"""What a user's chain, agent or RAG pipeline gets of the rules, in wordings of several clients."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_svc.sandbox.answers import answer
from langchain_svc.sandbox.prompts import count_tokens, split_tokens


def tool(name, description="", **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
WEATHER = tool("get_weather", "Get the weather of a city.", city=STRING)
ADD = tool("add", "Add two numbers.", a=NUMBER, b=NUMBER)
MULTIPLY = tool("multiply", "Multiply two numbers.", a=INTEGER, b=INTEGER)
DRAW = tool("make_image", "Generate an image of what a text describes.", prompt=STRING)
LOOK = tool(
    "look",
    "Describe an image, or read the text in it.",
    image={"type": "string", "description": "A handle such as img_1"},
    task={"enum": ["detect", "ocr", "describe"]},
)
TRANSLATE = tool(
    "translate", "Translate a text.", text=STRING, to={"type": "string", "description": "a code"}
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
FENCE = """You can use these functions:
{tools}

Write every call as a block of its own:
```json
{{"name": "<name>", "arguments": {{}}}}
```
{extra}

{question}"""
MUST = "You must call at least one function now."


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def offered(question, *tools, form=TAGS, extra=""):
    return user(
        form.format(tools="\n".join(map(json.dumps, tools)), extra=extra, question=question)
    )


def called(name, **arguments):
    body = json.dumps({"name": name, "arguments": arguments})
    return assistant(f"<tool_call>\n{body}\n</tool_call>")


def result(text, attributes=""):
    return user(f"<tool_response{attributes}>\n{text}\n</tool_response>")


def said(*messages):
    return answer(messages, model="svc-turbo").text


def calls(*messages, marks=("<tool_call>\n", "\n</tool_call>")):
    """The calls of an answer that holds nothing else."""
    opening, closing = marks
    text = said(*messages)
    if opening not in text:
        return []
    pieces = [piece.partition(closing) for piece in text.split(opening)]
    assert not "".join(rest.strip() for _, _, rest in pieces)
    assert pieces[0][0] == ""
    found = [json.loads(body) for body, _, _ in pieces[1:]]
    return [(call["name"], call["arguments"]) for call in found]


# -- calls ------------------------------------------------------------------------------------------

QUESTIONS = [
    ("What is the weather in San Francisco, CA?", [("get_weather", {"city": "San Francisco, CA"})]),
    (
        "What's the weather in Paris, Rome and Tokyo?",
        [("get_weather", {"city": city}) for city in ("Paris", "Rome", "Tokyo")],
    ),
    (
        "What is the weather in Oslo, and what is 5 * 6?",
        [("get_weather", {"city": "Oslo"}), ("multiply", {"a": 5, "b": 6})],
    ),
    ("What is 3+4 and 10*2?", [("add", {"a": 3, "b": 4}), ("multiply", {"a": 10, "b": 2})]),
    ("Call add(a=1.5, b=2).", [("add", {"a": 1.5, "b": 2})]),
    ("Hello!", []),
    ("Tell me a joke about tea.", []),
]


@pytest.mark.parametrize(("question", "expected"), QUESTIONS)
def test_a_question_gets_the_calls_that_it_needs(question, expected):
    assert calls(offered(question, WEATHER, ADD, MULTIPLY)) == expected


def test_an_argument_is_what_the_question_says_beyond_the_words_of_the_tool():
    stock = tool("stock", "How many of an item there are.", item=STRING)
    assert calls(offered("How many apples are in stock?", stock)) == [("stock", {"item": "apples"})]
    assert calls(offered("What is the weather in paris?", WEATHER)) == [
        ("get_weather", {"city": "paris"})
    ]


def test_a_number_and_what_it_counts_are_two_arguments():
    order = tool("order", "Order from the supplier.", item=STRING, amount=INTEGER)
    ordered = ("order", {"item": "apples", "amount": 40})
    assert calls(offered("Order 40 apples.", order)) == [ordered]


def test_calls_are_written_as_the_prompt_shows():
    prompt = offered("What is the weather in Paris?", WEATHER, form=FENCE)
    assert calls(prompt, marks=("```json\n", "\n```")) == [("get_weather", {"city": "Paris"})]


@pytest.mark.parametrize(
    ("extra", "names"),
    [
        ("", []),
        (MUST, ["get_weather"]),
        ("You must call the function multiply now; do not answer in plain text.", ["multiply"]),
    ],
)
def test_a_call_is_made_where_one_must_be(extra, names):
    prompt = offered("Hello!", WEATHER, MULTIPLY, extra=extra)
    assert [name for name, _ in calls(prompt)] == names


def test_a_limit_to_one_call_is_kept():
    prompt = offered("Weather in Paris and Rome?", WEATHER, extra="Call at most one function.")
    assert calls(prompt) == [("get_weather", {"city": "Paris"})]


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
    turns = [
        offered(
            "Generate an image of a red boat, then describe the image, then translate the "
            "description into French.",
            *(DRAW, LOOK, TRANSLATE),
        )
    ]
    steps = [
        ("make_image", {"prompt": "Generate an image of a red boat"}, "Made img_1."),
        ("look", {"image": "img_1", "task": "describe"}, "A red boat."),
        ("translate", {"text": "A red boat.", "to": "French"}, "Un bateau rouge."),
    ]
    for name, arguments, returned in steps:
        assert calls(*turns) == [(name, arguments)]
        turns += [called(name, **arguments), result(returned)]
    assert "Un bateau rouge." in said(*turns)


def test_a_complaint_leads_back_to_the_question():
    turns = [
        offered("Hello!", WEATHER, MULTIPLY),
        assistant("Hello."),
        user("That answer calls no function, but the function multiply must be called now."),
    ]
    assert [name for name, _ in calls(*turns)] == ["multiply"]


# -- schemas ----------------------------------------------------------------------------------------


def filled(text, schema):
    instruction = (
        f"Answer with JSON that matches this schema:\n<schema>\n{json.dumps(schema)}\n</schema>"
    )
    return json.loads(said(user(f"<system_message>\n{instruction}\n</system_message>\n\n{text}")))


PERSON = {
    "type": "object",
    "properties": {
        "name": STRING,
        "age": {"type": "integer", "minimum": 0},
        "city": {"anyOf": [STRING, {"type": "null"}]},
        "email": {"type": "string", "format": "email"},
        "mood": {"enum": ["glad", "sad"]},
        "born": {"type": "string", "format": "date"},
    },
    "required": ["name", "age", "mood"],
}
PEOPLE = {
    "type": "object",
    "properties": {"people": {"type": "array", "items": {"$ref": "#/$defs/Person"}}},
    "required": ["people"],
    "$defs": {"Person": PERSON},
}


def test_a_schema_is_filled_from_the_text():
    text = "Ann is 34, was born on 1990-05-01, and is sad. Write to ann@example.org."
    assert filled(text, PERSON) == {
        "name": "Ann",
        "age": 34,
        "email": "ann@example.org",
        "mood": "sad",
        "born": "1990-05-01",
    }


def test_each_stretch_of_the_text_is_used_once():
    (ann, bob) = filled("Ann is 34. Bob is 41.", PEOPLE)["people"]
    assert (ann["name"], ann["age"], bob["name"], bob["age"]) == ("Ann", 34, "Bob", 41)


def test_what_the_text_does_not_say_keeps_to_the_schema():
    made = filled("Nothing of it.", PERSON)
    assert made.keys() == {"name", "age", "mood"}
    assert made["name"]
    assert made["age"] >= 0
    assert made["mood"] == "glad"


def test_values_stand_near_the_words_of_their_fields():
    schema = {"properties": {"height": INTEGER, "base": INTEGER}, "required": ["height", "base"]}
    assert filled("A triangle with base 10 and height 5.", schema) == {"height": 5, "base": 10}


def test_keys_that_words_ask_for():
    asked = "Tell me a joke about cats. Return JSON with 'setup' and 'punchline' keys."
    assert json.loads(said(user(asked))).keys() == {"setup", "punchline"}


# -- words ------------------------------------------------------------------------------------------

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
    assert said(*prompt("When was the mill built?")) == (
        'According to mill.md: "The mill was built in 1871."'
    )
    assert "Ida Holm" in said(*prompt("When were they planted?"))


def test_what_was_said_before_is_remembered():
    turns = [user("Hi! My name is Bob."), assistant("I see."), user("What is my name?")]
    assert "Bob" in said(*turns)


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ("What is 17 * 23?", "17 * 23 = 391"),
        ("What is 0.1 + 0.2?", "0.1 + 0.2 = 0.3"),
        ("What is 1/3?", "1/3 = 0.3333333333"),
    ],
)
def test_sums_are_exact(asked, value):
    assert said(user(asked)) == value


@pytest.mark.parametrize("asked", ["What is 7 / 0?", "What happened on 2024-02-29?"])
def test_what_is_no_sum_is_not_computed(asked):
    assert "=" not in said(user(asked))


def test_an_old_question_is_no_answer_to_the_same_question():
    first = said(user("Tell me of the sea."))
    assert said(user("Tell me of the sea."), assistant(first), user("Tell me of the sea.")) == first


def test_json_is_wanted_for_one_question_only():
    turns = [user("Return JSON with the key a."), assistant('{"a": "b"}'), user("Good morning")]
    assert "{" not in said(*turns)


def test_it_says_what_it_is():
    told = said(user("Write a limerick on tides."))
    assert "This is the sandbox, not svc-turbo: fixed rules answer." in told
    assert told.endswith("You asked: Write a limerick on tides.")


# -- every answer -----------------------------------------------------------------------------------

FRAGMENTS = st.sampled_from(
    [
        *(
            "<tool_call>",
            "</tool_call>",
            "\n<tool_response>",
            "</tool_response>",
            "<tools>",
            "\n\n",
        ),
        *("<system_message>", "</system_message>", '<image handle="img_1">', "</image>"),
        *(json.dumps(WEATHER), json.dumps([ADD]), json.dumps(PERSON), json.dumps(PEOPLE)),
        '{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}',
        '{"properties": {"y": {"enum": []}, "z": {"anyOf": []}, "v": {"type": "x"}, "w": 3}}',
        '{"properties": {"n": {"type": "integer", "minimum": 3, "maximum": 1, "multipleOf": 7}}}',
        '{"type": ["x", {}], "allOf": 3, "anyOf": [{"type": "array", "minItems": "x"}]}',
        '{"properties": {"s": {"maxLength": null, "format": []}, "m": {"multipleOf": "x", "type": "number"}}}',
        '{"name": "<name>", "arguments": {}}',
        *("Return JSON with the keys a and b.", "Context:", "Question: ", MUST),
        *("Source: a.md", "9**9**9", "What is my name?", "get_weather('x', 3)", "count 1 to 9999"),
        *("\ud800", "\x00", "{", "[", '"', "'", "That answer "),
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=15), max_size=12).map(" ".join)
ROLES = st.sampled_from(["system", "user", "assistant"])
MESSAGES = st.lists(st.fixed_dictionaries({"role": ROLES, "content": TEXTS}), max_size=5)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(MESSAGES, st.none() | st.integers(1, 12))
def test_any_conversation_has_an_answer(messages, limit):
    first = answer(messages, model="m", max_tokens=limit)
    assert first == answer(messages, model="m", max_tokens=limit)
    assert "".join(first.pieces) == first.text
    assert first.completion_tokens == len(first.pieces)
    assert limit is None or first.completion_tokens <= limit
    assert first.finish_reason in {"stop", "length"}


@settings(deadline=None)
@given(st.text())
def test_tokens_are_the_text(text):
    assert "".join(split_tokens(text)) == text
    assert count_tokens(text) == len(split_tokens(text))


SIZE = 150_000
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
}


@pytest.mark.timeout(200)  # a quadratic rule would take far longer, a linear one a second
@pytest.mark.parametrize("text", HUGE.values(), ids=list(HUGE))
def test_huge_prompts_take_linear_time(text):
    assert said(offered(text, WEATHER, ADD))
    assert said(user(f"Context:\n{text}\n\nQuestion: what is it?"))
    assert said(user(f"Answer with JSON: {json.dumps(PERSON)}\n\n{text}"))
