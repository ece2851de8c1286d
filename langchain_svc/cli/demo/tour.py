"""The steps of the demo, each one feature of LangChain. Every answer comes over HTTP."""

from __future__ import annotations

import time
from datetime import date
from http import HTTPStatus
from operator import itemgetter
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from langchain_svc import ChatSvc, SvcUsageCallbackHandler, __version__
from langchain_svc.sandbox import Fault, Sandbox

from .retriever import Bm25Retriever, shipped_passages
from .screen import Screen

PACE = 0.02  # seconds between the tokens of a stream
DELAY = 0.3  # seconds that each answer of the batch takes
_AT_ONCE = 8


def tour(screen: Screen) -> None:
    """Show every step, on a sandbox of its own."""
    with (
        Sandbox(pace=PACE) as sandbox,
        ChatSvc(model="svc-pro", **sandbox.v1) as model,
        SvcUsageCallbackHandler() as usage,
    ):
        screen.say(
            f"langchain-svc {__version__} on the sandbox at {sandbox.url}, a local stand-in for "
            "the service. Everything below is answered over HTTP by its rules, not by AI: no key, "
            "no network, no cost."
        )
        _one_answer(screen, model)
        _stream(screen, model)
        _chain(screen, model)
        rag = rag_chain(model)
        _documents(screen, rag)
        _agent(screen, model)
        _batch(screen, rag, sandbox)
        _usage(screen, usage)
    screen.say(
        "\nFor answers by AI, set SVC_API_KEY and SVC_BASE_URL_V1 to your key and the address of "
        "the service. Then `langchain-svc ask` asks it, and so does ChatSvc() in your code. This "
        "demo never does."
    )


def _one_answer(screen: Screen, model: ChatSvc) -> None:
    question = "What is 17 * 23?"
    screen.step("One answer", "model.invoke(question)")
    screen.asked(question)
    answer = model.invoke(question)
    counts = answer.usage_metadata or {"input_tokens": 0, "output_tokens": 0}
    screen.answered(answer.text)
    screen.note(f"{counts['input_tokens']} tokens in, {counts['output_tokens']} out")


def _stream(screen: Screen, model: ChatSvc) -> None:
    question = "Tell me a short story about Ada."
    screen.step("Streaming", "model.stream(question)")
    screen.asked(question)
    screen.streamed(chunk.text for chunk in model.stream(question))


class Meeting(BaseModel):
    """A meeting that a text speaks of."""

    topic: str = Field(description="what the meeting is about")
    city: str
    people: int = Field(description="how many people are expected")


def _chain(screen: Screen, model: ChatSvc) -> None:
    text = "We expect 12 people in Lisbon for the meeting about 'caching'."
    prompt = ChatPromptTemplate.from_template("What meeting is meant here? {text}")
    chain = prompt | model.with_structured_output(Meeting)
    screen.step("Structured output", "prompt | model.with_structured_output(Meeting)")
    screen.asked(text)
    screen.answered(repr(chain.invoke({"text": text})))


def rag_chain(model: ChatSvc) -> Runnable[str, dict[str, Any]]:
    """From a question to a dict with the `passages` that were found and the `answer`."""
    prompt = ChatPromptTemplate.from_template(
        "Answer the question from the context alone, and name the source.\n\n"
        "Context:\n{context}\n\nQuestion: {question}"
    )
    retriever = Bm25Retriever(passages=shipped_passages())
    found = RunnableParallel(question=RunnablePassthrough(), passages=retriever)
    context = itemgetter("passages") | RunnableLambda(_with_sources)
    return found.assign(context=context).assign(answer=prompt | model | StrOutputParser())


def _with_sources(passages: list[Document]) -> str:
    return "\n\n".join(f"Source: {p.metadata['source']}\n{p.page_content}" for p in passages)


def _documents(screen: Screen, rag: Runnable[str, dict[str, Any]]) -> None:
    screen.step("A question about documents", "retriever | prompt | model | parser")
    question = "What is the difference between no-store and no-cache?"
    screen.asked(question)
    found = rag.invoke(question)
    screen.answered(found["answer"])
    places = (f"{p.metadata['source']} ({p.metadata['section']})" for p in found["passages"])
    screen.note("Found by BM25: " + ", ".join(places))


@tool
def status_phrase(code: int) -> str:
    """The official phrase of an HTTP status code."""
    return HTTPStatus(code).phrase


@tool
def weekday(day: date) -> str:
    """The day of the week of a date."""
    return f"{day:%A}"


TOOLS = {each.name: each for each in (status_phrase, weekday)}


def _agent(screen: Screen, model: ChatSvc) -> None:
    screen.step("An agent with two tools", "model.bind_tools(tools), until no tool is called")
    question = "What are the phrases of the status codes 404 and 503? Which weekday was 2024-02-29?"
    screen.asked(question)
    agent = model.bind_tools(list(TOOLS.values()))
    conversation: list[BaseMessage] = [HumanMessage(question)]
    answer = agent.invoke(conversation)
    while answer.tool_calls:
        conversation.append(answer)
        for call in answer.tool_calls:
            result = TOOLS[call["name"]].invoke(call)
            conversation.append(result)
            given = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
            screen.note(f"{call['name']}({given}) gave {result.text!r}")
        answer = agent.invoke(conversation)
    screen.answered(answer.text)


# What the batch asks; each of the shipped documents answers four of these.
QUESTIONS = (
    "What does the first digit of a status code tell?",
    "How does a client treat a status code that it does not know?",
    "What does a 201 Created response say?",
    "Which header must come with a 405 Method Not Allowed?",
    "Which methods are idempotent?",
    "What does the Retry-After header tell the client?",
    "What does a 429 Too Many Requests response say?",
    "What is jitter good for?",
    "When is a stored response fresh?",
    "What does the directive no-store forbid?",
    "Which header tells how many seconds ago a response was generated?",
    "What does the cache key consist of?",
    "What does the Accept header list?",
    "What does the weight 0 mean for a preference?",
    "When does a server answer 415 Unsupported Media Type?",
    "Why is the Accept-Charset header deprecated?",
    "What does the Location header hold?",
    "Which permanent redirect does not allow the method to change?",
    "How many redirects did an early edition of the specification recommend?",
    "Which headers were meant for the original server only?",
    "Who knows how an entity tag was made?",
    "When does a weak entity tag change?",
    "What is called the lost update problem?",
    "What does a 428 Precondition Required response say?",
)


def _batch(screen: Screen, rag: Runnable[str, dict[str, Any]], sandbox: Sandbox) -> None:
    screen.step(
        "Many questions", f"chain.batch_as_completed(questions, max_concurrency={_AT_ONCE})"
    )
    # Two requests are refused, so that retries show in the usage; every answer takes its time.
    refused = Fault(status=503, headers={"Retry-After": "0.2"}, times=2)
    sandbox.faults = [refused, Fault(delay=DELAY)]
    began = time.monotonic()
    answers = rag.batch_as_completed(list(QUESTIONS), {"max_concurrency": _AT_ONCE})
    found = dict(screen.counted(answers, len(QUESTIONS)))
    took = time.monotonic() - began
    alone = DELAY * len(QUESTIONS)
    screen.note(
        f"{len(found)} questions about the documents in {took:.1f} s. One by one, at {DELAY} s "
        f"each, they take {alone:.1f} s. Two were refused with 503 at first, on purpose, and sent "
        "again."
    )
    for number in (0, len(QUESTIONS) - 1):
        screen.asked(QUESTIONS[number])
        screen.answered(found[number]["answer"])


def _usage(screen: Screen, usage: SvcUsageCallbackHandler) -> None:
    screen.step("Usage", "SvcUsageCallbackHandler().table()")
    screen.table(usage.table())
