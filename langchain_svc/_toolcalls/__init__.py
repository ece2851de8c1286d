"""Tool calls in plain text: how they are asked for, and how they are found again. Pure."""
