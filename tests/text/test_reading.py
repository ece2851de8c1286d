"""The reading of a text: what it says, and where that stands in it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_formats import FORMATS

from langchain_svc._text import characters, fold, normalized, rendered

NAME = "Jürgen Müller-Lüdenscheidt"
# These change more than characters: letters of other alphabets, base64, hex, numbered lines.
READ = [
    name
    for name, write in FORMATS.items()
    if fold(NAME) in fold(rendered(characters(write(NAME)), all_tags=True).text)
]


@pytest.mark.parametrize(
    "text",
    [
        "Two words.",
        '{"id": 1, "path": "/srv/1"}',
        "AT&T, R&D; a && b",
        "limit=50&page=20, country=DE",
        "Осло, Αθήνα, 東京",
        "It is 5 % of a < b, c = d; e > f",
        "x = 3\ny=4",
        "C++ \\alpha \\section",
    ],
)
def test_a_text_without_a_format_reads_as_it_stands(text):
    reading = characters(text)
    assert rendered(reading).text == reading.text == text
    assert reading.place(2, 5) == (2, 5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("M&uuml;ller", "Müller"),
        ("M&#252;ller &#xFC;", "Müller ü"),
        ("M%C3%BCller%20x", "Müller x"),
        ("M%FCller", "Müller"),
        ("M=C3=BCl=\nler", "Müller"),
        ("a=3Db =FC=\n", "a=b ü"),
        ("M\\\\u00fcller \\u{fc}", "Müller ü"),
        ("&amp;uuml;", "ü"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("ＭＲＮ－４８", "MRN-48"),
        ("M\u00adü\u200bl\u2060ler", "Müller"),
        ("\u202erellüM\u202c", "Müller"),
    ],
)
def test_escapes_are_read_as_what_they_stand_for(text, says):
    assert characters(text).text == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("M<b>ü</b>ll<wbr>er", "Müller"),
        ("del<!-- a > b -->ete", "delete"),
        ("del<!--[if gte mso 9]>ab<![endif]-->ete", "delete"),
        ('del<span title="1<2 ab">ete</span>', "delete"),
        ("a<script>b</script>c<STYLE>d</STYLE>e", "ace"),
        ("end.<sup>[3]</sup> 10<sup>2</sup>", "end. 102"),
        ("<p>one</p><p>two</p>", " one  two "),
        ("<path>/mail</path>", "<path>/mail</path>"),
        ('<call name="a<wbr>b">', '<call name="ab">'),
        ("a <!-- no end", "a <!-- no end"),
        ("a < b > c", "a < b > c"),
    ],
)
def test_a_page_is_read_as_it_is_shown(text, says):
    assert rendered(characters(text)).text == says


@pytest.mark.parametrize("name", READ)
def test_what_is_read_has_its_place_in_the_text(name):
    """What stands before, inside and behind the place of a name is what was written there."""
    is_mail = "quoted-printable" in name or None

    def read(text):
        return rendered(characters(text, is_mail=is_mail), all_tags=True)

    written = FORMATS[name]("A) " + NAME + " (B")
    reading = read(written)
    start = fold(reading.text).index(fold(NAME))
    begin, end = reading.place(start, start + len(NAME))
    assert fold(NAME) in fold(read(written[begin:end]).text)
    if not name.startswith("right to left"):  # whose letters have the place of the whole run
        assert "a" in fold(read(written[:begin]).text)
        assert "b" in fold(read(written[end:]).text)


def test_the_formats_of_tools_are_read():
    assert len(READ) >= len(FORMATS) * 2 // 3, sorted({*FORMATS} - {*READ})


PIECES = st.sampled_from(
    [
        "a",
        "Ü",
        " ",
        "&uuml;",
        "%C3%BC",
        "=\n",
        "=3D",
        "\\n",
        "\\u00fc",
        "<b>",
        "</b>",
        "<x>",
        "<!--",
    ]
    + [
        "-->",
        "&",
        "%",
        "=",
        "<",
        ">",
        '"',
        "'",
        "\\",
        "\x1b[0m",
        "\u202e",
        "\u202c",
        "ａ",
        "\u00ad",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_every_character_of_a_reading_has_a_place(text):
    reading = characters(text)
    for view in (reading, rendered(reading), rendered(reading, all_tags=True)):
        for at in range(len(view.text)):
            begin, end = view.place(at, at + 1)
            assert 0 <= begin < end <= len(text)


@given(st.text(max_size=20))
def test_a_text_is_normalized_as_unicode_says(text):
    for form in ("NFC", "NFKC", "NFKD"):
        assert normalized(form, text) == unicodedata.normalize(form, text)


def test_no_letter_keeps_more_marks_than_a_writing_has():
    assert normalized("NFKD", "ä" + "\u0301\u0323" * 10_000 + "b") == normalized(
        "NFKD", "ä" + "\u0301\u0323" * 4 + "b"
    )
