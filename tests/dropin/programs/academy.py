"""LangGraph's tutorials and the notebooks of LangChain Academy, in our own words and on a few lines
of data.
"""

from __future__ import annotations

import operator
import re
from typing import Annotated, Any, Literal

from common import ASK, ONE_TWO, THREAD, Meeting, add, decide, nodes, shape, store
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import PydanticToolsParser
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send, interrupt
from player import calls, on_both, same
from pydantic import BaseModel, ValidationError
from registry import program
from typing_extensions import TypedDict


@program("tutorial: adaptive, corrective and self-RAG", "langgraph")
def graded_rag():
    """A question is routed; documents and the answer are graded; what fails is asked anew or
    written again.
    """

    class Route(BaseModel):
        """Where to look."""

        source: Literal["store", "web"]

    class Grade(BaseModel):
        """Whether it holds."""

        score: Literal["yes", "no"]

    class State(TypedDict):
        question: str
        documents: list[str]
        answer: str

    found = store("The sea is blue.", "Grass is green.").as_retriever()

    def run(model):
        def holds(claim):
            return decide(model, Grade, claim).score == "yes"

        def route(state):
            return "retrieve" if decide(model, Route, state["question"]).source == "store" else END

        def retrieve(state):
            texts = [d.page_content for d in found.invoke(state["question"])]
            return {"documents": [text for text in texts if holds(f"Of use: {text}")]}

        def rewrite(state):
            return {"question": model.invoke(f"Ask better: {state['question']}").text}

        def answer(state):
            return {"answer": model.invoke(f"{state['documents']}\n{state['question']}").text}

        graph = nodes(State, retrieve, rewrite, answer)
        graph.add_conditional_edges(START, route)
        graph.add_conditional_edges("retrieve", lambda s: "answer" if s["documents"] else "rewrite")
        graph.add_edge("rewrite", "retrieve")
        grounded = lambda s: END if holds(f"Grounded: {s['answer']}") else "answer"
        graph.add_conditional_edges("answer", grounded)
        return graph.compile().invoke({"question": "Blue?"})

    yes, no = (calls(("Grade", {"score": score})) for score in ("yes", "no"))
    first = [calls(("Route", {"source": "store"})), no, no, "What is blue?"]
    came, _ = on_both([*first, yes, no, "Grass.", no, "The sea.", yes], run)
    same(came["answer"], "The sea.")


@program("tutorial: reflexion and ReWOO", "langgraph")
def reflexion():
    """A draft that is revised after searches of a ToolNode, and repaired where it does not fit; a
    plan as text whose steps use earlier results.
    """

    class Draft(BaseModel):
        """An answer, and what to search for to better it."""

        answer: str
        queries: list[str]

    def search(answer: str, queries: list[str]) -> list[dict[str, str]]:
        """Search the web."""
        return [{"url": "u", "content": f"about {query}"} for query in queries]

    def revised(model):
        bound = model.bind_tools([Draft], tool_choice="Draft")

        def draft(state):
            asked = list(state["messages"])
            while True:
                said = bound.invoke(asked)
                try:
                    PydanticToolsParser(tools=[Draft]).invoke(said)
                except ValidationError as error:
                    told = ToolMessage(str(error), tool_call_id=said.tool_calls[0]["id"])
                    asked += [said, told]
                else:
                    return {"messages": [said]}

        graph = nodes(MessagesState, draft)
        graph.add_node("search", ToolNode([StructuredTool.from_function(search, name="Draft")]))
        graph.add_edge(START, "draft").add_edge("search", "draft")
        graph.add_conditional_edges("draft", lambda s: "search" if len(s["messages"]) < 4 else END)
        return shape(graph.compile().invoke(ASK))

    drafts = [{"answer": "a"}, {"answer": "a", "queries": ["sea"]}, {"answer": "b", "queries": []}]
    _, play = on_both([calls(("Draft", one)) for one in drafts], revised)
    assert "about sea" in play.asked[-1], play.asked

    def planned(model):
        results: dict[str, str] = {}
        plan = model.invoke("Plan.").text
        for name, kind, given in re.findall(r"(#E\d) = (\w+)\[(.+)\]", plan):
            asked = re.sub(r"#E\d", lambda known: results[known[0]], given)
            results[name] = model.invoke(asked).text if kind == "LLM" else f"about {asked}"
        return model.invoke(str(results)).text

    plan = "Plan: look. #E1 = Search[sea]\nPlan: judge. #E2 = LLM[What colour is #E1?]"
    _, play = on_both([plan, "Blue.", "It is blue."], planned)
    assert "about sea?" in play.asked[1], play.asked


@program("tutorial: gathering from a simulated user", "langgraph")
def gathering():
    """A chatbot asks until it can call a tool with what it needs; the model plays the user too,
    with roles swapped.
    """

    def run(model):
        def bot(state):
            asked = [SystemMessage("Find out what is needed."), *state["messages"]]
            return {"messages": [model.bind_tools([Meeting]).invoke(asked)]}

        def user(state):
            kinds = {"ai": HumanMessage, "human": AIMessage}
            swapped = [kinds[m.type](m.content) for m in state["messages"]]
            said = model.invoke([SystemMessage("You plan a meeting."), *swapped]).text
            return {"messages": [HumanMessage(said, name="user")]}

        def note(state):
            (call,) = state["messages"][-1].tool_calls
            return {"messages": [ToolMessage("Noted.", tool_call_id=call["id"])]}

        def write(state):
            (call,) = state["messages"][-2].tool_calls
            asked = [SystemMessage(f"Invite to {call['args']}."), *state["messages"][-2:]]
            return {"messages": [model.invoke(asked)]}

        graph = nodes(MessagesState, bot, user, note, write)
        graph.add_edge(START, "bot").add_edge("user", "bot").add_edge("note", "write")
        called = lambda s: "note" if s["messages"][-1].tool_calls else "user"
        graph.add_conditional_edges("bot", called)
        return shape(graph.compile().invoke(ASK))

    need = calls(("Meeting", {"city": "Rome", "people": 3}))
    on_both(["Where?", "In Rome.", "How many?", "Three.", need, "Come to Rome."], run)


@program("tutorial: hierarchical teams", "langgraph")
def teams():
    """Supervisors that route by a schema and Command, a team as a node of another, answers under
    names.
    """

    def team(model, **members):
        names = {"type": "string", "enum": [*members, "FINISH"]}
        route = {"title": "Route", "description": "Who is next.", "type": "object"}
        route |= {"properties": {"next": names}, "required": ["next"]}

        def supervise(state):
            chosen = decide(model, route, [SystemMessage("Choose."), *state["messages"]])["next"]
            return Command(goto=END if chosen == "FINISH" else chosen)

        def named(name, member):
            def work(state):
                said = member.invoke({"messages": state["messages"]})["messages"][-1].text
                told = {"messages": [HumanMessage(said, name=name)]}
                return Command(goto="supervise", update=told)

            return work

        graph = nodes(MessagesState, supervise).add_edge(START, "supervise")
        for name, member in members.items():
            graph.add_node(name, named(name, member))
        return graph.compile()

    def run(model):
        inner = team(model, adder=create_agent(model, [add]), writer=create_agent(model, []))
        return shape(team(model, maths=inner).invoke(ASK))

    chosen = {name: calls(("Route", {"next": name})) for name in ("maths", "adder", "writer")}
    end = calls(("Route", {"next": "FINISH"}))
    first = [chosen["maths"], chosen["adder"], calls(ONE_TWO), "3", chosen["writer"]]
    same(on_both([*first, "It is three.", end, end], run)[0][-1][1], "It is three.")


@program("tutorial: functional API", "langgraph")
def functional():
    """An agent of tasks: parallel calls as futures, an interrupt, what the last run saved, a store
    across threads.
    """
    from langgraph.func import entrypoint, task

    def run(model):
        @task
        def ask(messages):
            return model.bind_tools([add]).invoke(messages)

        @task
        def use(call):
            return add.invoke(call)

        @entrypoint(checkpointer=InMemorySaver(), store=InMemoryStore())
        def agent(asked, *, previous, store):
            messages = [*(previous or []), HumanMessage(asked)]
            while (said := ask(messages).result()).tool_calls:
                used = [use({**call, "type": "tool_call"}) for call in said.tool_calls]
                messages += [said, *(one.result() for one in used)]
            store.put(("answers",), asked, {"text": said.text})
            approved = interrupt(said.text), len(store.search(("answers",)))
            return entrypoint.final(value=approved, save=[*messages, said])

        agent.invoke("x", THREAD)
        first = agent.invoke(Command(resume="good"), THREAD)
        agent.invoke("again", THREAD)
        return first, agent.invoke(Command(resume="fine"), THREAD)

    came, play = on_both([calls(ONE_TWO, ONE_TWO), "3", "still 3"], run)
    same(came, (("good", 1), ("fine", 2)))
    assert "again" in play.asked[-1]


@program("academy: research assistant", "langgraph")
def research():
    """Analysts as a list of objects, changed after a person's feedback; an interview of each as a
    sub-graph, by Send and in parallel; a report of all. No two calls have the same id.
    """

    class Analysts(BaseModel):
        """Who asks."""

        roles: list[str]

    class Found(TypedDict):
        found: Annotated[list[Any], operator.add]

    class Interview(Found):
        role: str

    class Report(Found):
        feedback: str
        roles: list[str]
        report: str

    def run(model):
        def analysts(state):
            asked = f"Choose analysts. {state.get('feedback', '')}"
            return {"roles": decide(model, Analysts, asked).roles}

        def question(state):
            asked = [SystemMessage(f"You are a {state['role']}."), HumanMessage("Ask.")]
            return {"found": [model.bind_tools([add]).invoke(asked)]}

        def report(state):
            calls = [call for message in state["found"] for call in message.tool_calls]
            same(len({call["id"] for call in calls}), 3)
            return {"report": model.invoke(f"Report on {len(calls)}.").text}

        interview = StateGraph(Interview, output_schema=Found).add_sequence([question])
        graph = nodes(Report, analysts, report)
        graph.add_node("interview", interview.add_edge(START, "question").compile())
        graph.add_edge(START, "analysts").add_edge("interview", "report")
        each = lambda s: [Send("interview", {"role": role, "found": []}) for role in s["roles"]]
        graph.add_conditional_edges("analysts", each, ["interview"])
        app = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["interview"])
        app.invoke({"found": []}, THREAD)
        app.update_state(THREAD, {"feedback": "Add a sailor."}, as_node=START)
        app.invoke(None, THREAD)
        state = app.invoke(None, THREAD)
        return state["roles"], state["report"]

    def answer(text):
        if "Choose" in text:
            roles = ["cook", "baker", *(["sailor"] if "sailor" in text else [])]
            return calls(("Analysts", {"roles": roles}))
        return "All asked." if "Report" in text else calls(ONE_TWO)

    same(on_both(answer, run)[0], (["cook", "baker", "sailor"], "All asked."))


@program("academy: memory in a store", "trustcall")
def memory():
    """A profile of a user, kept by trustcall in a store, corrected, and read in the next thread."""
    from trustcall import create_extractor

    class Profile(BaseModel):
        """Who the user is."""

        name: str
        city: str | None = None

    def run(model):
        kept = InMemoryStore()
        extractor = create_extractor(model, tools=[Profile], tool_choice="Profile")

        def talk(state, *, store):
            known = [item.value for item in store.search(("ann",))]
            return {"messages": [model.invoke([SystemMessage(str(known)), *state["messages"]])]}

        def remember(state, *, store):
            old = store.get(("ann",), "profile")
            given = {"existing": {"Profile": old.value}} if old else {}
            (told,) = extractor.invoke({"messages": state["messages"], **given})["responses"]
            store.put(("ann",), "profile", told.model_dump())

        graph = nodes(MessagesState, talk, remember)
        app = graph.add_edge(START, "talk").add_edge("talk", "remember").compile(store=kept)
        for said in ("I am Ann.", "I live in Rome."):
            app.invoke({"messages": [HumanMessage(said)]})
        return kept.get(("ann",), "profile").value

    patch = [{"op": "replace", "path": "/city", "value": "Rome"}]
    patched = calls(("PatchDoc", {"json_doc_id": "Profile", "planned_edits": "", "patches": patch}))
    script = ["Hello, Ann.", calls(("Profile", {"name": "Ann"})), "Rome is nice.", patched]
    came, play = on_both(script, run)
    same(came, {"name": "Ann", "city": "Rome"})
    assert "Ann" in play.asked[2]
