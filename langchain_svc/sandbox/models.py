"""The models that the sandbox lists: the four of the v1 document, and others that are invented."""

from dataclasses import asdict, dataclass

DEFAULT_MODEL = "svc-turbo"


@dataclass(frozen=True)
class Model:
    """One model: `max_tokens` is the general API's name for its context window."""

    id: str
    name: str
    provider: str
    capabilities: tuple[str, ...]
    max_tokens: int


# The four of the v1 document, with invented prices in USD per million tokens (input, output).
_PRICES = {
    "svc-turbo": (0.5, 1.5),
    "svc-pro": (5.0, 15.0),
    "svc-vision": (2.5, 7.5),
    "svc-code": (1.0, 3.0),
}

_MODELS = (
    Model("svc-turbo", "SVC Turbo", "SVC", ("chat",), 128_000),
    Model("svc-pro", "SVC Pro", "SVC", ("chat", "code", "analysis"), 200_000),
    Model("svc-vision", "SVC Vision", "SVC", ("chat", "vision", "analysis"), 128_000),
    Model("svc-code", "SVC Code", "SVC", ("chat", "code"), 128_000),
    Model("svc-mini", "SVC Mini", "SVC", ("chat",), 32_000),
    Model("svc-analyst", "SVC Analyst", "SVC", ("chat", "analysis"), 128_000),
    Model("alder-small", "Alder Small", "Alder Works", ("chat",), 16_000),
    Model("alder-medium", "Alder Medium", "Alder Works", ("chat", "analysis"), 64_000),
    Model(
        "alder-large",
        "Alder Large",
        "Alder Works",
        ("chat", "code", "analysis"),
        128_000,
    ),
    Model("brook-swift", "Brook Swift", "Brookside Lab", ("chat",), 8_000),
    Model("brook-deep", "Brook Deep", "Brookside Lab", ("chat", "analysis"), 200_000),
    Model("brook-eye", "Brook Eye", "Brookside Lab", ("chat", "vision"), 32_000),
    Model("cinder-7", "Cinder 7", "Cinderpath", ("chat",), 8_000),
    Model("cinder-30", "Cinder 30", "Cinderpath", ("chat", "code"), 32_000),
    Model("cinder-90", "Cinder 90", "Cinderpath", ("chat", "code", "analysis"), 64_000),
    Model("dune-lite", "Dune Lite", "Dunelight", ("chat",), 4_000),
    Model("dune-code", "Dune Code", "Dunelight", ("chat", "code"), 64_000),
    Model("dune-sight", "Dune Sight", "Dunelight", ("chat", "vision"), 64_000),
    Model("ember-base", "Ember Base", "Emberfield", ("chat",), 16_000),
    Model("ember-reason", "Ember Reason", "Emberfield", ("chat", "analysis"), 128_000),
    Model(
        "fjord-one", "Fjord One", "Fjord Systems", ("chat", "vision", "code"), 128_000
    ),
    Model("fjord-long", "Fjord Long", "Fjord Systems", ("chat", "analysis"), 200_000),
    Model("grove-mini", "Grove Mini", "Grovekeeper", ("chat",), 8_000),
)

MODELS = {model.id: model for model in _MODELS}


def general_listing() -> dict[str, object]:
    """Return the body of GET /api/models: all 23 records."""
    return {"models": [asdict(model) for model in MODELS.values()]}


def v1_listing() -> dict[str, object]:
    """Return the body of GET /v1/models: the four models that the v1 document names."""
    return {"object": "list", "data": [_v1_record(MODELS[name]) for name in _PRICES]}


def _v1_record(model: Model) -> dict[str, object]:
    price_in, price_out = _PRICES[model.id]
    pricing = {
        "input": price_in,
        "output": price_out,
        "currency": "USD",
        "per_tokens": 1_000_000,
    }
    return {
        "id": model.id,
        "object": "model",
        "capabilities": model.capabilities,
        "context_window": model.max_tokens,
        "pricing": pricing,
    }
