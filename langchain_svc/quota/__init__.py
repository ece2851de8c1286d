"""The limits of a key and the budgets of a job, kept before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.lazy import lazy

if TYPE_CHECKING:
    from .agents import SvcBudgetMiddleware
    from .limiter import BudgetUse, SvcBudget, bulk_priority
    from .plans import Plan
    from .quota import QuotaLimit, QuotaSnapshot, SvcQuota

if not TYPE_CHECKING:  # a misspelt name is an error for type checkers
    __getattr__ = lazy(
        __name__,
        {
            "agents": "SvcBudgetMiddleware",
            "limiter": "BudgetUse SvcBudget bulk_priority",
            "plans": "Plan",
            "quota": "QuotaLimit QuotaSnapshot SvcQuota",
        },
    )
