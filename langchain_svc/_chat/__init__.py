"""One turn of a chat: what is asked, how, and what becomes of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .messages import SystemRole, WireMessages, prompt_size
from .options import (
    CallOptions,
    ExtraBody,
    MaxTokens,
    ModelId,
    Stop,
    Temperature,
    alias_of,
    check_options,
    read_answer_options,
    traced_options,
)
from .parts import ToolLike
from .prepare import count_prompt, new_turn
from .profiles import (
    DEFAULT_MODEL,
    IMAGES_DESCRIBED,
    ListedModel,
    documented_profile,
    find_listed,
    listed_models,
)
from .tokens import TOKENS_A_TURN, TokenCounts, count_tokens, encoding
from .turn import (
    PROVIDER,
    REASK,
    ChatTurn,
    adispatch_event,
    dispatch_event,
    joined_results,
    summed_outputs,
)

if TYPE_CHECKING:
    from .described_images import ConversationImages, adescribe_images, describe_images
    from .prompts import GeneralTemperature, Prompt, PromptOptions, check_prompt_options
    from .structured import structured_output
    from .tools import tool_parameters

__getattr__ = lazy(
    __name__,
    {
        "described_images": "ConversationImages adescribe_images describe_images",
        "prompts": "GeneralTemperature Prompt PromptOptions check_prompt_options",
        "structured": "structured_output",
        "tools": "tool_parameters",
    },
)
