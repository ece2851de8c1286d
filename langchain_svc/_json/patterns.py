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
from collections.abc import Callable, Sequence
from typing import Any

# No public module has the tree. Before Python 3.11 the parser had a name of its own.
_PARSER = importlib.import_module(
    "re._parser" if sys.version_info >= (3, 11) else "sre_parse"
)
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_MOST_WAYS = math.log(1_000_000)  # some ten milliseconds

_Node = tuple[Any, Any]  # its name and its arguments, whose form goes by the name
_Tree = Sequence[_Node]


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text has a match of the pattern.

    A text that the pattern could read in too many ways counts as a match, and so does every text
    if the pattern was written for another engine.
    """
    try:
        compiled = re.compile(pattern)
        tree: _Tree = _PARSER.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return lambda _: True
    anchored = _is_anchored(tree, compiled.flags)

    def matches(text: str) -> bool:
        ways = _ways(tree, len(text))
        if not anchored:
            ways += math.log(len(text) + 1)  # a match may begin anywhere
        return ways > _MOST_WAYS or compiled.search(text) is not None

    return matches


def _is_anchored(tree: _Tree, flags: int) -> bool:
    """Whether a match can begin at the text's beginning only."""
    if not tree or flags & re.MULTILINE:
        return False
    name, argument = tree[0]
    return str(name) == "AT" and "BEGINNING" in str(argument)


def _ways(tree: _Tree, length: int) -> float:
    """In how many ways a pattern may read a text of this length at most; the logarithm of it."""
    return math.fsum(_ways_of_node(node, length) for node in tree)


def _ways_of_node(node: _Node, length: int) -> float:
    name = str(node[0])
    argument = node[1]
    if name == "BRANCH":
        branches = argument[1]
        most_ways = max(_ways(branch, length) for branch in branches)
        return most_ways + math.log(len(branches))
    if name in _REPEATS:
        least = int(argument[0])
        most = int(argument[1])
        # A repeat may stand for nothing as often as it must, as in (a?){28}.
        times = min(most, max(least, length))
        counts = max(times - least, 0) + 1
        return math.log(counts) + times * _ways(argument[2], length)
    parts = (argument,)
    if isinstance(argument, tuple):
        parts = argument
    groups = [part for part in parts if isinstance(part, _PARSER.SubPattern)]
    return math.fsum(_ways(group, length) for group in groups)
