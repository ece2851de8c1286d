"""The names of the elements in our prompt. The client writes them, and the sandbox reads them.

No document of the service has them, so this is the one thing that both take from one place.
"""

from __future__ import annotations

SYSTEM = "system_message"
USER = "user_message"
TURN = "turn"
IMAGE = "image"
CALL = "tool_call"
RESPONSE = "tool_response"
