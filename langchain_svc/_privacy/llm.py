"""`privacy="phi"` for text models; apart, since LangChain's class of them is slow to import."""

from __future__ import annotations

from langchain_core.language_models.llms import BaseLLM
from pydantic import model_validator
from typing_extensions import Self

from .runs import RUNS, WRAPS, Privacy, Run, private_runs, set_uncached
from .safe_errors import Constructed


@private_runs(
    wraps_=WRAPS,
    **RUNS,
    generate=Run.now,
    agenerate=Run.later,
    generate_prompt=Run.now,
    agenerate_prompt=Run.later,
)
class PrivateLLM(Constructed, BaseLLM):
    """A text model whose runs are private where `privacy` says so."""

    privacy: Privacy = None
    """"phi" keeps the texts of prompts and answers out of callbacks, traces, errors and caches."""

    @model_validator(mode="after")
    def _keep_from_cache(self) -> Self:
        set_uncached(self)
        return self
