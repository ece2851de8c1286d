"""One property under atheris: `python -m fuzz.guided TARGET [libFuzzer's options]`.

A process of its own, because libFuzzer ends the process that it runs in.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["langchain_svc"]):
    from .targets import TARGETS

name, *options = sys.argv[1:]
atheris.Setup([sys.argv[0], *options], TARGETS[name].holds)
atheris.Fuzz()
