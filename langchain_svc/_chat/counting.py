"""Token counts as LangChain asks models for them; the same for chat and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import SvcRequestError
from .tokens import count_tokens, encoding


class TokenCounts:
    """Counts tokens offline; a mixin that stands before LangChain's model classes."""

    if TYPE_CHECKING:  # a field of LangChain's, which Pydantic must not find a second time
        custom_get_token_ids: Callable[[str], list[int]] | None

    def get_token_ids(self, text: str) -> list[int]:
        """Token ids by tiktoken's encoding, which must be on this machine.

        Raises:
            SvcRequestError: It is not; `get_num_tokens` still gives an estimate.
        """
        if self.custom_get_token_ids is not None:
            return self.custom_get_token_ids(text)
        known = encoding()
        if known is None:
            raise SvcRequestError(
                "Token ids need tiktoken's o200k_base file, which is not in its cache here (set "
                "TIKTOKEN_CACHE_DIR to a folder that holds it); get_num_tokens needs none"
            )
        return known.encode(text, disallowed_special=())

    def get_num_tokens(self, text: str) -> int:
        """About how many tokens the text has: by tiktoken, or offline by a rule on characters."""
        if self.custom_get_token_ids is not None:
            return len(self.custom_get_token_ids(text))
        return count_tokens(text)
