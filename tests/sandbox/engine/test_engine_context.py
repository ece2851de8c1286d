"""Questions over a given text: the sentence that answers, under the name of its source."""

import pytest
from engine_prompts import WEATHER, assistant, called, fold, result, system, text_of, user

NOTES = """Source: orchard.md
The orchard has 120 apple trees. They were planted in 1998 by Ida Holm.
Pears grow near the river.

Source: mill.md
The mill was built in 1871. It has three floors and a wheel of oak.

Source: bees.md
There are forty beehives behind the mill. Honey is sold in August."""

RULES = "Use the following pieces of context to answer. If you do not know, say so. Be concise.\n\n"


def in_system(question):
    return [system(RULES + NOTES), user(question)]


def labelled(question):
    return [user(f"{RULES}Context:\n{NOTES}\n\nQuestion: {question}\nHelpful answer:")]


def tagged(question):
    return [user(f"<context>\n{NOTES}\n</context>\n\n{question}")]


def question_first(question):
    return [user(f"Question: {question}\n\nContext:\n{NOTES}")]


def folded(question):
    return [user(f"{RULES}{NOTES}\n\n{question}")]


@pytest.mark.parametrize("prompt", [in_system, labelled, tagged, question_first, folded])
@pytest.mark.parametrize(
    ("question", "source", "fact"),
    [
        ("When was the mill built?", "mill.md", "1871"),
        ("Who planted the trees?", "orchard.md", "Ida Holm"),
        ("How many beehives are there?", "bees.md", "forty beehives"),
        ("Where do pears grow?", "orchard.md", "near the river"),
    ],
)
def test_the_best_sentence_is_quoted_under_its_source(prompt, question, source, fact):
    said = text_of(*prompt(question))
    assert said.startswith(f'According to {source}: "')
    assert fact in said


@pytest.mark.parametrize("prompt", [in_system, labelled, tagged, folded])
def test_what_the_context_does_not_say(prompt):
    said = text_of(*prompt("What is the capital of Mongolia?"))
    assert "does not answer" in said
    assert "mongolia" in said


FORMS = [
    ("[1] The bridge is long.\n[2] The bridge was painted green.", "What colour is the bridge painted?", "[2]"),
    ('<document source="a.txt">\nLisbon is sunny.\n</document>\n<document source="b.txt">\nOslo is cold in winter.\n</document>', "Is Oslo cold?", "b.txt"),
    ("Content: Ada wrote it.\nSource: 28-pl\nContent: Bob slept.\nSource: 30-pl", "Who wrote it?", "28-pl"),
    ("## notes/a.md\n\nThe key is blue.\n\n## notes/b.md\n\nThe door is red.", "What is the door?", "notes/b.md"),
    ("The key is blue. (source: keys.txt)\n\nThe door is red. (source: doors.txt)", "Which door is red?", "doors.txt"),
    ("{'source': 'm.pdf', 'page': 3}\nThe wheel is of oak.", "What is the wheel made of?", "m.pdf"),
]  # fmt: skip


@pytest.mark.parametrize(("context", "question", "label"), FORMS)
def test_labels_in_many_forms(context, question, label):
    assert f"According to {label}:" in text_of(user(f"Context:\n{context}\n\n{question}"))


@pytest.mark.parametrize("tag", ["image", "attachment"])
def test_what_is_attached_is_a_text_to_quote_from(tag):
    attached = f'<{tag} name="img_3">\nA mill of 240x160 feet beside a blue river.\n</{tag}>'
    said = text_of(user(f"What colour does the river have?\n\n{attached}"))
    assert "beside a blue river" in said


def test_a_text_without_labels_is_quoted_all_the_same():
    text = "The lamp burned oil at first. Visitors may climb the 200 steps in summer. " * 2
    said = text_of(user(f"{text}The tower is white and stands on a rock.\n\nHow many steps?"))
    assert "200 steps" in said
    assert said.startswith("The context says:")


def test_a_follow_up_is_understood_by_the_question_before():
    turns = [*in_system("When was the mill built?"), assistant("1871")]
    assert "three floors" in text_of(*turns, user("How many floors does it have?"))


def test_a_greeting_is_no_question_for_the_context():
    assert "does not answer" not in text_of(*in_system("Hello!"))


def test_a_long_persona_is_no_context():
    persona = "You are a patient tutor who explains things at length and with care. " * 10
    assert "does not answer" not in text_of(system(persona), user("Explain tides."))


def test_a_summary_takes_central_sentences():
    said = text_of(user(f'Write a concise summary of the following:\n\n"{NOTES}"\n\nSUMMARY:'))
    assert "mill" in said
    assert "According to" not in said
    one = text_of(user(f"Summarize in one sentence:\n\n{NOTES}"))
    assert one.count(".") == 1


def test_a_long_result_is_quoted_where_it_answers():
    turns = [
        fold("When was the mill built?", {**WEATHER, "function": {**WEATHER["function"], "name": "search_notes"}}),
        called("search_notes", location="mill"),
        result(NOTES * 3, name="search_notes"),
    ]  # fmt: skip
    said = text_of(*turns)
    assert "1871" in said
    assert len(said) < 400


# --- Memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("earlier", "question", "expected"),
    [
        ("Hi! My name is Bob.", "What is my name?", "Bob"),
        ("I'm Ann.", "What's my name?", "Ann"),
        ("My favourite colour is teal and I live in Ghent.", "Where do I live?", "Ghent"),
        ("My dog is called Rex.", "What is my dog called?", "Rex"),
        ("I like tea.", "What did I just say?", "I like tea."),
    ],
)
def test_the_conversation_is_remembered(earlier, question, expected):
    assert expected in text_of(user(earlier), assistant("I see."), user(question))


def test_a_transcript_in_one_text_is_a_conversation():
    text = (
        "System: Be kind.\nHuman: My dog is called Rex.\nAI: Nice.\nHuman: What is my dog called?"
    )
    assert "Rex" in text_of(user(text))


# --- Questions about questions ------------------------------------------------------------------

STANDALONE = "Given the chat history, formulate a standalone question. Do NOT answer it."


def test_a_standalone_question_keeps_its_words():
    history = [system(STANDALONE), user("When was the mill built?"), assistant("1871")]
    assert text_of(*history, user("Who runs the bakery?")) == "Who runs the bakery?"
    pointing = text_of(*history, user("Who built it?"))
    assert pointing.startswith("Who built it")
    assert "mill" in pointing


def test_versions_of_a_question():
    asked = "Generate 3 different versions of the question. Original question: How old is the mill?"
    lines = text_of(user(asked)).splitlines()
    assert len(set(lines)) == 3
    assert all("mill" in line for line in lines)
