"""What finds tool calls in an answer: the parser, what comes out of it, and what goes in."""

from .arguments import ArgumentsDelta, CallEnd, CallStart
from .asked import code_blocks
from .calls import BadCall, Call, Doubt, Tool
from .judge import arguments_json
from .parse import Event, StreamParser, parse_calls, text_behind_calls
from .replay import Replays
from .scanner import MOST_CALLS, Prose, Thought, ThoughtEnd
