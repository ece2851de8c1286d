"""The limits of a key and the budgets of a job, kept before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .context import BUDGETS, bulk_priority

if TYPE_CHECKING:
    from .budget import BudgetUse, SvcBudget, note_prices
    from .estimates import Size
    from .gate import Gate, gate_of
    from .plans import DOCUMENTED, PERIODS, Plan
    from .quota import QuotaLimit, QuotaSnapshot, SvcQuota

__getattr__ = lazy(
    __name__,
    {
        "budget": "BudgetUse SvcBudget note_prices",
        "estimates": "Size",
        "gate": "Gate gate_of",
        "plans": "DOCUMENTED PERIODS Plan",
        "quota": "QuotaLimit QuotaSnapshot SvcQuota",
    },
)
