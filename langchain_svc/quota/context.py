"""What a block sets for the calls inside it, in other threads and tasks too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from .budget import SvcBudget

BUDGETS: ContextVar[tuple[SvcBudget, ...]] = ContextVar("langchain_svc_budgets", default=())
BULK_JOB: ContextVar[str | None] = ContextVar("langchain_svc_bulk_job", default=None)


@contextmanager
def bulk_priority() -> Iterator[None]:
    """Calls inside the block wait behind interactive ones, where they have a quota.

    Each block is a job of its own: jobs on one key get equal shares, however many calls each has
    waiting.

        with bulk_priority():
            model.batch(prompts)
    """
    before = BULK_JOB.get()
    BULK_JOB.set(uuid4().hex)
    try:
        yield
    finally:
        BULK_JOB.set(before)
