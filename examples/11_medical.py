"""A made-up patient in FHIR: an agent asks for guidance, and a clinician reads it."""

from datetime import UTC, datetime
from typing import Any

from _service import clinic, service
from langchain.agents import create_agent

from langchain_svc import ChatSvc, ClinicalResult, PatientContext, SvcMedicalToolkit

NOBODY = {"reference": "Patient/nobody"}
NOW = datetime.now(UTC).isoformat()


def reading(code: str, value: float, unit: str) -> dict[str, Any]:
    """A result by its LOINC code, in a UCUM unit."""
    quantity = {"value": value, "code": unit, "system": "http://unitsofmeasure.org"}
    coded = {"coding": [{"system": "http://loinc.org", "code": code}]}
    about = {"resourceType": "Observation", "status": "final", "subject": NOBODY}
    return {**about, "code": coded, "effectiveDateTime": NOW, "valueQuantity": quantity}


RESOURCES = [
    {
        "resourceType": "Patient",
        "id": "nobody",
        "name": [{"text": "N. O. Body"}],
        "gender": "male",
    },
    {"resourceType": "Condition", "subject": NOBODY, "code": {"text": "hypertension"}},
    *(reading("8480-6", 152, "mm[Hg]"), reading("8462-4", 95, "mm[Hg]")),
    *(reading("8310-5", 99.5, "[degF]"), reading("67151-1", 21, "ng/L")),
]
BUNDLE = {"resourceType": "Bundle", "entry": [{"resource": held} for held in RESOURCES]}

record = PatientContext.from_fhir(BUNDLE)
print(record, record.fhir_report, sep="\n\n", end="\n\n")

screen: list[
    ClinicalResult
] = []  # what a clinician gets, and no model, trace or checkpoint
with service() as where, clinic() as there, ChatSvc(model="svc-pro", **where) as model:
    to_program = {"answer_to": "program", "deliver": screen.append, **there}
    with SvcMedicalToolkit(patient=record, **to_program) as toolkit:
        _, guidance, risk, _ = toolkit.get_tools()
        asked = (
            "user",
            "Run decision support. Symptoms: chest pain, specialty: cardiology.",
        )
        state = create_agent(model, [guidance]).invoke({"messages": [asked]})
        print("The model reads:", state["messages"][-2].content, sep="\n")
        risk.invoke({"symptoms": "a cough"})
print("\nThe clinician reads:", *(result.text for result in screen), sep="\n\n")
print("\nIts risk:", screen[1].risk_level, screen[1].risk_score)
