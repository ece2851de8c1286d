"""Frameworks and services that take a LangChain chat model."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile

import pytest
from common import ASK, GOOD, Meeting, add
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from player import Play, calls, on_both, same
from registry import program

from langchain_svc import register


@program("open_deep_research", "open-deep-research", "open-deep-research==0.0.16")
def open_deep_research():
    """Its own graph without a search, models "svc:svc-pro": a brief, research, its compression, the
    report.
    """
    from open_deep_research.deep_researcher import deep_researcher_builder

    register()
    script = [
        json.dumps({"research_brief": "What is 1 + 2?"}),
        calls(("ConductResearch", {"research_topic": "sums"})),
        calls(("ResearchComplete", {})),
        "compressed",
        calls(("ResearchComplete", {})),
        "The report: 3.",
    ]
    roles = ("research", "compression", "final_report", "summarization")
    graph = deep_researcher_builder.compile()
    for name in ("svc:svc-pro", "openai:gpt-4o-mini"):
        with Play(script) as play:
            os.environ.update(SVC_API_KEY="k", SVC_BASE_URL_V1=f"{play.url}/v1")
            os.environ.update(OPENAI_API_KEY="k", OPENAI_BASE_URL=f"{play.url}/openai/v1")
            config = {"search_api": "none", "allow_clarification": False}
            config |= {f"{role}_model": name for role in roles}
            state = asyncio.run(graph.ainvoke(ASK, {"configurable": config}))
            same((state["final_report"], len(play.requests)), ("The report: 3.", len(script)))


@program(
    "llama-index LangChainLLM",
    "llama-index-llms-langchain",
    "llama-index-llms-langchain==0.9.0",
    "langchain-community<0.4.2",
)
def llama_index():
    """complete, chat, stream, structured_predict."""
    from llama_index.core.llms import ChatMessage
    from llama_index.core.prompts import PromptTemplate
    from llama_index.llms.langchain import LangChainLLM

    def run(model):
        llm, asked = LangChainLLM(llm=model), [ChatMessage(role="user", content="x")]
        said = [llm.complete("x").text, llm.chat(asked).message.content]
        streamed = "".join(piece.delta for piece in llm.stream_chat(asked))
        return [*said, streamed, llm.structured_predict(Meeting, PromptTemplate("x"))]

    came, _ = on_both(["one", "two", "three four five", json.dumps(GOOD)], run)
    same(came, ["one", "two", "three four five", Meeting(**GOOD)])


@program("mem0 (provider langchain)", "mem0ai", "mem0ai==2.2.1")
def mem0():
    """A memory is taken from a conversation and kept."""
    from mem0 import Memory

    def part(provider, **config):
        return {"provider": provider, "config": config}

    def run(model):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["MEM0_DIR"] = folder
            config = {
                "llm": part("langchain", model=model),
                "embedder": part("langchain", model=DeterministicFakeEmbedding(size=8)),
                "vector_store": part("qdrant", path=f"{folder}/q", embedding_model_dims=8),
                "history_db_path": f"{folder}/history.db",
            }
            added = Memory.from_config(config).add("I live in Rome.", user_id="ann")
            return [one["memory"] for one in added["results"]]

    answer = {"memory": [{"id": "0", "text": "Lives in Rome", "event": "ADD"}]}
    came, _ = on_both([json.dumps(answer)] * 3, run)
    same(came, ["Lives in Rome"])


@program("NeMo Guardrails RunnableRails", "nemoguardrails", "nemoguardrails==0.24.1")
def nemo():
    """An input rail that asks the model; a good question passes, a bad one is blocked."""
    from nemoguardrails import RailsConfig
    from nemoguardrails.integrations.langchain.runnable_rails import RunnableRails

    prompt = "{task: self_check_input, content: 'Blocked (yes or no)? {{ user_input }}'}"
    rails = f"models: []\nrails: {{input: {{flows: [self check input]}}}}\nprompts: [{prompt}]"
    config = RailsConfig.from_content(yaml_content=rails)
    asked = [{"input": "a good question"}, {"input": "a bad question"}]

    def run(model):
        chain = ChatPromptTemplate.from_template("{input}") | model
        rails = RunnableRails(config, llm=model)
        return [str(getattr(one, "content", one)) for one in map((rails | chain).invoke, asked)]

    script = lambda text: ("Yes" if "bad" in text else "No") if "Blocked" in text else "an answer"
    came, _ = on_both(script, run)
    assert "an answer" in came[0], came
    assert "an answer" not in came[1], came


@program("guardrails-ai", "guardrails-ai", "guardrails-ai==0.11.0")
def guardrails():
    """A guard with a validator, as a part of a chain."""
    from guardrails import Guard, OnFailAction
    from guardrails.errors import ValidationError
    from guardrails.validators import FailResult, PassResult, Validator, register_validator

    @register_validator(name="short", data_type="string")
    class Short(Validator):
        def validate(self, value, metadata):
            return PassResult() if len(value) < 9 else FailResult(error_message="too long")

    guard = Guard().use(Short(on_fail=OnFailAction.EXCEPTION))
    with Play(["short", "much too long"]) as play:
        chain = play.svc() | guard.to_runnable() | StrOutputParser()
        same(chain.invoke("x"), "short")
        with pytest.raises((ValidationError, ValueError)):
            chain.invoke("x")


@program("langserve", "langserve", "langserve==0.3.3", "sse-starlette>=2", "fastapi>=0.115")
def langserve():
    """invoke, batch and stream over HTTP, with tools bound."""
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    from langserve import add_routes

    def run(model):
        app = FastAPI()
        add_routes(app, model.bind_tools([add]), path="/chat")
        with TestClient(app) as client:
            one = client.post("/chat/invoke", json={"input": "x"}).json()["output"]
            two = client.post("/chat/batch", json={"inputs": ["x", "y"]}).json()["output"]
            stream = client.post("/chat/stream", json={"input": "x"}).text
        return [one["content"], len(two), "event: end" in stream]

    on_both(["one", "two", "three", "four"], run)


@program("crewai", "crewai", "crewai==1.15.30")
def crewai():
    """An agent does a task through an adapter. *Third party*: it refuses every LangChain model; the
    lines of BaseLLM in the script adapt one.
    """
    from crewai import Agent, Crew, Task
    from crewai.llms.base_llm import BaseLLM

    class Adapted(BaseLLM):
        def call(self, messages, *_, **__):
            if isinstance(messages, str):
                return self._chat.invoke(messages).text
            return self._chat.invoke([(m["role"], m["content"]) for m in messages]).text

    def run(llm):
        agent = Agent(role="adder", goal="add", backstory="none", llm=llm)
        task = Task(description="1 + 2", expected_output="a number", agent=agent)
        return Crew(agents=[agent], tasks=[task]).kickoff().raw

    def adapted(model):
        llm = Adapted(model=model.model_name)
        object.__setattr__(llm, "_chat", model)
        return run(llm)

    script = lambda _: "Thought: I know\nFinal Answer: three"
    with Play(script) as play, pytest.raises(Exception, match=r"(?i)llm|model"):
        run(play.svc())  # if it is taken: change this script
    assert not play.requests
    same(on_both(script, adapted)[0], "three")


@program("langgraph-codeact", "langgraph-codeact", "--no-deps", "langgraph-codeact")
def codeact():
    """Code is written, run and answered. *Third party*: it wants langgraph < 0.4, which LangChain 1
    does not take; installed with --no-deps it works.
    """
    from langgraph_codeact import create_codeact

    def evaluate(code, variables):
        variables = {**variables}
        exec(code, variables)
        return str(variables.get("total")), {"total": variables.get("total")}

    script = ["```python\ntotal = 1 + 2\n```", "It is 3."]

    def run(model):
        state = create_codeact(model, [], evaluate).compile().invoke(ASK)
        return state["messages"][-1].text

    came, play = on_both(script, run)
    same((came, len(play.requests)), ("It is 3.", 2))
