"""Patients, as FHIR tells of them: parts of bundles for the tests of `PatientContext.from_fhir`."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import langchain_svc as svc
from langchain_svc.medical.patient import on_wire

TODAY = date(2025, 6, 15)
ID = "5cbc121b-cd71-4428-b8b7-31e53eba8184"
OWN = {"reference": f"urn:uuid:{ID}"}
# What identifies the patient, each in another element and none of it in a field that is sent.
NAMES = {
    "family": "Quuxberg482",
    "given": "Zebulonia",
    "maiden": "Frobnitz",
    "mrn": "MRN-88231-77",
    "ssn": "999-44-1123",
    "phone": "555-773-9012",
    "street": "77 Wumpus Terrace Suite 4",
    "city": "Flurbville",
    "postal": "90417",
    "mail": "zq@flurb.example",
    "contact": "Grobulina",
    "doctor": "Dorble Hackenbush",
}


def as_json(value):
    return json.dumps(value, default=float)


def quantity(value, code, unit=None, **more):
    return {
        "value": value,
        "unit": unit or code,
        "system": "http://unitsofmeasure.org",
        "code": code,
        **more,
    }


def concept(code, display, system="http://snomed.info/sct"):
    return {"coding": [{"system": system, "code": code, "display": display}], "text": display}


def patient(**changes):
    return {
        "resourceType": "Patient",
        "id": ID,
        "text": {
            "status": "generated",
            "div": f"<div xmlns='http://www.w3.org/1999/xhtml'>{NAMES['family']}</div>",
        },
        "extension": [
            {
                "url": "http://hl7.org/fhir/StructureDefinition/patient-mothersMaidenName",
                "valueString": NAMES["maiden"],
            }
        ],
        "identifier": [
            {
                "type": {"text": "Medical Record Number"},
                "system": "http://hospital.example",
                "value": NAMES["mrn"],
            },
            {"value": NAMES["ssn"]},
        ],
        "name": [
            {
                "use": "official",
                "family": NAMES["family"],
                "given": [NAMES["given"]],
                "prefix": ["Mrs."],
            }
        ],
        "telecom": [
            {"system": "phone", "value": NAMES["phone"]},
            {"system": "email", "value": NAMES["mail"]},
        ],
        "gender": "female",
        "birthDate": "1963-06-16",
        "address": [
            {
                "line": [NAMES["street"]],
                "city": NAMES["city"],
                "postalCode": NAMES["postal"],
                "country": "US",
            }
        ],
        "contact": [{"name": {"text": NAMES["contact"]}}],
        "generalPractitioner": [{"display": NAMES["doctor"]}],
        **changes,
    }


def condition(
    snomed="59621000",
    display="Essential hypertension (disorder)",
    clinical="active",
    verified="confirmed",
    **changes,
):
    states = "http://terminology.hl7.org/CodeSystem/condition-"
    resource = {
        "resourceType": "Condition",
        "clinicalStatus": {"coding": [{"system": f"{states}clinical", "code": clinical}]},
        "verificationStatus": {"coding": [{"system": f"{states}ver-status", "code": verified}]},
        "code": concept(snomed, display),
        "subject": {**OWN, "display": NAMES["family"]},
        "recorder": {"display": NAMES["doctor"]},
    }
    return {**resource, **changes}


def medication(
    kind="MedicationRequest", display="lisinopril 10 MG Oral Tablet", status="active", **changes
):
    resource = {
        "resourceType": kind,
        "status": status,
        "medicationCodeableConcept": concept("314076", display, RXNORM),
        "subject": OWN,
        **({"intent": "order"} if kind == "MedicationRequest" else {}),
        "requester" if kind == "MedicationRequest" else "informationSource": {
            "display": NAMES["doctor"]
        },
    }
    return {k: v for k, v in {**resource, **changes}.items() if v is not None}


def refers(reference=None, **more):
    """A request for a medicine that stands elsewhere."""
    element = {"reference": reference, **more} if reference else more
    return medication(medicationCodeableConcept=None, medicationReference=element)


CATEGORY = "http://terminology.hl7.org/CodeSystem/observation-category"
RXNORM = "http://www.nlm.nih.gov/research/umls/rxnorm"


def observation(code, value=None, at="2025-06-15T09:00:00-05:00", status="final", **changes):
    resource = {
        "resourceType": "Observation",
        "status": status,
        "category": [concept("vital-signs", "x", CATEGORY)],
        "code": concept(code, "a name", "http://loinc.org"),
        "subject": OWN,
        "effectiveDateTime": at,
        "issued": "2025-06-15T09:00:00.123-05:00",
        "performer": [{"display": NAMES["doctor"]}],
        "valueQuantity": value,
    }
    return {k: v for k, v in {**resource, **changes}.items() if v is not None}


def pressure(high, low, unit="mm[Hg]", **changes):
    parts = [
        {
            "code": concept(code, "pressure", "http://loinc.org"),
            "valueQuantity": quantity(value, unit),
        }
        for code, value in (("8480-6", high), ("8462-4", low))
        if value is not None
    ]
    return observation("85354-9", component=parts, **changes)


def smoking(code, at="2025-01-01", system="http://snomed.info/sct"):
    return observation("72166-2", at=at, valueCodeableConcept=concept(code, "a status", system))


def bundle(*resources, first=None, **changes):
    entries = []
    for n, resource in enumerate([first or patient(), *resources]):
        kind = resource["resourceType"]
        name = f"00000000-0000-4000-8000-{n:012}"
        if kind == "Patient":
            name = resource.get("id", ID)
        entries.append(
            {
                "fullUrl": f"urn:uuid:{name}",
                "resource": resource,
                "request": {"method": "POST", "url": kind},
            }
        )
    return {"resourceType": "Bundle", "type": "transaction", "entry": entries, **changes}


def read(source, **options):
    return svc.PatientContext.from_fhir(source, today=TODAY, **options)


def taken(*resources, **options):
    return read(bundle(*resources), **options)


def reasons(record):
    return [line.reason for line in record.fhir_report.left_out]


def refused(*resources, **options):
    """Why the only thing that was given beside the patient is not taken."""
    record = taken(*resources, **options)
    assert on_wire(record) == on_wire(taken())
    (reason,) = reasons(record)
    return reason


def sent(*resources, **options):
    return on_wire(taken(*resources, **options))


# The days before, of and after TODAY.
PAST, DAY, NEXT = "2025-06-01", "2025-06-15", "2025-07-01"
FAILED = {"resourceType": "OperationOutcome", "issue": [{"severity": "error", "code": "timeout"}]}
WHOLE = bundle(
    {"resourceType": "Encounter", "status": "finished", "class": {"code": "AMB"}, "subject": OWN},
    condition(recordedDate="2019-02-01T10:00:00-05:00"),
    condition("44054006", "Diabetes mellitus type 2 (disorder)"),
    condition("444814009", "Viral sinusitis (disorder)", clinical="resolved"),
    condition("22298006", "Myocardial infarction", verified="refuted"),
    condition("13645005", "Chronic obstructive lung disease", verified="provisional"),
    medication(),
    medication("MedicationStatement", "metformin 500 MG Oral Tablet"),
    medication(display="amoxicillin 250 MG Oral Capsule", status="completed"),
    pressure(153, 94),
    observation("8867-4", quantity(88, "/min")),
    observation("8310-5", quantity(Decimal("100.4"), "[degF]")),
    observation("9279-1", quantity(18, "/min")),
    observation("2708-6", quantity(97, "%")),
    observation("67151-1", quantity(22, "ng/L")),
    observation("42637-9", quantity(80, "pg/mL")),
    observation("33762-6", quantity(300, "pg/mL")),
    observation("14682-9", quantity(88.4, "umol/L")),
    observation("4548-4", quantity(6.9, "%")),
    smoking("8517006"),
    {
        "resourceType": "FamilyMemberHistory",
        "status": "completed",
        "patient": OWN,
        "name": NAMES["contact"],
        "relationship": concept(
            "MTH", "mother", "http://terminology.hl7.org/CodeSystem/v3-RoleCode"
        ),
        "condition": [{"code": concept("254837009", "Breast cancer")}],
    },
    {"resourceType": "Claim", "status": "active"},
    {"resourceType": "Claim", "status": "active"},
)
EXPECTED = {
    "age": 61,
    "sex": "female",
    "medicalHistory": (
        "Essential hypertension (disorder) (recorded 2019)",
        "Diabetes mellitus type 2 (disorder)",
        "Chronic obstructive lung disease (unconfirmed)",
    ),
    "currentMedications": ("lisinopril 10 MG Oral Tablet", "metformin 500 MG Oral Tablet"),
    "vitalSigns": {
        "systolic": 153,
        "diastolic": 94,
        "heartRate": 88,
        "temperature": 38.0,
        "respiratoryRate": 18,
        "oxygenSaturation": 97,
    },
    "labResults": {
        "hsTroponinT": 22,
        "bnp": 80,
        "ntProBnp": 300,
        "creatinine": 0.999981,
        "hba1c": 6.9,
    },
    "riskFactors": ("former smoker", "family history: Breast cancer (mother)"),
}


ANY_AGE = {"windows": {"vital_signs": None, "lab_results": None}}
