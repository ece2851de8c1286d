"""`ImageStore`: the images of a toolkit, by handles that a model can write.

A model cannot write an image, and what it writes must not open files. So the application puts
images in and gets handles (`img_1kfxqmzw`), tools take handles, and generated images land here too.

Several users may share a store, and a model may write any handle. So the letters of a handle are
random, nobody is told the handles of others, and who was not given an image cannot name it.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from .._base.threads import new_lock
from ..errors import SvcRequestError
from .addresses import check_address, decode_base64, is_address, is_image_text
from .headers import ImageError, is_dicom, read_image_header, without_metadata

HANDLE = re.compile(r"img_[1-9][0-9]{0,8}[a-z]{0,8}", re.ASCII)
# Letters that make no words, and none of which looks like a digit.
_LETTERS = "bcdfghjkmnpqrstvwxz"
# Longer texts are base64, which no error may repeat.
_LONGEST_PATH = 255


class ShownAsPng(Protocol):
    """An object that a notebook shows as PNG, such as a PIL image or a `DicomImage`."""

    def _repr_png_(self) -> bytes | None: ...


@dataclass(frozen=True)
class StoredImage:
    """One image of a store: its bytes, or the address of one that was never fetched.

    Attributes:
        handle: What tools and models call it.
        data: Its bytes; None where there is only an address.
        url: Its address; None where there are bytes.
        format: PNG, JPEG or WEBP, told by the bytes; None for an address.
        width: Its width in pixels; 0 for an address.
        height: Its height in pixels; 0 for an address.
        label: A few words for people.
        generated: Whether the service made it. Those may be dropped to make room.
        quoted: Whether it came in a message of a chat. Those may be dropped too.
        description: What a vision model said of it, if a chat model asked.
    """

    handle: str
    data: bytes | None = field(default=None, repr=False)
    url: str | None = None
    format: str | None = None
    width: int = 0
    height: int = 0
    label: str = ""
    generated: bool = False
    quoted: bool = False
    description: str = field(default="", repr=False)

    @property
    def mime_type(self) -> str | None:
        """Its media type, such as image/png."""
        if self.format is None:
            return None
        return f"image/{self.format.lower()}"

    @property
    def base64(self) -> str:
        """Its bytes as base64; empty where there is only an address."""
        return base64.b64encode(self.data or b"").decode()

    @property
    def sendable(self) -> str:
        """What the service is sent of it: its address or its base64."""
        return self.url or self.base64

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """What a notebook shows: the image, where its bytes are here."""
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if self.mime_type and self.data:
            bundle[self.mime_type] = self.data
        return bundle

    @property
    def size(self) -> int:
        """What it takes of the store's bytes."""
        return len(self.data or self.url or "") + len(self.description)


class ImageStore:
    """Images by handle; bounded, and usable from any thread.

    What the application adds stays until it is removed. When there is no room, the oldest of the
    generated images and of those that came in messages are dropped; when that is not enough,
    adding fails. A handle is never given to a second image.

    Args:
        max_images: How many images it holds.
        max_bytes: How many bytes all of them may have together.
        max_image_bytes: How many bytes one of them may have.
        max_pixels: How many pixels one of them may have, told by its header.
    """

    def __init__(
        self,
        *,
        max_images: int = 200,
        max_bytes: int = 256 * 1024 * 1024,
        max_image_bytes: int = 20 * 1024 * 1024,
        max_pixels: int = 50_000_000,
    ) -> None:
        self.max_images = max_images
        self.max_bytes = max_bytes
        self.max_image_bytes = max_image_bytes
        self.max_pixels = max_pixels
        self._images: dict[str, StoredImage] = {}
        self._count = 0
        self._lock = new_lock()

    def add(
        self,
        image: str | bytes | Path | ShownAsPng,
        *,
        label: str = "",
        keep_metadata: bool = False,
    ) -> str:
        """Put an image in and get its handle. For applications: it opens the path it is given.

        Args:
            image: A path (one of more than 255 characters as a `Path`), bytes, a data URI, base64
                or an http(s) address, which is kept as it is and never fetched; or an object that
                a notebook shows as PNG, such as a PIL image or a `DicomImage`.
            label: A few words for people.
            keep_metadata: Keep what the file holds beside the picture: names, places, times,
                comments, colour profiles. Left out otherwise; the pixels are not changed.

        Raises:
            SvcRequestError: It is not an image that is taken, or there is no room for it.
        """
        try:
            content = self._content_of(image)
            checked = self.checked(content, bare=not keep_metadata, label=label)
            return self._put(checked).handle
        except SvcRequestError:  # a DicomImage says for itself why it cannot be drawn
            raise
        except ValueError as error:
            raise SvcRequestError(f"This image cannot be added: {error}") from None

    def add_generated(self, image: str | bytes, *, label: str = "") -> StoredImage:
        """Put in what the service made: an address, base64, or bytes.

        Raises:
            ValueError: It is not an image that is taken, or there is no room for it.
        """
        return self._put(self.checked(image, bare=False, label=label, generated=True))

    def add_quoted(self, image: str) -> StoredImage:
        """Put in the address or base64 of a message, or find it, if the same image is here already.

        Raises:
            ValueError: It is not an image that is taken, or there is no room for it.
        """
        whole = self.checked(image, bare=False)  # as the application may have put it in
        bare = self.checked(whole.data or image, quoted=True)
        return self._put(bare, (whole.data, bare.data))

    def describe(self, handle: str, description: str) -> None:
        """Keep what a vision model said of an image, if the image is still here."""
        with self._lock:
            image = self._images.get(handle)
            if image is not None:
                self._images[handle] = replace(image, description=description)

    def get(self, handle: str) -> StoredImage:
        """The image of a handle.

        Raises:
            SvcRequestError: There is none, or not any more.
        """
        image = self._images.get(handle)
        if image:
            return image
        # A model may write any text here; the error repeats only what looks like a handle.
        name = "of that name"
        if HANDLE.fullmatch(str(handle)):
            name = repr(handle)
        raise SvcRequestError(
            f"There is no image {name}: copy a handle exactly as it was given. An "
            "image may also have been removed, or dropped to make room"
        )

    def remove(self, handle: str) -> None:
        """Forget an image.

        Raises:
            SvcRequestError: There is none.
        """
        self.get(handle)
        with self._lock:
            self._images.pop(handle, None)

    def save(self, handle: str, path: str | Path) -> Path:
        """Write an image's bytes to a file.

        Raises:
            SvcRequestError: There is no such image, or only its address is known.
            OSError: The file cannot be written.
        """
        image = self.get(handle)
        if image.data is None:
            raise SvcRequestError(
                f"{handle} is only an address, which is never fetched"
            )
        path = Path(path)
        path.write_bytes(image.data)
        return path

    def emptied(self) -> ImageStore:
        """A store with the same limits and no image, which gives none of the handles again."""
        store = ImageStore()
        vars(store).update(self.__getstate__(), _images={})
        return store

    def __iter__(self) -> Iterator[StoredImage]:
        with self._lock:
            images = list(self._images.values())
        return iter(images)

    def __len__(self) -> int:
        return len(self._images)

    def __contains__(self, handle: object) -> bool:
        return handle in self._images

    def __repr__(self) -> str:
        # No handles: they are for those who got them.
        count = len(self)
        if not count:
            return "ImageStore()"
        if count == 1:
            return "ImageStore(1 image)"
        return f"ImageStore({count} images)"

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = {**vars(self), "_images": dict(self._images)}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=new_lock())

    def checked(
        self,
        image: str | bytes,
        *,
        bare: bool = True,
        most: int | None = None,
        **fields: Any,
    ) -> StoredImage:
        """An address, base64 or bytes as an image without a handle, which is not put in.

        Raises:
            ImageError: It is not an image that is taken, or one that is too large.
        """
        most = most or self.max_image_bytes
        if not isinstance(image, str):
            data = image
        elif is_address(image):
            return StoredImage("", url=check_address(image), **fields)
        else:
            data = decode_base64(image, most)
        if is_dicom(data):
            raise ImageError(
                "it is DICOM, which DicomImage draws: images.add(DicomImage(path))"
            )
        if len(data) > most:
            raise ImageError(f"it has more than {most:,} bytes (max_image_bytes)")
        header = read_image_header(data, self.max_pixels)
        if bare:
            data = without_metadata(data)
        return StoredImage("", data=data, **vars(header), **fields)

    def _content_of(self, image: object) -> str | bytes:
        """What the application puts in, as an address, base64 or bytes."""
        if isinstance(image, str):
            text = image.strip()
            if is_image_text(text) or len(text) > _LONGEST_PATH:
                return text
            return self._read_file(Path(text))
        if isinstance(image, Path):
            return self._read_file(image)
        if isinstance(image, (bytes, bytearray, memoryview)):
            return bytes(image)
        show_png = getattr(image, "_repr_png_", None)
        if callable(show_png):
            png = show_png()
            if isinstance(png, bytes):
                return png
        raise ImageError(
            "it must be a path, bytes, a data URI, base64, an http(s) address, or an object whose "
            "_repr_png_ gives bytes, such as a DicomImage or a PIL image in mode RGB, not "
            f"{type(image).__name__}"
        )

    def _read_file(self, path: Path) -> bytes:
        """A file's bytes, and no more than one that shows if there are too many."""
        try:
            with path.open("rb") as file:
                return file.read(self.max_image_bytes + 1)
        except OSError as error:
            raise ImageError(
                f"{path.absolute()} cannot be read: {error.strerror}"
            ) from None

    def _put(
        self, image: StoredImage, same: Sequence[bytes | None] = ()
    ) -> StoredImage:
        """Give an image a handle, or find the one that has its address, or one of these bytes."""
        with self._lock:
            for stored in self._images.values():
                if stored.url == image.url and stored.data in same:
                    return stored
            self._make_room(image.size)
            self._count += 1
            handle = f"img_{self._count}{_random_letters()}"
            image = replace(image, handle=handle)
            self._images[handle] = image
        return image

    def _make_room(self, size: int) -> None:
        """Drop the oldest that may be dropped until there is room, or none if that cannot help."""
        images = dict(self._images)
        passing = [
            image.handle for image in images.values() if image.generated or image.quoted
        ]
        used = sum(image.size for image in images.values())
        while len(images) >= self.max_images or used + size > self.max_bytes:
            if not passing:
                raise ImageError(
                    f"the store is full ({len(self)} images): remove() some"
                )
            used -= images.pop(passing.pop(0)).size
        self._images = images


def _random_letters() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(8))
