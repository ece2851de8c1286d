"""Tool calls in plain text: how they are asked for, and how they are found again. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .calls import BadCall, Call, Tool
from .render import (
    FORMATS,
    TAGS,
    Format,
    PastCall,
    Result,
    ToolFormat,
    calls_text,
    choice_line,
    defuse,
    image_text,
    marks_line,
    no_tools_block,
    render_json,
    results_text,
    system_text,
    tools_block,
    user_text,
)

if TYPE_CHECKING:
    from .arguments import Begun, Ended, Written
    from .echo import Echoes
    from .judge import arguments_json
    from .parse import Event, StreamParser, parse_calls
    from .scanner import Prose, Thought, ThoughtEnd

__getattr__ = lazy(
    __name__,
    {
        "arguments": "Begun Ended Written",
        "echo": "Echoes",
        "judge": "arguments_json",
        "parse": "Event StreamParser parse_calls",
        "scanner": "Prose Thought ThoughtEnd",
    },
)
