"""The tour of `langchain-svc demo`: what LangChain does with `ChatSvc`, step by step.

Every answer comes over HTTP from a sandbox of the tour's own. The documents of step 4 are the pages
in `documents/`, which a retriever finds without embeddings.
"""

from __future__ import annotations

import time
from datetime import date
from http import HTTPStatus
from importlib.resources import files

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from pydantic import BaseModel, Field, PrivateAttr

from .. import ChatSvc, SvcUsageCallbackHandler, __version__
from ..sandbox import Fault, Sandbox
from .terminal import emit, text_width, wrapped, write_stream

try:
    import bm25s
    from rich.console import Console
except ModuleNotFoundError as missing:
    raise ImportError(
        f"The demo needs {missing.name}, which is not installed here. "
        'Run: pip install "langchain-svc[cli,sandbox]"'
    ) from missing

PACE = 0.02  # seconds between the tokens of a stream
DELAY = 0.3  # seconds that each answer of the batch takes
_AT_ONCE = 8


def take_tour() -> None:
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


# -- finding passages ------------------------------------------------------------------------------


def shipped_passages() -> list[Document]:
    """Every section of the shipped documents on HTTP, with its `source`, `title` and `section`."""
    folder = files(__package__) / "documents"
    passages: list[Document] = []
    for page in sorted(folder.iterdir(), key=lambda page: page.name):
        passages += _sections(page.name, page.read_text("utf-8"))
    return passages


def _sections(source: str, text: str) -> list[Document]:
    """One passage for each `## section` of a markdown page, its lines unwrapped."""
    head, *sections = text.split("\n## ")
    title = head.removeprefix("# ").strip()
    passages = []
    for section in sections:
        heading, _, body = section.partition("\n")
        metadata = {"source": source, "title": title, "section": heading.strip()}
        passages.append(Document(" ".join(body.split()), metadata=metadata))
    return passages


class Bm25Retriever(BaseRetriever):
    """Finds the passages that share the most telling words with a question (BM25)."""

    passages: list[Document]
    """What is searched."""

    k: int = 3
    """The most passages to return."""

    _index: bm25s.BM25 = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Index the passages, their headings included."""
        self._index = bm25s.BM25()
        texts = [
            " ".join((*passage.metadata.values(), passage.page_content))
            for passage in self.passages
        ]
        self._index.index(_words(texts), show_progress=False)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        count = min(self.k, len(self.passages))
        numbers, scores = self._index.retrieve(
            _words([query]), k=count, show_progress=False
        )
        return [
            self.passages[number]
            for number, score in zip(numbers[0], scores[0], strict=True)
            if score > 0
        ]


def _words(texts: list[str]) -> object:
    return bm25s.tokenize(texts, stemmer=_stems, show_progress=False)


def _stems(words: list[str]) -> list[str]:
    return [word.removesuffix("s") for word in words]  # `redirects` finds `redirect`
