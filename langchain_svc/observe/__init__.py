"""What calls cost and how they went: usage by model and tool, and OpenTelemetry's spans."""
