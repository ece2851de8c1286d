"""The command `langchain-svc`."""

from __future__ import annotations

from .entry import build_parser, main

__all__ = ["build_parser", "main"]
