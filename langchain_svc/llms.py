"""`SvcLLM`, by its short path."""

from .chat import SvcLLM as SvcLLM
