"""A patient from a FHIR bundle: an agent asks for guidance and sees nothing of the record."""

from datetime import datetime, timezone
from typing import Any

from _service import clinic, service
from langchain.agents import create_agent

from langchain_svc import ChatSvc, PatientContext, SvcMedicalToolkit

# Nobody: made up for this example. A real one is given as PatientContext.from_fhir(file.read()).
NOBODY = {"reference": "Patient/nobody"}
NOW = datetime.now(timezone.utc).isoformat()


def reading(code: str, value: float, unit: str) -> dict[str, Any]:
    """A result by its LOINC code, in a UCUM unit."""
    return {
        "resourceType": "Observation",
        "status": "final",
        "subject": NOBODY,
        "effectiveDateTime": NOW,
        "code": {"coding": [{"system": "http://loinc.org", "code": code}]},
        "valueQuantity": {"value": value, "code": unit, "system": "http://unitsofmeasure.org"},
    }


RESOURCES = [
    {"resourceType": "Patient", "id": "nobody", "name": [{"text": "N. O. Body"}], "gender": "male"},
    {"resourceType": "Condition", "subject": NOBODY, "code": {"text": "hypertension"}},
    *(reading("8480-6", 152, "mm[Hg]"), reading("8462-4", 95, "mm[Hg]")),
    *(reading("8310-5", 99.5, "[degF]"), reading("67151-1", 21, "ng/L")),
]
BUNDLE = {"resourceType": "Bundle", "entry": [{"resource": held} for held in RESOURCES]}

record = PatientContext.from_fhir(BUNDLE)
print(record, record.fhir_report, sep="\n\n", end="\n\n")

with service() as where, clinic() as there, ChatSvc(model="svc-pro", **where) as model:
    with SvcMedicalToolkit(patient=record, selected=["svc_decision_support"], **there) as toolkit:
        agent = create_agent(model, toolkit.get_tools())
        question = 'What do protocols of the specialty "cardiovascular" say about "chest pain"?'
        messages = agent.invoke({"messages": [("user", question)]})["messages"]
    result = next(message.artifact for message in messages if message.type == "tool")
    print(f"Sent: {', '.join(result.sent)}\n\n{result.text}\n\n{result.notice}")
    messages[-1].pretty_print()
