"""LangChain's middleware."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from common import ASK, ONE_TWO, THREAD, THREE_FOUR, add, agent_run, agent_state, shape
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    FilesystemFileSearchMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolEmulator,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    ShellToolMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
    dynamic_prompt,
    wrap_model_call,
)
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from player import Play, calls, on_both, same
from registry import program

from langchain_svc import SvcBadRequestError


@program("SummarizationMiddleware", "langchain")
def summarization():
    """Triggers by messages, by tokens and by a fraction of the window, which the profile tells."""
    long = [HumanMessage("word " * 9000), AIMessage("yes"), HumanMessage("more"), AIMessage("ok")]
    for trigger in (("messages", 3), ("tokens", 1000), ("fraction", 0.01)):

        def run(model, trigger=trigger):
            middleware = SummarizationMiddleware(model, trigger=trigger, keep=("messages", 1))
            agent = create_agent(model, [], middleware=[middleware])
            return shape(agent.invoke({"messages": [*long, HumanMessage("x")]}))[-1]

        on_both(["The summary.", "done"], run)


@program("HumanInTheLoopMiddleware", "langchain")
def human_in_the_loop():
    """Two parallel calls; one is edited and one rejected, then the run is resumed."""

    def run(model):
        asks = HumanInTheLoopMiddleware(interrupt_on={"add": True})
        agent = create_agent(model, [add], middleware=[asks], checkpointer=InMemorySaver())
        (asked,) = agent.invoke(ASK, THREAD)["__interrupt__"]
        same(len(asked.value["action_requests"]), 2)
        edited = {"name": "add", "args": {"a": 5, "b": 5}}
        decisions = [{"type": "edit", "edited_action": edited}, {"type": "reject", "message": "no"}]
        return shape(agent.invoke(Command(resume={"decisions": decisions}), THREAD))

    came, _ = on_both([calls(ONE_TWO, THREE_FOUR), "done"], run)
    results = [text for kind, text, _ in came if kind == "tool"]
    assert any(text.endswith("10") for text in results), came
    assert any("no" in text for text in results), came


@program("ContextEditingMiddleware", "langchain")
def context_editing():
    """Old results are cleared, with the model's own token count, offline."""
    edit = ClearToolUsesEdit(trigger=20, keep=1)
    middleware = ContextEditingMiddleware(edits=[edit], token_count_method="model")
    script = [calls(ONE_TWO), calls(THREE_FOUR), "done"]
    with Play(script) as play:
        same(agent_run(play.svc(), middleware=[middleware])[-1][1], "done")
        assert "[cleared]" in play.asked[-1]


@program("retries and fallbacks as middleware", "langchain")
def retries():
    """ToolRetry, ModelFallback, ModelRetry after a 503 and not after a 400."""
    tries = []

    @tool
    def flaky() -> str:
        """Fail once."""
        tries.append(1)
        if len(tries) % 2:
            raise ValueError("not yet")
        return "now"

    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0)
    script = [calls(("flaky", {})), "done"]
    on_both(script, lambda m: agent_run(m, [flaky], middleware=[retry]))

    may_pass = lambda error: getattr(error, "is_retryable", False)
    again = ModelRetryMiddleware(max_retries=2, initial_delay=0, retry_on=may_pass)
    with Play([503, "after all"]) as play:
        state = agent_run(play.svc(), [], middleware=[again])
        same((state[-1][1], len(play.requests)), ("after all", 2))
    with Play([]) as broken, Play(["from the other"]) as good:  # 400 for every request
        fallback = ModelFallbackMiddleware(good.svc())
        same(agent_run(broken.svc(), middleware=[fallback])[-1][1], "from the other")
        with pytest.raises(SvcBadRequestError):
            create_agent(broken.svc(), [], middleware=[again]).invoke(ASK)
        same(len(broken.requests), 2)


@program("limits, PII and to-dos as middleware", "langchain")
def limits():
    """ModelCallLimit, ToolCallLimit, PII redaction and TodoList."""
    twice = [calls(ONE_TWO), calls(ONE_TWO), "done"]
    for limit in (ModelCallLimitMiddleware(run_limit=1), ToolCallLimitMiddleware(run_limit=1)):
        on_both(twice, lambda m: agent_run(m, middleware=[limit]))
    with Play(["ok"]) as play:
        mail = {"messages": [("user", "I am ann@example.com")]}
        create_agent(play.svc(), [], middleware=[PIIMiddleware("email")]).invoke(mail)
        assert "ann@example.com" not in play.asked[0]
    todos = [{"content": "shop", "status": "pending"}]
    script = [calls(("write_todos", {"todos": todos})), "noted"]
    noted = lambda m: agent_state(m, [], middleware=[TodoListMiddleware()])["todos"]
    same(on_both(script, noted)[0], todos)


@program("tools as middleware", "langchain")
def tools():
    """LLMToolSelector, LLMToolEmulator, ShellTool and FilesystemFileSearch."""

    @tool
    def other() -> str:
        """Do something else."""
        return ""

    def select(model):
        selector = LLMToolSelectorMiddleware(model=model, max_tools=1)
        return agent_run(model, [add, other], middleware=[selector])

    on_both(['{"tools": ["add"]}', calls(ONE_TWO), '{"tools": ["add"]}', "3"], select)
    emulated = [calls(ONE_TWO), "about 3", "done"]
    on_both(emulated, lambda m: agent_run(m, middleware=[LLMToolEmulator(model=m)]))
    shell = [calls(("shell", {"command": "echo hello"})), "done"]
    on_both(shell, lambda m: agent_run(m, [], middleware=[ShellToolMiddleware()]))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "note.txt").write_text("x")
        search = FilesystemFileSearchMiddleware(root_path=folder, use_ripgrep=False)
        script = [calls(("glob_search", {"pattern": "*.txt"})), "done"]
        came, _ = on_both(script, lambda m: agent_run(m, [], middleware=[search]))
        assert "note.txt" in came[2][1], came


@program("dynamic_prompt and wrap_model_call", "langchain")
def wrapped():
    """A prompt made for each call; temperature, stop, extra_body and tool_choice set for one call."""

    @dynamic_prompt
    def prompt(request):
        return "Speak like a sailor."

    @wrap_model_call
    def colder(request, handler):
        settings = {"temperature": 0.1, "extra_body": {"seed": 7}}
        return handler(request.override(model_settings=settings, tool_choice="add"))

    with Play([calls(ONE_TWO), calls(ONE_TWO)]) as play:
        agent = create_agent(play.svc(), [add], middleware=[prompt, colder])
        next(agent.stream(ASK, stream_mode="updates"))
        sent = play.requests[0]
        same((sent["temperature"], sent["seed"]), (0.1, 7))
        assert "sailor" in play.asked[0]
