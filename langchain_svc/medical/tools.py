"""The medical interface as LangChain tools: consultation, decision support, cancer risk, status.

Their answers support and do not replace a clinician; every result says so.

Rests on the medical API, sections 2, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, cast
from urllib.parse import urlsplit

from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from pydantic import Field

from ..tools.base import ServiceToolkit, tool_selection
from . import wire
from .case import CASE_KEY, configurable
from .images import Images
from .medical_tool import MedicalEndpoint, MedicalSettings, MedicalTool
from .patient import (
    MOST_ENTRIES,
    Age,
    Demographics,
    LabResults,
    Line,
    Lines,
    Record,
    Sex,
    VitalSigns,
    line,
)
from .result import AnswerTo

_WORDS = r"[^\W\d_][\w ,&'()-]*"
Message = Annotated[str, line(20_000)]
Specialty = Annotated[
    str, line(80, _WORDS, "the name of a specialty in letters, such as cardiology")
]
Language = Annotated[
    str, line(40, r"[^\W\d_]{2}[\w -]*", "a language code such as en or pt-BR")
]


# -- arguments -------------------------------------------------------------------------------------


class ConsultArguments(Record):
    """Arguments of a consultation."""

    message: Message = Field(
        description="The symptoms or the medical question, in plain text."
    )
    specialty: Specialty | None = Field(
        None, description="Medical specialty, such as cardiology or oncology."
    )
    language: Language | None = Field(
        None,
        description="Code of the language to answer in, such as en or de; en if left out.",
    )


class UnboundConsultArguments(ConsultArguments):
    """The same, with what is known of the patient."""

    patient_context: Demographics | None = Field(
        None, description="What is known of the patient. Leave out what is not known."
    )


class DecisionArguments(Record):
    """Arguments of decision support."""

    symptoms: Annotated[
        tuple[Line, ...], Field(min_length=1, max_length=MOST_ENTRIES)
    ] = Field(description="The patient's symptoms, each in a few words.")
    specialty: Specialty = Field(
        description="Medical specialty, such as cardiovascular, oncology or neurology."
    )


class UnboundDecisionArguments(DecisionArguments):
    """The same, with what is known of the patient."""

    vital_signs: VitalSigns | None = Field(
        None,
        description="Measured vital signs as numbers. Leave out what was not measured.",
    )
    lab_results: LabResults | None = Field(
        None,
        description="Laboratory results as numbers. Leave out what was not measured.",
    )
    medical_history: Lines = Field((), description="Earlier and present conditions.")


class CancerArguments(Record):
    """Arguments of a cancer risk assessment."""

    symptoms: Message = Field(description="The patient's symptoms, in plain text.")
    imaging_type: Line | None = Field(
        None,
        description="What kind of imaging was done, such as chest CT, MRI or X-ray.",
    )


class UnboundCancerArguments(CancerArguments):
    """The same, with what is known of the patient."""

    patient_age: Age | None = Field(None, description="Age in years.")
    patient_sex: Sex | None = Field(None, description="Sex, such as female or male.")
    risk_factors: Lines = Field((), description="Such as smoking or a family history.")
    images: Images = Field(
        (), description="PNG or JPEG images in base64; no paths, no URLs."
    )


class StatusArguments(Record):
    """The status check has no arguments."""


# -- tools -----------------------------------------------------------------------------------------


class SvcMedicalConsult(MedicalTool):
    """A consultation in one of 50+ specialties, answered in the language asked for (PRO).

    Setup:
        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_MEDICAL_API_KEY="..." SVC_MEDICAL_BASE_URL="https://..."
        ```

    Key init args:
        - `patient`: The record that is sent, or "per_run", or a function that loads it by its case;
          with None the model gives the fields.
        - `answer_to`: Who reads the answers, "model" or "program".
        - `deliver`: Your function that gets each `ClinicalResult`.
        - `api_key`: The key; otherwise `SVC_MEDICAL_API_KEY`.
        - `medical_base_url`: The address; otherwise `SVC_MEDICAL_BASE_URL`.

    Instantiate:
        ```python
        from langchain_svc import PatientContext, SvcMedicalConsult

        tool = SvcMedicalConsult(patient=PatientContext(age=61))
        ```

    Invoke:
        ```python
        print(tool.invoke({"message": "Is a dry cough common?"}))
        ```

        `specialty` and `language` may be given, too.

    Invoke with ToolCall:
        ```python
        call = {
            "type": "tool_call",
            "id": "1",
            "name": "svc_medical_consult",
            "args": {"message": "Is a dry cough common?"},
        }
        message = tool.invoke(call)
        print(message.artifact.urgency)
        ```

        The artifact is a `ClinicalResult`; with `answer_to="program"` it is a receipt without the
        answer.

    Use within an agent:
        ```python
        from langchain.agents import create_agent

        from langchain_svc import ChatSvc

        agent = create_agent(ChatSvc(), [tool])
        question = 'Ask a consultation about "chest pain".'
        state = agent.invoke({"messages": [("user", question)]})
        print(state["messages"][-1].text)
        ```

    Raises:
        SvcError: Every failure of a call that no model made; a model gets its text instead.

    Rests on the medical API, "Chat request".
    """

    endpoint: ClassVar[MedicalEndpoint] = MedicalEndpoint(
        wire.CHAT, ConsultArguments, UnboundConsultArguments, wire.OF_CHAT
    )
    name: str = "svc_medical_consult"
    description: str = (
        "(PRO) Ask a medical question or describe symptoms in plain text; answers in one of 50+ "
        "specialties. For guidance by clinical protocols from a list of symptoms use "
        "svc_decision_support; for the risk of cancer use svc_cancer_risk. It supports and does "
        "not replace a clinician."
    )


class SvcDecisionSupport(MedicalTool):
    """Guidance by clinical protocols from symptoms, readings and history (New).

    Setup:
        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_MEDICAL_API_KEY="..." SVC_MEDICAL_BASE_URL="https://..."
        ```

    Key init args:
        - `patient`: The record that is sent, or "per_run", or a function that loads it by its case;
          with None the model gives the fields.
        - `answer_to`: Who reads the answers, "model" or "program".
        - `deliver`: Your function that gets each `ClinicalResult`.
        - `api_key`: The key; otherwise `SVC_MEDICAL_API_KEY`.
        - `medical_base_url`: The address; otherwise `SVC_MEDICAL_BASE_URL`.

    Instantiate:
        ```python
        from langchain_svc import PatientContext, SvcDecisionSupport

        tool = SvcDecisionSupport(patient=PatientContext(vital_signs={"heart_rate": 104}))
        ```

    Invoke:
        ```python
        print(tool.invoke({"symptoms": ["chest pain"], "specialty": "cardiology"}))
        ```

    Invoke with ToolCall:
        ```python
        call = {
            "type": "tool_call",
            "id": "1",
            "name": "svc_decision_support",
            "args": {"symptoms": ["chest pain"], "specialty": "cardiology"},
        }
        message = tool.invoke(call)
        print(message.artifact.recommendations)
        ```

        The artifact is a `ClinicalResult`; with `answer_to="program"` it is a receipt without the
        answer.

    Use within an agent:
        ```python
        from langchain.agents import create_agent

        from langchain_svc import ChatSvc

        agent = create_agent(ChatSvc(), [tool])
        question = 'Give decision support in cardiology for "chest pain".'
        state = agent.invoke({"messages": [("user", question)]})
        print(state["messages"][-1].text)
        ```

    Raises:
        SvcError: Every failure of a call that no model made; a model gets its text instead.

    Rests on the medical API, "Decision support request".
    """

    endpoint: ClassVar[MedicalEndpoint] = MedicalEndpoint(
        wire.PROTOCOLS,
        DecisionArguments,
        UnboundDecisionArguments,
        wire.OF_PROTOCOLS,
    )
    name: str = "svc_decision_support"
    description: str = (
        "(New) Get diagnostic and treatment guidance by clinical protocols for a list of symptoms "
        "in a specialty. For an open question use svc_medical_consult. It supports and does not "
        "replace a clinician."
    )


class SvcCancerRisk(MedicalTool):
    """A cancer risk assessment from symptoms, risk factors and images (PRO).

    Setup:
        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_MEDICAL_API_KEY="..." SVC_MEDICAL_BASE_URL="https://..."
        ```

    Key init args:
        - `patient`: The record that is sent, or "per_run", or a function that loads it by its case;
          with None the model gives the fields.
        - `answer_to`: Who reads the answers, "model" or "program".
        - `deliver`: Your function that gets each `ClinicalResult`.
        - `api_key`: The key; otherwise `SVC_MEDICAL_API_KEY`.
        - `medical_base_url`: The address; otherwise `SVC_MEDICAL_BASE_URL`.

    Instantiate:
        ```python
        from langchain_svc import PatientContext, SvcCancerRisk

        tool = SvcCancerRisk(patient=PatientContext(age=61, risk_factors=["smoking"]))
        ```

    Invoke:
        ```python
        print(tool.invoke({"symptoms": "a cough for two months"}))
        ```

        `imaging_type` may be given, too. Images are part of the record:
        `PatientContext(images=...)`.

    Invoke with ToolCall:
        ```python
        call = {
            "type": "tool_call",
            "id": "1",
            "name": "svc_cancer_risk",
            "args": {"symptoms": "a cough for two months"},
        }
        message = tool.invoke(call)
        print(message.artifact.risk_level)
        ```

        The artifact is a `ClinicalResult`; with `answer_to="program"` it is a receipt without the
        answer.

    Use within an agent:
        ```python
        from langchain.agents import create_agent

        from langchain_svc import ChatSvc

        agent = create_agent(ChatSvc(), [tool])
        question = 'Assess the risk of cancer for "a cough for two months".'
        state = agent.invoke({"messages": [("user", question)]})
        print(state["messages"][-1].text)
        ```

    Raises:
        SvcError: Every failure of a call that no model made; a model gets its text instead.

    Rests on the medical API, "Cancer diagnosis request".
    """

    endpoint: ClassVar[MedicalEndpoint] = MedicalEndpoint(
        wire.CANCER, CancerArguments, UnboundCancerArguments, wire.OF_CANCER
    )
    name: str = "svc_cancer_risk"
    description: str = (
        "(PRO) Assess the risk of cancer from symptoms in plain text, with risk factors and "
        "images where there are any. It supports and does not replace a clinician."
    )


class SvcMedicalStatus(MedicalTool):
    """Whether the medical interface works: its state, uptime, latency and capabilities.

    Setup:
        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_MEDICAL_API_KEY="..." SVC_MEDICAL_BASE_URL="https://..."
        ```

    Key init args:
        - `api_key`: The key; otherwise `SVC_MEDICAL_API_KEY`.
        - `medical_base_url`: The address; otherwise `SVC_MEDICAL_BASE_URL`.

    Instantiate:
        ```python
        from langchain_svc import SvcMedicalStatus

        tool = SvcMedicalStatus()
        ```

    Invoke:
        ```python
        print(tool.invoke({}))
        ```

    Invoke with ToolCall:
        ```python
        call = {"type": "tool_call", "id": "1", "name": "svc_medical_status", "args": {}}
        message = tool.invoke(call)
        print(message.artifact.raw)
        ```

    Use within an agent:
        ```python
        from langchain.agents import create_agent

        from langchain_svc import ChatSvc

        agent = create_agent(ChatSvc(), [tool])
        state = agent.invoke({"messages": [("user", "Does the medical service work?")]})
        print(state["messages"][-1].text)
        ```

    Raises:
        SvcError: Every failure of a call that no model made; a model gets its text instead.

    Rests on the medical API, "Status response".
    """

    endpoint: ClassVar[MedicalEndpoint] = MedicalEndpoint(
        wire.STATUS, StatusArguments, StatusArguments
    )
    name: str = "svc_medical_status"
    description: str = (
        "Check whether the medical service works and what it can do. It takes no arguments and "
        "sends nothing of a patient."
    )


# -- toolkit ---------------------------------------------------------------------------------------

_TOOLS: dict[str, type[MedicalTool]] = {
    kind.model_fields["name"].default: kind
    for kind in (SvcMedicalConsult, SvcDecisionSupport, SvcCancerRisk, SvcMedicalStatus)
}


class SvcMedicalToolkit(MedicalSettings, ServiceToolkit):
    """The four medical tools over shared connections, with a patient whom your program binds.

    Setup:
        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_MEDICAL_API_KEY="..." SVC_MEDICAL_BASE_URL="https://..."
        ```

    Key init args:
        - `patient`: The record that is sent, which the model neither sees nor invents.
        - `answer_to`: Who reads the answers, "model" or "program".
        - `deliver`: Your function that gets each result.
        - `selected`: Names of the tools to offer; None for all.

    Instantiate:
        ```python
        from langchain_svc import PatientContext, SvcMedicalToolkit

        toolkit = SvcMedicalToolkit(patient=PatientContext(age=61))
        print([tool.name for tool in toolkit.get_tools()])
        ```

    Invoke:
        ```python
        consult = toolkit.get_tools()[0]
        print(consult.invoke({"message": "Is a dry cough common with this medication?"}))
        ```

    Raises:
        pydantic.ValidationError: From the constructor, for a setting out of its bounds.
    """

    selected: Annotated[Sequence[str] | None, tool_selection(tuple(_TOOLS))] = None
    """Names of the tools to offer; all of them where it is None."""

    def get_tools(self) -> list[BaseTool]:
        """The tools, on this toolkit's connections and with its patient."""
        tools: list[BaseTool] = []
        for name in self.selected or _TOOLS:
            tool = cast("MedicalTool", self._new_tool(_TOOLS[name]))
            tool._outbox = self._outbox  # noqa: SLF001  # our own class
            tools.append(tool)
        return tools

    def interrupt_on(self) -> dict[str, Any]:
        """Which tools a person must approve, for `HumanInTheLoopMiddleware(interrupt_on=...)`.

        These are all tools that send something of a patient; the status check runs by itself. The
        person sees the run's case, the host, who reads the answer, and the model's own arguments;
        not the patient's record.
        """
        host = urlsplit(self.medical_base_url or "").netloc
        describe = partial(_describe_call, host, self.answer_to)
        decisions: dict[str, Any] = {}
        for tool in self.get_tools():
            if isinstance(tool, SvcMedicalStatus):
                decisions[tool.name] = False
            else:
                decisions[tool.name] = {
                    "allowed_decisions": ["approve", "edit", "reject"],
                    "description": describe,
                }
        return decisions


def _describe_call(
    host: str, answer_to: AnswerTo, tool_call: Mapping[str, Any], *_: Any
) -> str:
    """The text for the person who approves a call; the middleware calls it within the run."""
    case = configurable(ensure_config()).get(CASE_KEY)
    of_case = f"of case {case}" if case else "of a case that the run does not name"
    return (
        f"{tool_call['name']} sends clinical data {of_case} to the service at {host}; the "
        f"{answer_to} reads its answer. Approve it, change the model's arguments, or reject it."
    )
