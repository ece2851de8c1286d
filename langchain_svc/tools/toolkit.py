"""`SvcToolkit`: the tools of the general interface, with one set of connections and one store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, ClassVar, Literal

from langchain_core.tools import BaseTool
from pydantic import Field

from .._settings import url_of
from ..config import GENERAL, V1, Interface
from ..images import ImageStore
from .base import ServiceTool, ServiceToolkit, tool_selection
from .general import SvcAnalyzeImage, SvcGenerateImage, SvcTranslate

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
