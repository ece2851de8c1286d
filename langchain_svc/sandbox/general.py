"""The unversioned interface: chat, models, vision, images, translation (general API document)."""

import base64
from typing import Annotated, Literal

from pydantic import Field

from langchain_svc.sandbox import samples
from langchain_svc.sandbox.answers import ChatAnswer
from langchain_svc.sandbox.endpoint import (
    DEFAULT_MODEL,
    Ask,
    Endpoint,
    Quality,
    Size,
    general_listing,
    image_bytes,
)
from langchain_svc.sandbox.v1 import completion_stream
from langchain_svc.sandbox.wire import (
    CONTENT_TYPES,
    Body,
    HttpReply,
    NotEmpty,
    Problem,
    Stream,
    json_reply,
)


class MessageBody(Body):
    """POST /api/chat."""

    message: NotEmpty
    model: NotEmpty = DEFAULT_MODEL
    stream: bool = False
    temperature: Annotated[float, Field(ge=0, le=1)] = 1.0


class VisionBody(Body):
    """POST /api/vision."""

    image: NotEmpty
    task: Literal["detect", "ocr", "moderate", "describe"]


class PictureBody(Body):
    """POST /api/generate-image."""

    prompt: NotEmpty
    size: Size = "1024x1024"
    quality: Quality = "standard"


class TranslateBody(Body):
    """POST /api/translate."""

    text: NotEmpty
    source: Annotated[str, Field(alias="from", min_length=1)] = "detect"
    to: NotEmpty


def _chat(ask: Ask, body: MessageBody) -> HttpReply:
    answer = ask.chat([{"role": "user", "content": body.message}], body.model)
    return chat_reply(ask, body, answer, body.model)


def chat_reply(ask: Ask, body: MessageBody, answer: ChatAnswer, model: str) -> HttpReply:
    """Return the answer to a chat in the form that its body asks for."""
    if not body.stream or ask.stream_format == "json":
        return json_reply(
            {
                "success": True,
                "response": answer.text,
                "model": model,
                "tokens": answer.total_tokens,
                "timestamp": ask.timestamp,
            }
        )
    stream = completion_stream(ask, answer, model)
    if ask.stream_format == "ndjson":

        def last() -> object:
            return {"done": True, "model": model, "tokens": answer.total_tokens}

        stream = Stream("ndjson", stream.pieces, _line, last)
    return HttpReply(200, {"content-type": CONTENT_TYPES[stream.format]}, stream=stream)


def _line(piece: str, _index: int) -> object:
    return {"response": piece, "done": False}


def _models(_ask: Ask, _body: None) -> HttpReply:
    return json_reply(general_listing())


def vision(_ask: Ask, body: VisionBody) -> HttpReply:
    """Answer an image analysis by rules."""
    if body.image.lower().startswith(("http://", "https://")):
        # A stand-in that fetched addresses on request would be a hole in the user's network.
        note = "The sandbox does not fetch addresses, so it has not seen this image."
        result: dict[str, object] = {"seen": False, "note": note}
    else:
        data = image_bytes(body.image, "image")
        try:
            result = samples.analyze(data, body.task)
        except ValueError:
            raise Problem(400, "image: expected a picture in a common format.") from None
    return json_reply({"success": True, "task": body.task, "result": result})


def _image(_ask: Ask, body: PictureBody) -> HttpReply:
    png = samples.draw(body.prompt, size=body.size, quality=body.quality, index=0)
    uri = "data:image/png;base64," + base64.b64encode(png).decode()
    return json_reply({"success": True, "image": uri, "size": body.size, "quality": body.quality})


def _translate(_ask: Ask, body: TranslateBody) -> HttpReply:
    source = body.source if "source" in body.model_fields_set else None
    return json_reply(samples.translate(body.text, source=source, target=body.to))


ROUTES = {
    "/api/chat": {"POST": Endpoint(_chat, MessageBody)},
    "/api/models": {"GET": Endpoint(_models)},
    "/api/vision": {"POST": Endpoint(vision, VisionBody, slow=True)},
    "/api/generate-image": {"POST": Endpoint(_image, PictureBody, slow=True)},
    "/api/translate": {"POST": Endpoint(_translate, TranslateBody)},
}
