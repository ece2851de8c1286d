"""The properties of the readers: what once broke one, and a short search for what else does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from share import fewer

from fuzz.__main__ import shrunk
from fuzz.targets import TARGETS, crashers

# Each run reads a long text, or asks over a socket.
DEAR = {name for name in TARGETS if name.startswith("cost")} | {"service"}


@pytest.mark.parametrize(
    ("name", "crasher"), crashers(), ids=lambda value: getattr(value, "name", value)
)
def test_what_once_broke_a_property_no_longer_does(name, crasher):
    TARGETS[name].holds(crasher.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_the_property_holds_for_the_inputs_that_a_search_begins_with(name):
    for number, seed in enumerate(TARGETS[name].seeds()):
        if number % (60 if name in DEAR else 4) == 0:
            TARGETS[name].holds(seed)


@pytest.mark.parametrize("name", sorted(TARGETS.keys() - DEAR))
def test_the_property_holds_for_any_bytes(name):
    @settings(max_examples=fewer(40), deadline=None)
    @given(st.binary(max_size=60))
    def search(data):
        TARGETS[name].holds(data)

    search()


def test_what_breaks_a_property_is_made_small():
    def holds(data):
        assert b"x" not in data or b"y" not in data

    assert shrunk(holds, b"abcxdefghyijk" * 9) in {b"xy", b"yx"}
