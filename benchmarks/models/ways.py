"""Who answers: the package, ChatOpenAI with the server's native tools, and a plain reader.

All are chat models over the same server, so that a suite asks them alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ValidationError

from langchain_svc import ChatSvc
from langchain_svc.sandbox import Sandbox, Upstream

from .tap import Exchange, Tap

WAYS = ("svc", "svc-fenced", "svc-prefill", "native", "plain")
OURS = ("svc", "svc-fenced", "svc-prefill")
"""The ways that depend on the package's commit."""


class Way(NamedTuple):
    """A contestant.

    Attributes:
        name: One of `WAYS`.
        chat: Its chat model, with some settings.
        exchanges: What went over the wire since the case began.
        plant: Sets the next answer, for which the model is not asked.
    """

    name: str
    chat: Callable[..., BaseChatModel]
    exchanges: Callable[[], list[Exchange]]
    plant: Callable[[str], None]


def new_way(name: str, tap: Tap, model: str, stack: ExitStack) -> Way:
    """A contestant that asks through the tap; what it opens is closed with the stack."""
    common: dict[str, Any] = {"temperature": 0, "timeout": 600, "max_retries": 0}
    chat: Callable[..., BaseChatModel]
    if name in OURS:
        upstream = Upstream(tap.url, model)
        box = stack.enter_context(Sandbox(upstream=upstream, keep=0, inspector=False))
        tool_format = "fenced" if name == "svc-fenced" else "tags"
        common |= {**box.v1, "deadline": None, "tool_format": tool_format}
        if name == "svc-prefill":
            common["continue_by"] = "prefill"
        chat = partial(ChatSvc, **common)
    elif name == "native":
        from langchain_openai import ChatOpenAI  # noqa: PLC0415  # an extra

        common |= {"base_url": tap.url, "api_key": "none", "model": model}
        chat = partial(ChatOpenAI, **common)
    else:
        chat = partial(PlainChat, url=tap.url, model_id=model)
    return Way(name, chat, tap.exchanges, tap.plant)


_CALLS = """You can use these functions:
{}
If functions are needed, answer with a JSON list of calls and nothing else: \
[{{"name": "...", "arguments": {{...}}}}]. If none is needed, answer in plain text."""
_OBJECT = "{}\nAnswer with JSON of this schema only: {}"


def read_json(text: str) -> Any:
    """The first JSON value of a text, by json_repair; None without one."""
    import json_repair  # noqa: PLC0415  # only this contestant needs it

    starts = [at for at in (text.find("["), text.find("{")) if at >= 0]
    return json_repair.loads(text[min(starts) :]) if starts else None


def read_calls(text: str) -> list[dict[str, Any]]:
    """The calls in an answer to the plain prompt."""
    value = read_json(text)
    return [
        {"name": one["name"], "args": one.get("arguments") or {}, "id": uuid4().hex}
        for one in (value if isinstance(value, list) else [value])
        if isinstance(one, dict)
        and isinstance(one.get("name"), str)
        and isinstance(one.get("arguments") or {}, dict)
    ]


class PlainChat(BaseChatModel):
    """What anybody writes: tools and schemas in the prompt, json_repair on the answer."""

    url: str
    model_id: str
    max_tokens: int | None = None

    @property
    def _llm_type(self) -> str:
        return "plain"

    def bind_tools(
        self, tools: Sequence[Any], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """With tools."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def with_structured_output(
        self, schema: Any, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """The object, its message and its error, as with `include_raw`."""
        return RunnableLambda(lambda given: self._ask_for(schema, given))

    def _ask_for(self, schema: type[BaseModel], given: Any) -> dict[str, Any]:
        if isinstance(given, PromptValue):
            given = given.to_string()
        asked = _OBJECT.format(given, json.dumps(schema.model_json_schema()))
        raw = self.invoke(asked)
        try:
            parsed = schema.model_validate(read_json(raw.text))
        except ValidationError as error:
            return {"raw": raw, "parsed": None, "parsing_error": error}
        return {"raw": raw, "parsed": parsed, "parsing_error": None}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        tools = kwargs.get("tools", [])
        body: dict[str, Any] = {"model": self.model_id, "temperature": 0}
        body["messages"] = _turns(messages, tools)
        if self.max_tokens:
            body["max_tokens"] = self.max_tokens
        with httpx.Client(trust_env=False, timeout=600) as client:
            response = client.post(f"{self.url}/chat/completions", json=body)
        response.raise_for_status()
        choice = response.json()["choices"][0]
        text = choice["message"].get("content") or ""
        calls = read_calls(text) if tools else []
        answer = AIMessage(
            "" if calls else text,
            tool_calls=calls,
            response_metadata={"finish_reason": choice["finish_reason"]},
        )
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _turns(
    messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]]
) -> list[dict[str, str]]:
    """The conversation as turns of user and assistant, with the tools at its head."""
    turns: list[dict[str, str]] = []
    for message in convert_to_messages(messages):
        role, text = "user", str(message.text)
        if isinstance(message, AIMessage):
            role = "assistant"
            calls = [
                {"name": call["name"], "arguments": call["args"]}
                for call in message.tool_calls
            ]
            text = json.dumps(calls) if calls else text
        elif isinstance(message, ToolMessage):
            text = f"Result of {message.name}: {text}"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n{text}"
        else:
            turns.append({"role": role, "content": text})
    if tools:
        listed = "\n".join(json.dumps(tool["function"]) for tool in tools)
        turns[0]["content"] = f"{_CALLS.format(listed)}\n\n{turns[0]['content']}"
    return turns


def conversation(*turns: BaseMessage | str) -> list[BaseMessage]:
    """Messages; a text is the user's."""
    return [HumanMessage(turn) if isinstance(turn, str) else turn for turn in turns]
