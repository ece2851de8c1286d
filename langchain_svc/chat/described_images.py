"""Images in the messages of a chat, described by the service's vision model.

The chat endpoint takes text only. Each image of a conversation is sent once through POST
/api/vision. Its description takes the image's place, in tags that name its handle and say that a
vision model wrote it. The store keeps the descriptions with the images, so that the next turn of
the conversation asks about new images only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage

from .._base.safe_errors import safe_repr
from .._base.threads import bounded_gather
from ..errors import SvcError, SvcRequestError
from ..images import ImageStore, StoredImage, check_address, is_data_uri
from .messages import DESCRIBED_IMAGE, to_wire

if TYPE_CHECKING:
    from .._client import Client, Exchange
    from .._wire.image_endpoints import ImageAnalysis

_AT_ONCE = 4
_NOT_YET = "(not described yet)"


@contextmanager
def _errors_name(place: str) -> Iterator[None]:
    """Add to every error of this package which image it is about."""
    try:
        yield
    except SvcError as error:
        error.message = f"{place} could not be described. {error.message}"
        error.args = (error.message, *error.args[1:])
        raise


@dataclass(frozen=True)
class ChatImage:
    """An image of a conversation, and where it first stands.

    All messages with the image share its block, which holds the description.
    """

    image: StoredImage
    place: str
    block: dict[str, str]


def find_images(
    messages: Sequence[BaseMessage], store: ImageStore
) -> tuple[list[BaseMessage], list[ChatImage]]:
    """The conversation with blocks of text in place of its images, and each image once.

    Raises:
        SvcRequestError: One of the images cannot be sent; the error says which, and why.
    """
    in_text: list[BaseMessage] = []
    images: dict[str, ChatImage] = {}
    for number, message in enumerate(messages, 1):
        if isinstance(message.content, str):
            in_text.append(message)
            continue
        count = 0
        blocks: list[str | dict[str, Any]] = []
        for block in message.content:
            standard = _to_standard(block)
            if "image" not in str(standard.get("type")):
                blocks.append(block)
                continue
            count += 1
            image = _store_image(standard, store, f"Image {count} of message {number}")
            image = images.setdefault(image.image.handle, image)
            blocks.append(image.block)
        if not count:
            in_text.append(message)
            continue
        in_text.append(message.model_copy(update={"content": blocks}))
    return in_text, [*images.values()]


def describe_images(
    client: Client,
    ask: Callable[[str], Exchange[ImageAnalysis]],
    messages: Sequence[BaseMessage],
    store: ImageStore,
) -> list[BaseMessage]:
    """The conversation in text alone, with descriptions of all images; new ones are asked for."""
    in_text, calls = _prepare(ask, messages, store)
    for image, exchange in calls:
        with _errors_name(image.place):
            (analysis,) = client.read(exchange)
        _set_description(image, store, analysis.text)
    return in_text


async def adescribe_images(
    client: Client,
    ask: Callable[[str], Exchange[ImageAnalysis]],
    messages: Sequence[BaseMessage],
    store: ImageStore,
) -> list[BaseMessage]:
    """The async version of `describe_images`; several images are described at once."""
    # In a thread: to read a large image and to write it into a request takes tens of milliseconds.
    in_text, calls = await asyncio.to_thread(_prepare, ask, messages, store)

    async def describe(image: ChatImage, exchange: Exchange[ImageAnalysis]) -> None:
        with _errors_name(image.place):
            (analysis,) = [piece async for piece in client.aread(exchange)]
        _set_description(image, store, analysis.text)

    await bounded_gather([describe(*call) for call in calls], at_once=_AT_ONCE)
    return in_text


def _prepare(
    ask: Callable[[str], Exchange[ImageAnalysis]],
    messages: Sequence[BaseMessage],
    store: ImageStore,
) -> tuple[list[BaseMessage], list[tuple[ChatImage, Exchange[ImageAnalysis]]]]:
    """The conversation in text, and the calls that describe its images."""
    in_text, images = find_images(messages, store)
    new_images = [image for image in images if not image.image.description]
    if new_images:
        to_wire(in_text)  # refuses what cannot be sent at all, before any call
    calls = [(image, ask(image.image.sendable)) for image in new_images]
    return in_text, calls


def _set_description(image: ChatImage, store: ImageStore, description: str) -> None:
    image.block["text"] = description
    store.describe(image.image.handle, description)


def _to_standard(block: str | dict[str, Any]) -> Mapping[str, Any]:
    """The block in LangChain's standard form, by LangChain's own converters."""
    if not isinstance(block, dict) or block.get("type") == "text":
        return {}
    if block.get("type") in ("image_url", "input_image"):
        # The converters take this form with an object only; a bare address is usual, too.
        url = block.get("image_url")
        if isinstance(url, Mapping):
            url = url.get("url")
        return {"type": block["type"], "url": url}
    try:
        (standard,) = HumanMessage([block]).content_blocks
    except (AttributeError, KeyError, TypeError, ValueError):
        return block  # the converters trust what they read
    if standard["type"] != "non_standard":
        return {**standard}
    inner = standard.get("value")
    return inner if isinstance(inner, dict) else block


def _store_image(block: Mapping[str, Any], store: ImageStore, place: str) -> ChatImage:
    """Put an image of a message into the store."""
    source = block.get("base64") or block.get("url")
    if isinstance(source, str):
        try:
            if not (block.get("base64") or is_data_uri(source)):
                source = check_address(source.strip())
            image = store.add_quoted(source)
        except ValueError as error:
            raise SvcRequestError(f"{place} is not sent: {error}") from None
        text = image.description or _NOT_YET
        in_text = {"type": DESCRIBED_IMAGE, "handle": image.handle, "text": text}
        return ChatImage(image, place, in_text)
    raise SvcRequestError(
        f"{place} is not sent: its block of type {safe_repr(block['type'])} holds no image that "
        "can be passed on. Give it as {'type': 'image', 'base64': ...} or {'type': 'image', "
        "'url': ...}; a file by images.add(path)"
    )
