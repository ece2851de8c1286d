"""Says which extra is missing, instead of failing on the first import that needs it."""

from importlib.util import find_spec

_NEEDED = {"h11": "h11", "PIL": "pillow"}


def require_extras() -> None:
    """Raise ImportError naming the extra when a library of the sandbox is not installed."""
    missing = sorted({library for module, library in _NEEDED.items() if find_spec(module) is None})
    if missing:
        raise ImportError(
            f"The sandbox needs {', '.join(missing)}, which is not installed. "
            'Run: pip install "langchain-svc[sandbox]"'
        )
