"""The decoder's errors count the lines of what stands before them, and must not do so for each opener."""

from __future__ import annotations

import json
import sys

import pytest

from langchain_svc._toolcalls.cursor import json_at

UNIT = '}]}\n{"tool_calls":['


def counted(text):
    """How many letters the errors count lines in while each opener of a text is read."""
    letters = 0

    def watch(frame, event, _):
        nonlocal letters
        if event == "call" and frame.f_code is json.JSONDecodeError.__init__.__code__:
            letters += frame.f_locals["pos"]

    begins = [at for at, letter in enumerate(text) if letter == "{"]
    sys.setprofile(watch)
    try:
        for begin in begins:
            json_at(text, begin, final=True, lines=False)
    finally:
        sys.setprofile(None)
    return letters


def test_twice_the_text_costs_twice_as_much():
    once, twice = counted(UNIT * 400), counted(UNIT * 800)
    assert twice == pytest.approx(2 * once, rel=0.2)
