"""The first moments of a process: from its start to the first token of a stream.

In a process of its own, since nothing that was imported before would be counted.

    python -m benchmarks.speed.cold ChatSvc http://127.0.0.1:PORT first-8
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

# What every chat model needs of langchain-core. It is no merit to import it earlier or later.
_CORE = (
    "language_models.chat_models",
    "messages.tool",
    "outputs",
    "tools",
    "output_parsers",
)


def main(name: str, address: str, answer: str) -> None:
    """Print seconds of CPU, and how many modules came with the import on top of core."""
    for module in _CORE:
        import_module(f"langchain_core.{module}")
    from . import contestants

    contestants.prepare(name)
    found: dict[str, float] = {}
    package, _, class_ = contestants.IMPORTS.get(name, "").partition(".")
    if package:
        known, begin = set(sys.modules), time.process_time()
        getattr(import_module(package), class_)
        found["class"] = time.process_time() - begin
        found["class_modules"] = len(sys.modules.keys() - known)
    for chunk in contestants.make(name, address, answer).stream("Hello"):
        if chunk.text:
            break
    found["cpu"] = time.process_time()  # of the whole process
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
