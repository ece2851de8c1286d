"""What `Pseudonyms` hides of many people in seven languages, and what it leaves alone."""

from __future__ import annotations

import random
import re

import pytest
from people import MONTHS, WORLDS, someone

from langchain_svc import Pseudonyms

MARK = re.compile(r"\[[A-Z]+_\d+(?:_\d+)?\]")
ENDINGS = {"s", "ın", "a", "den", "nin"}
FEW = range(70)
MANY = range(1_050)

TERMS = """
Morbus Parkinson|Parkinson's disease|Alzheimer-Demenz|Morbus Crohn|Crohn's disease|Hodgkin lymphoma|Graves' disease
|Bell's palsy|Addison's disease|Cushing-Syndrom|Down syndrome|Babinski-Zeichen|Murphy sign|Wilson's disease|Apgar score
|Glasgow Coma Scale|Baker-Zyste|Foley catheter|Colles fracture|maladie de Crohn|enfermedad de Parkinson|choroba Gravesa
|ziekte van Alzheimer|Kernig's sign|Raynaud phenomenon|may|will|hand|bone|pain|blood pressure|heart failure|long QT
|young adult|Klein|bad breath|petit mal|grand mal|groot|wit|kot|alanine|heparin|insulin|renin|keratin|albumin|martial
|rose spots|grave prognosis|lungs|skin|stomach|Ödem|Leber|Niere|Herz|Fieber|fièvre|foie|rein|cœur|dolor|riñón|hígado
|koorts|lever|nier|gorączka|wątroba|nerka|serce|ateş|karaciğer|böbrek|kalp|kan|deniz|gül|metformin 500 mg|120/80 mmHg
|creatinine 1.2 mg/dl|Na 138 mmol/l|37.5 °C|SpO2 98 %|ICD I10|E11.9|T3 N1 M0|COVID-19|HbA1c 7.2 %|2 weeks|3/4 of dose
""".replace("\n", "").split("|")
COMMON_NAMES = [
    "Rose May",
    "Grace Young",
    "Peter Graves",
    "Anna Klein",
    "Jean Petit",
    "Jan Groot",
    "Deniz Gül",
]


def leaks(person, pseudonyms, writing, sentence):
    """The words of a writing that are left in a sentence."""
    text = sentence.format(writing)
    hidden = pseudonyms.hide(text)
    assert pseudonyms.restore(hidden) == text
    title = WORLDS[person.language][4]
    harmless = set(re.findall(r"\w+", f"{sentence} {title}")) | ENDINGS
    return [word for word in re.findall(r"\w+", MARK.sub(" ", hidden)) if word not in harmless]


def count_leaks(seeds):
    exact = []
    tolerant = []
    total = 0
    for seed in seeds:
        person = someone(seed)
        pseudonyms = Pseudonyms.from_fhir(person.record)
        rng = random.Random(seed)
        for writing in person.exact:
            sentence = rng.choice(WORLDS[person.language][5])
            exact += [(writing, word) for word in leaks(person, pseudonyms, writing, sentence)]
        for writing in person.writings:
            total += 1
            sentence = rng.choice(WORLDS[person.language][5])
            if words := leaks(person, pseudonyms, writing, sentence):
                tolerant.append((person.exact[0], writing, words))
    return exact, tolerant, total


def test_nothing_exact_is_left_and_hardly_anything_tolerant():
    exact, tolerant, total = count_leaks(FEW)
    assert exact == []
    assert len(tolerant) <= total * 0.005, tolerant


@pytest.mark.slow
def test_nothing_exact_is_left_of_a_thousand_people():
    exact, tolerant, total = count_leaks(MANY)
    assert exact == []
    assert len(tolerant) <= total * 0.005, tolerant


def wrongly_hidden(seeds):
    """Sentences without any identifier of a person in which something is hidden."""
    wrong = []
    total = 0
    for seed in seeds:
        person = someone(seed)
        pseudonyms = Pseudonyms.from_fhir(person.record)
        month = MONTHS[person.language].split()[seed % 12]
        sentences = [sentence.format("X") for sentence in WORLDS[person.language][5]]
        for term in [*TERMS, *sentences, month, f"im {month} 2021"]:
            total += 1
            if pseudonyms.hide(term) != term:
                wrong.append((person.exact[0], term, pseudonyms.hide(term)))
    return wrong, total


def test_medical_terms_stay():
    wrong, total = wrongly_hidden(FEW)
    assert len(wrong) < total * 0.001, wrong


@pytest.mark.slow
def test_medical_terms_stay_with_a_thousand_people():
    wrong, total = wrongly_hidden(MANY)
    assert len(wrong) < total * 0.001, wrong


@pytest.mark.parametrize(
    "name", [*COMMON_NAMES, "James Parkinson", "Thomas Hodgkin", "Mary Cushing"]
)
def test_medical_terms_stay_where_a_person_has_a_name_of_theirs(name):
    pseudonyms = Pseudonyms(names=[name])
    assert [term for term in TERMS if pseudonyms.hide(term) != term] == []


@pytest.mark.parametrize(
    ("name", "text", "hidden"),
    [
        ("Rose May", "Mrs. May may come in May 2020.", "Mrs. [PERSON_1] may come in May 2020."),
        ("Rose May", "Rose May has rose spots.", "[PERSON_1] has rose spots."),
        ("Rose May", "R. May came; May, Rose.", "[PERSON_1] came; [PERSON_1_2]."),
        ("Grace Young", "A young man saw Young today.", "A young man saw [PERSON_1] today."),
        ("Peter Graves", "Mr Graves has Graves' disease.", "Mr [PERSON_1] has Graves' disease."),
        ("Anna Klein", "Der Herd ist klein und Klein.", "Der Herd ist klein und Klein."),
        ("Anna Klein", "Frau Klein ist mit dem Bus da.", "Frau [PERSON_1] ist mit dem Bus da."),
        (
            "James Parkinson",
            "Mr Parkinson has Parkinson's disease.",
            "Mr [PERSON_1] has Parkinson's disease.",
        ),
        ("Deniz Gül", "Deniz Bey denizde.", "[PERSON_1] Bey denizde."),
        ("Anna Meyer", "Dr. A.M. was here", "Dr. [PERSON_1]. was here"),
        ("Anna Meyer", "Signed:\nA.M.\n", "Signed:\n[PERSON_1].\n"),
        ("Anna Meyer", "Given at 8 a.m. by A. M. Best", "Given at 8 a.m. by A. M. Best"),
        ("Anna Meyer", "Meyer. A new lesion", "[PERSON_1]. A new lesion"),
        ("Anna Meyer", '{"name": "Anna\\nMeyer"}', '{"name": "[PERSON_1]\\n[PERSON_1_2]"}'),
        ("Anna Müller", '"M\\u00fcller"', '"[PERSON_1]"'),
        ("José de la Cruz", "de la Cruz, José", "[PERSON_1]"),
        ("Anna Meyer", "Anna Meyer and Anna Meyer", "[PERSON_1] and [PERSON_1]"),
        ("Anna12 Meyer345", "Anna12 Meyer345, 6", "[PERSON_1], 6"),
        ("Anna Meyer", "anna_meyer, or AnnaMeyer", "[PERSON_1], or [PERSON_1_2]"),
    ],
)
def test_a_name_is_hidden_where_it_stands_as_one(name, text, hidden):
    assert Pseudonyms(names=[name]).hide(text) == hidden
