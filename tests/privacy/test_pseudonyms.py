"""`Pseudonyms`: what is hidden comes back, whole and in pieces, and nothing shows what is inside."""

from __future__ import annotations

import copy
import json
import pickle
import random
import re
import sys
import threading
import traceback
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from people import someone

from langchain_svc import Pseudonyms, SvcRequestError

NAME = "Rosalind Thornbury"
RECORD = {"resourceType": "Patient", "name": [{"family": "Thornbury", "given": ["Rosalind"]}]}
IDENTIFIERS = {
    "names": ["Anna Müller", ["Karl May", "Karl Winter"], "O'Brien, Tom", "王小明"],
    "identifiers": ["MRN-123456", "A9", "1234", "DOM\\user7"],
    "telecoms": ["+49 (0)30 1234567", "anna@mail.example", "110"],
    "addresses": ["Hauptstraße 12, 10115 Berlin"],
    "dates": [date(1950, 3, 4), "1999-12-31"],
    "texts": ["Blue Lagoon"],
}
PIECES = """
Anna|Müller|MÜLLER|Mueller|Mu\u0308ller|A.|K.|May|may|Karl|O'Brien|o'brien|王小明|MRN-123456|mrn 123 456|A9|1234
|DOM\\user7|+49 30 123-4567|030/1234567|anna@mail.example|Hauptstr. 12|10115|Berlin|4.3.1950|1950-03-04
|04.03.50|March 4th, 1950|4 March 1950|31. Dezember 1999|2020-02-29|1/2/2021|29.02.2020|4|March|1950|Blue
|Lagoon|blue  lagoon|[PERSON_1]|PERSON_1|[Person 1]|\\[PERSON\\_1\\]|[DATE_1|DATE_1]|[TEXT_2]|ID_|[|]|\\|**|"
|'|\\n|\\u00fc|\\"|{"a": "|}|é|İ|ß|x|_|-|.|,|:|(|)|12|123456789
""".replace("\n", "").split("|")
TEXTS = st.lists(st.sampled_from([*PIECES, " ", " ", " ", "\n"]), max_size=25).map("".join)


@pytest.fixture(scope="module", params=[False, True], ids=["mark", "shift"])
def pseudonyms(request):
    return Pseudonyms(**IDENTIFIERS, shift_dates=request.param)


# -- there and back --------------------------------------------------------------------------------


@given(text=TEXTS)
def test_what_is_hidden_comes_back(pseudonyms, text):
    assert pseudonyms.restore(pseudonyms.hide(text)) == text


@given(text=st.text())
def test_any_text_comes_back(pseudonyms, text):
    assert pseudonyms.restore(pseudonyms.hide(text)) == text


@given(text=TEXTS, answer=TEXTS, size=st.integers(1, 9))
def test_a_stream_is_restored_as_the_whole_is(pseudonyms, text, answer, size):
    hidden = pseudonyms.hide(text) + answer
    assert in_pieces(pseudonyms, hidden, size) == pseudonyms.restore(hidden)


def in_pieces(pseudonyms, text, size):
    restorer = pseudonyms.restorer()
    pieces = [restorer.parse_chunk(text[at : at + size]) for at in range(0, len(text), size)]
    return "".join([*pieces, restorer.close()])


def test_a_stream_is_restored_wherever_it_is_cut(pseudonyms):
    hidden = pseudonyms.hide(
        "Anna Müller (born 4 March 1950, MRN-123456) saw Karl May on March 4th, 1950. "
    )
    hidden += "So \\[PERSON\\_1\\], PERSON_1 and [person 1_2] met; [PERSON_77] did not. [ID_1"
    whole = pseudonyms.restore(hidden)
    for cut in range(len(hidden) + 1):
        restorer = pseudonyms.restorer()
        pieces = (restorer.parse_chunk(hidden[:cut]), restorer.parse_chunk(hidden[cut:]))
        assert "".join(pieces) + restorer.close() == whole


def test_a_stream_holds_back_only_what_may_become_a_mark():
    restorer = Pseudonyms(names=[NAME]).restorer()
    assert restorer.parse_chunk("The patient, ") == "The patient, "
    assert restorer.parse_chunk("see [1") == "see [1"
    assert restorer.parse_chunk(" and [PERS") == " and "
    assert restorer.parse_chunk("ONAL]") == "[PERSONAL]"


@pytest.mark.parametrize(
    "mark",
    [
        "[PERSON_1]",
        "PERSON_1",
        "[Person 1]",
        "[person_1]",
        "[ PERSON-1 ]",
        "\\[PERSON\\_1\\]",
        "[PERSON\\_1]",
    ],
)
def test_a_mark_may_be_spelt_a_little_otherwise(mark):
    pseudonyms = Pseudonyms(names=[NAME])
    pseudonyms.hide(NAME)
    assert pseudonyms.restore(f"Dear **{mark}**,") == f"Dear **{NAME}**,"


@pytest.mark.parametrize(
    "text", ["[PERSON_2]", "[PERSON_1_2]", "PERSON_11", "[NAME_1]", "person 1", "xPERSON_1"]
)
def test_what_was_not_given_out_stays(text):
    pseudonyms = Pseudonyms(names=[NAME])
    pseudonyms.hide(NAME)
    assert pseudonyms.restore(text) == text


def test_each_writing_has_a_mark_that_shows_whose_it_is():
    pseudonyms = Pseudonyms(names=["Anna Meyer", "Karl Huber"])
    hidden = pseudonyms.hide("Anna Meyer, Huber, MEYER, A. Meyer, Meyer")
    assert hidden == "[PERSON_1], [PERSON_2], [PERSON_1_2], [PERSON_1_3], [PERSON_1_4]"
    assert pseudonyms.hide("MEYER and Huber") == "[PERSON_1_2] and [PERSON_2]"


def test_json_stays_json():
    pseudonyms = Pseudonyms(**IDENTIFIERS)
    value = {
        "text": 'Anna\nMüller said "Karl May"\t+49 30\n123 4567',
        "Müller": ["A9", "DOM\\user7"],
    }
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        hidden = pseudonyms.hide(text)
        assert "ller" not in hidden
        assert "123" not in hidden
        json.loads(hidden)
        assert json.loads(pseudonyms.restore(hidden)) == value


# -- dates -----------------------------------------------------------------------------------------


def test_shifted_dates_keep_their_gaps_and_their_form():
    text = "Seen on 1999-12-28 and 2000-03-01, born 4 March 1950, not in 2001."
    hidden = Pseudonyms(shift_dates=True).hide(text)
    first, second = map(date.fromisoformat, re.findall(r"\d{4}-\d\d-\d\d", hidden))
    moved = first - date(1999, 12, 28)
    assert second - first == date(2000, 3, 1) - date(1999, 12, 28)
    assert 30 < abs(moved.days) < 3660
    assert moved.days % 7 == 0
    assert "born 4 March 1950" not in hidden
    assert "not in 2001" in hidden
    assert "[" not in hidden


def test_a_date_that_the_model_has_computed_is_moved_back():
    pseudonyms = Pseudonyms(shift_dates=True)
    shifted = date.fromisoformat(pseudonyms.hide("2020-05-01"))
    later = date.fromordinal(shifted.toordinal() + 10)
    assert pseudonyms.restore(f"Come on {later}.") == "Come on 2020-05-11."


@given(day=st.dates(date(1900, 1, 1), date(2090, 1, 1)), seed=st.integers(0, 6))
def test_a_shifted_date_is_hidden_in_any_form(day, seed):
    text = (
        f"{day:%d.%m.%Y} {day.day}/{day.month}/{day.year} {day:%B} {day.day}, {day.year} {day:%y}"
    )
    pseudonyms = Pseudonyms(shift_dates=True)
    hidden = pseudonyms.hide(text)
    assert pseudonyms.restore(hidden) == text
    assert f"{day:%d.%m.%Y}" not in hidden


# -- sources ---------------------------------------------------------------------------------------


class Resource:
    def model_dump(self, **_):
        return RECORD


@pytest.mark.parametrize(
    "form",
    [
        RECORD,
        json.dumps(RECORD),
        json.dumps(RECORD).encode(),
        "\n".join([json.dumps(RECORD)] * 2),
        [RECORD],
        Resource(),
        {"resourceType": "Bundle", "entry": [{"resource": RECORD}]},
        {"resourceType": "Bundle", "entry": [{"resource": Resource()}]},
    ],
    ids=range(8),
)
def test_a_record_may_have_any_form(form):
    assert Pseudonyms.from_fhir(form).hide(f"I am {NAME}") == "I am [PERSON_1]"


def test_a_record_may_be_a_file(tmp_path):
    path = tmp_path / "record.json"
    path.write_text(json.dumps(RECORD), "utf-8")
    assert Pseudonyms.from_fhir(path).hide(NAME) == "[PERSON_1]"


def test_everyone_whom_a_record_names_is_hidden():
    record = [
        {"resourceType": "Practitioner", "name": [{"text": "Dr. med. Quentin Abernathy"}]},
        {
            **RECORD,
            "id": "p-4711-x",
            "contact": [
                {
                    "name": {"family": "Hollister", "given": ["Maud"]},
                    "telecom": [{"value": "0171 555 0134"}],
                }
            ],
            "deceasedDateTime": "2021-05-06T08:00:00Z",
        },
        {
            "resourceType": "RelatedPerson",
            "name": [{"family": "Vandermere"}],
            "birthDate": "1980-01-02",
        },
        {
            "resourceType": "FamilyMemberHistory",
            "name": "Father Ignatius Thornbury",
            "bornDate": "1921-02-03",
        },
        {
            "resourceType": "Organization",
            "name": "Klinikum St. Wendelin",
            "telecom": {"value": "+1 212 555 0134"},
        },
        {
            "resourceType": "Observation",
            "performer": [{"reference": "Organization/3", "display": "Lab Fenwick & Sons"}],
        },
        {
            "resourceType": "Condition",
            "code": {"coding": [{"display": "Asthma"}]},
            "asserter": {"display": "Ottilie"},
        },
    ]
    text = (
        "Rosalind; Abernathy; Maud Hollister; 0171-5550134; 6 May 2021; Vandermere; 1980-01-02; Ignatius; 3.2.1921; "
        "Klinikum St. Wendelin; 212-555-0134; Lab Fenwick & Sons; p-4711-x; Ottilie; Asthma; Father"
    )
    hidden = Pseudonyms.from_fhir(record).hide(text)
    assert re.sub(r"\[[A-Z]+_[\d_]+\]", "#", hidden) == "#; " * 14 + "Asthma; Father"
    assert hidden.startswith("[PERSON_1];")


def test_two_sets_are_joined():
    joined = Pseudonyms(names=["Anna Meyer"]) + Pseudonyms(names=["Karl Huber"], shift_dates=True)
    hidden = joined.hide("Anna Meyer saw Karl Huber on 2020-02-03")
    assert hidden.startswith("[PERSON_1] saw [PERSON_2] on ")
    assert "2020-02-03" not in hidden


def test_languages_say_which_endings_count():
    assert Pseudonyms(names=["Anna Nowak"], languages=["pl"]).hide("Nowakowi") == "[PERSON_1]"
    assert Pseudonyms(names=["Anna Nowak"], languages=["de"]).hide("Nowakowi") == "Nowakowi"


# -- a finder of the application's -----------------------------------------------------------------


def test_more_may_be_found_by_the_application():
    def extra(text):
        return [(match.start(), match.end(), "PER") for match in re.finditer("Zed", text)]

    pseudonyms = Pseudonyms(names=[NAME], extra=extra)
    hidden = pseudonyms.hide(f"{NAME} and Zed, Zed")
    assert hidden == "[PERSON_1] and [PERSON_2], [PERSON_2]"
    assert pseudonyms.restore(hidden) == f"{NAME} and Zed, Zed"


def fails(text):
    raise KeyError(text)


@pytest.mark.parametrize(
    "extra",
    [
        fails,
        lambda _: None,
        lambda _: [(0, 1)],
        lambda _: [(0, 999, "PERSON")],
        lambda _: [(-1, 1, "PERSON")],
        lambda _: [(1, 1, "PERSON")],
        lambda _: [("0", "1", "PERSON")],
        lambda _: [(0, 1, None)],
        lambda text: [text],
    ],
)
def test_if_the_finder_fails_nothing_is_hidden_and_the_error_shows_no_text(extra):
    with pytest.raises(SvcRequestError, match=r"`extra` .*nothing may be sent") as raised:
        Pseudonyms(names=[NAME], extra=extra).hide(f"{NAME} was here")
    assert_silent(raised.value)


# -- nothing shows what is inside ------------------------------------------------------------------


def assert_silent(error):
    """No message and no variable of a frame of ours shows the name."""
    shown = "".join(
        traceback.TracebackException.from_exception(
            error, capture_locals=True
        ).format_exception_only()
    )
    frames = []
    step = error.__traceback__
    while step:
        if "langchain_svc" in step.tb_frame.f_code.co_filename:
            frames.append(repr(step.tb_frame.f_locals))
        step = step.tb_next
    assert error.__cause__ is None and error.__context__ is None
    assert frames
    assert "Thornbury" not in shown + "".join(frames)


@pytest.mark.parametrize(
    "arguments",
    [
        {"identifiers": [7]},
        {"names": [NAME, [7]]},
        {"names": 7},
        {"texts": [".."]},
        {"dates": ["Thornbury"]},
        {"dates": ["1950"]},
        {"languages": ["xx"]},
        {"extra": "Thornbury"},
    ],
)
def test_invalid_arguments_are_named_without_what_they_hold(arguments):
    with pytest.raises(SvcRequestError) as raised:
        Pseudonyms(**{"names": [NAME], **arguments})
    assert_silent(raised.value)


@pytest.mark.parametrize("record", ["Thornbury", {"name": "Thornbury"}, 7, [], "{}\nThornbury"])
def test_an_unreadable_record_is_not_quoted(record):
    with pytest.raises(SvcRequestError, match="record") as raised:
        Pseudonyms.from_fhir(record)
    assert_silent(raised.value)


def test_an_unknown_way_with_dates_is_named():
    with pytest.raises(SvcRequestError, match='"mark" or "shift"'):
        Pseudonyms.from_fhir(RECORD, dates="drop")


def test_only_texts_are_hidden_and_restored():
    for method in ("hide", "restore"):
        with pytest.raises(SvcRequestError, match="not a list"):
            getattr(Pseudonyms(names=[NAME]), method)([NAME])


def test_nothing_shows_what_is_inside():
    pseudonyms = Pseudonyms(names=[NAME])
    restorer = pseudonyms.restorer()
    restorer.parse_chunk(pseudonyms.hide(NAME)[:5])
    for value in (pseudonyms, restorer):
        shown = [repr(value), str(value), f"{value:}", repr(dir(value))]
        shown += [repr(getattr(value, name)) for name in value.__slots__]
        assert not hasattr(value, "__dict__")
        assert "Thornbury" not in "".join(shown)
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(value)
        with pytest.raises(TypeError):
            iter(value)
    assert copy.copy(pseudonyms) is pseudonyms
    assert copy.deepcopy({"a": pseudonyms})["a"] is pseudonyms


def test_threads_share_the_marks():
    pseudonyms = Pseudonyms(names=["Anna Meyer"])
    writings = [
        "".join(random.Random(seed).choice((c, c.upper())) for c in "anna meyer")
        for seed in range(200)
    ]
    wrong = []

    def hide_all(seed):
        for writing in random.Random(seed).sample(writings, len(writings)):
            if pseudonyms.restore(pseudonyms.hide(writing)) != writing:
                wrong.append(writing)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=hide_all, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not wrong
    marks = {pseudonyms.hide(writing) for writing in writings}
    assert len(marks) == len(set(writings))


# -- work ------------------------------------------------------------------------------------------


def calls_of(function, *args):
    """How many calls Python makes, which unlike time is the same on every machine."""
    count = 0

    def profile(_, event, __):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shift_dates", [False, True])
def test_work_grows_with_the_text_and_no_faster(shift_dates):
    person = someone(3)
    text = ". ".join([*person.exact, *person.writings, "1 2 3 4.5.2006 [ID_1] A. A. de la"]) + ".\n"
    pseudonyms = Pseudonyms.from_fhir(person.record, dates="shift" if shift_dates else "mark")
    pseudonyms.hide(text)
    few, many = (calls_of(pseudonyms.hide, text * times) for times in (10, 40))
    assert many < few * 4.5


def test_work_hardly_grows_with_identifiers_that_a_text_does_not_have():
    text = "The patient has had fever since 3 days; creatinine 1.2 mg/dl. " * 100
    few, many = (
        calls_of(
            Pseudonyms(
                names=[f"Quux{n:04} Zebulon{n:04}" for n in range(count)],
                identifiers=[f"MRN-{n:08}" for n in range(count)],
            ).hide,
            text,
        )
        for count in (25, 250)
    )
    assert many < few * 4
