"""What quotas and budgets have in common: a process has one of each, and calls run under them.

A copy is the same object, and so is what a pickle gives.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from typing_extensions import Self

from .._service import CallSize
from .limiter import CallLimiter

_LIVE: WeakValueDictionary[str, Any] = WeakValueDictionary()


class Shared:
    """What copies and pickles share within a process. Another process makes its own, once."""

    setting: str  # the parameter that takes it
    _id: str

    def limiter(
        self, interface: str, key: str, size: CallSize, limits: tuple[Any, ...]
    ) -> CallLimiter:
        """What a call under all these limits asks before each try."""
        quota = next((limit for limit in limits if limit.setting == "quota"), None)
        budgets = tuple(dict.fromkeys(limit for limit in limits if limit.setting == "budget"))
        account = None if quota is None else quota.account(interface, key)
        return CallLimiter(account, budgets, size, (quota or budgets[0]).estimates)

    def _register(self) -> None:
        self._id = uuid4().hex
        _LIVE[self._id] = self

    def _arguments(self) -> dict[str, Any]:
        """Those of the constructor."""
        raise NotImplementedError

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._id, self._arguments())


def _restored(kind: type[Shared], id_: str, arguments: dict[str, Any]) -> Any:
    found = _LIVE.get(id_)
    if found is None:
        found = kind(**arguments)
        found._id = id_  # noqa: SLF001  # our own class
        _LIVE[id_] = found
    return found
