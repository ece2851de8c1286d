"""Text: how it reads, the turns of a prompt, and the marks of thoughts and turns in an answer."""

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
from .prompt import (
    DELIMITER,
    attribute,
    base64_note,
    conversation_text,
    defuse,
    defuse_own,
    has_turn_tags,
    image_text,
    system_text,
    user_text,
    without_base64,
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
