"""Programs on langgraph that bring agents of their own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from common import ASK, GOOD, ONE_TWO, THREE_FOUR, Meeting, add, shape
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from player import Play, calls, on_both, same
from registry import program


@program("langgraph prebuilt create_react_agent", "langgraph-prebuilt")
def create_react_agent():
    """A wrong call, from which the run recovers, and a structured response."""
    from langgraph.prebuilt import create_react_agent as make

    def run(model):
        state = make(model, [add], response_format=Meeting).invoke(ASK)
        return shape(state), state["structured_response"]

    script = [calls(("add", {"a": 1})), "recovered", json.dumps(GOOD)]
    same(on_both(script, run)[0][1], Meeting(**GOOD))


@program("langgraph-supervisor", "langgraph-supervisor")
def supervisor():
    """A handover, one to a missing agent (the next answer is right), and the way back."""
    from langgraph_supervisor import create_supervisor

    def run(model):
        math = create_agent(model, [add], name="math")
        return shape(create_supervisor([math], model=model).compile().invoke(ASK))

    over, wrong = calls(("transfer_to_math", {})), calls(("transfer_to_maths", {}))
    good = [over, calls(ONE_TWO), "It is 3.", "The expert says 3."]
    for script in (good, [wrong, *good]):
        came, play = on_both(script, run)
        same((came[-1][1], len(play.requests)), ("The expert says 3.", len(script)))


@program("langgraph-swarm", "langgraph-swarm")
def swarm():
    """A handover between two agents; one to a missing agent."""
    from langgraph_swarm import create_handoff_tool, create_swarm

    def run(model):
        ann = create_agent(model, [create_handoff_tool(agent_name="bob")], name="ann")
        bob = create_agent(model, [add], name="bob")
        return shape(create_swarm([ann, bob], default_active_agent="ann").compile().invoke(ASK))

    good = [calls(("transfer_to_bob", {})), calls(ONE_TWO), "Bob says 3."]
    for script in (good, [calls(("transfer_to_bo", {})), *good]):
        came, play = on_both(script, run)
        same((came[-1][1], len(play.requests)), ("Bob says 3.", len(script)))


@program("deepagents", "deepagents")
def deepagents():
    """Files, a subagent, a missing tool (`write_todo`). A model by its name, `svc:svc-pro`, without
    register(). A harness profile of `svc` leaves tools out.
    """
    from deepagents import HarnessProfile, create_deep_agent, register_harness_profile

    script = [
        calls(("write_todo", {"todos": []})),
        calls(("write_file", {"file_path": "/plan.md", "content": "1. add"})),
        calls(("read_file", {"file_path": "/plan.md"})),
        calls(("task", {"description": "add 1 and 2", "subagent_type": "general-purpose"})),
        calls(ONE_TWO),
        "It is 3.",
        "The subagent says 3.",
    ]
    came, play = on_both(script, lambda m: shape(create_deep_agent(m, [add]).invoke(ASK)))
    same((came[-1][1], len(play.requests)), ("The subagent says 3.", len(script)))

    def prompt():
        with Play(["Hello."]) as play:
            os.environ.update(SVC_API_KEY="k", SVC_BASE_URL_V1=f"{play.url}/v1")
            same(shape(create_deep_agent("svc:svc-pro", [add]).invoke(ASK))[-1][1], "Hello.")
        return play.asked[0]

    everything = prompt()
    register_harness_profile("svc", HarnessProfile(excluded_tools=frozenset({"grep", "glob"})))
    same([name in everything for name in ("add", "grep", "glob")], [True, True, True])
    same(
        [f'"name": "{name}"' in prompt() for name in ("add", "grep", "glob")], [True, False, False]
    )


@program("trustcall", "trustcall")
def trustcall():
    """A good answer, the repair of a wrong one by patches, an update of existing data."""
    from trustcall import create_extractor

    def extract(model, **given):
        extractor = create_extractor(model, tools=[Meeting], tool_choice="Meeting")
        return extractor.invoke({**ASK, **given})["responses"]

    fix = [{"op": "replace", "path": "/people", "value": 3}]
    patch = {"json_doc_id": "Meeting", "planned_edits": "", "patches": fix}
    old = {"Meeting": {"city": "Rome", "people": 2}}
    wrong = calls(("Meeting", {"city": "Rome", "people": "many"}))
    repair = lambda text: calls(("PatchFunctionErrors", patch)) if "many" in text else wrong
    for script, given, requests in (
        ([calls(("Meeting", GOOD))], {}, 1),
        (repair, {}, 2),
        ([calls(("PatchDoc", patch))], {"existing": old}, 1),
    ):
        came, play = on_both(script, lambda m: extract(m, **given))
        same((came, len(play.requests)), ([Meeting(**GOOD)], requests))


@program("langmem", "langmem")
def langmem():
    """Memories from a conversation, and a running summary of a long one."""
    from langmem import create_memory_manager
    from langmem.short_term import summarize_messages

    def remember(model):
        manager = create_memory_manager(model, enable_inserts=True)
        return [memory.content.content for memory in manager.invoke(ASK, {"recursion_limit": 9})]

    came, _ = on_both([calls(("Memory", {"content": "Lives in Rome."})), "Done."], remember)
    same(came, ["Lives in Rome."])
    history = [HumanMessage("word " * 300, id="1"), AIMessage("yes", id="2")]
    history.append(HumanMessage("and now?", id="3"))

    def summarize(model):
        limits = {"max_tokens": 120, "max_summary_tokens": 50}
        came = summarize_messages(history, running_summary=None, model=model, **limits)
        return came.running_summary.summary

    same(on_both(["They said word."], summarize)[0], "They said word.")


@program("langchain-mcp-adapters", "langchain-mcp-adapters")
def mcp():
    """A server of FastMCP over stdio: a list of numbers stays three numbers, an image does not end
    the run.
    """
    from langchain_mcp_adapters.client import MultiServerMCPClient

    async def run(model):
        server = str(Path(__file__).parents[1] / "mcp_server.py")
        where = {"command": sys.executable, "args": [server], "transport": "stdio"}
        tools = await MultiServerMCPClient({"numbers": where}).get_tools()
        return shape(await create_agent(model, tools).ainvoke(ASK))[-1]

    for name, wanted in (("numbers", "12\n3\n45"), ("drawing", "a red dot")):
        with Play([calls((name, {})), "done"]) as play:
            same(asyncio.run(run(play.svc()))[1], "done")
            assert wanted in play.asked[-1], play.asked[-1]


@program("ag-ui-langgraph (CopilotKit)", "ag-ui-langgraph")
def ag_ui():
    """The events of two calls come in order: start, arguments and end of one, then of the other."""
    from ag_ui.core import RunAgentInput, UserMessage
    from ag_ui_langgraph import LangGraphAgent

    async def run(model):
        graph = create_agent(model, [add], checkpointer=InMemorySaver())
        talk = [UserMessage(id="1", role="user", content="x")]
        given = {"state": {}, "messages": talk, "tools": [], "context": [], "forwarded_props": {}}
        ask = RunAgentInput(thread_id="t", run_id="r", **given)
        told, arguments = [], {}
        async for event in LangGraphAgent(name="a", graph=graph).run(ask):
            kind = str(event.type.value)
            if kind == "TOOL_CALL_ARGS":
                arguments[event.tool_call_id] = arguments.get(event.tool_call_id, "") + event.delta
            if kind.startswith("TOOL_CALL") and (kind != "TOOL_CALL_ARGS" or told[-1] != kind):
                told.append(kind)
        return told, [json.loads(text) for text in arguments.values()]

    script = [calls(ONE_TWO, THREE_FOUR), "3 and 7"]
    for settings in ({}, {"stream_tool_args": True}):
        with Play(script) as play:
            told, arguments = asyncio.run(run(play.svc(**settings)))
        one = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
        same(told[:6], one * 2)
        same(arguments, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    on_both(script, lambda m: asyncio.run(run(m)))
