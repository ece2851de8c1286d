"""The endpoints of the three documents: the bodies of their requests, and what answers them."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from . import samples
from .answers import ChatAnswer
from .context import RequestContext
from .models import DEFAULT_MODEL, general_listing, v1_listing
from .wire import (
    CONTENT_TYPES,
    Body,
    HttpReply,
    NotEmpty,
    Problem,
    Stream,
    json_reply,
)

_Strings = Annotated[list[str], Field(default_factory=list)]
_Numbers = Annotated[dict[str, float], Field(default_factory=dict)]


@dataclass(frozen=True)
class Endpoint:
    """One row of a document's endpoint table; `body` is None where there is none."""

    run: Callable[[RequestContext, Any], HttpReply | Awaitable[HttpReply]]
    body: type[Body] | None = None
    slow: bool = False


# -- chats ----------------------------------------------------------------------------------------


class Message(Body):
    """One message. The document has no role `system`; only a strict sandbox refuses it."""

    role: Literal["user", "assistant", "system"]
    content: str


class CompletionBody(Body):
    """POST /v1/chat/completions."""

    model: NotEmpty
    messages: Annotated[list[Message], Field(min_length=1)]
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    max_tokens: Annotated[int, Field(ge=1)] = 2000
    stream: bool = False


class MessageBody(Body):
    """POST /api/chat."""

    message: NotEmpty
    model: NotEmpty = DEFAULT_MODEL
    stream: bool = False
    temperature: Annotated[float, Field(ge=0, le=1)] = 1.0


async def _completion(context: RequestContext, body: CompletionBody) -> HttpReply:
    for index, message in enumerate(body.messages):
        if context.settings.strict and message.role == "system":
            raise Problem(
                400, f"messages[{index}].role: expected 'user' or 'assistant'."
            )
    streams = body.stream and context.stream_format != "json"
    messages = [
        {"role": message.role, "content": message.content} for message in body.messages
    ]
    answer = await context.answer_chat(
        messages,
        body.model,
        {"temperature": body.temperature},
        max_tokens=body.max_tokens,
        streams=streams,
    )
    if streams:
        return _streamed(_completion_stream(context, answer))
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "finish_reason": answer.finish_reason,
    }
    envelope = _envelope(context, answer, "chat.completion")
    return json_reply({**envelope, "choices": [choice], "usage": _usage(answer)})


async def _chat(context: RequestContext, body: MessageBody) -> HttpReply:
    streams = body.stream and context.stream_format != "json"
    options = {}
    if "temperature" in body.model_fields_set:
        options["temperature"] = body.temperature
    messages = [{"role": "user", "content": body.message}]
    answer = await context.answer_chat(messages, body.model, options, streams=streams)
    if streams and context.stream_format == "ndjson":
        return _streamed(_line_stream(answer))
    if streams:
        return _streamed(_completion_stream(context, answer))
    return json_reply(
        {
            "success": True,
            "response": answer.text,
            "model": answer.model,
            "tokens": answer.total_tokens,
            "timestamp": context.timestamp,
        }
    )


def _streamed(stream: Stream) -> HttpReply:
    return HttpReply(200, {"content-type": CONTENT_TYPES[stream.format]}, stream=stream)


def _completion_stream(context: RequestContext, answer: ChatAnswer) -> Stream:
    """The answer as a stream of completion chunks, or of plain text in the text formats."""
    envelope = _envelope(context, answer, "chat.completion.chunk")

    def chunk(piece: str, index: int) -> object:
        delta = {"content": piece}
        if index == 0:
            delta = {"role": "assistant", "content": piece}
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return {**envelope, "choices": [choice]}

    def last() -> object:
        choice = {"index": 0, "delta": {}, "finish_reason": answer.finish_reason}
        body = {**envelope, "choices": [choice]}
        if context.settings.stream_usage:
            body["usage"] = _usage(answer)
        return body

    return Stream(context.stream_format, answer.pieces or ("",), chunk, last)


def _line_stream(answer: ChatAnswer) -> Stream:
    def chunk(piece: str, _index: int) -> object:
        return {"response": piece, "done": False}

    def last() -> object:
        return {"done": True, "model": answer.model, "tokens": answer.total_tokens}

    return Stream("ndjson", answer.pieces or ("",), chunk, last)


def _envelope(
    context: RequestContext, answer: ChatAnswer, kind: str
) -> dict[str, object]:
    return {
        "id": f"chatcmpl-{context.id}",
        "object": kind,
        "created": int(context.now),
        "model": answer.model,
    }


def _usage(answer: ChatAnswer) -> dict[str, int]:
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.total_tokens,
    }


# -- models ---------------------------------------------------------------------------------------


def _v1_models(_context: RequestContext, _body: None) -> HttpReply:
    return json_reply(v1_listing())


def _general_models(_context: RequestContext, _body: None) -> HttpReply:
    return json_reply(general_listing())


# -- images and translation -----------------------------------------------------------------------


class PictureBody(Body):
    """POST /api/generate-image."""

    prompt: NotEmpty
    size: Literal["1024x1024", "1792x1024", "1024x1792"] = "1024x1024"
    quality: Literal["standard", "hd"] = "standard"


class PicturesBody(PictureBody):
    """POST /v1/images/generate."""

    prompt: Annotated[str, Field(min_length=1, max_length=1000)]
    n: Annotated[int, Field(ge=1, le=4)] = 1


class VisionBody(Body):
    """POST /api/vision."""

    image: NotEmpty
    task: Literal["detect", "ocr", "moderate", "describe"]


class TranslateBody(Body):
    """POST /api/translate."""

    text: NotEmpty
    source: Annotated[str, Field(alias="from", min_length=1)] = ""
    to: NotEmpty


def _draw(body: PictureBody, index: int = 0) -> str:
    """A picture in base64."""
    png = samples.draw(body.prompt, size=body.size, quality=body.quality, index=index)
    return base64.b64encode(png).decode()


def _pictures(context: RequestContext, body: PicturesBody) -> HttpReply:
    data = [
        {"b64_json": _draw(body, index), "revised_prompt": body.prompt}
        for index in range(body.n)
    ]
    return json_reply({"created": int(context.now), "data": data})


def _picture(_context: RequestContext, body: PictureBody) -> HttpReply:
    uri = f"data:image/png;base64,{_draw(body)}"
    return json_reply(
        {
            "success": True,
            "image": uri,
            "size": body.size,
            "quality": body.quality,
        }
    )


async def _vision(_context: RequestContext, body: VisionBody) -> HttpReply:
    result: dict[str, object]
    if body.image.lower().startswith(("http://", "https://")):
        # A stand-in that fetched any address would let its clients reach the user's network.
        note = "The sandbox does not fetch addresses, so it has not seen this image."
        result = {"seen": False, "note": note}
    else:
        data = image_bytes(body.image, "image")
        try:
            result = await asyncio.to_thread(samples.analyze, data, body.task)
        except ValueError:
            raise Problem(
                400, "image: expected a picture in a common format."
            ) from None
    return json_reply({"success": True, "task": body.task, "result": result})


def image_bytes(text: str, name: str) -> bytes:
    """Decode base64, plain or as a data URI, or refuse it with 400 naming the field."""
    payload = text
    if text[:5].lower() == "data:":
        header, _, payload = text.partition(",")
        if not header.lower().endswith(";base64"):
            raise Problem(400, f"{name}: expected a data URI in base64.")
    try:
        data = base64.b64decode("".join(payload.split()), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data:
        raise Problem(400, f"{name}: expected an image in base64.")
    return data


def _translate(_context: RequestContext, body: TranslateBody) -> HttpReply:
    return json_reply(samples.translate(body.text, source=body.source, target=body.to))


# -- medicine -------------------------------------------------------------------------------------


class _MedicalBody(Body):
    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the request, under the names of the document."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Patient(_MedicalBody):
    """Whom a consultation is about."""

    age: float = 0
    sex: str = ""
    medical_history: _Strings
    current_medications: _Strings


class ConsultBody(_MedicalBody):
    """POST /api/medical/chat."""

    message: NotEmpty
    specialty: str = ""
    language: str = ""
    patient_context: Annotated[Patient, Field(default=None)]


class DecisionBody(_MedicalBody):
    """POST /api/medical/clinic-protocols; its "keys in use" are examples: others are accepted."""

    symptoms: Annotated[list[str], Field(min_length=1)]
    vital_signs: _Numbers
    lab_results: _Numbers
    medical_history: _Strings
    specialty: NotEmpty


class CancerBody(_MedicalBody):
    """POST /api/medical/cancer-diagnosis; the document marks no field as required."""

    patient_age: float = 0
    patient_sex: str = ""
    symptoms: str = ""
    risk_factors: _Strings
    images: _Strings
    imaging_type: str = ""


def _consult(_context: RequestContext, body: ConsultBody) -> HttpReply:
    return json_reply(samples.consult(body.fields))


def _decide(_context: RequestContext, body: DecisionBody) -> HttpReply:
    return json_reply(samples.decision_support(body.fields))


def _cancer(_context: RequestContext, body: CancerBody) -> HttpReply:
    for index, image in enumerate(body.images):
        image_bytes(image, f"images[{index}]")
    return json_reply(samples.cancer_risk(body.fields))


def _status(_context: RequestContext, _body: None) -> HttpReply:
    capabilities = ("clinicCDSS", "medicalAI", "cancerDiagnosis", "multiLanguage")
    return json_reply(
        {
            "status": "operational",
            "uptime": "99.98%",
            "latency": "20ms",
            "capabilities": dict.fromkeys(capabilities, True),
        }
    )


ROUTES = {
    "/v1/chat/completions": {"POST": Endpoint(_completion, CompletionBody)},
    "/v1/images/generate": {"POST": Endpoint(_pictures, PicturesBody, slow=True)},
    "/v1/models": {"GET": Endpoint(_v1_models)},
    "/api/chat": {"POST": Endpoint(_chat, MessageBody)},
    "/api/models": {"GET": Endpoint(_general_models)},
    "/api/vision": {"POST": Endpoint(_vision, VisionBody)},
    "/api/generate-image": {"POST": Endpoint(_picture, PictureBody, slow=True)},
    "/api/translate": {"POST": Endpoint(_translate, TranslateBody)},
    "/api/medical/chat": {"POST": Endpoint(_consult, ConsultBody)},
    "/api/medical/clinic-protocols": {
        "POST": Endpoint(_decide, DecisionBody),
        "GET": Endpoint(_status),
    },
    "/api/medical/cancer-diagnosis": {"POST": Endpoint(_cancer, CancerBody)},
}
