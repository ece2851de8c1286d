"""Which of several statements counts: versions, pages, orders, owners and moments that are equal.

Each property is about any record. A record that holds a statement twice must say once what the
newest version says, in whatever order and from whatever server the statements come.
"""

from __future__ import annotations

import itertools
import random

import pytest
from fhir_records import (
    ID,
    TODAY,
    WHOLE,
    bundle,
    condition,
    medication,
    observation,
    on_wire,
    patient,
    pressure,
    quantity,
    read,
    reasons,
    smoking,
)
from share import fewer

import langchain_svc as svc

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")

PERSON = {"resourceType": "Patient", "id": "a", "gender": "female", "birthDate": "1960-05-05"}
OF_A = {"reference": "Patient/a"}
# A statement, and the same as it was before: a result, a drug, a diagnosis, a smoker.
STATEMENTS = {
    "reading": (
        observation("2823-3", quantity(4.1, "mmol/L"), subject=OF_A),
        {"valueQuantity": quantity(6.9, "mmol/L")},
    ),
    "retracted reading": (
        observation("2823-3", quantity(6.9, "mmol/L"), subject=OF_A, status="entered-in-error"),
        {"status": "final"},
    ),
    "pressure": (
        pressure(120, 80, subject=OF_A),
        {"component": pressure(180, 110)["component"]},
    ),
    "stopped drug": (medication(status="stopped", subject=OF_A), {"status": "active"}),
    "drug": (medication(subject=OF_A), {"status": "on-hold"}),
    "refuted": (
        condition(verified="refuted", subject=OF_A),
        {"verificationStatus": {"text": "confirmed"}},
    ),
    "smoking": (
        {**smoking("266919005"), "subject": OF_A},
        {"valueCodeableConcept": smoking("449868002")["valueCodeableConcept"]},
    ),
}


def version(resource, number, **changes):
    meta = {"versionId": str(number), "lastUpdated": f"2025-06-1{number}T00:00:00Z"}
    return {"id": "x", **resource, **changes, "meta": meta}


def values(source, **options):
    return on_wire(read(source, partial=True, **options))


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_newest_version_counts_whatever_the_order(name):
    now, before = STATEMENTS[name]
    alone = values([PERSON, now])
    assert alone != values([PERSON, {**now, **before}])
    versions = [version(now, 3), version(now, 1, **before), version(now, 2, **before)]
    for order in itertools.permutations(versions):
        record = read([PERSON, *order], partial=True)
        assert on_wire(record) == alone
        assert reasons(record).count("a newer version of it is there") == 2
    # Each of the two says which is newer; where they disagree or say nothing, nothing counts.
    for keep in ("versionId", "lastUpdated"):
        two = [{**item, "meta": {keep: item["meta"][keep]}} for item in versions[:2]]
        assert values([PERSON, *two]) == values([PERSON, *two[::-1]]) == alone
    for meta in ({}, {"versionId": "9", "lastUpdated": "2025-01-01T00:00:00Z"}):
        two = [versions[0], {**versions[1], "meta": meta}]
        assert values([PERSON, *two]) == values([PERSON, *two[::-1]]) == values([PERSON])


def test_a_version_that_is_there_twice_counts_once():
    now, _ = STATEMENTS["reading"]
    record = read([PERSON, version(now, 1), version(now, 1), {**now, "id": "x"}])
    assert record.lab_results.model_dump(exclude_none=True) == {"potassium": 4.1}
    assert reasons(record) == ["the same is there already"] * 2


def test_versions_of_a_patient_that_differ_need_an_order():
    older, newer = version(PERSON, 1, id="a"), version(PERSON, 2, id="a", birthDate="1990-01-01")
    assert values([older, newer])["age"] == values([newer, older])["age"] == 35
    with pytest.raises(svc.SvcRequestError, match=r"versions of the Patient .*entries 0, 1"):
        read([PERSON, {**PERSON, "deceasedBoolean": True}])


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("place", ["Observation/x", "https://s.example/r4/{}/x", "{}/x"])
def test_what_was_deleted_does_not_count(name, place):
    now, before = STATEMENTS[name]
    statement = {"id": "x", **now, **before}
    request = {"method": "DELETE", "url": place.format(now["resourceType"])}
    for deletion in ({"request": request}, {"request": request, "resource": statement}):
        deleted = {"resourceType": "Bundle", "type": "transaction", "entry": [deletion]}
        for order in ([statement, deleted], [deleted, statement]):
            is_its_own = place != "Observation/x" or now["resourceType"] == "Observation"
            expected = values([PERSON]) if is_its_own else values([PERSON, statement])
            assert values([PERSON, *order]) == expected
    # It was made again after it was deleted.
    answered = {"request": request, "response": {"lastModified": "2025-06-11T00:00:00Z"}}
    deleted = {"resourceType": "Bundle", "type": "batch-response", "entry": [answered]}
    assert values([PERSON, deleted, version(statement, 3)]) == values([PERSON, statement])


def test_a_deletion_by_a_search_is_told():
    entry = {"request": {"method": "DELETE", "url": "Condition?code=1"}}
    record = read([PERSON, {"resourceType": "Bundle", "type": "batch", "entry": [entry]}])
    assert record.fhir_report.missing() == {"Condition": 1}


# -- two values of one moment ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (observation("2823-3", quantity(3.1, "mmol/L")), {"valueQuantity": quantity(6.9, "mmol/L")}),
        (pressure(160, 95), {"component": pressure(95, 60)["component"]}),
        (smoking("449868002"), {"valueCodeableConcept": smoking("8517006")["valueCodeableConcept"]}),
    ],
)  # fmt: skip
def test_two_values_of_one_moment_that_differ_are_none(one, other):
    both = [one, {**one, **other}]
    for order in (both, both[::-1]):
        record = read([patient(), *order])
        assert on_wire(record) == on_wire(read([patient()]))
        assert record.fhir_report.missing()["Observation"] >= 2
    assert values([patient(), one, one]) == values([patient(), one])
    # One that is issued later is the result.
    later = {**one, **other, "issued": "2025-06-15T11:00:00-05:00"}
    assert values([patient(), one, later]) == values([patient(), later, one])
    assert values([patient(), one, later]) == values([patient(), later])


def unordered(found):
    """The values of a record; its texts stand in the order of the source."""
    return {name: sorted(item) if isinstance(item, tuple) else item for name, item in found.items()}


def test_the_order_of_a_record_changes_nothing():
    chosen = random.Random(7)
    resources = [entry["resource"] for entry in WHOLE["entry"]]
    expected = unordered(values(resources))
    for _ in range(fewer(20)):
        chosen.shuffle(resources)
        assert unordered(values(resources)) == expected


# -- pages -------------------------------------------------------------------------------------------


def page(number, resources, following=None, **changes):
    links = [{"relation": "self", "url": f"https://s.example/r4/x?a=1&page={number}"}]
    if following:
        links.append({"relation": "next", "url": f"https://s.example/r4/x?page={following}&a=1"})
    entries = [{"resource": resource} for resource in resources]
    return {"resourceType": "Bundle", "type": "searchset", "link": links, "entry": entries,
            **changes}  # fmt: skip


RESOURCES = [entry["resource"] for entry in WHOLE["entry"]]
PAGES = [
    page(1, RESOURCES[:8], 2, total=len(RESOURCES)),
    page(2, RESOURCES[8:16], 3),
    page(3, RESOURCES[16:], total=len(RESOURCES)),
]


def test_pages_are_whole_in_any_order_and_with_none_missing():
    whole = unordered(values(RESOURCES))
    for order in itertools.permutations(PAGES):
        record = read(list(order))
        assert unordered(on_wire(record)) == whole
        assert record.fhir_report.further_pages is False
    for size in (1, 2):
        for some in itertools.combinations(PAGES, size):
            if not any(
                entry["resource"]["resourceType"] == "Patient" for entry in some[0]["entry"]
            ):
                some = (*some, PERSON | {"id": ID})  # noqa: PLW2901
            with pytest.raises(svc.SvcRequestError, match="one page of several"):
                read(list(some))
            assert read(list(some), partial=True).fhir_report.further_pages


@pytest.mark.parametrize(
    "pages",
    [
        [page(1, RESOURCES, 1)],
        [page(1, RESOURCES[:9], 2), page(2, RESOURCES[9:], 1)],
        [page(1, RESOURCES, total=99)],
        [page(1, [], total=1), *RESOURCES],
        [page(1, RESOURCES[:9], 2), page(4, RESOURCES[9:])],
    ],
)
def test_pages_that_do_not_add_up_are_refused(pages):
    with pytest.raises(svc.SvcRequestError, match="one page of several"):
        read(pages)


def test_what_a_search_includes_is_none_of_its_matches():
    found = page(1, RESOURCES, total=len(RESOURCES))
    read(found)
    found["entry"][3]["search"] = {"mode": "include"}
    with pytest.raises(svc.SvcRequestError, match="total"):
        read(found)


# -- whose it is -------------------------------------------------------------------------------------


def on_servers(*items):
    entries = [
        {
            "fullUrl": f"https://{host}.example/r4/{item['resourceType']}/{item.get('id', number)}",
            "resource": item,
        }
        for number, (host, item) in enumerate(items)
    ]
    return {"resourceType": "Bundle", "type": "collection", "entry": entries}


@pytest.mark.parametrize("name", ["reading", "pressure", "drug", "smoking"])
@pytest.mark.parametrize("form", ["Patient/a", "https://b.example/r4/Patient/a"])
def test_the_same_id_on_another_server_is_somebody_else(name, form):
    statement = {**STATEMENTS[name][0], "subject": {"reference": form}}
    own = {**STATEMENTS[name][0], "subject": {"reference": "https://a.example/r4/Patient/a"}}
    record = read(on_servers(("a", PERSON), ("b", statement)))
    assert on_wire(record) == on_wire(read([PERSON]))
    assert record.fhir_report.missing() == {statement["resourceType"]: 1}
    assert values(on_servers(("a", PERSON), ("b", own))) == values([PERSON, own])


def test_an_address_names_one_of_two_patients():
    two = on_servers(
        ("a", PERSON),
        ("b", {**PERSON, "gender": "male"}),
        ("a", {**STATEMENTS["drug"][0], "subject": OF_A}),
        ("b", {**STATEMENTS["reading"][0], "subject": OF_A}),
    )
    of_a = values(two, patient="https://a.example/r4/Patient/a")
    assert of_a == values([PERSON, STATEMENTS["drug"][0]])
    of_b = values(two, patient="https://b.example/r4/Patient/a")
    assert of_b["sex"] == "male"
    assert of_b["labResults"] == {"potassium": 4.1}
    for name in (None, "a", "Patient/a"):
        with pytest.raises(svc.SvcRequestError, match="2 patients"):
            read(two, patient=name)
    with pytest.raises(svc.SvcRequestError, match="id of a Patient"):
        read(two, patient="no/such thing")


def test_a_reference_means_its_own_server():
    named = {"resourceType": "Medication", "id": "1", "code": {"text": "insulin"}}
    other = {**named, "code": {"text": "heparin"}}
    request = medication(
        medicationCodeableConcept=None,
        medicationReference={"reference": "Medication/1/_history/2"},
        subject=OF_A,
    )
    for order in itertools.permutations(
        [("a", PERSON), ("a", named), ("b", other), ("a", request)]
    ):
        assert read(on_servers(*order)).current_medications == ("insulin",)
    # From no server, it may be either.
    unclear = read([on_servers(("a", PERSON), ("a", named), ("b", other)), request], partial=True)
    assert unclear.current_medications == ()
    assert unclear.fhir_report.missing() == {"MedicationRequest": 1}


@pytest.mark.parametrize(
    ("specimen", "there"),
    [
        ({"type": {"coding": [{"code": "119364003"}]}}, True),
        ({"type": {"coding": [{"code": "VEN", "display": "Venous blood"}]}}, True),
        ({"type": {"text": "Serum"}, "subject": {"reference": f"Patient/{ID}"}}, True),
        ({}, True),
        ({"type": {"text": "Urine"}}, False),
        ({"type": {"coding": [{"code": "122575003"}]}}, False),
        ({"type": {"text": "Serum"}, "subject": {"reference": "Patient/b"}}, False),
    ],
)
def test_a_specimen_is_the_patients_and_of_what_the_code_is_for(specimen, there):
    resource = {"resourceType": "Specimen", "id": "s", **specimen}
    sugar = observation("2345-7", quantity(300, "mg/dL"), specimen={"reference": "Specimen/s"})
    inside = {
        **sugar,
        "contained": [resource],
        "specimen": {"reference": "#s"},
    }
    for source in ([patient(), sugar, resource], [patient(), inside]):
        record = read(source)
        assert bool(record.lab_results) is there
        assert record.fhir_report.missing() == ({} if there else {"Observation": 1})


@pytest.mark.parametrize(
    ("codes", "there"),
    [
        ([("http://loinc.org", "8480-6"), ("http://snomed.info/sct", "271649006")], True),
        ([("http://loinc.org", "8480-6"), ("urn:x", "SYS")], True),
        ([("http://loinc.org", "8480-6"), ("http://loinc.org", "8440-0")], False),
        ([("http://loinc.org", "8480-6"), ("http://loinc.org", "8462-4")], False),
        ([("http://loinc.org", "8480-6"), ("http://snomed.info/sct", "251071003")], False),
    ],
)
def test_a_code_beside_another_must_mean_the_same(codes, there):
    code = {"coding": [{"system": system, "code": code} for system, code in codes]}
    part = {"code": code, "valueQuantity": quantity(120, "mm[Hg]")}
    for resource in (
        {**observation("8480-6", quantity(120, "mm[Hg]")), "code": code},
        observation("85354-9", component=[part]),
    ):
        record = read(bundle(resource))
        assert bool(record.vital_signs) is there
        assert bool(record.fhir_report.missing()) is not there


def test_the_record_of_a_day_is_the_same_from_one_server_or_without_one():
    plain = [PERSON, *(statement for statement, _ in STATEMENTS.values())]
    served = on_servers(*(("a", resource) for resource in plain))
    assert svc.PatientContext.from_fhir(served, today=TODAY) == svc.PatientContext.from_fhir(
        plain, today=TODAY
    )
