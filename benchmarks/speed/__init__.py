"""Measures ChatSvc against its peers and its floor: `python -m benchmarks`."""
