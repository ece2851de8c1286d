"""Programs on langgraph that bring agents of their own."""

from __future__ import annotations

import asyncio
import json
import os

from common import ASK, GOOD, ONE_TWO, Meeting, add, shape
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from player import Play, calls, on_both, same
from registry import program

from langchain_svc import register


@program("langgraph prebuilt create_react_agent", "langgraph-prebuilt")
def create_react_agent():
    """Calls, a wrong call, and a structured response."""
    from langgraph.prebuilt import create_react_agent as make

    for script in ([calls(ONE_TWO), "3"], [calls(("add", {"a": 1})), "recovered"]):
        _, play = on_both(script, lambda m: shape(make(m, [add]).invoke(ASK)))
        same(len(play.requests), 2)
    script = [calls(ONE_TWO), "3", json.dumps(GOOD)]
    made = lambda m: make(m, [add], response_format=Meeting)  # noqa: E731
    came, _ = on_both(script, lambda m: made(m).invoke(ASK)["structured_response"])
    same(came, Meeting(**GOOD))


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


@program("deepagents", "deepagents", python=(3, 11))
def deepagents():
    """Files, a subagent, a missing tool (`write_todo`), by instance and by "svc:..."."""
    from deepagents import create_deep_agent

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

    register()
    with Play(script) as play:
        os.environ.update(SVC_API_KEY="k", SVC_BASE_URL_V1=f"{play.url}/v1")
        same(create_deep_agent("svc:svc-pro", [add]).invoke(ASK)["messages"][-1].text, came[-1][1])


@program("trustcall", "trustcall")
def trustcall():
    """A good answer, the repair of a wrong one by patches, an update of existing data."""
    from trustcall import create_extractor

    def extract(model, **given):
        extractor = create_extractor(model, tools=[Meeting], tool_choice="Meeting")
        return extractor.invoke({"messages": [("user", "x")], **given})["responses"]

    came, _ = on_both([calls(("Meeting", GOOD))], extract)
    same(came, [Meeting(**GOOD)])
    fix = [{"op": "replace", "path": "/people", "value": 3}]

    def answer(text):
        if "many" not in text:
            return calls(("Meeting", {"city": "Rome", "people": "many"}))
        return calls(
            ("PatchFunctionErrors", {"json_doc_id": "", "planned_edits": "", "patches": fix})
        )

    came, play = on_both(answer, extract)
    same((came, len(play.requests)), ([Meeting(**GOOD)], 2))

    def update(model):
        extractor = create_extractor(model, tools=[Meeting], tool_choice="Meeting")
        existing = {"Meeting": {"city": "Rome", "people": 2}}
        return extractor.invoke({"messages": [("user", "one more")], "existing": existing})[
            "responses"
        ]

    patch_doc = {
        "json_doc_id": "Meeting",
        "planned_edits": "one more",
        "patches": fix,
    }
    came, _ = on_both([calls(("PatchDoc", patch_doc))], update)
    same(came, [Meeting(**GOOD)])


@program("langmem", "langmem", python=(3, 11))
def langmem():
    """Memories from a conversation, and a running summary of a long one."""
    from langchain_core.messages import AIMessage, HumanMessage
    from langmem import create_memory_manager
    from langmem.short_term import summarize_messages

    talk = [{"role": "user", "content": "I live in Rome."}]

    def remember(model):
        manager = create_memory_manager(model, enable_inserts=True)
        return [
            m.content.content for m in manager.invoke({"messages": talk}, {"recursion_limit": 9})
        ]

    came, _ = on_both([calls(("Memory", {"content": "Lives in Rome."})), "Done."], remember)
    same(came, ["Lives in Rome."])
    history = [
        HumanMessage("word " * 300, id="1"),
        AIMessage("yes", id="2"),
        HumanMessage("and now?", id="3"),
    ]

    def summarize(model):
        came = summarize_messages(
            history, running_summary=None, model=model, max_tokens=120, max_summary_tokens=50
        )
        return came.running_summary and came.running_summary.summary

    on_both(["They said word."], summarize)


@program("langchain-mcp-adapters", "langchain-mcp-adapters")
def mcp():
    """A server of FastMCP over stdio: a list of numbers stays three numbers, an image does not end the run."""
    import sys
    from pathlib import Path

    from langchain_mcp_adapters.client import MultiServerMCPClient

    async def run(model):
        server = str(Path(__file__).parents[1] / "mcp_server.py")
        where = {"command": sys.executable, "args": [server], "transport": "stdio"}
        tools = await MultiServerMCPClient({"numbers": where}).get_tools()
        return shape(await create_agent(model, tools).ainvoke(ASK))[-1]

    for name, wanted in (("numbers", "12\n3\n45"), ("names", "Ann\nBob"), ("drawing", "a red dot")):
        with Play([calls((name, {})), "done"]) as play:
            same(asyncio.run(run(play.svc()))[1], "done")
            assert wanted in play.asked[-1], play.asked[-1]


@program("ag-ui-langgraph (CopilotKit)", "ag-ui-langgraph", python=(3, 11))
def ag_ui():
    """The events of two calls come in order: start, arguments and end of one, then of the other."""
    from ag_ui.core import RunAgentInput, UserMessage
    from ag_ui_langgraph import LangGraphAgent

    async def run(model):
        graph = create_agent(model, [add], checkpointer=InMemorySaver())
        ask = RunAgentInput(
            thread_id="t",
            run_id="r",
            state={},
            messages=[UserMessage(id="1", role="user", content="x")],
            tools=[],
            context=[],
            forwarded_props={},
        )
        told, arguments = [], {}
        async for event in LangGraphAgent(name="a", graph=graph).run(ask):
            kind = str(event.type.value)
            if kind == "TOOL_CALL_ARGS":
                arguments[event.tool_call_id] = arguments.get(event.tool_call_id, "") + event.delta
            if kind.startswith("TOOL_CALL") and (kind != "TOOL_CALL_ARGS" or told[-1] != kind):
                told.append(kind)
        return told, [json.loads(text) for text in arguments.values()]

    script = [calls(ONE_TWO, ("add", {"a": 3, "b": 4})), "3 and 7"]
    for settings in ({}, {"stream_tool_args": True}):
        with Play(script) as play:
            told, arguments = asyncio.run(run(play.svc(**settings)))
        one = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
        same(told[:6], one * 2)
        same(arguments, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    on_both(script, lambda m: asyncio.run(run(m)))
