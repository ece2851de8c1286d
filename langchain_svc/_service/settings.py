"""The constructor parameters that every class of this package shares, checked once.

How to reach the service, how long to wait, how often to try. A class names the interfaces that it
speaks to; from them follow the variable its key is read from, the URLs that are checked and the
calls that it may make.
"""

from __future__ import annotations

import difflib
import math
import os
import time
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias
from urllib.parse import urlsplit

from langchain_core.utils import from_env
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from .._base.lazy import forks_wait_for_imports
from .._base.safe_errors import safe_constructor, safe_repr
from .._version import __version__
from .._wire import ACCEPT_ENCODING, Price, secrets_of
from ..config import (
    Interface,
    check_headers,
    check_key,
    check_proxy,
    check_url,
    is_loopback,
    require_key,
    require_url,
)
from ..errors import SvcRequestError
from .price_lists import keep_prices, listed_prices
from .retry_budget import Budget
from .runs import Privacy, refuse_trio
from .steps import BLOCK_LIMITS, CallSize, Exchange, Limits, Request, UseLimit, origin

if TYPE_CHECKING:
    from .._http import Connections

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
    kind = "a whole number" if whole else "a number"
    start = f"above {low:g}" if above else f"from {low:g}"
    allowed = f"{kind} {start}" + ("" if high == math.inf else f" to {high:g}")

    def check(value: Any) -> Any:
        if value is None:
            return None
        if text and isinstance(value, (str, float)):
            value = _as_number(value)
        # True is not a number, and half a token is not one token.
        known = isinstance(value, int if whole else (int, float)) and not isinstance(
            value, bool
        )
        if (
            not known
            or not low <= value <= high
            or (above and value == low)
            or value == math.inf
        ):
            raise ValueError(f"must be {allowed}, not {safe_repr(value)}")
        return value

    return BeforeValidator(check)


def _as_number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    return int(value) if isinstance(value, float) and value.is_integer() else value


Seconds = Annotated[float, bounded_number(above=True, text=True)]
Retries = Annotated[int, bounded_number(whole=True, text=True)]
if TYPE_CHECKING:  # what may be given; what is kept is always a SecretStr
    Secret: TypeAlias = SecretStr | str | None
    Limiting: TypeAlias = UseLimit | None
else:
    Secret = SecretStr | None
    Limiting = Any  # _check_limit says in our words what is none


def url_of(interface: Interface) -> Any:
    """The field that holds an interface's URL; read from the environment where it is not given."""
    return Field(default_factory=from_env(interface.url_env, default=None))


def reveal_secret(secret: Secret) -> str | None:
    return secret.get_secret_value() if isinstance(secret, SecretStr) else secret


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence's end that suggests the nearest known name, or lists them all."""
    names = sorted(known)
    # Other packages write "request_timeout" for "timeout"; a slip rarely is in the first letter.
    near = [one for one in names if one.startswith(name)]
    near += sorted((one for one in names if one in name), key=len)[-1:]
    near += difflib.get_close_matches(
        name, [one for one in names if one[:1] == name[:1]], n=1
    )
    return f"did you mean {near[0]!r}?" if near else "known are: " + ", ".join(names)


# Names of other integrations for what we have, too.
ALIASES = {
    "model_name": "model",
    "request_timeout": "timeout",
    "stop_sequences": "stop",
    "max_completion_tokens": "max_tokens",
}
_FROM_ENVIRONMENT = ("api_key", "base_url_v1", "base_url", "medical_base_url")
_PASSED_ON = "the service documents have no {0!r}; extra_body={{{0!r}: ...}} sends it all the same"
_OTHERS = """
    top_p top_k seed user logprobs top_logprobs logit_bias presence_penalty frequency_penalty
    reasoning_effort service_tier prompt_cache_key store metadata verbosity modalities prediction
    web_search_options
"""
_INSTEAD = {
    "did you mean 'base_url_v1'?": "api_base openai_api_base endpoint",
    "did you mean 'api_key'?": "openai_api_key",
    "did you mean 'timeout'? It is seconds of silence, in streams too": "stream_chunk_timeout",
    "did you mean 'max_retries'?": "max_retry",
    "did you mean 'extra_body'?": "model_kwargs",
    "did you mean bind_tools?": "functions function_call",
    "give them to bind_tools": "tools",
    "give the schema to with_structured_output": "response_format",
    "leave it out: usage comes with every answer": "stream_usage stream_options",
    "leave it out: the service has nothing of the kind": """
        organization openai_organization use_responses_api tiktoken_model_name api_version
        azure_endpoint azure_deployment include_response_headers context_management include
        prompt_cache_options truncation use_previous_response_id disabled_params
    """,
    "the service has no embeddings: use another package's, such as langchain-huggingface": """
        embedding embeddings embedding_model dimensions
    """,
    "give a client of yours that has it: http_client=httpx.Client(...)": """
        default_query http_socket_options client async_client
    """,
    "the service answers once: model.batch([messages] * n)": "n",
}
# What users of other integrations write, and what to write here instead.
_HINTS = {
    **{name: _PASSED_ON.format(name) for name in _OTHERS.split()},
    **{name: said for said, names in _INSTEAD.items() for name in names.split()},
}
# Their values that ask for nothing beyond this: configurations and wrappers pass them on unset.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "top_p": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "stream_usage": (True,),
    "stream_options": ({"include_usage": True}, {"include_usage": False}),
    "service_tier": ("auto", "default"),
}


def _asks_for_nothing(name: str, value: Any) -> bool:
    empty = (
        value is None
        or value is False
        or (isinstance(value, (dict, list)) and not value)
    )
    return name in _HINTS and (empty or value in _NEUTRAL.get(name, ()))


def resolve_aliases(
    given: Mapping[str, Any], known: Collection[str], owner: str
) -> dict[str, Any]:
    """The same in our words, without what asks for nothing."""
    unknown = given.keys() - set(known)
    words = {
        k: v
        for k, v in given.items()
        if k not in unknown or not _asks_for_nothing(k, v)
    }
    for theirs in ALIASES.keys() & given.keys() - set(known):
        ours = ALIASES[theirs]
        if ours in known:
            if ours in words:
                raise ValueError(
                    f"{owner} takes {theirs!r} or {ours!r}, which mean the same"
                )
            words[ours] = words.pop(theirs)
    return words


def suggest_name(name: str, known: Iterable[str]) -> str:
    """What to write instead of a name that is not known."""
    return _HINTS.get(name) or did_you_mean(name, known)


@safe_constructor
class ServiceSettings(BaseModel):
    """How to reach the service, how long to wait and how often to try.

    It stands first among the bases of a class, so that its constructor is the one that is called.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, hide_input_in_errors=True)

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

    http_client: Any = Field(default=None, exclude=True, repr=False)
    """An `httpx.Client` to use instead of our own connections. It is yours to close."""

    http_async_client: Any = Field(default=None, exclude=True, repr=False)
    """The same for asynchronous calls: an `httpx.AsyncClient`."""

    quota: Limiting = Field(default=None, exclude=True, repr=False)
    """A `SvcQuota`: calls wait for their turn instead of being refused. Give one to all objects
    that use a key."""

    budget: Limiting = Field(default=None, exclude=True, repr=False)
    """A `SvcBudget`: a call that would exceed it is not sent."""

    privacy: Privacy = None
    """"phi" keeps what is sent and answered out of callbacks, traces, errors and caches."""

    _lost: tuple[str, ...] = PrivateAttr(default=())

    # By origin, since an interface may be spoken to over TLS or through a proxy and another not.
    _connections: dict[str, Connections] = PrivateAttr(default_factory=dict)
    _budget: Budget = PrivateAttr(default_factory=Budget)

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
            made = cls(**settings)
        finally:
            settings.clear()  # a traceback may show variables, and these hold the key
        for interface in made._needed():
            require_key(interface, None if made.api_key is None else "set")
            require_url(interface, getattr(made, interface.url_word))
        return made

    def _needed(self) -> Collection[Interface]:
        """The interfaces that calls of this object ask."""
        return self.interfaces

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        # Our own settings first, and without what Pydantic checks about them.
        package = __name__.partition(".")[0]
        ours = [
            one for one in cls.__mro__ if one.__module__.partition(".")[0] == package
        ]
        names = dict.fromkeys(
            name for one in ours for name in vars(one).get("__annotations__", ())
        )
        fields = {
            name: cls.model_fields[name] for name in names if name in cls.model_fields
        }
        settings = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=field.default if not field.default_factory else None,
            )
            for name, field in (fields | cls.model_fields).items()
        ]
        cls.__signature__ = Signature(settings)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """What was set, the model first; LangChain's profile and metadata would hide it."""
        fields = type(self).model_fields
        first = ["model", *(interface.url_word for interface in self.interfaces)]
        names = {*first, *self.model_fields_set} & fields.keys() - {
            "profile",
            "metadata",
        }
        for name in sorted(names, key=[*first, *fields].index):
            value = getattr(self, name)
            told = value is not None and (
                name in first or value != fields[name].default
            )
            if fields[name].repr and told:
                yield name, value

    @model_validator(mode="before")
    @classmethod
    def _read_names(cls, values: Any) -> Any:
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
        return {k: v for k, v in values.items() if k not in unset} if unset else values

    @field_validator("api_key", mode="before")
    @classmethod
    def _read_key(cls, key: Any) -> Any:
        return cls._key_of_environment() if key is None else key

    @classmethod
    def _key_of_environment(cls) -> str | None:
        (name,) = {interface.key_env for interface in cls.interfaces} or {""}
        return os.environ.get(name)

    @field_validator("api_key")
    @classmethod
    def _check_api_key(cls, key: SecretStr | None) -> SecretStr | None:
        bare = check_key(key.get_secret_value()) if key is not None else ""
        return SecretStr(bare) if bare else None

    @model_validator(mode="after")
    def _check_urls(self) -> Self:
        for interface in self.interfaces:
            url = getattr(self, interface.url_word)
            try:
                checked = check_url(url, self.insecure_hosts) if url else None
            except ValueError as error:
                read = url == os.environ.get(interface.url_env)
                name = interface.url_env if read else interface.url_word
                raise ValueError(f"{name}: {error}") from None
            self.__dict__[interface.url_word] = checked
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

    @field_validator("http_client", "http_async_client")
    @classmethod
    def _check_client(cls, client: Any, info: Any) -> Any:
        if client is None:
            return None
        import httpx  # noqa: PLC0415  # only those who inject a client pay for its import here

        wanted = httpx.Client if info.field_name == "http_client" else httpx.AsyncClient
        if not isinstance(client, wanted):
            problem = f"must be an httpx.{wanted.__name__}, not {safe_repr(client)}"
            raise ValueError(problem)  # noqa: TRY004  # pydantic reports ValueErrors
        return client

    @field_validator("quota", "budget")
    @classmethod
    def _check_limit(cls, given: Any, info: Any) -> Any:
        if given is not None and getattr(given, "setting", None) != info.field_name:
            examples = {
                "quota": "SvcQuota('pro')",
                "budget": "SvcBudget(max_tokens=100_000)",
            }
            example = examples[info.field_name]
            raise ValueError(
                f"must be an object such as {example}, not {safe_repr(given)}"
            )
        return given

    def _limits(self) -> Limits:
        """How long one use may take from now on, with all its calls, and how often each may try."""
        return Limits(
            timeout=self.timeout,
            deadline=self.deadline,
            max_retries=self.max_retries,
            max_retry_wait=self.max_retry_wait,
            outage_wait=self.outage_wait,
            max_bytes=self.max_response_bytes,
            begun=time.monotonic(),
        )

    def _headers(
        self, more: Mapping[str, str] | None, *, typed: bool
    ) -> tuple[tuple[str, str], ...]:
        """Every header of a request but the key's; `typed` says that it is about JSON."""
        content = (("Content-Type", "application/json"),) if typed else ()
        own = {**self.default_headers, **more} if more else self.default_headers
        if not own:
            return (*content, *_FIXED_HEADERS)
        names = {name.lower() for name in own}
        fixed = (header for header in _FIXED_HEADERS if header[0].lower() not in names)
        return (*content, *fixed, *own.items())

    def _new_exchange(
        self,
        interface: Interface,
        method: str,
        path: str,
        parser: Callable[[], Any],
        limits: Limits,
        *,
        body: bytes | None = None,
        private: tuple[str, ...] = (),
        headers: Mapping[str, str] | None = None,
        chat: tuple[str | None, int | None] | None = None,
    ) -> Exchange[Any]:
        """An exchange with an interface: a key goes only to the interface it was given for.

        `chat` is the model and the most tokens of an answer, of those that take tokens.
        """
        if interface not in self.interfaces:
            raise SvcRequestError(
                f"{type(self).__name__} has no key for the {interface.name} interface"
            )
        self._refuse_lost()
        require_key(interface, reveal_secret(self.api_key))
        base_url = require_url(interface, getattr(self, interface.url_word))
        # Only now, so that no frame of an error has it among its variables.
        key = require_key(interface, reveal_secret(self.api_key))
        request = Request(
            method=method,
            url=base_url + path,
            headers=(
                *interface.key_headers(key),
                *self._headers(
                    headers, typed=body is not None or interface.always_json
                ),
            ),
            body=body,
            private=private,
            secrets=self._secrets(key, headers, base_url),
            setting=interface.setting,
        )
        limiter = None
        if self.quota is not None or self.budget is not None or BLOCK_LIMITS.get():
            model, most = chat or (None, None)
            size = CallSize(
                len(body or b""),
                model,
                most,
                metered=chat is not None,
                free=body is None,
                prices=listed_prices(base_url, key),
            )
            own = (limit for limit in (self.budget, self.quota) if limit is not None)
            uses = (*BLOCK_LIMITS.get(), *own)
            limiter = uses[0].limiter(interface.name, key, size, uses)
        return Exchange(request, limits, parser, self._budget, limiter)

    def _keep_prices(self, interface: Interface, prices: Mapping[str, Price]) -> None:
        """Keep what the service listed for this address and key."""
        base_url = require_url(interface, getattr(self, interface.url_word))
        keep_prices(
            base_url, require_key(interface, reveal_secret(self.api_key)), prices
        )

    def _secrets(
        self, key: str, more: Mapping[str, str] | None, url: str
    ) -> tuple[str, ...]:
        """What neither an error nor an answer may repeat of what goes out with a call."""
        headers = (*self.default_headers.items(), *(more or {}).items())
        proxy = reveal_secret(self.proxy)
        if proxy is None and not is_loopback(urlsplit(url).hostname or ""):
            proxies = tuple(filter(None, map(os.environ.get, _PROXY_VARIABLES)))
        else:
            proxies = (proxy,) if proxy else ()
        return secrets_of(key, headers, proxies)

    def _pieces(self, exchange: Exchange[Any]) -> Generator[Any, None, None]:
        """The pieces of the answer, blocking."""
        from . import run  # noqa: PLC0415  # httpx is imported at the first call

        return run(exchange, self._connected(exchange.request.url), self.http_client)

    def _apieces(self, exchange: Exchange[Any]) -> AsyncGenerator[Any, None]:
        """The pieces of the answer, on the running event loop."""
        refuse_trio()
        from . import arun  # noqa: PLC0415  # httpx is imported at the first call

        return arun(
            exchange, self._connected(exchange.request.url), self.http_async_client
        )

    def _connected(self, url: str) -> Connections:
        """This object's connections to the origin of a URL, made at the first call."""
        place = origin(url)
        found = self._connections.get(place)
        if found is None:
            # Here and not above: httpx is imported at the first call.
            from .._http import Connections, PoolKey  # noqa: PLC0415

            proxy, key = reveal_secret(self.proxy), self.api_key
            pool_key = PoolKey(place, proxy, key, self.max_connections)
            found = self._connections.setdefault(place, Connections(pool_key))
        return found

    def __copy__(self) -> Self:
        made = super().__copy__()
        made._connections = {}  # a copy may be given another route  # noqa: SLF001  # our own class
        return made

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # A client that was handed in is shared by the copies: it is its owner's to close.
        memo = {} if memo is None else memo
        for client in (self.http_client, self.http_async_client):
            memo[id(client)] = client
        memo[id(self._connections)] = {}
        return super().__deepcopy__(memo)

    def __getstate__(self) -> dict[Any, Any]:
        if self.http_client is not None or self.http_async_client is not None:
            raise SvcRequestError(
                f"This {type(self).__name__} cannot be pickled: it uses an http_client of yours. "
                "Make it without one, or make it anew in the other process"
            )
        bare = super().__copy__()
        held = vars(bare)
        # "per_run" stands for a patient and is none.
        lost = (n for n in _NOT_PICKLED if held.get(n) and held[n] != "per_run")
        bare._lost = tuple(lost)  # noqa: SLF001  # our own class
        for name in bare._lost:  # noqa: SLF001  # our own class
            held[name] = {} if name == "default_headers" else None
        if self.privacy and "images" in held:
            held["images"] = held["images"].emptied()
        bare._connections = {}  # noqa: SLF001  # our own class
        return super(ServiceSettings, bare).__getstate__()

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        key = self._key_of_environment()
        self.__dict__["api_key"] = (
            None if key is None else self._check_api_key(SecretStr(key))
        )

    def _refuse_lost(self) -> None:
        """Says so where something did not come out of a pickle and was not given again."""
        names = [name for name in self._lost if not getattr(self, name)]
        if names:
            raise SvcRequestError(
                f"This {type(self).__name__} comes from a pickle, which carries no "
                f"{' and no '.join(names)}. Set the key's environment variable here, or give what "
                f"is missing again: model_copy(update={{{names[0]!r}: ...}})"
            )

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Self:
        """A copy with other settings. Keys, headers and proxies are checked and kept as secrets.

        Raises:
            ValueError: One of these is not valid.
        """
        given = dict(update or {})
        for name in ("api_key", "proxy", "default_headers"):
            if (value := given.get(name)) is not None:
                value = SecretStr(value) if isinstance(value, str) else value
                given[name] = getattr(self, f"_check_{name}")(value)
        return super().model_copy(update=given, deep=deep)

    def close(self) -> None:
        """Close all connections. The object stays usable: the next call opens new ones."""
        for connections in list(self._connections.values()):
            connections.close()

    async def aclose(self) -> None:
        """Close all connections, and wait until those of the running event loop are closed."""
        for connections in list(self._connections.values()):
            await connections.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


# It may be kept in a file or sent to another machine.
_NOT_PICKLED = (
    "api_key",
    "proxy",
    "default_headers",
    "patient",
    "deliver",
    "audit_key",
)
_PROXY_VARIABLES = tuple(
    name
    for scheme in ("http", "https", "all")
    for name in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")
)
_FIXED_HEADERS = (
    ("Accept", "*/*"),
    ("Accept-Encoding", ACCEPT_ENCODING),
    ("User-Agent", f"langchain-svc/{__version__}"),
)
