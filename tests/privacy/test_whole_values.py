"""Every value that was given is hidden exactly as it is, and a telephone in all of its writings."""

from __future__ import annotations

import re

import pytest
from share import pairs

from langchain_svc import Pseudonyms

MARK = re.compile(r"\[[A-Z]+_\d+(?:_\d+)?\]")
SIGNS = ":#|^*+,=&;@~!?/\\.-_()<>%$§°'"
VALUES = [
    *[("identifiers", f"MRN{sign}123456789") for sign in SIGNS],
    *[("identifiers", f"12345678{sign}01") for sign in SIGNS],
    ("identifiers", "urn:uuid:7c9e6679-7425-40de-944b-e07fc1f90ae7"),
    ("identifiers", "urn:oid:1.2.276.0.76.4.8|K220635158"),
    ("identifiers", "患者-0099887"),
    ("telecoms", "18005550123"),
    ("telecoms", "491701234567"),
    ("telecoms", "13812345678"),
    ("telecoms", "345-899-3560x4587"),
    ("telecoms", "(03) 9555 6789 ext 12"),
    ("telecoms", "https://clinic.example/p/17?a=b"),
    ("telecoms", "O'Hara+a@mail.example"),
    ("names", "Do Ha"),
    ("names", "Do An"),
    ("names", "Nguyen Van An"),
    ("names", "O'Brien-May, Will"),
    ("names", "Anna Meyer (Annie)"),
    ("names", "山田 太郎"),
    ("names", "小明 王"),
    ("names", "王小明"),
    ("names", "김 민수"),
    ("addresses", "Broad Street 5, Reading"),
    ("addresses", "Flat 3 (rear) -- Block #4"),
    ("texts", "(room 7) -+-+- bed 2"),
    ("texts", "Red"),
]
PLACES = ["{}", "a {} b", "|{}|", "({})", "{}^{}", "x={};", "\n{}\n", "“{}”", "{}, {}."]  # fmt: skip


def left(pseudonyms, text):
    """What of a text is sent, without the marks; the text comes back whole."""
    hidden = pseudonyms.hide(text)
    assert pseudonyms.restore(hidden) == text
    return MARK.sub("#", hidden)


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_a_value_is_hidden_as_it_is_in_any_case_whatever_signs_it_holds(kind, value):
    pseudonyms = Pseudonyms(**{kind: [value]})
    for place in PLACES:
        nothing = left(pseudonyms, place.replace("{}", "#"))
        for writing in (value, value.upper(), value.lower()):
            shown = left(pseudonyms, place.replace("{}", writing))
            words = re.findall(r"[^\W_]+", shown)
            assert words == re.findall(r"[^\W_]+", nothing), shown


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("identifiers", "MRN:1234", "XMRN:1234, MRN:12345"),
        ("identifiers", "MRN", "mrn, MRNA"),
        ("identifiers", "A9", "a9, A91, BA9"),
        ("names", "May", "It may be in May."),
        ("names", "Do Ha", "To do: have a look; do Hanna; ado Ha"),
        ("addresses", "Reading", "Reading is hard; reading"),
        ("identifiers", "000012", "12 mg and 0012"),
    ],
)
def test_what_is_another_word_stays(kind, value, text):
    assert Pseudonyms(**{kind: [value]}).hide(text) == text


@pytest.mark.parametrize(
    "writing",
    [
        "José de la Cruz", "de la Cruz José", "de la Cruz, José", "CRUZ, JOSÉ DE LA", "cruz josé de la",
    ],
)  # fmt: skip
def test_a_name_is_hidden_with_the_family_first_or_last(writing):
    pseudonyms = Pseudonyms(names=["José de la Cruz"])
    assert pseudonyms.hide(f"Saw {writing}.") == "Saw [PERSON_1]."


def test_names_of_scripts_without_blanks_are_hidden_inside_a_sentence():
    pseudonyms = Pseudonyms(names=["王小明", "山田 太郎", "김민수"])
    assert pseudonyms.hide("患者王小明来了") == "患者[PERSON_1]来了"
    assert pseudonyms.hide("山田太郎さんと太郎 山田") == "[PERSON_2]さんと[PERSON_2_2]"
    assert pseudonyms.hide("김민수는 아프다") == "[PERSON_3]는 아프다"


def test_a_title_before_a_whole_name_stays():
    pseudonyms = Pseudonyms(names=["Dr. med. Anna Bauer"])
    assert pseudonyms.hide("Dr. med. Anna Bauer, ANNA BAUER") == "Dr. med. [PERSON_1], [PERSON_1_2]"


def test_a_whole_address_has_the_mark_of_its_first_line():
    pseudonyms = Pseudonyms(addresses=["Broad Street 5, Reading", "High Street 1"])
    text = "BROAD STREET 5, READING; Broad Street 5; High Street 1"
    assert pseudonyms.hide(text) == "[PLACE_1]; [PLACE_1_2]; [PLACE_3]"


def test_zeros_before_a_number_may_be_left_out_or_added():
    pseudonyms = Pseudonyms(identifiers=["0000123456", "7654321"])
    text = "0000123456, 123456, 123-456, 00123456 and 0007654321; 1234567, 99123456"
    assert left(pseudonyms, text) == "#, #, #, # and #; 1234567, 99123456"


def test_a_date_is_hidden_before_the_time_of_a_message():
    pseudonyms = Pseudonyms(dates=["1950-03-04"])
    text = "PID|1||7|||19500304120000|F, 195003041200, 1950030412, 19500304120, 119500304"
    assert left(pseudonyms, text) == "PID|1||7|||#120000|F, #1200, #12, 19500304120, 119500304"


def test_an_abbreviation_is_no_initial():
    pseudonyms = Pseudonyms(names=["Bell Young"])
    assert pseudonyms.hide("Iris: o.B. Young woman") == "Iris: o.B. Young woman"
    assert pseudonyms.hide("Dr. B. Young, o.B. Young.") == "Dr. [PERSON_1], o.B. Young."


# -- telephones ------------------------------------------------------------------------------------

# Of each country, one number in the forms in which systems store it, and in which people write it.
STORED = {
    "us": "+1 800 555 0123|18005550123|1-800-555-0123|8005550123|(800) 555-0123 x459|800.555.0123 ext. 12",
    "de": "+49 170 1234567|491701234567|00491701234567|0170 1234567|0170/1234567 Durchwahl 12|+49 (0)170 1234567",
    "cn": "13812345678|+86 138 1234 5678|8613812345678|0086-13812345678",
    "au": "(03) 9555 6789 ext 12|+61 3 9555 6789|61395556789",
    "fr": "+33 1 42 34 56 78|33142345678",
}
WRITTEN = {
    "us": "(800) 555-0123|1 800 555 0123|1.800.555.0123|+1-800-555-0123|+18005550123|8005550123x459|800/555-0123 # 4",
    "de": "0170-1234567|+491701234567|+49 (0) 170 12 34 567|0049 170 1234567|0170 1234567 -DW 12|170 1234567",
    "cn": "138 1234 5678|138-1234-5678|+8613812345678|0086 138 1234 5678",
    "au": "03 9555 6789|+61 (0)3 9555 6789|0395556789 x 3|(03)95556789",
    "fr": "01.42.34.56.78|0142345678 poste 12|+33142345678",
}
ROWS = [
    (stored, written)
    for country, forms in STORED.items()
    for stored, written in pairs(forms.split("|"), f"{forms}|{WRITTEN[country]}".split("|"))
]
OTHERS = "12 mg, 120/80 mmHg, 2024-01-15, 1.2.840.10008.1.2, 98765432, 4155550199, 5550123, 30 1234567, 10115"


@pytest.mark.parametrize(("stored", "written"), ROWS)
def test_a_telephone_is_its_digits_with_any_codes_and_an_extension_or_none(stored, written):
    pseudonyms = Pseudonyms(telecoms=[stored])
    for text in (f"Call {written} now", f"Tel:{written};", f"7 or {written}"):
        shown = left(pseudonyms, text)
        digits = re.sub(r"\D", "", shown.replace("7 or", ""))
        assert len(digits) <= 2, shown  # a country's code without a plus
    assert left(pseudonyms, OTHERS) == OTHERS


def test_an_extension_that_was_stored_may_be_dialled():
    pseudonyms = Pseudonyms(telecoms=["030 1234 Durchwahl 567"])
    assert left(pseudonyms, "030 1234-567, +49 30 1234567, 030 1234-0") == "#, #, 030 1234-0"


def test_a_short_telephone_is_hidden_as_it_is():
    pseudonyms = Pseudonyms(telecoms=["110", "tel:55 012"])
    assert left(pseudonyms, "110, 55 012, 1100, 55012") == "#, #, 1100, 55012"
