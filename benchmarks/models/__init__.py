"""The lab: real language models before the package. Run `python -m benchmarks.models --help`."""
