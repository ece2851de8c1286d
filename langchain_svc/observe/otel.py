"""Runs as OpenTelemetry's GenAI spans and metrics, through OpenTelemetry's own GenAI library.

That library knows the names, the histograms' buckets, and the environment variables by which
prompts and answers are recorded. Here stands only what LangChain's callbacks mean in its words.
Spans are not made current: LangChain begins and ends runs in different threads and contexts.
A parent is found by its run's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from typing_extensions import Self

from .._version import __version__
from .callbacks import LEFT_EARLY, RunHandler, asked_model

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider
else:
    LoggerProvider = Context = MeterProvider = TracerProvider = (
        Any  # hints are read at run time
    )

_AGENT = "langchain_create_agent"  # what LangChain's agents say of themselves
_ROLES = {"human": "user", "ai": "assistant"}
_GRAPH = "LangGraph"  # the name of a graph that was given none


@dataclass
class _Run:
    """A run that is open: its span, if it has one, and what runs inside have as their parent."""

    span: Any
    context: Context | None
    failure: str | None = None  # of a tool that told the model of it


class SvcOpenTelemetryCallbackHandler(RunHandler[_Run]):
    """Records models, tools, retrievers, agents and chains as GenAI spans and metrics.

        from langchain_svc import SvcOpenTelemetryCallbackHandler

        agent.invoke(question, {"callbacks": [SvcOpenTelemetryCallbackHandler()]})

    Prompts and answers are recorded only where the environment asks for it
    (`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`), and never with `privacy="phi"`, where
    masks stand in their place. Errors are recorded by type. See docs/usage.md.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
    ) -> None:
        """Record to these providers.

        Args:
            tracer_provider: Where spans go; the process's own where it is None.
            meter_provider: Where metrics go; the same.
            logger_provider: Where events with prompts and answers go, if the environment asks for
                them; the same.

        Raises:
            ImportError: OpenTelemetry is not installed (`pip install "langchain-svc[otel]"`).
        """
        super().__init__()
        try:
            from opentelemetry.util.genai import types  # noqa: PLC0415  # an extra
            from opentelemetry.util.genai.handler import TelemetryHandler  # noqa: PLC0415  # the same
        except ImportError as error:
            raise ImportError(
                'OpenTelemetry is not installed. Run: pip install "langchain-svc[otel]"'
            ) from error
        self._types = types
        self._telemetry = TelemetryHandler(
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
            logger_provider=logger_provider,
            instrumentation_scope_name="langchain_svc",
            instrumentation_scope_version=__version__,
        )

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()  # another process has providers of its own

    # -- models ---------------------------------------------------------------------------------

    def _begin_model(
        self,
        run_id: UUID,
        operation: str,
        asked: list[BaseMessage],
        told: dict[str, Any],
    ) -> None:
        params = told.get("invocation_params") or {}
        metadata = told.get("metadata") or {}
        settings = (told.get("serialized") or {}).get("kwargs") or {}
        url = urlsplit(
            str(settings.get("base_url_v1") or settings.get("base_url") or "")
        )
        span = self._telemetry.inference(
            str(metadata.get("ls_provider") or "unknown"),
            request_model=asked_model(told),
            server_address=url.hostname,
            server_port=url.port,
            operation_name=operation,
            context=self._parent(told),
            conversation_id=_conversation(metadata),
        )
        for name in ("temperature", "max_tokens", "top_p", "seed"):
            setattr(span, name, params.get(name))
        stop = params.get("stop")
        span.stop_sequences = [stop] if isinstance(stop, str) else stop
        if self._telemetry.should_capture_content():
            new = self._types.InputMessage
            span.input_messages = [
                new(_ROLES.get(one.type, one.type), self._parts(one)) for one in asked
            ]
        self._begin_span(run_id, span)

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A piece of a stream has come."""
        del kwargs
        run = self._runs.get(run_id)
        if token and run is not None:
            run.span.record_stream_chunk()

    def on_stream_event(self, event: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """An event of LangChain's newer streaming protocol has come."""
        if event.get("event") == "content-block-delta":
            self.on_llm_new_token("...", run_id=run_id, **kwargs)

    def _end_model(
        self, run_id: UUID, answer: AIMessage | None, error: BaseException | None = None
    ) -> None:
        run = self._runs.get(run_id)
        if run is not None and error is not None:
            _add_retries(run.span, vars(error))
        elif run is not None and answer is not None:
            self._take(run.span, answer)
        self._end(run_id, None if error is None else _failure(type(error)))

    def _take(self, span: Any, message: AIMessage) -> None:
        """What an answer says of itself."""
        about = message.response_metadata
        span.response_model_name = about.get("model_name")
        span.response_id = about.get("id")
        reason = about.get("finish_reason")
        span.finish_reasons = [reason] if reason else None
        _add_retries(span, about)
        counts: Any = message.usage_metadata or {}
        if counts.get("total_cost") == 0:  # so LangChain marks an answer of its cache
            span.attributes["langchain_svc.cached"] = True
        elif counts:
            span.input_tokens = counts.get("input_tokens")
            span.output_tokens = counts.get("output_tokens")
            given, made = (
                counts.get("input_token_details"),
                counts.get("output_token_details"),
            )
            span.cache_read_input_tokens = (given or {}).get("cache_read")
            span.thinking_tokens = (made or {}).get("reasoning")
        for name in (
            "usage_source",
            "total_tokens",
        ):  # the latter where it is all that is known
            if name in about:
                span.attributes[f"langchain_svc.{name}"] = about[name]
        if self._telemetry.should_capture_content():
            new = self._types.OutputMessage
            span.output_messages = [new("assistant", self._parts(message), reason)]

    def _parts(self, message: BaseMessage) -> list[Any]:
        """What a message says; images are left out."""
        types = self._types
        if isinstance(message, ToolMessage):
            return [types.ToolCallResponsePart(message.text, message.tool_call_id)]
        parts: list[Any] = [types.TextPart(message.text)] if message.text else []
        calls = message.tool_calls if isinstance(message, AIMessage) else ()
        new = types.ToolCallRequestPart
        return parts + [new(call["args"], call["name"], call["id"]) for call in calls]

    # -- tools and retrievers -------------------------------------------------------------------

    def on_tool_start(
        self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A tool's run begins."""
        about = serialized or {}
        name = about.get("name") or "unknown"
        span = self._telemetry.tool(
            name, tool_type="function", context=self._parent(kwargs)
        )
        span.tool_description = about.get("description")
        span.tool_call_id = kwargs.get("tool_call_id")
        if self._telemetry.should_capture_content():
            span.arguments = input_str
        self._begin_span(run_id, span)

    def svc_tool_called(  # the tools of this package call it
        self,
        run_id: UUID,
        *,
        name: str,
        endpoint: str,
        retries: int,
        waited: float,
        error: type[BaseException] | None,
    ) -> None:
        """One of this package's tools has called the service, or refused to."""
        run = self._runs.get(run_id)
        if run is not None:
            run.span.attributes["url.path"] = endpoint
            _add_retries(run.span, {"retries": retries, "waited": waited})
            run.failure = None if error is None else _failure(error)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool's run has ended; its error may have been told to the model."""
        del kwargs
        run = self._runs.get(run_id)
        if run is not None and self._telemetry.should_capture_content():
            run.span.tool_result = (
                output.text if isinstance(output, BaseMessage) else str(output)
            )
        failed = isinstance(output, ToolMessage) and output.status == "error"
        failure = "_OTHER" if failed else None  # as OpenTelemetry names the unknown
        self._end(run_id, (run and run.failure) or failure)

    def on_retriever_start(
        self, serialized: dict[str, Any], query: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A search begins."""
        span = self._telemetry.retrieval(context=self._parent(kwargs))
        if self._telemetry.should_capture_content():
            span.query_text = query
        self._begin_span(run_id, span)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A search has its documents."""
        del kwargs
        self._end(run_id)

    # -- agents and chains ----------------------------------------------------------------------

    def on_chain_start(
        self, serialized: dict[str, Any], inputs: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A chain's run begins: an agent and an outermost chain have a span, no other."""
        metadata = kwargs.get("metadata") or {}
        name = kwargs.get("name") or (serialized or {}).get("name")
        agent, talk = metadata.get("lc_agent_name"), _conversation(metadata)
        parent = self._parent(kwargs)
        span: Any = None
        if metadata.get("ls_integration") == _AGENT and name in {agent, _GRAPH}:
            span = self._telemetry.invoke_local_agent(
                agent_name=agent, context=parent, conversation_id=talk
            )
        elif kwargs.get("parent_run_id") is None:
            span = self._telemetry.workflow(name, context=parent, conversation_id=talk)
        if span is not None:
            self._begin_span(run_id, span)
        else:
            self._begin(run_id, _Run(None, parent))

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A chain's run has ended."""
        del kwargs
        self._end(run_id)

    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A run has failed."""
        del kwargs
        self._end(run_id, _failure(type(error)))

    on_tool_error = on_retriever_error = on_chain_error

    # -- runs -----------------------------------------------------------------------------------

    def _parent(self, kwargs: Mapping[str, Any]) -> Context | None:
        """The context of the run around; None, which is the current one, where there is none."""
        parent: Any = kwargs.get("parent_run_id")
        run = self._runs.get(parent)
        return None if run is None else run.context

    def _begin_span(self, run_id: UUID, span: Any) -> None:
        span.suspend()  # it was current for a moment; see the top
        self._begin(run_id, _Run(span, span.context))

    def _end(self, run_id: UUID, failure: str | None = None) -> None:
        run = self._runs.pop(run_id, None)
        if run is None or run.span is None:
            return
        if failure is None:
            run.span.stop()
        else:  # without the error's text, in which a prompt may stand
            run.span.fail(self._types.Error(message=None, type=failure))


def _failure(error: type[BaseException]) -> str | None:
    """An error's type, as OpenTelemetry names them.

    None where a run was left early, or its graph pauses to ask a person.
    """
    names = {kind.__name__ for kind in error.__mro__}
    if issubclass(error, LEFT_EARLY) or "GraphBubbleUp" in names:
        return None
    module = "" if error.__module__ == "builtins" else f"{error.__module__}."
    return module + error.__qualname__


def _conversation(metadata: Mapping[str, Any]) -> str | None:
    """The thread of a graph's checkpointer."""
    thread = metadata.get("thread_id")
    return None if thread is None else str(thread)


def _add_retries(span: Any, about: Mapping[str, Any]) -> None:
    if about.get("retries"):
        span.attributes["langchain_svc.retries"] = about["retries"]
        span.attributes["langchain_svc.waited"] = about.get("waited", 0.0)
