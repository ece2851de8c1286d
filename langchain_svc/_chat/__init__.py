"""One turn of a chat: what is asked, how, and what becomes of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .messages import SystemRole, WireMessages, prompt_size
from .model import TextModel
from .options import (
    CallOptions,
    ExtraBody,
    MaxTokens,
    ModelId,
    OnCut,
    Temperature,
    call_options,
    call_settings,
    traced_options,
)
from .parts import ContentPart, TextReader, ToolLike
from .prepare import count_prompt, new_turn
from .profiles import (
    DEFAULT_MODEL,
    IMAGES_DESCRIBED,
    ListedModel,
    documented_profile,
    find_listed,
)
from .tokens import TOKENS_A_TURN, count_tokens, encoding
from .turn import COUNTS, PROVIDER, ChatTurn, summed_outputs, token_usage

if TYPE_CHECKING:
    from .described_images import adescribe_images, describe_images, find_images
    from .structured import structured_output
    from .tools import ToolList, tool_request

__getattr__ = lazy(
    __name__,
    {
        "described_images": "adescribe_images describe_images find_images",
        "structured": "structured_output",
        "tools": "ToolList tool_request",
    },
)
