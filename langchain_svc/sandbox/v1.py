"""The versioned interface: chat completions, images, models (v1 API document)."""

import base64
from typing import Annotated, Literal

from pydantic import Field

from langchain_svc.sandbox import samples
from langchain_svc.sandbox.answers import ChatAnswer
from langchain_svc.sandbox.endpoint import Ask, Endpoint, Quality, Size, v1_listing
from langchain_svc.sandbox.wire import (
    CONTENT_TYPES,
    Body,
    HttpReply,
    NotEmpty,
    Problem,
    Stream,
    json_reply,
)


class Message(Body):
    """`system` does not occur in the document; it is accepted unless the sandbox is strict."""

    role: Literal["user", "assistant", "system"]
    content: str


class CompletionBody(Body):
    """POST /v1/chat/completions."""

    model: NotEmpty
    messages: Annotated[list[Message], Field(min_length=1)]
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    max_tokens: Annotated[int, Field(ge=1)] = 2000
    stream: bool = False


class ImagesBody(Body):
    """POST /v1/images/generate."""

    prompt: Annotated[str, Field(min_length=1, max_length=1000)]
    size: Size = "1024x1024"
    n: Annotated[int, Field(ge=1, le=4)] = 1
    quality: Quality = "standard"


def _chat(ask: Ask, body: CompletionBody) -> HttpReply:
    answer = ask.chat(conversation(ask, body), body.model, body.max_tokens)
    return completion(ask, body, answer, body.model)


def conversation(ask: Ask, body: CompletionBody) -> list[dict[str, str]]:
    """Return the messages of a chat."""
    for index, message in enumerate(body.messages):
        if ask.settings.strict and message.role == "system":
            raise Problem(400, f"messages[{index}].role: expected 'user' or 'assistant'.")
    return [{"role": message.role, "content": message.content} for message in body.messages]


def completion(ask: Ask, body: CompletionBody, answer: ChatAnswer, model: str) -> HttpReply:
    """Return the answer to a chat in the form that its body asks for."""
    if body.stream and ask.stream_format != "json":
        stream = completion_stream(ask, answer, model)
        return HttpReply(200, {"content-type": CONTENT_TYPES[stream.format]}, stream=stream)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "finish_reason": answer.finish_reason,
    }
    envelope = _envelope(ask, model, "chat.completion")
    return json_reply({**envelope, "choices": [choice], "usage": _usage(answer)})


def completion_stream(ask: Ask, answer: ChatAnswer, model: str) -> Stream:
    """Return the answer as a stream of completion chunks, or of plain text in the text formats."""
    envelope = _envelope(ask, model, "chat.completion.chunk")

    def chunk(piece: str, index: int) -> object:
        role = {} if index else {"role": "assistant"}
        delta = {**role, "content": piece}
        return {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    def last() -> object:
        choice = {"index": 0, "delta": {}, "finish_reason": answer.finish_reason}
        usage = {"usage": _usage(answer)} if ask.settings.stream_usage else {}
        return {**envelope, "choices": [choice], **usage}

    return Stream(ask.stream_format, answer.pieces or ("",), chunk, last)


def _envelope(ask: Ask, model: str, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{ask.id}", "object": kind, "created": int(ask.now), "model": model}


def _usage(answer: ChatAnswer) -> dict[str, int]:
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.total_tokens,
    }


def _images(ask: Ask, body: ImagesBody) -> HttpReply:
    data = []
    for index in range(body.n):
        png = samples.draw(body.prompt, size=body.size, quality=body.quality, index=index)
        data.append({"b64_json": base64.b64encode(png).decode(), "revised_prompt": body.prompt})
    return json_reply({"created": int(ask.now), "data": data})


def _models(_ask: Ask, _body: None) -> HttpReply:
    return json_reply(v1_listing())


ROUTES = {
    "/v1/chat/completions": {"POST": Endpoint(_chat, CompletionBody)},
    "/v1/images/generate": {"POST": Endpoint(_images, ImagesBody, slow=True)},
    "/v1/models": {"GET": Endpoint(_models)},
}
