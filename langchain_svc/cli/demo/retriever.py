"""The shipped documents, cut into passages, and a retriever that finds them without embeddings."""

from __future__ import annotations

from importlib.resources import files

import bm25s
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr


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
