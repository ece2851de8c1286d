"""The tools of the demo's agent. They are real: Python's standard library knows the answers."""

from __future__ import annotations

from datetime import date
from http import HTTPStatus

from langchain_core.tools import tool


@tool
def status_phrase(code: int) -> str:
    """The official phrase of an HTTP status code."""
    return HTTPStatus(code).phrase


@tool
def weekday(day: date) -> str:
    """The day of the week of a date."""
    return f"{day:%A}"


TOOLS = {each.name: each for each in (status_phrase, weekday)}
