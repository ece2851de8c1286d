"""The constructor parameters that every class of this package shares, and their checks.

How to reach the service, how long to wait, how often to try. A class names the interfaces that it
speaks to; from them follow the variable its key is read from, the URLs that are checked and the
calls that it may make.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

from langchain_core.utils import from_env
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from .._base.lazy import forks_wait_for_imports
from .._base.safe_errors import safe_constructor, safe_repr
from .._client import Client
from ..config import (
    Interface,
    check_headers,
    check_key,
    check_proxy,
    check_url,
    client_kind,
    require_key,
    require_url,
)
from ..errors import SvcRequestError
from .class_help import describe_lazily
from .names import resolve_aliases, suggest_name
from .runs import Privacy, check_pseudonyms

if TYPE_CHECKING:
    import httpx
    import httpx2

    from .._client import UseLimit
    from .._text import Pseudonymizer

forks_wait_for_imports()


def bounded_number(
    low: float = 0,
    high: float = math.inf,
    *,
    above: bool = False,
    whole: bool = False,
    text: bool = False,
) -> BeforeValidator:
    """Accepts a finite number from `low` to `high`; the error names the value and the bounds.

    Args:
        low: The lowest value allowed.
        high: The highest value allowed.
        above: Whether `low` itself is too low.
        whole: Whether it must be an int.
        text: Whether it may be written as text, as environment variables and configurations have
            it, and 10.0 is 10.
    """
    number_types: tuple[type[int | float], ...] = (int, float)
    kind = "a number"
    if whole:  # half a token is not one token
        number_types = (int,)
        kind = "a whole number"
    allowed = f"{kind} above {low:g}" if above else f"{kind} from {low:g}"
    if high != math.inf:
        allowed += f" to {high:g}"

    def check(value: object) -> object:
        if value is None:
            return None
        if text and isinstance(value, (str, float)):
            value = _as_number(value)
        if (
            not isinstance(value, number_types)
            or isinstance(value, bool)
            or not low <= value <= high
            or (above and value == low)
            or value == math.inf
        ):
            raise ValueError(f"must be {allowed}, not {safe_repr(value)}")
        return value

    return BeforeValidator(check)


def _as_number(value: str | float) -> str | float:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    if value.is_integer():
        return int(value)
    return value


Seconds = Annotated[float, bounded_number(above=True, text=True)]
Retries = Annotated[int, bounded_number(whole=True, text=True)]


def url_of(interface: Interface) -> Any:
    """The field that holds an interface's URL; read from the environment where it is not given."""
    return Field(default_factory=from_env(interface.url_env, default=None))


_FROM_ENVIRONMENT = ("api_key", "base_url_v1", "base_url", "medical_base_url")
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

if TYPE_CHECKING:  # what the constructor accepts; a secret is kept as a SecretStr
    Secret: TypeAlias = SecretStr | str | None
    Limiting: TypeAlias = UseLimit | None
    SyncClient: TypeAlias = httpx.Client | httpx2.Client | None
    Masks: TypeAlias = Pseudonymizer | None
    AsyncClient: TypeAlias = httpx.AsyncClient | httpx2.AsyncClient | None
else:  # their validators below check the others, with an error of their own
    Secret = SecretStr | None
    Limiting = SyncClient = AsyncClient = Masks = object


@safe_constructor
class ServiceSettings(BaseModel):
    """How to reach the service, how long to wait and how often to try.

    It stands first among the bases of a class, so that its constructor is the one that is called.
    Copies share the clients that they were given; a pickle holds no key and no patient.
    """

    # Of a mixin nobody makes an object: only the classes that stand on it are built when imported.
    model_config: ClassVar[ConfigDict] = ConfigDict(
        arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True
    )

    interfaces: ClassVar[tuple[Interface, ...]] = ()
    """Those that the class speaks to. They have one key, which goes to no other."""

    api_key: Secret = Field(default=None, repr=False, validate_default=True)
    """The key; read from the environment where it is not given."""

    timeout: Seconds | None = 120.0
    """Seconds without a byte after which a call is given up. None waits for ever."""

    deadline: Seconds | None = 600.0
    """Seconds for everything a call does: waiting, retries and the whole stream."""

    max_retries: Retries = 2
    """How many times a call is tried again after the first try."""

    max_retry_wait: Annotated[float, bounded_number(text=True)] = 60.0
    """Seconds: if the service asks for a longer wait, the call fails at once and says so."""

    outage_wait: Annotated[float, bounded_number(text=True)] = 0.0
    """Seconds that a call keeps trying after its first failure while the service is down. With 0
    it fails when its own retries are used up."""

    max_response_bytes: Annotated[
        int, bounded_number(above=True, whole=True, text=True)
    ] = 64 * 1024 * 1024
    """The largest answer that is read, after decompression."""

    max_connections: Annotated[int, bounded_number(1, whole=True, text=True)] = 1024
    """The most connections in use at once, for all threads together and for each event loop;
    further calls wait. Objects with the same key, origin and proxy share them."""

    default_headers: Mapping[str, str] = Field(
        default_factory=dict, exclude=True, repr=False
    )
    """Extra headers for every request. Their values are kept out of repr and traces."""

    proxy: Secret = Field(default=None, exclude=True, repr=False)
    """A proxy's URL; without it the environment's proxies are used, save for loopback."""

    insecure_hosts: Sequence[str] = ()
    """Hosts besides loopback that may be called over plain http."""

    http_client: SyncClient = Field(default=None, exclude=True, repr=False)
    """An `httpx.Client` or `httpx2.Client` to use instead of our own connections. It is yours to
    close."""

    http_async_client: AsyncClient = Field(default=None, exclude=True, repr=False)
    """The same for asynchronous calls: an `AsyncClient` of httpx or httpx2."""

    quota: Limiting = Field(default=None, exclude=True, repr=False)
    """A `SvcQuota`: calls wait for their turn instead of being refused. Give one to all objects
    that use a key."""

    budget: Limiting = Field(default=None, exclude=True, repr=False)
    """A `SvcBudget`: a call that would exceed it is not sent."""

    pseudonyms: Masks = Field(default=None, exclude=True, repr=False)
    """`Pseudonyms`: what identifies people is hidden in all that is sent, and restored in all that
    comes back. `config["configurable"]["svc_pseudonyms"]` brings those of one run."""

    privacy: Privacy = None
    """"phi" keeps what is sent and answered out of callbacks, traces, errors and caches."""

    # Fields that a pickle left out, and that this object may need to be given again.
    _unpicklable_fields: tuple[str, ...] = PrivateAttr(default=())

    _client: Client = PrivateAttr(default_factory=Client)

    @classmethod
    def from_env(cls, **settings: Any) -> Self:
        """An object configured from the environment, where the key and each address must be set.

        An application that uses this fails when it starts, and not at its first request.

        Args:
            **settings: Those of the constructor.

        Raises:
            SvcRequestError: A variable is not set. (Without `from_env` the first call says so.)
        """
        try:
            configured = cls(**settings)
        finally:
            settings.clear()  # a traceback may show variables, and these hold the key
        for interface in configured._interfaces_in_use():
            if configured.api_key is None:
                require_key(interface, None)
            require_url(interface, getattr(configured, interface.url_word))
        return configured

    def _interfaces_in_use(self) -> Collection[Interface]:
        """The interfaces that calls of this object reach."""
        return self.interfaces

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        describe_lazily(cls)

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """What was set, the model first; LangChain's profile and metadata would hide it."""
        fields = type(self).model_fields
        first = ["model", *(interface.url_word for interface in self.interfaces)]
        names = {*first, *self.model_fields_set} & fields.keys()
        names -= {"profile", "metadata"}
        for name in sorted(names, key=[*first, *fields].index):
            value = getattr(self, name)
            if not fields[name].repr or value is None:
                continue
            if name in first or value != fields[name].default:
                yield name, value

    @model_validator(mode="before")
    @classmethod
    def _read_names(cls, values: object) -> object:
        """Takes the names that other integrations use, and refuses those that nobody knows."""
        if not isinstance(values, Mapping):
            return values
        fields = cls.model_fields
        if values.keys() - fields:
            values = resolve_aliases(values, fields, cls.__name__)
            aliases = {field.alias for field in fields.values() if field.alias}
            for name in values.keys() - fields - aliases:
                raise ValueError(
                    f"{cls.__name__} has no setting {name!r}; "
                    + suggest_name(str(name), {*fields, *aliases})
                )
        # None is what a configuration says that does not set it: the environment may.
        unset = [
            name
            for name in _FROM_ENVIRONMENT
            if name in values and values[name] is None
        ]
        if not unset:
            return values
        return {name: value for name, value in values.items() if name not in unset}

    @field_validator("api_key", mode="before")
    @classmethod
    def _read_key(cls, key: object) -> object:
        if key is None:
            return cls._key_of_environment()
        return key

    @classmethod
    def _key_of_environment(cls) -> str | None:
        if not cls.interfaces:
            return None
        (name,) = {interface.key_env for interface in cls.interfaces}
        return os.environ.get(name)

    @field_validator("api_key")
    @classmethod
    def _check_api_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is None:
            return None
        stripped = check_key(key.get_secret_value())
        if not stripped:
            return None
        return SecretStr(stripped)

    @model_validator(mode="after")
    def _check_urls(self) -> Self:
        for interface in self.interfaces:
            url = getattr(self, interface.url_word) or None
            if url is not None:
                try:
                    url = check_url(url, self.insecure_hosts)
                except ValueError as error:
                    name = interface.url_word
                    if url == os.environ.get(interface.url_env):
                        name = interface.url_env
                    raise ValueError(f"{name}: {error}") from None
            self.__dict__[interface.url_word] = url
        return self

    @field_validator("default_headers")
    @classmethod
    def _check_default_headers(cls, headers: Mapping[str, str]) -> dict[str, str]:
        return check_headers(headers)

    @field_validator("proxy")
    @classmethod
    def _check_proxy(cls, proxy: SecretStr | None) -> SecretStr | None:
        if proxy is not None:
            check_proxy(proxy.get_secret_value())
        return proxy

    @field_validator("pseudonyms")
    @classmethod
    def _check_pseudonyms(cls, pseudonyms: object) -> object:
        return check_pseudonyms(pseudonyms)

    @field_validator("http_client", "http_async_client")
    @classmethod
    def _check_client(cls, client: object, info: ValidationInfo) -> object:
        if client is None:
            return None
        expected = "Client"
        if info.field_name == "http_async_client":
            expected = "AsyncClient"
        kind = client_kind(client)
        if kind is None or kind[1] != expected:
            given = ".".join(kind) if kind else safe_repr(client)
            problem = (
                f"must be an httpx.{expected} or an httpx2.{expected}, not {given}"
            )
            raise ValueError(problem)  # pydantic reports ValueErrors
        return client

    @field_validator("quota", "budget")
    @classmethod
    def _check_limit(cls, limit: object, info: ValidationInfo) -> object:
        if limit is None or getattr(limit, "setting", None) == info.field_name:
            return limit
        example = "SvcQuota('pro')"
        if info.field_name == "budget":
            example = "SvcBudget(max_tokens=100_000)"
        raise ValueError(f"must be an object such as {example}, not {safe_repr(limit)}")

    # -- copies and pickles ---------------------------------------------------------------------

    def __copy__(self) -> Self:
        copied = super().__copy__()
        copied._client = copy(self._client)  # it may be given another route  # noqa: SLF001  # our own class
        return copied

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # A client that was handed in is shared by the copies: it is its owner's to close.
        memo = {} if memo is None else memo
        for client in (self.http_client, self.http_async_client):
            memo[id(client)] = client
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
        return super(ServiceSettings, bare).__getstate__()

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        key = self._key_of_environment()
        checked = None
        if key is not None:
            checked = self._check_api_key(SecretStr(key))
        self.__dict__["api_key"] = checked

    # -- closing --------------------------------------------------------------------------------

    def close(self) -> None:
        """Close all connections. The object stays usable: the next call opens new ones."""
        self._client.close()

    async def aclose(self) -> None:
        """Close all connections, and wait until those of the running event loop are closed."""
        await self._client.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
