"""The texts of a prompt: turns, the application's words, images, and nobody speaking for another.

A text that somebody else wrote stands in an element of `prompt_tags`, and every delimiter in it is
defused, so that it can close none and open none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..prompt_tags import CALL, IMAGE, RESPONSE, SYSTEM, TURN, USER


def system_text(text: str) -> str:
    """A text of the application, in a turn of the user."""
    return f"<{SYSTEM}>\n{text}\n</{SYSTEM}>"


def user_text(text: str, name: str) -> str:
    """The text of a person whose name is known."""
    return f'<{USER} name="{attribute(name)}">\n{text}\n</{USER}>'


def conversation_text(turns: Sequence[tuple[str, str]]) -> str:
    """A conversation as one text, for an endpoint that takes one message.

    A first turn of the user goes as it is, so that this request begins as the one before it. Each
    other turn stands in an element that names its role; no text in a turn can close it, since
    every delimiter in it is defused.
    """
    roles = [role for role, _ in turns]
    if not has_turn_tags(roles):
        return turns[0][1]
    texts = [f'<{TURN} role="{role}">\n{text}\n</{TURN}>' for role, text in turns]
    if roles[0] == "user":
        return "\n".join([turns[0][1], "", _WENT_ON, *texts[1:]])
    return "\n".join([_CONVERSATION, *texts])


def has_turn_tags(roles: Sequence[str]) -> bool:
    """Whether turns of these roles stand in elements, in a conversation as one text."""
    return roles != ["user"]


_NEXT = (
    "each turn between turn tags. Write the assistant's next turn, without the tags."
)
_CONVERSATION = f"This is a conversation, {_NEXT}"
_WENT_ON = f"The conversation went on, {_NEXT}"


def image_text(handle: str, description: str) -> str:
    """An image as a vision model described it."""
    text = defuse(description)
    return f'<{IMAGE} handle="{attribute(handle)}" described_by="vision model">\n{text}\n</{IMAGE}>'


def attribute(value: str) -> str:
    """A value that cannot leave its attribute."""
    return defuse(re.sub(r'[<>"\s]+', "_", value))


# Our prompt writes turns with these names, and servers may read others as the end of one.
_NAMES = f"{RESPONSE}|tool_result|{CALL}|tools|{TURN}|schema|{IMAGE}|{SYSTEM}|{USER}"
_TURNS = "start_of_turn|end_of_turn|s>"
_LISTS = r"\[(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT)\])"
DELIMITER = re.compile(
    rf"<(?=[\s/]{{0,32}}(?:(?:{_NAMES})\b|{_TURNS})|[|｜])|{_LISTS}", re.IGNORECASE
)
_OF_SERVERS = re.compile(
    rf"<(?=[\s/]{{0,32}}(?:{_TURNS})|[|｜])|{_LISTS}", re.IGNORECASE
)
_HARMLESS = {"<": "&lt;", "[": "&#91;"}


def defuse(text: str) -> str:
    """Text with all delimiters made harmless, so that it cannot speak as somebody else."""
    if "<" not in text and "[" not in text:
        return text
    return DELIMITER.sub(lambda match: _HARMLESS[match[0]], text)


def defuse_own(text: str) -> str:
    """The model's own text as a turn of its own, which no server reads as the end of one.

    The names of our prompt stay as it wrote them: they speak for nobody else there.
    """
    return _OF_SERVERS.sub(lambda match: _HARMLESS[match[0]], text)


# -- base64 ---------------------------------------------------------------------------------------

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{60,}(?:\r?\n[A-Za-z0-9+/_-]{60,})*={0,2}")
MOST_BASE64 = 1_000
"""The characters of base64 that may stand in a text: a cursor or a key is not a file."""


def without_base64(text: str) -> str:
    """The text with a note in place of each file in base64."""
    return _BASE64.sub(_without_file, text)


def base64_note(text: str) -> str:
    """The note that takes the place of base64."""
    return f"[{len(text):,} characters of base64]"


def _without_file(match: re.Match[str]) -> str:
    """A note in place of a file; not of a long word or a sequence of bases, which lack letters."""
    text = match[0]
    is_file = all(re.search(letters, text) for letters in ("[A-Z]", "[a-z]", "[0-9]"))
    if is_file and len(text) > MOST_BASE64:
        return base64_note(text)
    return text
