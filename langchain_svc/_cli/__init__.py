"""The commands of `langchain-svc` that talk to the service; `cli.py` is where they are entered."""

from __future__ import annotations

from .ask import add_ask
from .chat import add_chat
from .doctor import add_doctor
from .explain import add_explain
from .models import add_models
from .terminal import MisuseError, emit, error_line, read_schema, tell
