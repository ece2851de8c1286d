"""Tracers: what each tells of an agent's run."""

from __future__ import annotations

import os
import tempfile

from common import ASK, ONE_TWO, add, agent_run
from langchain.agents import create_agent
from player import Play, calls, on_both, same
from registry import program

SCRIPT = [calls(ONE_TWO), "3"]
OTEL = "opentelemetry-sdk>=1.30"
OPENINFERENCE = "openinference-instrumentation-langchain"
OPENLLMETRY = "opentelemetry-instrumentation-langchain"
MODEL = "gen_ai.request.model"


def traced(model, *handlers):
    create_agent(model, [add]).invoke(ASK, {"callbacks": list(handlers)})


@program("LangSmith", "langsmith")
def langsmith():
    """What is posted: model, provider, temperature, tokens, the calls."""
    from langchain_core.tracers import LangChainTracer
    from langsmith import Client

    with Play(SCRIPT) as play:
        client = Client(api_url=f"{play.url}/langsmith", api_key="k", auto_batch_tracing=False)
        tracer = LangChainTracer(client=client, project_name="p")
        bound = {"max_tokens": 50} if play.interface == "v1" else {}
        traced(play.svc(temperature=0.5, **bound), tracer)
        tracer.wait_for_futures()
        posted = [body for body in play.other if body.get("run_type") == "llm"]
        told = posted[0]["extra"]["metadata"]
        same([told["ls_provider"], told["ls_model_name"]], ["svc", "svc-pro"])
        sent = [told["ls_temperature"], told.get("ls_max_tokens")]
        same(sent, [0.5, bound.get("max_tokens")])
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
    with Play([]) as nowhere:
        keys = {"public_key": "pk", "secret_key": "sk", "base_url": nowhere.url}
        client = Langfuse(**keys, span_exporter=exporter)

        def run(model):
            exporter.clear()
            handler = CallbackHandler(public_key="pk")
            traced(model, handler)
            list(model.stream("x", {"callbacks": [handler]}))
            client.flush()
            spans = [span.attributes for span in exporter.get_finished_spans()]
            told = [a for a in spans if a.get("langfuse.observation.type") == "generation"]
            assert "langfuse.observation.completion_start_time" in told[-1], told[-1]
            for attributes in told:
                same(attributes["langfuse.observation.model.name"], model.model_name)
                assert '"total": 15' in attributes["langfuse.observation.usage_details"], attributes
            return len(spans), len(told)

        same(on_both([*SCRIPT, "streamed text"], run)[0][1], 3)


@program("MLflow", "mlflow", "mlflow==3.17.2")
def mlflow():
    """langchain.autolog: the spans of an agent's run with their kinds, models, calls and tokens,
    kept in SQLite.
    """
    import mlflow

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        mlflow.langchain.autolog()

        def run(model):
            agent_run(model)
            trace = mlflow.get_trace(mlflow.get_last_active_trace_id(), flush=True)
            asked = [span for span in trace.data.spans if span.span_type == "CHAT_MODEL"]
            same({a.get_attribute("mlflow.llm.model") for a in asked}, {model.model_name})
            message = asked[0].outputs["choices"][0]["message"]
            called = [call["function"] for call in message["tool_calls"]]
            kinds = [(span.span_type, span.name) for span in trace.data.spans if span not in asked]
            return kinds, called, asked[1].outputs, trace.info.token_usage

        same(on_both(SCRIPT, run)[0][3]["total_tokens"], 30)


@program("Opik", "opik", "opik==2.2.122")
def opik():
    """The tree of an agent's run, with what the model and the tool said. *Third party*: it reads
    model and tokens of seven providers' own classes only.
    """
    import opik
    from opik.integrations.langchain import OpikTracer

    def spans(parent, depth=0):
        for span in parent.spans:
            yield depth, span
            yield from spans(span, depth + 1)

    with Play([]) as nowhere:
        client = opik.Opik(host=nowhere.url, _show_misconfiguration_message=False)
        opik.set_global_client(client)

        def run(model):
            with opik.record_traces_locally(client) as kept:
                tracer = OpikTracer()
                traced(model, tracer)
                tracer.flush()
                told = list(spans(kept.trace_trees[-1]))
            models = [span for _, span in told if span.type == "llm"]
            if "svc" in model.model_name:  # if not: change the note
                same([span.usage for span in models], [None, None])
            texts = [span.output["generations"][0][0]["text"] for span in models]
            return texts, [(depth, span.type) for depth, span in told]

        on_both(SCRIPT, run)


def instrumented(instrumentor):
    """What gives the attributes of the spans of a model's agent."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor.instrument(tracer_provider=provider)

    def spans(model):
        exporter.clear()
        agent_run(model)
        return [dict(span.attributes) for span in exporter.get_finished_spans()]

    return spans


@program("OpenInference", OPENINFERENCE, f"{OPENINFERENCE}==0.1.80", OTEL)
def openinference():
    """Spans with model, tokens, calls, and the finish_reason of an answer with calls."""
    from openinference.instrumentation.langchain import LangChainInstrumentor

    attributes = instrumented(LangChainInstrumentor())

    def run(model):
        spans = attributes(model)
        told = [a for a in spans if a["openinference.span.kind"] == "LLM"]
        same([a["llm.model_name"] for a in told], [model.model_name] * 2)
        same([a["llm.token_count.total"] for a in told], [15, 15])
        name = "llm.output_messages.0.message.tool_calls.0.tool_call.function.name"
        return len(spans), [(a.get(name), a.get("llm.finish_reason")) for a in told]

    same(on_both(SCRIPT, run)[0][1][0][0], "add")


@program("OpenLLMetry", OPENLLMETRY, f"{OPENLLMETRY}==0.62.4", OTEL)
def openllmetry():
    """Spans with model and tokens."""
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    attributes = instrumented(LangchainInstrumentor())

    def run(model):
        told = [a for a in attributes(model) if MODEL in a]
        same([a[MODEL] for a in told], [model.model_name] * 2)
        return [a["gen_ai.usage.output_tokens"] for a in told]

    same(on_both(SCRIPT, run)[0], [5, 5])
