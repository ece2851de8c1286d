"""`SvcToolkit`, by its short path."""

from .tools import SvcToolkit as SvcToolkit
