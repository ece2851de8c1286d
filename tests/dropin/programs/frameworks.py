"""Frameworks and services that take a LangChain chat model."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile

from common import ASK, GOOD, Meeting, add
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from player import Play, calls, on_both, same
from registry import program

from langchain_svc import register


@program("open_deep_research", "open-deep-research", "open-deep-research==0.0.16")
def open_deep_research():
    """Its own graph without a search, models "svc:svc-pro": a brief, research, its compression, the report."""
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
    for prefix in ("svc:svc-pro", "openai:gpt-4o-mini"):
        with Play(script) as play:
            os.environ.update(SVC_API_KEY="k", SVC_BASE_URL_V1=f"{play.url}/v1")
            os.environ.update(OPENAI_API_KEY="k", OPENAI_BASE_URL=f"{play.url}/openai/v1")
            settings = {
                f"{role}_model": prefix
                for role in ("research", "compression", "final_report", "summarization")
            }
            config = {**settings, "search_api": "none", "allow_clarification": False}
            graph = deep_researcher_builder.compile()
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
        llm = LangChainLLM(llm=model)
        return [
            llm.complete("x").text,
            llm.chat([ChatMessage(role="user", content="x")]).message.content,
            "".join(
                piece.delta for piece in llm.stream_chat([ChatMessage(role="user", content="x")])
            ),
            llm.structured_predict(Meeting, PromptTemplate("x")),
        ]

    came, _ = on_both(["one", "two", "three four five", json.dumps(GOOD)], run)
    same(came, ["one", "two", "three four five", Meeting(**GOOD)])


@program("mem0 (provider langchain)", "mem0ai", "mem0ai==2.2.1")
def mem0():
    """A memory is taken from a conversation and kept."""
    from mem0 import Memory

    def run(model):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["MEM0_DIR"] = folder
            config = {
                "llm": {"provider": "langchain", "config": {"model": model}},
                "embedder": {
                    "provider": "langchain",
                    "config": {"model": DeterministicFakeEmbedding(size=8)},
                },
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": f"{folder}/q", "embedding_model_dims": 8},
                },
                "history_db_path": f"{folder}/history.db",
            }
            memory = Memory.from_config(config)
            added = memory.add("I live in Rome.", user_id="ann")["results"]
            return [one["memory"] for one in added]

    answer = {"memory": [{"id": "0", "text": "Lives in Rome", "event": "ADD"}]}
    came, _ = on_both([json.dumps(answer)] * 3, run)
    same(came, ["Lives in Rome"])


@program("NeMo Guardrails RunnableRails", "nemoguardrails", "nemoguardrails==0.24.1")
def nemo():
    """An input rail that asks the model; a good question passes, a bad one is blocked."""
    from nemoguardrails import RailsConfig
    from nemoguardrails.integrations.langchain.runnable_rails import RunnableRails

    config = RailsConfig.from_content(
        yaml_content="""
models: []
rails:
  input:
    flows:
      - self check input
prompts:
  - task: self_check_input
    content: 'Should this be blocked (yes or no)? {{ user_input }}'
"""
    )

    def run(model):
        chain = ChatPromptTemplate.from_template("{input}") | model
        rails = RunnableRails(config, llm=model)
        return [str(getattr(one, "content", one)) for one in map((rails | chain).invoke, GOOD_BAD)]

    script = lambda text: ("Yes" if "bad" in text else "No") if "blocked" in text else "an answer"  # noqa: E731
    came, _ = on_both(script, run)
    assert "an answer" in came[0], came
    assert "an answer" not in came[1], came


GOOD_BAD = [{"input": "a good question"}, {"input": "a bad question"}]


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
        try:
            chain.invoke("x")
        except (ValidationError, ValueError):
            pass
        else:
            raise AssertionError("the guard let it pass")


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


@program(
    "crewai",
    "crewai",
    "crewai==1.15.30",
    third_party="it refuses every LangChain model; the ten lines of BaseLLM in the script adapt one",
)
def crewai():
    """An agent does a task through an adapter."""
    from crewai import Agent, Crew, Task
    from crewai.llms.base_llm import BaseLLM

    class Adapted(BaseLLM):
        def call(self, messages, *_, **__):
            if isinstance(messages, str):
                return self._chat.invoke(messages).text
            return self._chat.invoke([(m["role"], m["content"]) for m in messages]).text

    with Play(lambda _: "Thought: I know\nFinal Answer: three") as play:
        words = {"role": "adder", "goal": "add", "backstory": "none"}
        try:
            refused = Agent(**words, llm=play.svc())
            Crew(
                agents=[refused], tasks=[Task(description="x", expected_output="y", agent=refused)]
            ).kickoff()
        except Exception as error:
            assert not play.requests, error
        else:
            raise AssertionError("crewai takes LangChain models now: change this script")
        llm = Adapted(model="svc-pro")
        object.__setattr__(llm, "_chat", play.svc())
        agent = Agent(**words, llm=llm)
        task = Task(description="1 + 2", expected_output="a number", agent=agent)
        same(Crew(agents=[agent], tasks=[task]).kickoff().raw, "three")


@program(
    "langgraph-codeact",
    "langgraph-codeact",
    "--no-deps",
    "langgraph-codeact",
    third_party="it wants langgraph < 0.4, which LangChain 1 does not take; installed with --no-deps it works",
)
def codeact():
    """Code is written, run and answered."""
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
