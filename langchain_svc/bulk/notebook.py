"""A bar below the cell of a notebook, redrawn in its place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape


def is_notebook() -> bool:
    """Whether the program is the kernel of a notebook."""
    if "ipykernel" not in sys.modules or "IPython" not in sys.modules:
        return False
    from IPython import get_ipython  # noqa: PLC0415  # it is here in a kernel

    return hasattr(get_ipython(), "kernel")


@dataclass(frozen=True)
class _Bar:
    line: str
    completed: int
    total: int | None

    def __repr__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        bounds = ""  # a bar without a value tells that something goes on
        if self.total is not None:
            bounds = f' value="{self.completed}" max="{self.total}"'
        return f"<progress{bounds}></progress> {escape(self.line)}"


@contextmanager
def notebook_bar() -> Iterator[Callable[[str, int, int | None], None]]:
    """A block that shows a line, and how many rows of how many it tells of."""
    from IPython.display import display  # noqa: PLC0415  # it is here in a kernel

    handle = display(_Bar("", 0, None), display_id=True)
    yield lambda line, completed, total: handle.update(_Bar(line, completed, total))
