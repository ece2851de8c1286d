"""Where a quote stands in a document: what a copy may change, and what it may not."""

import random

import pytest

from langchain_svc.citations.passages import Passage, Passages, words_of

TEXTS = {
    "en": 'The final dose is 2.5 mg, "not 25 mg". It was well-known in Smith\'s trial of 2020. '
    "The efficient flow fell to −5.5 °C. Nobody said that 10² units don't stop it.",
    "de": "Die Straße war „groß genug“, wie Müller am 4. Mai 2021 schrieb. Die Dosis beträgt "
    "nicht 1.250,5 mg, sondern 12,5 mg. Der Blutdruck-Wert stieg.",
    "fr": "L’étude « définitive » n'a pas montré d'effet à 37,5 °C. L'œuvre fut refusée en 1998.",
    "es": "El señor López dijo: «no más de 3 veces al día». La presión bajó a 80/50 en 2 horas.",
    "pl": "Zażółć gęślą jaźń – tak napisał „Kowalski”. Dawka wynosi 0,75 mg na kilogram.",
    "tr": "İstanbul'da ılık bir gün. Doz 2,5 mg'dır; “artırmayın”. Ölçüm 1.000 kez yapıldı.",
    "ru": "Доза составляет не более 2,5 мг. «Не превышать», – пишет автор. Всего 100 случаев.",
    "ja": "水は100度で沸騰する。用量は2.5mgを超えてはならない。「注意」と書いてある。",
}
QUOTES = '"“”„«»'
LIGATURES = {"ffi": "ﬃ", "fi": "ﬁ", "fl": "ﬂ"}


def copied(text, rng):
    """The same words as a model may copy them."""
    changed = text.replace("  ", " ")
    for letters, ligature in LIGATURES.items():
        if rng.random() < 0.5:
            changed = changed.replace(letters, ligature)
    changed = "".join(rng.choice(QUOTES) if sign in QUOTES else sign for sign in changed)
    pieces = []
    for word in changed.split(" "):
        piece = word
        if rng.random() < 0.1 and word.isascii():
            piece = rng.choice([word.upper(), word.lower()])
        if len(word) > 7 and word.isalpha() and word.isascii() and rng.random() < 0.3:
            hyphen = rng.choice(["\u00ad", "-\n", "-\n   "])
            piece = piece[:3] + hyphen + piece[3:]
        pieces.append(piece)
    blanks = [" ", " ", "\n", "\u00a0", "  "]
    return "".join(piece + rng.choice(blanks) for piece in pieces).strip()


def spans(text, rng):
    words = text.split(" ")
    length = rng.randint(min(3, len(words)), min(12, len(words)))
    begin = rng.randint(0, len(words) - length)
    return " ".join(words[begin : begin + length])


@pytest.mark.parametrize("language", TEXTS)
def test_a_true_quote_is_found_however_it_was_copied(language):
    rng = random.Random(language)
    passage = Passage(1, TEXTS[language], {})
    for _ in range(130):
        quote = spans(TEXTS[language], rng)
        place = passage.find(copied(quote, rng))
        assert place is not None, quote
        assert place.text in TEXTS[language]
        assert words_of(place.text).line in words_of(quote).line


def changes(quote, rng):
    """Quotes that say something else."""
    words = quote.split(" ")
    for number, word in enumerate(words):
        digits = [at for at, sign in enumerate(word) if sign.isdigit()]
        if digits:
            at = rng.choice(digits)
            other = (
                str((int(word[at]) + 1 + rng.randrange(8)) % 10) if word[at].isdecimal() else "7"
            )
            yield " ".join(
                [*words[:number], word[:at] + other + word[at + 1 :], *words[number + 1 :]]
            )
            if "." in word[1:-1] or "," in word[1:-1]:
                bare = word.replace(".", "").replace(",", "")
                yield " ".join([*words[:number], bare, *words[number + 1 :]])
        if word.lower() in ("not", "nicht", "no", "pas", "не", "nobody"):
            yield " ".join([*words[:number], *words[number + 1 :]])
    if len(words) > 5:
        yield " ".join([*words[:2], *words[3:]])
        yield " ".join([*words[:2], "...", *words[4:]])


@pytest.mark.parametrize("language", TEXTS)
def test_a_quote_that_was_changed_is_not_found(language):
    rng = random.Random(language)
    passage = Passage(1, TEXTS[language], {})
    count = 0
    for _ in range(60):
        quote = spans(TEXTS[language], rng)
        for altered in changes(quote, rng):
            count += 1
            place = passage.find(altered)
            assert place is None or words_of(place.text).line == words_of(altered).line, altered
    assert count > 20


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        # What is shown for `<`, and ways to write comparators.
        ("Hb ‹ 7 g/dL", "Transfuse if Hb < 7 g/dL."), ("if (n ‹ 10 && n ‹= m)", "if (n < 10 && n <= m) {"),
        ("≥ 5 of ± 3", ">= 5 of +/- 3"), ("P<0.001", "(P < .001)"), ("a dose < 7", "a dose &lt; 7 mg"),
        # Markdown and HTML as rendered.
        ("The maximum dose is 5 mg", "The **maximum dose** is [5 mg](dose.md) a day."),
        ("dose in mg 5 a day", "| dose | in mg |\n|---|---:|\n| 5 | a day |"),
        ("See the guide of 2020", 'See the [guide](https://example.com/a_(b) "Guide") of _2020_.'),
        ("It is not safe", "<p>It is <b>not</b> safe</p>"), ("Müller & Co", "M&uuml;ller &amp; Co"),
        ("a whole sentence here", "> a whole\n> sentence here"),
        # Scripts.
        ("人人生而自由，在尊严和权利上", "人人生而自由，\n在尊严和权利上一律平等。"),
        ("用量は2.5 mgを超えない", "用量は2.5mgを\n超えない"),
        ("يولد جميع الناس", "يُولَدُ جَمِيعُ النَّاسِ أَحْرَارًا"), ("שלום עולם", "שָׁלוֹם עוֹלָם"), ("लोग स्वतंत्र हैं", "सभी लोग स्वतंत्र हैं।"),
        # Numbers.
        ("12 % of men", "12% of men"), ("12% of men", "12 % of men"), ("2.5mg", "2.5 mg"), ("1200 men", "1,200 men"),
        ("1,200 men", "1200 men"), ("1 200 men", "1\u00a0200 men"), ("1200 men", "1\u202f200 men"),
        ("10^2 units", "10² units"), ("10² units", "10<sup>2</sup> units"), ("5-10 mg", "5–10 mg"), ("-5 °C", "−5 °C"),
        ("IL6 and COVID19", "IL-6 and COVID-19"),
    ],
)  # fmt: skip
def test_what_a_copy_may_write_otherwise(quote, text):
    place = Passage(1, text, {}).find(quote)
    assert place is not None
    assert place.text in text


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("5 mg", "take 2.5 mg"), ("2", "take 2.5 mg"), ("25 mg", "take 2.5 mg"), ("5 °C", "at -5 °C"),
        ("12 mg", "take 12,5 mg"), ("102 units", "10² units"), ("10 units", "10² units"), ("cat", "concatenate"),
        ("50", "at 80/50"), ("1", "B-12"), ("12", "B-12"), ("...", "wait ... here"), ("", "text"), ("20", "20%"),
        ("7 mg", "≤ 7 mg"), ("7 mg", "<7 mg"), ("7 mg", "~7 mg"), ("> 7 mg", "< 7 mg"), ("7 mg", ">= 7 mg"),
        ("102 units", "10<sup>2</sup> units"), ("10 mg", "5-10 mg"), ("n > m", "if n < m"), ("x = 5", "x != 5"),
        ("200 men", "1,200 men"), ("1200 men", "1.200 men"), ("5 m", "5 m²"), ("v2.5", "v2.5.1"),
        ("कल", "कुल"), ("safe", "not unsafe"), ("it is safe", "it is not safe"),
    ],
)  # fmt: skip
def test_a_part_of_a_word_or_of_a_number_is_no_quote(quote, text):
    assert Passage(1, text, {}).find(quote) is None


SAID = "The first dose is given at noon. The second dose of 5 mg is given before every meal in the evening."
SOURCE = {"source": "a.md"}


@pytest.mark.parametrize("first", [50, 60, 75, 90])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_quote_over_two_chunks_of_a_document_is_found(first, backwards):
    words = SAID.split()
    cut = SAID.index(" ", first)
    overlap = " ".join(SAID[:cut].split()[-7:])
    chunks = [SAID[:cut], overlap + SAID[cut:]]
    passages = [Passage(number, text, SOURCE) for number, text in enumerate(chunks, 1)]
    found = Passages(passages[::-1] if backwards else passages).find(" ".join(words[2:]), 1)
    one, two = found.parts
    assert (one.passage.number, two.passage.number) == (1, 2)
    assert f"{one.text} {two.text}" == " ".join(words[2:]).rstrip(".")
    assert "first dose is given at noon" in found.sentences


def test_chunks_without_an_overlap_go_on_where_a_splitter_noted_their_places():
    cut = SAID.index(" of 5 mg")
    chunks = [(0, SAID[:cut]), (cut + 1, SAID[cut + 1 :])]
    passages = [
        Passage(number, text, {**SOURCE, "start_index": start})
        for number, (start, text) in enumerate(chunks, 1)
    ]
    assert len(Passages(passages).find("second dose of 5 mg is given").parts) == 2


@pytest.mark.parametrize(
    ("one", "two"),
    [(SOURCE, {}), (SOURCE, {"source": "b.md"}), ({}, {}), (SOURCE, SOURCE)],
    ids=["one without", "another source", "none", "no overlap"],
)
def test_texts_that_do_not_go_on_in_one_another_are_not_joined(one, two):
    overlap = "" if one == two == SOURCE else "is given before every meal "
    texts = [f"The dose {overlap}".strip(), f"{overlap}in the evening."]
    passages = [
        Passage(n, text, meta)
        for n, (text, meta) in enumerate(zip(texts, (one, two), strict=True), 1)
    ]
    assert Passages(passages).find(f"The dose {overlap}in the evening") is None


def test_a_quote_from_another_passage_is_moved_there():
    passages = Passages([Passage(1, "The sky is blue.", {}), Passage(2, "Grass is green.", {})])
    assert passages.find("grass is green", 1).passage.number == 2
    assert passages.find("sky is blue", None).passage.number == 1
    assert passages.find("sky is blue", 9).passage.number == 1
    assert passages.find("the sea is blue", 1) is None
