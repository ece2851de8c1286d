"""A local stand-in for the service: real HTTP on loopback, rules instead of AI.

Written from the service documents alone and independent of the client, so that one misreading
cannot hide in both::

    with Sandbox(plan="pro") as s:
        ...  # s.v1, s.general and s.medical are keyword arguments for the client classes
"""

from importlib.util import find_spec


def require_extras() -> None:
    """Raise ImportError naming the extra when a library of the sandbox is not installed."""
    missing = [
        name for module, name in (("h11", "h11"), ("PIL", "pillow")) if not find_spec(module)
    ]
    if missing:
        raise ImportError(
            f"The sandbox needs {' and '.join(missing)}, not installed here. "
            'Run: pip install "langchain-svc[sandbox]"'
        )


require_extras()

from langchain_svc.sandbox.faults import Fault  # noqa: E402 - the check speaks first
from langchain_svc.sandbox.log import Received  # noqa: E402
from langchain_svc.sandbox.sandbox import Sandbox, serve  # noqa: E402
from langchain_svc.sandbox.scripted import ToolCall  # noqa: E402
from langchain_svc.sandbox.upstream import Upstream  # noqa: E402

__all__ = ["Fault", "Received", "Sandbox", "ToolCall", "Upstream", "serve"]
