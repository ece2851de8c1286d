"""The shipped documents, cut into passages, and a retriever that finds them without embeddings."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import bm25s
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr


def shipped_passages() -> list[Document]:
    """Every section of the shipped documents on HTTP, with its `source`, `title` and `section`."""
    folder = files(__package__) / "documents"
    texts = {page.name: page.read_text("utf-8") for page in folder.iterdir()}
    return [one for name in sorted(texts) for one in _sections(name, texts[name])]


def _sections(source: str, text: str) -> list[Document]:
    """One passage for each `## section` of a markdown page, its lines unwrapped."""
    head, *sections = text.split("\n## ")
    title = head.removeprefix("# ").strip()
    passages = []
    for part in sections:
        section, _, body = part.partition("\n")
        metadata = {"source": source, "title": title, "section": section.strip()}
        passages.append(
            Document(page_content=" ".join(body.split()), metadata=metadata)
        )
    return passages


class Bm25Retriever(BaseRetriever):
    """Finds the passages that share the most telling words with a question (BM25)."""

    passages: list[Document]
    """What is searched."""

    k: int = 3
    """The most passages to return."""

    _index: Any = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Index the passages, their headings included."""
        self._index = bm25s.BM25()
        texts = [
            " ".join((*p.metadata.values(), p.page_content)) for p in self.passages
        ]
        self._index.index(_words(texts), show_progress=False)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        most = min(self.k, len(self.passages))
        found, scores = self._index.retrieve(
            _words([query]), k=most, show_progress=False
        )
        ranked = zip(found[0], scores[0], strict=True)
        return [self.passages[number] for number, score in ranked if score > 0]


def _words(texts: list[str]) -> Any:
    def stems(words: list[str]) -> list[str]:
        return [
            word.removesuffix("s") for word in words
        ]  # so that `redirects` finds `redirect`

    return bm25s.tokenize(texts, stemmer=stems, show_progress=False)
