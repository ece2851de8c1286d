"""Tracers."""

from __future__ import annotations

from common import ASK, ONE_TWO, add
from langchain.agents import create_agent
from player import Play, calls, same
from registry import program

SCRIPT = [calls(ONE_TWO), "3"]


def agent_run(model, **config):

    return create_agent(model, [add]).invoke(ASK, config)


@program("LangSmith", "langsmith")
def langsmith():
    """What is posted: model, provider, temperature, tokens, the calls."""
    from langchain_core.tracers import LangChainTracer
    from langsmith import Client

    with Play(SCRIPT) as play:
        client = Client(api_url=f"{play.url}/langsmith", api_key="k", auto_batch_tracing=False)
        tracer = LangChainTracer(client=client, project_name="p")
        agent_run(play.svc(temperature=0.5, max_tokens=50), callbacks=[tracer])
        tracer.wait_for_futures()
        posted = [body for body in play.other if body.get("run_type") == "llm"]
        told = posted[0]["extra"]["metadata"]
        same([told["ls_provider"], told["ls_model_name"]], ["svc", "svc-pro"])
        same([told["ls_temperature"], told["ls_max_tokens"]], [0.5, 50])
        outputs = [b["outputs"] for b in play.other if (b.get("outputs") or {}).get("generations")]
        message = outputs[0]["generations"][0][0]["message"]["kwargs"]
        same(message["usage_metadata"]["total_tokens"], 15)
        same(message["tool_calls"][0]["name"], "add")


@program("langfuse", "langfuse", "langfuse==5.0.4")
def langfuse():
    """Spans with model, tokens and the time of the first one."""
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    with Play([*SCRIPT, "streamed text"]) as play:
        client = Langfuse(
            public_key="pk", secret_key="sk", base_url=play.url, span_exporter=exporter
        )
        handler = CallbackHandler(public_key="pk")
        agent_run(play.svc(), callbacks=[handler])
        list(play.svc().stream("x", {"callbacks": [handler]}))
        client.flush()
        spans = [s.attributes for s in exporter.get_finished_spans()]
        told = [a for a in spans if a.get("langfuse.observation.type") == "generation"]
        same(len(told), 3)
        for attributes in told:
            same(attributes["langfuse.observation.model.name"], "svc-pro")
            assert '"total": 15' in attributes["langfuse.observation.usage_details"], attributes
        assert "langfuse.observation.completion_start_time" in told[-1], told[-1]


def spans_of(instrumentor):
    """The spans of an agent's run."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor.instrument(tracer_provider=provider)
    try:
        with Play(SCRIPT) as play:
            agent_run(play.svc())
    finally:
        instrumentor.uninstrument()
    return [dict(span.attributes) for span in exporter.get_finished_spans()]


@program(
    "OpenInference",
    "openinference-instrumentation-langchain",
    "openinference-instrumentation-langchain==0.1.80",
    "opentelemetry-sdk>=1.30",
)
def openinference():
    """Spans with model, tokens, calls, and the finish_reason of an answer with calls."""
    from openinference.instrumentation.langchain import LangChainInstrumentor

    told = [a for a in spans_of(LangChainInstrumentor()) if a["openinference.span.kind"] == "LLM"]
    same([a["llm.model_name"] for a in told], ["svc-pro", "svc-pro"])
    same([a["llm.token_count.total"] for a in told], [15, 15])
    name = "llm.output_messages.0.message.tool_calls.0.tool_call.function.name"
    same(told[0][name], "add")
    if "llm.finish_reason" in told[0]:
        same([a["llm.finish_reason"] for a in told], ["tool_calls", "stop"])


@program(
    "OpenLLMetry",
    "opentelemetry-instrumentation-langchain",
    "opentelemetry-instrumentation-langchain==0.62.4",
    "opentelemetry-sdk>=1.30",
)
def openllmetry():
    """Spans with model and tokens."""
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    told = [a for a in spans_of(LangchainInstrumentor()) if "gen_ai.request.model" in a]
    same([a["gen_ai.request.model"] for a in told], ["svc-pro", "svc-pro"])
    same([a["gen_ai.usage.output_tokens"] for a in told], [5, 5])
