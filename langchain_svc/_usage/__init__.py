"""Counts of calls: what they are, what they cost, and how people see them."""

from __future__ import annotations

from .counts import Durations, ModelUsage
from .prices import Price, read_prices
from .table import UsageTable, one_line
