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
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage

from .._images import check_address, is_data_uri
from .._safe_errors import safe_repr
from .._service import ServiceSettings, bounded_gather, vision_exchange
from .._threads import off_loop
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


class ConversationImages:
    """The images of one conversation, which it finds, names and puts into words; it calls nobody.

    Raises:
        SvcRequestError: One of the images cannot be sent; the error says which, and why.
    """

    def __init__(self, messages: Sequence[BaseMessage], store: ImageStore) -> None:
        self._messages, self._store = messages, store
        self._handles: list[dict[int, str]] = []  # of each message, by block
        self._places: dict[str, tuple[StoredImage, str]] = {}  # each image, where it first stands
        self._words: dict[str, str] = {}  # the store may have dropped an image by now
        for number, message in enumerate(messages, 1):
            found: dict[int, str] = {}
            for index, block in enumerate(_blocks(message)):
                standard = _standard(block)
                if "image" in str(standard.get("type")):
                    place = f"Image {len(found) + 1} of message {number}"
                    image = _kept(standard, store, place)
                    found[index] = image.handle
                    self._places.setdefault(image.handle, (image, place))
                    self._words[image.handle] = image.description
            self._handles.append(found)

    def unseen(self) -> Iterator[tuple[StoredImage, str]]:
        """Each image that has no description yet, once, and where it first stands."""
        return (found for at, found in self._places.items() if not self._words[at])

    def describe(self, image: StoredImage, description: str) -> None:
        """Keep what a vision model said of an image, here and in the store."""
        self._words[image.handle] = description
        self._store.describe(image.handle, description)

    def in_words(self) -> list[BaseMessage]:
        """The conversation with words in the place of its images."""
        return [
            self._worded(message, found) if found else message
            for message, found in zip(self._messages, self._handles, strict=True)
        ]

    def _worded(self, message: BaseMessage, found: Mapping[int, str]) -> BaseMessage:
        blocks: list[Any] = list(_blocks(message))
        for index, handle in found.items():
            text = self._words[handle] or _NOT_YET
            blocks[index] = {"type": DESCRIBED_IMAGE, "handle": handle, "text": text}
        return message.model_copy(update={"content": blocks})


def describe_images(
    model: ServiceSettings, messages: Sequence[BaseMessage], store: ImageStore, limits: Limits
) -> list[BaseMessage]:
    """The conversation in text alone; what has not been described yet is described now."""
    images, calls = _prepared(model, messages, store, limits)
    for image, place, exchange in calls:
        with _named(place):
            (reading,) = model._pieces(exchange)  # noqa: SLF001  # our own class
        images.describe(image, reading.text)
    return images.in_words()


async def adescribe_images(
    model: ServiceSettings, messages: Sequence[BaseMessage], store: ImageStore, limits: Limits
) -> list[BaseMessage]:
    """The async version of `describe_images`; several images are described at once."""
    # In a thread: to read a large image and to write it into a request takes tens of milliseconds.
    until = limits.until(time.monotonic())
    images, calls = await off_loop(until, _prepared, model, messages, store, limits)

    async def describe(image: StoredImage, place: str, exchange: Exchange[Any]) -> None:
        with _named(place):
            (reading,) = [r async for r in model._apieces(exchange)]  # noqa: SLF001  # our own class
        images.describe(image, reading.text)

    await bounded_gather([describe(*ask) for ask in calls], at_once=_AT_ONCE)
    return images.in_words()


def _prepared(
    model: ServiceSettings, messages: Sequence[BaseMessage], store: ImageStore, limits: Limits
) -> tuple[ConversationImages, list[tuple[StoredImage, str, Exchange[Any]]]]:
    """The images of a conversation, and the calls that it needs before it can be asked."""
    images = ConversationImages(messages, store)
    unseen = list(images.unseen())
    if unseen:
        to_wire(images.in_words())  # what cannot be said at all is refused before any call
    return images, [
        (image, place, vision_exchange(model, image.sendable, "describe", limits))
        for image, place in unseen
    ]


def _blocks(message: BaseMessage) -> Sequence[Any]:
    return () if isinstance(message.content, str) else message.content


def _standard(given: Any) -> Mapping[str, Any]:
    """A block as LangChain's standard has it, by LangChain's own converters."""
    if not isinstance(given, dict) or given.get("type") == "text":
        return {}
    block: dict[str, Any] = given
    if block.get("type") in ("image_url", "input_image"):
        # They know this form with an object and no further words; a bare address is usual too.
        url = block.get("image_url")
        url = url.get("url") if isinstance(url, Mapping) else url
        block = {"type": "image_url", "image_url": {"url": url}}
    try:
        (made,) = HumanMessage([block]).content_blocks
    except (AttributeError, KeyError, TypeError, ValueError):  # they trust what they read
        return block
    inner = made.get("value") if made["type"] == "non_standard" else made
    return inner if isinstance(inner, dict) else block


def _kept(block: Mapping[str, Any], store: ImageStore, place: str) -> StoredImage:
    """An image of a message in the store, with its handle."""
    given = block.get("base64") or block.get("url")
    try:
        if isinstance(given, str):
            by_address = not block.get("base64") and not is_data_uri(given)
            return store.add_quoted(check_address(given.strip()) if by_address else given)
    except ValueError as error:
        raise SvcRequestError(f"{place} is not sent: {error}") from None
    raise SvcRequestError(
        f"{place} is not sent: its block of type {safe_repr(block['type'])} holds no image that "
        "can be passed on. Give it as {'type': 'image', 'base64': ...} or {'type': 'image', "
        "'url': ...}; a file by images.add(path)"
    )
