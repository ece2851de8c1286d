"""Tools for translation, image analysis and image generation, and `SvcToolkit` of all three."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.tools.base import ArgsSchema
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SkipValidation

from .._client import Exchange, WholeParser
from .._settings import bounded_number, limits_of, new_exchange, url_of, vision_exchange
from .._wire import general, image_endpoints
from ..config import GENERAL, V1, Interface
from ..errors import SvcRequestError, SvcResponseError
from ..images import HANDLE, ImageError, ImageStore, is_address
from .base import (
    ServiceTool,
    ServiceToolkit,
    ToolOutput,
    ToolUse,
    request_id,
    tool_selection,
    utc_now,
)

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}", re.ASCII)
# Characters. The documents name no bound, and a model needs one.
_LONGEST_TEXT = 100_000


def _check_text(text: str) -> str:
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"must have at most {_LONGEST_TEXT:,} characters")
    if not text.strip():
        raise ValueError("must not be empty")
    signs = set(text) - {"\t", "\n", "\r"}
    if not {"Cc", "Cs"}.isdisjoint(map(unicodedata.category, signs)):
        raise ValueError("must hold no control characters and no lone surrogates")
    return text


def _check_language(code: str) -> str:
    if not _LANGUAGE.fullmatch(code):
        raise ValueError("must be a language code, such as en, es or pt-BR")
    return code


PlainText = Annotated[str, AfterValidator(_check_text)]
Language = Annotated[str, AfterValidator(_check_language)]
Count = Annotated[
    int,
    Field(ge=1, le=image_endpoints.MOST_IMAGES),
    bounded_number(1, image_endpoints.MOST_IMAGES, whole=True),
]


class Arguments(BaseModel):
    """The arguments of a tool; one that the schema does not name is an error."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", hide_input_in_errors=True
    )


class TranslateArguments(Arguments):
    """What `svc_translate` takes."""

    text: PlainText = Field(description="The text to translate, unchanged.")
    target: Language = Field(
        description="The language to translate into, in its short form, e.g. es or pt-BR."
    )
    source: Language | None = Field(
        default=None,
        description="The language of the text, e.g. en. Leave it out if in doubt: it is detected.",
    )


class AnalyzeArguments(Arguments):
    """What `svc_analyze_image` takes."""

    image: str = Field(
        description="The image: its handle (img_...), copied exactly, or a public http(s) address, "
        "or base64. Prefer the handle. Paths of files are not read."
    )
    task: image_endpoints.Task = Field(
        description="describe: say what the image shows. ocr: read the text in it. detect: list "
        "objects and faces. moderate: judge whether it is safe to show."
    )


class GeneralGenerateArguments(Arguments):
    """What `svc_generate_image` takes on the general interface."""

    prompt: PlainText = Field(description="What the image shall show, in detail.")
    size: image_endpoints.Size | None = Field(
        default=None,
        description="Width x height: 1024x1024 square, 1792x1024 wide, 1024x1792 tall. Leave it "
        "out unless the shape matters.",
    )
    quality: image_endpoints.Quality | None = Field(
        default=None,
        description="hd for fine detail, which takes longer; else leave it out.",
    )


class GenerateArguments(GeneralGenerateArguments):
    """What `svc_generate_image` takes on the v1 interface."""

    prompt: PlainText = Field(
        max_length=image_endpoints.LONGEST_PROMPT,
        description="What the image shall show, at most "
        f"{image_endpoints.LONGEST_PROMPT} characters.",
    )
    n: Count | None = Field(
        default=None,
        description=f"How many images, 1 to {image_endpoints.MOST_IMAGES}; one if it is left out.",
    )


class SvcTranslate(ServiceTool):
    """Translates text (POST /api/translate).

    Setup:
        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_API_KEY="..." SVC_BASE_URL="https://..."
        ```

    Key init args:
        - `api_key`: The key; otherwise `SVC_API_KEY`.
        - `base_url`: The address; otherwise `SVC_BASE_URL`.
        - `timeout`: Seconds to wait for the next byte. `deadline` bounds the whole call.
        - `max_retries`: How often a call is tried again.

    Instantiate:
        ```python
        from langchain_svc import SvcTranslate

        tool = SvcTranslate(max_retries=2)
        ```

    Invoke:
        ```python
        print(tool.invoke({"text": "Good morning", "target": "es"}))
        ```

        `source`, the language of the text, is detected if it is left out.

    Invoke with ToolCall:
        ```python
        call = {
            "type": "tool_call",
            "id": "1",
            "name": "svc_translate",
            "args": {"text": "Good morning", "target": "es"},
        }
        message = tool.invoke(call)
        print(message.content, message.artifact["source"])
        ```

        The artifact has `text`, `source`, `target`, the `raw` body and where it comes from.

    Use within an agent:
        ```python
        from langchain.agents import create_agent

        from langchain_svc import ChatSvc

        agent = create_agent(ChatSvc(), [tool])
        question = "Translate 'Good morning' into 'es'."
        state = agent.invoke({"messages": [("user", question)]})
        print(state["messages"][-1].text)
        ```

    Raises:
        SvcError: Every failure of a call that no model made; a model gets its text instead.

    Rests on the general API, section 2.
    """

    name: str = "svc_translate"
    description: str = (
        "Translate a text into another language. Use it whenever a text is wanted in a language "
        "other than its own. Gives the translation and nothing else."
    )
    args_schema: Annotated[ArgsSchema, SkipValidation()] = TranslateArguments
    interfaces: ClassVar[tuple[Interface, ...]] = (GENERAL,)

    base_url: str | None = url_of(GENERAL)
    """Where the general interface is, without the /api of its paths."""

    def _use(
        self, _: RunnableConfig, text: str, target: str, source: str | None = None
    ) -> ToolUse:
        exchange = new_exchange(
            self,
            general.TRANSLATE,
            partial(WholeParser, general.read_translation),
            limits_of(self),
            body=general.translate_body(text, target=target, source=source),
        )

        def process(translation: general.Translation) -> ToolOutput:
            artifact = {
                **_provenance(exchange, translation.raw),
                "text": translation.text,
                "source": source or translation.source,
                "target": target,
            }
            return translation.text, artifact

        return ToolUse(exchange, process)


class SvcAnalyzeImage(ServiceTool):
    """Says what is in an image (POST /api/vision): description, text, objects, moderation.

    Setup:
        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_API_KEY="..." SVC_BASE_URL="https://..."
        ```

    Key init args:
        - `images`: The `ImageStore` whose handles the tool takes; tools can share it.
        - `max_inline_bytes`: The largest image that may be given as base64.
        - `api_key`: The key; otherwise `SVC_API_KEY`.
        - `base_url`: The address; otherwise `SVC_BASE_URL`.

    Instantiate:
        ```python
        from langchain_svc import ImageStore, SvcAnalyzeImage

        images = ImageStore()
        tool = SvcAnalyzeImage(images=images)
        ```

    Invoke:
        ```python
        handle = images.add("https://example.com/photo.jpg")  # or a path, bytes, base64
        print(tool.invoke({"image": handle, "task": "describe"}))
        ```

        `task` is "describe", "ocr", "detect" or "moderate". `image` is a handle, base64, or a
        public http(s) address, which is passed on and never fetched by this package.

    Invoke with ToolCall:
        ```python
        call = {
            "type": "tool_call",
            "id": "1",
            "name": "svc_analyze_image",
            "args": {"image": handle, "task": "detect"},
        }
        message = tool.invoke(call)
        print(message.content, message.artifact["result"])
        ```

        The artifact has `text`, `result`, the `raw` body and where it comes from.

    Use within an agent:
        ```python
        from langchain.agents import create_agent

        from langchain_svc import ChatSvc

        agent = create_agent(ChatSvc(), [tool])
        question = f"Describe the image {handle}."
        state = agent.invoke({"messages": [("user", question)]})
        print(state["messages"][-1].text)
        ```

    Raises:
        SvcError: Every failure of a call that no model made; a model gets its text instead.

    Rests on the general API, section 2.
    """

    name: str = "svc_analyze_image"
    description: str = (
        "Look at an image: describe it, read the text in it, find objects and faces, or judge "
        "whether it is safe to show. Give the handle (img_...) that the image has in this "
        "conversation, copied exactly."
    )
    args_schema: Annotated[ArgsSchema, SkipValidation()] = AnalyzeArguments
    interfaces: ClassVar[tuple[Interface, ...]] = (GENERAL,)

    base_url: str | None = url_of(GENERAL)
    """Where the general interface is, without the /api of its paths."""

    images: ImageStore = Field(default_factory=ImageStore, exclude=True, repr=False)
    """The images that handles stand for."""

    max_inline_bytes: Annotated[int, bounded_number(above=True, whole=True)] = (
        512 * 1024
    )
    """The largest image that may stand in the arguments as base64. Larger ones need a handle."""

    def _use(
        self, _: RunnableConfig, image: str, task: image_endpoints.Task
    ) -> ToolUse:
        sendable = self._sendable(image)
        exchange = vision_exchange(self, limits_of(self), task, sendable)
        handle = image.strip()

        def process(analysis: image_endpoints.ImageAnalysis) -> ToolOutput:
            artifact = {
                **_provenance(exchange, analysis.raw),
                "task": task,
                "image": handle if handle in self.images else None,
                "text": analysis.text,
                "result": analysis.content,
            }
            return analysis.text, artifact

        return ToolUse(exchange, process)

    def _sendable(self, image: str) -> str:
        """The address or the base64 to send; nothing is read or fetched for it."""
        text = image.strip()
        if HANDLE.fullmatch(text):
            return self.images.get(text).sendable
        try:
            return self.images.checked(text, most=self.max_inline_bytes).sendable
        except ImageError as error:
            raise SvcRequestError(
                "The image must be a handle (img_... as it was given), a public http(s) address or "
                "base64; files are not read (a program adds one by images.add(path)). It is not "
                f"sent: {error}"
            ) from None


class SvcGenerateImage(ServiceTool):
    """Makes images from a description (POST /images/generate, or /api/generate-image).

    The images land in `images`, and the model gets their handles.

    Setup:
        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_API_KEY="..." SVC_BASE_URL_V1="https://.../v1"
        ```

    Key init args:
        - `images`: The `ImageStore` where images land.
        - `api`: Which interface makes them, "v1" (up to four at once) or "general".
        - `retry_lost`: Whether to send again what may have been made, and paid for, already.
        - `api_key`: The key; otherwise `SVC_API_KEY`.
        - `base_url_v1`: The address; otherwise `SVC_BASE_URL_V1`. With `api="general"` it is
          `base_url`, otherwise `SVC_BASE_URL`.

    Instantiate:
        ```python
        from langchain_svc import ImageStore, SvcGenerateImage

        images = ImageStore()
        tool = SvcGenerateImage(images=images)
        ```

    Invoke:
        ```python
        print(tool.invoke({"prompt": "a red circle", "size": "1024x1024"}))
        for image in images:
            print(image.handle, image.format, image.width, image.height)
        ```

        `images.save(image.handle, "circle.png")` writes a file.

    Invoke with ToolCall:
        ```python
        call = {
            "type": "tool_call",
            "id": "1",
            "name": "svc_generate_image",
            "args": {"prompt": "a red circle", "n": 2},
        }
        message = tool.invoke(call)
        print(message.artifact["images"], message.artifact["unread"])
        ```

        The artifact has `images` (handles), `unread` (what came and could not be kept, with the
        reason), the `raw` body and where it comes from.

    Use within an agent:
        ```python
        from langchain.agents import create_agent

        from langchain_svc import ChatSvc

        agent = create_agent(ChatSvc(), [tool])
        question = "Generate an image of a red circle."
        state = agent.invoke({"messages": [("user", question)]})
        print(state["messages"][-1].text)
        ```

    Raises:
        SvcError: Every failure of a call that no model made; a model gets its text instead.

    Rests on the v1 API and the general API, section 2.
    """

    name: str = "svc_generate_image"
    description: str = (
        "Make a new image from a description. Use it only when an image is asked for. Gives a "
        "handle (img_...), by which other tools take the image."
    )
    interfaces: ClassVar[tuple[Interface, ...]] = (V1, GENERAL)

    api: Literal["v1", "general"] = "v1"
    """Which interface to ask. The general one makes one image at a time."""

    base_url_v1: str | None = url_of(V1)
    """Where the v1 interface is; its path ends in /v1."""

    base_url: str | None = url_of(GENERAL)
    """Where the general interface is, without the /api of its paths."""

    images: ImageStore = Field(default_factory=ImageStore, exclude=True, repr=False)
    """Where the images land."""

    retry_lost: bool = False
    """Whether to resend a generation that the service may have received: after a lost answer, a
    timeout or a gateway's status. It may then be made, and paid for, more than once."""

    def _arguments(self) -> type[Arguments]:
        return GenerateArguments if self.api == "v1" else GeneralGenerateArguments

    def _use(
        self,
        _: RunnableConfig,
        prompt: str,
        size: image_endpoints.Size | None = None,
        quality: image_endpoints.Quality | None = None,
        n: int | None = None,
    ) -> ToolUse:
        exchange = new_exchange(
            self,
            image_endpoints.GENERATE[self.api],
            partial(WholeParser, image_endpoints.read_generated),
            replace(limits_of(self), resend=self.retry_lost),
            body=image_endpoints.generate_body(prompt, size=size, quality=quality, n=n),
        )
        return ToolUse(exchange, partial(self._store, exchange, prompt))

    def _store(
        self,
        exchange: Exchange[Any],
        label: str,
        answer: image_endpoints.GeneratedImages,
    ) -> ToolOutput:
        """Put the images into the store, and tell the model their handles."""
        handles: list[str] = []
        unread: list[dict[str, str | None]] = []
        lines: list[str] = []
        for item in answer.images:
            try:
                image = self.images.add_generated(item, label=label)
            except ValueError as error:
                url = None
                if isinstance(item, str) and is_address(item):
                    url = item
                unread.append({"url": url, "reason": str(error)})
                continue
            handles.append(image.handle)
            size = f"{image.format}, {image.width}x{image.height} pixels"
            lines.append(f"{image.handle}: {image.url or size}")
        if unread:
            reasons = "; ".join(sorted({str(item["reason"]) for item in unread}))
            lines.append(
                f"{len(unread)} of {len(answer.images)} came unusable: {reasons}"
            )
        if not handles:
            raise SvcResponseError(
                f"The service made no image that can be kept. {lines[-1]}"
            )
        artifact = {
            **_provenance(exchange, answer.raw),
            "images": handles,
            "unread": unread,
            "prompt": label,
        }
        return "\n".join(["Made:", *lines]), artifact


def _provenance(exchange: Exchange[Any], raw: object) -> dict[str, Any]:
    """The request that an answer belongs to, and the whole answer."""
    model = raw.get("model") if isinstance(raw, Mapping) else None
    return {
        "endpoint": f"{exchange.request.method} {urlsplit(exchange.request.url).path}",
        "time": utc_now(exchange),
        "request_id": request_id(exchange),
        "model": model if isinstance(model, str) else None,
        "raw": raw,
    }


# -- toolkit ---------------------------------------------------------------------------------------
# `SvcToolkit`: the tools of the general interface, with one set of connections and one store.

_TOOLS: dict[str, type[ServiceTool]] = {
    "svc_translate": SvcTranslate,
    "svc_analyze_image": SvcAnalyzeImage,
    "svc_generate_image": SvcGenerateImage,
}


class SvcToolkit(ServiceToolkit):
    """Translation, image analysis and image generation for an agent.

    All tools share the toolkit's connections and its store of images. It takes the constructor
    parameters that every class of this package takes, and passes them on.

    Setup:
        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_API_KEY="..." SVC_BASE_URL="https://..." SVC_BASE_URL_V1="https://.../v1"
        ```

    Key init args:
        - `selected`: Names of the tools to give; None for all.
        - `images`: The store of images, which tools name by handles.
        - `image_api`: Which interface makes images, "v1" or "general".

    Instantiate:
        ```python
        from langchain_svc import SvcToolkit

        toolkit = SvcToolkit()
        print([tool.name for tool in toolkit.get_tools()])
        ```

    Use within an agent:
        ```python
        from langchain.agents import create_agent

        from langchain_svc import ChatSvc

        agent = create_agent(ChatSvc(), toolkit.get_tools())
        state = agent.invoke({"messages": [("user", "Generate an image of a red circle.")]})
        print(state["messages"][-1].text)
        ```
    """

    interfaces: ClassVar[tuple[Interface, ...]] = (V1, GENERAL)

    base_url_v1: str | None = url_of(V1)
    """Where the v1 interface is, which makes images; its path ends in /v1."""

    base_url: str | None = url_of(GENERAL)
    """Where the general interface is, without the /api of its paths."""

    image_api: Literal["v1", "general"] = "v1"
    """Which interface makes images."""

    selected: Annotated[Sequence[str] | None, tool_selection(tuple(_TOOLS))] = None
    """The names of the tools to give; all where it is None."""

    images: ImageStore = Field(default_factory=ImageStore, exclude=True, repr=False)
    """The images that tools take and make, by handle."""

    retry_lost: bool = False
    """Whether to resend an image generation that the service may already have received."""

    def _interfaces_in_use(self) -> Collection[Interface]:
        names = self.selected or _TOOLS
        if self.image_api != "v1" or "svc_generate_image" not in names:
            return [GENERAL]
        return [V1] if len(names) == 1 else [V1, GENERAL]

    def get_tools(self) -> list[BaseTool]:
        """The selected tools, in a fixed order."""
        settings = {"svc_generate_image": {"api": self.image_api}}
        return [
            self._new_tool(_TOOLS[name], **settings.get(name, {}))
            for name in self.selected or _TOOLS
        ]
