"""The least that a LangChain chat model can do: answers that were there before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolCall, UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from .answers import SERVICE_TIME, arguments, pieces, words

_USAGE = UsageMetadata(input_tokens=9, output_tokens=12, total_tokens=21)


class Least(BaseChatModel):
    """What langchain-core alone takes: the same messages, from nowhere."""

    kind: str
    size: int
    calls: list[ToolCall] = []  # noqa: RUF012  # Pydantic copies it

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        if self.kind == "called":
            self.calls = [
                ToolCall(name="save", args=json.loads(arguments(self.size)), id="1")
            ]

    @property
    def _llm_type(self) -> str:
        return "least"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools
        return self

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        message = AIMessage(
            content="word " * self.size, tool_calls=self.calls, usage_metadata=_USAGE
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
        if self.kind == "slow":
            await asyncio.sleep(SERVICE_TIME)
        return self._generate()

    def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        if self.kind == "called_stream":
            for at, piece in enumerate(pieces(arguments(self.size))):
                call = tool_call_chunk(name=None if at else "save", args=piece, index=0)
                message = AIMessageChunk(content="", tool_call_chunks=[call])
                yield ChatGenerationChunk(message=message)
            return
        for word in words(self.size):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))

    async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream():
            yield chunk
