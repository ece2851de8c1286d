"""How calls are written, by the text that they begin with.

A reader stands right after that text and returns the calls it reads; an empty list if the text is
only noise around calls, and None if it is no markup at all here. Most families are read by what
their marks have in common (`marks`, `tags.marked`); the rows below are for those that differ.
"""

from __future__ import annotations

from . import gemma, named, tags
from .tags import Reader

READERS: dict[str, Reader] = {
    "<tool_call>": tags.own,
    "<|python_tag|>": tags.python_tag,
    "<|tool_call>": gemma.gemma,
    "<start_function_call>": gemma.gemma,
    "functools[": tags.functools,
    ">>>": named.arrows,
    "Action:": named.react,
    "<|channel|>commentary ": named.after_mark,
    "<|start|>assistant": named.after_mark,
    "<xml>": tags.element("</xml>"),
}

# This word only if a call came before: other texts have observations, too.
OBSERVATION = "Observation:"

# These words are markup at the beginning of a line only.
LINE_STARTS = frozenset({"Action:", "functools[", OBSERVATION})

# Ends of turns and the like, which say nothing.
NOISE = frozenset(
    {
        "</tool_call>",
        "</parameter>",
        "<|channel|>final<|message|>",
        "<|channel|>commentary<|message|>",
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end|>",
        "[BEGIN FINAL RESPONSE]",
        "[END FINAL RESPONSE]",
    }
)

# A result that the model made up, or another's turn that it began: nothing after it counts.
ENDINGS = frozenset(
    {
        "<tool_response",
        "<tool_result",
        "<|tool_response",
        "<start_function_response>",
        "✿RESULT✿",
        "<|im_start|>",
        "<|start_header_id|>",
    }
)
