"""Runs as OpenTelemetry's GenAI spans and metrics, through OpenTelemetry's own GenAI library.

That library knows the names, the histograms' buckets, and the environment variables that switch on
the recording of prompts and answers. This module only translates LangChain's callbacks into its
calls. A span never stays the current one, since LangChain starts and ends a run in different
threads and contexts; its parent is the span of the run that LangChain names as the parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from .._version import __version__
from .usage import LEFT_EARLY, RunHandler, is_from_cache, requested_model

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider
    from opentelemetry.util.genai.invocation import (
        GenAIInvocation,
        InferenceInvocation,
    )
else:  # some tools read hints at run time, where OpenTelemetry may be missing
    LoggerProvider = Context = MeterProvider = TracerProvider = Any

_AGENT = "langchain_create_agent"  # the integration that LangChain's agents name
# The parameters of a request for which the conventions have an attribute of the same name.
_PARAMETERS = (
    "temperature", "max_tokens", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty",
)  # fmt: skip
_ROLES = {"human": "user", "ai": "assistant"}
_GRAPH = "LangGraph"  # LangChain's name of a graph without a name


@dataclass
class _SpanRun:
    """An open run: its span, if it has one, and the parent's context for the runs inside."""

    span: Any  # of the library's class for this kind of run
    context: Context | None
    failure: str | None = None  # of a tool that has reported it to the model


class SvcOpenTelemetryCallbackHandler(RunHandler[_SpanRun]):
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
            from opentelemetry.util.genai import handler, types  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise ImportError(
                'OpenTelemetry is not installed. Run: pip install "langchain-svc[otel]"'
            ) from error
        self._types = types
        self._telemetry = handler.TelemetryHandler(
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
            logger_provider=logger_provider,
            instrumentation_scope_name="langchain_svc",
            instrumentation_scope_version=__version__,
        )

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()  # another process has providers of its own

    # -- models ---------------------------------------------------------------------------------

    def _start_model_run(
        self,
        run_id: UUID,
        prompt: list[BaseMessage],
        details: dict[str, Any],
    ) -> None:
        params = details.get("invocation_params") or {}
        metadata = details.get("metadata") or {}
        settings = (details.get("serialized") or {}).get("kwargs") or {}
        base_url = settings.get("base_url_v1") or settings.get("base_url") or ""
        url = urlsplit(str(base_url))
        span = self._telemetry.inference(
            str(metadata.get("ls_provider") or "unknown"),
            request_model=requested_model(details),
            server_address=url.hostname,
            server_port=url.port,
            context=self._parent_context(details),
            conversation_id=_conversation(metadata),
        )
        for name in _PARAMETERS:
            setattr(span, name, params.get(name))
        stop = params.get("stop")
        if isinstance(stop, str):
            stop = [stop]
        span.stop_sequences = stop
        if self._telemetry.should_capture_content():
            new_message = self._types.InputMessage
            span.input_messages = []
            for message in prompt:
                role = _ROLES.get(message.type, message.type)
                span.input_messages.append(new_message(role, self._parts_of(message)))
        self._open_span(run_id, span)

    def on_llm_new_token(self, token: object, *, run_id: UUID, **kwargs: Any) -> None:
        """A piece of a stream has come."""
        del kwargs
        run = self._runs.get(run_id)
        if token and run is not None:
            run.span.record_stream_chunk()

    def on_stream_event(
        self, event: Mapping[str, Any], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """An event of LangChain's newer streaming protocol has come."""
        if event.get("event") == "content-block-delta":
            self.on_llm_new_token("...", run_id=run_id, **kwargs)

    def _end_model_run(
        self, run_id: UUID, answer: AIMessage | None, error: BaseException | None = None
    ) -> None:
        run = self._runs.get(run_id)
        if error is not None:
            if run is not None:
                _add_retries(run.span, vars(error))
            self._close_span(run_id, _failure(type(error)))
            return
        if run is not None and answer is not None:
            self._add_answer(run.span, answer)
        self._close_span(run_id)

    def _add_answer(self, span: InferenceInvocation, message: AIMessage) -> None:
        """Record an answer's metadata and tokens, and its text where that is wanted."""
        metadata = message.response_metadata
        span.response_model_name = metadata.get("model_name")
        span.response_id = metadata.get("id")
        reason = metadata.get("finish_reason")
        span.finish_reasons = None
        if reason:
            span.finish_reasons = [reason]
        _add_retries(span, metadata)
        counts = message.usage_metadata
        if is_from_cache(message):
            span.attributes["langchain_svc.cached"] = True
        elif counts:
            span.input_tokens = counts.get("input_tokens")
            span.output_tokens = counts.get("output_tokens")
            input_details = counts.get("input_token_details") or {}
            output_details = counts.get("output_token_details") or {}
            span.cache_read_input_tokens = input_details.get("cache_read")
            span.thinking_tokens = output_details.get("reasoning")
        if "usage_source" in metadata:
            span.attributes["langchain_svc.usage_source"] = metadata["usage_source"]
        if self._telemetry.should_capture_content():
            parts = self._parts_of(message)
            span.output_messages = [
                self._types.OutputMessage("assistant", parts, reason)
            ]

    def _parts_of(self, message: BaseMessage) -> list[Any]:
        """The texts and calls of a message, without its images."""
        types = self._types
        if isinstance(message, ToolMessage):
            return [types.ToolCallResponsePart(message.text, message.tool_call_id)]
        parts: list[Any] = []
        if message.text:
            parts.append(types.TextPart(message.text))
        if isinstance(message, AIMessage):
            parts += [
                types.ToolCallRequestPart(call["args"], call["name"], call["id"])
                for call in message.tool_calls
            ]
        return parts

    # -- tools and retrievers -------------------------------------------------------------------

    def on_tool_start(
        self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A tool's run starts."""
        tool = serialized or {}
        name = tool.get("name") or "unknown"
        span = self._telemetry.tool(
            name, tool_type="function", context=self._parent_context(kwargs)
        )
        span.tool_description = tool.get("description")
        span.tool_call_id = kwargs.get("tool_call_id")
        if self._telemetry.should_capture_content():
            span.arguments = input_str
        self._open_span(run_id, span)

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
        if run is None:
            return
        run.span.attributes["url.path"] = endpoint
        _add_retries(run.span, {"retries": retries, "waited": waited})
        run.failure = None
        if error is not None:
            run.failure = _failure(error)

    def on_tool_end(self, output: object, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool's run has ended; it may have reported an error to the model."""
        del kwargs
        failure = None
        if isinstance(output, ToolMessage) and output.status == "error":
            failure = "_OTHER"  # OpenTelemetry's name of an unknown error
        run = self._runs.get(run_id)
        if run is not None:
            failure = run.failure or failure
            if self._telemetry.should_capture_content():
                run.span.tool_result = str(output)
                if isinstance(output, BaseMessage):
                    run.span.tool_result = output.text
        self._close_span(run_id, failure)

    def on_retriever_start(
        self, serialized: dict[str, Any], query: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A search starts."""
        span = self._telemetry.retrieval(context=self._parent_context(kwargs))
        if self._telemetry.should_capture_content():
            span.query_text = query
        self._open_span(run_id, span)

    def on_retriever_end(
        self, documents: object, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A search has its documents."""
        del kwargs
        self._close_span(run_id)

    # -- agents and chains ----------------------------------------------------------------------

    def on_chain_start(
        self, serialized: dict[str, Any], inputs: object, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A chain's run starts. Only an agent and an outermost chain have a span."""
        metadata = kwargs.get("metadata") or {}
        name = kwargs.get("name") or (serialized or {}).get("name")
        agent = metadata.get("lc_agent_name")
        conversation = _conversation(metadata)
        parent = self._parent_context(kwargs)
        if metadata.get("ls_integration") == _AGENT and name in {agent, _GRAPH}:
            agent_span = self._telemetry.invoke_local_agent(
                agent_name=agent, context=parent, conversation_id=conversation
            )
            self._open_span(run_id, agent_span)
        elif kwargs.get("parent_run_id") is None:
            span = self._telemetry.workflow(
                name, context=parent, conversation_id=conversation
            )
            self._open_span(run_id, span)
        else:
            self._open_run(run_id, _SpanRun(None, parent))

    def on_chain_end(self, outputs: object, *, run_id: UUID, **kwargs: Any) -> None:
        """A chain's run has ended."""
        del kwargs
        self._close_span(run_id)

    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A run has failed."""
        del kwargs
        self._close_span(run_id, _failure(type(error)))

    on_tool_error = on_retriever_error = on_chain_error

    # -- runs -----------------------------------------------------------------------------------

    def _parent_context(self, details: Mapping[str, Any]) -> Context | None:
        """The context of the parent run; None, which is the current context, without one."""
        parent_id = details.get("parent_run_id")
        if parent_id is None:
            return None
        run = self._runs.get(parent_id)  # other threads may drop it
        if run is None:
            return None
        return run.context

    def _open_span(self, run_id: UUID, span: GenAIInvocation) -> None:
        span.suspend()  # the library has made it the current span; see the top
        self._open_run(run_id, _SpanRun(span, span.context))

    def _close_span(self, run_id: UUID, failure: str | None = None) -> None:
        run = self._runs.pop(run_id, None)
        if run is None or run.span is None:
            return
        if failure is None:
            run.span.stop()
        else:  # without the error's text, which may repeat a prompt
            run.span.fail(self._types.Error(message=None, type=failure))


def _failure(error: type[BaseException]) -> str | None:
    """OpenTelemetry's name of an error's type.

    None where the caller left a run early, or its graph pauses to ask a person.
    """
    names = {kind.__name__ for kind in error.__mro__}
    if issubclass(error, LEFT_EARLY) or "GraphBubbleUp" in names:
        return None
    if error.__module__ == "builtins":
        return error.__qualname__
    return f"{error.__module__}.{error.__qualname__}"


def _conversation(metadata: Mapping[str, Any]) -> str | None:
    """The thread of a graph's checkpointer."""
    thread = metadata.get("thread_id")
    if thread is None:
        return None
    return str(thread)


def _add_retries(span: GenAIInvocation, details: Mapping[str, Any]) -> None:
    if details.get("retries"):
        span.attributes["langchain_svc.retries"] = details["retries"]
        span.attributes["langchain_svc.waited"] = details.get("waited", 0.0)
