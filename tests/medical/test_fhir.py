"""PatientContext.from_fhir: what it takes of a record, leaves out and never reads."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from fhir_records import (
    EXPECTED,
    ID,
    NAMES,
    OWN,
    RXNORM,
    TODAY,
    WHOLE,
    bundle,
    concept,
    condition,
    medication,
    observation,
    patient,
    pressure,
    quantity,
    read,
    reasons,
    refers,
    refused,
    sent,
    taken,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from share import fewer

import langchain_svc as svc
from langchain_svc.medical.patient import on_wire

Bundle = pytest.importorskip("fhir.resources.R4B.bundle", reason="the extra fhir is not installed").Bundle  # fmt: skip


SECRET = NAMES["family"]


def test_the_report_says_what_was_done_and_no_value():
    report = read(WHOLE).fhir_report
    assert isinstance(report, svc.FhirReport)
    by_field = {item.field: item for item in report.taken}
    temperature = by_field["vital_signs.temperature"]
    assert (temperature.entry, temperature.code) == (12, "8310-5")
    assert (temperature.converted_from, temperature.unit) == ("[degF]", "Cel")
    assert by_field["lab_results.creatinine"].converted_from == "umol/L"
    assert by_field["vital_signs.heart_rate"].converted_from == ""
    assert [item.entry for item in report.taken if item.field == "medical_history"] == [2, 3, 6]
    assert report.not_read == {"Encounter": 1, "Claim": 2}
    assert [(item.entry, item.resource) for item in report.left_out] == [
        (4, "Condition"), (5, "Condition"), (9, "MedicationRequest"),
    ]  # fmt: skip
    for view in (str(report), repr(report)):
        for value in ("hypertension", "lisinopril", "153", "100.4", "1963", "2025", ID, "61"):
            assert value not in view, value
    for line in ("age: patient, years [entry 0]", "temperature: °F to °C [entry 12 (of that day)]"):
        assert f"  {line}" in str(report).splitlines()
    assert svc.PatientContext(age=3).fhir_report is None


def test_objects_of_a_library_are_refused():
    with pytest.raises(svc.SvcRequestError, match="model_dump_json"):
        svc.PatientContext.from_fhir(Bundle(type="collection"))


def test_a_whole_bundle_becomes_a_record_in_which_nothing_identifies():
    record = read(WHOLE)
    assert on_wire(record) == EXPECTED
    assert record == svc.PatientContext(**EXPECTED)
    pickled = pickle.dumps(record)
    again = pickle.loads(pickled)
    assert (again, again.fhir_report) == (record, record.fhir_report)
    everything = f"{on_wire(record)}{vars(record)}{pickled}{record.fhir_report}"
    for mark in (*NAMES.values(), ID, "1963-06-16", "urn:uuid"):
        assert mark not in everything, mark


# -- the patient -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("born", "today", "age"),
    [
        ("1963-06-15", TODAY, 62),
        ("1963-06-16", TODAY, 61),
        ("1970", TODAY, 55),
        ("1970-07", TODAY, 54),
        ("2025-06-15", TODAY, 0),
        ("2025-01-10", TODAY, 0.43),
        ("2023-06-16", TODAY, 2.0),
        ("2023-06-15", TODAY, 2),
        ("2000-02-29", date(2001, 2, 28), 1.0),
        ("2025-06-14", TODAY, 0.0),
        ("2025-05-19", TODAY, 0.07),
        ("1963-06-16", datetime(2025, 6, 15, 21, tzinfo=UTC), 61),
    ],
)
def test_ages(born, today, age):
    source = bundle(first=patient(birthDate=born))
    assert svc.PatientContext.from_fhir(source, today=today).age == age


def test_the_age_of_today_is_the_default():
    born = datetime.now().astimezone().date()
    source = bundle(first=patient(birthDate=f"{born.year - 40}-01-01"))
    assert svc.PatientContext.from_fhir(source).age == 40


def test_a_bundle_without_a_patient():
    source = bundle(condition(), pressure(120, 80))
    del source["entry"][0]
    del source["entry"][1]["resource"]["subject"]  # what names nobody is the patient's
    assert on_wire(read(patient())) == {"age": 61, "sex": "female"}
    assert on_wire(read(source)) == {
        "medicalHistory": ("Essential hypertension (disorder)",),
        "vitalSigns": {"systolic": 120, "diastolic": 80},
    }


# -- whose it is -----------------------------------------------------------------------------------

STRANGERS = [
    "urn:uuid:11111111-0000-4000-8000-000000000000",
    "Patient/other",
    "https://a.example/fhir/Patient/other",
]


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize(
    "make",
    [
        condition,
        medication,
        lambda **c: observation("8867-4", quantity(88, "/min"), **c),
        lambda subject=OWN: {
            "resourceType": "AllergyIntolerance",
            "code": {"text": "x"},
            "patient": subject,
        },
    ],
)
def test_what_is_another_patients_is_an_error(make, stranger):
    source = bundle(make(subject={"reference": stranger}))
    with pytest.raises(
        svc.SvcRequestError, match=r"entry\[1\].*(subject|patient) is another patient"
    ) as caught:
        svc.PatientContext.from_fhir(source, partial=True)
    assert stranger not in str(caught.value)
    without = {**source, "entry": [{"resource": make()}, *source["entry"][1:]]}
    with pytest.raises(svc.SvcRequestError, match="another patient"):
        svc.PatientContext.from_fhir(without)


SERVER = "https://a.example/fhir"


@pytest.mark.parametrize("before", ["Patient/", f"{SERVER}/Patient/", "urn:uuid:"])
@pytest.mark.parametrize("after", ["", "/_history/3"])
def test_forms_of_a_reference_to_the_patient(before, after):
    reference = before + ID + (after if "Patient" in before else "")
    source = bundle(condition(subject={"reference": reference}))
    assert len(read(source).medical_history) == 1
    source["entry"][0]["fullUrl"] = f"{SERVER}/Patient/{ID}"
    assert len(read(source).medical_history) == 1


GROUP = {"resourceType": "Group", "type": "person", "actual": True}
UNTOLD = [
    {"reference": "Group/1"},
    {"reference": "Device/1"},
    {"reference": "#p"},
    {"reference": "Patient?identifier=x"},
    {"identifier": {"value": "x"}},
    {"display": "x"},
    {},
    {"reference": "urn:uuid:00000000-0000-4000-8000-000000000001"},
]


@pytest.mark.parametrize("subject", UNTOLD)
def test_what_cannot_be_told_to_be_the_patients_is_left_out(subject):
    record = taken(GROUP, observation("8867-4", quantity(88, "/min"), subject=subject))
    assert record.vital_signs is None
    assert "subject" in record.fhir_report.left_out[0].reason


# -- conditions and medications --------------------------------------------------------------------


ATC = "http://www.whocc.no/atc"


def test_medications_by_reference():
    rxnorm = concept("1", "warfarin 5 MG", RXNORM)
    resource = {"resourceType": "Medication", "id": "m1", "code": rxnorm}
    inside = {**resource, "code": concept("2", "digoxin 0.125 MG", ATC)}
    record = taken(
        resource,
        refers("urn:uuid:00000000-0000-4000-8000-000000000001"),
        refers("Medication/m1"),
        {**refers("#m1"), "contained": [inside]},
        refers("Medication/elsewhere", display="aspirin 81 MG"),
        refers("Medication/elsewhere"),
    )
    assert record.current_medications == ("warfarin 5 MG", "digoxin 0.125 MG", "aspirin 81 MG")
    assert [line.entry for line in record.fhir_report.left_out] == [3, 6]
    bad = {**refers("#m1"), "contained": [{**inside, "code": {"text": 5}}]}
    assert refused(bad) == "code.text must be a text"


LOCAL = "http://hospital.example/codes"


@pytest.mark.parametrize(
    ("code", "text", "by_code"),
    [
        (
            {
                "coding": [
                    {"system": "http://snomed.info/sct", "code": "1", "display": "Diabetes"}
                ],
                "text": "diabetes",
            },
            "Diabetes",
            "SNOMED CT 1",
        ),
        ({"text": "  sugar \n disease "}, "sugar disease", None),
        ({"coding": [{"system": LOCAL, "display": "sugar"}]}, "sugar", None),
        ({"coding": [{"system": LOCAL, "code": "sugar 1"}]}, "codes sugar 1", None),
        (
            {"coding": [{"system": "http://hl7.org/fhir/sid/icd-10", "code": "E11.9"}]},
            "ICD-10 E11.9",
            "ICD-10 E11.9",
        ),
    ],
)
def test_words_of_a_terminology_go_first(code, text, by_code):
    record = taken(condition(code=code))
    assert record.medical_history == (text,)
    assert record.fhir_report.taken[-1].note == ("" if by_code else "typed")
    without = taken(condition(code=code), typed_texts="leave_out")
    assert without.medical_history == ((by_code,) if by_code else ())


# -- observations ----------------------------------------------------------------------------------


def readings(*resources, **options):
    values = sent(*resources, **options)
    return {**values.get("vitalSigns", {}), **values.get("labResults", {})}


@given(st.text() | st.text("mgdLU[]{}10*^/.-+%k"))
def test_any_text_as_a_unit_is_read_or_refused(text):
    for unit in (text, f"mg/{text}"):
        record = taken(observation("2160-0", quantity(1, unit)))
        pattern = "no unit|another one than its code|cannot be converted|FHIR R4|is not between"
        assert record.lab_results or re.search(pattern, *reasons(record))


def test_numbers_in_the_right_unit_stay_as_they_are():
    creatinine = observation("2160-0", quantity(0.8999999, "mg/dL"))
    values = readings(pressure(120, Decimal("80.0")), creatinine)
    assert repr(values) == "{'systolic': 120, 'diastolic': 80.0, 'creatinine': 0.8999999}"


def test_the_unit_of_a_laboratory_result_can_be_chosen():
    troponin = observation("10839-9", quantity(0.04, "ng/mL"))
    observations = [troponin, observation("2160-0", quantity(1, "mg/dL"))]
    record = taken(*observations, units={"troponin": "ng/L", "creatinine": "umol/L"})
    assert on_wire(record)["labResults"] == {"troponin": 40, "creatinine": 88.4017}
    assert {line.unit for line in record.fhir_report.taken if line.code} == {"ng/L", "umol/L"}
    own = taken(observation("99999-9", quantity(5, "ng/L")), lab_codes={"99999-9": "troponin"})
    assert own.lab_results.troponin == 0.005
    narrow = taken(*observations, windows={"creatinine": timedelta(0), "lab_results": None})
    assert on_wire(narrow)["labResults"] == {"troponin": 0.04, "creatinine": 1}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"units": {"creatinine": "percents"}},
            "'percents' for 'creatinine', which is not a UCUM unit.*mg/dL",
        ),
        (
            {"units": {"creatinine": "Cel"}},
            "'Cel' for 'creatinine', to which mg/dL cannot be converted",
        ),
        ({"units": {"troponin": "nmol/L"}}, "to which ng/mL cannot be converted"),
        ({"lab_codes": {"99999-9": "it"}, "units": {"it": "furlong"}}, "not a UCUM unit"),
        ({"lab_codes": "usual"}, "'usual'; it takes a mapping or 'common'"),
        ({"lab_codes": {"4548-4": "a1c"}, "units": {"a1c": "mg/dL"}}, "'mg/dL' for 'a1c'"),
        ({"lab_codes": {"glucose": "glucose"}}, "LOINC codes such as"),
        ({"lab_codes": {"2345-7": "sugar"}}, "units must have a UCUM unit"),
        ({"units": {"temperature": "[degF]"}}, "names of laboratory results: troponin, .*bnp"),
        ({"units": {"sugar": "mg/dL"}}, "names of laboratory results"),
        ({"lab_codes": {"99999-9": "<b>"}, "units": {"<b>": "1"}}, "at most 60 letters"),
        ({"windows": {"troponim": None}}, "windows has 'troponim'; it takes .*troponin"),
        ({"risk_factors": [5]}, "risk_factors"),
        ({"images": ["/etc/passwd"]}, r"images\.0: "),
        ({"typed_texts": "x"}, "typed_texts is 'x'; it takes"),
        *(
            ({"windows": {"vital_signs": width}}, "a timedelta of 0 or more")
            for width in (24, timedelta(-1), "1 day")
        ),
    ],
)
def test_options_are_checked(options, reason):
    with pytest.raises(svc.SvcRequestError, match=reason):
        taken(**options)


# -- hostile bundles -------------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats()
    | st.sampled_from(["", "Quuxberg482", "2020-02-30", "#m", "Patient/x", "\x00", "<b>"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Quuxberg482", "code", "coding", "value", "reference", "resourceType", "id"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def places(value, path=()):
    yield path
    if isinstance(value, (dict, list)):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, name))


PERIOD = {"start": "2020-01-01", "end": "2031-12-31T23:59:60Z"}
RICH = bundle(
    *(entry["resource"] for entry in WHOLE["entry"][1:]),
    {
        "resourceType": "Medication",
        "id": "m",
        "code": {"text": "Metformin"},
        "ingredient": [
            {
                "itemCodeableConcept": {"text": "x"},
                "strength": {"numerator": quantity(500, "mg"), "denominator": quantity(1, "g")},
            }
        ],
    },
    medication(
        medicationCodeableConcept=None,
        medicationReference={"reference": "Medication/m"},
        authoredOn="2025-06-01",
        dispenseRequest={"validityPeriod": PERIOD},
        dosageInstruction=[
            {"text": "daily", "timing": {"repeat": {"boundsDuration": quantity(9, "wk")}}}
        ],
    ),
    medication(display="X", dosageInstruction=[{"timing": {"repeat": {"boundsPeriod": PERIOD}}}]),
    medication(
        "MedicationStatement",
        "Y",
        dosage=[{"text": "daily"}],
        effectivePeriod=PERIOD,
        dateAsserted="2025",
    ),
    {
        "resourceType": "AllergyIntolerance",
        "patient": {"reference": f"Patient/{ID}"},
        "code": {"text": "nuts"},
        "criticality": "high",
        "onsetPeriod": PERIOD,
        "reaction": [{"manifestation": [{"text": "rash"}], "severity": "mild"}],
    },
    condition(
        code=concept("C50.9", "breast", "http://hl7.org/fhir/sid/icd-10"),
        onsetPeriod=PERIOD,
        abatementPeriod=PERIOD,
    ),
    condition(
        display="Z",
        bodySite=[concept("1", "site")],
        severity=concept("2", "severe"),
        stage=[{"summary": {"text": "IV"}}],
        extension=[
            {"url": "http://x.example/own", "extension": [{"url": "code", "valueCode": "A"}]}
        ],
    ),
    pressure(
        140,
        90,
        at="2025-06-15T08:00:00-05:00",
        bodySite=concept("368209003", "arm"),
        meta={"security": [{"code": "N"}]},
    ),
    observation("63895-7", valueString="nursing", at="2025-06-14"),
    {
        "resourceType": "Consent",
        "status": "active",
        "provision": {"type": "permit", "provision": [{"type": "permit"}]},
    },
    {
        "resourceType": "Procedure",
        "status": "completed",
        "subject": {"reference": f"Patient/{ID}"},
        "code": {"text": "x"},
        "performedPeriod": PERIOD,
    },
    observation("82810-3", valueCodeableConcept=concept("77386006", "x")),
    observation("11778-8", valueDateTime="2025-09-01"),
    observation("63895-7", valueBoolean=True),
    observation("29463-7", quantity(80, "kg")),
)


def value_at(path, value=RICH):
    for name in path:
        value = value[name]
    return value


PLACES = [path for path in places(RICH) if path and path[:1] == ("entry",)]


def test_what_is_changed_below_is_read_whole():
    record = read(RICH)
    medicines = (
        "Metformin (ordered 2025-06, for 9 weeks); contains x 500 mg / 1 g; daily",
        "X (2020-01 to 2031-12)",
        "Y (2020-01 to 2031-12); daily",
    )
    assert record.current_medications[-3:] == medicines
    assert record.fhir_report.missing() == {
        "Condition": 1, "MedicationRequest": 1, "dosage": 1, "extension": 1,
    }  # fmt: skip
    assert len(record.medical_history) == 11


@settings(max_examples=fewer(300))
@given(st.data())
def test_a_bundle_changed_anywhere_is_read_or_refused_without_its_values(data):
    changed = copy.deepcopy(RICH)
    for path in data.draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=2)):
        container = changed
        try:
            for name in path[:-1]:
                container = container[name]
            container[path[-1]] = data.draw(JSON)
        except (LookupError, TypeError):  # the first change took the place of the second
            continue
    try:
        record = read(changed)
    except svc.SvcRequestError as error:
        message = str(error)
    else:
        message = str(record.fhir_report)
    for mark in ("Quuxberg", "Zebulonia", "MRN-88231", "1963"):
        assert mark not in message


# Elements that hold words; FHIR allows white space in them, and some systems export it.
WORDED = [
    path
    for path in PLACES
    if path[-1] in {"display", "text", "unit", "valueString"} and isinstance(value_at(path), str)
]


@given(st.sampled_from(WORDED), st.text(" \t\r\n", min_size=1, max_size=3))
def test_words_of_white_space_alone_are_read_as_none(path, space):
    *above, name = path
    blank = copy.deepcopy(RICH)
    value_at(above, blank)[name] = space
    without = copy.deepcopy(RICH)
    del value_at(above, without)[name]
    assert read(blank) == read(without)
    assert read(blank).fhir_report == read(without).fhir_report


# -- what is there and what is not -----------------------------------------------------------------


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch):
    from langchain_svc.medical.fhir import elements as reading

    reading._model.cache_clear()
    monkeypatch.setitem(sys.modules, "fhir.resources.R4B.patient", None)
    with pytest.raises(ImportError, match=r"langchain-svc\[fhir\]"):
        taken()


def test_observations_of_other_codes_are_counted_but_not_another_patients():
    other = observation("8303-0", {"not": "a quantity"})
    record = taken(other, other)
    assert record.fhir_report.not_read == {"Observation 8303-0": 2}
    assert record.fhir_report.left_out == ()
    with pytest.raises(svc.SvcRequestError, match="another patient"):
        taken({**other, "subject": {"reference": STRANGERS[0]}})


def test_a_display_is_not_another_medication():
    resource = {"resourceType": "Medication", "code": concept("1", "warfarin 5 MG", ATC)}
    references = ({"display": "aspirin"}, {"reference": "Medication/None", "display": "digoxin"})
    source = bundle(resource, *(refers(**reference) for reference in references))
    for entry in source["entry"]:
        del entry["fullUrl"]
    assert svc.PatientContext.from_fhir(source).current_medications == ("aspirin", "digoxin")


def nested(depth):
    extension = {"url": "http://x.example", "valueString": "x"}
    for _ in range(depth):
        extension = {"url": "http://x.example", "extension": [extension]}
    return extension


@pytest.mark.parametrize("depth", [3, 2000])
def test_depth_is_bounded(depth):
    assert svc.PatientContext.from_fhir(bundle(first=patient(name=[nested(depth)])))
    resource = condition(code={"text": "x", "extension": [nested(depth)]})
    if depth == 3:
        assert taken(resource).medical_history == ("x",)
    else:
        assert "nested" in refused(resource)


# -- one bad element --------------------------------------------------------------------------------

BAD = [
    (
        observation("8310-5", {"value": 98.6137}),
        "it has no unit; it is sent in °C",
    ),
    (observation("9279-1", quantity(986.6137, "/min")), "is not between 1 and 150"),
    (
        observation("8310-5", quantity(98.6137, "Cel")),
        r"it is not between 20 and 45 °C",
    ),
    (
        observation("9279-1", quantity(18, "/min"), at="2025-06-15 10:00"),
        "effectiveDateTime is not what FHIR R4 allows",
    ),
    (pressure(93.6137, 98.6137), "diastolic must be below systolic.*exchanged"),
    (condition(display="a <b>98.6137</b>"), r"entry\[2\].* \(Condition\): .*markup"),
    (condition(display="x" * 2100), "at most 2,000 characters"),
    ({**condition(), "code": {"text": 5}}, "must be a text"),
    (
        observation("2160-0", quantity(98.6137, "furlong")),
        "unit cannot be converted; it is sent in mg/dL",
    ),
    (
        observation("10839-9", quantity(98.6137, "mol/L")),
        "cannot be converted; it is sent in ng/mL",
    ),
    (observation("2160-0", quantity(-98.6137, "mg/dL")), "creatinine: it is not between"),
    (patient(birthDate="2999-01-01"), "birthDate is after"),
    (patient(birthDate=SECRET), r"entry\[0\]\.resource \(Patient\): birthDate is not what"),
    (patient(birthDate="1963-13-41"), "birthDate is not what"),
    (observation("9279-1", {"value": SECRET}), r"entry\[2\].*valueQuantity\.value is not what"),
    (
        observation("9279-1", {SECRET: 1}),
        "valueQuantity holds an element that FHIR R4 does not have",
    ),
    ({**condition(), "assertedDate": SECRET}, "holds an element of FHIR STU3 or R5"),
    ({"resourceType": "Observation", "status": "final"}, "code is missing"),
    (
        observation("9279-1", quantity(18, "/min"), valueCodeableConcept={}),
        "the resource is not what",
    ),
    (observation("9279-1", quantity(float("nan"), "/min")), "value is not what"),
    (
        medication(medicationCodeableConcept={"text": [SECRET]}),
        r"medicationCodeableConcept\.text must be a text",
    ),
]


@pytest.mark.parametrize(("bad", "expected"), BAD)
def test_one_bad_element_loses_itself_and_not_the_record(bad, expected):
    good = [condition("1", "good"), observation("8867-4", quantity(88, "/min"))]
    first = bad if bad["resourceType"] == "Patient" else patient()
    source = bundle(good[0], *([] if first is bad else [bad]), good[1], first=first)
    record = read(source)
    report = str(record.fhir_report)
    assert not [mark for mark in (".6137", SECRET, "1963-13") if mark in report]
    assert record.medical_history == ("good",)
    assert record.vital_signs.heart_rate == 88
    assert record.vital_signs.systolic is None
    assert {line.entry for line in record.fhir_report.left_out} == {0 if first is bad else 2}
    expected = expected.rpartition(": ")[2].rpartition(".*")[2]
    assert any(re.search(expected, reason) for reason in reasons(record))


def test_what_is_too_many_is_left_out():
    conditions = [condition(display=f"c{n}") for n in range(230)]
    record = taken(*conditions, medication())
    assert record.medical_history == tuple(f"c{n}" for n in range(200))
    assert [item.entry for item in record.fhir_report.left_out] == list(range(201, 231))
    entries = ", ".join(map(str, range(201, 221)))
    line = f"condition: it takes at most 200 entries [entries {entries} and 10 more]"
    assert line in str(record.fhir_report)
