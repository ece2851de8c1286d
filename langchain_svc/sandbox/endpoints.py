"""The endpoints of the three documents: the bodies of their requests, and what answers them.

A chat is answered by the test's script, by a real model or by the rules; all else by a sample that
is shaped like the service's and marked as unreal. A test that needs another answer has a fault
send it: `Sandbox(faults=[Fault(path="/vision", body={...})])`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import io
import textwrap
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from PIL import Image, ImageDraw, PngImagePlugin
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from .answers import Script, compose, cut_answer
from .log import ServedExchange
from .prompts import Messages
from .upstream import Upstream
from .wire import (
    CONTENT_TYPES,
    Body,
    ChatAnswer,
    HttpReply,
    NotEmpty,
    Problem,
    Stream,
    json_reply,
)

_Strings = Annotated[list[str], Field(default_factory=list)]
_Numbers = Annotated[dict[str, float], Field(default_factory=dict)]
DEFAULT_MODEL = "svc-turbo"
LARGE = 64_000  # characters; above that the rules run in a thread


@dataclass(frozen=True)
class Settings:
    """The arguments of a sandbox that its parts need."""

    plan: str
    api_key: str
    medical_api_key: str
    stream_format: str | None
    stream_usage: bool
    pace: float
    strict: bool
    clock: Callable[[], float]
    upstream: Upstream | None


@dataclass(frozen=True)
class RequestContext:
    """What the sandbox knows about an admitted request beside its body.

    The `id` is the same for the same requests in the same order, and unique within a sandbox.
    """

    id: str
    now: float
    settings: Settings
    stream_format: str
    charge: Callable[[int], None]
    exchange: ServedExchange
    script: Script

    @property
    def timestamp(self) -> str:
        """The time as ISO 8601 in UTC, to the millisecond."""
        moment = datetime.fromtimestamp(self.now, tz=UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    async def answer_chat(
        self,
        messages: Messages,
        model: str,
        options: Mapping[str, object],
        *,
        max_tokens: int | None = None,
        streams: bool,
    ) -> ChatAnswer:
        """Answer a chat: by the test's script, else by the upstream, else by the rules."""
        if model not in MODELS:
            reason = "There is no such model; GET models lists all."
            raise Problem(404, reason, code="model_not_found")
        if sum(len(message["content"]) for message in messages) > LARGE:
            answer = await asyncio.to_thread(
                self._answer_here, messages, model, max_tokens
            )
        else:
            answer = self._answer_here(messages, model, max_tokens)
        if answer is None:
            if max_tokens is not None:
                options = {**options, "max_tokens": max_tokens}
            return await self._answer_upstream(messages, options, streams=streams)
        window = MODELS[model].max_tokens
        if answer.prompt_tokens > window:
            reason = (
                f"The prompt has {answer.prompt_tokens} tokens; {model} takes {window}."
            )
            raise Problem(400, reason, code="context_length_exceeded")
        self._charge(answer)
        self.exchange.answer = answer
        return answer

    def _answer_here(
        self, messages: Messages, model: str, max_tokens: int | None
    ) -> ChatAnswer | None:
        """The answer of the script or of the rules; None where the upstream is to answer."""
        text = self.script.rest_of_cut(messages)
        if text is None:
            text = self.script.next_text(self.exchange.received, messages)
        if text is None and self.settings.upstream is not None:
            return None
        if text is None:
            text = compose(messages, model)
        answer = cut_answer(text, messages, model, max_tokens)
        if answer.finish_reason == "length":
            self.script.remember_cut(text)
        return answer

    async def _answer_upstream(
        self, messages: Messages, options: Mapping[str, object], *, streams: bool
    ) -> ChatAnswer:
        assert self.settings.upstream is not None  # noqa: S101 - else the rules have answered
        answer = await self.settings.upstream.answer(
            messages, options, self.exchange, self._charge, streams=streams
        )
        self.exchange.answer = answer
        return answer

    def _charge(self, answer: ChatAnswer) -> None:
        self.charge(answer.total_tokens)
        self.exchange.tokens = (answer.prompt_tokens, answer.completion_tokens)


@dataclass(frozen=True)
class ServedEndpoint:
    """One row of a document's endpoint table; `body` is None where there is none."""

    run: Callable[[RequestContext, Any], HttpReply | Awaitable[HttpReply]]
    body: type[Body] | None = None
    slow: bool = False


# -- chats -----------------------------------------------------------------------------------------


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


# The fields that say how to answer, which an upstream gets as they are.
_OPTIONS = CompletionBody.model_fields.keys() - {
    "model",
    "messages",
    "max_tokens",
    "stream",
}


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
        body.model_dump(include=_OPTIONS, exclude_none=True),
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


# -- models ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """One model: `max_tokens` is the general API's name for its context window."""

    id: str
    name: str
    provider: str
    capabilities: tuple[str, ...]
    max_tokens: int


# The four of the v1 document, with invented prices in USD per million tokens (input, output).
_PRICES = {
    "svc-turbo": (0.5, 1.5),
    "svc-pro": (5.0, 15.0),
    "svc-vision": (2.5, 7.5),
    "svc-code": (1.0, 3.0),
}

_MODELS = (
    Model("svc-turbo", "SVC Turbo", "SVC", ("chat",), 128_000),
    Model("svc-pro", "SVC Pro", "SVC", ("chat", "code", "analysis"), 200_000),
    Model("svc-vision", "SVC Vision", "SVC", ("chat", "vision", "analysis"), 128_000),
    Model("svc-code", "SVC Code", "SVC", ("chat", "code"), 128_000),
    Model("svc-mini", "SVC Mini", "SVC", ("chat",), 32_000),
    Model("svc-analyst", "SVC Analyst", "SVC", ("chat", "analysis"), 128_000),
    Model("alder-small", "Alder Small", "Alder Works", ("chat",), 16_000),
    Model("alder-medium", "Alder Medium", "Alder Works", ("chat", "analysis"), 64_000),
    Model(
        "alder-large",
        "Alder Large",
        "Alder Works",
        ("chat", "code", "analysis"),
        128_000,
    ),
    Model("brook-swift", "Brook Swift", "Brookside Lab", ("chat",), 8_000),
    Model("brook-deep", "Brook Deep", "Brookside Lab", ("chat", "analysis"), 200_000),
    Model("brook-eye", "Brook Eye", "Brookside Lab", ("chat", "vision"), 32_000),
    Model("cinder-7", "Cinder 7", "Cinderpath", ("chat",), 8_000),
    Model("cinder-30", "Cinder 30", "Cinderpath", ("chat", "code"), 32_000),
    Model("cinder-90", "Cinder 90", "Cinderpath", ("chat", "code", "analysis"), 64_000),
    Model("dune-lite", "Dune Lite", "Dunelight", ("chat",), 4_000),
    Model("dune-code", "Dune Code", "Dunelight", ("chat", "code"), 64_000),
    Model("dune-sight", "Dune Sight", "Dunelight", ("chat", "vision"), 64_000),
    Model("ember-base", "Ember Base", "Emberfield", ("chat",), 16_000),
    Model("ember-reason", "Ember Reason", "Emberfield", ("chat", "analysis"), 128_000),
    Model(
        "fjord-one", "Fjord One", "Fjord Systems", ("chat", "vision", "code"), 128_000
    ),
    Model("fjord-long", "Fjord Long", "Fjord Systems", ("chat", "analysis"), 200_000),
    Model("grove-mini", "Grove Mini", "Grovekeeper", ("chat",), 8_000),
)

MODELS = {model.id: model for model in _MODELS}


def _v1_models(_context: RequestContext, _body: None) -> HttpReply:
    records = [_v1_record(MODELS[name]) for name in _PRICES]
    return json_reply({"object": "list", "data": records})


def _general_models(_context: RequestContext, _body: None) -> HttpReply:
    return json_reply({"models": [asdict(model) for model in MODELS.values()]})


def _v1_record(model: Model) -> dict[str, object]:
    price_in, price_out = _PRICES[model.id]
    pricing = {
        "input": price_in,
        "output": price_out,
        "currency": "USD",
        "per_tokens": 1_000_000,
    }
    return {
        "id": model.id,
        "object": "model",
        "capabilities": model.capabilities,
        "context_window": model.max_tokens,
        "pricing": pricing,
    }


# -- images and translation ------------------------------------------------------------------------

_CAPTION = 220  # characters
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_CATEGORIES = ("violence", "sexual", "hate", "self_harm", "drugs")


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
    """A PNG in base64, in one colour, with the prompt in it and in the file.

    It depends on the prompt, the quality and the index alone, so equal requests get equal files.
    """
    prompt = body.prompt.encode("utf-8", "replace").decode("utf-8")
    seed = f"{prompt}\n{body.quality}\n{index}"
    digest = hashlib.sha256(seed.encode()).digest()
    background = [channel // 2 + 64 for channel in digest[:3]]
    white = [255, 255, 255]
    width, height = map(int, body.size.split("x"))
    # Two colours in a palette: a picture of a megapixel takes a few kilobytes.
    picture = Image.new("P", (width, height), 0)
    picture.putpalette(background + white)
    # A font without Unicode refuses what it cannot draw; the file carries the exact text.
    caption = f"{prompt[:_CAPTION]}\n({body.quality}, variant {index})"
    caption = caption.encode("latin-1", "replace").decode("latin-1")
    lines = "\n".join(textwrap.wrap(caption, 64))
    place = (width // 20, height // 2)
    ImageDraw.Draw(picture).text(place, lines, fill=1)
    notes = PngImagePlugin.PngInfo()
    notes.add_itxt("prompt", prompt)
    notes.add_itxt("software", "sandbox drawing by rules, no model")
    file = io.BytesIO()
    picture.save(file, "PNG", pnginfo=notes)
    return base64.b64encode(file.getvalue()).decode()


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


def _vision(_context: RequestContext, body: VisionBody) -> HttpReply:
    result: dict[str, object]
    if body.image.lower().startswith(("http://", "https://")):
        # A stand-in that fetched any address would let its clients reach the user's network.
        note = "The sandbox does not fetch addresses, so it has not seen this image."
        result = {"seen": False, "note": note}
    else:
        result = {
            "task": body.task,
            **_analyze(_image_bytes(body.image, "image"), body.task),
            "note": "found by the sandbox's rules, not by a vision model",
        }
    return json_reply({"success": True, "task": body.task, "result": result})


def _analyze(image: bytes, task: str) -> dict[str, object]:
    """What the bytes of an image tell: its size, and the prompt that drew it."""
    try:
        picture = Image.open(io.BytesIO(image), formats=_FORMATS)
        picture.verify()  # without its pixels: a small file can claim a huge picture
    except Exception as error:
        message = "image: expected a picture in a common format."
        raise Problem(400, message) from error
    prompt = str(picture.info.get("prompt", ""))
    if task == "ocr":
        return {"text": prompt}
    if task == "detect":
        box = {"x": 0, "y": 0}
        return {"objects": [{"label": "the whole picture", "score": 1.0, "box": box}]}
    if task == "moderate":
        return {"flagged": False, "categories": dict.fromkeys(_CATEGORIES, False)}
    width, height = picture.size
    text = f"A {picture.format} image of {width}x{height} pixels."
    if prompt:
        text += f' It was drawn for the prompt "{prompt}".'
    return {"description": text, "width": width, "height": height}


def _image_bytes(text: str, name: str) -> bytes:
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
    return json_reply(
        {
            "translation": f"[{body.to}] {body.text}",
            "source": body.source or "en",
            "target": body.to,
            "note": "made by the sandbox: not a real translation",
        }
    )


# -- medicine --------------------------------------------------------------------------------------

_DISCLAIMER = (
    "Synthetic sandbox output made by fixed rules: not medical advice, not from a clinician "
    "or a model. In an emergency call the local emergency number."
)


class _MedicalBody(Body):
    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel)


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
    """What the request holds."""
    told: dict[str, Any] = {}
    if body.patient_context is not None:
        told = body.patient_context.model_dump(by_alias=True, exclude_unset=True)
    return _synthetic(
        response=f'Synthetic sandbox answer: you wrote "{body.message[:500].strip()}", and of '
        f"the patient you told: {', '.join(told) or 'nothing'}. Please see a clinician.",
        specialty=body.specialty or "general medicine",
        language=body.language or "en",
        urgency="routine",
        recommendations=["a visit to a general practitioner"],
        patientContextUsed=bool(told),
    )


def _decide(_context: RequestContext, body: DecisionBody) -> HttpReply:
    """The symptoms of the request; no reading is judged."""
    specialty = body.specialty
    return _synthetic(
        assessment=[
            f"{symptom}: considered under {specialty}" for symptom in body.symptoms
        ],
        recommendations=["an examination by a specialist"],
        protocols=[{"id": "SYN-1", "title": f"synthetic protocol for {specialty}"}],
        specialty=specialty,
        urgency="routine",
        abnormalFindings=[],
        note=f"Synthetic sandbox answer about: {', '.join(body.symptoms)}.",
    )


def _cancer(_context: RequestContext, body: CancerBody) -> HttpReply:
    """The risk factors of the request; nothing is scored."""
    for index, image in enumerate(body.images):
        _image_bytes(image, f"images[{index}]")
    return _synthetic(
        riskLevel="low",
        riskScore=0,
        factors=[{"factor": factor, "points": 0} for factor in body.risk_factors],
        recommendations=["an appointment for targeted tests"],
        imagesReceived=len(body.images),
        imagingType=body.imaging_type or None,
        note=f"Synthetic sandbox score for: {body.symptoms or 'no symptoms'}.",
    )


def _synthetic(**fields: object) -> HttpReply:
    return json_reply({**fields, "disclaimer": _DISCLAIMER, "synthetic": True})


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


CHATS = {
    "/v1/chat/completions": {"POST": ServedEndpoint(_completion, CompletionBody)},
    "/api/chat": {"POST": ServedEndpoint(_chat, MessageBody)},
}
ROUTES = {
    **CHATS,
    "/v1/images/generate": {"POST": ServedEndpoint(_pictures, PicturesBody, slow=True)},
    "/v1/models": {"GET": ServedEndpoint(_v1_models)},
    "/api/models": {"GET": ServedEndpoint(_general_models)},
    "/api/vision": {"POST": ServedEndpoint(_vision, VisionBody, slow=True)},
    "/api/generate-image": {"POST": ServedEndpoint(_picture, PictureBody, slow=True)},
    "/api/translate": {"POST": ServedEndpoint(_translate, TranslateBody)},
    "/api/medical/chat": {"POST": ServedEndpoint(_consult, ConsultBody)},
    "/api/medical/clinic-protocols": {
        "POST": ServedEndpoint(_decide, DecisionBody),
        "GET": ServedEndpoint(_status),
    },
    "/api/medical/cancer-diagnosis": {"POST": ServedEndpoint(_cancer, CancerBody)},
}
