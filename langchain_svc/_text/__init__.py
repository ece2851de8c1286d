"""Text: how it reads, and the marks in an answer as it comes: of thoughts, turns and its end."""

from .continuation import Joint, ask_for_rest
from .letters import fold, normalized
from .markers import Markers
from .pseudonyms import Pseudonymizer, Restorer, restored, restored_text
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
from .stop_cutter import StopCutter
from .turn_tags import TurnTags
