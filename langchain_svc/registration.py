"""`register`, by its short path."""

from .chat import register as register
