"""A schema's own `pattern`, searched only where that cannot take long.

The pattern comes from a tool server's schema and the text from a model, so neither is trusted.
`re` tries one way after another to divide a text among the repeats of a pattern, and no other
thread of the process runs meanwhile. So the ways are counted before a text is searched, on the
tree that `re`'s own parser makes.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

# No public module has the tree. Before Python 3.11 the parser had a name of its own.
_PARSER = importlib.import_module(
    "re._parser" if sys.version_info >= (3, 11) else "sre_parse"
)
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_MOST_WAYS = math.log(1_000_000)  # some ten milliseconds

_Node = tuple[Any, Any]


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text has a match of the pattern.

    A text that the pattern could read in too many ways counts as a match, and so does every text
    if the pattern was written for another engine.
    """
    try:
        search = re.compile(pattern).search
        tree = _PARSER.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return lambda _: True
    anchored = _is_anchored(tree)

    def matches(text: str) -> bool:
        starts = 0.0 if anchored else math.log(len(text) + 1)
        too_many = starts + _ways(tree, len(text)) > _MOST_WAYS
        return too_many or search(text) is not None

    return matches


def _is_anchored(tree: Any) -> bool:
    """Whether a match can begin at the text's beginning only."""
    if not tree or tree.state.flags & re.MULTILINE:
        return False
    name, argument = tree[0]
    return str(name) == "AT" and "BEGINNING" in str(argument)


def _ways(tree: Iterable[_Node], length: int) -> float:
    """In how many ways a pattern may read a text of this length at most; the logarithm of it."""
    return math.fsum(_ways_of_node(_name(node), node[1], length) for node in tree)


def _ways_of_node(name: str, argument: Any, length: int) -> float:
    if name == "BRANCH":
        branches = argument[1]
        return max(_ways(branch, length) for branch in branches) + math.log(
            len(branches)
        )
    if name in _REPEATS:
        least = int(argument[0])
        most = int(argument[1])
        # A repeat may stand for nothing as often as it must, as in (a?){28}.
        times = min(most, max(least, length))
        counts = max(times - least, 0) + 1
        return math.log(counts) + times * _ways(argument[2], length)
    parts = argument if isinstance(argument, tuple) else (argument,)
    groups = [part for part in parts if isinstance(part, _PARSER.SubPattern)]
    return math.fsum(_ways(group, length) for group in groups)


def _name(node: _Node) -> str:
    return str(node[0])
