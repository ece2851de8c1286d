"""What repeats a patient's record and what does not, and that nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.cost import counted
from langchain_svc import PatientContext
from langchain_svc._clinical.echo import WITHHELD, Echo, without_echo
from langchain_svc._clinical.sentences import sentences, within
from langchain_svc.patient import on_wire

CHILD = {"age": 5, "labResults": {"creatinine": 1}, "currentMedications": ("Ibuprofen 100 mg",)}
ADULT = {
    "age": 61,
    "sex": "female",
    "medicalHistory": ("hypertension", "Chronic obstructive bronchitis (disorder)", "COPD"),
    "currentMedications": ("amlodipine 5 mg", "salbutamol"),
    "vitalSigns": {"systolic": 150, "diastolic": 95, "heartRate": 88, "temperature": 38.47, "oxygenSaturation": 80},
    "labResults": {"troponin": 0.02, "creatinine": 1.2, "ldl": 160},
    "riskFactors": ("smoking", "family history: breast cancer (mother)"),
}  # fmt: skip

# -- guidance -------------------------------------------------------------------------------------

GUIDANCE = [
    (CHILD, "Adrenaline 0.01 mg/kg (max 0.5 mg) of 1:1000, i.e. 0.15 mg under 6 years; prednisolone 1.5 mg/kg for 5 days; give 250 mg paracetamol every 6 hours."),
    (CHILD, "Give ibuprofen 100 mg every 8 hours. Urgency: high\nRisk score: 5"),
    (CHILD, "Repeat creatinine after 1 day, or 1 h after 1 mg/kg. In children aged 5 to 12 years: 5 ml. 5 years of follow-up."),
    (ADULT, "Give salbutamol 5 mg. Amlodipine 5 mg is a first step in hypertension. Smoking raises the risk."),
    (ADULT, "Patients with a history of hypertension or COPD need 61 mg. Ask about known asthma and COPD."),
    (ADULT, "Aim for 150/95 mmHg or less; SpO2 of 80 % or lower needs oxygen; target heart rate: 88 bpm."),
    (ADULT, "Over 61 years, from age 61, 61 years and older, 50-61 years, 61 % of cases, within 61 days."),
    (ADULT, "Troponin above 0.02 ng/mL. Creatinine 1.2 to 2.0 mg/dL. Mean arterial pressure of 95 mmHg. LDL goal 160 mg/dL."),
    (ADULT, "Differential: COPD, pneumonia, heart failure. Female patients have other symptoms."),
    (ADULT, "If the heart rate is 88, wait. Take 2.5 mg (e.g. bisoprolol). Dr. No says: Rest.\n\n  1. Rest\n  2. Drink 1.5 l\r\n- x"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "text"), GUIDANCE, ids=lambda value: str(value)[:30])
def test_guidance_is_the_same_byte_for_byte(record, text):
    lost = [piece for piece in sentences(text) if Echo(record)(piece.rstrip())]
    assert lost == []
    assert without_echo(text, Echo(record)) == text


QUOTES = [
    "For a 61-year-old it is less.", "Aged 61, she is at risk.", "Age: 61", "The patient is 61 years old.", "You are 61.", "A woman (61 years) came.", "61 Jahre alt.", "患者61岁。",
    "Sex: female", "Blood pressure of 150/95 was found.", "The systolic value is 150 mmHg.", "HR 88.", "Your pulse of 88/min is fine.", "It was 38.5 °C.", "T 38,47", "SpO2 80 % on air.", "oxygenSaturation: 80",
    "Troponin was 0.02.", "creatinine 1.2 mg/dL", "An LDL of 160 mg/dL is high.",
    "The patient has COPD.", "History of hypertension noted.", "Your hypertension matters.", "Known COPD.", "Currently taking salbutamol.", "On amlodipine, ankles swell.", "Current medications: amlodipine 5 mg", "Factor: smoking, points: 25",
    "Medical history:\n- asthma\n- hypertension", "This fits chronic obstructive bronchitis in this patient.", "Her mother: family history of breast cancer.",
]  # fmt: skip


@pytest.mark.parametrize("quote", QUOTES)
def test_a_quotation_is_withheld_and_what_stands_around_it_is_not(quote):
    before, after = "Rest, and drink 1.5 litres.", "Give 250 mg every 6 hours."
    shown = without_echo(f"{before}\n{quote}\n{after}", Echo(ADULT))
    assert quote.splitlines()[-1] not in shown
    assert shown.startswith(before + "\n")
    assert shown.endswith(f"{WITHHELD}\n{after}")


def test_notes_stand_where_the_sentences_stood():
    text = "A 61-year-old. HR 88. Rest.\n- Known COPD.\n- Drink.\n\nAge 61\n"
    assert without_echo(text, Echo(ADULT)) == (
        f"{WITHHELD} Rest.\n- {WITHHELD}\n- Drink.\n\n{WITHHELD}\n"
    )


def test_numbers_of_many_digits_need_no_name():
    echo = Echo({"labResults": {"x": 0.66613, "y": 77_119}})
    assert [echo(f"It was {shown}.") for shown in ("0.66613", "77119", "77,119", "0,66613")] == [
        True
    ] * 4
    assert not echo("It was 0.6661 or 77.")


def test_what_was_asked_with_is_no_secret():
    text = "A 61-year-old with hypertension and a heart rate of 88."
    assert Echo(ADULT)(text)
    assert not Echo(ADULT, ["I have hypertension, am 61 years old, heart rate 88."])(text)
    assert Echo(ADULT, ["For 61 days, 88 times."])(text)


# -- sentences ------------------------------------------------------------------------------------

SPLITS = [
    ("Take 1.5 mg. Rest.", ["Take 1.5 mg. ", "Rest."]), ("Dr. Who, e.g. now. Then", ["Dr. Who, e.g. now. ", "Then"]), ("1. Rest\n2. Drink", ["1. Rest\n", "2. Drink"]),
    ("5 mg p.o. Repeat", ["5 mg p.o. Repeat"]), ("Is it? Yes! So", ["Is it? ", "Yes! ", "So"]), ("(A.) B", ["(A.) ", "B"]), ("安静。水。", ["安静。", "水。"]), ("a\n\n  b", ["a\n\n  ", "b"]),
    ("drink 2 litres. systolic", ["drink 2 litres. ", "systolic"]), ("approx. five", ["approx. five"]), ("", []), ("vs. B", ["vs. B"]), ('He said "no." Then', ['He said "no." ', "Then"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "pieces"), SPLITS)
def test_sentences(text, pieces):
    assert sentences(text) == pieces


@given(st.text(alphabet="aB1. \n!?。)\"'-:,/%°", max_size=200))
def test_sentences_lose_nothing(text):
    assert "".join(sentences(text)) == text


@given(
    st.lists(
        st.sampled_from(["Give 1.5 mg. ", "Rest.\n", "- 2.5 ml\n", "x" * 90 + ". "]), max_size=9
    ),
    st.integers(1, 200),
)
def test_a_bound_cuts_no_sentence(pieces, most):
    text = "".join(pieces)
    shown = within(text, most)
    if len(text) > most:
        shown, _, note = shown.rpartition("[")
        assert "more characters of this result are left out here]" in note
        shown = shown.rstrip()
        assert len(shown) <= most
        assert shown == "" or shown in {
            text[: len("".join(pieces[:n]))].rstrip() for n in range(10)
        }
    else:
        assert shown == text


# -- generated records ----------------------------------------------------------------------------

WORDS = st.text(alphabet="bcdfgklmnprstvz", min_size=4, max_size=9).map(lambda w: f"{w}osis")
RECORDS = st.builds(
    lambda age, names, readings: on_wire(
        PatientContext(age=age, sex="male", medical_history=names, vital_signs=readings)
    ),
    st.integers(16, 95),
    st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), max_size=5),
    st.fixed_dictionaries(
        {"systolic": st.integers(100, 220), "diastolic": st.integers(40, 99), "heart_rate": st.integers(40, 180), "temperature": st.floats(35, 41).map(lambda t: round(t, 1)), "oxygenSaturation": st.integers(70, 100)}
    ),
)  # fmt: skip
DOSES = st.builds(
    "Give {0:g} {1} of {2} every {3} hours for {4} days.".format,
    st.floats(0.01, 500).map(lambda dose: float(f"{dose:.2g}")),
    st.sampled_from(["mg", "mg/kg", "ml", "g", "mcg/kg/min", "units", "puffs"]),
    st.sampled_from(["salbutamol", "adrenaline 1:1000", "0.9 % saline", "insulin"]),
    st.integers(1, 48),
    st.integers(1, 90),
)


@settings(deadline=None)
@given(RECORDS, st.lists(DOSES, min_size=1, max_size=5), st.sampled_from([" ", "\n", "\n- "]))
def test_doses_are_never_altered(record, doses, between):
    text = between.join(doses)
    assert without_echo(text, Echo(record)) == text


@settings(deadline=None)
@given(RECORDS, DOSES, st.data())
def test_what_a_record_holds_is_withheld(record, dose, data):
    vital = record["vitalSigns"]
    quotes = [
        f"For a {record['age']}-year-old man.", f"The blood pressure is {vital['systolic']}/{vital['diastolic']} mmHg.", f"Heart rate: {vital['heartRate']} bpm", f"With a temperature of {vital['temperature']} °C.",
        f"SpO2 {vital['oxygenSaturation']}%", *(f"The patient has {name}." for name in record.get("medicalHistory", ())),
    ]  # fmt: skip
    quote = data.draw(st.sampled_from(quotes))
    assert without_echo(f"{dose}\n{quote}\n{dose}", Echo(record)) == f"{dose}\n{WITHHELD}\n{dose}"


# -- cost -----------------------------------------------------------------------------------------


def patterns(size):
    yield "Known condition number 599 is watched. Give 1.5 mg. " * (size // 52)
    yield "history of " * (size // 11)
    yield "60 " * (size // 3)
    yield "-" * size
    yield "." * size
    yield " " * size
    yield "Medical history:" + "\n- acute" * (size // 8)
    yield "(" * size


@pytest.mark.parametrize("which", range(8))
def test_the_cost_grows_with_the_length_alone(which):
    record = {
        "age": 60,
        "medicalHistory": tuple(f"acute condition number {i} of the left side" for i in range(600)),
        "labResults": {f"lab {i}": 60 for i in range(200)},
    }
    echo = Echo(record)
    text = [*patterns(40_000)][which]
    assert counted(lambda: without_echo(text, echo)) < 100 * len(text)
