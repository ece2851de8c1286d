"""The suites, each with its cases, its question and its judge."""

from .agents import AGENTS
from .citations import CITATIONS
from .cut import CUT, CUT_CALLS
from .doubts import DOUBTS
from .objects import OBJECTS
from .pseudonyms import PSEUDONYMS
from .system import SYSTEM
from .tools import RESULTS, TOOLS, bfcl

SUITES = {
    suite.name: suite
    for suite in (
        TOOLS,
        RESULTS,
        DOUBTS,
        OBJECTS,
        SYSTEM,
        CUT,
        CUT_CALLS,
        CITATIONS,
        PSEUDONYMS,
        AGENTS,
    )
}

__all__ = ["SUITES", "bfcl"]
