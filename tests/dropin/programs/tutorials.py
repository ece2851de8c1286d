"""The tutorials of LangChain's documentation, with a small corpus."""

from __future__ import annotations

import json
import operator
import tempfile
from typing import Annotated, Literal, TypedDict

from common import ASK, GOOD, THREAD, Meeting, agent_run, decide, nodes, shape, store
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import JsonOutputToolsParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langchain_core.utils.function_calling import tool_example_to_messages
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState
from player import Play, calls, on_both, same
from pydantic import BaseModel
from registry import program

SQL = ("langchain-community==0.4.2", "langchain-experimental==0.4.2", "lark==1.3.1")


@program("tutorial: RAG as an agent and as a chain", "langchain-text-splitters")
def rag():
    """Split, index, a retrieval tool with artifacts; the chain with the same documents."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(chunk_size=40, chunk_overlap=5)
    parts = splitter.split_text("The sea is blue and deep. " * 4)
    found = store(*parts)

    @tool(response_format="content_and_artifact")
    def retrieve(query: str):
        """Find documents."""
        documents = found.similarity_search(query, k=2)
        return "\n".join(d.page_content for d in documents), documents

    def agent(model):
        state = create_agent(model, [retrieve]).invoke(ASK)
        same(len(state["messages"][2].artifact), 2)
        return shape(state)

    _, play = on_both([calls(("retrieve", {"query": "blue"})), "The sea."], agent)
    assert "sea is blue" in play.asked[1]
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    given = {"context": parts[0], "question": "Blue?"}
    on_both(["The sea."], lambda m: (prompt | m | StrOutputParser()).invoke(given))


@program("tutorial: chatbot with a summary", "langgraph")
def chatbot():
    """A graph that summarizes and removes old messages."""

    class State(MessagesState):
        summary: str

    def run(model):
        def talk(state):
            asked = [SystemMessage(state.get("summary", "")), *state["messages"]]
            return {"messages": [model.invoke(asked)]}

        def summarize(state):
            summary = model.invoke([*state["messages"], HumanMessage("Sum up.")]).text
            old = [RemoveMessage(id=m.id) for m in state["messages"][:-2]]
            return {"summary": summary, "messages": old}

        graph = nodes(State, talk, summarize).add_edge(START, "talk")
        long = lambda s: "summarize" if len(s["messages"]) > 2 else END
        graph.add_conditional_edges("talk", long)
        app = graph.compile(checkpointer=InMemorySaver())
        app.invoke(ASK, THREAD)
        state = app.invoke(ASK, THREAD)
        return state["summary"], shape(state)

    on_both(["first", "second", "They counted."], run)


@program("tutorial: tree search", "langgraph")
def tree_search():
    """LATS: several candidates by `generate` with the tools of a binding, reflection, a graph that
    branches.
    """

    class State(TypedDict):
        depth: int
        candidates: list[str]

    @tool
    def search(query: str) -> list[dict[str, str]]:
        """Search the web."""
        return [{"url": "u1", "content": f"about {query}"}]

    def run(model):
        bound = model.bind_tools([search]).kwargs

        def expand(state):
            asked = [HumanMessage(f"Depth {state['depth']}")]
            result = model.generate([asked] * 3, **bound)
            same(result.llm_output["token_usage"]["total_tokens"], 45)
            messages = [one.message for (one,) in result.generations]
            (call,) = JsonOutputToolsParser(return_id=True).invoke(messages[0])
            found = ToolMessage(content=search.invoke(call["args"]), tool_call_id=call["id"])
            judged = model.invoke([*asked, messages[0], found])
            texts = [str(one.tool_calls[0]["args"]) for one in messages]
            return {"depth": state["depth"] + 1, "candidates": [*texts, judged.text]}

        graph = nodes(State, expand).add_edge(START, "expand")
        graph.add_conditional_edges("expand", lambda s: END if s["depth"] > 1 else "expand")
        return graph.compile().invoke({"depth": 0, "candidates": []})

    def answer(text):
        return "Good." if "about sea" in text else calls(("search", {"query": "sea"}))

    on_both(answer, run)


@program("tutorial: plan, execute, reflect", "langgraph")
def plan_and_execute():
    """A plan as an object, an agent for each step, a union of two answers, and a critic in a loop."""

    class Plan(BaseModel):
        """The steps that are left."""

        steps: list[str]

    class Act(BaseModel):
        """What to do next."""

        plan: Plan | None = None
        answer: str | None = None

    class State(TypedDict):
        steps: list[str]
        past: Annotated[list[str], operator.add]
        answer: str | None

    @tool
    def look(what: str) -> str:
        """Look something up."""
        return f"{what} found"

    def run(model):
        agent = create_agent(model, [look])

        def plan(_):
            return {"steps": decide(model, Plan, "Plan.").steps}

        def execute(state):
            done = agent.invoke({"messages": [("user", state["steps"][0])]})
            return {"past": [done["messages"][-1].text]}

        def replan(state):
            act = decide(model, Act, f"Done: {state['past']}")
            return {"steps": act.plan.steps} if act.plan else {"answer": act.answer}

        graph = nodes(State, plan, execute, replan).add_edge(START, "plan")
        graph.add_edge("plan", "execute").add_edge("execute", "replan")
        graph.add_conditional_edges("replan", lambda s: END if s.get("answer") else "execute")
        return graph.compile().invoke({"past": [], "answer": None})

    script = [
        calls(("Plan", {"steps": ["a", "b"]})),
        calls(("look", {"what": "a"})),
        "a is here",
        calls(("Act", {"plan": {"steps": ["b"]}})),
        "b is here",
        calls(("Act", {"answer": "a and b"})),
    ]
    on_both(script, run)


@program("tutorial: extraction and tagging", "langchain-core")
def extraction():
    """Examples by tool_example_to_messages; several objects of a text; an enumeration."""

    class Meetings(BaseModel):
        """All meetings."""

        meetings: list[Meeting]

    class Tag(BaseModel):
        """Tag a text."""

        mood: Literal["glad", "sad"]

    found = Meetings(meetings=[Meeting(**GOOD)])
    history = tool_example_to_messages("3 people in Rome", [found], ai_response="Found.")
    answer = {"meetings": [GOOD, {"city": "Oslo", "people": 2}]}
    ask = [*history, HumanMessage("x")]
    for method, script in (
        ("function_calling", [calls(("Meetings", answer))]),
        ("json_schema", [json.dumps(answer)]),
    ):
        made = lambda m: m.with_structured_output(Meetings, method=method)
        same(on_both(script, lambda m: made(m).invoke(ask).model_dump())[0], answer)
    on_both(['{"mood": "sad"}'], lambda m: m.with_structured_output(Tag).invoke("x").mood)


def database():
    """A small SQLite database."""
    from langchain_community.utilities import SQLDatabase
    from sqlalchemy import create_engine, text
    from sqlalchemy.pool import StaticPool

    shared = {"check_same_thread": False}
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args=shared)
    with engine.begin() as connection:
        connection.execute(text("create table people (name text)"))
        connection.execute(text("insert into people values ('Ann'), ('Bob')"))
    return SQLDatabase(engine)


@program("tutorial: SQL agents", "langchain-community", *SQL)
def sql():
    """SQLDatabaseToolkit with create_agent; create_sql_agent in its tool-calling and ReAct forms."""
    from langchain_community.agent_toolkits import SQLDatabaseToolkit, create_sql_agent

    def toolkit(model):
        return agent_run(model, SQLDatabaseToolkit(db=database(), llm=model).get_tools())

    def classic(model, kind):
        agent = create_sql_agent(model, db=database(), agent_type=kind)
        return agent.invoke("x")["output"]

    query = "select count(*) from people"
    script = [calls(("sql_db_query", {"query": query})), "Two."]
    same(on_both(script, toolkit)[0][2][1], "[(2,)]")
    on_both(script, lambda m: classic(m, "tool-calling"))
    asked = f"Thought: ask\nAction: sql_db_query\nAction Input: {query}\nObservation: 9"
    with Play([asked, "Final Answer: Two."]) as play:
        same(classic(play.svc(), "zero-shot-react-description"), "Two.")


@program("LLMGraphTransformer", "langchain-experimental", *SQL)
def graph_documents():
    """Nodes and relations from a text."""
    from langchain_experimental.graph_transformers import LLMGraphTransformer

    ends = {"source_node_id": "Ann", "source_node_type": "Person"}
    ends |= {"target_node_id": "Rome", "target_node_type": "City"}
    people = [{"id": "Ann", "type": "Person"}, {"id": "Rome", "type": "City"}]
    found = {"nodes": people, "relationships": [{**ends, "type": "LIVES_IN"}]}

    def run(model):
        (made,) = LLMGraphTransformer(llm=model).convert_to_graph_documents([Document("x")])
        return len(made.nodes), len(made.relationships)

    same(on_both([calls(("DynamicGraph", found))], run)[0], (2, 1))


@program("query constructor and SQLiteCache", "langchain-community", *SQL)
def community():
    """A structured query from a question; a cache in a file."""
    from langchain_classic.chains.query_constructor.base import (
        AttributeInfo,
        load_query_constructor_runnable,
    )
    from langchain_community.cache import SQLiteCache

    attributes = [AttributeInfo(name="year", description="The year", type="integer")]
    made = lambda m: load_query_constructor_runnable(m, "Films", attributes)
    answer = '```json\n{"query": "sea", "filter": "gt(\\"year\\", 1990)"}\n```'
    on_both([answer], lambda m: str(made(m).invoke({"query": "x"})))
    with tempfile.TemporaryDirectory() as folder, Play(["hi"]) as play:
        model = play.svc(cache=SQLiteCache(f"{folder}/cache.db"))
        same([model.invoke("x").text, model.invoke("x").text], ["hi", "hi"])


@program("get_openai_callback, get_usage_metadata_callback", "langchain-community", *SQL)
def usage_callbacks():
    """Tokens in and out of invoke and stream. *Third party*: right tokens; LangChain counts hits of
    its cache too, for every model.
    """
    from langchain_community.callbacks import get_openai_callback
    from langchain_core.callbacks import get_usage_metadata_callback

    with Play(["hi", "hi"]) as play:
        model = play.svc()
        with get_openai_callback() as openai, get_usage_metadata_callback() as usage:
            model.invoke("x")
            list(model.stream("x"))
        same(usage.usage_metadata["svc-pro"]["total_tokens"], 30)
        same(openai.total_tokens, 30)
