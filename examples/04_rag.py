"""Answer questions from documents, with quotes that were looked up in them."""

import re
from typing import Any

from _service import service
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from langchain_svc import ChatSvc

# Sections of the documents in langchain_svc/cli/documents, found by BM25. Any other retriever
# of LangChain can take its place; docs/recipes/rag.md writes one in a dozen lines.
from langchain_svc.cli.tour import Bm25Retriever, shipped_passages
from langchain_svc.sandbox import Sandbox

prompt = ChatPromptTemplate.from_template("{question}")


def with_footnotes(answer: AIMessage) -> str:
    """The answer with a number behind each cited statement, and the citations below."""
    text = ""
    notes = []
    for block in answer.content_blocks:
        at = 0
        for annotation in block.get("annotations", ()):
            end = annotation.get("value", annotation)["end_index"]
            mark = "unsupported"
            if annotation["type"] == "citation":
                notes.append(f"{annotation['url']}: “{annotation['cited_text']}”")
                mark = str(len(notes))
            text += f"{block['text'][at:end]} [{mark}]"
            at = end
        text += block["text"][at:]
    footnotes = (f"  [{number}] {note}" for number, note in enumerate(notes, 1))
    return "\n".join([text, *footnotes])


def made_up(request: Any) -> str:
    """A model that cites one passage rightly, and once words that nobody wrote."""
    passage = re.search(r"passage id=\W+(1-\w+)", request.body.decode())
    if passage is None:  # it is asked about the quote that stands nowhere
        return "1. NONE"
    mark = f'<cite id="{passage[1]}">'
    return (
        f"It forbids to store a response {mark}forbids a cache to store any part</cite>. "
        f"Caches obey it since 1997 {mark}introduced in 1997</cite>."
    )


retriever = Bm25Retriever(passages=shipped_passages(), k=3)
documents = {
    "messages": prompt,
    "documents": lambda given: retriever.invoke(given["question"]),
}
with service() as where, ChatSvc(model="svc-pro", temperature=0, **where) as model:
    rag = {"question": RunnablePassthrough()} | (documents | model.with_citations())
    for question in ("What does the directive no-store forbid?", "Is POST idempotent?"):
        print(f"> {question}\n{with_footnotes(rag.invoke(question))}\n")

# What becomes of a quote that stands nowhere, with a model that makes one up.
with Sandbox(answers=made_up) as sandbox, ChatSvc(**sandbox.v1) as model:
    rag = {"question": RunnablePassthrough()} | (documents | model.with_citations())
    answer = rag.invoke("What does the directive no-store forbid?")
    print(f"> The same, made up\n{with_footnotes(answer)}")
    print(answer.response_metadata["citations"])
