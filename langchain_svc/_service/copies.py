"""Copies and pickles of an object's settings: what they share, and what they leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import SecretStr

from ..errors import SvcRequestError
from .fields import SettingsFields

# A pickle may be kept in a file or sent to another machine.
_UNPICKLABLE_FIELDS = (
    "api_key",
    "proxy",
    "default_headers",
    "patient",
    "deliver",
    "audit",
    "audit_key",
    "pseudonyms",
)


class CopyableSettings(SettingsFields):
    """Settings whose copies share clients, and whose pickles hold no key and no patient."""

    def __copy__(self) -> Self:
        copied = super().__copy__()
        copied._connections = {}  # a copy may be given another route  # noqa: SLF001  # our own class
        return copied

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # A client that was handed in is shared by the copies: it is its owner's to close.
        memo = {} if memo is None else memo
        for client in (self.http_client, self.http_async_client):
            memo[id(client)] = client
        memo[id(self._connections)] = {}
        return super().__deepcopy__(memo)

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Self:
        """A copy with other settings. Keys, headers and proxies are checked and kept as secrets.

        Raises:
            ValueError: One of these is not valid.
        """
        settings = dict(update or {})
        for name in ("api_key", "proxy", "default_headers"):
            value = settings.get(name)
            if isinstance(value, str):
                value = SecretStr(value)
            if value is not None:
                settings[name] = getattr(self, f"_check_{name}")(value)
        return super().model_copy(update=settings, deep=deep)

    def __getstate__(self) -> dict[Any, Any]:
        if self.http_client is not None or self.http_async_client is not None:
            raise SvcRequestError(
                f"This {type(self).__name__} cannot be pickled: it uses an http_client of yours. "
                "Make it without one, or make it anew in the other process"
            )
        bare = super().__copy__()
        bare._connections = {}  # noqa: SLF001  # our own class
        fields = vars(bare)
        dropped = []
        for name in _UNPICKLABLE_FIELDS:
            value = fields.get(name)
            # "per_run" says that each run names its patient, and names none itself.
            if not value or value == "per_run":
                continue
            dropped.append(name)
            fields[name] = {} if name == "default_headers" else None
        bare._unpicklable_fields = tuple(dropped)  # noqa: SLF001  # our own class
        if self.privacy and "images" in fields:
            fields["images"] = fields["images"].emptied()
        return super(CopyableSettings, bare).__getstate__()

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        key = self._key_of_environment()
        checked = None
        if key is not None:
            checked = self._check_api_key(SecretStr(key))
        self.__dict__["api_key"] = checked

    def _refuse_incomplete_pickle(self) -> None:
        """Raises where a field that a pickle left out was not given again.

        Raises:
            SvcRequestError: It names the fields.
        """
        names = [name for name in self._unpicklable_fields if not getattr(self, name)]
        if names:
            raise SvcRequestError(
                f"This {type(self).__name__} comes from a pickle, which carries no "
                f"{' and no '.join(names)}. Set the key's environment variable here, or give what "
                f"is missing again: model_copy(update={{{names[0]!r}: ...}})"
            )
