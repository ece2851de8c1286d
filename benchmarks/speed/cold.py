"""The first moments of a process: importing a contestant, making it and calling it once.

In a process of its own, since nothing that was imported before would be counted.

    python -m benchmarks.speed.cold ChatSvc http://127.0.0.1:PORT say-12
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

# What every chat model needs of langchain-core. It is no merit to import it earlier or later.
_CORE = ("language_models.chat_models", "messages.tool", "outputs", "tools", "output_parsers")


def main(name: str, address: str, answer: str) -> None:
    """Print seconds of CPU, and how many modules came with the import on top of core."""
    start = time.process_time()
    for module in _CORE:
        import_module(f"langchain_core.{module}")
    from . import contestants

    found: dict[str, float] = {}
    package, _, class_ = contestants.IMPORTS.get(name, "").partition(".")
    if package:
        known, begin = set(sys.modules), time.process_time()
        imported = import_module(package)
        found["package"] = time.process_time() - begin
        found["package_modules"] = len(sys.modules.keys() - known)
        getattr(imported, class_)
        found["class"] = time.process_time() - begin
        found["class_modules"] = len(sys.modules.keys() - known)
    contestants.make(name, address, answer).invoke("Hello")
    found["first_call"] = time.process_time() - start
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
