"""Marks in the text of an answer: how they are found as it comes, and those of thoughts."""

from .letters import fold, is_invisible, normalized
from .markers import Markers
from .pseudonyms import Pseudonymizer, Restorer, restored
from .reading import (
    Reading,
    characters,
    joined,
    rendered,
    without_partial_escape,
)
from .reasoning import (
    ALL_WAS_REASONING,
    CLOSES,
    CONTENT,
    HALF_MARK,
    NATIVE,
    NATIVE_ENDS,
    OPENS,
    SPOKEN,
    ReasoningSplitter,
    Segment,
    closer_of,
    end_of_reasoning,
    without_reasoning,
)
