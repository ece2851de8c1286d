"""The steps of the demo, each one feature of LangChain. Every answer comes over HTTP."""

from __future__ import annotations

import time
from datetime import date
from http import HTTPStatus

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from pydantic import BaseModel, Field
from rich.console import Console

from langchain_svc import ChatSvc, SvcUsageCallbackHandler, __version__
from langchain_svc.sandbox import Fault, Sandbox

from ..terminal import emit, text_width, wrapped, write_stream
from .retriever import Bm25Retriever, shipped_passages

PACE = 0.02  # seconds between the tokens of a stream
DELAY = 0.3  # seconds that each answer of the batch takes
_AT_ONCE = 8


def tour() -> None:
    """Show every step, on a sandbox of its own."""
    with (
        Sandbox(pace=PACE) as sandbox,
        ChatSvc(model="svc-pro", **sandbox.v1) as model,
        SvcUsageCallbackHandler() as usage,
    ):
        _say(
            f"langchain-svc {__version__} on the sandbox at {sandbox.url}, a local stand-in for "
            "the service. Everything below is answered over HTTP by its rules, not by AI: no key, "
            "no network, no cost."
        )
        _one_answer(model)
        _stream(model)
        _chain(model)
        _documents(model)
        _agent(model)
        _batch(model, sandbox)
        _step("7. Usage", "SvcUsageCallbackHandler().table()")
        console = Console(force_terminal=False, width=text_width())
        console.print(usage.table())
    emit("")
    _say(
        "For answers by AI, set SVC_API_KEY and SVC_BASE_URL_V1 to your key and the address of "
        "the service. Then `langchain-svc ask` asks it, and so does ChatSvc() in your code. This "
        "demo never does."
    )


def _say(text: str) -> None:
    for line in text.split("\n"):
        emit(wrapped(line))


def _step(title: str, feature: str, question: str = "") -> None:
    """What a step shows, the LangChain feature that it shows, and what is asked."""
    emit(f"\n{title}  {feature}")
    if question:
        _say(f"> {question}")


def _one_answer(model: ChatSvc) -> None:
    question = "What is 17 * 23?"
    _step("1. One answer", "model.invoke(question)", question)
    answer = model.invoke(question)
    counts = answer.usage_metadata or {"input_tokens": 0, "output_tokens": 0}
    _say(answer.text)
    _say(f"({counts['input_tokens']} tokens in, {counts['output_tokens']} out)")


def _stream(model: ChatSvc) -> None:
    question = "Tell me a short story about Ada."
    _step("2. Streaming", "model.stream(question)", question)
    write_stream(model.stream(question), [])


class Meeting(BaseModel):
    """A meeting that a text speaks of."""

    topic: str = Field(description="what the meeting is about")
    city: str
    people: int = Field(description="how many people are expected")


def _chain(model: ChatSvc) -> None:
    text = "We expect 12 people in Lisbon for the meeting about 'caching'."
    prompt = ChatPromptTemplate.from_template("What meeting is meant here? {text}")
    chain = prompt | model.with_structured_output(Meeting)
    _step(
        "3. Structured output", "prompt | model.with_structured_output(Meeting)", text
    )
    _say(repr(chain.invoke({"text": text})))


def _documents(model: ChatSvc) -> None:
    question = "What is the difference between no-store and no-cache?"
    _step(
        "4. A question about documents", "retriever | prompt | model | parser", question
    )
    prompt = ChatPromptTemplate.from_template(
        "Answer the question from the context alone, and name the source.\n\n"
        "Context:\n{context}\n\nQuestion: {question}"
    )
    texts = []
    places = []
    for passage in Bm25Retriever(passages=shipped_passages()).invoke(question):
        source = passage.metadata["source"]
        texts.append(f"Source: {source}\n{passage.page_content}")
        places.append(f"{source} ({passage.metadata['section']})")
    chain = prompt | model | StrOutputParser()
    _say(chain.invoke({"context": "\n\n".join(texts), "question": question}))
    _say(f"(found by BM25: {', '.join(places)})")


@tool
def status_phrase(code: int) -> str:
    """The official phrase of an HTTP status code."""
    return HTTPStatus(code).phrase


@tool
def weekday(day: date) -> str:
    """The day of the week of a date."""
    return f"{day:%A}"


TOOLS = {status_phrase.name: status_phrase, weekday.name: weekday}


def _agent(model: ChatSvc) -> None:
    question = "What are the phrases of the status codes 404 and 503? Which weekday was 2024-02-29?"
    _step("5. An agent with two tools", "model.bind_tools(tools)", question)
    agent = model.bind_tools(list(TOOLS.values()))
    conversation: list[BaseMessage] = [HumanMessage(question)]
    answer = agent.invoke(conversation)
    while answer.tool_calls:
        conversation.append(answer)
        for call in answer.tool_calls:
            result = TOOLS[call["name"]].invoke(call)
            conversation.append(result)
            arguments = ", ".join(
                f"{name}={value!r}" for name, value in call["args"].items()
            )
            _say(f"{call['name']}({arguments}) gave {result.text!r}")
        answer = agent.invoke(conversation)
    _say(answer.text)


def _batch(model: ChatSvc, sandbox: Sandbox) -> None:
    questions: list[LanguageModelInput] = [f"What is {n} * {n}?" for n in range(1, 25)]
    _step("6. Many questions", f"model.batch(questions, max_concurrency={_AT_ONCE})")
    # Each answer takes a while, and two requests are refused, so that the usage shows retries.
    refused = Fault(status=503, headers={"Retry-After": "0.2"}, times=2)
    sandbox.faults = [refused, Fault(delay=DELAY)]
    start = time.monotonic()
    answers = model.batch(questions, {"max_concurrency": _AT_ONCE})
    seconds = time.monotonic() - start
    _say(
        f"{len(answers)} questions in {seconds:.1f} s, the last answer: {answers[-1].text}. One by "
        f"one, at {DELAY} s each, they take {DELAY * len(answers):.1f} s. Two were refused with "
        "503 at first, on purpose, and sent again."
    )
