"""What finds tool calls in an answer: the parser, what comes out of it, and what goes in."""

from .asked import code_blocks
from .calls import ArgumentsDelta, BadCall, Call, CallEnd, CallStart, Doubt, Tool
from .judge import arguments_json
from .parse import Event, StreamParser, parse_calls, text_behind_calls
from .replay import Replays
from .scanner import MOST_CALLS, Prose, Thought, ThoughtEnd
