"""A patient from a FHIR bundle: an agent asks for guidance, and a risk becomes FHIR again."""

import json
from datetime import datetime, timezone
from typing import Any

from _service import clinic, service
from langchain.agents import create_agent

from langchain_svc import ChatSvc, PatientContext, SvcMedicalToolkit

# Nobody: made up for this example. A real one is given as PatientContext.from_fhir(Path(...)).
NOBODY = {"reference": "Patient/nobody"}
NOW = datetime.now(timezone.utc).isoformat()


def reading(code: str, value: float, unit: str) -> dict[str, Any]:
    """A result by its LOINC code, in a UCUM unit."""
    quantity = {"value": value, "code": unit, "system": "http://unitsofmeasure.org"}
    coded = {"coding": [{"system": "http://loinc.org", "code": code}]}
    about = {"resourceType": "Observation", "status": "final", "subject": NOBODY}
    return {**about, "code": coded, "effectiveDateTime": NOW, "valueQuantity": quantity}


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
    with SvcMedicalToolkit(patient=record, **there) as toolkit:
        _, guidance, risk, _ = toolkit.get_tools()
        question = 'What do protocols of the specialty "cardiovascular" say about "chest pain"?'
        state = create_agent(model, [guidance]).invoke({"messages": [("user", question)]})
        print(state["messages"][-2].content)  # what the model reads has nothing of the record
        call = {"name": risk.name, "args": {"symptoms": "a cough"}, "id": "1", "type": "tool_call"}
        result = risk.invoke(call).artifact
    print(f"\nRisk: {result.risk_level}, score {result.risk_score}; urgency: {result.urgency}")
    print(json.dumps(result.to_fhir("Patient/nobody"), indent=1))
