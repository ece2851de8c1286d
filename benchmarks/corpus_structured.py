"""The structured-output reader behind the corpus scorer's interface.

python <corpora>/score.py structured benchmarks.corpus_structured:parse -vv
"""

from __future__ import annotations

from typing import Any

from langchain_svc._json import read_answer


def parse(text: str, schema: dict[str, Any]) -> Any:
    """The object in the text that satisfies the schema; raises where there is none."""
    return read_answer(text, schema)
