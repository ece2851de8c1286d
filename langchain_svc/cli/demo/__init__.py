"""The tour of `langchain-svc demo`: what LangChain does with `ChatSvc`, on the sandbox."""

from __future__ import annotations

from importlib.util import find_spec


def run() -> None:
    """Take the tour, printing to stdout.

    Raises:
        ImportError: A library of the extras is missing; the text says which extras to install.
    """
    needed = {"bm25s": "bm25s", "rich": "rich", "PIL": "pillow"}
    missing = [library for module, library in needed.items() if find_spec(module) is None]
    if missing:
        raise ImportError(
            f"The demo needs {' and '.join(missing)}, not installed here. "
            'Run: pip install "langchain-svc[cli,sandbox]"'
        )
    from .screen import Screen  # noqa: PLC0415  # after the check
    from .tour import tour  # noqa: PLC0415  # the same

    tour(Screen())
