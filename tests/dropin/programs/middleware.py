"""LangChain's middleware."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from common import ASK, ONE_TWO, add, shape
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from player import Play, calls, on_both, same
from registry import program

from langchain_svc import SvcRequestError


@program("SummarizationMiddleware", "langchain")
def summarization():
    """Triggers by messages, by tokens and by a fraction of the window, which the profile tells."""
    from langchain.agents.middleware import SummarizationMiddleware

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
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    def run(model):
        agent = create_agent(
            model,
            [add],
            middleware=[HumanInTheLoopMiddleware(interrupt_on={"add": True})],
            checkpointer=InMemorySaver(),
        )
        config = {"configurable": {"thread_id": "1"}}
        (asked,) = agent.invoke(ASK, config)["__interrupt__"]
        same(len(asked.value["action_requests"]), 2)
        edited = {"name": "add", "args": {"a": 5, "b": 5}}
        decisions = [{"type": "edit", "edited_action": edited}, {"type": "reject", "message": "no"}]
        return shape(agent.invoke(Command(resume={"decisions": decisions}), config))

    came, _ = on_both([calls(ONE_TWO, ("add", {"a": 3, "b": 4})), "done"], run)
    results = [text for kind, text, _ in came if kind == "tool"]
    assert any(text.endswith("10") for text in results), came
    assert any("no" in text for text in results), came


@program("ContextEditingMiddleware", "langchain")
def context_editing():
    """Old results are cleared, with the model's own token count, offline."""
    from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware

    edit = ClearToolUsesEdit(trigger=20, keep=1)
    middleware = ContextEditingMiddleware(edits=[edit], token_count_method="model")
    script = [calls(ONE_TWO), calls(("add", {"a": 3, "b": 4})), "done"]
    with Play(script) as play:
        agent = create_agent(play.svc(), [add], middleware=[middleware])
        same(agent.invoke(ASK)["messages"][-1].text, "done")
        assert "[cleared]" in play.asked[-1]


@program("retries and fallbacks as middleware", "langchain")
def retries():
    """ToolRetry, ModelFallback, ModelRetry after a 503 and not after a 400."""
    from langchain.agents.middleware import (
        ModelFallbackMiddleware,
        ModelRetryMiddleware,
        ToolRetryMiddleware,
    )
    from langchain_core.tools import tool

    from langchain_svc import SvcBadRequestError

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
    on_both(script, lambda m: shape(create_agent(m, [flaky], middleware=[retry]).invoke(ASK)))

    with Play([503, "after all"]) as play:
        again = ModelRetryMiddleware(max_retries=2, initial_delay=0, retry_on=_may_pass)
        state = create_agent(play.svc(), [], middleware=[again]).invoke(ASK)
        same((state["messages"][-1].text, len(play.requests)), ("after all", 2))
    with Play([]) as broken, Play(["from the other"]) as good:  # 400 for every request
        fallback = [ModelFallbackMiddleware(good.svc())]
        agent = create_agent(broken.svc(), [add], middleware=fallback)
        same(agent.invoke(ASK)["messages"][-1].text, "from the other")
        again = ModelRetryMiddleware(max_retries=2, initial_delay=0, retry_on=_may_pass)
        agent = create_agent(broken.svc(), [], middleware=[again])
        try:
            agent.invoke(ASK)
        except SvcBadRequestError:
            same(len(broken.requests), 2)


def _may_pass(error: Exception) -> bool:
    return bool(getattr(error, "is_retryable", False))


@program("limits, PII and to-dos as middleware", "langchain")
def limits():
    """ModelCallLimit, ToolCallLimit, PII redaction and TodoList."""
    from langchain.agents.middleware import (
        ModelCallLimitMiddleware,
        PIIMiddleware,
        TodoListMiddleware,
        ToolCallLimitMiddleware,
    )

    twice = [calls(ONE_TWO), calls(ONE_TWO), "done"]
    for limit in (ModelCallLimitMiddleware(run_limit=1), ToolCallLimitMiddleware(run_limit=1)):
        made = lambda m, limit=limit: create_agent(m, [add], middleware=[limit])  # noqa: E731
        on_both(twice, lambda m, made=made: shape(made(m).invoke(ASK)))
    with Play(["ok"]) as play:
        create_agent(play.svc(), [], middleware=[PIIMiddleware("email")]).invoke(
            {"messages": [("user", "I am ann@example.com")]}
        )
        assert "ann@example.com" not in play.asked[0]
    todos = [{"content": "shop", "status": "pending"}]
    script = [calls(("write_todos", {"todos": todos})), "noted"]
    came, _ = on_both(
        script,
        lambda m: create_agent(m, [], middleware=[TodoListMiddleware()]).invoke(ASK)["todos"],
    )
    same(came, todos)


@program("tools as middleware", "langchain")
def tools():
    """LLMToolSelector, LLMToolEmulator, ShellTool and FilesystemFileSearch."""
    from langchain.agents.middleware import (
        FilesystemFileSearchMiddleware,
        LLMToolEmulator,
        LLMToolSelectorMiddleware,
        ShellToolMiddleware,
    )
    from langchain_core.tools import tool

    @tool
    def other() -> str:
        """Do something else."""
        return ""

    def select(model):
        selector = LLMToolSelectorMiddleware(model=model, max_tools=1)
        return shape(create_agent(model, [add, other], middleware=[selector]).invoke(ASK))

    on_both(['{"tools": ["add"]}', calls(ONE_TWO), '{"tools": ["add"]}', "3"], select)

    def emulate(model):
        return shape(
            create_agent(model, [add], middleware=[LLMToolEmulator(model=model)]).invoke(ASK)
        )

    on_both([calls(ONE_TWO), "about 3", "done"], emulate)
    shell = [calls(("shell", {"command": "echo hello"})), "done"]
    on_both(
        shell, lambda m: shape(create_agent(m, [], middleware=[ShellToolMiddleware()]).invoke(ASK))
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "note.txt").write_text("x")
        search = FilesystemFileSearchMiddleware(root_path=folder, use_ripgrep=False)
        script = [calls(("glob_search", {"pattern": "*.txt"})), "done"]
        came, _ = on_both(
            script, lambda m: shape(create_agent(m, [], middleware=[search]).invoke(ASK))
        )
        assert "note.txt" in came[2][1], came


@program("dynamic_prompt and wrap_model_call", "langchain")
def wrapped():
    """A prompt made for each call; temperature, stop, extra_body and tool_choice set for one call."""
    from langchain.agents.middleware import dynamic_prompt, wrap_model_call

    @dynamic_prompt
    def prompt(request):
        return "Speak like a sailor."

    @wrap_model_call
    def colder(request, handler):
        settings = {"temperature": 0.1, "extra_body": {"seed": 7}}
        return handler(request.override(model_settings=settings, tool_choice="add"))

    with Play([calls(ONE_TWO), calls(ONE_TWO)]) as play:
        agent = create_agent(play.svc(), [add], middleware=[prompt, colder])
        stream = agent.stream(ASK, stream_mode="updates")
        next(stream)
        stream.close()
        sent = play.requests[0]
        same((sent["temperature"], sent["seed"]), (0.1, 7))
        assert "sailor" in play.asked[0]


@program("parameters of other providers for one call", "langchain-core")
def words():
    """`max_tokens=10.0` and `stop=""` are taken; `seed=1` and `functions=[...]` are rejected, and the error says what to use."""
    with Play(["ok"]) as play:
        model = play.svc()
        same(model.invoke("x", max_tokens=10.0, stop="").text, "ok")
        same(play.requests[0]["max_tokens"], 10)
        for word, hint in (
            ({"seed": 1}, "extra_body"),
            ({"functions": [{"name": "f"}]}, "bind_tools"),
        ):
            try:
                model.invoke("x", **word)
            except (SvcRequestError, TypeError) as error:
                assert re.search(hint, str(error)), error
            else:
                raise AssertionError(f"{word} was taken")
