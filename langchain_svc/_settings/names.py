"""Names of settings that are not ours: what others call them, suggestions, and what to write."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar

# -- hints -----------------------------------------------------------------------------------------
# What other integrations call settings, as data: their names, and what to write here instead.

# Other names of settings that this package has.
ALIASES = {
    "model_name": "model",
    "request_timeout": "timeout",
    "stop_sequences": "stop",
    "max_completion_tokens": "max_tokens",
}

_UNDOCUMENTED_FIELDS = """
    top_p top_k seed user logprobs top_logprobs logit_bias presence_penalty frequency_penalty
    reasoning_effort service_tier prompt_cache_key store metadata verbosity modalities prediction
    web_search_options
"""
_UNDOCUMENTED_HINT = (
    "the service documents have no {0!r}; "
    "extra_body={{{0!r}: ...}} sends it all the same"
)
_NAMES_BY_HINT = {
    "did you mean 'base_url_v1'?": "api_base openai_api_base endpoint",
    "did you mean 'api_key'?": "openai_api_key",
    "did you mean 'timeout'? It is seconds of silence, in streams too": "stream_chunk_timeout",
    "did you mean 'max_retries'?": "max_retry",
    "did you mean 'extra_body'?": "model_kwargs",
    (
        "use model.bind_tools(tools); in place of a chain of functions and its parser "
        "model.with_structured_output(schema), of an agent of functions create_tool_calling_agent"
    ): "functions function_call",
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

# What to write here instead of a name of another integration.
HINTS: dict[str, str] = {}
for _name in _UNDOCUMENTED_FIELDS.split():
    HINTS[_name] = _UNDOCUMENTED_HINT.format(_name)
for _hint, _names in _NAMES_BY_HINT.items():
    for _name in _names.split():
        HINTS[_name] = _hint

# Values of these names that ask for nothing: configurations and wrappers pass them on unset.
NEUTRAL_VALUES: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "top_p": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "stream_usage": (True,),
    "stream_options": ({"include_usage": True}, {"include_usage": False}),
    "service_tier": ("auto", "default"),
}


# -- names -----------------------------------------------------------------------------------------

T = TypeVar("T")


def did_you_mean(name: str, valid_names: Iterable[str]) -> str:
    """A sentence's end that suggests the nearest known name, or lists them all."""
    candidates = sorted(valid_names)
    # Other packages write "request_timeout" for "timeout"; a slip rarely is in the first letter.
    near = [candidate for candidate in candidates if candidate.startswith(name)]
    inside = [candidate for candidate in candidates if candidate in name]
    near += sorted(inside, key=len)[-1:]
    same_letter = [candidate for candidate in candidates if candidate[:1] == name[:1]]
    near += difflib.get_close_matches(name, same_letter, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known are: " + ", ".join(candidates)


def suggest_name(name: str, valid_names: Iterable[str]) -> str:
    """What to write instead of a name that is not known."""
    return HINTS.get(name) or did_you_mean(name, valid_names)


def suggests_fields(kind: type[T]) -> type[T]:
    """A dataclass that suggests the nearest field where a call names none of them.

    Raises:
        TypeError: From such a call, and from one without a field that is required.
    """
    make: Callable[..., None] = kind.__init__
    known = fields(kind)  # type: ignore[arg-type]  # a dataclass
    names = [field.name for field in known]
    required = [field.name for field in known if field.default is MISSING]

    @wraps(make)
    def checked(self: T, *args: Any, **words: Any) -> None:
        for word in words:
            if word not in names:
                raise TypeError(
                    f"there is no {word}= here; {did_you_mean(word, names)}"
                )
        for name in required[len(args) :]:
            if name not in words:
                raise TypeError(f"{name}= is missing")
        make(self, *args, **words)

    kind.__init__ = checked  # type: ignore[assignment]  # with the same signature
    return kind


def resolve_aliases(
    settings: Mapping[str, Any], valid_names: Collection[str], owner: str
) -> dict[str, Any]:
    """The settings by our names, without unknown ones that ask for nothing.

    Raises:
        ValueError: A setting stands there by both of its names.
    """
    resolved = {
        name: value
        for name, value in settings.items()
        if name in valid_names or not _asks_for_nothing(name, value)
    }
    for alias, name in ALIASES.items():
        if alias in settings and alias not in valid_names and name in valid_names:
            if name in resolved:
                raise ValueError(
                    f"{owner} takes {alias!r} or {name!r}, which mean the same"
                )
            resolved[name] = resolved.pop(alias)
    return resolved


def _asks_for_nothing(name: str, value: object) -> bool:
    if name not in HINTS:
        return False
    if value is None or value is False:
        return True
    if isinstance(value, (dict, list)) and not value:
        return True
    return value in NEUTRAL_VALUES.get(name, ())
