"""Words: small talk, tasks that rules can do, the manner asked for, and honest ways out."""

import pytest
from engine_prompts import assistant, system, text_of, user

EXACT = [
    ("Count from 1 to 5", "1, 2, 3, 4, 5"),
    ("count down from five to 3 please", "5, 4, 3"),
    ("what is 12*7", "12 * 7 = 84"),
    ("What is 1 + 2", "1 + 2 = 3"),
    ("1+1", "1 + 1 = 2"),
    ("What is (2 + 3) * 4?", "(2 + 3) * 4 = 20"),
    ("What is 0.1 + 0.2?", "0.1 + 0.2 = 0.3"),
    ("What is 12 times 7?", "12 * 7 = 84"),
    ("What is 15% of 80?", "80 * 15 / 100 = 12"),
    ("What is the sum of 3 and 4?", "3 + 4 = 7"),
    ("Calculate 1,200 / 7", "1200 / 7 = 171.4285714286"),
    ("Repeat exactly: Ünïcødé 你好!", "Ünïcødé 你好!"),
    ("Say 'banana' and nothing else.", "banana"),
    ("Reply with the single word OK", "OK"),
    ("Say hello", "hello"),
    ("reverse 'stressed'", "desserts"),
    ("What is 'hello' in upper case?", "HELLO"),
    ("Turn 'LOUD Words' into lower case", "loud words"),
    ("List five colours", "1. red\n2. blue\n3. green\n4. yellow\n5. purple"),
    ("Name 3 fruits", "1. apple\n2. pear\n3. plum"),
    ("Summarize: The cat sat.", "The cat sat."),
    ("Say the sum in one word: what is 12*7?", "84"),
]


@pytest.mark.parametrize(("question", "expected"), EXACT)
def test_what_rules_can_do_is_done(question, expected):
    assert text_of(user(question)) == expected


@pytest.mark.parametrize("question", ["What is 1/0?", "Compute 9**9**9", "What is 2 ** 10000?"])
def test_sums_without_a_value_do_no_harm(question):
    assert "=" not in text_of(user(question))


def test_a_range_of_years_is_no_sum():
    assert "-4" not in text_of(user("Who ruled in 1914-1918?"))


@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_the_asked_number_of_items(count):
    assert len(text_of(user(f"List {count} cities")).splitlines()) == count
    haikus = text_of(user(f"Write me {count} haikus. Only include the haikus.")).split("\n\n")
    assert len(haikus) == count
    assert all(len(haiku.splitlines()) == 3 for haiku in haikus)


def test_a_list_separated_by_commas():
    asked = "List five ice cream flavors.\nYour answer should be a list of comma separated values."
    assert len(text_of(user(asked)).split(", ")) == 5


def test_a_story_is_about_its_subject():
    told = text_of(user("Write a story about a cat."))
    assert told.count("the cat") >= 5
    assert len(told.split("\n\n")) == 3
    assert "the dog" in text_of(user("Write a story about a dog."))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Translate 'good morning' to French", "[fr] ĝööď möřñîñĝ"),
        ("How do you say thank you in German?", "[de] ťĥåñķ ýöû"),
    ],
)
def test_a_translation_is_labelled_and_marked(question, text):
    said = text_of(user(question))
    assert said.startswith(text)
    assert "no translation" in said


@pytest.mark.parametrize("greeting", ["Hello", "Hi!", "hey", "Good morning"])
def test_greetings_are_returned(greeting):
    assert text_of(user(greeting)).lower().startswith(greeting.lower().rstrip("!"))


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("how are you", "how are you"),
        ("Which model are you?", "svc-turbo"),
        ("Who are you?", "rules"),
        ("Thanks!", "welcome"),
        ("Well, thanks.", "welcome"),
        ("bye", "Goodbye"),
    ],
)
def test_small_talk(question, part):
    assert part in text_of(user(question))


@pytest.mark.parametrize("question", ["", "   ", "?", "你好", "\ud800", "\x00"])
def test_there_is_always_an_answer(question):
    assert text_of(user(question))


def test_no_messages_at_all():
    assert text_of()


def test_an_unknown_topic_is_admitted():
    said = text_of(user("Explain quantum tunnelling"))
    assert "quantum tunnelling" in said
    assert "rules" in said


def test_different_questions_have_different_answers():
    asked = ["Explain tides", "Explain winds", "Why is the sky blue?", "Why is grass green?"]
    assert len({text_of(user(question)) for question in asked}) == len(asked)


# --- The manner -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wish", "question", "check"),
    [
        ("You are a pirate.", "Explain tides", lambda said: said.startswith("Arr")),
        ("Answer in one word.", "What is 12*7?", lambda said: said == "84"),
        ("Answer in one word.", "Explain tides", lambda said: len(said.split()) == 1),
        ("Answer in one sentence.", "Explain tides", lambda said: said.count(".") == 1),
        ("Write in capital letters.", "Explain tides", str.isupper),
        ("Always reply with 'pong'.", "ping", lambda said: said == "pong"),
        ("Respond only in French.", "Explain tides", lambda said: said.startswith("[fr] ")),
        ("If unsure, say 'no idea'.", "What is 2 + 2?", lambda said: said == "2 + 2 = 4"),
    ],
)
def test_instructions_about_the_manner(wish, question, check):
    assert check(text_of(system(wish), user(question)))
    if "reply" not in wish and "unsure" not in wish:
        assert check(text_of(user(f"{question} {wish}")))


def test_double_messages_are_a_conversation():
    turns = [system("hello"), system("hello"), user("hello"), user("hello")]
    turns += [assistant("hello"), assistant("hello"), user("how are you")]
    assert "rules" in text_of(*turns)
