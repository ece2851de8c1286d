"""Counts tokens without the network.

The service's tokenizer is not documented. The estimate comes from tiktoken's encoding if its file
is on this machine, and from a rule on characters if not: tiktoken would download the file.
"""

from __future__ import annotations

import math
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

_ENCODING = "o200k_base"
# tiktoken's name for that encoding's file in its cache.
_ENCODING_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"

# The rule on characters: English text takes about four a token, other scripts fewer.
_ASCII_A_TOKEN = 4.0
_OTHERS_A_TOKEN = 1.5
# What a turn costs beyond its text: its role and its borders.
TOKENS_A_TURN = 4


def encoding() -> tiktoken.Encoding | None:
    """Tiktoken's encoding, if its file is on this machine."""
    usual = os.environ.get(
        "DATA_GYM_CACHE_DIR", str(Path(tempfile.gettempdir(), "data-gym-cache"))
    )
    return _load(os.environ.get("TIKTOKEN_CACHE_DIR", usual))


@lru_cache(maxsize=4)
def _load(folder: str) -> tiktoken.Encoding | None:
    file = Path(folder) / _ENCODING_FILE
    if not folder or not file.is_file() or not file.stat().st_size:
        return None
    import tiktoken  # noqa: PLC0415  # it takes 30 ms that most callers never need

    try:
        return tiktoken.get_encoding(_ENCODING)
    except Exception:  # noqa: BLE001  # a damaged file makes tiktoken download, which fails in many ways
        return None


def estimate_tokens(text: str) -> int:
    """Tokens by the rule on characters; deterministic everywhere."""
    ascii_count = len(text)
    if not text.isascii():
        ascii_count = len(text.encode("ascii", "ignore"))
    other_count = len(text) - ascii_count
    return math.ceil(ascii_count / _ASCII_A_TOKEN + other_count / _OTHERS_A_TOKEN)


def count_tokens(text: str) -> int:
    """Tokens by tiktoken's encoding if it is there, else by the rule on characters."""
    tokenizer = encoding()
    if tokenizer is None:
        return estimate_tokens(text)
    return len(tokenizer.encode(text, disallowed_special=()))
