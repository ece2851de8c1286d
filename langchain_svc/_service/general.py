"""Where the general interface is: the constructor word that its model and its tools share."""

from __future__ import annotations

from langchain_core.utils import from_env
from pydantic import Field, model_validator
from typing_extensions import Self

from ..config import ENV_BASE_URL, check_url
from .settings import ServiceSettings


class GeneralSettings(ServiceSettings):
    """`ServiceSettings` with the address of the general interface."""

    base_url: str | None = Field(default_factory=from_env(ENV_BASE_URL, default=None))
    """Where the general interface is, without the /api of its paths."""

    @model_validator(mode="after")
    def _check_base_urls(self) -> Self:
        # Those of a class that speaks to the v1 interface too are checked here as well.
        for word in {"base_url", "base_url_v1"} & set(type(self).model_fields):
            url = getattr(self, word)
            self.__dict__[word] = check_url(url, self.insecure_hosts) if url else None
        return self
