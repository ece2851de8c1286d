"""SvcOpenTelemetryCallbackHandler, as OpenTelemetry's in-memory exporters see it."""

import asyncio
import copy
import json
import pickle
import subprocess
import sys

import pytest
from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.trace import SpanKind, StatusCode
from peers import listed

from langchain_svc import (
    ChatSvc,
    SvcNotFoundError,
    SvcOpenTelemetryCallbackHandler,
    SvcTranslate,
)
from langchain_svc.sandbox import Fault, Sandbox, ToolCall

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ASKED = "Zebulon-Quux takes warfarin"
ANSWER = "Zebulon-Quux should see a pulmonologist"
HELLO = {"text": ASKED, "target": "es"}
MARKS = ("Zebulon", "Quux", "warfarin", "pulmonologist")


class Recorded:
    """A handler, and what it has recorded."""

    def __init__(self):
        self._spans, self._logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
        tracers, loggers = TracerProvider(), LoggerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        self._reader = InMemoryMetricReader()
        self.tracer = tracers.get_tracer("of the application")
        self.handler = SvcOpenTelemetryCallbackHandler(
            tracer_provider=tracers,
            meter_provider=MeterProvider([self._reader]),
            logger_provider=loggers,
        )
        self.config = {"callbacks": [self.handler]}

    @property
    def spans(self):
        return self._spans.get_finished_spans()

    def tree(self):
        """The names of all spans below those of their parents, in the order of their begin."""
        spans = sorted(self.spans, key=lambda span: span.start_time)

        def below(parent):
            return [
                (span.name, below(span.context.span_id))
                for span in spans
                if (span.parent.span_id if span.parent else None) == parent
            ]

        return below(None)

    def metrics(self):
        """Each metric's points: attributes, count and sum."""
        scopes = self._reader.get_metrics_data().resource_metrics[0].scope_metrics
        return {
            metric.name: [(dict(at.attributes), at.count, at.sum) for at in metric.data.data_points]
            for scope in scopes
            for metric in scope.metrics
        }

    def everything(self):
        spans = [span.to_json() for span in self.spans]
        logs = [log.to_json() for log in self._logs.get_finished_logs()]
        return "\n".join([*spans, *logs, str(self.metrics()) if self.spans else ""])


@pytest.fixture
def otel():
    return Recorded()


def agent_on(sandbox, **words):
    model = ChatSvc(**sandbox.v1, **words)
    return create_agent(model, [SvcTranslate(**sandbox.general, **words)], name="helper")


QUESTION = {"messages": [("user", ASKED)]}
AGENT = [
    (
        "invoke_agent helper",
        [("chat svc-turbo", []), ("execute_tool svc_translate", []), ("chat svc-turbo", [])],
    )
]


# -- what is recorded -------------------------------------------------------------------------------


def test_a_chat_is_a_span_with_the_names_of_the_conventions(sandbox, chat, otel):
    answer = chat.invoke("Hello", otel.config, temperature=0.5, max_tokens=50)
    (span,) = otel.spans
    found = dict(span.attributes)
    assert (span.name, span.kind) == ("chat svc-turbo", SpanKind.CLIENT)
    assert span.instrumentation_scope.name == "langchain_svc"
    assert span.status.status_code is StatusCode.UNSET
    host, port = sandbox.v1["base_url_v1"].split("/")[2].split(":")
    expected = {
        gen_ai.GEN_AI_OPERATION_NAME: "chat",
        gen_ai.GEN_AI_PROVIDER_NAME: "svc",
        gen_ai.GEN_AI_REQUEST_MODEL: "svc-turbo",
        gen_ai.GEN_AI_REQUEST_TEMPERATURE: 0.5,
        gen_ai.GEN_AI_REQUEST_MAX_TOKENS: 50,
        gen_ai.GEN_AI_RESPONSE_MODEL: "svc-turbo",
        gen_ai.GEN_AI_RESPONSE_ID: answer.response_metadata["id"],
        gen_ai.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
        gen_ai.GEN_AI_USAGE_INPUT_TOKENS: answer.usage_metadata["input_tokens"],
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: answer.usage_metadata["output_tokens"],
        "server.address": host,
        "server.port": int(port),
        "langchain_svc.usage_source": "service",
    }
    assert found == expected


async def test_streams_and_metrics_of_every_way(chat, otel):
    answers = [chat.invoke("Hello", otel.config), await chat.ainvoke("Hello", otel.config)]
    list(chat.stream("Hello", otel.config))
    await listed(chat.astream("Hello", otel.config))
    _ = chat.stream_events("Hello", version="v3", config=otel.config).output
    for span in otel.spans[2:]:
        assert span.attributes[gen_ai.GEN_AI_REQUEST_STREAM] is True
        assert span.attributes[gen_ai.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] > 0
        assert span.attributes[gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS] > 0
    found = otel.metrics()
    tokens = {
        attributes[gen_ai.GEN_AI_TOKEN_TYPE]: (count, total)
        for attributes, count, total in found[gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE]
    }
    spent = sum(answer.usage_metadata["input_tokens"] for answer in answers)
    assert tokens["input"] == (5, spent * 5 // 2)
    assert tokens["output"][0] == 5
    ((_, count, seconds),) = found[gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION]
    assert (count, seconds > 0) == (5, True)
    ((_, count, first),) = found[gen_ai_metrics.GEN_AI_CLIENT_OPERATION_TIME_TO_FIRST_CHUNK]
    assert (count, 0 < first < seconds) == (3, True)


@pytest.mark.parametrize("way", ["invoke", "stream"])
@pytest.mark.parametrize("name", ["model", "model_name"])
@pytest.mark.parametrize("interface", ["v1", "general"])
def test_a_span_names_the_model_of_the_call(sandbox, otel, interface, name, way):
    settings = getattr(sandbox, interface)
    with ChatSvc(interface=interface, **settings, model="svc-turbo") as model:
        answer = getattr(model, way)("Hello", otel.config, **{name: "svc-pro"})
        if way == "stream":
            assert list(answer)
    (span,) = otel.spans
    assert span.attributes[gen_ai.GEN_AI_REQUEST_MODEL] == "svc-pro"


def test_an_answer_of_the_cache_spends_no_tokens(chat, otel):
    cached = chat.model_copy(update={"cache": InMemoryCache()})
    cached.invoke("Hello", otel.config)
    cached.invoke("Hello", otel.config)
    first, second = otel.spans
    assert gen_ai.GEN_AI_USAGE_INPUT_TOKENS in first.attributes
    assert gen_ai.GEN_AI_USAGE_INPUT_TOKENS not in second.attributes
    assert second.attributes["langchain_svc.cached"] is True
    assert {n for _, n, _ in otel.metrics()[gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE]} == {1}


def test_retries_and_waits(sandbox, chat, otel):
    again = {"Retry-After": "0.05"}
    sandbox.faults = [Fault(status=503, headers=again, times=1)]
    chat.invoke("Hello", otel.config)
    sandbox.faults = [Fault(status=503, headers=again, times=1)]
    with SvcTranslate(**sandbox.general) as translate:
        translate.invoke(HELLO, otel.config)
    for span in otel.spans:
        assert span.attributes["langchain_svc.retries"] == 1
        assert span.attributes["langchain_svc.waited"] > 0.04
    assert otel.spans[1].attributes["url.path"] == "/api/translate"


# -- errors -----------------------------------------------------------------------------------------


def test_errors_are_recorded_by_type_and_without_their_text(sandbox, chat, otel):
    sandbox.faults = [Fault(status=404, times=2)]
    with pytest.raises(SvcNotFoundError):
        chat.invoke("Hello", otel.config)
    with SvcTranslate(**sandbox.general) as translate:
        call = {"name": "svc_translate", "args": HELLO, "id": "1", "type": "tool_call"}
        told = translate.invoke(call, otel.config)
        assert "404" in told.content  # the model is told, nothing is raised

    @tool
    def fails(text: str) -> str:
        """Fails."""
        raise ValueError(text)

    @tool
    def refuses(text: str) -> str:
        """Fails and tells."""
        raise ToolException(text)

    refuses.handle_tool_error = True
    with pytest.raises(ValueError, match="warfarin"):
        fails.invoke(ASKED, otel.config)
    call = {"name": "refuses", "args": {"text": ASKED}, "id": "1", "type": "tool_call"}
    assert refuses.invoke(call, otel.config).status == "error"

    def breaks(_):
        raise KeyError(ASKED)

    with pytest.raises(KeyError):
        RunnableLambda(breaks).invoke("Hello", otel.config)
    kind = "langchain_svc.errors.SvcNotFoundError"
    assert [span.attributes[ERROR_TYPE] for span in otel.spans] == [
        kind,
        kind,
        "ValueError",
        "_OTHER",
        "KeyError",
    ]
    for span in otel.spans:
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None
        assert span.events == ()
    assert not any(mark in otel.everything() for mark in MARKS)
    durations = otel.metrics()[gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION]
    assert [attributes[ERROR_TYPE] for attributes, _, _ in durations] == [kind]


def test_what_a_model_is_told_of_an_error_is_recorded_where_content_is(monkeypatch, sandbox):
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
    monkeypatch.setenv(CAPTURE, "SPAN_ONLY")
    otel = Recorded()
    sandbox.faults = [Fault(status=404)]
    with SvcTranslate(**sandbox.general) as translate:
        call = {"name": "svc_translate", "args": HELLO, "id": "1", "type": "tool_call"}
        told = translate.invoke(call, otel.config).content
    (span,) = otel.spans
    assert told in span.attributes["gen_ai.tool.call.result"]
    assert span.attributes[ERROR_TYPE] == "langchain_svc.errors.SvcNotFoundError"


async def test_a_stream_left_early_is_no_error_and_leaves_nothing_behind(otel):
    with Sandbox(pace=0.02) as s, ChatSvc(**s.v1) as model:
        stream = model.stream("Tell me of the sea", otel.config)
        next(stream)
        stream.close()
        begun = asyncio.Event()

        async def read():
            async for _ in model.astream("Tell me of the sea", otel.config):
                begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [span.status.status_code for span in otel.spans] == [StatusCode.UNSET] * 2
    assert not any(ERROR_TYPE in span.attributes for span in otel.spans)
    assert otel.handler._runs == {}


def test_a_tool_whose_task_is_cancelled_has_not_failed(otel):
    done = {"endpoint": "/api/translate", "retries": 0, "waited": 0.0}
    otel.handler.on_tool_start({"name": "svc_translate"}, "", run_id=1)
    otel.handler.svc_tool_called(1, name="svc_translate", error=asyncio.CancelledError, **done)
    otel.handler.on_tool_error(asyncio.CancelledError(), run_id=1)
    (span,) = otel.spans
    assert ERROR_TYPE not in span.attributes
    assert span.attributes["url.path"] == "/api/translate"


def test_a_graph_that_pauses_to_ask_a_person_has_not_failed(otel):
    @tool
    def order(item: str) -> str:
        """Orders."""
        return interrupt("sure?")

    with Sandbox(answers=[ToolCall("order", {"item": "x"}), "Done."]) as s:
        agent = create_agent(ChatSvc(**s.v1), [order], checkpointer=InMemorySaver())
        config = otel.config | {"configurable": {"thread_id": "1"}}
        agent.invoke(QUESTION, config)
        assert agent.invoke(Command(resume="yes"), config)["messages"][-1].text == "Done."
    assert [span.name for span in otel.spans].count("execute_tool order") == 2
    assert not any(ERROR_TYPE in span.attributes for span in otel.spans)


# -- parents and children ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke"])
def test_an_agent_is_the_parent_of_its_model_and_tools(otel, way):
    answers = [ToolCall("svc_translate", HELLO), "Done."]
    config = otel.config | {"configurable": {"thread_id": "thread-7"}}
    with Sandbox(answers=answers) as s:
        agent = agent_on(s)
        if way == "ainvoke":
            asyncio.run(agent.ainvoke(QUESTION, config))
        else:
            found = getattr(agent, way)(QUESTION, config)
            list(found)
    assert otel.tree() == AGENT
    agent_span = otel.spans[-1]
    assert agent_span.attributes[gen_ai.GEN_AI_AGENT_NAME] == "helper"
    assert agent_span.attributes[gen_ai.GEN_AI_CONVERSATION_ID] == "thread-7"
    assert otel.handler._runs == {}


async def test_batches_in_threads_and_tasks_belong_to_their_chain_and_to_the_span_around(
    chat, otel
):
    prompt = ChatPromptTemplate.from_template("{x}")
    chain = prompt | RunnableParallel(one=chat, two=RunnableLambda(lambda said: said) | chat)
    chain = chain.with_config(run_name="both")
    with otel.tracer.start_as_current_span("request"):
        chain.batch([{"x": "1"}, {"x": "2"}], otel.config | {"max_concurrency": 2})
        await chain.abatch([{"x": "3"}], otel.config)
        chat.invoke("Hello", otel.config)
    both = ("invoke_workflow both", [("chat svc-turbo", []), ("chat svc-turbo", [])])
    ((name, below),) = otel.tree()
    assert (name, sorted(below)) == ("request", sorted([("chat svc-turbo", []), both, both, both]))


def test_a_retriever_is_a_span(chat, otel):
    class Papers(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            if query == "broken":
                raise ValueError(ASKED)
            return [Document(ASKED)]

    papers = Papers()
    (papers | RunnableLambda(str) | chat).invoke("Which?", otel.config)
    with pytest.raises(ValueError, match="Zebulon"):
        papers.invoke("broken", otel.config)
    assert [name for name, _ in otel.tree()[0][1]] == ["retrieval", "chat svc-turbo"]
    assert otel.spans[-1].attributes[ERROR_TYPE] == "ValueError"
    assert not any(mark in otel.everything() for mark in MARKS)


def test_no_span_stays_current(chat, otel):
    from opentelemetry.trace import INVALID_SPAN, get_current_span

    stream = chat.stream("Hello", otel.config)
    next(stream)
    assert get_current_span() is INVALID_SPAN
    stream.close()


# -- prompts ----------------------------------------------------------------------------------------


def run_everything(otel, **words):
    """An agent, a stream, both interfaces and failures, all of which know the marks."""
    with Sandbox(answers=[ToolCall("svc_translate", HELLO), *[ANSWER] * 3]) as s:
        agent_on(s, **words).invoke(QUESTION, otel.config)
        with (
            ChatSvc(**s.v1, **words) as model,
            ChatSvc(interface="general", **s.general, **words) as general,
        ):
            list(model.stream(ASKED, otel.config))
            general.invoke(ASKED, otel.config)
            s.faults = [Fault(status=400, body={"error": {"message": ASKED}})]
            for each in (model, general):
                with pytest.raises(Exception, match="400"):
                    each.invoke(ASKED, otel.config)
    assert len(otel.spans) == 8


def test_prompts_and_answers_where_the_environment_asks(monkeypatch):
    monkeypatch.setenv(CAPTURE, "SPAN_ONLY")
    otel = Recorded()
    run_everything(otel)
    first, translated, second = otel.spans[:3]
    asked = json.loads(second.attributes[gen_ai.GEN_AI_INPUT_MESSAGES])
    assert [message["role"] for message in asked] == ["user", "assistant", "tool"]
    assert asked[0]["parts"] == [{"content": ASKED, "type": "text"}]
    assert asked[1]["parts"][0]["arguments"] == HELLO
    assert asked[2]["parts"][0]["id"] == asked[1]["parts"][0]["id"]
    (said,) = json.loads(second.attributes[gen_ai.GEN_AI_OUTPUT_MESSAGES])
    assert (said["parts"][0]["content"], said["finish_reason"]) == (ANSWER, "stop")
    (called,) = json.loads(first.attributes[gen_ai.GEN_AI_OUTPUT_MESSAGES])
    assert called["parts"][0]["name"] == "svc_translate"
    assert "warfarin" in translated.attributes[gen_ai.GEN_AI_TOOL_CALL_ARGUMENTS]
    assert translated.attributes[gen_ai.GEN_AI_TOOL_CALL_RESULT]


@pytest.mark.parametrize("mode", ["", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT"])
def test_a_private_run_is_never_recorded_with_its_texts(monkeypatch, mode):
    monkeypatch.setenv(CAPTURE, mode)
    otel = Recorded()
    run_everything(otel, privacy="phi")
    assert "svc-turbo" in otel.everything()
    assert not any(mark in otel.everything() for mark in MARKS)
    public = Recorded()
    run_everything(public)
    assert any(mark in public.everything() for mark in MARKS) is bool(mode)
    assert otel.tree()[0] == AGENT[0]
    assert otel.spans[2].attributes[gen_ai.GEN_AI_USAGE_INPUT_TOKENS] > 0


# -- the handler itself -----------------------------------------------------------------------------


def test_a_model_that_holds_the_handler_can_be_copied(sandbox, otel):
    with ChatSvc(**sandbox.v1, callbacks=[otel.handler]) as model:
        copy.deepcopy(model).invoke("Hello")
    assert len(otel.spans) == 1
    assert type(pickle.loads(pickle.dumps(otel.handler))) is SvcOpenTelemetryCallbackHandler


def test_runs_that_never_end_are_forgotten(otel, monkeypatch):
    monkeypatch.setattr("langchain_svc.observe.usage._MOST_RUNS", 3)
    for number in range(10):
        otel.handler.on_chain_start({}, {}, run_id=number, name="x")
    assert list(otel.handler._runs) == [7, 8, 9]


@pytest.mark.slow
def test_without_opentelemetry_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['opentelemetry.util'] = None\n"
        "from langchain_svc import *\n"
        "SvcOpenTelemetryCallbackHandler()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith('Run: pip install "langchain-svc[otel]"\n')
