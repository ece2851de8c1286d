"""The unversioned interface: chat, models, vision, images, translation (general API document)."""

import base64

from langchain_svc.sandbox import answers
from langchain_svc.sandbox.catalogue import DEFAULT_MODEL, general_listing
from langchain_svc.sandbox.endpoint import (
    QUALITIES,
    SIZES,
    Ask,
    Endpoint,
    find_model,
    fit_window,
    image_bytes,
)
from langchain_svc.sandbox.errors import Problem
from langchain_svc.sandbox.schema import BOOLEAN, Field, number, one_of, text
from langchain_svc.sandbox.streams import CONTENT_TYPES, Stream
from langchain_svc.sandbox.v1 import completion_stream
from langchain_svc.sandbox.wire import Reply, json_reply

CHAT_FIELDS = (
    Field("message", text(least=1), required=True),
    Field("model", text(least=1)),
    Field("stream", BOOLEAN),
    Field("temperature", number(0, 1)),
)

VISION_FIELDS = (
    Field("image", text(least=1), required=True),
    Field("task", one_of("detect", "ocr", "moderate", "describe"), required=True),
)

IMAGE_FIELDS = (
    Field("prompt", text(least=1), required=True),
    Field("size", one_of(*SIZES)),
    Field("quality", one_of(*QUALITIES)),
)

TRANSLATE_FIELDS = (
    Field("text", text(least=1), required=True),
    Field("from", text(least=1)),
    Field("to", text(least=1), required=True),
)


def _chat(ask: Ask) -> Reply:
    model = find_model(ask.text("model", DEFAULT_MODEL))
    messages = [{"role": "user", "content": ask.text("message", "")}]
    answer = ask.chat(messages, model.id)
    fit_window(model, answer.prompt_tokens)
    tokens = answer.prompt_tokens + answer.completion_tokens
    ask.charge(tokens)
    if not ask.streams:
        return json_reply(
            {
                "success": True,
                "response": answer.text,
                "model": model.id,
                "tokens": tokens,
                "timestamp": ask.timestamp,
            }
        )
    stream = completion_stream(ask, answer, model.id)
    if ask.stream_format == "ndjson":
        last = {"done": True, "model": model.id, "tokens": tokens}
        stream = Stream("ndjson", stream.pieces, _line, last)
    return Reply(200, {"content-type": CONTENT_TYPES[stream.format]}, stream=stream)


def _line(piece: str, _index: int) -> object:
    return {"response": piece, "done": False}


def _models(_ask: Ask) -> Reply:
    return json_reply(general_listing())


def _vision(ask: Ask) -> Reply:
    image, task = ask.text("image", ""), ask.text("task", "")
    if image.lower().startswith(("http://", "https://")):
        # A stand-in that fetched addresses on request would be a hole in the user's network.
        note = "The sandbox does not fetch addresses, so it has not seen this image."
        return json_reply({"success": True, "task": task, "result": {"seen": False, "note": note}})

    data = image_bytes(image, "image")
    try:
        result = answers.analyze(data, task)
    except ValueError:
        raise Problem(400, "image: expected a picture in a common format.") from None
    return json_reply({"success": True, "task": task, "result": result})


def _image(ask: Ask) -> Reply:
    size, quality = ask.text("size", SIZES[0]), ask.text("quality", QUALITIES[0])
    png = answers.draw(ask.text("prompt", ""), size=size, quality=quality, index=0)
    uri = "data:image/png;base64," + base64.b64encode(png).decode()
    return json_reply({"success": True, "image": uri, "size": size, "quality": quality})


def _translate(ask: Ask) -> Reply:
    source = ask.text("from", "") or None
    try:
        result = answers.translate(ask.text("text", ""), source=source, target=ask.text("to", ""))
    except ValueError:
        raise Problem(400, "from, to: expected language codes such as en.") from None
    return json_reply(result)


ROUTES = {
    "/api/chat": {"POST": Endpoint(_chat, CHAT_FIELDS)},
    "/api/models": {"GET": Endpoint(_models)},
    "/api/vision": {"POST": Endpoint(_vision, VISION_FIELDS, slow=True)},
    "/api/generate-image": {"POST": Endpoint(_image, IMAGE_FIELDS, slow=True)},
    "/api/translate": {"POST": Endpoint(_translate, TRANSLATE_FIELDS)},
}
