"""Answer questions from documents, and say which one the answer is from."""

from _service import service
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from langchain_svc import ChatSvc

# Sections of the documents in langchain_svc/cli/demo/documents, found by BM25. Any other retriever
# of LangChain can take its place; docs/recipes/rag.md writes one in a dozen lines.
from langchain_svc.cli.demo.retriever import Bm25Retriever, shipped_passages

prompt = ChatPromptTemplate.from_template(
    "Answer the question from the context alone, and name the source.\n\n"
    "Context:\n{context}\n\nQuestion: {question}"
)


def with_sources(passages: list[Document]) -> str:
    """The passages as a prompt's context, each under the name of its document."""
    return "\n\n".join(
        f"Source: {p.metadata['source']}\n{p.page_content}" for p in passages
    )


with service() as where, ChatSvc(model="svc-pro", temperature=0, **where) as model:
    retriever = Bm25Retriever(passages=shipped_passages(), k=3)
    rag = (
        {
            "context": retriever | with_sources,
            "question": RunnablePassthrough(),
        }
        | prompt
        | model
        | StrOutputParser()
    )

    for question in ("What does the directive no-store forbid?", "Is POST idempotent?"):
        print(f"> {question}\n{rag.invoke(question)}\n")
