"""What other integrations call settings, as data: their names, and what to write here instead."""

from __future__ import annotations

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
