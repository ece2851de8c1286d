"""What many scripts use: a tool, a schema, a question, an agent's run, and what stands in a state."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import StateGraph
from pydantic import BaseModel


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Meeting(BaseModel):
    """A meeting."""

    city: str
    people: int


GOOD = {"city": "Rome", "people": 3}
SCHEMA = {**Meeting.model_json_schema(), "additionalProperties": False}
ASK: Any = {"messages": [("user", "x")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}
ONE_TWO = ("add", {"a": 1, "b": 2})
THREE_FOUR = ("add", {"a": 3, "b": 4})
BROKEN = "<tool_call>\nadd one and two\n</tool_call>"


def shape(state: Any) -> list[Any]:
    """What stands in the messages of a state, without ids."""
    return [
        (m.type, m.text.strip(), [(c["name"], c["args"]) for c in getattr(m, "tool_calls", [])])
        for m in state["messages"]
    ]


def agent_state(model: Any, tools: Any = (add,), **words: Any) -> Any:
    """What a run of LangChain's agent ends with."""
    return create_agent(model, list(tools), **words).invoke(ASK)


def agent_run(*given: Any, **words: Any) -> list[Any]:
    """What stands in the messages of such a run."""
    return shape(agent_state(*given, **words))


def store(*texts: str) -> InMemoryVectorStore:
    """A store of documents."""
    documents = [Document(text, metadata={"n": 1}) for text in texts]
    return InMemoryVectorStore.from_documents(documents, DeterministicFakeEmbedding(size=8))


def decide(model: Any, schema: Any, asked: Any) -> Any:
    """The object that a model fills in, by a call."""
    return model.with_structured_output(schema, method="function_calling").invoke(asked)


def nodes(state: Any, *functions: Any) -> StateGraph[Any, Any, Any]:
    """A graph with these nodes and no edges."""
    graph = StateGraph(state)
    for function in functions:
        graph.add_node(function)
    return graph
