"""Whether what stands at a citation's place supports the statement, by rules."""

import pytest

from benchmarks.citations import SUPPORTED, UNSUPPORTED, measure, totals
from langchain_svc.citations.passages import Passage, Passages
from langchain_svc.citations.statements import (
    AnswerStatement,
    CitationReport,
    Quote,
    annotations_of,
    doubt_about,
    places_of,
)
from langchain_svc.citations.support import doubt_of

# Sentences of ours, with what papers have: numbers, units, comparators, negations, comparisons.
TEXTS = [
    [
        ("Between 2011 and 2014, 482 adults with chronic cough were seen at three clinics in the north. "
        "The mean age was 54 years and 61% of them were women. Adults who were treated at home were not seen again."),
        ("Cough scores were lower in the group that took 20 mg twice a day (p < 0.01) than in the other group. "
        "No difference was found in the quality of sleep between the two groups. "
        "Side effects were reported by 14 patients, and they were more common in the first 2 weeks of treatment."),
        ("We found that the higher dose is effective in adults with chronic cough. "
        "It can be given for 12 months without regular blood tests in otherwise healthy people."),
    ],
    [
        ("Soil samples of 35 farms were taken at a depth of 30 cm before the crops were planted in spring. "
        "The samples were dried for 48 hours and kept in the dark at the institute until all were measured."),
        ("Nitrogen in the soil increased by 12.5% where clover was grown, and this was seen on all large farms. "
        "The amount of carbon had not changed after three years on any of the 35 farms. "
        "Farms with more than 40 cows had a higher content of phosphate than those without any animals."),
        ("Growing clover is cheap and it can replace 60 kg of fertilizer per hectare in most years. "
        "There was no benefit on farms where less than 500 mm of rain had fallen during the year."),
    ],
]  # fmt: skip


def passages(*texts):
    return Passages([Passage(number, text, {}) for number, text in enumerate(texts, 1)])


def doubt(statement, quote, *texts):
    place = passages(*(texts or (quote,))).find(quote)
    assert place is not None
    return doubt_of(statement, [place])


def test_what_is_shown_as_supported_is_and_what_is_supported_is_shown():
    scores = measure(TEXTS, answers=600, seed=3)
    assert {kind.__name__ for kind in SUPPORTED if scores[kind].count < 20} == set()
    assert {kind.__name__ for kind in UNSUPPORTED if scores[kind].count < 20} == set()
    precision, recall = totals(scores)
    assert precision >= 0.95
    assert recall >= 0.9


@pytest.mark.parametrize(
    ("statement", "source"),
    [
        ("The dose is 5 mg.", "Give a dose of 5 mg a day."),
        ("The dose is 5 milligrams.", "Give a dose of 5 mg a day."),
        ("- Dose: **5 mg** [1]", "Give a dose of 5 mg a day."),
        ("1. The dose is 5 mg", "Give a dose of 5 mg a day."),
        ("About 12 percent of men died.", "Mortality: 12 % of men died."),
        ("There were 1200 patients.", "There were 1,200 patients."),
        ("Hb below 7 g/dL needs a transfusion.", "A transfusion is needed if Hb < 7 g/dL."),
        ("At least 3 visits are paid.", "≥ 3 visits are paid."),
        ("Three clinics took part.", "3 clinics took part."),
        ("Children aged 5 to 10 years may swim.", "Children may swim if aged 5-10 years."),
        ("The drug did not lower the risk of death.", "The drug did not lower the risk of death in men."),
        ("It does not increase the risk.", "There was no increase of the risk."),
        ("The risk was higher in men.", "Risks were higher in men and lower in women."),
        ("Die Dosis darf nicht erhöht werden.", "Die Dosis darf keinesfalls, also nicht erhöht werden."),
        ("用量は2.5mgを超えない", "用量は2.5mgを超えない。"),
    ],
)  # fmt: skip
def test_other_words_are_no_doubt(statement, source):
    assert doubt(statement, source) is None


@pytest.mark.parametrize(
    ("statement", "source", "reason"),
    [
        ("The dose is 40 g a day.", "The dose is 40 mg a day.", "no number 40 g there"),
        ("The dose is 400 mg.", "The dose is 40 mg. 400 patients took part.", "no number 400 mg there"),
        ("Give it below 7 mg.", "Give it at 7 mg.", "no number <7 mg there"),
        ("Give it at 7 mg.", "Give it at ≤ 7 mg.", "no number 7 mg there"),
        ("Take vitamin B6 for that.", "Take vitamin B12 for that.", "no b6 there"),
        ("There were three clinics.", "There were two clinics.", "no number 3 clinics there"),
        ("Aspirin is recommended for children.", "Aspirin is not recommended for children.", "a 'not' is missing"),
        ("Aspirin is recommended.", "Aspirin isn't recommended.", "a 'not' is missing"),
        ("Die Gabe wird empfohlen.", "Die Gabe wird nicht empfohlen.", "a 'not' is missing"),
        ("La dose est dangereuse.", "La dose n'est pas dangereuse.", "a 'not' is missing"),
        ("The dose was not raised.", "The dose was raised.", "there is no such 'not' there"),
        ("The risk was higher in men.", "The risk was lower in men.", "it says the opposite of a word there"),
        ("The procedure is safe for adults.", "The procedure is unsafe for adults.",
         "it says the opposite of a word there"),
        ("The sea is deep and cold.", "Grass is green in the spring.", "few of its words are there"),
        ("It is so.", "Grass is green in the spring.", "it says too little to be compared"),
    ],
)  # fmt: skip
def test_a_doubt_has_a_reason(statement, source, reason):
    quote = source.split(". ")[0]
    assert doubt(statement, quote, source) == reason


@pytest.mark.parametrize("quote", ["the", "of the", "is", "day"])
def test_a_quote_must_say_something(quote):
    source = "The dose of the drug is 5 mg a day."
    assert doubt("The dose of the drug is 5 mg.", quote, source) == "too little is quoted"


def test_the_whole_sentence_of_a_quote_counts():
    source = "Aspirin is not recommended for children under 16. Adults may take it."
    statement = "Aspirin is recommended for children."
    assert doubt(statement, "recommended for children under 16", source) == "a 'not' is missing"
    assert (
        doubt("Aspirin is not recommended for children.", "recommended for children", source)
        is None
    )


def test_several_places_support_a_statement_together():
    texts = ("The dose for men is 5 mg.", "The dose for women is 4 mg.")
    found = passages(*texts)
    places = [found.find(text) for text in texts]
    assert doubt_of("The dose is 5 mg for men, 4 mg for women.", places) is None
    assert doubt_of("The dose is 5 mg for men, 4 mg for women.", places[:1]) is not None


# -- statements with their quotes ----------------------------------------------------------------

SOURCE = "The dose is 5 mg a day, and never more than that."


def looked_up(text, *quotes):
    statement = AnswerStatement(text, tuple(Quote(quote, 1) for quote in quotes))
    places = places_of(statement, passages(SOURCE))
    return statement, places, doubt_about(statement, places)


def test_an_invented_quote_beside_a_true_one_is_a_doubt():
    *_, reason = looked_up("The dose is 5 mg.", "dose is 5 mg a day", "it was 9 mg")
    assert reason == "a quote of it stands nowhere"


def test_a_statement_that_a_document_makes_itself_needs_no_exact_quote():
    _, (place,), reason = looked_up("The dose is 5 mg a day.", "dose is apparently 5 mg")
    assert (place.text, reason) == ("The dose is 5 mg a day", None)
    assert looked_up("The dose is 9 mg a day.", "dose is apparently 9 mg")[1] == []


def test_an_annotation_says_whether_its_place_supports_it():
    annotation = annotations_of(*looked_up("The dose is 5 mg.", "dose is 5 mg a day"))[0]
    assert annotation["extras"]["support"] == "quoted"
    assert "reason" not in annotation["extras"]
    annotation = annotations_of(*looked_up("The dose is 9 mg.", "dose is 5 mg a day"))[0]
    assert annotation["extras"]["support"] == "doubtful"
    assert annotation["extras"]["reason"] == "no number 9 mg there"


def test_a_quote_over_two_passages_has_an_annotation_for_each():
    chunks = [
        "Every dose is given in the evening, never before any other",
        "in the evening, never before any other meal.",
    ]
    found = Passages([Passage(n, text, {"source": "a.md"}) for n, text in enumerate(chunks, 1)])
    statement = AnswerStatement(
        "It is given before no meal.",
        (Quote("dose is given in the evening, never before any other meal", 1),),
    )
    places = places_of(statement, found)
    one, two = annotations_of(statement, places, None)
    assert (one["extras"]["document"], two["extras"]["document"]) == (0, 1)
    assert one["cited_text"].startswith("dose is given")
    assert two["cited_text"] == "meal"


def test_the_report_counts_what_cites_nothing():
    report = CitationReport()
    report.count(*looked_up("The dose is 5 mg.", "dose is 5 mg a day"))
    report.count(*looked_up("The dose is 9 mg.", "dose is 5 mg a day"))
    report.count(*looked_up("The sea is deep.", "it is deep"))
    for text in (
        "The dose is 5 mg [1].",
        "## Dose",
        ".\n",
        "Which dose?",
        "This is known:",
        "| - |",
    ):
        report.count(AnswerStatement(text), [], None)
    report.count(AnswerStatement("x = dose\n", is_code=True), [], None)
    assert report.as_metadata() == {
        "cited": 1,
        "doubtful": ["The dose is 9 mg."],
        "unsupported": ["The sea is deep."],
        "uncited": 1,
    }
