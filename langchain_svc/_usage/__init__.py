"""Counts of calls: what they are, what they cost, and how people see them."""

from __future__ import annotations

from .._wire import Price, read_prices
from .counts import Durations, ModelUsage
from .table import UsageTable, one_line
