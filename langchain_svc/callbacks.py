"""`SvcUsageCallbackHandler`, by its short path."""

from .observe import ModelUsage as ModelUsage
from .observe import SvcUsageCallbackHandler as SvcUsageCallbackHandler
