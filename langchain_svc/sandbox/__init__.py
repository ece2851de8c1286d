"""A local stand-in for the service: real HTTP on loopback, rules instead of AI.

Written from the service documents alone and independent of the client, so that one misreading
cannot hide in both::

    with Sandbox(plan="pro") as s:
        ...  # s.v1, s.general and s.medical are keyword arguments for the client classes
"""

try:
    from .answers import ToolCall
    from .faults import Fault
    from .log import Received
    from .sandbox import Sandbox, serve
    from .upstream import Upstream
except ModuleNotFoundError as missing:
    if missing.name not in {"h11", "PIL"}:
        raise
    raise ImportError(
        "The sandbox needs h11 and pillow, not installed here. "
        'Run: pip install "langchain-svc[sandbox]"'
    ) from missing

__all__ = ["Fault", "Received", "Sandbox", "ToolCall", "Upstream", "serve"]
