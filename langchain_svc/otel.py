"""`SvcOpenTelemetryCallbackHandler`, by its short path."""

from .observe import SvcOpenTelemetryCallbackHandler as SvcOpenTelemetryCallbackHandler
