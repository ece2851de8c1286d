"""An agent: the model calls tools until it can answer, two of them in parallel."""

from datetime import date
from http import HTTPStatus

from _service import service
from langchain.agents import create_agent
from langchain_core.tools import tool

from langchain_svc import ChatSvc


@tool
def status_phrase(code: int) -> str:
    """The official phrase of an HTTP status code."""
    return HTTPStatus(code).phrase


@tool
def weekday(day: date) -> str:
    """The day of the week of a date."""
    return f"{day:%A}"


with service() as where, ChatSvc(model="svc-pro", **where) as model:
    agent = create_agent(model, [status_phrase, weekday])
    question = "What are the phrases of the status codes 404 and 503? Which weekday was 2024-02-29?"
    for message in agent.invoke({"messages": [("user", question)]})["messages"]:
        message.pretty_print()
