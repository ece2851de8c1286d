"""An answer -> its statements: nothing is lost, whatever is written and wherever it is cut."""

import itertools
import random
import re

import pytest
from share import fewer, part

from langchain_svc.citations.statements import CitationParser

NONCE = "5ec3e7"
PIECES = [
    "It is so", "Dr. ", "e.g. ", ". ", ".", "\n", "\n\n", "- ", "| ", " |", "1. ", "```\n", "```", "`", "``", "~~~",
    "\n```py\n", '<cite id="2-5ec3e7">', "</cite>", "<cite>", "<ci", "<", "  ", " ", "!", "?", '"', ")", "**", "A",
    "これは。", "5 mg", "...", "[1]", "# H\n", "b", " " * 700, "\n" * 700,
    *[f'<cite id="{number}-5ec3e7">{words}</cite>' for number, words in ((1, "q w"), (2, "r"), (3, "5 mg."))],
]  # fmt: skip


def mark(words, number=1):
    return f'<cite id="{number}-{NONCE}">{words}</cite>'


def statements(text, cuts=()):
    parser = CitationParser(NONCE)
    places = [0, *cuts, len(text)]
    pieces = [text[begin:end] for begin, end in itertools.pairwise(places)]
    return [*(found for piece in pieces for found in parser.parse_chunk(piece)), *parser.close()]


def said(text):
    return [(found.text, [quote.text for quote in found.quotes]) for found in statements(text)]


def written(seed):
    rng = random.Random(seed)
    return rng, "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 25)))


@pytest.mark.parametrize("hundred", part(range(40)))
def test_an_answer_is_read_the_same_wherever_it_is_cut(hundred):
    for seed in range(100 * hundred, 100 * hundred + fewer(100)):
        rng, text = written(seed)
        whole = statements(text)
        letters = range(1, len(text))
        some = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randint(1, 6)))
        assert statements(text, some) == whole
        assert statements(text, letters) == whole


@pytest.mark.parametrize("hundred", part(range(40)))
def test_no_text_is_lost_but_marks_that_are_given_as_quotes(hundred):
    for seed in range(100 * hundred, 100 * hundred + fewer(100)):
        _, text = written(seed)
        if "></cite>" in text:  # a mark around nothing
            continue
        found = statements(text)
        kept = "".join(statement.text for statement in found)
        quotes = [quote.text for statement in found for quote in statement.quotes]
        # What is left when the text that was kept is taken from the answer, sign by sign.
        at = 0
        left = []
        for sign in text:
            if at < len(kept) and kept[at] == sign:
                at += 1
            else:
                left.append(sign)
        assert at == len(kept), text
        most = sum(len(mark(quote)) for quote in quotes)
        assert len(re.sub(r"\s", "", "".join(left))) <= most, text
        if not quotes:
            assert kept == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"It is 5 mg {mark('a')}. So.", [("It is 5 mg.", ["a"]), (" So.", [])]),
        (f"It is 5 mg. {mark('a')} So.", [("It is 5 mg.", ["a"]), (" So.", [])]),
        (f"One {mark('a')} {mark('b')}", [("One", ["a", "b"])]),
        # A mark around a statement, with and without another before it.
        (f"{mark('The dose is 5 mg')}. {mark('Daily')}.",
         [("The dose is 5 mg.", ["The dose is 5 mg"]), (" Daily.", ["Daily"])]),
        (f"I know. {mark('The dose is 5 mg')}. So.",
         [("I know. ", []), ("The dose is 5 mg.", ["The dose is 5 mg"]), (" So.", [])]),
        (f"- {mark('Daily')}\n- {mark('Weekly')}", [("- Daily\n", ["Daily"]), ("- Weekly", ["Weekly"])]),
        # Rows and items.
        (f"| a | 7 mg {mark('a')} |\n| b | 5 mg {mark('b')} | c {mark('d')} |\n",
         [("| a | 7 mg |\n", ["a"]), ("| b | 5 mg | c |\n", ["b", "d"])]),
        (f"- **Adults.** 5 mg. {mark('a')}\n- None {mark('b')}.",
         [("- **Adults.** 5 mg.\n", ["a"]), ("- None.", ["b"])]),
        (f"1. First {mark('a')}\n2. Then", [("1. First\n", ["a"]), ("2. Then", [])]),
        # What ends no sentence.
        (f"It is led by Dr. J. Smith, e.g. Mondays {mark('a')}.",
         [("It is led by Dr. J. Smith, e.g. Mondays.", ["a"])]),
        (f"It is 2.5 mg, cf. Fig. 3, and approx. five vs. six {mark('a')}",
         [("It is 2.5 mg, cf. Fig. 3, and approx. five vs. six", ["a"])]),
        (f"Das gilt z. B. für Dr. Ott {mark('a')}", [("Das gilt z. B. für Dr. Ott", ["a"])]),
        (f"第一。第二{mark('a')}。", [("第一。", []), ("第二。", ["a"])]),
        # What is no mark.
        ("A <cite>no id</cite> b", [("A <cite>no id</cite> b", [])]),
        (f"A `{mark('a')}` b", [(f"A `{mark('a')}` b", [])]),
        (f"```html\n{mark('a')}\n```\nSo {mark('b')}",
         [("```html\n", []), (f"{mark('a')}\n", []), ("```\n", []), ("So", ["b"])]),
        (f'A <cite id="1-{NONCE}">open. B {mark("b")}', [(f'A <cite id="1-{NONCE}">open. ', []), ("B", ["b"])]),
        (f'A <cite id="1-{NONCE}">{"b " * 2000} c</cite>', None),
    ],
)  # fmt: skip
def test_what_a_statement_is(text, expected):
    if expected is None:
        assert "".join(found.text for found in statements(text)) == text
    else:
        assert said(text) == expected


def test_a_stray_backtick_opens_no_code():
    assert said(f"A ` b {mark('a')}\nC ` d {mark('c')}") == [
        ("A ` b", ["a"]),
        ("\n", []),
        ("C ` d", ["c"]),
    ]


@pytest.mark.parametrize(
    ("text", "said_there"),
    [
        (f"Two is so {mark('a')}. ", "Two is so"),
        (f"Two is so. {mark('a')} ", "Two is so."),
        (f"{mark('Two is so')}.", "Two is so"),
        (f"| two | is so {mark('a')} |\n", "| two | is so"),
    ],
)
def test_a_statement_knows_where_its_mark_stood(text, said_there):
    (found,) = [found for found in statements(text) if found.quotes]
    assert found.text[: found.mark_at] == said_there


def test_code_is_no_prose():
    assert [found.is_code for found in statements("Say:\n```\nx = 1.\n```\nSo.")] == [
        False, True, True, True, False,
    ]  # fmt: skip
