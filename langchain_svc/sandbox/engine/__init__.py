"""The engine of the sandbox: answers by deterministic rules, and it says so. No model runs here.

Everything is read from the text of the request alone, as a model would read it.
"""

from __future__ import annotations

from langchain_svc.sandbox.engine._analyze import analyze
from langchain_svc.sandbox.engine._answer import Answer, answer
from langchain_svc.sandbox.engine._draw import draw
from langchain_svc.sandbox.engine._medical import cancer_risk, consult, decision_support
from langchain_svc.sandbox.engine._tokens import count_tokens, split_tokens
from langchain_svc.sandbox.engine._translate import translate

__all__ = [
    "Answer",
    "analyze",
    "answer",
    "cancer_risk",
    "consult",
    "count_tokens",
    "decision_support",
    "draw",
    "split_tokens",
    "translate",
]
