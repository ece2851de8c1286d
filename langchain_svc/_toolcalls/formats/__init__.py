"""How calls are written, by the text that they begin with.

A reader stands right after that text and returns the calls it reads; an empty list if the text is
only noise around calls, and None if it is no markup at all here. The next format is one function
and one row of a table.
"""

from __future__ import annotations

from . import gemma, named, tags, xml
from .tags import Reader, wrapper

READERS: dict[str, Reader] = {
    "<tool_call>": tags.own,
    # Other wrappers around JSON or around calls in Python's syntax.
    "<tool_calls>": wrapper("</tool_calls>"),
    "<TOOLCALL>": wrapper("</TOOLCALL>"),
    "<function_call>": wrapper("</function_call>"),
    "<function_calls>": wrapper("</function_calls>"),
    "<longcat_tool_call>": wrapper("</longcat_tool_call>"),
    "<seed:tool_call>": wrapper("</seed:tool_call>"),
    "<minimax:tool_call>": wrapper("</minimax:tool_call>"),
    "<tool_use>": wrapper("</tool_use>"),
    "<|tool_call|>": wrapper("<|/tool_call|>", "</|tool_call|>"),
    "<|tool_calls|>": wrapper("<|/tool_calls|>", "</|tool_calls|>"),
    "<|function_call|>": wrapper("<|/function_call|>"),
    "<|tool_call_start|>": wrapper("<|tool_call_end|>"),
    "<|tools_prefix|>": wrapper("<|tools_suffix|>"),
    "<|START_ACTION|>": wrapper("<|END_ACTION|>"),
    "<|action_start|>": wrapper("<|action_end|>"),
    "<|plugin|>": wrapper("<|action_end|>"),
    "<|python_start|>": wrapper("<|python_end|>"),
    "<|python_tag|>": tags.python_tag,
    "functools[": tags.functools,
    # Elements that documents have, too.
    "<tools>": wrapper("</tools>", tagged=False),
    "<tool>": wrapper("</tool>", tagged=False),
    "<json>": wrapper("</json>", tagged=False),
    "<xml>": wrapper("</xml>", tagged=False),
    "<response>": wrapper("</response>", tagged=False),
    # A name, marks, and JSON.
    "[TOOL_CALLS]": tags.mistral,
    "<｜tool▁calls▁begin｜>": named.deepseek,
    "<｜tool▁call▁begin｜>": named.deepseek,
    "<｜tool▁calls｜>": named.deepseek,
    "<|tool_call_begin|>": named.kimi,
    "<|channel|>commentary ": named.harmony,
    "<|start|>assistant": named.harmony_start,
    "<|recipient|>": named.recipient,
    ">>>": named.arrows,
    "✿FUNCTION✿": named.glyphs,
    "Action:": named.react,
    "**Action:**": named.react,
    # Elements.
    "<function=": xml.function,
    "<tool_call name=": xml.invoke,
    "<function name=": xml.named_function,
    "<invoke name=": xml.invoke,
    "<invoke>": xml.old_invoke,
    "<steptml:invoke name=": xml.invoke,
    "<｜DSML｜invoke name=": xml.invoke,
    "<|tool_call>": gemma.gemma,
    "<start_function_call>": gemma.gemma,
}

# This word only if a call came before: other texts have observations, too.
OBSERVATION = "Observation:"

# These words are markup at the beginning of a line only.
LINE_STARTS = frozenset({"Action:", "**Action:**", "functools[", OBSERVATION})

# Closing tags that were left over, marks around several calls, ends of turns.
NOISE = frozenset(
    {
        "</tool_call>",
        "</tool_calls>",
        "</TOOLCALL>",
        "</function_call>",
        "</function_calls>",
        "</function>",
        "</invoke>",
        "</parameter>",
        "</longcat_tool_call>",
        "</seed:tool_call>",
        "</minimax:tool_call>",
        "<|tool_call_end|>",
        "<|/tool_call|>",
        "<|tools_suffix|>",
        "<|action_end|>",
        "<|python_end|>",
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "<tool_call|>",
        "<end_function_call>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>",
        "<｜tool_calls_begin｜>",
        "<｜tool_calls_end｜>",
        "<｜tool_call_begin｜>",
        "<｜tool_call_end｜>",
        "<｜DSML｜tool_calls>",
        "</｜DSML｜tool_calls>",
        "<｜DSML｜function_calls>",
        "</｜DSML｜function_calls>",
        "</｜DSML｜invoke>",
        "</steptml:invoke>",
        "<|channel|>final<|message|>",
        "<|channel|>commentary<|message|>",
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
        "<|call|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end|>",
        "[BEGIN FINAL RESPONSE]",
        "[END FINAL RESPONSE]",
    }
)

# Thoughts, and what ends them; the end may come without a beginning, which the prompt then held.
REASONING = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel|>analysis<|message|>": "<|end|>",
}
REASONING_ENDS = frozenset(REASONING.values()) - NOISE

# A result that the model made up, or another's turn that it began: nothing after it counts.
ENDINGS = frozenset(
    {
        "<tool_response",
        "<tool_result",
        "<|tool_response",
        "<function_results>",
        "<function_result>",
        "<｜tool▁outputs▁begin｜>",
        "<｜tool▁output▁begin｜>",
        "<start_function_response>",
        "[TOOL_RESULTS]",
        "✿RESULT✿",
        "<|im_start|>",
        "<|start_header_id|>",
    }
)
