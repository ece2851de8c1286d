"""Where a quote stands in a document: what a copy may change, and what it may not."""

import random

import pytest

from langchain_svc.chat.passages import Passage, Passages, fold

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


def words_of(text):
    return text.split(" ")


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
    words = words_of(text)
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
        assert fold(place.text).text.strip(" .,;:") in fold(quote).text


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
            assert place is None or fold(place.text).text == fold(altered).text.strip(" .,;:…"), (
                altered
            )
    assert count > 20


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("5 mg", "take 2.5 mg"), ("2", "take 2.5 mg"), ("25 mg", "take 2.5 mg"), ("5 °C", "at -5 °C"),
        ("12 mg", "take 12,5 mg"), ("102 units", "10² units"), ("cat", "concatenate"), ("50", "at 80/50"),
        ("1", "B-12"), ("...", "wait ... here"), ("", "text"), ("20", "20 %".replace(" ", "")),
    ],
)  # fmt: skip
def test_a_part_of_a_word_or_of_a_number_is_no_quote(quote, text):
    assert Passage(1, text, {}).find(quote) is None


def test_a_quote_from_another_passage_is_moved_there():
    passages = Passages([Passage(1, "The sky is blue.", {}), Passage(2, "Grass is green.", {})])
    assert passages.find("grass is green", 1).passage.number == 2
    assert passages.find("sky is blue", None).passage.number == 1
    assert passages.find("sky is blue", 9).passage.number == 1
    assert passages.find("the sea is blue", 1) is None
