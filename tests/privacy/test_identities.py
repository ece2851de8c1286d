"""What `Pseudonyms.from_fhir` takes from a record, wherever it stands there, and what it leaves."""

from __future__ import annotations

import copy
import random

import pytest
from share import fewer

from langchain_svc import Pseudonyms

PATIENT = {"resourceType": "Patient", "name": [{"family": "Aaaaberg"}], "birthDate": "1950-03-04"}
URL = "http://hl7.org/fhir/StructureDefinition/"
STREET = [
    {"url": f"{URL}iso21090-ADXP-streetName", "valueString": "Wumpusgasse"},
    {"url": f"{URL}iso21090-ADXP-houseNumber", "valueString": "77"},
]
OWN_NAME = [
    {"url": f"{URL}humanname-own-prefix", "valueString": "van"},
    {"url": f"{URL}humanname-own-name", "valueString": "Quibbleton"},
]
MAIDEN_NAME = {"url": f"{URL}patient-mothersMaidenName", "valueString": "Quibbleton"}
BIRTH_PLACE = {"url": f"{URL}patient-birthPlace", "valueAddress": {"city": "Quuxham"}}
CITIZEN = {
    "url": f"{URL}patient-citizenship",
    "extension": [{"url": "x", "valueIdentifier": {"value": "ID-0099887"}}],
}
NUMBER = {"system": "urn:oid:1.2.3", "value": "ID-0099887"}
NAME = {"display": "Zoltan Quibbleton"}
# A resource, and what of it is hidden.
ROWS = [
    ({"subject": {"reference": "Patient/a", "identifier": {"value": "ID-0099887"}}}, "ID-0099887"),
    ({"identifier": [NUMBER]}, "id0099887"),
    ({"identifier": {"value": "ID-0099887"}}, "ID-0099887"),
    ({"accessionIdentifier": NUMBER}, "ID-0099887"),
    ({"requisition": {"value": "ID-0099887"}}, "ID-0099887"),
    ({"related": [{"reference": {"value": "ID-0099887"}}]}, "ID-0099887"),
    ({"hospitalization": {"preAdmissionIdentifier": NUMBER}}, "ID-0099887"),
    ({"qualification": [{"identifier": [NUMBER]}]}, "ID-0099887"),
    ({"payor": [{"type": "Organization", "identifier": NUMBER}]}, "ID-0099887"),
    ({"subscriberId": "K220635158"}, "K 220635158"),
    ({"dependent": "K220635158-01"}, "K220635158-01"),
    ({"insurance": [{"preAuthRef": ["PA-0099887"]}]}, "PA-0099887"),
    ({"class": [{"type": {"text": "group"}, "value": "GRP-0099887"}]}, "GRP-0099887"),
    ({"serialNumber": "SN-0099887", "udiCarrier": [{"deviceIdentifier": "1"}]}, "SN-0099887"),
    ({"udiCarrier": [{"carrierHRF": "(01)00844588(21)S-0099887"}]}, "(01)00844588(21)S-0099887"),
    ({"series": [{"uid": "1.2.840.113619.2.176"}]}, "1.2.840.113619.2.176"),
    ({"series": [{"instance": [{"uid": "1.2.840.113619.2.176"}]}]}, "1.2.840.113619.2.176"),
    ({"extension": [CITIZEN]}, "ID-0099887"),
    ({"note": [{"authorString": "Zoltan Quibbleton", "text": "x"}]}, "Mr Quibbleton"),
    ({"note": [{"authorReference": NAME, "text": "x"}]}, "Zoltan Quibbleton"),
    ({"signature": [{"who": NAME}]}, "Zoltan Quibbleton"),
    ({"agent": [{"name": "Zoltan Quibbleton"}]}, "Zoltan Quibbleton"),
    ({"policyHolder": NAME}, "Quibbleton, Zoltan"),
    ({"attester": [{"party": NAME}]}, "Zoltan Quibbleton"),
    ({"collection": {"collector": NAME}}, "Zoltan Quibbleton"),
    ({"asserter": NAME | {"reference": "urn:uuid:7c9e6679"}}, "Zoltan Quibbleton"),
    ({"asserter": NAME | {"reference": "PractitionerRole/7"}}, "Zoltan Quibbleton"),
    ({"x": NAME | {"reference": "Practitioner?identifier=7"}}, "Zoltan Quibbleton"),
    ({"x": NAME | {"type": "RelatedPerson"}}, "Zoltan Quibbleton"),
    ({"x": {"valueHumanName": {"family": "Quibbleton"}}}, "Mr Quibbleton"),
    ({"name": [{"_family": {"extension": OWN_NAME}}]}, "van Quibbleton"),
    ({"name": [{"family": "Xu", "_family": {"extension": OWN_NAME}}]}, "Mrs Quibbleton"),
    ({"extension": [MAIDEN_NAME]}, "Mrs Quibbleton"),
    ({"extension": [BIRTH_PLACE]}, "Quuxham"),
    ({"address": [{"_line": [{"extension": STREET}]}]}, "Wumpusgasse 77"),
    ({"address": [{"_line": [{"extension": STREET}]}]}, "77 Wumpusgasse"),
    ({"location": {"address": {"line": ["77 Wumpus Lane"]}}}, "77 Wumpus Ln"),
    ({"telecom": [{"use": "mobile", "value": "0171 5550134"}]}, "+49 171 555-0134"),
    ({"x": {"valueContactPoint": {"system": "phone", "value": "0171 5550134"}}}, "0171/5550134"),
    ({"managingOrganization": {"display": "Quibbleton Clinic"}}, "quibbleton clinic"),
    ({"performer": [{"display": "Quibbleton Clinic"}]}, "QUIBBLETON CLINIC"),
    ({"assigner": {"display": "Quux Trust"}}, "Quux Trust"),
    ({"deceasedDateTime": "2021-05-06T08:00:00Z"}, "6 May 2021"),
    ({"contact": [{"name": {"text": "Zoltan Quibbleton"}}]}, "Zoltan Quibbleton"),
]  # fmt: skip
# And of these nothing is.
HARMLESS = [
    ({"valueQuantity": {"value": "1250.5", "unit": "mg", "code": "mg"}}, "1250.5 mg"),
    ({"code": {"coding": [{"system": "http://loinc.org", "code": "8480-6", "display": "Blood"}]}}, "8480-6 Blood"),
    ({"valueString": "Grade 4711 tumour"}, "Grade 4711 tumour"),
    ({"identifier": [{"system": "urn:x", "value": "1"}, {"value": "A9"}, {"value": "none"}]}, "1 A9 none"),
    ({"medicationReference": {"reference": "Medication/7", "display": "Warfarin 5 mg"}}, "Warfarin 5 mg"),
    ({"performer": [{"reference": "Device/7", "display": "Glucose meter"}]}, "Glucose meter"),
    ({"extension": [{"url": "http://x", "valueCode": "M1234", "value": "V1234"}]}, "M1234 V1234"),
    ({"location": {"display": "Emergency Department"}}, "the emergency department"),
    ({"meta": {"source": "http://server.example/x", "versionId": "4711"}}, "server.example 4711"),
    ({"performer": [{"display": "Quibbleton Clinic"}]}, "a clinic near Quibbleton"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "text"), ROWS)
def test_what_identifies_is_hidden_wherever_a_record_has_it(part, text):
    record = [PATIENT, {"resourceType": "Basic", **part}]
    hidden = Pseudonyms.from_fhir(record).hide(text)
    assert hidden.removeprefix("Mr ").removeprefix("Mrs ")[:1] == "["
    assert hidden.count("]") == 1
    assert hidden.endswith("]")
    assert Pseudonyms.from_fhir([PATIENT]).hide(text) == text


@pytest.mark.parametrize(("part", "text"), HARMLESS)
def test_what_says_nothing_of_a_person_stays(part, text):
    record = [PATIENT, {"resourceType": "Basic", **part}]
    assert Pseudonyms.from_fhir(record).hide(text) == text


def test_the_patient_is_person_1_whatever_a_record_begins_with():
    doctor = {"resourceType": "Practitioner", "name": [{"family": "Quibbleton"}]}
    note = {"resourceType": "Basic", "note": [{"authorString": "Frobnitz"}]}
    hidden = Pseudonyms.from_fhir([note, doctor, PATIENT]).hide("Aaaaberg, Quibbleton, Frobnitz")
    assert hidden == "[PERSON_1], [PERSON_2], [PERSON_3]"


# -- damage ----------------------------------------------------------------------------------------

ODD = [None, True, 0, -1.5, "", "x", [], {}, ["x"], {"a": 1}, [[["x"]]], {"value": {"value": []}}]  # fmt: skip


def places_of(value):
    """Each place of a record: the object or list that holds it, and its name or index."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in [*inner]:
        yield value, key
        if isinstance(part, (dict, list)):
            yield from places_of(part)


def test_what_is_damaged_is_passed_over():
    resources = [{"resourceType": "Basic", **part} for part, _ in ROWS]
    rng = random.Random(7)
    for _ in range(fewer(4_000)):
        damaged = copy.deepcopy(rng.sample(resources, 4))
        for _ in range(rng.randint(1, 3)):
            holder, key = rng.choice([*places_of(damaged)])
            holder[key] = copy.deepcopy(rng.choice(ODD))
        hidden = Pseudonyms.from_fhir([PATIENT, *damaged]).hide("Mrs Aaaaberg, 4.3.1950, Warfarin")
        assert hidden == "Mrs [PERSON_1], [DATE_1], Warfarin"


@pytest.mark.parametrize("kind", [["x"], {"a": 1}, 7, None, True])
def test_a_resource_of_an_odd_type_is_passed_over(kind):
    assert Pseudonyms.from_fhir([{"resourceType": kind}, PATIENT]).hide("Aaaaberg") == "[PERSON_1]"
