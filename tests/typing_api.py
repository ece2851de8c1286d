"""Never run, only type-checked: what users write gets good types."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, TypedDict

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableSerializable
from langchain_core.tools import tool
from pydantic import BaseModel

import langchain_svc.bulk
from langchain_svc import (
    ChatSvc,
    ClinicalReceipt,
    ClinicalResult,
    DicomImage,
    FhirReport,
    ImageStore,
    PatientContext,
    Plan,
    SvcBudget,
    SvcCitations,
    SvcError,
    SvcMedicalConsult,
    SvcMedicalToolkit,
    SvcQuota,
    SvcRateLimitError,
    SvcStreamError,
    SvcToolkit,
    SvcTranslate,
    SvcUsageCallbackHandler,
)
from langchain_svc.sandbox import Fault, Sandbox


class Meeting(BaseModel):
    city: str


with Sandbox(plan="pro", faults=[Fault(status=503, times=1)]) as sandbox:
    model: ChatSvc = ChatSvc(
        **sandbox.v1, model="svc-pro", temperature=0.5, max_retries=3, timeout=5
    )
    answer: AIMessage = model.invoke("hi", stop=["x"], temperature=0)
    chunks: Iterator[AIMessageChunk] = model.stream("hi")
    answers: list[AIMessage] = model.batch(["a", "b"])
    chain: RunnableSerializable[dict[str, Any], str] = (
        ChatPromptTemplate.from_template("{q}") | model | StrOutputParser()
    )
    text: str = chain.invoke({"q": "hi"})
    window: int | None = model.list_models()[0].context_window
    with model as same:
        name: str = same.model_name
    meeting: Meeting = model.with_structured_output(Meeting).invoke("We meet in Lisbon.")
    both: dict[str, Any] = model.with_structured_output(Meeting, include_raw=True).invoke("Where?")
    plain: dict[str, Any] = model.with_structured_output({"title": "Meeting"}).invoke("Where?")
    listed: str = ChatSvc.from_env(temperature=0).check().id

with SvcUsageCallbackHandler() as usage:
    tokens: int = usage.models["svc-pro"].total_tokens
    counts: dict[str, dict[str, Any]] = usage.to_dict()


patient: PatientContext = PatientContext.from_fhir(b"{}", units={"troponin": "ng/L"})
PatientContext.from_fhir([], lab_codes="common", typed_texts="leave_out")
report: FhirReport | None = patient.fhir_report
png: bytes = DicomImage(b"", frame=1, window=(40, 400), blank=[(0, 0, 9, 9)]).png()
PatientContext(age=61, medical_history=["asthma"], images=[DicomImage(b""), png])
ImageStore().add(DicomImage(Path(), frame=2))


async def show(result: ClinicalResult) -> None:
    level: str | float | None = result.risk_level
    receipt: ClinicalReceipt = result.receipt
    print(level, receipt.id)


SvcMedicalConsult(patient={"age": 61})
SvcMedicalConsult(patient="case-7")  # type: ignore[arg-type]


def put_on_record(receipt: ClinicalReceipt) -> None:
    times: list[str] = [sent.time for sent in receipt.tries if sent.left]
    print(receipt.host, receipt.outcome, times)


SvcMedicalToolkit(patient=patient, answer_to="program", deliver=show)
SvcMedicalConsult(patient="per_run", deliver=print, audit=put_on_record)


quota = SvcQuota("pro")
budget = SvcBudget(max_requests=3)
with SvcBudget(max_cost=1) as block:
    print(block.used, quota.snapshot(), SvcQuota(Plan(requests_per_minute=60)))
limited = ChatSvc(model="svc-pro", quota=quota, budget=budget)
ChatSvc(quota="pro")  # type: ignore[arg-type]
translate: str = SvcTranslate(quota=quota, budget=budget).invoke({"text": "hi", "target": "de"})
toolkits = SvcToolkit(quota=quota, budget=budget), SvcMedicalToolkit(quota=quota, budget=budget)


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return city


class Place(TypedDict):
    city: str


called: AIMessage = limited.bind_tools([weather, Meeting], tool_choice="any").invoke("Where?")
place: Place = limited.with_structured_output(Place).invoke("Where?")
agent = create_agent(
    limited.with_citations(), [weather, *toolkits[0].get_tools()], middleware=[SvcCitations()]
)
last: str = agent.invoke({"messages": [HumanMessage("Where?")]})["messages"][-1].text
streamed: str = "".join(chunk.text for chunk in limited.stream("Where?"))
bulk_report = langchain_svc.bulk.run(limited, ["a", "b"], journal="run.journal")
done: int = bulk_report.done


# Names of other integrations are known, and slips are seen.
ChatSvc(model_name="m", request_timeout=5, stop_sequences=["x"], max_completion_tokens=9)
ChatSvc(tempurature=0)  # type: ignore[call-arg]
ChatSvc(image_inputs="describee")  # type: ignore[arg-type]
ChatSvc(interface="general", base_url="https://svc.example", model=None)
ChatSvc(interface="generall")  # type: ignore[arg-type]
meetings: list[Meeting] = ChatSvc().with_structured_output(list[Meeting]).invoke("Where?")


async def asynchronous() -> None:
    async with ChatSvc() as model:
        answer: AIMessage = await model.ainvoke("hi")
        chunks: AsyncIterator[AIMessageChunk] = model.astream("hi")
        print(answer, chunks)


def errors(error: SvcError) -> None:
    seconds: float = error.waited
    if isinstance(error, SvcRateLimitError):
        wait: float | None = error.retry_after
        print(wait)
    if isinstance(error, SvcStreamError):
        partial: str = error.partial
        print(partial, seconds)


# A misspelt name is an error, at the top and in a wing.
print(langchain_svc.ChatSvcc)  # type: ignore[attr-defined]
print(langchain_svc.bulk.BulkReprt)  # type: ignore[attr-defined]
