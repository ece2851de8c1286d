"""The versioned interface: chat completions, images, models (v1 API document)."""

import base64
from typing import cast

from langchain_svc.sandbox import answers
from langchain_svc.sandbox.catalogue import v1_listing
from langchain_svc.sandbox.endpoint import (
    QUALITIES,
    SIZES,
    Ask,
    Endpoint,
    find_model,
    fit_window,
)
from langchain_svc.sandbox.errors import Problem
from langchain_svc.sandbox.schema import (
    BOOLEAN,
    Field,
    ListOf,
    Record,
    integer,
    number,
    one_of,
    text,
)
from langchain_svc.sandbox.streams import CONTENT_TYPES, Stream
from langchain_svc.sandbox.wire import Reply, json_reply

_DEFAULT_MAX_TOKENS = 2000

# `user` and `assistant` occur in the document; `system` is accepted unless the sandbox is strict.
_MESSAGE = Record(
    (
        Field("role", one_of("user", "assistant", "system"), required=True),
        Field("content", text(), required=True),
    )
)

CHAT_FIELDS = (
    Field("model", text(least=1), required=True),
    Field("messages", ListOf(_MESSAGE, least=1), required=True),
    Field("temperature", number(0, 2)),
    Field("max_tokens", integer(1)),
    Field("stream", BOOLEAN),
)

IMAGE_FIELDS = (
    Field("prompt", text(least=1, most=1000), required=True),
    Field("size", one_of(*SIZES)),
    Field("n", integer(1, 4)),
    Field("quality", one_of(*QUALITIES)),
)


def _chat(ask: Ask) -> Reply:
    model = find_model(ask.text("model", ""))
    messages = cast("list[dict[str, str]]", ask.body["messages"])
    if ask.strict:
        _refuse_undocumented_roles(messages)
    max_tokens = cast("int", ask.body.get("max_tokens", _DEFAULT_MAX_TOKENS))
    answer = ask.chat(messages, model.id, max_tokens)
    fit_window(model, answer.prompt_tokens)
    ask.charge(answer.prompt_tokens + answer.completion_tokens)
    if ask.streams:
        stream = completion_stream(ask, answer, model.id)
        return Reply(200, {"content-type": CONTENT_TYPES[stream.format]}, stream=stream)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "finish_reason": answer.finish_reason,
    }
    return json_reply(
        {
            **_envelope(ask, model.id, "chat.completion"),
            "choices": [choice],
            "usage": _usage(answer),
        }
    )


def completion_stream(ask: Ask, answer: answers.Answer, model: str) -> Stream:
    """Return the answer as a stream of completion chunks, or of plain text in the text formats."""
    envelope = _envelope(ask, model, "chat.completion.chunk")

    def chunk(piece: str, index: int) -> object:
        role = {} if index else {"role": "assistant"}
        delta = {**role, "content": piece}
        return {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    last: dict[str, object] = {
        **envelope,
        "choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish_reason}],
    }
    if ask.stream_usage:
        last["usage"] = _usage(answer)
    return Stream(ask.stream_format, answer.pieces or ("",), chunk, last)


def _envelope(ask: Ask, model: str, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{ask.id}", "object": kind, "created": int(ask.now), "model": model}


def _usage(answer: answers.Answer) -> dict[str, int]:
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


def _refuse_undocumented_roles(messages: list[dict[str, str]]) -> None:
    for index, message in enumerate(messages):
        if message["role"] == "system":
            raise Problem(400, f"messages[{index}].role: expected one of user, assistant.")


def _images(ask: Ask) -> Reply:
    prompt = ask.text("prompt", "")
    data = []
    for index in range(cast("int", ask.body.get("n", 1))):
        png = answers.draw(
            prompt,
            size=ask.text("size", SIZES[0]),
            quality=ask.text("quality", QUALITIES[0]),
            index=index,
        )
        data.append({"b64_json": base64.b64encode(png).decode(), "revised_prompt": prompt})
    return json_reply({"created": int(ask.now), "data": data})


def _models(_ask: Ask) -> Reply:
    return json_reply(v1_listing())


ROUTES = {
    "/v1/chat/completions": {"POST": Endpoint(_chat, CHAT_FIELDS)},
    "/v1/images/generate": {"POST": Endpoint(_images, IMAGE_FIELDS, slow=True)},
    "/v1/models": {"GET": Endpoint(_models)},
}
