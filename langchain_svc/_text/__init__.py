"""Text: how it reads, and the marks in an answer as it comes: of thoughts, turns and its end."""

from .continuation import Joint, ask_for_rest
from .marks import (
    ALL_WAS_REASONING,
    CLOSES,
    CONTENT,
    HALF_MARK,
    NATIVE,
    NATIVE_ENDS,
    OPENS,
    SPOKEN,
    Markers,
    ReasoningSplitter,
    Segment,
    StopCutter,
    TurnTags,
    closer_of,
    end_of_reasoning,
    without_reasoning,
)
from .pseudonyms import Pseudonymizer, Restorer, restored, restored_text
from .reading import (
    Reading,
    characters,
    fold,
    joined,
    normalized,
    rendered,
    without_partial_escape,
)
