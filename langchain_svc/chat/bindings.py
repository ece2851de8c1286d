"""What a `ChatSvc` is bound to: as LangChain's, and still a model that can cite.

LangChain hands `with_citations` on to the model within, and so would lose what is bound to it.
"""

from __future__ import annotations

from typing import Any, Self

from langchain_core.runnables import RunnableBinding
from langchain_core.runnables.configurable import RunnableConfigurableFields


class SvcBinding(RunnableBinding[Any, Any]):
    """A `ChatSvc` with settings, tools or a config."""

    @classmethod
    def of(cls, binding: RunnableBinding[Any, Any]) -> Self:
        """A binding of LangChain's as one of these."""
        return cls.model_construct(**_fields_of(binding, RunnableBinding))

    def with_citations(self, *args: Any, **kwargs: Any) -> Self:
        """The same with a model that cites; see `ChatSvc.with_citations`."""
        bound: Any = self.bound
        return self.model_copy(update={"bound": bound.with_citations(*args, **kwargs)})

    @classmethod
    def lc_id(cls) -> list[str]:
        """Saved as what LangChain can load."""
        return RunnableBinding.lc_id()


class SvcConfigurableFields(RunnableConfigurableFields[Any, Any]):
    """A `ChatSvc` whose settings a config may change."""

    @classmethod
    def of(cls, configurable: RunnableConfigurableFields[Any, Any]) -> Self:
        """What LangChain makes configurable as one of these."""
        return cls.model_construct(
            **_fields_of(configurable, RunnableConfigurableFields)
        )

    def with_citations(self, *args: Any, **kwargs: Any) -> Self:
        """The same with a model that cites; see `ChatSvc.with_citations`."""
        default: Any = self.default
        cited = default.with_citations(*args, **kwargs)
        return self.model_copy(update={"default": cited})

    @classmethod
    def lc_id(cls) -> list[str]:
        """Saved as what LangChain can load."""
        return RunnableConfigurableFields.lc_id()


def _fields_of(runnable: Any, kind: type[Any]) -> dict[str, Any]:
    return {name: getattr(runnable, name) for name in kind.model_fields}
