"""Whether what a source says supports a statement: rules, no model."""

from __future__ import annotations

from collections.abc import Sequence

from .passages import Place


def doubt_of(statement: str, places: Sequence[Place]) -> str | None:
    """Why the places may not say what the statement says; None where nothing speaks against it."""
    del statement, places
    return None
