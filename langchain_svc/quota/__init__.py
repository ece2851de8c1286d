"""The limits of a key and the budgets of a job, kept before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .agents import SvcBudgetMiddleware
    from .limiter import BudgetUse, SvcBudget, bulk_priority
    from .plans import Plan
    from .quota import QuotaLimit, QuotaSnapshot, SvcQuota

__getattr__ = lazy(
    __name__,
    {
        "agents": "SvcBudgetMiddleware",
        "limiter": "BudgetUse SvcBudget bulk_priority",
        "plans": "Plan",
        "quota": "QuotaLimit QuotaSnapshot SvcQuota",
    },
)
