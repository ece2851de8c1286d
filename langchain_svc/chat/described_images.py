"""Images in the messages of a chat, put into words by the service's vision model.

The chat endpoint takes text only. Each image of a conversation is sent once through POST
/api/vision, and what a vision model says of it stands in its place, in tags that name its handle
and say whose words these are. The descriptions are kept with the images, in the model's store, so
that the next turn of the conversation asks about new images only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage

from .._base.safe_errors import safe_repr
from .._base.threads import bounded_gather, off_loop
from .._images import check_address, is_data_uri
from .._service import ServiceSettings, vision_exchange
from ..errors import SvcError, SvcRequestError
from ..images import ImageStore, StoredImage
from .messages import DESCRIBED_IMAGE, to_wire

if TYPE_CHECKING:
    from .._service import Exchange, Limits

_AT_ONCE = 4
_NOT_YET = "(not described yet)"


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Says in every error of this package which image it is about."""
    try:
        yield
    except SvcError as error:
        error.message = f"{place} could not be described. {error.message}"
        error.args = (error.message, *error.args[1:])
        raise


@dataclass(frozen=True)
class FoundImage:
    """An image of a conversation, and where it first stands.

    Its block, with its description, is one object wherever the image stands.
    """

    image: StoredImage
    place: str
    block: dict[str, str]


def find_images(
    messages: Sequence[BaseMessage], store: ImageStore
) -> tuple[list[BaseMessage], list[FoundImage]]:
    """The conversation with blocks of text in the place of its images, and each image once.

    Raises:
        SvcRequestError: One of the images cannot be sent; the error says which, and why.
    """
    worded: list[BaseMessage] = []
    found: dict[str, FoundImage] = {}
    for number, message in enumerate(messages, 1):
        count, blocks = (
            0,
            [] if isinstance(message.content, str) else [*message.content],
        )
        for index, block in enumerate(blocks):
            standard = _standard(block)
            if "image" in str(standard.get("type")):
                count += 1
                place = f"Image {count} of message {number}"
                image = _kept(standard, store, place)
                text = image.description or _NOT_YET
                shown = {"type": DESCRIBED_IMAGE, "handle": image.handle, "text": text}
                first = found.setdefault(image.handle, FoundImage(image, place, shown))
                blocks[index] = first.block
        worded.append(
            message.model_copy(update={"content": blocks}) if count else message
        )
    return worded, [*found.values()]


def describe_images(
    model: ServiceSettings,
    messages: Sequence[BaseMessage],
    store: ImageStore,
    limits: Limits,
) -> list[BaseMessage]:
    """The conversation in text alone; what has not been described yet is described now."""
    worded, calls = _prepared(model, messages, store, limits)
    for found, exchange in calls:
        with _named(found.place):
            (reading,) = model._pieces(exchange)  # noqa: SLF001  # our own class
        _keep(found, store, reading.text)
    return worded


async def adescribe_images(
    model: ServiceSettings,
    messages: Sequence[BaseMessage],
    store: ImageStore,
    limits: Limits,
) -> list[BaseMessage]:
    """The async version of `describe_images`; several images are described at once."""
    # In a thread: to read a large image and to write it into a request takes tens of milliseconds.
    until = limits.until(time.monotonic())
    worded, calls = await off_loop(until, _prepared, model, messages, store, limits)

    async def describe(found: FoundImage, exchange: Exchange[Any]) -> None:
        with _named(found.place):
            (reading,) = [r async for r in model._apieces(exchange)]  # noqa: SLF001  # our own class
        _keep(found, store, reading.text)

    await bounded_gather([describe(*call) for call in calls], at_once=_AT_ONCE)
    return worded


def _prepared(
    model: ServiceSettings,
    messages: Sequence[BaseMessage],
    store: ImageStore,
    limits: Limits,
) -> tuple[list[BaseMessage], list[tuple[FoundImage, Exchange[Any]]]]:
    """A conversation, and the calls that describe its images before it can be asked."""
    worded, images = find_images(messages, store)
    unseen = [found for found in images if not found.image.description]
    if unseen:
        to_wire(worded)  # what cannot be said at all is refused before any call
    return worded, [
        (found, vision_exchange(model, found.image.sendable, "describe", limits))
        for found in unseen
    ]


def _keep(found: FoundImage, store: ImageStore, description: str) -> None:
    found.block["text"] = description
    store.describe(found.image.handle, description)


def _standard(given: Any) -> Mapping[str, Any]:
    """A block as LangChain's standard has it, by LangChain's own converters."""
    if not isinstance(given, dict) or given.get("type") == "text":
        return {}
    block: dict[str, Any] = given
    if block.get("type") in ("image_url", "input_image"):
        # They know this form with an object and no further words; a bare address is usual too.
        url = block.get("image_url")
        return {
            "type": block["type"],
            "url": url.get("url") if isinstance(url, Mapping) else url,
        }
    try:
        (made,) = HumanMessage([block]).content_blocks
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
    ):  # they trust what they read
        return block
    inner = made.get("value") if made["type"] == "non_standard" else made
    return inner if isinstance(inner, dict) else block


def _kept(block: Mapping[str, Any], store: ImageStore, place: str) -> StoredImage:
    """An image of a message in the store, with its handle."""
    given = block.get("base64") or block.get("url")
    try:
        if isinstance(given, str):
            by_address = not block.get("base64") and not is_data_uri(given)
            return store.add_quoted(
                check_address(given.strip()) if by_address else given
            )
    except ValueError as error:
        raise SvcRequestError(f"{place} is not sent: {error}") from None
    raise SvcRequestError(
        f"{place} is not sent: its block of type {safe_repr(block['type'])} holds no image that "
        "can be passed on. Give it as {'type': 'image', 'base64': ...} or {'type': 'image', "
        "'url': ...}; a file by images.add(path)"
    )
